"""Whatever a client writes that may only INSERT, the tasks of others arrive once, and each row of it ends by itself.

Rows of support/odd_rows.py, from a seed, beside the tasks of others on the same routes. DUEBOX_TEST_ODD_ROWS_S says for how
many seconds; 8 by default, 600 with DUEBOX_TEST_LONG=1. DUEBOX_TEST_SEED is the seed.
"""

import collections
import json
import os
import threading
from random import Random

import pymysql
import pytest
from test_schema import run_for

from support import ledger as books
from support.application import new_id
from support.ledger import Promise
from support.odd_rows import Client
from support.scale import scaled
from support.servers.http_receiver import Answer
from support.stage import stage_on_each_server  # noqa: F401 (a fixture)
from support.wait import wait_until

GOOD_LIMIT_S = 120
HOST = "duebox-1"
ROUTES = ["mem", "rec", "hook", "hookrec", "rabbit", "call", "rated"]
ODD_ROUTES = [*[f"'{route}'" for route in ROUTES] * 4, "'MEM'", "'mem '", "' mem'", "'mem\\t'", "x'6D656D00'", "x'6DC3A9'", "x'FF'", "''", "' '",
              "REPEAT('r', 64)", "REPEAT('r', 65)", "NULL", "DEFAULT", "'nobody'", "'(empty)'", "'(unreadable routes)'", "'*'", "'{route}'", "'\"'",
              "'\\''", "'%s'", "_utf16 'mem'", "0", "'rec  '", "x'00'", "'hook/'", "'nobody '"]
#: What a daemon may report while such rows are about, beside what it reports of every run.
TROUBLE = ("DUEBOX-SETTLE-REFUSED", "DUEBOX-SETTLE-LEFT", "DUEBOX-DB-TROUBLE", "DUEBOX-SETTLE-WAIT", "DUEBOX-READ-REFUSED")


def configure(stage):
    def quick():
        return {"retry": {"levels": ["100ms", "300ms"]}, "max_attempts": 4, "history": "1h"}
    exchange = f"x-{stage.name}"
    queue = stage.queue()
    stage.rabbitmq.declare_exchange(exchange)
    stage.rabbitmq.bind(queue, exchange, "#")
    stage.kafka("mem", claim="memory", key="{task_key}{header.a}", **quick())
    stage.kafka("rec", claim="recorded", **quick())
    stage.http("hook", claim="memory", **quick())
    stage.configuration["routes"]["hook"]["url"] += "/{task_key}/{header.a}?m={message_id}&p={priority}&r={route}"
    stage.http("hookrec", claim="recorded", **quick())
    stage.amqp("rabbit", exchange=exchange, routing_key="{task_key}", **quick())
    stage.http("call", result="expected", timeout="5s", **quick())
    stage.kafka("rated", rate="200/s", **quick())
    stage.configuration["engine"]["max_payload"] = "64KiB"
    stage.consume_kafka("mem", "rec", "rated")
    stage.configuration["routes"]["queue"] = {"via": "rabbit", "routing_key": queue}    # where what goes to the exchange ends
    stage.consume_amqp("queue")
    http = stage.consume_http()
    http.callback("/call", lambda arrival: {"status": "done"})

    def answer(request):
        failing = request.body == b"odd fail" and int(request.headers.get("duebox-attempt", "9")) < 3
        return Answer(503 if failing else 200)
    for path in ("/hook", "/hookrec"):
        stage.receiver.on(path, answer)


class Others:
    """The tasks of others: one after the other on each route, some with an order_key, until stop()."""

    def __init__(self, stage, dice):
        self.stage, self.dice = stage, dice
        self.ids = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self._thread.join()

    def _run(self):
        with self.stage.connect() as connection:
            connection.autocommit(False)
            while not self._stopping.wait(0.05):
                self.insert(connection)

    def insert(self, connection):
        """One transaction."""
        dice, ledger = self.dice, self.stage.ledger
        promises = [Promise(new_id(), route, b"good", kept=True, headers={"a": "1"}) for route in ROUTES]
        with connection.cursor() as cursor:
            for promise in promises:
                key = dice.choice(["", "", f"own-{dice.randint(1, 5)}", "shared"])
                try:
                    cursor.execute("INSERT INTO outbox (route, payload, message_id, headers, task_key, order_key, delay_ms, priority)"
                                   " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                                   (promise.route, promise.body, promise.message_id, json.dumps(promise.headers), "t", key,
                                    dice.choice([0, 0, 0, 200, 1500]), dice.randint(1, 9)))
                except pymysql.err.MySQLError as error:
                    if error.args[0] != 1467:   # somebody has taken the last row id: a daemon puts it right
                        raise
                    connection.rollback()
                    return
            cursor.execute(books.READ_DUE, ([promise.message_id for promise in promises],))
            cursor.executemany(books.COPY, cursor.fetchall())
        ledger.promise(*promises)
        connection.commit()
        self.ids += [promise.message_id for promise in promises]

    def some_id(self):
        return self.dice.choice(self.ids) if self.ids else "none"


class Readiness(threading.Thread):
    """Asks a daemon, again and again, whether it is ready."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_of, self.refusals = daemon, []
        self._stopping = threading.Event()

    def run(self):
        while not self._stopping.wait(0.5):
            try:
                status, text = self.daemon_of.api("GET", "/readyz")
            except OSError as error:
                status, text = 0, repr(error)
            if status != 200 and not self._stopping.is_set():
                self.refusals.append(text)

    def stop(self):
        self._stopping.set()
        self.join()


SHARDS = 8
#: Where the documents say that a row stays: its route is not known, it is not due yet, it is another host's, or its shard
#: is none. Of rows of such a shard doctor names one of each group. Who may write the state too can write a claim without
#: an end, which nobody looks at.
STAYS = f"""state = 'held' OR next_at IS NULL OR shard >= {SHARDS} AND shard <> 63 OR state IN ('scheduled', 'blocked') AND next_at > UTC_TIMESTAMP(6) + INTERVAL 30 SECOND
  OR (state = 'blocked' OR shard = 63) AND route NOT IN ('{"', '".join(ROUTES)}')
  OR shard = 63 AND target_host NOT IN ('', '{HOST}')"""


def left_over(stage, daemon):
    """Odd rows that neither end, nor stay where they may, nor are named by doctor: {id: row}."""
    lines = [json.loads(line) for line in daemon.run("doctor", "-o", "jsonl", check=False).stdout.splitlines()]
    named = json.dumps([line for line in lines if "unreadable" in json.dumps(line)])
    found = stage.execute("SELECT id, HEX(message_id), HEX(route), state, shard, priority, CAST(next_at AS CHAR), HEX(order_key),"
                          f" HEX(target_host), attempt, failures, max_attempts, error_class FROM outbox WHERE NOT ({STAYS})")
    return {row[0]: row for row in found if f"id {row[0]} " not in named}


def judge_arrivals(stage):
    """Nothing of the odd rows arrives twice in one attempt, or early; returns how many arrived, and leaves the good ones in the ledger."""
    ledger, odd = stage.ledger, collections.defaultdict(list)
    for arrival in ledger.arrivals:
        if arrival.message_id not in ledger.promised:
            odd[arrival.message_id].append(arrival)
    ledger.arrivals[:] = [arrival for arrival in ledger.arrivals if arrival.message_id in ledger.promised]
    rows = collections.defaultdict(list)
    for message_id, state, due, attempt in stage.execute(
            "SELECT HEX(message_id), state, due_at, attempt FROM outbox_history UNION ALL"
            " SELECT HEX(message_id), state, COALESCE(first_due_at, due_at), attempt FROM outbox"):
        rows[bytes.fromhex(message_id).decode("latin1").rstrip(" ")].append((state, due, attempt))
    problems = []
    for message_id, arrivals in odd.items():
        known = rows.get(message_id)
        if not known:
            problems.append(("arrived, without a row", message_id, len(arrivals)))
            continue
        copies = collections.Counter(arrival.attempt for arrival in arrivals)
        if max(copies.values()) > len(known):
            problems.append(("arrived twice", message_id, copies, known))
        dues = [books.to_us(due) for _, due, _ in known if hasattr(due, "year")]
        if dues and min(arrival.at_us for arrival in arrivals) < min(dues):
            problems.append(("arrived early", message_id, known))
    assert not problems, problems[:10]
    return len(odd)


def end_of_all(stage, daemon, others):
    good = "SELECT COUNT(*) FROM ledger l JOIN outbox_history h ON h.message_id = l.message_id AND h.state = 'done'"
    wait_until(lambda: stage.execute(good)[0][0] >= len(others.ids), GOOD_LIMIT_S, "the tasks of others to be done",
               detail=lambda: str(stage.execute("SELECT o.* FROM outbox o JOIN ledger l ON l.message_id = o.message_id LIMIT 10"))
               + stage.living())
    wait_until(lambda: not left_over(stage, daemon), GOOD_LIMIT_S, "all odd rows to end or to be named",
               detail=lambda: "\n".join(map(str, list(left_over(stage, daemon).values())[:20])) + "\n" + daemon.log_tail(20))


def commands(stage, daemon, dice):
    """Each command and address shows each row, without an error."""
    for words in (("task", "list", "--limit", 5000), ("task", "list", "--limit", 5000, "--state", "held"), ("dead", "list", "--limit", 5000),
                  ("task", "list", "--limit", 5000, "--state", "dead")):
        lines = daemon.run(*words, "-o", "jsonl").stdout.splitlines()
        for line in lines:
            json.loads(line)
    for words in (("route", "list"), ("route", "show", "mem"), ("doctor",), ("dead", "list"), ("task", "list")):
        result = daemon.run(*words, check=False)
        assert result.returncode in (0, 1), (words, result.stdout, result.stderr)
    ids = [row[0] for row in stage.execute("SELECT id FROM outbox UNION ALL SELECT id FROM outbox_history WHERE payload <> 'good'")]
    for number in dice.sample(ids, min(8, len(ids))):
        shown = daemon.run("task", "show", f"id:{number}", "-o", "json", check=False)
        assert shown.returncode == 0, (number, shown.stdout, shown.stderr)
        json.loads(shown.stdout)
    for path in ("/api/v1/stats", "/api/v1/routes", "/api/v1/quarantine"):
        assert daemon.api("GET", path)[0] == 200, path
    daemon.metrics()
    for number in dice.sample(ids, min(10, len(ids))):
        status, answer = daemon.api("POST", f"/api/v1/tasks/id:{number}/cancel", {"reason": "odd"})
        row = stage.execute(f"SELECT * FROM outbox WHERE id = {number}")
        nobodys = stage.execute(f"SELECT 1 FROM outbox WHERE id = {number} AND shard >= {SHARDS}")
        assert status in (200, 404, 409) or status == 421 and nobodys, (number, status, answer, row)


def start_clients(stage, others, folder, seed, engine):
    """Clients of the roles that may INSERT; engine: of one that may write every column."""
    clients = []
    for number, user in enumerate(["app", "app_orm", "app"]):
        how = {"local_infile": True, **({} if engine else {"user": user, "password": "app-password"})}
        clients.append(Client(lambda how=how: stage.connect(**how), Random(f"{seed} {number}"), routes=ODD_ROUTES, host=HOST,
                              good=others.some_id, files=folder, engine=engine))
        clients[-1].start()
    return clients


def stop_all(stage, clients, others, folder):
    """What they sent is in the file `statements`."""
    for client in clients:
        client.stop()
    others.stop()
    (folder / "statements").write_text("\n".join(line for client in clients for line in client.log), errors="replace")
    refused = sum((collections.Counter(client.refused) for client in clients), collections.Counter())
    print(f"{sum(client.statements for client in clients)} statements, {sum(client.written for client in clients)} rows; refused: {refused}")


def judge_daemon(daemon, readiness):
    readiness.stop()
    assert not readiness.refusals, readiness.refusals
    trouble = [line for line in daemon.lines() if line["id"] in TROUBLE]
    assert not trouble, trouble[:5]


@pytest.mark.parametrize("engine", [False, True], ids=["app", "any-column"])
def test_odd_rows(stage_on_each_server, tmp_path, engine):  # noqa: F811
    """The tasks of others arrive once and are done, each odd row ends, or stays where the documents say so, the daemon is
    ready all the time, commands show each row, and a daemon that is started anew sends nothing again."""
    stage, seed = stage_on_each_server, int(os.environ.get("DUEBOX_TEST_SEED", "21"))
    print(f"DUEBOX_TEST_SEED={seed}")
    stage.execute("SET GLOBAL local_infile = 1")
    configure(stage)
    daemon = stage.daemon(HOST)
    with stage.mariadb.connect() as connection:
        run_for(connection, stage.database, "users")
        run_for(connection, stage.database, "grants")
    daemon.start()
    others, readiness = Others(stage, Random(seed)).start(), Readiness(daemon)
    readiness.start()
    clients = start_clients(stage, others, tmp_path, seed, engine)
    threading.Event().wait(scaled("DUEBOX_TEST_ODD_ROWS_S", 8, 600))
    stop_all(stage, clients, others, tmp_path)
    end_of_all(stage, daemon, others)
    commands(stage, daemon, Random(seed))
    end_of_all(stage, daemon, others)
    judge_daemon(daemon, readiness)
    daemon.stop()
    daemon.start()
    with stage.connect() as connection:
        connection.autocommit(False)
        for _ in range(5):
            others.insert(connection)
    end_of_all(stage, daemon, others)
    stage.stop_and_drain()
    print(judge_arrivals(stage), "odd tasks arrived")
    stage.compare()
