"""Find a Java that runs the Kafka broker, whichever one comes first in PATH.

Kafka 3.9 runs on Java 11 to 23: later ones dropped the security manager.
"""

import glob
import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST, NEWEST, BEST = 11, 23, 17


def find_java():
    """Path of a suitable java, nearest to Java 17; None where there is none."""
    found = [os.path.join(os.environ.get("JAVA_HOME", "/nonexistent"), "bin/java"),
             *sorted(glob.glob("/usr/lib/jvm/*/bin/java")), shutil.which("java") or ""]
    versions = {Path(java).resolve(): _version(java) for java in found if os.access(java, os.X_OK)}
    fit = [java for java, version in versions.items() if OLDEST <= version <= NEWEST]
    return min(fit, key=lambda java: abs(versions[java] - BEST), default=None)


def _version(java):
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r' version "(\d+)', said)
    return int(match.group(1)) if match else 0
