"""After a crash nobody knows which claims in memory the dead daemon had handed over.  Who cancels or reschedules such a
task is told so, whoever answers: the daemon that took over, the one after it, or the command line by itself."""

import json
import signal
import threading

import pytest
from support.command_line import CommandLine
from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60
MAYBE = "(it may have been sent before)"


@pytest.fixture
def crashed(stage):
    """Five calls of a daemon that was killed have arrived, and their route is paused.  Their rows say nothing of it."""
    stage.configuration["engine"]["lease"] = "2s"
    stage.http("h", claim="memory", timeout="60s", history="1h")
    stage.receiver.on("/h", Answer(never=True))
    daemon = stage.start()
    ids = stage.insert("h", count=5, end="")
    stage.receiver.wait_count(5, LIMIT_S, "/h")
    daemon.kill9()
    daemon.run("route", "pause", "h")
    assert all((row["state"], row["attempt"]) == ("scheduled", 0) for row in map(stage.row, ids))
    stage.sent = ids
    return stage


def take_over(stage):
    daemon = stage.daemons[0]
    daemon.start(wait_ready=False)
    daemon.wait_ready(LIMIT_S)      # it has all shards: those of the dead one when their leases are over
    wait_until(lambda: daemon.metric("duebox_shards_held") == 8, LIMIT_S, "all shards to be held", detail=daemon.log_tail)
    return daemon


def cancel(stage, *words):
    return stage.daemons[0].run("task", "cancel", *words).stdout


def test_the_daemon_that_took_over_tells(crashed):
    daemon = take_over(crashed)
    first, second, third, fourth, fifth = crashed.sent
    later, = crashed.insert("h", end="")                    # nobody has died since
    assert cancel(crashed, first) == f"{first}  cancelled {MAYBE}\n"
    assert cancel(crashed, later) == f"{later}  cancelled\n"
    assert daemon.api("POST", f"/api/v1/tasks/{second}/cancel", {}) == (
        200, {"id": second, "state": "cancelled", "maybe_sent": True})
    assert daemon.run("task", "reschedule", third, "--delay", "1h").stdout == f"{third}  rescheduled {MAYBE}\n"
    told = json.loads(cancel(crashed, fourth, "-o", "json"))
    assert (told["maybe_sent"], told["tasks"]) == (1, [{"id": fourth, "outcome": "cancelled", "maybe_sent": True}])
    crashed.insert("h", end="")
    said = cancel(crashed, "--route", "h", "--due-before", "now", "--yes")
    assert said.startswith("2 of 2 tasks cancelled; 1 may have been sent before"), said
    assert crashed.row(fifth)["state"] == "cancelled"


@pytest.mark.parametrize("alive", [True, False], ids=["daemon", "none"])
def test_it_is_known_when_the_task_was_cancelled_and_brought_back(crashed, alive):
    """It is due at another time then, by which nobody had abandoned its shard."""
    if alive:
        take_over(crashed)
        forget = "abandoned_at = NULL"
    else:
        crashed.execute("UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) WHERE shard < 63")
        forget = "abandoned_at = NULL, unclean = FALSE, owner = NULL, lease_until = NULL"
    first, *_ = crashed.sent
    assert cancel(crashed, first) == f"{first}  cancelled {MAYBE}\n"
    crashed.daemons[0].run("task", "retry", first)
    crashed.execute(f"UPDATE outbox_shards SET {forget} WHERE shard < 63")
    assert crashed.row(first)["attempt"] == 0
    assert cancel(crashed, first) == f"{first}  cancelled {MAYBE}\n"


def test_it_is_known_after_the_successor_has_stopped_too(crashed):
    take_over(crashed).stop()
    first, second, *_ = crashed.sent
    later, = crashed.insert("h", end="")
    assert cancel(crashed, first) == f"{first}  cancelled {MAYBE}\n"
    assert cancel(crashed, later) == f"{later}  cancelled\n"
    take_over(crashed)
    assert cancel(crashed, second) == f"{second}  cancelled {MAYBE}\n"


def test_it_is_known_after_the_successor_has_died_too(crashed):
    take_over(crashed).kill9()
    take_over(crashed)
    first, *_ = crashed.sent
    assert cancel(crashed, first) == f"{first}  cancelled {MAYBE}\n"


@pytest.mark.parametrize("body", [b"?", b'{"id": "1", "state": "cancelled"}'], ids=["none", "of-a-version-before"])
def test_it_is_known_where_the_answer_does_not_say_it(crashed, body):
    """The successor carries it out, and what comes back is no answer, or one of a version that says nothing of it."""
    asked, carried_out, told = "/api/v1/tasks", threading.Event(), []
    crashed.receiver.on(asked, Answer(200, body=body, after=carried_out))
    crashed.execute("INSERT INTO outbox_instances (id, kind, host, url, version, routes, pid, alive_until) VALUES"
                    " ('x', 'daemon', 'elsewhere', %s, '0', '', 1, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)",
                    crashed.receiver.url)
    crashed.execute("UPDATE outbox_shards SET owner = 'x', abandoned_at = UTC_TIMESTAMP(6),"
                    " lease_until = UTC_TIMESTAMP(6) + INTERVAL 10 MINUTE WHERE shard < 63")
    first, *_ = crashed.sent
    thread = threading.Thread(target=lambda: told.append(cancel(crashed, first)))
    thread.start()
    try:
        crashed.receiver.wait_count(1, LIMIT_S, f"{asked}/message_id%3A{first}/cancel")
        CommandLine(crashed).end([crashed.row(first)["id"]], "cancelled")
    finally:
        carried_out.set()
        thread.join()
    assert told == [f"{first}  cancelled {MAYBE}\n"]


@pytest.mark.parametrize("where", ["move_to_host = 'elsewhere'", "move_to_shard = (shard + 1) MOD 8"],
                         ids=["host", "shard"])
def test_it_is_known_where_the_row_has_moved_since(crashed, where):
    """Its new shard was not abandoned, and one of bound tasks never is."""
    first, *_ = crashed.sent
    crashed.execute("UPDATE outbox_shards SET abandoned_at = NULL")
    crashed.execute(f"UPDATE outbox SET {where} WHERE message_id = %s", first)
    before = crashed.row(first)["shard"]
    daemon = crashed.daemons[0]
    daemon.start(wait_ready=False)
    daemon.run("route", "resume", "h")
    wait_until(lambda: crashed.row(first)["shard"] != before, LIMIT_S, "the row to move", detail=daemon.log_tail)
    daemon.run("route", "pause", "h")
    crashed.execute("UPDATE outbox_shards SET abandoned_at = NULL")
    if crashed.row(first)["shard"] == 63:
        assert cancel(crashed, first) == f"{first}  cancelled {MAYBE}\n"
    else:
        assert crashed.row(first)["recoveries"] == 1


@pytest.mark.parametrize("hurried", [False, True], ids=["term", "term-twice"])
def test_what_a_stop_could_not_write_leaves_doubt(stage, hurried):
    """Somebody held the row of a task that had been sent until after the daemon's end."""
    stage.http("h", claim="memory")
    stage.receiver.on("/h", Answer(200))
    daemon = stage.start()
    first, = stage.insert("h", delay_ms=1500, end="")
    later, = stage.insert("h", delay_ms=3_600_000, end="")
    with stage.connect(autocommit=False) as locks:
        with locks.cursor() as cursor:
            cursor.execute("SELECT id FROM outbox WHERE message_id = %s FOR UPDATE", (first,))
        stage.receiver.wait_count(1, LIMIT_S, "/h")
        daemon.signal(signal.SIGTERM)
        if hurried:
            daemon.wait_log("DUEBOX-DRAINING")
            daemon.signal(signal.SIGTERM)
        assert daemon.wait_end(LIMIT_S) == 0
        daemon.wait_log("DUEBOX-SETTLE-LEFT")
        locks.rollback()
    daemon.run("route", "pause", "h")
    assert cancel(stage, first) == f"{first}  cancelled {MAYBE}\n"
    assert cancel(stage, later) == f"{later}  cancelled\n"


def test_what_a_stop_broke_off_leaves_doubt(stage):
    """The call had arrived, and its answer had not come when the daemon ended."""
    stage.configuration["engine"]["drain_timeout"] = "1ms"
    stage.http("h", claim="memory", timeout="60s")
    stage.receiver.on("/h", Answer(never=True))
    daemon = stage.start()
    first, = stage.insert("h", end="")
    stage.receiver.wait_count(1, LIMIT_S, "/h")
    daemon.stop()
    assert stage.row(first)["error_class"] == "daemon.stopped"
    daemon.run("route", "pause", "h")
    assert cancel(stage, first) == f"{first}  cancelled {MAYBE}\n"


def test_a_daemon_that_stops_in_order_leaves_no_doubt(stage):
    stage.http("h", claim="memory")
    daemon = stage.start()
    daemon.run("route", "pause", "h")
    daemon.stop()                   # a route that is paused before the start sends nothing
    daemon.start()
    first, second = stage.insert("h", count=2, end="")
    daemon.stop()
    assert cancel(stage, first) == f"{first}  cancelled\n"
    daemon.start()
    assert cancel(stage, second) == f"{second}  cancelled\n"


def test_versions_before_did_not_record_it(stage):
    stage.http("h", claim="memory")
    daemon = stage.start()
    daemon.run("route", "pause", "h")
    daemon.stop()
    first, = stage.insert("h", end="")
    stage.execute("ALTER TABLE outbox_shards DROP COLUMN abandoned_at")
    stage.execute("DELETE FROM outbox_schema WHERE version = 7")
    daemon.run("migrate")
    later, = stage.insert("h", end="")
    assert cancel(stage, first) == f"{first}  cancelled {MAYBE}\n"
    assert cancel(stage, later) == f"{later}  cancelled\n"
