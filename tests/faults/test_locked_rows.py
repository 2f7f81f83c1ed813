"""A transaction that holds a row and does not end (an operator's, over lunch) stops that row and nothing else.

The row waits where it is: to be claimed, to be settled, or for its result.  When the transaction ends it goes on,
and the books show neither a loss nor a copy too many.
"""

import contextlib
import random
import threading
import time

import pytest

from support.application import Application, Task, new_id
from support.ledger import Promise, now_us, to_us
from support.servers.http_receiver import Answer
from support.threads import in_threads
from support.wait import PATIENCE, wait_until

LIMIT_S = 60
AT_ONCE_S = 6           # far below what waiting for the lock would take, which is held until the test lets go
QUIET_MS = 2000         # nothing else is due for this long
SPINNING = 1000         # statements in a second: a loop without a pause asks several times as often
SCRAPES = 300           # over more than the time between two attempts to claim
ROUNDS = 5              # of others that go on while the row is held


LOCK_ALONE = "SELECT 1 FROM outbox WHERE id = %s FOR UPDATE"


@contextlib.contextmanager
def held(stage, *message_ids, statement="UPDATE outbox SET priority = 9 WHERE id = %s"):
    """An open transaction that has changed these rows; committed at the end.  By id: other
    indexes would lock gaps, and stop the application's own inserts."""
    ids = [stage.row(message_id)["id"] for message_id in message_ids]
    connection = stage.connect(autocommit=False)
    with contextlib.closing(connection), connection.cursor() as cursor:
        for row_id in ids:
            assert cursor.execute(statement, (row_id,)) == 1
        yield
        connection.commit()


def others_go_on(stage, route, **promise):
    """Rounds of new tasks on a route, each of which is gone soon."""
    for _ in range(ROUNDS):
        began = time.monotonic()
        ids = stage.insert(route, count=20, **promise)
        listed = ", ".join(f"'{message_id}'" for message_id in ids)
        stage.wait_empty(AT_ONCE_S, f"message_id IN ({listed})")
        print(f"{route} beside a locked row: {time.monotonic() - began:.2f} s")


def test_a_row_that_waits_to_be_claimed(stage):
    """Neither its own route nor another one waits; it is claimed after the commit."""
    stage.http("recorded", claim="recorded")
    stage.http("memory")
    stage.consume_http()
    daemon = stage.start()
    [locked] = stage.insert("recorded", delay_ms=4000)      # it is locked by then
    with held(stage, locked):
        wait_until(lambda: stage.count("outbox", "due_at <= UTC_TIMESTAMP(6)") == 1, LIMIT_S, "the row to be due")
        others_go_on(stage, "recorded")
        others_go_on(stage, "memory")
        assert locked not in stage.ledger.arrived_ids()
        later = stage.insert("memory", delay_ms=QUIET_MS)
        statements = daemon.metric("duebox_statements")
        began = time.monotonic()
        stage.wait_empty(LIMIT_S, f"message_id = '{later[0]}'")
        rate = (daemon.metric("duebox_statements") - statements) / (time.monotonic() - began)
        assert rate < SPINNING, f"it spins on the locked row: {rate:.0f} statements/s"
    stage.wait_empty(LIMIT_S)
    stage.check()


ITS_ROW = "SELECT 1 FROM outbox WHERE id = %s FOR UPDATE"
# What lies before the first entry of the state behind is locked with it, and a claim writes its entry there.
ITS_GAP = "SELECT id FROM outbox WHERE state = 'claimed' AND id <> %s FOR UPDATE"


def test_a_task_that_was_cancelled_at_its_due_time_is_not_reported(stage):
    """Claims met its locked row; afterwards nothing is due, and nothing says otherwise."""
    stage.http("recorded", claim="recorded")
    stage.consume_http()
    daemon = stage.start()
    [cancelled] = stage.insert("recorded", delay_ms=2000)
    with held(stage, cancelled, statement="DELETE FROM outbox WHERE id = %s"):
        wait_until(lambda: daemon.metric("duebox_oldest_due_age_seconds", route="recorded") > 1, LIMIT_S,
                   "claims to have met it")
    wait_until(lambda: daemon.metric("duebox_oldest_due_age_seconds", route="recorded") == 0, AT_ONCE_S,
               "the task to be forgotten")
    others_go_on(stage, "recorded")
    assert cancelled not in stage.ledger.arrived_ids()


@pytest.mark.parametrize("statement", [ITS_ROW, ITS_GAP], ids=["row", "gap"])
def test_a_due_task_that_cannot_be_claimed_is_reported(stage, statement):
    """In the log after some seconds, and never as if nothing were due. (/readyz: test_readiness.c.)"""
    stage.http("recorded", claim="recorded")
    stage.consume_http()
    daemon = stage.start()
    [locked] = stage.insert("recorded", delay_ms=2000)
    row_id = stage.row(locked)["id"]
    connection = stage.connect(autocommit=False)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(statement, (row_id,))
        daemon.wait_log("DUEBOX-CLAIM-HELD", limit_s=LIMIT_S, text=f"message_id={locked} is due and cannot be claimed")
        ages = [daemon.metric("duebox_oldest_due_age_seconds", route="recorded") for _ in range(SCRAPES)]
        assert min(ages) > 0 and ages == sorted(ages), ages
        assert locked not in stage.ledger.arrived_ids()
        connection.rollback()
    stage.wait_empty(LIMIT_S)
    wait_until(lambda: daemon.metric("duebox_oldest_due_age_seconds", route="recorded") == 0, LIMIT_S,
               "nothing to be due")
    stage.check()


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_row_that_waits_to_be_settled(stage, claim):
    """It is locked while its call runs; others are settled; it is settled after the commit, and not sent again."""
    stage.http("slow", claim=claim, timeout="300s")
    stage.http("quick")
    locked = threading.Event()
    stage.receiver.on("/slow", Answer(after=locked))
    stage.consume_http()
    stage.start()
    slow = stage.insert("slow", count=3)
    stage.wait_arrived(3, LIMIT_S)
    with held(stage, slow[1]):
        locked.set()
        wait_until(lambda: stage.count("outbox", "route = 'slow'") == 1, LIMIT_S, "the neighbours to be settled",
                   detail=stage.living)
        others_go_on(stage, "quick")
        assert stage.row(slow[1])["state"] != "done"
    stage.wait_empty(LIMIT_S)
    stage.check()


def test_a_row_that_waits_for_its_result(stage):
    """Later results are applied meanwhile; the one of the locked row is after the commit. (A change of a row that waits
    for its result would send it again.)"""
    stage.amqp("work", result="expected", timeout="300s", history="1h")
    stage.configuration["results"] = [{"via": "rabbit", "queue": stage.queue()}]
    with contextlib.ExitStack() as stack:
        locks = []

        def answer(arrival):
            if arrival.body == b"locked" and not locks:
                stage.wait_row(arrival.message_id, LIMIT_S, state="awaiting")
                locks.append(stack.enter_context(contextlib.ExitStack()))
                locks[0].enter_context(held(stage, arrival.message_id, statement=LOCK_ALONE))
            return {"status": "done", "result": {}}

        stage.consume_amqp("work", answer=answer)
        stage.start()
        promise = {"kept": True, "result": "{}"}
        [locked] = stage.insert("work", b"locked", **promise)
        wait_until(lambda: locks, LIMIT_S, "the row to be locked", detail=stage.living)
        others_go_on(stage, "work", **promise)
        assert stage.row(locked)["state"] == "awaiting"
        assert stage.count("outbox") == 1
        locks[0].close()
        stage.wait_empty(LIMIT_S)
    stage.check()


def test_people_are_told_that_a_row_is_locked(stage):
    stage.http("later")
    stage.http("memory")
    stage.consume_http()
    daemon = stage.start()
    [locked] = stage.insert("later", delay_ms=3_600_000, copies=0, end="cancelled")
    with held(stage, locked):
        began = time.monotonic()
        status, problem = daemon.api("POST", f"/api/v1/tasks/{locked}/cancel", {"reason": "test"})
        assert status == 503 and "another transaction holds the row; try again" in str(problem), (status, problem)
        assert time.monotonic() - began < AT_ONCE_S * PATIENCE
        others_go_on(stage, "memory")
    status, problem = daemon.api("POST", f"/api/v1/tasks/{locked}/cancel", {"reason": "test"})
    assert status == 200, problem
    stage.check()


LOCKERS = 12            # transactions that hold rows at the same time
BY_MESSAGE_ID = 0.3     # so often they are locked by another index
LOCKED_AT_ONCE = 30     # rows that each of them tries to get
HOLD_S = (0.1, 5.0)     # for how long
TASKS = 2000


class Locker:
    """An application that locks rows at random, by UPDATE or SELECT .. FOR UPDATE, again and again.
    Notes which rows it has held, and from when to when."""

    def __init__(self, stage, rows, seed):
        self.stage, self.rows = stage, rows     # row id -> message id
        self.dice = random.Random(seed)
        self.held = []                          # (row id, from, until)
        self.stop = threading.Event()

    def run(self):
        connection = self.stage.connect(autocommit=False)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")    # rows, no gaps
            while not self.stop.is_set():
                self.hold_some(connection, cursor)

    def hold_some(self, connection, cursor):
        began = now_us()
        some = sorted(self.dice.sample(list(self.rows), LOCKED_AT_ONCE))
        if self.dice.random() < BY_MESSAGE_ID:  # the index entries too, even of rows that it cannot get
            cursor.execute("SELECT id FROM outbox FORCE INDEX (ux_message_id) WHERE message_id IN %s"
                           " FOR UPDATE SKIP LOCKED", ([self.rows[row_id] for row_id in some],))
            mine = some
        else:
            cursor.execute("SELECT id FROM outbox FORCE INDEX (PRIMARY) WHERE id IN %s FOR UPDATE SKIP LOCKED", (some,))
            mine = [row_id for row_id, in cursor.fetchall()]
            if mine and self.dice.random() < 0.5:
                cursor.execute("UPDATE outbox SET headers = '{}' WHERE id IN %s", (mine,))
        self.stop.wait(self.dice.uniform(*HOLD_S) if mine else 0.1)   # how long it is held is the test's input
        connection.commit()
        self.held += [(row_id, began, now_us()) for row_id in mine]


@pytest.fixture
def many_kinds(stage):
    """A running daemon with every kind of route."""
    stage.kafka("k.memory")
    stage.kafka("k.recorded", claim="recorded")
    stage.amqp("a.memory")
    stage.amqp("a.result", result="expected", timeout="300s", history="1h")
    stage.http("h.memory", claim="memory")
    stage.http("h.recorded", history="1h")
    stage.configuration["results"] = [{"via": "rabbit", "queue": stage.queue()}]
    stage.consume_kafka("k.memory", "k.recorded")
    stage.consume_amqp("a.memory")
    stage.consume_amqp("a.result", answer=lambda _: {"status": "done", "result": {}})
    stage.consume_http()
    stage.start()
    return stage


KEPT = {"a.result": {"kept": True, "result": "{}"}, "h.recorded": {"kept": True}}
AHEAD_MS = 4000         # from insert to the first due time
SPREAD_MS = 8000        # over how long the tasks are due
NOT_DELAYED_S = 10      # less than the locks add up to; what was not locked is through by then, on a busy machine too


def test_results_of_thousands_of_locked_rows(stage):
    """More results than the inbox has room for, all of rows that an operator's transaction holds: those of another
    route, in the same stream and over HTTP, are applied meanwhile, and the rest after the commit. (4,096 of them used
    to stop all results of all routes.)"""
    for route in ("locked", "free"):
        stage.kafka(route, result="expected", history="1h", timeout="1h")
    topic = stage.topic(partitions=1)
    stage.configuration["results"] = [{"via": "bus", "topic": topic, "group": stage.name}]
    daemon = stage.start()
    count = 4600        # more than ASIDE_PER_ROUTE
    stage.execute("INSERT INTO outbox (route, payload, message_id, state, attempt, lease_until)"
                  " SELECT IF(seq <= %s, 'locked', 'free'), '', CONCAT('t', seq), 'awaiting', 1,"
                  " UTC_TIMESTAMP(6) + INTERVAL 1 HOUR FROM seq_1_to_%s", count, count + 10)

    def record(number):
        return None, b'{"id": "t%d", "attempt": 1, "status": "done"}' % number
    with contextlib.closing(stage.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")      # these rows, and no others
        cursor.execute("UPDATE outbox SET priority = 9 WHERE route = 'locked'")
        stage.kafka_server.produce_many(topic, [record(number) for number in range(1, count + 10)])
        stage.wait_empty(LIMIT_S, "route = 'free' AND message_id <> CONCAT('t', 4610)")
        status, _ = daemon.api("POST", "/api/v1/results", {"id": f"t{count + 10}", "attempt": 1, "status": "done"})
        assert status == 200
        assert stage.count(where="route = 'free'") == 0
        connection.commit()
    kept = stage.count("outbox_quarantine")
    assert 0 < kept <= count - 4096
    wait_until(lambda: stage.count("outbox_history", "route = 'locked'") == count - kept, LIMIT_S,
               "the results of the rows that were locked", detail=stage.living)


def test_results_of_more_locked_rows_than_a_queue_delivers(stage):
    """RabbitMQ waits for acknowledgements when it has delivered `prefetch` records. Where all of them are for locked rows
    the other results of the queue come all the same."""
    for route in ("locked", "free"):
        stage.amqp(route, result="expected", history="1h", timeout="1h")
    queue = stage.queue()
    stage.configuration["results"] = [{"via": "rabbit", "queue": queue, "prefetch": 20}]
    stage.start()
    ids = [f"t{number}" for number in range(100)]
    for message_id in [*ids, "free"]:
        stage.execute("INSERT INTO outbox (route, payload, message_id, state, attempt, lease_until) VALUES"
                      " (%s, '', %s, 'awaiting', 1, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)",
                      "free" if message_id == "free" else "locked", message_id)
    with held(stage, *ids, statement=LOCK_ALONE), contextlib.closing(stage.rabbitmq.connect()) as connection:
        channel = connection.channel()
        for message_id in [*ids, "free"]:
            channel.basic_publish("", queue, b'{"id": "%s", "attempt": 1, "status": "done"}' % message_id.encode())
        stage.wait_row("free", LIMIT_S, state="done")
        assert stage.count() == len(ids)
    stage.wait_empty(LIMIT_S)
    assert stage.count("outbox_quarantine") == 0


def test_rows_locked_at_random_under_load(many_kinds):
    """Whatever state these rows are in: tasks whose rows nobody holds are in time, and the books are right."""
    stage, [daemon] = many_kinds, many_kinds.daemons
    dice = random.Random(7)
    routes = [route for route in stage.configuration["routes"] for _ in range(TASKS // 6)]
    tasks = [Task(Promise(new_id(), route, b"%d" % i, **KEPT.get(route, {})), AHEAD_MS + dice.randrange(SPREAD_MS))
             for i, route in enumerate(routes)]
    with Application(stage.connect(), stage.ledger) as application:
        application.insert(tasks)
    rows = {message_id: (row_id, to_us(due)) for message_id, row_id, due in
            stage.execute("SELECT message_id, id, due_at FROM outbox")}
    ids = {row_id: message_id for message_id, (row_id, _) in rows.items()}
    lockers = [Locker(stage, ids, seed) for seed in range(LOCKERS)]
    last = max(due for _, due in rows.values())

    def let_go():
        try:
            wait_until(lambda: now_us() > last + NOT_DELAYED_S * 1_000_000, LIMIT_S, "the last task to be due for long")
        finally:
            for locker in lockers:
                locker.stop.set()
    in_threads(let_go, *(locker.run for locker in lockers))
    stage.wait_empty(LIMIT_S)
    stage.check()
    judge_delays(stage, rows, [hold for locker in lockers for hold in locker.held])
    troubles = [line for line in daemon.lines() if line["id"] in ("DUEBOX-SETTLE-WAIT", "DUEBOX-DB-TROUBLE",
                                                                  "DUEBOX-RESULTS-WAIT")]
    assert not [line["msg"] for line in troubles if "1205" in line["msg"]]


def judge_delays(stage, rows, held):
    """Fail where a task whose row nobody held between its due time and its arrival came late."""
    arrived = stage.ledger.by_arrival()
    holds = {}
    for row_id, began, until in held:
        holds.setdefault(row_id, []).append((began, until))
    late = []
    for message_id, (row_id, due) in rows.items():
        arrival = arrived[message_id][0].at_us
        locked = any(began < arrival and until > due for began, until in holds.get(row_id, ()))
        if not locked:
            late.append((arrival - due, message_id))
    late.sort()
    free = len(late)
    print(f"\n{len(held)} rows held, {len(rows) - free} of {len(rows)} when they were due; of the others the median is"
          f" {late[free // 2][0] / 1000:.0f} ms late, the last {late[-1][0] / 1000:.0f} ms")
    assert free > len(rows) / 2 and len(held) > LOCKED_AT_ONCE   # otherwise it proves nothing
    assert late[free * 19 // 20][0] < NOT_DELAYED_S * 1_000_000     # the last ones may have met a machine that stood still
