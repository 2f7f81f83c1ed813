"""The real duebox binary as a process of a test.

    with Daemon(folder, configuration) as daemon:
        daemon.migrate()
        daemon.start()
        daemon.wait_log("DUEBOX-STARTED")
        daemon.metric("duebox_rows_read")
        daemon.api("POST", "/api/v1/tasks/17/cancel")
        daemon.run("task", "list", "-o", "json")

The binary is $DUEBOX_BUILD_DIR/bin/duebox, or that of a preset below build/; its
plugins lie beside it unless $DUEBOX_PLUGIN_PATH names others.  Several daemons may
share a database: each takes its own folder and listens on a port of its own.

Leaving the with statement stops the daemon and fails the test when it ended in a
way that nobody asked for: a crash, a status other than the one expected, a report
of AddressSanitizer, UBSan or ThreadSanitizer.
"""

import http.client
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import time
from pathlib import Path

import yaml

from .servers import ServerError, build_folder
from .servers.ports import free_port
from .servers.process import Process
from .wait import wait_until

START_LIMIT_S = 60
STOP_LIMIT_S = 60
PRESETS = ("dev", "asan", "tsan", "release")
TOKEN = "a-token-that-only-tests-have-0123456789"
CALLBACK_SECRET = "a-secret-that-only-tests-have-0123456789"
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
              "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
              "TSAN_OPTIONS": "second_deadlock_stack=1:exitcode=99"}

# One line of logfmt, as core/base/log.c writes it.
LINE = re.compile(r'time=(?P<time>\S+) level=(?P<level>\w+) id=(?P<id>\S+) msg="(?P<msg>.*)"$')
# One sample of the Prometheus text format.
SAMPLE = re.compile(r'(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class DaemonError(AssertionError):
    """The daemon did something that nobody asked for; the text shows its log."""


def preset_folder():
    """The build folder that holds bin/duebox."""
    base = build_folder()
    for folder in (base, *(base / preset for preset in PRESETS)):
        if (folder / "bin" / "duebox").exists():
            return folder
    raise DaemonError(f"there is no bin/duebox in {base} nor in its presets {', '.join(PRESETS)}; "
                      "run: cmake --preset dev && cmake --build --preset dev")


class Daemon:
    def __init__(self, folder, configuration, *, name="duebox", environment=None, program=None):
        """configuration: a dict, or YAML text that is used as it is.  program: the words that start
        another duebox than that of the build, perhaps under a tool; the last is its path."""
        self.folder = Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.path = self.folder / "duebox.yaml"
        self.log = self.folder / "log"
        self.log.touch()
        self.process = None
        self.port = free_port()
        self.callbacks_port = free_port()
        self._environment = environment or {}
        self._program = program
        self._expected_end = False      # a signal of ours is on its way
        self.configure(configuration)

    # -- configuration ------------------------------------------------------------

    def configure(self, configuration):
        """Write the file; a running daemon sees it at reload()."""
        if isinstance(configuration, dict):
            self.configuration = {**configuration, "admin": {
                "listen": f"127.0.0.1:{self.port}", "token": TOKEN, **configuration.get("admin", {})},
                "callbacks": {"listen": f"127.0.0.1:{self.callbacks_port}", "secret": CALLBACK_SECRET,
                              **configuration.get("callbacks", {})}}
            configuration = yaml.safe_dump(self.configuration, sort_keys=False)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(configuration)
        fresh.chmod(0o600)              # it holds secrets
        fresh.rename(self.path)

    # -- life -----------------------------------------------------------------------

    def migrate(self):
        self.run("migrate")
        return self

    def start(self, *options, wait_ready=True):
        """Start; with wait_ready, return when /readyz says so.  options: further words behind `run`."""
        self._expected_end = False
        self.process = Process.spawn([*self._words(), "run", "-c", self.path, *options],
                                     log=self.log, env=self._env(), cwd=self.folder)
        if wait_ready:
            self.wait_ready()
        return self

    def wait_ready(self, limit_s=START_LIMIT_S):
        wait_until(self._ready_or_died, limit_s, f"{self.name} to be ready", detail=self.log_tail)
        return self

    def stop(self, limit_s=STOP_LIMIT_S):
        """SIGTERM; the end must be orderly.  Returns the seconds it took."""
        if not self.alive():
            self.check()
            return 0.0
        started = time.monotonic()
        self.signal(signal.SIGTERM)
        self.wait_end(limit_s)
        self.check()
        return time.monotonic() - started

    def wait_end(self, limit_s=STOP_LIMIT_S):
        """Wait until the process has ended by itself or by a signal sent before; returns
        its exit status, negative for a signal."""
        wait_until(lambda: not self.alive(), limit_s, f"{self.name} to end", detail=self.log_tail)
        return self.exit_status

    def kill9(self):
        """SIGKILL: the crash."""
        self._expected_end = True
        self.process.kill9()

    def pause(self):
        """SIGSTOP: it holds its connections and does nothing."""
        self.process.pause()

    def resume(self):
        self.process.resume()

    def signal(self, number):
        self._expected_end = self._expected_end or number == signal.SIGKILL
        self.process.signal(number)

    def reload(self, configuration=None, limit_s=30):
        """SIGHUP, after writing the configuration where one is given.  True: it was taken,
        false: refused; returns when the log says which."""
        if configuration is not None:
            self.configure(configuration)
        mark = self.mark()
        self.signal(signal.SIGHUP)
        line = self.wait_log("DUEBOX-RELOADED", "DUEBOX-RELOAD-REFUSED", limit_s=limit_s, after=mark)
        return line["id"] == "DUEBOX-RELOADED"

    def alive(self):
        return self.process is not None and self.process.alive()

    @property
    def exit_status(self):
        return self.process.exit_status if self.process else None

    def check(self, status=0):
        """Fail on an end other than `status` (or our SIGKILL) and on sanitizer reports."""
        reports = sorted(self.folder.glob("sanitizer.*"))
        if reports:
            text = "\n".join(report.read_text(errors="replace")[:8000] for report in reports)
            raise DaemonError(f"{self.name}: a sanitizer reported:\n{text}\n{self.log_tail()}")
        ended = self.exit_status
        if ended is None or ended == status or (ended == -signal.SIGKILL and self._expected_end):
            return
        cores = ", ".join(str(core) for core in self.folder.glob("core*")) or "none"
        raise DaemonError(f"{self.name} ended with status {ended} instead of {status} "
                          f"(cores: {cores})\n{self.log_tail()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        elif self.alive():              # the test has failed already: its error is the one to show
            self.resume()
            self.kill9()

    # -- seen from outside ------------------------------------------------------------

    def lines(self, after=0):
        """The log as dicts with time, level, id and msg; `after`: a mark() taken before."""
        with open(self.log, errors="replace") as log:
            log.seek(after)
            return [match.groupdict() for match in map(LINE.match, log) if match]

    def mark(self):
        """The present end of the log."""
        return self.log.stat().st_size

    def wait_log(self, *ids, limit_s=30, after=0, text=""):
        """Wait for a line with one of these ids whose message contains `text`."""
        def found():
            return next((line for line in self.lines(after)
                         if line["id"] in ids and text in line["msg"]), None)
        return wait_until(found, limit_s, f"{self.name} to log {' or '.join(ids)} {text}".rstrip(),
                          detail=self.log_tail)

    def log_tail(self, count=40):
        lines = self.log.read_text(errors="replace").splitlines()
        return f"--- end of {self.log}\n" + "\n".join(lines[-count:])

    def metrics(self):
        """{(name, frozenset of (label, value))): number}"""
        status, text = self.api("GET", "/metrics")
        if status != 200:
            raise DaemonError(f"{self.name}: /metrics answered {status}: {text}")
        return parse_metrics(text)

    def metric(self, name, **labels):
        """Sum over the samples of `name` that have these labels; 0 where there is none.
        Counters may be named with or without their suffix _total."""
        wanted = set(labels.items())
        return sum(value for (found, has), value in self.metrics().items()
                   if found in (name, f"{name}_total") and wanted <= has)

    def api(self, method, path, body=None, *, token=TOKEN, headers=(), limit_s=120):
        """(status, parsed JSON or text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit_s)
        headers = {**dict(headers), **({"Authorization": f"Bearer {token}"} if token else {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return answer.status, json.loads(text) if is_json else text

    def run(self, *words, check=True, limit_s=240, stdout=subprocess.PIPE):
        """`duebox <words>` with this configuration; a CompletedProcess with texts."""
        argv = [str(self._words()[-1]), *map(str, words), "-c", str(self.path)]
        done = subprocess.run(argv, env=self._env(), cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, text=True, errors="replace",
                              timeout=limit_s, check=False)
        if check and done.returncode:
            raise DaemonError(f"{shlex.join(argv)} ended with {done.returncode}:\n"
                              f"{done.stdout}{done.stderr}")
        return done

    # -- inside -------------------------------------------------------------------------

    def _ready_or_died(self):
        if not self.alive():
            raise ServerError(f"{self.name} ended by itself, status {self.exit_status}\n"
                              f"{self.log_tail()}")
        try:
            return self.api("GET", "/readyz", limit_s=20)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def _words(self):
        return self._program or [preset_folder() / "bin" / "duebox"]

    def _env(self):
        _allow_cores()
        reports = f"log_path={self.folder / 'sanitizer'}"
        env = {**os.environ, "NO_COLOR": "1"}
        for name, options in SANITIZERS.items():
            env[name] = ":".join(filter(None, [env.get(name), options, reports]))
        env.pop("DUEBOX_CONFIG", None)
        env.setdefault("DUEBOX_PLUGIN_PATH", str(preset_folder() / "plugins"))
        return {**env, **self._environment}


def parse_metrics(text):
    """{(name, frozenset of (label, value)): number} from the Prometheus text format."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        match = SAMPLE.fullmatch(line.strip())
        if not match:
            raise ValueError(f"no sample of the Prometheus text format: {line!r}")
        labels = frozenset(LABEL.findall(match["labels"] or ""))
        found[match["name"], labels] = float(match["value"])
    return found


def _allow_cores():
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
