# SPDX-License-Identifier: MIT
"""The source tree, for the checks beside this file: which files there are, and how a check reports."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["include", "core", "outbox", "plugins", "admin", "cli", "tests", "sql", "docs", "examples", "packaging", "scripts",
         "cmake"]
PRODUCT = ["include", "core", "outbox", "plugins", "admin", "cli"]  # what is shipped
SKIPPED = {"__pycache__", "node_modules", "target", "build", ".pytest_cache"}


def files(parts=None, suffixes=(".c", ".h")):
    """Paths relative to ROOT, sorted; suffixes None = all files."""
    found = []
    for part in parts or PARTS:
        for path in (ROOT / part).rglob("*"):
            name = path.relative_to(ROOT)
            if path.is_file() and not SKIPPED & set(name.parts) and (suffixes is None or path.suffix in suffixes):
                found.append(name)
    return sorted(found)


def text(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def report(wrong, fine):
    """Prints what is wrong, or one line that says what was looked at. Returns the exit status."""
    for line in sorted(wrong):
        print(line)
    print(f"{len(wrong)} violations" if wrong else fine)
    return 1 if wrong else 0


def finish(status):
    sys.exit(status)
