"""The server refuses what is to be kept of one route's tasks: no partition takes them, or a trigger turns them away.

Outcomes of all routes used to wait for minutes while it was found out, row by row, what is refused: each row that no
partition took was tried twenty times, with pauses.
"""

import time

import pytest

from support.wait import wait_until

LONG, SHORT = "30d", "1h"       # how long the history of a route is kept
DAY_S = 86400


@pytest.fixture
def two(stage):
    """Route `refused` keeps its tasks for longer than there will be partitions, and route `other` does not."""
    stage.kafka("refused", history=LONG)
    stage.kafka("other", history=SHORT)
    stage.start()
    stage.consume_kafka("refused", "other")
    return stage


def partition_up_to(stage, days):
    """outbox_history takes what is kept for so many days, and nothing beyond."""
    end = time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * DAY_S))
    stage.execute("ALTER TABLE outbox_history PARTITION BY RANGE COLUMNS (keep_until)"
                  f" (PARTITION p_now VALUES LESS THAN ('{end}'))")


def add_partition(stage):
    """What the log tells the operator to do."""
    stage.execute("ALTER TABLE outbox_history ADD PARTITION (PARTITION p_later VALUES LESS THAN (MAXVALUE))")


def refuse(stage, table, condition):
    stage.execute(f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW BEGIN IF {condition} THEN"
                  " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no thanks'; END IF; END")


def settled(stage, daemon, message_id, limit_s=20):
    stage.wait_row(message_id, limit_s, state="done")
    assert daemon.alive()


def test_other_routes_go_on_where_no_partition_takes_one(two):
    daemon = two.daemons[0]
    partition_up_to(two, 3)
    two.insert("refused", count=2000)
    for _ in range(20):
        settled(two, daemon, *two.insert("other", kept=True))
    two.wait_empty(60)
    assert two.count("outbox_history", "route = 'refused'") == 0
    said = daemon.wait_log("DUEBOX-SETTLE-REDUCED")["msg"]
    assert "route=refused" in said and "no partition" in said and "ADD PARTITION" in said
    assert daemon.metric("duebox_settled_reduced_total") == 2000
    # The operator adds one: what ends from now on is kept.
    add_partition(two)
    def kept():
        two.insert("refused", end="")
        return two.count("outbox_history", "route = 'refused'")
    wait_until(kept, 20, "a task that is in the history again")
    assert "route=refused" in daemon.wait_log("DUEBOX-SETTLE-WHOLE")["msg"]
    before = two.count("outbox_history", "route = 'refused'")
    two.wait_empty(20)
    assert two.count("outbox_history", "route = 'refused'") >= before
    two.check()


def test_a_trigger_that_refuses_every_tenth_row_costs_these_alone(two):
    """The nine others keep their history, and the other route its pace."""
    daemon = two.daemons[0]
    refuse(two, "outbox_history", "NEW.route = 'refused' AND MOD(NEW.id, 10) = 0")
    two.insert("refused", count=200, end="")
    for _ in range(10):
        settled(two, daemon, *two.insert("other", kept=True))
    two.wait_empty(60)
    assert two.count("outbox_history", "route = 'refused'") == 180
    two.check()


def test_keys_that_the_history_has_no_room_for_stop_no_route(two):
    """A client with its CHECKs switched off writes keys that fit the outbox alone, and others between that fit both. Each
    of the first was written by itself, some tens a second, and without the line of its attempt."""
    daemon = two.daemons[0]
    with two.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET check_constraint_checks = 0")
        cursor.execute("INSERT INTO outbox (route, payload, priority, task_key)"
                       " SELECT 'refused', 'x', 10, REPEAT('k', IF(seq % 3, 256, 1)) FROM seq_1_to_6000")
    for _ in range(10):
        settled(two, daemon, *two.insert("other", kept=True))
    two.wait_empty(60)
    dead = "route = 'refused' AND state = 'dead' AND error_class = 'row.unreadable' AND LENGTH(task_key) = "
    assert (two.count("outbox_history", dead + "255"), two.count("outbox_history", dead + "1")) == (4000, 2000)
    assert "do not take" in daemon.wait_log("DUEBOX-SETTLE-REDUCED")["msg"]
    two.check()


def test_a_history_that_takes_nothing_loses_and_repeats_no_task(stage):
    """Done tasks end without; dead ones stay, are seen to, and are not sent again; the partition ends it."""
    stage.kafka("good", history=LONG)
    stage.http("bad", history=LONG, max_attempts=1, retry={"backoff": "1s"})
    stage.receiver.on("/bad", 500)
    daemon = stage.start()
    stage.consume_kafka("good")
    partition_up_to(stage, -3)
    stage.execute("INSERT INTO outbox (route, payload) SELECT 'bad', 'x' FROM seq_1_to_5")
    stage.insert("good", count=50)
    stage.wait_empty(60, "route = 'good'")
    wait_until(lambda: daemon.metric("duebox_settle_stuck_tasks") == 5, 30, "5 outcomes that are refused",
               detail=daemon.log_tail)
    said = daemon.wait_log("DUEBOX-SETTLE-REFUSED")["msg"]
    assert "route=bad" in said and "ADD PARTITION" in said
    status, ready = daemon.api("GET", "/readyz")
    assert status == 503 and "refuse" in str(ready)
    assert stage.count() == 5
    add_partition(stage)
    stage.wait_empty(120)
    assert stage.count("outbox_history", "route = 'bad' AND state = 'dead'") == 5
    assert len(stage.receiver.requests) == 5        # none was sent again
    stage.check()


def test_lines_of_attempts_that_are_refused_stop_no_other_route(stage):
    stage.kafka("refused", every_attempt=True)
    stage.kafka("other", every_attempt=True, history=SHORT)
    daemon = stage.start()
    stage.consume_kafka("refused", "other")
    refuse(stage, "outbox_attempts", "NEW.route = 'refused'")
    stage.insert("refused", count=1000)
    for _ in range(10):
        settled(stage, daemon, *stage.insert("other", kept=True))
    stage.wait_empty(60)
    assert stage.count("outbox_attempts", "route = 'refused'") == 0
    assert stage.count("outbox_attempts", "route = 'other'") == 10
    stage.check()


def test_results_go_on_where_no_partition_takes_a_task(stage):
    """The answers of all routes waited for ever behind one whose task no partition took."""
    stage.kafka("refused", history=LONG, result="expected")
    stage.kafka("other", history=SHORT, result="expected")
    stage.configuration["results"] = [{"via": "bus", "topic": stage.topic(1), "group": stage.name}]
    daemon = stage.start()
    partition_up_to(stage, 3)
    stage.consume_kafka("refused", "other", answer=lambda record: {"status": "done"})
    stage.insert("refused", count=20)
    for message_id in stage.insert("other", count=20, kept=True):
        settled(stage, daemon, message_id, 60)
    stage.wait_empty(60)
    assert stage.count("outbox_history", "route = 'refused'") == 0
    stage.check()
