"""An application is refused INSERTs by keys that are there already, and keeps its transaction open: an importer with
INSERT IGNORE and dedup_keys, say.  The server locks what it found, so these rows cannot be settled, or not claimed.
They wait; whatever else their route has goes on (P8), and nothing is lost or has come twice (P1, P4).
"""

import contextlib

import pytest

from support.application import Application, Task, new_id
from support.ledger import Promise
from support.stage import stage_on_each_server as stage  # noqa: F401

LIMIT_S = 60
PLACES = 8              # of the route
LOCKED = 10 * PLACES
MANY = 5000
SENT_MAX = 4 * PLACES   # locked ones that may be sent before they are known to be locked


@contextlib.contextmanager
def transaction(stage):
    """Open until the end of the block, and then rolled back."""
    with contextlib.closing(stage.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        yield cursor
        connection.rollback()


def insert(stage, locked):
    """Tasks with dedup_keys, and others that are due after them; returns the ids of both.  All are committed before the
    rows of the first are locked: no INSERT passes the gaps that are locked with them."""
    first = stage.insert("work", b"locked", delay_ms=5000, count=locked)
    stage.execute("UPDATE outbox SET dedup_key = CONCAT('key-', message_id)")
    return first, stage.insert("work", b"other", delay_ms=7000, count=LOCKED)


def others_are_through(stage, locked, others):
    listed = ", ".join(f"'{message_id}'" for message_id in others)
    stage.wait_empty(LIMIT_S, f"message_id IN ({listed})")
    assert stage.count(where="due_at <= UTC_TIMESTAMP(6)") == len(locked)
    sent = len(stage.ledger.arrived_ids() - set(others))
    assert sent <= SENT_MAX, f"{sent} that cannot be settled were sent"


@pytest.mark.parametrize("claim", ["memory", "recorded"])
@pytest.mark.parametrize("key", ["dedup_key", "message_id", "id"])
def test_a_route_goes_on_beside_rows_that_refused_inserts_have_locked(stage, key, claim):
    stage.http("work", claim=claim, concurrency=PLACES)
    stage.consume_http()
    stage.start()
    locked, others = insert(stage, LOCKED)
    with transaction(stage) as cursor:
        for message_id in locked:
            value = stage.row(message_id)[key]
            cursor.execute(f"INSERT IGNORE INTO outbox (route, payload, {key}) VALUES ('work', 'again', %s)", (value,))
            assert cursor.rowcount == 0
        others_are_through(stage, locked, others)
    stage.wait_empty(LIMIT_S)
    stage.check()


WAYS = {"rows": "SELECT id FROM outbox FORCE INDEX (PRIMARY) WHERE dedup_key LIKE 'key-%' FOR UPDATE",
        "keys": "SELECT dedup_key FROM outbox FORCE INDEX (ux_dedup_key) WHERE dedup_key LIKE 'key-%' LOCK IN SHARE MODE"}


@pytest.mark.parametrize("claim", ["memory", "recorded"])
@pytest.mark.parametrize("way", WAYS)
def test_a_route_goes_on_behind_thousands_of_locked_rows(stage, way, claim):
    """More than are read at a time, all due before the others."""
    stage.http("work", claim=claim, concurrency=PLACES)
    stage.consume_http()
    stage.start()
    locked, others = insert(stage, MANY)
    with transaction(stage) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")    # rows, and no gaps
        assert cursor.execute(WAYS[way]) == len(locked)
        others_are_through(stage, locked, others)
        late = Task(Promise(new_id(), "work", b"late"), delay_ms=-5000, by_due_at=True)     # behind what was read
        with Application(stage.connect(), stage.ledger) as application:
            application.insert([late])
        stage.wait_empty(LIMIT_S, f"message_id = '{late.promise.message_id}'")
    stage.wait_empty(LIMIT_S)
    stage.check()
