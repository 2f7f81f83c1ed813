"""Free loopback ports that stay free.

Two things make a port that was free a moment ago taken: another test run that
picked the same one, and an outgoing connection that the kernel gave it to while
the server was being restarted (a client that keeps reconnecting can even be
connected to itself).  So a port is reserved, for as long as this process lives,
by an abstract Unix socket named after it, which vanishes with the process; and
it is picked below the range that outgoing connections use.
"""

import random
import socket
from pathlib import Path

LOWEST = 15000

_reserved = {}      # port -> the socket that says so


def free_port():
    """Reserve a TCP port of 127.0.0.1 for this process and return it."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(1000):
        # Where the kernel hands out nearly every port, let it choose.
        wanted = random.randrange(LOWEST, low) if low > LOWEST + 1000 else 0
        port = _bindable(wanted)
        if port and _reserve(port):
            return port
    raise RuntimeError("no free TCP port found on 127.0.0.1 in 1000 tries")


def claim(port):
    """Reserve this very port, again where it is ours; False where others use it."""
    return bool(_bindable(port)) and (port in _reserved or _reserve(port))


def _reserve(port):
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0duebox-test-port-{port}")
    except OSError:
        lock.close()
        return False
    _reserved[port] = lock
    return True


def _bindable(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: what is left of old connections does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return None
        return probe.getsockname()[1]
