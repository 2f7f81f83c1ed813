#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an author of a plugin does, done: check_sdk.py <cmake> <compiler> <build folder>.

Installs the component dev into a folder of its own, moves that folder (nothing may remember where it was), builds
examples/plugin against it by find_package and by pkg-config, looks at what both modules export, runs the conformance
kit, and lets duebox itself judge the module. The example printed in docs/PLUGIN.md must be the one that was built.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "plugin"


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def exported(module):
    return {line.split()[0] for line in run("nm", "-D", "--defined-only", "-P", module).splitlines()}


def install(cmake, build, folder):
    run(cmake, "--install", build, "--prefix", folder / "first", "--component", "dev")
    prefix = (folder / "first").rename(folder / "moved")
    for path in prefix.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            for place in (folder / "first", build):
                assert str(place) not in text, f"{path} remembers {place}"
    return prefix


def by_cmake(cmake, compiler, prefix, folder):
    build = folder / "example"
    run(cmake, "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={compiler}",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wno-unused-parameter -Werror")
    run(cmake, "--build", build)
    return build


def by_pkg_config(compiler, prefix, folder):
    env = dict(os.environ, PKG_CONFIG_PATH=os.pathsep.join(str(p.parent) for p in prefix.rglob("duebox.pc")))
    flags = run("pkg-config", "--cflags", "duebox", env=env).split()
    plugin_dir = run("pkg-config", "--variable=plugindir", "duebox", env=env).strip()
    assert Path(plugin_dir).parts[-2:] == ("duebox", "plugins") and Path(os.path.normpath(plugin_dir)).is_relative_to(prefix)
    assert run("pkg-config", "--variable=abi", "duebox", env=env).strip() == header_abi(), "duebox.pc names another ABI"
    module = folder / "by_hand.so"
    run(compiler, "-std=gnu17", "-shared", "-fPIC", "-fvisibility=hidden", *flags, EXAMPLE / "spool.c", "-o", module)
    return module


def header_abi():
    text = (ROOT / "include" / "duebox" / "plugin.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define DUEBOX_ABI_{part} (\d+)u", text)[1] for part in ("MAJOR", "MINOR"))


def wrong_version_is_refused(cmake, prefix, folder):
    project = folder / "future"
    project.mkdir()
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES NONE)\n"
                                            "find_package(duebox 99.0 REQUIRED)\n", encoding="ascii")
    done = subprocess.run([cmake, "-S", project, "-B", project / "b", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True,
                          text=True, timeout=240)
    assert done.returncode != 0 and "99.0" in done.stderr, "find_package(duebox 99.0) was satisfied"


def printed_example():
    blocks = re.findall(r"^```c\n(.*?)^```$", (ROOT / "docs" / "PLUGIN.md").read_text(encoding="utf-8"), re.S | re.M)
    assert (EXAMPLE / "spool.c").read_text(encoding="utf-8") in blocks, "docs/PLUGIN.md does not print examples/plugin/spool.c"


def duebox_judges(build, module):
    duebox = build / "bin" / "duebox"
    if not duebox.exists():
        return "duebox is not built here, so it was not asked"
    told = run(duebox, "plugin", "info", module)
    assert "folder" in told, told
    return "duebox plugin info knows its options"


def main():
    cmake, compiler, build = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    printed_example()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        prefix = install(cmake, build, folder)
        example = by_cmake(cmake, compiler, prefix, folder)
        for module in (example / "spool.so", by_pkg_config(compiler, prefix, folder)):
            assert exported(module) == {"duebox_plugin_v1"}, f"{module} exports {exported(module)}"
        wrong_version_is_refused(cmake, prefix, folder)
        run(example / "test_spool")
        print(duebox_judges(build, example / "spool.so"))
    print("the example builds by find_package and by pkg-config, and passes the conformance kit")


if __name__ == "__main__":
    main()
