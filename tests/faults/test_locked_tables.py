"""Somebody locks a table of duebox beside that of the tasks, to dump it or to alter it.  What needs that table waits;
everything else goes on (P8), and when the table is free again nothing is lost and nothing has come twice (P1, P4).
"""

import contextlib
import json
import threading

import pymysql
import pytest

from integration.test_schema import run_for
from support.servers.http_receiver import Answer
from support.stage import stage_on_each_server as stage  # noqa: F401
from support.wait import wait_until

LIMIT_S = 60
# What stops while somebody holds it: nothing, or tasks of these routes.
TABLES = {"instances": (), "routes": (), "quarantine": (), "audit": (), "schema": (), "schedules": (),
          "heads": ("ordered",), "attempts": ("ordered",), "history": ("kept",)}
ROUTES = {"plain": {"claim": "memory"}, "recorded": {}, "kept": {"history": "1h"},
          "ordered": {"retry": {"backoff": "2s", "max": "2s"}}}
ROUNDS = 3
FLIGHTS = 100
ENDS_S = 5              # times PATIENCE; a second for each half of what waits is a minute
SOON_S = 3              # times PATIENCE; far below what a wait for each half of a batch took on MySQL


@contextlib.contextmanager
def locked(stage, table):
    connection = stage.connect()
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLES outbox_{table} WRITE")
        yield
        cursor.execute("UNLOCK TABLES")


def living(stage, ids):
    listed = ", ".join(f"'{message_id}'" for message_id in ids)
    return stage.count("outbox", f"message_id IN ({listed})")


def rounds(stage, routes):
    """Tasks of these routes, each round of which is gone soon; their ids."""
    every = []
    for number in range(ROUNDS):
        for route in routes:
            ids = stage.insert(route, count=5)
            wait_until(lambda ids=ids: living(stage, ids) == 0, SOON_S, f"{route}, round {number}", detail=stage.living)
            every += ids
    return every


def test_a_locked_table_stops_what_needs_it_and_nothing_else(stage):
    for route, options in ROUTES.items():
        stage.http(route, concurrency=20, **options)
    failing = Answer(500)
    stage.receiver.on("/ordered", lambda _: failing)
    stage.start()
    stage.consume_http()
    rounds(stage, ["plain", "recorded", "kept"])
    every = []
    for table, waits in TABLES.items():
        failing = Answer(500)
        key = f"key of {table}"
        stage.execute("INSERT INTO outbox (route, payload, order_key) VALUES ('ordered', 'x', %s), ('ordered', 'y', %s)",
                      key, key)
        wait_until(lambda: stage.count("outbox_heads", "TRUE") > 0, LIMIT_S, "a task to wait for its retry")
        with locked(stage, table):
            kept = stage.insert("kept", count=2)
            # It moves here once nobody is seen to live there, and as the first of its key.
            stage.execute("INSERT INTO outbox (route, payload, target_host, order_key, move_to_host) "
                          "VALUES ('plain', 'x', 'elsewhere', %s, '')", key)
            every += kept + rounds(stage, [route for route in ("plain", "recorded", "kept") if route not in waits])
            stage.receiver.wait_count(1, LIMIT_S, "/kept")
            assert "kept" not in waits or living(stage, kept) == 2
        failing = Answer(200)
        stage.wait_empty(LIMIT_S)
        print(f"outbox_{table}: done")
    arrived = stage.ledger.by_arrival()
    assert {len(arrived[message_id]) for message_id in every} == {1}


def test_while_the_shards_are_locked_readiness_says_so(stage):
    """Nothing is settled without them; it goes on when they are free."""
    stage.http("plain", concurrency=20, claim="memory")
    stage.consume_http()
    daemon = stage.start()
    rounds(stage, ["plain"])
    with locked(stage, "shards"):
        ids = stage.insert("plain", count=20)

        def problem():
            status, body = daemon.api("GET", "/readyz")
            return status == 503 and body["detail"]
        assert "lease" in wait_until(problem, LIMIT_S, "readiness to be false")
        daemon.wait_log("DUEBOX-LEASE-TROUBLE", text="SHOW PROCESSLIST")
    daemon.wait_ready()
    ids += rounds(stage, ["plain"])
    stage.wait_empty(LIMIT_S)
    arrived = stage.ledger.by_arrival()
    assert {len(arrived[message_id]) for message_id in ids} == {1}


LOCKS = pytest.mark.parametrize("statement", ["LOCK TABLES outbox READ", "FLUSH TABLES WITH READ LOCK"],
                                ids=["tasks", "all"])


@contextlib.contextmanager
def outcomes_that_wait(stage, statement):
    """A daemon all of whose tasks are delivered while that lock keeps it from writing so."""
    answer = threading.Event()
    stage.http("plain", concurrency=FLIGHTS, claim="memory")
    stage.receiver.on("/plain", Answer(after=answer))
    stage.consume_http()
    daemon = stage.start(engine={"drain_timeout": "1s"})
    stage.insert("plain", count=FLIGHTS)
    stage.wait_arrived(FLIGHTS, LIMIT_S)
    connection = stage.connect()
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)
        answer.set()
        wait_until(lambda: daemon.metric("duebox_settle_queue_tasks") > 0, LIMIT_S, "outcomes to wait")
        yield daemon
        cursor.execute("UNLOCK TABLES")


@LOCKS
def test_a_daemon_ends_in_time_while_the_tasks_are_locked(stage, statement):
    """Its outcomes cannot be written. It does not look for the one among them that somebody holds, which takes a second
    for each part of them, but leaves them to whoever is next."""
    with outcomes_that_wait(stage, statement) as daemon:
        print(f"it ended after {daemon.stop(ENDS_S):.1f} s")
    daemon.start()
    stage.wait_empty(LIMIT_S)
    stage.check(duplicates=FLIGHTS)


@LOCKS
def test_outcomes_are_written_when_the_tasks_are_free_again(stage, statement):
    with outcomes_that_wait(stage, statement) as daemon:
        daemon.wait_log("DUEBOX-SETTLE-LOCKED", limit_s=LIMIT_S)
    stage.wait_empty(SOON_S)
    stage.check()


APPLICATION = {"user": "app", "password": "app-password"}
SLOW = """INSERT INTO outbox (route, payload, due_at) SELECT 'mixed', 'x', '2199-01-01'
    FROM (SELECT 1 AS n UNION ALL SELECT 2) AS numbers WHERE n = 1 OR SLEEP(3600) = 0"""
FAR = 2 ** 64 - 3
PLACES = 4


@contextlib.contextmanager
def inserting_slowly(stage, *before):
    """A statement of an application that may only INSERT.  On MariaDB, and on MySQL where innodb_autoinc_lock_mode says
    so, nobody else has a next row id until it ends."""
    with stage.connect() as root:
        run_for(root, stage.database, "users")
        run_for(root, stage.database, "grants")
    application = stage.connect(**APPLICATION)

    def insert():
        with contextlib.suppress(pymysql.err.MySQLError), application.cursor() as cursor:
            for statement in before:
                cursor.execute(statement)
            cursor.execute(SLOW)
    thread = threading.Thread(target=insert)
    thread.start()
    session = application.thread_id()
    wait_until(lambda: stage.execute("SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %s AND STATE = 'User sleep'",
                                     session), LIMIT_S, "the statement to be slow")
    try:
        yield
    finally:
        stage.execute(f"KILL QUERY {session}")
        thread.join()
        application.close()


def make_due(stage, ids, rows):
    """By row id: another index would be locked beside these rows."""
    for message_id in ids:
        stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE id = %s", rows[message_id])


@pytest.mark.parametrize("before", [(), (f"SET insert_id = {FAR}",)], ids=["many", "far"])
def test_a_slow_insert_of_an_application_delays_alerts_and_nothing_else(stage, before):
    """Those who have died wait with their alerts, and leave their places to the other tasks of their route.  `far`: and
    then there is no next row id for a while, as the client has chosen the last one."""
    locks = stage.execute("SELECT @@innodb_autoinc_lock_mode")[0][0] < 2
    stage.http("mixed", concurrency=PLACES, reject_on=[400], history="1h")
    stage.http("ops.alert")
    stage.configuration["alerts"] = {"dead": {"route": "ops.alert"}}
    stage.receiver.on("/mixed", lambda request: Answer(400 if request.body == b"die" else 200))
    stage.consume_http()
    daemon = stage.start()
    rounds(stage, ["mixed"])
    dying = stage.insert("mixed", b"die", count=2 * PLACES, delay_ms=3600_000, end="dead")
    others = stage.insert("mixed", count=5 * PLACES, delay_ms=3600_000)
    rows = dict(stage.execute("SELECT message_id, id FROM outbox"))
    with inserting_slowly(stage, *before):
        make_due(stage, dying, rows)
        wait_until(lambda: set(dying) <= stage.ledger.arrived_ids(), LIMIT_S, "all that die to be sent",
                   detail=stage.living)
        make_due(stage, others, rows)
        wait_until(lambda: living(stage, others) == 0, SOON_S, "the others of the route", detail=stage.living)
        if locks:
            daemon.wait_log("DUEBOX-SETTLE-LOCKED", limit_s=LIMIT_S)
            wait_until(lambda: daemon.api("GET", "/readyz")[0] == 503, LIMIT_S, "readiness to be false")
            assert living(stage, dying) == len(dying) and stage.count(where="route = 'ops.alert'") == 0
    alerts = stage.receiver.wait_count(len(dying), LIMIT_S, "/ops.alert")
    assert sorted(json.loads(alert.body)["message_id"] for alert in alerts) == sorted(dying)
    stage.wait_empty(LIMIT_S)
    arrived = stage.ledger.by_arrival()
    assert {len(arrived[message_id]) for message_id in [*dying, *others]} == {1}
    assert stage.count("outbox_history", "state = 'dead' AND last_error IS NOT NULL") == len(dying)
    daemon.wait_ready()
    assert before or not any(line["id"] == "DUEBOX-SETTLE-REDUCED" for line in daemon.lines())
