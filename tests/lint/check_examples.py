#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Configurations that people copy load: examples/duebox.yaml, which shows every key that there is, and those in pages.

Usage: check_examples.py <duebox> <folder of the modules>
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tree

EXAMPLE = "examples/duebox.yaml"
KEY = re.compile(r"^\| `([a-z0-9_]+)`", re.M)           # a row of the option tables in docs/CONFIGURATION.md
PAGES = ["README.md", "docs/CONFIGURATION.md"]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.M | re.S)
SECRET = re.compile(r"_file: ([a-z][a-z.-]*)")
SECRET_TEXT = {"whsec": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"}


def load(program, modules, text):
    """Ends the test when `duebox check` refuses the text, with secrets beside it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in set(SECRET.findall(text)):
            path = Path(folder, name)
            path.write_text(SECRET_TEXT.get(path.suffix[1:], "0123456789abcdef0123456789abcdef\n"))
            path.chmod(0o600)
        path = Path(folder, "duebox.yaml")
        path.write_text(text)
        return subprocess.run([program, "check", "-c", path], capture_output=True, text=True,
                              env={**os.environ, "DUEBOX_PLUGIN_PATH": modules})


def main():
    program, modules = sys.argv[1:]
    text = tree.text(EXAMPLE)
    shown = set(re.findall(r"\b([a-z0-9_]+):", text))
    keys = set(KEY.findall(tree.text("docs/CONFIGURATION.md")))
    assert len(keys) > 80, "the option tables of docs/CONFIGURATION.md were not found"
    wrong = [f"{EXAMPLE}: {key} is not shown" for key in keys if not {key, key + "_file"} & shown]
    done = load(program, modules, text)
    if done.returncode:
        wrong.append(f"{EXAMPLE} is refused: {done.stdout}{done.stderr}")
    if load(program, modules, text + "surprise: 1\n").returncode == 0:
        wrong.append(f"{EXAMPLE} with an unknown section is taken: this test sees nothing")
    blocks = [(page, block) for page in PAGES for block in BLOCK.findall(tree.text(page)) if "\ndatabase: " in "\n" + block]
    assert {page for page, _ in blocks} == set(PAGES), "a page has no configuration any more"
    for page, block in blocks:
        done = load(program, modules, block)
        if done.returncode:
            wrong.append(f"a configuration in {page} is refused: {done.stdout}{done.stderr}")
    return tree.report(wrong, f"{EXAMPLE} loads and shows {len(keys)} keys; {len(blocks)} configurations in pages load")


if __name__ == "__main__":
    tree.finish(main())
