"""People who change tasks with plain SQL at any moment, and note what the database told them."""

import contextlib
import dataclasses
import json

import pymysql

from support.ledger import now_us

from .world import RECONNECT_S

PACE_S = 0.03
RECENT = 400            # they change what was inserted not long ago
UPDATE_BODY = "UPDATE outbox SET payload = %s WHERE message_id = %s AND state = 'scheduled'"
UPDATE_DUE = "UPDATE outbox SET due_at = FROM_UNIXTIME(0) + INTERVAL %s MICROSECOND" \
             " WHERE message_id = %s AND state = 'scheduled'"
DELETE = "DELETE FROM outbox WHERE message_id = %s AND state = 'scheduled'"


@dataclasses.dataclass
class Change:
    """One statement. sure: the database reported one changed row, and no failover has undone it;
    None: nobody knows."""
    message_id: str
    verb: str                   # body, due, delete
    before_us: int              # when it was sent
    after_us: int = 0           # when the answer to its COMMIT was there
    sure: object = None
    body: bytes = b""
    due_us: int = 0


def operate(world, dice):
    """The body of their thread. The session is in UTC, autocommit."""
    while not world.stopped():
        with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InterfaceError):
            with world.connect(autocommit=True, init_command="SET time_zone = '+00:00'") as connection:
                while not world.stopped():
                    change_one(world, connection, dice)
                    world.pause(PACE_S)
        world.pause(RECONNECT_S)


def change_one(world, connection, dice):
    recent = list(world.book.tasks.values())[-RECENT:]
    if not recent:
        return
    task = dice.choice(recent)
    verb = "body" if task.route == "o" else dice.choice(("body", "due", "delete"))
    change = Change(task.message_id, verb, now_us())
    if verb == "body":
        change.body = json.dumps({"id": task.message_id, "version": change.before_us}).encode()
        statement, values = UPDATE_BODY, (change.body, task.message_id)
    elif verb == "due":
        change.due_us = change.before_us + dice.randrange(2_000_000)
        statement, values = UPDATE_DUE, (change.due_us, task.message_id)
    else:
        statement, values = DELETE, (task.message_id,)
    world.changes.append(change)        # before it is sent: its outcome may stay unknown
    with connection.cursor() as cursor:
        changed = cursor.execute(statement, values)
    change.after_us = now_us()
    change.sure = changed == 1
