#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-format has nothing to change: check_format.py <clang-format>. To repair: clang-format -i <file>."""
import subprocess
import sys
import tempfile
from pathlib import Path

import tree


def complaints(program, paths):
    done = subprocess.run([program, "--dry-run", "-Werror", "--ferror-limit=1", "--style=file:" + str(tree.ROOT / ".clang-format"),
                           *map(str, paths)], capture_output=True, text=True, timeout=300)
    return [line for line in done.stderr.splitlines() if "error:" in line], done.returncode


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        planted = Path(folder) / "planted.c"
        planted.write_text("int  main( void )\n{ return 0 ; }\n", encoding="ascii")
        assert complaints(program, [planted])[1] != 0, "a badly formatted file was not caught"
    names = tree.files()
    wrong, status = complaints(program, [tree.ROOT / name for name in names])
    if status and not wrong:
        wrong = [f"{program} ended with {status}"]
    return tree.report(wrong, f"{len(names)} files are formatted")


if __name__ == "__main__":
    tree.finish(main())
