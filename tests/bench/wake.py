#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What following the binlog changes: wake.py [--rows-per-s N] [--seconds S] [--rounds R]

Once by polling and once by the binlog, in turn, on one private server: single inserts at random moments (how long until
the destination has them), no inserts (statements), and a flood from four connections (CPU time, statements, lateness).
"""
import argparse
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.daemon import Daemon, preset_folder        # noqa: E402
from support.servers.mariadb import MariaDB             # noqa: E402
from support.wait import wait_until                     # noqa: E402

INSERTERS, ROWS = 4, 5
TICK = os.sysconf("SC_CLK_TCK")
LATE = ("SELECT TIMESTAMPDIFF(MICROSECOND, created_at, published_at) / 1000 FROM outbox_history"
        " WHERE route = 'n' AND id > %s")


def cpu_s(pid, thread=None):
    """Of the process, or of its threads of that name."""
    paths = [Path(f"/proc/{pid}/stat")] if thread is None else Path(f"/proc/{pid}/task").glob("*/stat")
    total = 0
    for path in paths:
        head, _, tail = path.read_text().rpartition(")")
        if thread is None or head.partition("(")[2] == thread:
            total += sum(map(int, tail.split()[11:13]))
    return total / TICK


def flood(socket, database, rows_per_s, until):
    import pymysql
    connection = pymysql.connect(unix_socket=socket, user="root", database=database, autocommit=True)
    pause, at = ROWS * INSERTERS / rows_per_s, time.monotonic()
    statement = "INSERT INTO outbox (route, payload) VALUES " + ", ".join(["('n', REPEAT('x', 200))"] * ROWS)
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(statement)
            at += pause
            time.sleep(max(0, at - time.monotonic()))


class Run:
    def __init__(self, server, wake, folder):
        self.database = server.create_database(f"wake_{wake}")
        self.server = server
        configuration = {
            "database": {"socket": str(server.socket), "user": "root", "name": self.database, "wake": wake},
            "plugins": {"none": {"module": "null"}}, "routes": {"n": {"via": "none", "history": "1h"}}}
        path = f"{preset_folder() / 'plugins'}:{preset_folder() / 'tests' / 'plugins'}"
        self.daemon = Daemon(folder / wake, configuration, environment={"DUEBOX_PLUGIN_PATH": path})
        self.daemon.migrate()
        self.daemon.start()
        if wake == "binlog":
            self.daemon.wait_log("DUEBOX-BINLOG-ON")

    def sql(self, statement, *values):
        return self.server.execute(statement, *values, db=self.database)

    def drained(self):
        wait_until(lambda: self.sql("SELECT COUNT(*) FROM outbox")[0][0] == 0, 120, "an empty outbox")

    def late(self, after):
        values = sorted(float(row[0]) for row in self.sql(LATE, after))
        return (f"p50 {statistics.median(values):.2f} ms, p99 {values[len(values) * 99 // 100]:.2f} ms"
                f" of {len(values)}")

    def newest(self):
        return int(self.sql("SELECT COALESCE(MAX(id), 0) FROM outbox_history")[0][0])

    def single(self, count=200):
        after = self.newest()
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            for _ in range(count):
                time.sleep(random.uniform(0.01, 0.15))
                cursor.execute("INSERT INTO outbox (route, payload) VALUES ('n', '{}')")
        self.drained()
        return self.late(after)

    def idle(self, seconds=5):
        before = self.daemon.metric("duebox_statements")
        time.sleep(seconds)
        return f"{(self.daemon.metric('duebox_statements') - before) / seconds:.1f} statements/s"

    def flood(self, rows_per_s, seconds):
        after, pid = self.newest(), self.daemon.process.pid
        cpu, follower = cpu_s(pid), cpu_s(pid, "binlog")
        statements = self.daemon.metric("duebox_statements")
        started = time.monotonic()
        workers = [multiprocessing.Process(target=flood, args=(
            str(self.server.socket), self.database, rows_per_s, started + seconds)) for _ in range(INSERTERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        stopped = time.monotonic()
        self.drained()
        rows = self.newest() - after
        took = time.monotonic() - started
        return (f"{rows / (stopped - started):.0f} rows/s in, empty {time.monotonic() - stopped:.2f} s after;"
                f" CPU {cpu_s(pid) - cpu:.2f} s, of that binlog {cpu_s(pid, 'binlog') - follower:.2f} s in {took:.1f} s;"
                f" {(self.daemon.metric('duebox_statements') - statements) / took:.0f} statements/s; {self.late(after)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows-per-s", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, MariaDB() as server:
        for number in range(args.rounds):
            for wake in ("poll", "binlog"):
                run = Run(server, wake, Path(folder) / str(number))
                for name, figures in (("single", run.single()), ("idle", run.idle()),
                                      ("flood", run.flood(args.rows_per_s, args.seconds))):
                    print(f"{wake:7}{name:7} {figures}", flush=True)
                run.daemon.stop()


if __name__ == "__main__":
    main()
