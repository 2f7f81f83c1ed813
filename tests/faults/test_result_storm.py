"""A storm of results: each twice, with its opposite, with wrong types in every member, of attempts that were not or not
yet handed out, while people change, move, cancel and retry the tasks and daemons are killed. Each attempt's result counts
at most once, nobody's content is lost, and the stream goes on (P1, P7)."""

import json
import os
import random

import pymysql

from support.scale import scaled
from support.wait import wait_until

TASKS = scaled("DUEBOX_TEST_STORM", 80, 3000)
LIMIT_S = 240
DEADLOCK = 1213
JUNK = [None, 0, -1, 1e999, 2**70, "", "x" * 5000, [], {}, [[]], True, "1", "\u0000", "é", {"a": {"b": []}}]
MEMBERS = ["id", "attempt", "status", "retry_in_ms", "error", "progress", "checkpoint", "extend_ms", "result"]


def damaged(dice, record):
    """The record with a wrong value in one member."""
    return {**record, dice.choice(MEMBERS): dice.choice(JUNK)}


def answers(dice, message_id, attempt, say):
    """What one consumer says of one copy, in an order of its own."""
    def record(status, number=attempt):
        return {"id": message_id, "attempt": number, "status": status, "retry_in_ms": 50}
    said = [record(say), record(say), record("progress"), record(say, attempt + 1), record("fail", attempt + 7),
            {"id": message_id}, record("nonsense"), record("fail", max(1, attempt - 1))]
    dice.shuffle(said)
    first = said.index(record(say))
    said.insert(dice.randrange(first + 1, len(said) + 1), record("fail" if say == "done" else "done"))
    return said


def test_a_storm_of_results(stage):
    dice = random.Random(int(os.environ.get("DUEBOX_TEST_SEED", "7")))
    stage.amqp("work", result="expected", history="1h", timeout="20s", max_attempts=30,
                retry={"backoff": "20ms", "max": "50ms"})
    address = stage.queue()
    stage.configuration["results"] = [{"via": "rabbit", "queue": address}]
    stage.configuration["engine"]["lease"] = "2s"
    daemons = [stage.start(), stage.start()]
    stage.consume_amqp("work")
    consumer = stage.rabbitmq.connect()
    channel = consumer.channel()

    def tell(record):
        channel.basic_publish("", address, json.dumps(record).encode())
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO outbox (route, payload, message_id) VALUES ('work', 'v0', %s)",
                           [(f"t{i}",) for i in range(TASKS)])
    last = {f"t{i}": "v0" for i in range(TASKS)}       # the content that was reported to be there
    seen, rounds = 0, 0

    def interfere():
        task = f"t{dice.randrange(TASKS)}"
        kind = dice.randrange(5)
        if kind == 0:
            new = f"v{dice.randrange(1 << 30)}"
            with stage.connect() as connection, connection.cursor() as cursor:
                cursor.execute("UPDATE outbox SET payload = %s WHERE message_id = %s AND state = 'awaiting'", (new, task))
                if cursor.rowcount:
                    last[task] = new
        elif kind == 1:
            stage.execute("UPDATE outbox SET move_to_shard = %s WHERE message_id = %s", dice.randrange(8), task)
        elif kind == 2:
            stage.execute("UPDATE outbox SET priority = %s, last_error = 'note' WHERE message_id = %s",
                          dice.randrange(1, 10), task)
        elif kind == 3:
            stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND WHERE message_id = %s"
                          " AND state = 'scheduled'", task)
        elif kind == 4:
            stage.execute("UPDATE outbox SET expires_at = '2100-01-01' WHERE message_id = %s", task)

    def turn():
        nonlocal seen, rounds
        rounds += 1
        arrivals = stage.ledger.arrivals[seen:]
        seen += len(arrivals)
        for copy in arrivals:
            say = dice.choice(["done", "done", "retry", "fail"])
            for record in answers(dice, copy.message_id, copy.attempt, say):
                tell(record)
                if dice.random() < 0.3:
                    tell(damaged(dice, record))
        for _ in range(4):
            try:
                interfere()
            except pymysql.err.OperationalError as error:
                assert error.args[0] == DEADLOCK, error    # the change is gone, as after any deadlock
        if rounds % 8 == 4 and rounds < 50:
            victim = dice.choice(daemons)
            victim.kill9()
            victim.start()
        return stage.count() == 0
    wait_until(turn, LIMIT_S, "all tasks to end", detail=stage.living)

    ended = dict(stage.execute("SELECT message_id, COUNT(*) FROM outbox_history GROUP BY message_id"))
    assert ended == dict.fromkeys(last, 1)
    twice = stage.execute("SELECT message_id, attempt, COUNT(*) FROM outbox_attempts WHERE kind = 'result'"
                          " GROUP BY message_id, attempt HAVING COUNT(*) > 1")
    assert not twice
    contents = {}
    for copy in stage.ledger.arrivals:
        contents.setdefault(copy.message_id, set()).add(copy.body.decode())
    assert {task: body for task, body in last.items() if body not in contents[task]} == {}
    counted = stage.execute("SELECT message_id, attempt FROM outbox_attempts WHERE kind = 'result'")
    assert set(counted) <= {(copy.message_id, copy.attempt) for copy in stage.ledger.arrivals}
    # The stream goes on, and what was said besides is to be found.
    stage.execute("INSERT INTO outbox (route, payload, message_id) VALUES ('work', 'end', 'end')")
    stage.wait_row("end", 60, state="awaiting")
    tell({"id": "end", "attempt": 1, "status": "done"})
    stage.wait_row("end", LIMIT_S, state="done")
    consumer.close()
    # A daemon that was killed had records in its hands, and they come once more: whoever has them, they arrive.
    missing = {}

    def all_are_told():
        kept = [reason for (reason,) in stage.execute("SELECT reason FROM outbox_quarantine")]
        opposites = {reason.split(":")[0] for reason in kept if "the opposite" in reason}
        results = {task: outcome for task, outcome in stage.execute(
            "SELECT message_id, GROUP_CONCAT(outcome) FROM outbox_attempts WHERE kind = 'result' GROUP BY message_id")}
        missing.clear()
        for task in last:
            if task in results and "changed" not in results[task] and task not in opposites:
                missing[task] = (results[task], stage.attempts(task), [why for why in kept if task in why])
        return not missing
    wait_until(all_are_told, LIMIT_S, "what contradicts results to be in the quarantine", detail=lambda: missing)
