"""Cancelling and rescheduling at random moments around the due time.

A row that plain SQL or a command has taken back must not arrive: at all on routes with
recorded claims and by command, and on routes with claims in memory unless the statement
committed within the gap between reading and handing over, which is bounded, exported as
a metric, and measured here.

DUEBOX_TEST_CANCELS says how many per kind; 200 by default, 1000 with DUEBOX_TEST_LONG=1.
"""

import os
import random
import time
from collections import Counter

import pymysql
import pytest

from support.application import Application, Task, new_id
from support.ledger import Promise, now_us, to_us
from support.scale import scaled
from support.threads import in_threads

COUNT = scaled("DUEBOX_TEST_CANCELS", 200, 1000)
CLI_COUNT = scaled("DUEBOX_TEST_CANCELS_CLI", 40, 100)
THREADS = 4
PACES = (1, 4, 16)      # a machine that is too slow for the times below gets so many times as long
AHEAD_MS = 400          # from insert to the first due time
SPACING_MS = 8          # between due times
AROUND_MS = 15          # a verb comes this much before or after
LATER_MS = 3_000        # how far a row is put off
CLI_EARLY = 8           # processes' time that a command may come earlier: it must start, log in, ask the daemon
EX_NOT_FOUND = 66
DEADLOCK = 1213
KINDS = ["k.memory", "k.recorded", "a.memory", "h.recorded"]


@pytest.fixture
def kinds(stage):
    """A daemon with every kind of route."""
    stage.kafka("k.memory", claim="memory")
    stage.kafka("k.recorded", claim="recorded")
    stage.amqp("a.memory")
    stage.http("h.recorded")
    stage.start()
    stage.consume_kafka("k.memory", "k.recorded")
    stage.consume_amqp("a.memory")
    stage.consume_http()
    return stage


class Verdict:
    """What a verb said about one task."""

    def __init__(self, promise, row_id, due_us):
        self.promise = promise
        self.row_id = row_id
        self.due_us = due_us
        self.taken_back = False     # cancelled or put off, as the verb reported
        self.told_us = 0            # local time when it had reported
        self.new_due_us = None      # of a task that was put off


def insert_spread(stage, routes, count, *, spacing_ms=SPACING_MS, ahead_ms=AHEAD_MS):
    """Tasks with due times a few milliseconds apart; Verdicts by due time."""
    tasks = [Task(Promise(new_id(), routes[i % len(routes)], b"%d" % i, end=""), ahead_ms + i * spacing_ms)
             for i in range(count)]
    with Application(stage.connect(), stage.ledger) as application:
        application.begin(tasks)
        with application.connection.cursor() as cursor:     # after the commit the first ones may be gone already
            cursor.execute("SELECT message_id, id, due_at FROM outbox WHERE message_id IN %s",
                           ([task.promise.message_id for task in tasks],))
            rows = {message_id: (row_id, to_us(due)) for message_id, row_id, due in cursor.fetchall()}
        application.commit(tasks)
    return sorted((Verdict(task.promise, *rows[task.promise.message_id]) for task in tasks),
                  key=lambda verdict: verdict.due_us)


def at_random_moments(verdicts, threads, make_verb, *, early_ms=0, around_ms=AROUND_MS):
    """Run a verb on each verdict somewhere around its due time.  make_verb() is called in
    each thread and returns a function of the verdict that tells whether it succeeded.
    early_ms: how much earlier than that it may come; for verbs that take their time."""
    def work(part, dice):
        verb = make_verb()
        for verdict in part:
            moment = verdict.due_us + 1000 * dice.randrange(-around_ms - early_ms, around_ms)
            time.sleep(max(0, moment - now_us()) / 1e6)     # the moment is the test's input
            verdict.taken_back = verb(verdict)
            verdict.told_us = now_us()
    in_threads(*(lambda i=i: work(verdicts[i::threads], random.Random(i)) for i in range(threads)))


def proves_something(verdicts):
    """Whether the moments were around the due time: neither nearly all in time, nor nearly all too late."""
    taken = sum(verdict.taken_back for verdict in verdicts)
    return len(verdicts) * 0.05 < taken < len(verdicts) * 0.95


def around_due(stage, routes, make_verb):
    """Insert tasks and run a verb on each at a random moment around its due time; Verdicts.  Where the machine cannot
    keep pace, which proves nothing, the same again with more time."""
    verdicts = []
    for pace in PACES:
        some = insert_spread(stage, routes, COUNT, spacing_ms=SPACING_MS * pace, ahead_ms=AHEAD_MS * pace)
        at_random_moments(some, THREADS, make_verb, around_ms=AROUND_MS * pace)
        verdicts += some
        if proves_something(some):
            return verdicts
    taken = sum(verdict.taken_back for verdict in some)
    raise AssertionError(f"{taken} of {len(some)} verbs took the task back, at every pace: nothing is proved")


def sql_verb(stage, statement):
    """Plain SQL; it has taken the task back when it changed a row."""
    def make():
        connection = stage.connect()

        def verb(verdict):
            while True:
                try:
                    with connection.cursor() as cursor:
                        return cursor.execute(statement, (verdict.row_id,)) == 1
                except pymysql.err.OperationalError as error:
                    if error.args[0] != DEADLOCK:       # which applications redo
                        raise
        return verb
    return make


DELETE = "DELETE FROM outbox WHERE id = %s AND state = 'scheduled'"
PUT_OFF = ("UPDATE outbox SET due_at = due_at + INTERVAL {} MICROSECOND"
           " WHERE id = %s AND state = 'scheduled'").format(LATER_MS * 1000)


def settle(stage, verdicts):
    """Wait until everything has ended, and close the books."""
    stage.wait_empty(LATER_MS / 1000 + 30)
    gap = {route: stage.daemons[0].metric("duebox_claim_gap_seconds", route=route) for route in KINDS}
    for verdict in verdicts:
        verdict.promise.copies = 0 if verdict.taken_back and verdict.new_due_us is None else 1
    return gap


def print_counts(title, verdicts):
    taken = sum(verdict.taken_back for verdict in verdicts)
    print(f"\n{title}: {len(verdicts)} verbs, {taken} took the task back, {len(verdicts) - taken} came too late")


def put_off(verdicts):
    for verdict in verdicts:
        if verdict.taken_back:
            verdict.new_due_us = verdict.due_us + LATER_MS * 1000


def early_after_put_off(stage, verdicts):
    """(message id, microseconds) of those that arrived before the new due time."""
    copies = stage.ledger.by_arrival()
    return [(verdict.promise.message_id, verdict.new_due_us - copies[verdict.promise.message_id][0].at_us)
            for verdict in verdicts
            if verdict.new_due_us and copies[verdict.promise.message_id][0].at_us < verdict.new_due_us]


@pytest.mark.parametrize("route", ["k.recorded", "h.recorded"])
def test_sql_delete_on_recorded_claims_has_no_gap(kinds, route):
    verdicts = around_due(kinds, [route], sql_verb(kinds, DELETE))
    settle(kinds, verdicts)
    print_counts(f"DELETE on {route}", verdicts)
    kinds.check()


@pytest.mark.parametrize("route", ["k.recorded", "h.recorded"])
def test_sql_update_on_recorded_claims_has_no_gap(kinds, route):
    verdicts = around_due(kinds, [route], sql_verb(kinds, PUT_OFF))
    put_off(verdicts)
    settle(kinds, verdicts)
    print_counts(f"UPDATE on {route}", verdicts)
    kinds.check()
    assert early_after_put_off(kinds, verdicts) == []


def api_verb(daemon, action, body):
    def make():
        def verb(verdict):
            status, answer = daemon.api("POST", f"/api/v1/tasks/{verdict.promise.message_id}/{action}",
                                        body(verdict))
            assert status in (200, 404, 409), (status, answer)
            return status == 200
        return verb
    return make


def test_cancel_by_api_has_no_gap_on_any_route(kinds):
    verdicts = around_due(kinds, KINDS, api_verb(kinds.daemons[0], "cancel", lambda verdict: {"reason": "test"}))
    settle(kinds, verdicts)
    print_counts("cancel by API", verdicts)
    for verdict in verdicts:
        if verdict.taken_back:
            verdict.promise.end = "cancelled"
    kinds.check()


def test_reschedule_by_api_has_no_gap_on_any_route(kinds):
    def new_due(verdict):
        seconds, micros = divmod(verdict.due_us + LATER_MS * 1000, 1_000_000)
        return {"due_at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{micros:06d}Z"}
    verdicts = around_due(kinds, KINDS, api_verb(kinds.daemons[0], "reschedule", new_due))
    put_off(verdicts)
    settle(kinds, verdicts)
    print_counts("reschedule by API", verdicts)
    kinds.check()
    assert early_after_put_off(kinds, verdicts) == []


def test_cancel_by_command_has_no_gap_on_any_route(kinds):
    """`duebox task cancel`, a process for each."""
    daemon = kinds.daemons[0]
    codes = Counter()

    def make():
        def verb(verdict):
            done = daemon.run("task", "cancel", verdict.promise.message_id, "--yes", "--reason", "test", check=False)
            codes[done.returncode] += 1
            assert done.returncode in (os.EX_OK, os.EX_TEMPFAIL, os.EX_DATAERR, EX_NOT_FOUND), done
            return done.returncode == os.EX_OK
        return verb
    started = time.monotonic()
    daemon.run("task", "list", "--limit", "1")
    early_ms = int((time.monotonic() - started) * CLI_EARLY * 1000)
    verdicts = insert_spread(kinds, KINDS, CLI_COUNT, spacing_ms=4 * SPACING_MS, ahead_ms=AHEAD_MS + early_ms)
    at_random_moments(verdicts, THREADS, make, early_ms=early_ms)
    settle(kinds, verdicts)
    for verdict in verdicts:
        if verdict.taken_back:
            verdict.promise.end = "cancelled"
    print(f"\ncancel by command: {sum(verdict.taken_back for verdict in verdicts)} of"
          f" {len(verdicts)} in time; exit codes {dict(codes)}")
    assert any(verdict.taken_back for verdict in verdicts)
    kinds.check()


@pytest.mark.parametrize("statement", [DELETE, PUT_OFF], ids=["delete", "update"])
def test_sql_on_memory_claims_has_a_bounded_gap(kinds, statement):
    """A task may still leave when the statement commits between reading and handing over; one
    that was put off then comes again at its new time, as the next attempt.
    The record's timestamp is the moment of hand-over, in whole milliseconds."""
    verdicts = around_due(kinds, ["k.memory"], sql_verb(kinds, statement))
    if statement == PUT_OFF:
        put_off(verdicts)
    exported = settle(kinds, verdicts)["k.memory"] * 1e6
    print_counts(f"{statement.split()[0]} on k.memory", verdicts)
    kinds.stop_and_drain()
    first = {}
    for record in kinds.kafka_records():
        at_us = record["timestamp"] * 1000
        first[record_id(record)] = min(at_us, first.get(record_id(record), at_us))
    gaps = gaps_of(verdicts, first)
    print(f"{len(gaps)} fired although a statement had changed the row; widest gap seen {max(gaps, default=0)} us,"
          f" exported {exported:.0f} us")
    assert max(gaps, default=0) <= exported
    kinds.check()


def record_id(record):
    return dict(record["headers"])["duebox-id"].decode()


def gaps_of(verdicts, handed_over):
    """Microseconds from the end of each statement that took a task back to the hand-over
    that happened all the same; those tasks are expected to arrive."""
    gaps = []
    for verdict in verdicts:
        at_us = handed_over.get(verdict.promise.message_id)
        if verdict.taken_back and at_us is not None and (verdict.new_due_us is None or at_us < verdict.new_due_us - 1000):
            verdict.promise.copies = 1 if verdict.new_due_us is None else 2
            gaps.append(at_us - verdict.told_us)
    return gaps
