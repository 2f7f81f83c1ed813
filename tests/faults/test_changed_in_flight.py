"""A change by plain SQL that commits while a copy of the task is at its destination is delivered too: nothing is deleted as
done with a content that never left."""

import threading
import time
import urllib.error
import urllib.request

import pytest

from integration.test_schema import run
from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60
TASKS = 10


def say_done(url):
    urllib.request.urlopen(urllib.request.Request(url, b'{"status": "done"}', method="POST"), timeout=LIMIT_S).close()


UPDATE = "UPDATE outbox SET payload = REPLACE(payload, 'old', 'new')"
UPSERT = ("INSERT INTO outbox (route, payload, dedup_key) SELECT 'h', CONCAT('new', seq), CONCAT('key', seq)"
          f" FROM seq_1_to_{TASKS} ON DUPLICATE KEY UPDATE payload = VALUES(payload)")


@pytest.mark.parametrize("change", [UPDATE, UPSERT], ids=["update", "upsert by dedup_key"])
def test_a_change_of_tasks_at_their_destination_is_delivered(stage, change):
    gate = threading.Event()
    stage.http("h", concurrency=TASKS, claim="memory", timeout="2m")
    stage.receiver.on("/h", Answer(200, after=gate))
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (route, payload, dedup_key) SELECT 'h', CONCAT('old', seq), CONCAT('key', seq)"
                  f" FROM seq_1_to_{TASKS}")
    wait_until(lambda: stage.receiver.requests, LIMIT_S, "some to be in flight")
    stage.execute(change)
    gate.set()
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    come = stage.receiver.bodies()
    assert len(come) == len(set(come))
    assert sorted(body for body in come if body.startswith("new")) == sorted(f"new{i}" for i in range(1, TASKS + 1))
    assert daemon.metric("duebox_changed_in_flight") == sum(body.startswith("old") for body in come)


@pytest.mark.parametrize("example", ["cancel", "cancel_kept"])
def test_a_delete_of_tasks_at_their_destination_is_recorded(stage, example):
    """A DELETE answers with the rows that it removed, and cannot know what had left: that is found out when they are
    settled, and can be read afterwards, also where the rows are kept in the history. How long such a moment may last is
    exported."""
    gate = threading.Event()
    route = "orders.cancel"
    stage.http(route, concurrency=TASKS, claim="memory", timeout="2m")
    stage.receiver.on(f"/{route}", Answer(200, after=gate))
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (route, task_key, payload) SELECT 'orders.cancel', 'order-17', '{}'"
                  f" FROM seq_1_to_{TASKS}")
    wait_until(lambda: stage.receiver.requests, LIMIT_S, "some to be in flight")
    came_at = time.monotonic()
    with stage.connect() as connection, connection.cursor() as cursor:
        run(cursor, example)
    assert stage.count() == 0
    wait_until(lambda: time.monotonic() > came_at + 1, LIMIT_S, "a second to pass")
    gate.set()
    wait_until(lambda: daemon.metric("duebox_inflight_tasks") == 0, LIMIT_S, "nothing to be in flight")
    come = [request.headers["webhook-id"] for request in stage.receiver.requests]
    wait_until(lambda: stage.count("outbox_attempts") == len(come), LIMIT_S, "a line of each copy")
    assert set(stage.execute("SELECT message_id, attempt, outcome FROM outbox_attempts")) == {
        (message_id, 1, "sent_then_removed") for message_id in come}
    assert daemon.metric("duebox_claim_gap_seconds", route=route) >= 1


def test_an_update_of_tasks_whose_result_is_awaited_is_delivered(stage):
    """What the consumer says is about the content that it has had; the new one is sent as another revision."""
    come = []

    def answer(request):
        come.append((request.body.decode(), request.headers["duebox-attempt"], request.headers.get("duebox-revision"),
                     request.headers["duebox-callback"]))
        return Answer(202)
    stage.http("h", claim="memory", timeout="2m", result="expected")
    stage.receiver.on("/h", answer)
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (route, payload) VALUES ('h', 'old')")
    wait_until(lambda: stage.count(where="state = 'awaiting'") == 1, LIMIT_S, "the result to be awaited")
    stage.execute("UPDATE outbox SET payload = 'new'")
    say_done(come[0][3])
    wait_until(lambda: len(come) == 2 and stage.count(where="state = 'awaiting'") == 1, LIMIT_S, "the new content to come")
    say_done(come[1][3])
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert [copy[:3] for copy in come] == [("old", "1", None), ("new", "2", "1")]
    assert daemon.metric("duebox_changed_in_flight") == 1


def test_a_consumer_calls_back_during_the_call_for_a_task_that_was_changed_before(stage):
    """It was changed while it waited, which is no change of what was sent: its result counts at once. The record of its
    publishing comes after the call, so to wait for that would be to wait for oneself."""
    answers = []

    def answer(request):
        try:
            say_done(request.headers["duebox-callback"])
            answers.append(200)
        except urllib.error.HTTPError as error:
            answers.append(error.code)
        return Answer(202)
    stage.http("h", claim="memory", timeout="2m", result="expected", history="1h")
    stage.receiver.on("/h", answer)
    stage.start()
    stage.execute("INSERT INTO outbox (route, payload, delay_ms) VALUES ('h', 'old', 3600000)")
    stage.execute("UPDATE outbox SET payload = 'new', due_at = UTC_TIMESTAMP(6)")
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert answers == [200]
    assert stage.execute("SELECT state, payload, attempt, revision FROM outbox_history") == (("done", b"new", 1, 0),)
