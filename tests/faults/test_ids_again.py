"""Row ids that are handed out again, as by TRUNCATE, a restored backup or a promoted replica that lagged: a committed task
is delivered, whatever was in flight under its id before."""

import threading

from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60
TASKS = 10


def insert(stage, name):
    stage.execute("INSERT INTO outbox (route, payload, shard)"
                  f" SELECT 'h', CONCAT('{name}', seq), 0 FROM seq_1_to_{TASKS}")


def test_tasks_with_the_ids_of_those_in_flight_are_delivered(stage):
    gate = threading.Event()
    stage.http("h", concurrency=TASKS, claim="memory", timeout="2m")
    stage.receiver.on("/h", Answer(200, after=gate))
    daemon = stage.start()
    insert(stage, "old")
    wait_until(lambda: stage.receiver.requests, LIMIT_S, "some to be in flight")
    stage.execute("TRUNCATE outbox")
    insert(stage, "new")
    assert stage.execute("SELECT MIN(id), MAX(id) FROM outbox") == ((1, TASKS),)
    gate.set()
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    come = stage.receiver.bodies()
    assert len(come) == len(set(come))
    assert sorted(body for body in come if body.startswith("new")) == sorted(f"new{i}" for i in range(1, TASKS + 1))
    assert daemon.metric("duebox_identity_mismatches") > 0
    assert "DUEBOX-OTHER-TASK" in daemon.log_tail(1000)
