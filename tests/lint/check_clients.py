#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The code in docs/CLIENTS.md is what tests/clients runs: check_clients.py [--write].

Above each block stands the file below tests/clients and the name of the piece that is shown: the lines from a comment
with that name in brackets to the next such comment. --write puts the pieces into the page.
"""
import re
import sys
import textwrap

import tree

PAGE = "docs/CLIENTS.md"
BLOCK = re.compile(r"<!-- (\S+) \[([\w ]+)\] -->\n```(\w+)\n(.*?)```", re.S)
MARK = re.compile(r"^\s*(?:#|//) \[([\w ]+)\]$")


def piece(file, name):
    lines, taking = [], False
    for line in tree.text(f"tests/clients/{file}").splitlines():
        mark = MARK.match(line)
        if mark:
            taking = mark[1] == name
        elif taking:
            lines.append(line)
    return textwrap.dedent("\n".join(lines)).strip().expandtabs(4) + "\n"


def main():
    page = tree.text(PAGE)
    full = BLOCK.sub(lambda m: f"<!-- {m[1]} [{m[2]}] -->\n```{m[3]}\n{piece(m[1], m[2])}```", page)
    if "--write" in sys.argv:
        (tree.ROOT / PAGE).write_text(full)
        page = full
    shown = BLOCK.findall(page)
    wrong = [f"{PAGE}: tests/clients/{file} has no piece [{name}]" for file, name, _, _ in shown if not piece(file, name).strip()]
    wrong += [f"{PAGE}: the code of {file} [{name}] is another than the one that is tested; run "
              "tests/lint/check_clients.py --write" for file, name, _, code in shown if code != piece(file, name)]
    if len(shown) < 20:
        wrong.append(f"{PAGE}: only {len(shown)} pieces of code were found")
    return tree.report(wrong, f"{PAGE} shows {len(shown)} pieces of the code that is tested")


if __name__ == "__main__":
    tree.finish(main())
