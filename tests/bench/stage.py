"""Servers, databases and daemons of a measurement."""

import functools
import os
import shutil
import time
from pathlib import Path

from .scenario import BenchError, preset_folder
from .templates import Templates, insert

CALM_HISTORY = 1000         # undo logs that may wait for purge when a measurement begins
LIMIT_S = 900
FILL_ROWS = 20_000          # per INSERT


class Bench:
    """The private servers, started when they are first needed, and what every scenario does with them."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.templates = Templates(self, self.folder / "templates")
        self._servers = []
        self._made = 0

    @functools.cached_property
    def mariadb(self):
        from support.servers.mariadb import MariaDB
        return self._start(MariaDB(self.folder / "mariadb"))

    @functools.cached_property
    def kafka(self):
        from support.servers.kafka import Kafka
        return self._start(Kafka(self.folder / "kafka"))

    @functools.cached_property
    def rabbitmq(self):
        from support.servers.rabbitmq import RabbitMQ
        return self._start(RabbitMQ(self.folder / "rabbitmq"))

    def _start(self, server):
        self._servers.append(server.start())
        return server

    def close(self):
        self.templates.drop()
        for server in reversed(self._servers):
            server.stop()
            server.drop_data()

    def name(self):
        self._made += 1
        return f"bench{self._made}"

    def migrate(self, database):
        """An empty outbox in an empty database."""
        from support.daemon import Daemon
        Daemon(self.folder / "daemon" / database, {
            "database": self.database_options(database), "plugins": {"none": {"module": "kafka", "brokers": "127.0.0.1:1"}},
            "routes": {"bench": {"via": "none", "topic": "none"}}}).migrate()

    def database_options(self, database):
        return {"socket": str(self.mariadb.socket), "user": "root", "name": database}

    def calm(self):
        """Wait until InnoDB has purged what was there before."""
        from support.wait import wait_until
        wait_until(lambda: self.status("Innodb_history_list_length") < CALM_HISTORY, LIMIT_S, "InnoDB to purge")

    def status(self, name):
        return int(self.mariadb.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


class Stage:
    """An outbox of its own, a destination of its own, and daemons that are not started; all gone after the with.

    route: more options of the route `bench`; routes, plugins, engine, database: more of the configuration; program:
    another duebox than that of the build."""

    def __init__(self, bench, sink, *, route=None, routes=None, plugins=None, engine=None, database=None, daemons=1, program=None):
        self.bench, self.sink = bench, sink
        self._route, self._routes, self._plugins = route or {}, routes or {}, plugins or {}
        self._engine, self._options = engine or {}, database or {}
        self._count, self._program = daemons, program
        self.daemons = []

    def __enter__(self):
        from support.daemon import Daemon
        self.name = self.bench.name()
        self.database = self.bench.mariadb.create_database(self.name)
        self.sink.open(self.bench, self.name)
        build = preset_folder()
        for number in range(self._count):
            self.daemons.append(Daemon(
                self.bench.folder / "daemon" / f"{self.name}-{number}",
                {"database": {**self.bench.database_options(self.name), **self._options},
                 "plugins": {**self.sink.plugins(), **self._plugins},
                 "routes": {"bench": {**self.sink.route(), **self._route}, **self._routes},
                 "engine": {"instance": f"daemon{number}", **self._engine},
                 **({"results": self.sink.results()} if hasattr(self.sink, "results") else {})},
                environment={"DUEBOX_PLUGIN_PATH": f"{build}/plugins:{build}/tests/plugins"},
                program=self._program and [self._program]))
        self.daemons[0].migrate()
        return self

    def settle_in(self):
        """What a daemon does once in the life of a schema, before anything is measured: partitions of the history."""
        from support.wait import wait_until
        self.daemon.start()
        wait_until(lambda: self._partitions("outbox_history") > 1 and self._partitions("outbox_attempts") > 1, LIMIT_S,
                   "the daemon to make its partitions")
        self.daemon.stop()

    def _partitions(self, table):
        return self.bench.mariadb.execute("SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = %s"
                                          " AND TABLE_NAME = %s", self.database, table)[0][0]

    def __exit__(self, kind, *_):
        for daemon in self.daemons:
            if daemon.alive():
                daemon.kill9()
        if kind is None:
            self.bench.mariadb.execute(f"DROP DATABASE `{self.database}`")
            self.bench.mariadb.execute("RESET MASTER")
            self.sink.close()

    # -- daemons -----------------------------------------------------------------------

    @property
    def daemon(self):
        return self.daemons[0]

    def start(self):
        for daemon in self.daemons:
            daemon.start(wait_ready=False)
        for daemon in self.daemons:
            daemon.wait_ready()

    def stop(self):
        for daemon in self.daemons:
            daemon.stop()

    def stats(self):
        return [daemon.api("GET", "/api/v1/stats")[1] for daemon in self.daemons]

    def settled(self):
        return sum(stats["engine"]["settled_rows"] for stats in self.stats())

    def statements(self):
        return sum(stats["database"]["statements"] for stats in self.stats())

    def wait(self, count, value=None):
        """Wait until `count` rows were settled, or value(stage) is so much; returns (when the first was seen to be, how
        many it were then, when all were)."""
        value = value or Stage.settled
        first, limit = None, time.monotonic() + LIMIT_S
        while True:
            done, now = value(self), time.time()
            if done >= count:
                return (*(first or (now, done)), now)
            if first is None and done > 0:
                first = (now, done)
            if time.monotonic() > limit:
                raise BenchError(f"{done} of {count} rows were settled in {LIMIT_S} s; {self.daemon.log}")
            time.sleep(self._pause(count - done, first, done, now))

    @staticmethod
    def _pause(left, first, done, now):
        """Look often only near the end: each look costs the daemon something."""
        if first is None or done == first[1]:
            return 0.02
        return min(0.5, max(0.02, 0.3 * left * (now - first[0]) / (done - first[1])))

    def cpu_seconds(self):
        return sum(cpu_seconds(daemon.process.pid) for daemon in self.daemons)

    def peak_mib(self):
        """The largest resident set that a daemon has had."""
        return max(memory_kib(daemon.process.pid, "VmHWM") for daemon in self.daemons) / 1024

    # -- table ---------------------------------------------------------------------------

    def install(self, rows, *, payload=200, due="past", route="bench", priority=5):
        """Rows from a template; no daemon runs yet."""
        self.bench.templates.install(self.database, rows, payload=payload, due=due, route=route, priority=priority)

    def fill(self, first, count, due, *, payload=200, route="bench", priority=5):
        """Rows by INSERT, beside running daemons too. due: SQL, where seq is the number."""
        with self.bench.mariadb.connect(self.database) as connection, connection.cursor() as cursor:
            for start in range(first, first + count, FILL_ROWS):
                last = min(start + FILL_ROWS, first + count) - 1
                cursor.execute(insert(start, last, payload=payload, due=due, route=route, priority=priority))

    def now(self):
        """The database's clock, as an SQL text."""
        return self.bench.mariadb.execute("SELECT UTC_TIMESTAMP(6)")[0][0]

    def check_empty(self, route="bench"):
        """Nothing that is due is left in the table."""
        left = self.bench.mariadb.execute("SELECT COUNT(*) FROM outbox WHERE route = %s AND due_at < UTC_TIMESTAMP(6)",
                                          route, db=self.database)[0][0]
        if left:
            raise BenchError(f"{left} due rows of route {route} are left in the table")


def cpu_seconds(pid):
    """User and system time of a process so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def memory_kib(pid, what):
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{what}:")[2].split()[0])


def clear(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
