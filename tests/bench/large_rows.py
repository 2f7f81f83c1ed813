#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What rows far above engine.max_payload cost other routes: large_rows.py [--mb N] [--burst N] [--seconds S] [--rounds R]

In turn, on one private server: nothing; the same bytes in a table that is not duebox's; the rows in the outbox. Once one
after the other as fast as they are inserted, and once so many that are due at one moment. How late the tasks of another
route are (published - due, p50 / p90 / max), and how much of its time the lease that had least had left.
DUEBOX_BUILD_DIR names the build.
"""
import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.daemon import Daemon                             # noqa: E402
from support.servers.http_receiver import HttpReceiver        # noqa: E402
from support.servers.mariadb import MariaDB                   # noqa: E402
from support.wait import wait_until                           # noqa: E402

EACH_S = 0.1
REST_S = 3
DUE_IN_S = 30
LATE = ("SELECT TIMESTAMPDIFF(MICROSECOND, due_at, published_at) / 1e6 FROM outbox_history"
        " WHERE route = 'good' AND id > %s")
LEFT = "SELECT MIN(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until)) / 1e6 FROM outbox_shards WHERE shard < 63"
LARGE = "INSERT INTO outbox (route, payload, due_at) VALUES (%s, REPEAT('x', %s), %s)"


class Run:
    def __init__(self, server, receiver, folder, large):
        self.server, self.large = server, large
        self.database = server.create_database("large_rows")
        hooks = {"via": "hooks", "history": "1d"}
        self.daemon = Daemon(folder, {
            "database": {"socket": str(server.socket), "user": "root", "name": self.database},
            "plugins": {"hooks": {"module": "http", "allow_private": True}},
            "routes": {"good": {"url": f"{receiver.url}/good", **hooks}, "bad": {"url": f"{receiver.url}/bad", **hooks}},
            "engine": {"lease": "10s"}})
        self.daemon.migrate()
        self.daemon.start()
        self.sql("CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, payload LONGBLOB)")
        self.sql("CREATE TABLE other_history LIKE other")

    def sql(self, statement, *values):
        return self.server.execute(statement, *values, db=self.database)

    def tasks_of_good(self, until):
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            while time.monotonic() < until:
                cursor.execute("INSERT INTO outbox (route, payload, delay_ms) VALUES ('good', '{}', 20)")
                time.sleep(EACH_S)

    def leases(self, until, left):
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            while time.monotonic() < until:
                cursor.execute(LEFT)
                left.append(float(cursor.fetchone()[0]))
                time.sleep(EACH_S)

    def measure(self, label, seconds, beside=lambda until: 0):
        after = int(self.sql("SELECT GREATEST(COALESCE((SELECT MAX(id) FROM outbox), 0),"
                             " COALESCE((SELECT MAX(id) FROM outbox_history), 0))")[0][0])
        until, left = time.monotonic() + seconds, [10.0]
        threads = [threading.Thread(target=self.tasks_of_good, args=(until,)),
                   threading.Thread(target=self.leases, args=(until, left))]
        for thread in threads:
            thread.start()
        rows = beside(until)
        for thread in threads:
            thread.join()
        wait_until(lambda: not self.sql("SELECT 1 FROM outbox WHERE route = 'good' LIMIT 1"), 120, "the good ones")
        late = sorted(float(row[0]) for row in self.sql(LATE, after))
        print(f"{label:22} rows {rows:3}  good {len(late):4}: {statistics.median(late):.3f} /"
              f" {late[len(late) * 9 // 10]:.3f} / {late[-1]:.3f} s late; lease {min(left):.1f} s", flush=True)

    def insert(self, statement, *values):
        """As fast as they go."""
        def run(until):
            rows = 0
            with self.server.connect(self.database) as connection, connection.cursor() as cursor:
                while time.monotonic() < until:
                    cursor.execute(statement, values)
                    rows += 1
            return rows
        return run

    def move_other(self, until):
        """What becomes of rows that are dead: copied and deleted, one by one."""
        rows = 0
        with self.server.connect(self.database, autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM other")
            for (row,) in cursor.fetchall():
                if time.monotonic() > until:
                    break
                cursor.execute("INSERT INTO other_history SELECT * FROM other WHERE id = %s", (row,))
                cursor.execute("DELETE FROM other WHERE id = %s", (row,))
                connection.commit()
                rows += 1
        return rows

    def dead(self):
        return int(self.sql("SELECT COUNT(*) FROM outbox_history WHERE state = 'dead'")[0][0])

    def rest(self, drain=False):
        self.sql("TRUNCATE other")
        self.sql("TRUNCATE other_history")
        if not drain:
            self.sql("DELETE FROM outbox WHERE LENGTH(payload) > 1000")
        wait_until(lambda: not self.sql("SELECT 1 FROM outbox LIMIT 1"), 900, "the outbox to be empty")
        self.sql("TRUNCATE outbox_history")
        time.sleep(REST_S)

    def stream(self, seconds, route):
        self.measure("nothing", seconds)
        self.measure("stream, other table", seconds,
                     self.insert("INSERT INTO other (payload) VALUES (REPEAT('x', %s))", self.large))
        self.rest()
        self.measure(f"stream, {route}", seconds, self.insert(LARGE, route, self.large, None))
        self.rest()

    def burst(self, seconds, count, route):
        for _ in range(count):
            self.sql("INSERT INTO other (payload) VALUES (REPEAT('x', %s))", self.large)
        time.sleep(REST_S)
        self.measure("burst, other table", seconds, self.move_other)
        self.rest()
        due = self.sql("SELECT CAST(UTC_TIMESTAMP(6) + INTERVAL %s SECOND AS CHAR)", DUE_IN_S + count)[0][0]
        for _ in range(count):
            self.sql("INSERT INTO outbox (route, payload, due_at, shard) VALUES (%s, REPEAT('x', %s), %s, 0)",
                     route, self.large, due)
        wait_until(lambda: self.sql("SELECT UTC_TIMESTAMP(6) >= %s", due)[0][0], 120, "them to be due")
        began = time.monotonic()
        self.measure(f"burst, {route}", seconds, lambda until: count)
        print(f"{'':22} dead within the time: {self.dead()}", flush=True)
        self.rest(drain=True)
        print(f"{'':22} all gone after {time.monotonic() - began:.0f} s", flush=True)

    def troubles(self):
        found = {}
        for line in self.daemon.lines():
            if line["level"] in ("warn", "error"):
                found[line["id"]] = found.get(line["id"], 0) + 1
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=40)
    parser.add_argument("--burst", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--route", default="bad", help="another name is a route that nobody knows")
    parser.add_argument("--only", choices=("stream", "burst"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, MariaDB() as server, HttpReceiver() as receiver:
        run = Run(server, receiver, Path(folder) / "daemon", args.mb * 1000 * 1000)
        for _ in range(args.rounds):
            if args.only != "burst":
                run.stream(args.seconds, args.route)
            if args.only != "stream":
                run.burst(args.seconds, args.burst, args.route)
        print("log:", run.troubles())
        run.daemon.stop()


if __name__ == "__main__":
    main()
