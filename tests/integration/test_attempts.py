"""From the first failure to the end: retries, limits, expiry, the dead and their alert,
what is kept, and destinations that are gone."""

import json
import time

import pymysql
import pytest

from support.ledger import to_us
from support.servers.http_receiver import Answer
from support.wait import wait_until

MILLISECOND = 0.001 # the resolution of what some waits are measured with
SLACK_S = 20.0      # how much later than wished an attempt may come on a busy machine


def attempts_of(stage, path="/h"):
    return [request for request in stage.receiver.requests if request.path.startswith(path)]


def waits_of(stage, count, limit_s=30):
    """Seconds between the attempts at the receiver."""
    requests = stage.receiver.wait_count(count, limit_s, "/h")
    return [later.arrived - earlier.arrived for earlier, later in zip(requests, requests[1:])]


def assert_waits(waits, wanted_s):
    assert len(waits) == len(wanted_s)
    for waited, wanted in zip(waits, wanted_s):
        assert wanted - MILLISECOND <= waited < wanted + SLACK_S, (waits, wanted_s)


def test_retry_levels(stage):
    stage.http("h", history="1h", retry={"levels": ["300ms", "600ms", "100ms"], "jitter": 0})
    stage.start()
    stage.consume_http()
    stage.receiver.on("/h", 200)
    stage.receiver.on("/h", Answer(500, b"out of order"), times=4)
    message_id = stage.insert("h", kept=True, copies=5)[0]
    assert_waits(waits_of(stage, 5), [0.3, 0.6, 0.1, 0.1])
    row = stage.wait_row(message_id, 20, state="done")
    assert (row["attempt"], row["failures"]) == (5, 4)
    assert row["published_at"] >= row["due_at"]
    assert stage.attempts(message_id) == [(n, "failure", "retry", "http.500") for n in (1, 2, 3, 4)]
    stage.check()


def test_the_log_names_the_dead(stage):
    """Whichever way they ended: by the sink, by the consumer's record. Many at once do not fill it."""
    stage.configuration["log"] = {"level": "info"}
    stage.http("h", max_attempts=2, concurrency=500, breaker=0, retry={"backoff": "10ms", "jitter": 0})
    stage.http("later", result="expected", timeout="60s")
    daemon = stage.start()
    stage.receiver.on("/h", 500)
    stage.receiver.on("/later", Answer(202))
    sunk, = stage.insert("h", end="")
    assert daemon.wait_log("DUEBOX-TASK-DEAD")["msg"] == f"route=h message_id={sunk} attempt=2 error_class=http.500"
    mark = daemon.mark()
    answered, = stage.insert("later", end="")
    stage.wait_row(answered, 20, state="awaiting")
    status, _ = daemon.api("POST", "/api/v1/results", {
        "id": answered, "attempt": 1, "status": "fail", "error": {"class": "bad.invoice", "message": "no address"}})
    assert status == 200
    line = daemon.wait_log("DUEBOX-TASK-DEAD", after=mark)
    assert (line["level"], line["msg"]) == (
        "info", f"route=later message_id={answered} attempt=1 error_class=bad.invoice")
    started = time.monotonic()
    stage.insert("h", count=400, end="")
    wait_until(lambda: stage.count("outbox_history", "state = 'dead'") == 402, 40, "all to be dead")
    seconds = time.monotonic() - started
    dead = [line["msg"] for line in daemon.lines() if line["id"] == "DUEBOX-TASK-DEAD"]
    assert 50 <= len(dead) <= 50 + 3 + seconds

    def lines_and_unsaid():
        stage.insert("h", end="")
        dead = [line["msg"] for line in daemon.lines() if line["id"] == "DUEBOX-TASK-DEAD"]
        return len(dead), sum(int(msg.split("unsaid=")[1]) for msg in dead if "unsaid=" in msg)
    wait_until(lambda: sum(lines_and_unsaid()) >= 402, 20, "the next line to count those without one")


def test_the_log_names_a_task_that_could_not_be_sent(stage):
    stage.http("h")
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (route, payload, headers) VALUES ('h', '{}', '[1]')")
    line = daemon.wait_log("DUEBOX-TASK-DEAD")
    [(refused,)] = stage.execute("SELECT message_id FROM outbox_history WHERE state = 'dead'")
    assert f"message_id={refused} " in line["msg"]


def test_backoff_with_a_limit(stage):
    stage.http("h", retry={"backoff": "200ms", "multiplier": 2, "max": "500ms", "jitter": 0})
    stage.start()
    stage.receiver.on("/h", 200)
    stage.receiver.on("/h", 503, times=4)
    stage.insert("h")
    assert_waits(waits_of(stage, 5), [0.2, 0.4, 0.5, 0.5])


def test_retry_after_is_honoured_and_capped(stage):
    stage.http("h", retry_after_max="2s", retry={"backoff": "10ms", "jitter": 0})
    stage.start()
    stage.receiver.on("/h", 200)
    stage.receiver.on("/h", Answer(429, headers={"Retry-After": "3600"}), times=1)
    stage.receiver.on("/h", Answer(503, headers={"Retry-After": "1"}), times=1)
    stage.insert("h")
    assert_waits(waits_of(stage, 3), [1, 2])


def test_nothing_is_waited_for_that_cannot_come(stage):
    """Accepted is as good as done where the receiver is told no place to answer at, and "still going on" a failure."""
    stage.http("plain", callback="none", history="1h", retry={"backoff": "10ms", "jitter": 0})
    stage.http("told", history="1h")
    stage.start()
    for route in ("plain", "told"):
        stage.receiver.on("/" + route, Answer(202))
        stage.receiver.on("/" + route, Answer(409), times=1)
    plain, = stage.insert("plain", kept=True, copies=2)
    told, = stage.insert("told", end="")
    assert stage.wait_row(plain, 20, state="done")["attempt"] == 2
    assert stage.attempts(plain) == [(1, "failure", "retry", "http.409")]
    assert stage.wait_row(told, 20, state="awaiting")["attempt"] == 1


def result_stage(stage, **route):
    """A Kafka route whose consumer answers."""
    stage.kafka("k", result="expected", **{"history": "1h", "retry": {"levels": ["200ms"], "jitter": 0}, **route})
    stage.configuration["results"] = [{"via": "bus", "topic": stage.topic(1), "group": stage.name}]
    return stage.start()


def test_the_consumer_says_when_to_retry(stage):
    result_stage(stage)
    stage.consume_kafka("k", answer=lambda arrival: {"status": "done"} if arrival.attempt == 3 else
                        {"status": "retry", "retry_in_ms": 500 * arrival.attempt})
    message_id = stage.insert("k", kept=True, copies=3)[0]
    stage.wait_row(message_id, 30, state="done")
    times = [arrival.at_us for arrival in stage.ledger.arrivals]
    assert_waits([(later - earlier) / 1e6 for earlier, later in zip(times, times[1:])], [0.5, 1.0])
    stage.check()


def test_the_consumer_refuses_a_retry(stage):
    result_stage(stage)
    error = {"class": "order.unknown", "message": "no order 17", "stack": "at line 1\nat line 2"}
    stage.consume_kafka("k", answer=lambda arrival: {"status": "fail", "error": error})
    message_id = stage.insert("k", b"keep me", end="dead", error_class="order.unknown")[0]
    row = stage.wait_row(message_id, 30, state="dead")
    assert (row["failures"], row["payload"]) == (1, b"keep me")
    assert row["last_error"] == "no order 17\nat line 1\nat line 2"
    stage.check()


def test_a_missing_result_counts_as_an_attempt(stage):
    result_stage(stage, timeout="1s", max_attempts=3)
    stage.consume_kafka("k")
    message_id = stage.insert("k", copies=3, end="dead", error_class="result.timeout")[0]
    row = stage.wait_row(message_id, 30, state="dead")
    assert (row["attempt"], row["failures"]) == (3, 3)
    stage.check()
    handed_over = [record["timestamp"] / 1e3 for record in stage.kafka_records()]
    assert_waits([later - earlier for earlier, later in zip(handed_over, handed_over[1:])], [1.2, 1.2])


def test_a_call_without_an_answer_times_out(stage):
    stage.http("h", timeout="700ms", max_attempts=2, retry={"backoff": "100ms", "jitter": 0})
    stage.start()
    stage.consume_http()
    stage.receiver.on("/h", Answer(never=True))
    started = time.time()       # the receiver may read the first request long after it was sent
    message_id = stage.insert("h", copies=2, end="dead", error_class="http.timeout")[0]
    stage.wait_row(message_id, 20, state="dead")
    assert_waits([stage.receiver.wait_count(2, 20, "/h")[1].arrived - started], [0.8])
    stage.check()


def test_the_row_overrides_the_route(stage):
    stage.http("h", timeout="30s", max_attempts=100, retry={"backoff": "50ms", "jitter": 0})
    stage.start()
    stage.receiver.on("/h", Answer(never=True))
    stage.execute("INSERT INTO outbox (route, payload, message_id, max_attempts, timeout_ms)"
                  " VALUES ('h', '', 'mine', 2, 500)")
    row = stage.wait_row("mine", 20, state="dead")
    assert (row["failures"], row["error_class"]) == (2, "http.timeout")


def test_the_route_limits_attempts(stage):
    stage.http("h", max_attempts=3, retry={"backoff": "20ms", "jitter": 0})
    stage.start()
    stage.consume_http()
    stage.receiver.on("/h", 500)
    message_id = stage.insert("h", copies=3, end="dead", error_class="http.500")[0]
    stage.wait_row(message_id, 20, state="dead")
    stage.check()


def test_an_old_task_is_given_up(stage):
    """give_up: a task overdue by more than that is dead at its next failure."""
    stage.http("h", give_up="1s", max_attempts=0, retry={"backoff": "300ms", "multiplier": 1, "jitter": 0})
    stage.start()
    stage.receiver.on("/h", 500)
    message_id = stage.insert("h", end="dead")[0]
    row = stage.wait_row(message_id, 20, state="dead")
    late_us = to_us(row["created_at"]) + 1_000_000
    requests = attempts_of(stage)
    assert len(requests) == row["failures"]
    assert all(request.arrived * 1e6 < late_us for request in requests[:-1]) and to_us(row["finished_at"]) > late_us


def test_expires_at_ends_a_task_that_cannot_succeed(stage):
    stage.http("h", retry={"backoff": "400ms", "multiplier": 1, "jitter": 0})
    stage.start()
    stage.receiver.on("/h", 500)
    stage.execute("INSERT INTO outbox (route, payload, message_id, expires_at)"
                  " VALUES ('h', 'x', 'e', UTC_TIMESTAMP(6) + INTERVAL 1 SECOND)")
    row = stage.wait_row("e", 20, state="expired")
    requests = attempts_of(stage)
    assert row["finished_at"] is not None and len(requests) == row["failures"]
    # Each but the last one was followed by an attempt 400 ms after it; how late the receiver read the last, nobody knows.
    assert all(request.arrived * 1e6 + 400_000 < to_us(row["expires_at"]) for request in requests[:-1])


def test_what_has_expired_before_it_is_sent_is_never_sent(stage):
    stage.http("h")
    daemon = stage.start()
    assert daemon.api("POST", "/api/v1/routes/h/pause", {"reason": "test"})[0] == 200
    wait_paused(daemon, True)
    stage.execute("INSERT INTO outbox (route, payload, message_id, expires_at)"
                  " VALUES ('h', 'x', 'e', UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND)")
    wait_until(lambda: stage.count(where="expires_at >= UTC_TIMESTAMP(6)") == 0, 20, "the time to come")
    assert daemon.api("POST", "/api/v1/routes/h/resume", {})[0] == 200      # it may have ended before
    stage.wait_row("e", 20, state="expired", failures=0)
    stage.insert("h", b"good")
    stage.receiver.wait_count(1, 20)
    assert [request.body for request in attempts_of(stage)] == [b"good"]


def wait_paused(daemon, paused):
    def found():
        routes = daemon.api("GET", "/api/v1/routes")[1]["routes"]
        return next(route for route in routes if route["name"] == "h")["paused"] == paused
    wait_until(found, 20, f"{daemon.name} to see paused={paused}", detail=daemon.log_tail)


# -- the dead ---------------------------------------------------------------------------


def test_the_dead_move_to_the_history_and_raise_an_alert(stage):
    stage.http("h", max_attempts=1)
    stage.http("ops.alert", max_attempts=1)
    stage.configuration["alerts"] = {"dead": {"route": "ops.alert"}}
    stage.start()
    stage.receiver.on("/h", Answer(500, b"out of order"))
    message_id = stage.insert("h", b"\0payload", end="dead")[0]
    alert = json.loads(stage.receiver.wait_count(1, 20, "/ops.alert")[0].body)
    assert (alert["message_id"], alert["route"], alert["error_class"], alert["failures"]) == (
        message_id, "h", "http.500", 1)
    row = stage.wait_row(message_id, 20, state="dead")
    assert row["payload"] == b"\0payload" and row["keep_until"] > row["finished_at"]
    stage.wait_empty(20)
    assert stage.count("outbox_history") == 1


def test_the_dead_raise_alerts_while_there_is_no_next_row_id(stage):
    """A client has driven the counter of row ids to its end, and an open transaction keeps it there."""
    stage.http("h", max_attempts=1)
    stage.http("ops.alert", max_attempts=1)
    stage.configuration["alerts"] = {"dead": {"route": "ops.alert"}}
    stage.start()
    stage.receiver.on("/h", 400)
    tasks = stage.insert("h", count=300, delay_ms=3600_000, end="dead")
    with stage.connect() as client, client.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute("INSERT INTO outbox (id, route, payload) VALUES (18446744073709551615, 'h', 'x')")
        cursor.execute("ROLLBACK")
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT COUNT(*) FROM outbox")
        stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6)")
        alerts = stage.receiver.wait_count(300, 60, "/ops.alert")
        with pytest.raises(pymysql.err.OperationalError, match="1467"):
            stage.execute("INSERT INTO outbox (route, payload) VALUES ('h', 'x')")
    assert sorted(json.loads(alert.body)["message_id"] for alert in alerts) == sorted(tasks)
    stage.wait_empty(20)
    assert stage.count("outbox_history", "state = 'dead' AND last_error IS NOT NULL") == 300


def test_a_dead_alert_raises_no_alert(stage):
    """It would feed itself."""
    stage.http("h", max_attempts=1)
    stage.http("ops.alert", max_attempts=1)
    stage.configuration["alerts"] = {"dead": {"route": "ops.alert"}}
    stage.start()
    stage.receiver.on("/", 500)
    stage.insert("h", end="dead")
    wait_until(lambda: stage.count("outbox_history", "state = 'dead'") == 2, 20, "the alert to be dead too")
    stage.wait_empty(10)
    assert stage.count("outbox_history") == 2 and len(attempts_of(stage, "/ops.alert")) == 1


def test_a_dead_task_is_retried_by_command(stage):
    stage.http("h", max_attempts=1)
    daemon = stage.start()
    stage.receiver.on("/h", 200)
    stage.receiver.on("/h", 500, times=1)
    message_id = stage.insert("h", b"again", end="")[0]
    stage.wait_row(message_id, 20, state="dead")
    daemon.run("dead", "retry", message_id, "--yes", "--reason", "test")
    first, second = stage.receiver.wait_count(2, 20, "/h")
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == message_id
    assert second.body == b"again"
    stage.wait_empty(20)


@pytest.mark.parametrize("history, kept", [("0", False), ("1h", True)])
def test_done_tasks_are_kept_where_the_route_says_so(stage, history, kept):
    stage.http("h", history=history, every_attempt=kept)
    stage.start()
    stage.consume_http()
    message_id = stage.insert("h", kept=kept)[0]
    stage.wait_empty(20)
    stage.check()
    assert stage.attempts(message_id) == ([(1, "success", "done", None)] if kept else [])


def test_410_pauses_the_route_for_all_daemons(stage):
    """The endpoint is closed for good: nothing more is sent until people say so, nothing is lost."""
    stage.http("h", concurrency=1)
    stage.http("other")
    first, second = stage.start("first"), stage.start("second")
    stage.consume_http()
    stage.receiver.on("/h", 410)
    ids = stage.insert("h", count=30, end="")
    wait_paused(first, True)
    wait_paused(second, True)
    wait_until(lambda: any(line["id"] == "DUEBOX-ROUTE-GONE" and "410" in line["msg"]
                           for daemon in (first, second) for line in daemon.lines()), 20, "the log to say so")
    [(paused, reason, by)] = wait_until(lambda: stage.execute(
        "SELECT paused, reason, changed_by FROM outbox_routes WHERE route = 'h'"), 20, "the pause in the table")
    assert paused and reason and by == "duebox"
    sent = len(attempts_of(stage))
    stage.insert("other", count=20)
    wait_until(lambda: len(attempts_of(stage, "/other")) == 20, 20, "the other route to go on")
    assert len(attempts_of(stage)) == sent <= 4
    assert {stage.row(message_id)["failures"] for message_id in ids} == {0}
    stage.receiver.on("/h", 200)
    first.run("route", "resume", "h")
    stage.wait_empty(30)
    assert {request.headers["webhook-id"] for request in attempts_of(stage)[sent:]} == set(ids)


# -- order --------------------------------------------------------------------------------


def test_higher_priority_leaves_first(stage):
    stage.http("h", concurrency=1)
    daemon = stage.start()
    assert daemon.api("POST", "/api/v1/routes/h/pause", {})[0] == 200
    wait_paused(daemon, True)
    for priority in (1, 9, 5, 3, 7):
        stage.execute("INSERT INTO outbox (route, payload, priority, shard) VALUES " +
                      ", ".join([f"('h', '{priority}', {priority}, 0)"] * 5))
    assert daemon.api("POST", "/api/v1/routes/h/resume", {})[0] == 200
    bodies = [request.body for request in stage.receiver.wait_count(25, 20)]
    assert bodies == [b"9"] * 5 + [b"7"] * 5 + [b"5"] * 5 + [b"3"] * 5 + [b"1"] * 5


def test_tasks_of_one_order_key_leave_one_after_the_other(stage):
    """Slow answers and many tasks at once: of each key only one is out, in the order of insert."""
    stage.http("h", concurrency=20)
    stage.start()
    out, most = {}, {}

    def answer(request):
        key = request.headers["x-key"]
        out.setdefault(key, []).append(int(request.body))
        most[key] = most.get(key, 0) + 1
        return Answer(200, delay_s=0.03)
    stage.receiver.on("/h", answer)
    for number in range(10):
        stage.execute("INSERT INTO outbox (route, payload, order_key, headers) VALUES " + ", ".join(
            f"('h', '{number}', 'key{key}', '{{\"x-key\":\"{key}\"}}')" for key in range(8)))
    stage.wait_empty(30)
    assert out == {str(key): list(range(10)) for key in range(8)}
