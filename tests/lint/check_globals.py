#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No variable with static storage can be written, but for those listed here: check_globals.py <archive>..

A plugin may never have one: two instances run at once. The list gives each exception its reason and may only shrink.
"""
import sys

import symbols
import tree

ALLOWED = {
    ("hash", "secret"): "a table's hash function gets no context; written once, before main()",
    ("log", "out"): "where log lines go; written once before threads start",
    ("db_api", "registered"): "the client library would count reads as often as it was asked to, in the whole process",
    ("db_watch", "logging_in"): "each thread's own: the client library passes nothing else to the callback that needs it",
}


def judge(found):
    found = set(found)
    wrong = [f"{module}.c: {symbol} can be written; pass it, or make it const" for module, symbol in found - ALLOWED.keys()]
    return wrong + [f"{module}.c: {symbol} is gone; take it off the list in check_globals.py"
                    for module, symbol in ALLOWED.keys() - found]


def main():
    assert judge({("kafka_sink", "counter"), *ALLOWED}) and judge(set()) and not judge(set(ALLOWED))
    found = [pair for archive in sys.argv[1:] for pair in symbols.writable(archive)]
    return tree.report(judge(found), f"{len(ALLOWED)} variables can be written, as listed")


if __name__ == "__main__":
    tree.finish(main())
