"""Database engines that this Debian does not have: packages of another suite, in a folder of their own.

fetch() gives an Engine: apt with a state of its own downloads the packages and what they need, dpkg
unpacks them below $DUEBOX_CACHE/engines, and their programs run by their own dynamic loader.  Nothing is
installed and the system's apt is not touched.  The source list is the machine's own with the suite
exchanged.  A suite that moves cannot be pinned, so the version that was found is printed.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from .jars import jar_folder

DONE = "complete"       # written last; holds the packages and their versions
SOURCES = Path("/etc/apt")


class EngineUnavailable(RuntimeError):
    """This machine cannot have the engine; the text says why."""


class Engine:
    """Unpacked packages: `root`, `version` of the first of them, and how to run a program."""

    def __init__(self, folder):
        self.folder = folder
        self.root = folder / "root"
        self.packages = dict(line.split(" ", 1) for line in (folder / DONE).read_text().splitlines())
        self.version = next(iter(self.packages.values()))

    def path(self, *names):
        """The first of the names that exists, below usr/."""
        for name in names:
            for path in sorted((self.root / "usr").glob(name)):
                return path
        raise EngineUnavailable(f"{self.folder}: the packages have none of {', '.join(names)}")

    def libraries(self):
        return self.path("lib/*-linux-gnu*/libc.so.6").parent

    def command(self, program):
        """The words that run usr/`program` with the libraries it was built for, whatever those of the system are."""
        loader = self.path("lib64/ld-linux-*.so*", "lib/*/ld-linux-*.so*", "lib/ld-linux-*.so*")
        return [str(loader), "--library-path", str(self.libraries()), str(self.path(program))]

    def once(self, name, fill):
        """The folder of this engine by that name; fill(folder) is called where there is none yet."""
        folder, fresh = self.folder / name, self.folder / f"{name}.new"
        with _locked(self.folder / f"{name}.lock"):
            if not folder.exists():
                shutil.rmtree(fresh, ignore_errors=True)
                fresh.mkdir()
                fill(fresh)
                fresh.rename(folder)
        return folder


def fetch(suite, *packages):
    """The packages of a suite of Debian as an Engine, fetched once; EngineUnavailable says why not."""
    folder = jar_folder("engines") / f"{suite}-{packages[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if not (folder / DONE).exists():
            _download(suite, packages, folder)
    engine = Engine(folder)
    print(f"engine: {packages[0]} {engine.version} of Debian {suite}", file=sys.stderr)
    return engine


@contextmanager
def _locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(suite, packages, folder):
    if not all(shutil.which(program) for program in ("apt-get", "dpkg")):
        raise EngineUnavailable("there is no apt-get")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "state" / "status").touch()
    (folder / "engine.sources").write_text(source_list(suite))
    (folder / "apt.conf").write_text("".join(f'{name} "{value}";\n' for name, value in {
        "Dir::State": folder / "state", "Dir::State::lists": folder / "state" / "lists",
        "Dir::State::status": folder / "state" / "status", "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "engine.sources", "Dir::Etc::sourceparts": "-",
        "APT::Install-Recommends": "0", "APT::Sandbox::User": "", "Acquire::Languages": "none",
        "Debug::NoLocking": "1"}.items()))
    _apt(folder, "update", "--error-on=any")
    _apt(folder, "--yes", "--download-only", "install", *packages)
    shutil.rmtree(folder / "root", ignore_errors=True)
    versions = {}
    for deb in sorted((folder / "cache" / "archives").glob("*.deb")):
        _run(["dpkg", "-x", deb, folder / "root"])
        name, version, _ = deb.stem.replace("%3a", ":").split("_")
        versions[name] = version
    missing = [name for name in packages if name not in versions]
    if missing:
        raise EngineUnavailable(f"Debian {suite} has no {', '.join(missing)}")
    order = [*packages, *sorted(set(versions) - set(packages))]
    (folder / DONE).write_text("".join(f"{name} {versions[name]}\n" for name in order))
    shutil.rmtree(folder / "cache")


def _apt(folder, *words):
    return _run(["apt-get", *words], env={**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"})


def _run(words, env=None):
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode:
        raise EngineUnavailable(f"{' '.join(map(str, words))} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def source_list(suite):
    """The machine's own source of its own suite, with another suite in its place, in deb822."""
    named = re.search(r'^VERSION_CODENAME="?(\w+)', Path("/etc/os-release").read_text(), re.M)
    own = named.group(1) if named else ""
    for path in sorted(SOURCES.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            lines = [line for line in stanza.splitlines() if not line.startswith("#")]
            suites = [line.split()[1:] for line in lines if line.lower().startswith("suites:")]
            if suites and own in suites[0]:
                return "".join(re.sub(r"(?i)^(suites:).*", rf"\1 {suite}", line) + "\n" for line in lines)
    for path in [SOURCES / "sources.list", *sorted(SOURCES.glob("sources.list.d/*.list"))]:
        for line in path.read_text().splitlines() if path.exists() else ():
            match = re.match(rf"deb (\[.*?\] )?(\S+) {own} ", line + " ")
            if match:
                signed = re.search(r"signed-by=([^\]\s]+)", match.group(1) or "")
                return (f"Types: deb\nURIs: {match.group(2)}\nSuites: {suite}\nComponents: main\n"
                        + (f"Signed-By: {signed.group(1)}\n" if signed else ""))
    raise EngineUnavailable("apt's own source lists name no suite of this machine's")
