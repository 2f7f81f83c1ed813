#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `cmake --install --prefix` leaves can be used and moved: check_install.py <cmake> <compiler or ""> <build folder>.

Installs everything into a folder of its own, moves that folder, and uses it as a person would: the binary finds its
plugins, takes the installed example configuration, and loads the example plugin that was built against the moved tree.
Without a compiler (sanitizers: the plugin would need the same instruments) the last part is left out. And a release is
built without the tests.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COMPLETE = ["bin/duebox", "lib*/duebox/plugins/kafka.so", "lib*/duebox/plugins/amqp.so", "lib*/duebox/plugins/http.so",
            "lib/systemd/system/duebox.service", "lib/sysusers.d/duebox.conf", "lib/tmpfiles.d/duebox.conf",
            "share/bash-completion/completions/duebox", "share/man/man1/duebox.1", "share/doc/duebox/LICENSE",
            "share/doc/duebox/README.md", "share/doc/duebox/docs/OPERATIONS.md", "share/doc/duebox/docs/PLUGIN.md",
            "share/doc/duebox/docs/openapi.yaml", "share/doc/duebox/examples/duebox.yaml",
            "share/doc/duebox/examples/plugin/spool.c", "share/doc/duebox/sql/README.md",
            "share/doc/duebox/sql/examples/users.sql", "share/doc/duebox/sql/examples/grants.sql", "include/duebox/plugin.h",
            "lib*/pkgconfig/duebox.pc", "lib*/cmake/duebox/duebox-config.cmake", "share/duebox/plugin.map"]
SECRETS = re.compile(r"_file: ([a-z][a-z.-]*)")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
OF_THE_SOURCES = re.compile(r"^(\.\./)*(tests|packaging|scripts|core|cli|admin|outbox|include|sql/(schema|queries))/")


def run(*command, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("DUEBOX_")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240,
                          **{"env": env, **more})
    assert done.returncode == 0, f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def install(cmake, build, folder):
    run(cmake, "--install", build, "--prefix", folder / "first")
    prefix = (folder / "first").rename(folder / "moved")
    missing = [name for name in COMPLETE if not list(prefix.glob(name))]
    assert not missing, f"not installed: {', '.join(missing)}"
    for path in prefix.rglob("*"):
        if path.is_file() and path.read_bytes()[:4] != b"\x7fELF":     # debug information names the sources
            text = path.read_text(encoding="utf-8", errors="replace")
            for place in (folder / "first", build):
                assert str(place) not in text, f"{path} remembers {place}"
    return prefix


def links_hold(docs):
    for page in docs.rglob("*.md"):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            if not OF_THE_SOURCES.match(link):
                assert (page.parent / link).exists(), f"{page.relative_to(docs)} links to {link}, which is not installed"


def plugins_are_found(prefix, duebox):
    listed = run(duebox, "plugin", "list", "-o", "jsonl")
    for module in ("amqp", "http", "kafka"):
        assert f'"{module}"' in listed, listed
    assert str(prefix) in listed and "first" not in listed, listed


def example_is_valid(prefix, duebox, folder):
    text = (prefix / "share/doc/duebox/examples/duebox.yaml").read_text(encoding="utf-8")
    conf = folder / "etc"
    conf.mkdir()
    (conf / "duebox.yaml").write_text(text, encoding="utf-8")
    for name in set(SECRETS.findall(text)):
        secret = conf / name
        secret.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n" if name.endswith("whsec") else "0123456789abcdef" * 2 + "\n")
        secret.chmod(0o600)
    run(duebox, "check", "-c", conf / "duebox.yaml")


def example_plugin_loads(cmake, compiler, prefix, duebox, folder):
    run(cmake, "-S", prefix / "share/doc/duebox/examples/plugin", "-B", folder / "example", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compiler}")
    run(cmake, "--build", folder / "example")
    assert "folder" in run(duebox, "plugin", "info", folder / "example" / "spool.so")
    assert "folder" in run(duebox, "plugin", "info", "./spool.so", cwd=folder / "example")


def release_has_no_tests(cmake, folder):
    """Who builds the release waits for the product alone: half of the steps used to be tests and tools of benchmarks."""
    top = Path(__file__).resolve().parents[2]
    assert re.search(r'"\$preset" = release \] && tests=OFF', (top / "scripts" / "build").read_text(encoding="utf-8"))
    run(cmake, "-S", top, "-B", folder / "release", "-G", "Ninja", "-DDUEBOX_TESTS=OFF")
    steps = run("ninja", "-C", folder / "release", "-t", "targets", "all")
    assert "bin/duebox:" in steps and "\ntests/" not in steps


def main():
    cmake, compiler, build = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        prefix = install(cmake, build, folder)
        duebox = prefix / "bin" / "duebox"
        links_hold(prefix / "share" / "doc" / "duebox")
        plugins_are_found(prefix, duebox)
        example_is_valid(prefix, duebox, folder)
        release_has_no_tests(cmake, folder)
        if compiler:
            example_plugin_loads(cmake, compiler, prefix, duebox, folder)
    print("the installed tree is complete, and works from another place")


if __name__ == "__main__":
    main()
