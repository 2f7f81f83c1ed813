"""C programs of the build that test against a server which Python starts, and hurts on request."""

import os
import subprocess
import threading

from .daemon import PRESETS
from .servers import build_folder


def program_path(name):
    base = build_folder()
    paths = [folder / "tests" / name for folder in (base, *(base / preset for preset in PRESETS))]
    found = [path for path in paths if path.exists()]
    assert found, f"{name} is not built; looked for {', '.join(map(str, paths))}"
    return found[0]


def run_program(name, verbs, limit_s, **env):
    """Run a cmocka program and fail with its output.

    A line "@<verb>" of the program is done by calling verbs["<verb>"] and answered with "done".
    """
    program = subprocess.Popen([program_path(name)], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **env})
    watchdog = threading.Timer(limit_s, program.kill)
    watchdog.start()
    output = []
    try:
        for line in program.stdout:
            output.append(line)
            if line.startswith("@"):
                verbs[line[1:].strip()]()
                program.stdin.write("done\n")
                program.stdin.flush()
    finally:
        program.stdin.close()
        program.wait()
        watchdog.cancel()
    text = "".join(output)
    assert program.returncode == 0, f"{name} ended with {program.returncode} (limit {limit_s} s):\n{text}"
    assert "[  SKIPPED ]" not in text, f"{name} skipped what it could have tested:\n{text}"
    assert "[       OK ]" in text, f"{name} tested nothing:\n{text}"
