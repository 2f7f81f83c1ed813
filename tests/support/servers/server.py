"""What all private servers have in common: a folder, a life, a record on disk.

A server lives in one folder (configuration, log, and its data in `data/`) and
listens on reserved ports of 127.0.0.1 only.  start() returns when the server
answers; when it does not, the error says what was waited for and shows the end
of the log.  A server started here is stopped at the latest when Python exits.

`background=True` is for `scripts/servers`: such a server outlives Python and is
found again by attach() through `server.json` in its folder.

A kind of server overrides _prepare, _launch, _answers and env.
"""

import atexit
import itertools
import json
import os
import re
import shutil
from pathlib import Path

from ..wait import wait_until
from .ports import claim, free_port
from .process import Process

REPOSITORY = Path(__file__).resolve().parents[3]

_count = itertools.count(1)
_running = []       # foreground servers, in the order of their start


class ServerError(RuntimeError):
    """A server did not do what it was asked to; the text shows its log."""


def build_folder():
    return Path(os.environ.get("DUEBOX_BUILD_DIR") or REPOSITORY / "build").resolve()


def run_folder():
    """The folder of all servers that this Python process starts."""
    return build_folder() / "servers" / f"run-{os.getpid()}"


class Server:
    name = "server"             # folder and record name of the kind
    start_limit_s = 180
    stop_limit_s = 20
    port_names = ("port",)      # each becomes an attribute, kept over restarts

    def __init__(self, folder=None, *, background=False):
        self.folder = Path(folder or run_folder() / f"{self.name}-{next(_count)}").resolve()
        self.background = background
        self.process = None
        self._record = self.folder / "server.json"

    @property
    def data(self):
        return self.folder / "data"

    @property
    def log(self):
        return self.folder / "log"

    # -- life -----------------------------------------------------------------

    def start(self):
        """Start and wait until the server answers; returns self."""
        if self.alive():
            return self
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self.port_names:
            if not hasattr(self, name):
                setattr(self, name, free_port())
        self._prepare()
        self.process = self._launch()
        if not self.background:
            if self in _running:
                _running.remove(self)
            _running.append(self)
        self._write_record()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """SIGTERM, then SIGKILL after stop_limit_s; data and log stay."""
        if self.process:
            self.process.stop(self.stop_limit_s)
        if self in _running:
            _running.remove(self)

    def restart(self):
        """An orderly stop and a start, on the same ports and data."""
        self.stop()
        return self.start()

    def kill9(self):
        """SIGKILL: the crash.  start() recovers on the same ports and data."""
        if self.process:
            self.process.kill9()

    def pause(self):
        """SIGSTOP: connections stay open, nothing answers."""
        self.process.pause()

    def resume(self):
        self.process.resume()

    def alive(self):
        return self.process is not None and self.process.alive()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # -- seen from outside ------------------------------------------------------

    def wait_ready(self, limit_s=None):
        """Wait until the server answers its clients."""
        wait_until(self._answers_or_died, limit_s or self.start_limit_s,
                   f"{self.name} in {self.folder} to answer", detail=self.log_tail)

    def env(self):
        """What a client needs, as environment variables: {name: text}."""
        raise NotImplementedError

    def log_tail(self, lines=30):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)      # colours
        return f"--- end of {self.log}\n" + "\n".join(text.splitlines()[-lines:])

    def drop_data(self):
        """Remove the data of a stopped server; configuration and log stay."""
        shutil.rmtree(self.data, ignore_errors=True)

    def attach(self):
        """Take over the background server that the record in the folder describes,
        if any.  When it does not run any more, start() keeps the ports that are free."""
        self.background = True
        if self._record.exists():
            record = json.loads(self._record.read_text())
            for name, process in record["processes"].items():
                setattr(self, name, Process.attach(process))
            for name, port in record["ports"].items():
                if self.alive() or claim(port):
                    setattr(self, name, port)
        return self

    # -- for the kinds ------------------------------------------------------------

    process_names = ("process",)

    def _prepare(self):
        """Write the configuration; on the first start, create the data."""

    def _launch(self):
        """Spawn the server and return its Process."""
        raise NotImplementedError

    def _answers(self):
        """True when a client gets an answer; must not wait itself for long."""
        raise NotImplementedError

    def _spawn(self, argv, **how):
        return Process.spawn(argv, log=self.log, background=self.background, **how)

    def _answers_or_died(self):
        if not self.alive():
            raise ServerError(f"{self.name} ended by itself, status "
                              f"{self.process.exit_status}\n{self.log_tail()}")
        return self._answers()

    def _write_record(self):
        self._record.write_text(json.dumps({
            "ports": {name: getattr(self, name) for name in self.port_names},
            "processes": {name: getattr(self, name).record() for name in self.process_names},
        }, indent=2) + "\n")


class Cluster:
    """Servers that are used as one. Whoever inherits from it has them in `nodes` and starts them."""

    def stop(self):
        for node in reversed(self.nodes):
            node.stop()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()


@atexit.register
def _stop_all():
    for server in reversed(_running[:]):
        server.stop()
