#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No unfinished business, no machine of ours and no registry in the sources; every C file says licence and purpose."""
import re

import tree

# In pieces, so that this file does not hold what it looks for.
WORDS = [
    (re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b"), "unfinished business"),
    (re.compile(r"(?<![\w.$}{<>-])/(work|home|Users|root)/[A-Za-z]"), "a path of one machine"),
    (re.compile(r"\b(registry\.npmjs|pypi\.org|files\.pythonhosted|repo1?\.maven|index\.docker)\b"), "a registry's host name"),
    (re.compile(r"^(<{7}|>{7}) ", re.M), "a merge conflict"),
]
BINARY = {".png", ".jar", ".gz", ".ico", ".bin"}
HEAD = "/* SPDX-License-Identifier: MIT"


def judge(name, text):
    wrong = [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {why}: {hit.group()}"
             for pattern, why in WORDS for hit in pattern.finditer(text)]
    if name.suffix in (".c", ".h") and not text.startswith(HEAD):
        wrong.append(f"{name}:1: does not begin with {HEAD}")
    if name.suffix in (".c", ".h", ".py", ".md", ".yaml", ".sql", ".cmake") and (not text.endswith("\n") or "\t" in text):
        wrong.append(f"{name}: holds a tab, or does not end with a line feed")
    return wrong


def main():
    name = tree.files(["core"])[0].with_name("planted.c")
    for planted in ("TO" + "DO", "FIX" + "ME: x", "see /" + "home/me/x", '"/' + 'work/y"', "a\tb", "<" * 7 + " HEAD"):
        assert judge(name, f"{HEAD} */\n{planted}\n"), f"planted {planted!r} was not caught"
    assert judge(name, "int x;\n") and not judge(name, f"{HEAD} */\nmkstemp(\"/tmp/XXXXXX\");\n")
    names = [n for n in tree.files(suffixes=None) if n.suffix not in BINARY and "seeds" not in n.parts]
    names += [p.relative_to(tree.ROOT) for p in tree.ROOT.iterdir() if p.is_file() and p.name != ".git"]
    wrong = [line for n in names for line in judge(n, tree.text(n))]
    return tree.report(wrong, f"{len(names)} files are clean")


if __name__ == "__main__":
    tree.finish(main())
