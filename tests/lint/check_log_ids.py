#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every id that the daemon logs has its row in docs/OPERATIONS.md, and every row there is of an id that is logged."""
import re

import tree

PAGE = "docs/OPERATIONS.md"
LOGGED = re.compile(r'"((?:DUEBOX|KAFKA|AMQP|HTTP)-[A-Z]+(?:-[A-Z]+)*)"')
ROW = re.compile(r"^\| `([A-Z]+-[A-Z-]+)` \|", re.M)


def judge(sources, page):
    """sources: {name: text}"""
    logged = {}
    for name, text in sources.items():
        for log_id in LOGGED.findall(text):
            logged.setdefault(log_id, name)
    listed = ROW.findall(page)
    wrong = [f"{logged[log_id]}: {log_id} is logged and has no row in {PAGE}" for log_id in set(logged) - set(listed)]
    wrong += [f"{PAGE}: {log_id} is logged by nobody" for log_id in set(listed) - set(logged)]
    return wrong + [f"{PAGE}: {log_id} has two rows" for log_id in set(listed) if listed.count(log_id) > 1]


def main():
    planted = {"a.c": 'log_warn("DUEBOX-NEWS", "x");'}
    assert judge(planted, "| `DUEBOX-OLD` | warn |\n") and not judge(planted, "| `DUEBOX-NEWS` | warn |\n")
    sources = {name: tree.text(name) for name in tree.files(tree.PRODUCT, (".c",))}
    page = tree.text(PAGE)
    return tree.report(judge(sources, page), f"{len(ROW.findall(page))} log ids are documented")


if __name__ == "__main__":
    tree.finish(main())
