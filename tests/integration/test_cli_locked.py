"""Commands for many tasks of which somebody has locked some: these are passed over, within one bound for the whole command,
and all others are changed."""

import json
import threading
import time

import pytest
from support.command_line import cli
from support.wait import wait_until

__all__ = ["cli"]

HOUR_MS = 3600_000
LOCKED = 64
FREE = 100
BOUND_S = 2         # for all locks of a command
BUSY_S = 15         # a machine that others use too; each lock by itself took two seconds


@pytest.fixture
def running(stage):
    stage.http("hook", history="1h", timeout="60s")
    stage.http("other", history="1h")
    stage.start()
    return stage


def locked(connection, ids):
    cursor = connection.cursor()
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")      # no gaps, where others INSERT
    cursor.execute("BEGIN")
    cursor.execute(f"SELECT 1 FROM outbox WHERE message_id IN ({', '.join(['%s'] * len(ids))}) FOR UPDATE", ids)


def asked(stage, *words, code):
    began = time.monotonic()
    done = stage.daemons[0].run("task", *words, "-o", "json", check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout), time.monotonic() - began


@pytest.mark.parametrize("by", ["ids", "filter"])
@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--at", "+2h"]])
def test_many_locked_tasks_cost_no_more_than_one(running, words, by):
    ids = running.insert("hook", delay_ms=HOUR_MS, count=LOCKED + FREE)
    which = ids if by == "ids" else ["--route", "hook", "--yes"]
    with running.connect() as other:
        locked(other, ids[:LOCKED])
        told, took_s = asked(running, *words, *which, code=75)
        assert (told["matched"], told["changed"], told["locked"]) == (LOCKED + FREE, FREE, LOCKED)
        assert took_s < BOUND_S + BUSY_S
        other.rollback()
    told, _ = asked(running, *words, *ids[:LOCKED], code=0)
    assert told["changed"] == LOCKED


def test_one_task_of_each_shard_is_no_exception(running):
    """A daemon that is asked for one alone tries for two seconds: of a command that happens once."""
    running.execute("INSERT INTO outbox (message_id, route, payload, delay_ms, shard)"
                    " SELECT CONCAT('m', shard), 'hook', '', 3600000, shard FROM outbox_shards WHERE shard < 63")
    ids = [id_ for (id_,) in running.execute("SELECT message_id FROM outbox")]
    with running.connect() as other:
        locked(other, ids)
        told, took_s = asked(running, "cancel", *ids, code=75)
        assert (told["changed"], told["locked"]) == (0, len(ids)) and len(ids) >= 8
        assert took_s < 2 * BOUND_S + BUSY_S
        other.rollback()


def test_tasks_of_other_routes_leave_meanwhile(running):
    ids = running.insert("hook", delay_ms=HOUR_MS, count=LOCKED + FREE)
    daemon = running.daemons[0]
    with running.connect() as other:
        locked(other, ids[:LOCKED])
        command = threading.Thread(target=asked, args=(running, "cancel", "--route", "hook", "--yes"), kwargs={"code": 75})
        command.start()
        wait_until(lambda: running.count() <= LOCKED, 60, "what is free to be cancelled")
        sent = running.insert("other", count=20)
        running.receiver.wait_count(20, 30, "/other")
        command.join()
        other.rollback()
    for id_ in sent:
        running.wait_row(id_, 30, state="done")
    assert daemon.metric("duebox_lateness_seconds_sum", route="other") < 20


def test_a_lock_that_goes_soon_keeps_nothing(running):
    ids = running.insert("hook", delay_ms=HOUR_MS, count=8)
    with running.connect() as other:
        locked(other, ids[:3])
        timer = threading.Timer(0.5, other.rollback)
        timer.start()
        told, _ = asked(running, "cancel", *ids, code=0)
        timer.join()
    assert (told["changed"], told["locked"]) == (8, 0)


@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--at", "+2h"], ["set", "--priority", "9"]])
def test_without_a_daemon_only_the_first_is_waited_for(cli, words):
    """Each step of 500 tasks waited for the locked rows in it."""
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_4000")
    ids = cli.ids()
    with cli.stage.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT 1 FROM outbox WHERE id IN ({', '.join(map(str, ids[::500]))}) FOR UPDATE")
        began = time.monotonic()
        told = cli.json("task", *words, "--route", "crm.push", "--yes", code=75)
        took_s = time.monotonic() - began
        other.rollback()
    assert (told["changed"], told["locked"]) == (3992, 8)
    assert took_s < 5 + BOUND_S + BUSY_S


def test_locked_dead_tasks_keep_no_others_dead(cli):
    """From the fourth on that somebody had locked, none was tried any more."""
    ids = cli.dead(count=20)
    with cli.stage.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT 1 FROM outbox_history WHERE id IN ({', '.join(map(str, ids[::3]))}) FOR UPDATE")
        began = time.monotonic()
        told = cli.json("dead", "retry", "--route", "crm.push", "--yes", code=75)
        took_s = time.monotonic() - began
        other.rollback()
    assert (told["changed"], told["locked"]) == (13, 7)
    assert took_s < 5 + BUSY_S


@pytest.mark.parametrize("words", [["task", "set", "--priority", "9"], ["task", "cancel"], ["dead", "retry"]])
def test_a_locked_table_is_not_waited_for_by_each_task(cli, words):
    """Each id took ten seconds, and one that was to be cancelled twenty."""
    ids = cli.dead(count=8) if words[0] == "dead" else cli.add(count=8)
    with cli.stage.connect() as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLES outbox_audit WRITE")
        began = time.monotonic()
        said = cli.run(*words, *ids)
        took_s = time.monotonic() - began
        cursor.execute("UNLOCK TABLES")
    assert said.returncode == 75 and "Lock wait timeout" in said.stderr, said
    assert took_s < 20 + BUSY_S
    assert cli.audit() == []
