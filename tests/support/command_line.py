"""`duebox <noun> <verb>` as an operator types it, on a database of its own.

    def test_it(cli):
        cli("task", "list")                     # exit code 0, the output
        cli.fails(66, "task", "show", 99)       # exit code 66, what it said on stderr
        cli.json("task", "list")                # parsed

No daemon runs unless the test starts one: cli.daemon.start().  At the end the reports
of sanitizers are looked for.
"""

import json
import shlex

import pytest

ESCAPE = "\x1b"


@pytest.fixture
def cli(stage):
    stage.plugin("bus", module="kafka", brokers="127.0.0.1:1")
    stage.route("orders.cancel", via="bus", topic="orders")
    stage.route("crm.push", via="bus", topic="crm", concurrency=32, rate="100/s", max_attempts=4)
    with_line = CommandLine(stage)
    yield with_line
    with_line.daemon.check()


class CommandLine:
    def __init__(self, stage):
        self.stage = stage
        self.daemon = stage.daemon()

    # -- running ----------------------------------------------------------------

    def run(self, *words):
        done = self.daemon.run(*words, check=False)
        self.daemon.check()
        return done

    def __call__(self, *words):
        """Standard output of a command that must succeed."""
        return self._expect(0, words).stdout

    def remark(self, *words):
        """What a command that must succeed says on stderr."""
        return self._expect(0, words).stderr

    def fails(self, code, *words):
        """What a command that must end with `code` says on stderr."""
        return self._expect(code, words).stderr

    def json(self, *words, code=0):
        return json.loads(self._expect(code, [*words, "-o", "json"]).stdout)

    def jsonl(self, *words, code=0):
        done = self._expect(code, [*words, "-o", "jsonl"])
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _expect(self, code, words):
        done = self.run(*words)
        assert done.returncode == code, (
            f"duebox {shlex.join(map(str, words))} ended with {done.returncode} instead of {code}:\n"
            f"{done.stdout}{done.stderr}")
        return done

    # -- the database -------------------------------------------------------------

    def sql(self, statement, *values):
        return self.stage.execute(statement, *values)

    def add(self, route="crm.push", *, count=1, **columns):
        """Insert rows with plain SQL; returns their ids."""
        columns = {"route": route, "payload": "{}", "delay_ms": 3600_000, **columns}
        names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
        with self.stage.connect() as connection, connection.cursor() as cursor:
            ids = []
            for _ in range(count):
                cursor.execute(f"INSERT INTO outbox ({names}) VALUES ({marks})", tuple(columns.values()))
                ids.append(cursor.lastrowid)
        return ids

    def end(self, ids, state="dead", **columns):
        """Move rows into the history as a daemon does."""
        columns = {"attempt": 3, "failures": 3, "error_class": "http.503", "last_error": "come back", **columns}
        chosen = ", ".join(map(str, ids))
        values = ", ".join(f"h.{name} = %s" for name in columns)
        self.sql(f"""INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority,
                       order_key, dedup_key, max_attempts, timeout_ms, expires_at, target_host, shard, created_at,
                       state, attempt, failures, recoveries, finished_at, keep_until)
                     SELECT id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key,
                       max_attempts, timeout_ms, expires_at, target_host, shard, created_at, %s, 0, 0, 0,
                       UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30 DAY
                     FROM outbox WHERE id IN ({chosen})""", state)
        self.sql(f"UPDATE outbox_history h SET {values} WHERE id IN ({chosen})", *columns.values())
        self.sql(f"DELETE FROM outbox WHERE id IN ({chosen})")
        return ids

    def dead(self, route="crm.push", *, count=1, error_class="http.503", **columns):
        return self.end(self.add(route, count=count, **columns), error_class=error_class)

    def row(self, id_, table="outbox"):
        with self.stage.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} WHERE id = %s", (id_,))
            values = cursor.fetchone()
            return values and dict(zip([column[0] for column in cursor.description], values))

    def ids(self, where="TRUE", table="outbox"):
        return [id_ for (id_,) in self.sql(f"SELECT id FROM {table} WHERE {where} ORDER BY id")]

    def audit(self):
        """The audit rows, oldest first."""
        rows = self.sql("SELECT actor, verb, reason, filter, changed, before_image FROM outbox_audit ORDER BY id")
        names = ("actor", "verb", "reason", "filter", "changed", "before")
        return [{**dict(zip(names, row)), "before": row[5] and json.loads(row[5])} for row in rows]

    def hold(self, *, url="http://127.0.0.1:1", seconds=3600, instance="other"):
        """All shards belong to a daemon that listens at `url`, for `seconds` from now."""
        self.sql("REPLACE INTO outbox_instances (id, host, url, alive_until)"
                 " VALUES (%s, 'far-away', %s, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)", instance, url)
        self.sql("UPDATE outbox_shards SET epoch = epoch + 1, owner = %s, unclean = TRUE,"
                 " lease_until = UTC_TIMESTAMP(6) + INTERVAL %s SECOND WHERE shard < 63", instance, seconds)
