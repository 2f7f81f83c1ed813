"""A destination that stands still is given no more: what it was not given yet stays in the table, where plain SQL and
expires_at count."""

import json
import threading

import pytest

from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60


def insert(stage, message_id, due="UTC_TIMESTAMP(6)", expires="NULL", route="work"):
    stage.execute(f"INSERT INTO outbox (route, payload, message_id, due_at, expires_at)"
                  f" VALUES ('{route}', '{message_id}', '{message_id}', {due}, {expires})")


def wait_past(stage, seconds):
    (until,) = stage.execute(f"SELECT CAST(UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND AS CHAR)")[0]
    wait_until(lambda: stage.execute(f"SELECT UTC_TIMESTAMP(6) > '{until}'") == ((1,),), seconds + LIMIT_S, "that time")


def bodies(stage):
    return sorted(record["value"] for record in stage.kafka_records())


def is_stalled(daemon):
    return daemon.metric("duebox_route_stalled_seconds", route="work") > 0


def test_sql_counts_while_the_broker_stands_still(stage):
    """Tasks that come due while Kafka is frozen stay in the table: a DELETE, an UPDATE and expires_at count for as long
    as that lasts, and what little is handed over to find out whether Kafka is back says so in its state. (All used to go
    into the client's queue, and arrived seconds later although they were deleted, changed or over.) And people can see
    that the route is stalled, where, and since which task."""
    stage.kafka("work", history="1h")
    consumer = stage.consume_kafka("work")
    daemon = stage.start()
    insert(stage, "warm")
    wait_until(lambda: consumer.records, LIMIT_S, "the first task")
    stage.wait_empty(LIMIT_S)
    stage.kafka_server.pause()
    try:
        insert(stage, "given")
        wait_until(lambda: is_stalled(daemon), LIMIT_S, "the route to be stalled")
        stage.execute("INSERT INTO outbox (route, payload, message_id) SELECT 'work', 'old', CONCAT(what, '-', seq)"
                      " FROM seq_1_to_500, (SELECT 'deleted' AS what UNION SELECT 'changed') AS both_kinds")
        insert(stage, "expired", expires="UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND")
        wait_past(stage, 1)
        stage.execute("DELETE FROM outbox WHERE message_id LIKE 'deleted-%%' AND state = 'scheduled'")
        stage.execute("UPDATE outbox SET payload = 'new' WHERE message_id LIKE 'changed-%%' AND state = 'scheduled'")
        not_deleted = stage.count(where="message_id LIKE 'deleted-%'")
        changed = stage.count(where="message_id LIKE 'changed-%' AND payload = 'new'")
        assert not_deleted < 500 and changed > 0
        stage.wait_row("expired", LIMIT_S, state="expired")
        daemon.wait_log("DUEBOX-ROUTE-STALLED")
        (route,) = json.loads(daemon.run("route", "list", "-o", "json").stdout)
        assert route["stalled_us"] > 0
        assert f"first task given to {stage.destination('work')}" in route["reason"]
    finally:
        stage.kafka_server.resume()
    stage.wait_empty(LIMIT_S)
    daemon.wait_log("DUEBOX-ROUTE-FLOWS")
    assert not is_stalled(daemon)
    stage.stop_and_drain()
    assert bodies(stage) == sorted([b"given", b"warm"] + [b"new"] * changed + [b"old"] * (not_deleted + 500 - changed))


def test_a_target_that_never_confirms_does_not_stop_the_others(stage):
    """Few tasks come, and the first is for a URL that never answers: those for another URL of the route arrive all the
    same. (They used to wait until the first was given up.)"""
    stage.http("work", url=f"{stage.receiver.url}/{{task_key}}", claim="memory", timeout="1h")
    answer = threading.Event()
    stage.receiver.on("/dead", Answer(after=answer))
    daemon = stage.start()
    try:
        for number in range(3):
            stage.execute(f"INSERT INTO outbox (route, payload, task_key) VALUES ('work', '{number}', 'dead')")
            wait_until(lambda count=number + 1: paths(stage).count("/dead") == count, LIMIT_S, "the dead URL to be called")
            wait_past(stage, 0.5)
            stage.execute(f"INSERT INTO outbox (route, payload, task_key) VALUES ('work', '{number}', 'live')")
            wait_until(lambda count=number + 1: paths(stage).count("/live") == count, LIMIT_S, "the other to be called")
    finally:
        answer.set()
    stage.wait_empty(LIMIT_S)
    assert daemon.alive()


def test_a_stall_that_ends_without_a_confirm_is_not_said_to_be_over(stage):
    """The only task times out, so nothing is out any more; that the destination confirms tasks again is said when it has
    confirmed one. (It was said five seconds after the time-out.)"""
    stage.http("work", claim="memory", timeout="3s", retry={"backoff": "1h"})
    answer = threading.Event()
    stage.receiver.on("/work", lambda _: Answer(after=answer))
    daemon = stage.start()
    try:
        insert(stage, "only")
        daemon.wait_log("DUEBOX-ROUTE-STALLED")
        stage.wait_row("only", LIMIT_S, state="scheduled", failures=1)
        wait_until(lambda: not is_stalled(daemon), LIMIT_S, "nothing to be out")
        wait_past(stage, 7)
        assert "DUEBOX-ROUTE-FLOWS" not in [line["id"] for line in daemon.lines()]
    finally:
        answer.set()
    stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6)")
    stage.wait_empty(LIMIT_S)
    daemon.wait_log("DUEBOX-ROUTE-FLOWS")


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_plugin_that_takes_nothing_is_said(stage, tmp_path, claim):
    """A plugin whose submit() says full though it has no task: the log, the metrics and `route list` say that its route
    stands still, and it goes on when the plugin takes tasks again. (Only tasks that it had taken used to count: the
    route stood still, and all seemed to be well.)"""
    full = tmp_path / "full"
    full.touch()
    stage.plugin("nowhere", module="null", full_while=str(full))
    stage.route("work", via="nowhere", claim=claim)
    daemon = stage.start()
    insert(stage, "first")
    line = daemon.wait_log("DUEBOX-ROUTE-STALLED")
    assert "nowhere has no task and takes none" in str(line), line
    wait_until(lambda: is_stalled(daemon), LIMIT_S, "the metric to say so")
    (route,) = json.loads(daemon.run("route", "list", "-o", "json").stdout)
    assert route["stalled_us"] > 0 and "first task first" in route["reason"], route
    full.unlink()
    stage.wait_empty(LIMIT_S)
    daemon.wait_log("DUEBOX-ROUTE-FLOWS")
    assert not is_stalled(daemon)


def paths(stage):
    return [request.path for request in stage.receiver.requests]


def test_what_expires_at_its_due_time_is_never_sent(stage):
    """expires_at is judged at the hand-over, not when the row is read some milliseconds before. (Two thirds of such
    tasks used to be sent.)"""
    stage.kafka("work", history="1h")
    stage.consume_kafka("work")
    stage.start()
    stage.execute("INSERT INTO outbox (route, payload, message_id, due_at, expires_at) SELECT 'work', '', seq,"
                  " @at := UTC_TIMESTAMP(6) + INTERVAL 1000000 + seq * 5000 MICROSECOND, @at FROM seq_1_to_200")
    stage.wait_empty(LIMIT_S)
    stage.stop_and_drain()
    assert stage.execute("SELECT state, COUNT(*) FROM outbox_history GROUP BY state") == (("expired", 200),)
    assert bodies(stage) == []


@pytest.mark.parametrize("why", ["paused", "suspended"])
def test_rows_of_a_closed_route_expire(stage, why):
    """expires_at does not depend on whether the route is open: rows of a paused one, and of one whose destination is
    down, end at their time, on the row, and the others stay."""
    if why == "paused":
        stage.kafka("work", history="1h")
        daemon = stage.start()
        daemon.run("route", "pause", "work", "--reason", "test")
        daemon.wait_log("DUEBOX-ROUTE-PAUSED")
    else:
        stage.plugin("hooks", module="http", allow_private=True)
        stage.route("work", via="hooks", url="http://127.0.0.1:1/nobody", history="1h")
        daemon = stage.start()
        insert(stage, "probe")
        daemon.wait_log("DUEBOX-ROUTE-SUSPENDED")
        stage.execute("DELETE FROM outbox")
    stage.execute("INSERT INTO outbox (route, payload, message_id, expires_at) SELECT 'work', '', seq,"
                  " IF(seq % 10 = 0, UTC_TIMESTAMP(6) + INTERVAL 1 SECOND, NULL) FROM seq_1_to_3000")
    wait_until(lambda: stage.count("outbox_history", "state = 'expired'") == 300, LIMIT_S, "300 to expire",
               detail=stage.living)
    assert stage.count() == 2700


def test_a_route_whose_places_are_all_taken_says_so(stage):
    """Rows may ask for more time than their route gives, and an endpoint that never answers them keeps them so long:
    when all others of the route have waited for longer than calls of the route take, the log and /readyz say so, until
    a place is free. (32 rows used to keep a route for 49 days, and all was said to be well.)"""
    stage.http("hooks", timeout="1s", timeout_max="36s", concurrency=2, max_attempts=1, history="1h")
    stage.receiver.on("/hooks", lambda request: Answer(never=True) if request.body == b"slow" else Answer(200))
    daemon = stage.start()
    for message_id in ("slow-1", "slow-2"):
        stage.execute(f"INSERT INTO outbox (route, payload, message_id, timeout_ms)"
                      f" VALUES ('hooks', 'slow', '{message_id}', 4294967295)")
    wait_until(lambda: stage.count(where="state = 'claimed'") == 2, LIMIT_S, "both to be on their way")
    mark = daemon.mark()
    insert(stage, "other", route="hooks")
    line = daemon.wait_log("DUEBOX-ROUTE-FULL", after=mark, limit_s=LIMIT_S)
    assert line["level"] == "warn" and "message_id=slow-" in line["msg"]
    status, body = daemon.api("GET", "/readyz")
    assert status == 503 and "route hooks is full" in str(body)
    assert stage.row("other")["state"] == "scheduled"
    stage.wait_row("other", LIMIT_S, state="done")
    for message_id in ("slow-1", "slow-2"):
        assert stage.wait_row(message_id, LIMIT_S, state="dead")["error_class"] == "http.timeout"
    daemon.wait_log("DUEBOX-ROUTE-ROOM", after=mark)
    wait_until(lambda: daemon.api("GET", "/readyz")[0] == 200, LIMIT_S, "readiness")
    assert [line["id"] for line in daemon.lines(mark)].count("DUEBOX-ROUTE-FULL") == 1
