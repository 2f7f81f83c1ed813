#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions of at most 60 lines, files of at most 600. sizes.allow lists the exceptions, with the size they may have.

The list may only shrink: an entry that is no longer needed, or larger than it must be, is a violation too.
"""
import re
from statistics import median

import tree

FUNCTION_MAX, FILE_MAX = 60, 600
ALLOW = tree.ROOT / "tests" / "lint" / "sizes.allow"
# clang-format puts a definition's first line at column 0 and its brace at the end of a line that closes the parameters.
NAME = re.compile(r"([A-Za-z_]\w*)\(")


def functions(text):
    """(name, number of lines) of every function, found by the layout that clang-format guarantees."""
    name, start = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if name is None or start == 0:
            if re.match(r"[A-Za-z_]", line) and "(" in line and "=" not in line.split("(")[0] and not line.endswith(";"):
                name = (NAME.search(line) or [None, "?"])[1]
            if name and line.endswith("{"):
                start = number
            elif line.endswith((";", "}")) or not line:
                name = None
        elif line == "}":
            yield name, number - start + 1
            name, start = None, 0


def allowed():
    lines = [line.split() for line in ALLOW.read_text(encoding="ascii").splitlines() if line and not line.startswith("#")]
    return {(path, what): int(size) for path, what, size in lines}


def judge(sizes, allow):
    """sizes: (path, function or "-") -> lines."""
    wrong = []
    for key, size in sizes.items():
        limit = FILE_MAX if key[1] == "-" else FUNCTION_MAX
        what = key[0] if key[1] == "-" else f"{key[0]}: {key[1]}()"
        if size > max(limit, allow.get(key, 0)):
            wrong.append(f"{what} has {size} lines; {max(limit, allow.get(key, 0))} are allowed")
        elif key in allow and (size < allow[key] or size <= limit):
            wrong.append(f"{what} has {size} lines, sizes.allow says {allow[key]}; correct it there or take it off")
    return wrong + [f"{key[0]} {key[1]} is gone; take it off sizes.allow" for key in allow if key not in sizes]


def self_test():
    long = "static int f(int a,\n             int b) {\n" + "  x();\n" * 59 + "}\n"
    assert list(functions(long)) == [("f", 61)], list(functions(long))
    assert list(functions("static const int x[] = {\n" + "  1,\n" * 99 + "};\nint g(void) {\n}\n")) == [("g", 2)]
    assert judge({("a.c", "f"): 61}, {}) and judge({("a.c", "-"): 601}, {}) and not judge({("a.c", "f"): 60}, {})
    assert not judge({("a.c", "f"): 70}, {("a.c", "f"): 70}) and judge({("a.c", "f"): 71}, {("a.c", "f"): 70})
    assert judge({("a.c", "f"): 69}, {("a.c", "f"): 70}) and judge({("a.c", "f"): 9}, {("a.c", "f"): 70})
    assert judge({}, {("a.c", "f"): 70})


def main():
    self_test()
    sizes = {}
    for name in tree.files():
        text = tree.text(name)
        sizes[(str(name), "-")] = text.count("\n")
        for function, size in functions(text):
            key = (str(name), function)
            sizes[key] = max(size, sizes.get(key, 0))
    lengths = [size for key, size in sizes.items() if key[1] != "-"]
    return tree.report(judge(sizes, allowed()), f"{len(lengths)} functions, median {median(lengths):.0f} lines, longest {max(lengths)}")


if __name__ == "__main__":
    tree.finish(main())
