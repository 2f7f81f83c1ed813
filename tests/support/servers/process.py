"""One operating system process that the harness owns.

A process is known by its pid and its start time, so that a signal never reaches
a stranger that got the pid later.  A foreground process dies with the Python
that started it, whatever ends that Python: it asks the kernel to be killed then
(PR_SET_PDEATHSIG).  A background process outlives its parent and is found again
through its record (pid and start time), which `scripts/servers` keeps in a file.

The kernel's promise is made to the *thread* that forks, hence the one spawner
thread, which lives as long as Python does: a test may start a server from a
thread of its own.
"""

import ctypes
import functools
import os
import queue
import signal
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path

from ..wait import WaitTimeout, wait_until


class Process:
    """A running process: `pid`, `started` (clock ticks since boot), signals."""

    def __init__(self, pid, started, popen=None):
        self.pid = pid
        self.started = started
        self._popen = popen

    @classmethod
    def spawn(cls, argv, *, log, env=None, cwd=None, stdin=subprocess.DEVNULL, background=False):
        """Start `argv`; its output is appended to the file `log`."""
        parent = os.getpid()
        with open(log, "ab") as output:
            popen = _in_spawner_thread(lambda: subprocess.Popen(
                [str(word) for word in argv], stdin=stdin, stdout=output, stderr=output,
                env=env, cwd=cwd,
                preexec_fn=None if background else lambda: _die_with(parent),
                start_new_session=True))    # Ctrl-C is for us: we stop servers in order
        return cls(popen.pid, _start_time(popen.pid), popen)

    @classmethod
    def attach(cls, record):
        """The process that record() described, in this or another Python."""
        return cls(record["pid"], record["started"])

    def record(self):
        return {"pid": self.pid, "started": self.started}

    def alive(self):
        if self._popen is not None:
            return self._popen.poll() is None
        return self.started is not None and _start_time(self.pid) == self.started

    @property
    def exit_status(self):
        """Exit status, negative for a signal; None while alive or not our child."""
        return self._popen.poll() if self._popen else None

    def signal(self, number):
        if self.alive():
            os.kill(self.pid, number)

    def stop(self, limit_s):
        """SIGTERM, and SIGKILL where that takes longer than `limit_s`."""
        self.signal(signal.SIGCONT)     # a paused process would not hear SIGTERM
        self.signal(signal.SIGTERM)
        try:
            self.wait(limit_s)
        except WaitTimeout:
            self.kill9()

    def kill9(self):
        self.signal(signal.SIGKILL)
        self.wait(30)

    def pause(self, limit_s=30):
        """Returns when every thread has stopped: kill() only tells one of them to stop the others,
        and until that one gets a processor they go on answering."""
        self.signal(signal.SIGSTOP)
        wait_until(self._stopped, limit_s, f"every thread of process {self.pid} to stop")

    def _stopped(self):
        return all(_state(stat) in ("T", "Z", "X", None)
                   for stat in Path(f"/proc/{self.pid}/task").glob("*/stat"))

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait(self, limit_s):
        wait_until(lambda: not self.alive(), limit_s, f"the end of process {self.pid}")


_libc = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def _die_with(parent):
    """Runs in the child before it becomes the server."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:          # it died before we asked
        os._exit(1)


def _stat_fields(path):
    """The fields of a /proc/.../stat from the third on, the state; None where it is gone."""
    try:
        return path.read_text().rpartition(")")[2].split()      # the name before it may hold anything
    except (FileNotFoundError, ProcessLookupError):
        return None


def _state(path):
    fields = _stat_fields(path)
    return fields[0] if fields else None


def _start_time(pid):
    """Field 22 of /proc/<pid>/stat; None where there is no such live process."""
    fields = _stat_fields(Path(f"/proc/{pid}/stat"))
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


@functools.cache
def _spawner_calls():
    calls = queue.SimpleQueue()

    def serve():
        while True:
            call, future = calls.get()
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

    threading.Thread(target=serve, name="spawner", daemon=True).start()
    return calls


def _in_spawner_thread(call):
    future = Future()
    _spawner_calls().put((call, future))
    return future.result()
