#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages name only commands and tables that exist: check_named.py <duebox>.

Every `duebox noun verb` in code in a page, an example, the operator's page or a message is a command of the program, and
every outbox_... table there is one that `duebox migrate --show-sql` creates.
"""
import re
import subprocess
import sys

import tree

PAGES = [*tree.files(["docs", "sql/examples", "plugins", "packaging", "examples"], (".md", ".sql", ".yaml", ".service")),
         *(tree.ROOT / name for name in ("README.md", "sql/README.md", "admin/web/page.html", "admin/web/script.js"))]
GENERATED = {"BENCHMARKS.md"}
COMMAND = re.compile(r"(?:`|<code>|^ {4}|^\s*\$ )duebox ([a-z]+)(?: ([a-z]+))?((?:\|[a-z]+)*)", re.M)
TABLE = re.compile(r"\boutbox_[a-z]+\b")
NO_TABLES = {"outbox_create"}       # functions of the store


def commands():
    """{noun: set of its verbs} from the manual, which lint_manual holds to the table of commands."""
    found = {}
    for noun, verb in re.findall(r"^\.SS duebox ([a-z]+)(?: ([a-z]+))?", tree.text("docs/man/duebox.1"), re.M):
        found.setdefault(noun, set()).update([verb] if verb else [])
    return found


def tables(program):
    text = subprocess.run([program, "migrate", "--show-sql"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?`(\w+)`", text))


def judge(name, text, known, made):
    wrong = []
    for hit in COMMAND.finditer(text):
        line = text.count("\n", 0, hit.start()) + 1
        noun, verbs = hit[1], [hit[2], *hit[3].split("|")[1:]] if hit[2] else []
        if noun not in known:
            wrong.append(f"{name}:{line}: there is no command `duebox {noun}`")
        elif known[noun]:
            wrong += [f"{name}:{line}: there is no command `duebox {noun} {verb}`" for verb in verbs if verb not in known[noun]]
    for hit in TABLE.finditer(text):
        if hit[0] not in made | NO_TABLES:
            wrong.append(f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: there is no table {hit[0]}")
    return wrong


def main():
    known, made = commands(), tables(sys.argv[1])
    assert len(known) > 10 and {"list", "cancel"} <= known["task"], known
    assert {"outbox", "outbox_history"} <= made, made
    assert len(judge("planted", "`duebox stats` and `duebox task fly` of outbox_moons", known, made)) == 3
    wrong = [line for page in PAGES if page.name not in GENERATED for line in judge(page, tree.text(page), known, made)]
    return tree.report(wrong, f"{len(PAGES)} pages name commands and tables that exist")


if __name__ == "__main__":
    tree.finish(main())
