#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A plugin exports its descriptor and nothing else, as constant data: check_exports.py <plugin.so>.."""
import sys

import symbols
import tree

WANTED = {("duebox_plugin_v1", "D"), ("duebox_plugin_v1", "R")}  # D: constant after relocation (.data.rel.ro)


def judge(path, found):
    wrong = [f"{path}: exports {symbol} (type {kind})" for symbol, kind in found if (symbol, kind) not in WANTED]
    if not any(pair in WANTED for pair in found):
        wrong.append(f"{path}: does not export duebox_plugin_v1")
    return wrong


def main():
    assert judge("x", []) and judge("x", [("duebox_plugin_v1", "D"), ("helper", "T")])
    assert judge("x", [("duebox_plugin_v1", "B")]) and not judge("x", [("duebox_plugin_v1", "D")])
    wrong = [line for path in sys.argv[1:] for line in judge(path, list(symbols.exported(path)))]
    return tree.report(wrong, f"{len(sys.argv) - 1} plugins export duebox_plugin_v1 only")


if __name__ == "__main__":
    tree.finish(main())
