"""Somebody locks a table of duebox beside that of the tasks, to dump it or to alter it.  What needs that table waits;
everything else goes on (P8), and when the table is free again nothing is lost and nothing has come twice (P1, P4).
"""

import contextlib
import threading

import pytest

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
