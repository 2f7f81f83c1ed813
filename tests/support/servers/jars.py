"""Jars by version: what a pinned pom.xml lists, fetched once by Maven and verified before every use.

A folder of sources holds `pom.xml`, which names every version, the transitive ones too, and
`checksums.sha256` of the jars.  They are cached in $DUEBOX_CACHE, or ~/.cache/duebox.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .server import ServerError


class JarsUnavailable(RuntimeError):
    """This machine cannot have the jars; the text says why."""


def jar_folder(name):
    cache = os.environ.get("DUEBOX_CACHE") or Path.home() / ".cache" / "duebox"
    return Path(cache) / name


def fetch(sources, name, java):
    """The folder of verified jars of `sources`/pom.xml, cached as `name`; java: path of a java."""
    folder = jar_folder(name)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Fetched aside and renamed: no other run ever sees half a folder.
        with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
            fresh = Path(aside) / "jars"
            _run_maven(sources, fresh, java)
            _verify(sources, fresh)
            try:
                fresh.rename(folder)
            except OSError:             # another run was first
                pass
    _verify(sources, folder)
    return folder


def _run_maven(sources, folder, java):
    if not shutil.which("mvn"):
        raise JarsUnavailable("there is no mvn; see scripts/packages")
    done = subprocess.run(
        ["mvn", "--batch-mode", "--quiet", "--file", sources / "pom.xml",
         "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
        env={**os.environ, "JAVA_HOME": str(java.parent.parent)}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise JarsUnavailable(f"Maven could not fetch the jars:\n{done.stdout[-2000:]}")


def _verify(sources, folder):
    wanted = dict(reversed(line.split()) for line in
                  (sources / "checksums.sha256").read_text().splitlines())
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.iterdir()}
    wrong = sorted(name for name in wanted.keys() | found.keys()
                   if wanted.get(name) != found.get(name))
    if wrong:
        raise ServerError(f"these jars in {folder} are not the ones in checksums.sha256: "
                          f"{', '.join(wrong)}; remove the folder to fetch them again")
