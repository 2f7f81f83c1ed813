#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every header compiles alone, and the public ones and their macros as plain C11 too: check_headers.py <compiler> <include folder>..

The folders are for libraries and generated headers.
"""
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree

STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c"]
PLAIN = ["-std=c11", "-pedantic", "-I", str(tree.ROOT / "include")]


def compile_text(compiler, flags, source):
    done = subprocess.run([compiler, *flags, *STRICT, "-"], input=source, capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else done.stderr


def jobs(folders):
    for name in tree.files(tree.PRODUCT, (".h",)):
        own = ["-I", str(tree.ROOT / name.parent)] if name.parts[0] == "plugins" else ["-I", str(tree.ROOT)]
        flags = ["-std=gnu17", "-D_GNU_SOURCE", *own, "-I", str(tree.ROOT / "include")]
        for folder in folders:
            flags += ["-isystem", folder]
        path = name.relative_to("include") if name.parts[0] == "include" else name
        include = f"<{path}>" if name.parts[0] == "include" else f'"{tree.ROOT / name}"'
        yield name, flags, f"#include {include}\n#include {include}\n"  # twice: the guard works
        if name.parts[0] == "include":
            yield name, PLAIN, f"#include {include}\n"
    for outcome in ("DUEBOX_OUTCOME(.cls = DUEBOX_RETRY)", "DUEBOX_OUTCOME_AFTER(700, .cls = DUEBOX_RETRY)"):
        yield outcome, PLAIN, f"#include <duebox/outcome.h>\nstruct duebox_outcome o(void) {{ return {outcome}; }}\n"


def main():
    compiler, folders = sys.argv[1], sys.argv[2:]
    assert compile_text(compiler, ["-std=gnu17"], "uint32_t forgotten;\n"), "a header that needs another was not caught"
    with ThreadPoolExecutor(2) as pool:
        wrong = [f"{name}: does not compile alone\n{errors}" for name, errors in
                 pool.map(lambda job: (job[0], compile_text(compiler, job[1], job[2])), jobs(folders)) if errors]
    return tree.report(wrong, "every header compiles alone")


if __name__ == "__main__":
    tree.finish(main())
