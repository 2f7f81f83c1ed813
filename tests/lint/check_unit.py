#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""packaging/duebox.service leaves the daemon hardly anything to do harm with, by systemd's own judgement."""
import re
import shutil
import subprocess
import sys

import tree

UNIT = "packaging/duebox.service"
MOST = 1.5
SKIPPED = 77


def main():
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not here")
        sys.exit(SKIPPED)
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", tree.ROOT / UNIT], capture_output=True, text=True)
    level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    if not level:
        return tree.report([f"{UNIT}: not understood: {done.stdout}{done.stderr}"], "")
    wrong = [f"{UNIT}: exposure {level[1]}, at most {MOST} is wanted"] if float(level[1]) > MOST else []
    return tree.report(wrong, f"{UNIT}: exposure {level[1]}")


if __name__ == "__main__":
    tree.finish(main())
