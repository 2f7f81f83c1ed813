#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The option tables in docs/CONFIGURATION.md are those that the program prints from its option rows.

Usage: check_config_docs.py [--update] <docs/CONFIGURATION.md> <program> [argument ..]
"""
import difflib
import subprocess
import sys
from pathlib import Path

BEGIN = "<!-- option tables: begin, printed by the program; update with tests/lint/check_config_docs.py --update -->\n"
END = "<!-- option tables: end -->\n"


def main():
    args = sys.argv[1:]
    update = args[0] == "--update"
    page, command = Path(args[update]), args[update + 1:]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = page.read_text()
    head, begin, rest = text.partition(BEGIN)
    old, end, tail = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{page}: the lines that enclose the option tables are missing")
    if not printed.strip():
        sys.exit("the program printed nothing")
    if update:
        page.write_text(head + begin + printed + "\n" + end + tail)
    elif old.strip() != printed.strip():
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), printed.splitlines(True), str(page), "printed"))
        sys.exit(f"{page}: the option tables are out of date; run this with --update")


main()
