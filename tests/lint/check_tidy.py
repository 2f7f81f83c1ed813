#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy finds nothing in what is shipped: check_tidy.py <clang-tidy> <clang> <build folder> <cache folder>.

The checks and the reasons for those that are off are in .clang-tidy. A file that was clean is not looked at again until
it, a header it includes, or the checks have changed: the cache holds one empty file per clean translation unit, named
by the hash of its preprocessed text.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tree

# The first two stand for options of gcc that clang 14 takes for an error. The others make the analyzer give up on a
# function after 50,000 states instead of 225,000: a third of the time, for the same findings here.
OWN_FLAGS = ["-Wno-unknown-warning-option", "-ftrivial-auto-var-init=pattern",
             "-Xclang", "-analyzer-config", "-Xclang", "max-nodes=50000"]
PLANTED = "#include <stdlib.h>\nint main(int argc, char **argv) { int *p = NULL; if (argc > 9) *p = 1; return 0; }\n"


def units(build):
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = Path(entry["file"])
        if path.is_relative_to(tree.ROOT) and path.relative_to(tree.ROOT).parts[0] in tree.PRODUCT:
            yield path, entry


def fingerprint(clang, entry, rules):
    words = entry.get("command", "").split()
    flags = [word for word in words if word.startswith(("-I", "-D", "-std"))]
    flags += [part for i, word in enumerate(words) if word == "-isystem" for part in words[i:i + 2]]
    done = subprocess.run([clang, "-E", "-C", *flags, entry["file"]], capture_output=True, cwd=entry["directory"], timeout=60)
    return hashlib.sha256(rules + done.stdout + done.stderr).hexdigest()


def tidy(program, path, *more):
    command = ["nice", program, "--quiet", *[f"--extra-arg={flag}" for flag in OWN_FLAGS], *more, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tree.ROOT)
    found = [line for line in done.stdout.splitlines() if ": error:" in line or ": warning:" in line]
    if done.returncode and not found:
        found = [f"{path}: {program} ended with {done.returncode}: {done.stderr.strip()[-300:]}"]
    return found


def self_test(program):
    with tempfile.TemporaryDirectory() as folder:
        planted = Path(folder) / "planted.c"
        planted.write_text(PLANTED, encoding="ascii")
        found = tidy(program, planted, f"--config-file={tree.ROOT / '.clang-tidy'}", "--extra-arg=-std=gnu17")
    assert any("NullDereference" in line for line in found), f"a planted fault was not caught: {found}"


def main():
    program, clang, build, cache = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    cache.mkdir(parents=True, exist_ok=True)
    self_test(program)
    rules = (tree.ROOT / ".clang-tidy").read_bytes() + subprocess.run([program, "--version"], capture_output=True, check=True).stdout

    def look(unit):
        path, entry = unit
        clean = cache / fingerprint(clang, entry, rules)
        if clean.exists():
            return []
        found = tidy(program, path, "-p", str(build))
        if not found:
            clean.touch()
        return found

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        everything = dict(units(build))
        wrong = {line for found in pool.map(look, everything.items()) for line in found}
    return tree.report(wrong, f"nothing found in {len(everything)} files")


if __name__ == "__main__":
    tree.finish(main())
