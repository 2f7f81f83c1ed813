#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual page is what the table of commands gives: check_manual.py <page> <program that prints it> [--write]."""
import pathlib
import subprocess
import sys


def main():
    page, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    made = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    if "--write" in sys.argv:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(made, encoding="utf-8")
    if not page.exists() or page.read_text(encoding="utf-8") != made:
        sys.exit(f"{page} is not what the commands give; write it with: {sys.argv[0]} {page} {program} --write")


main()
