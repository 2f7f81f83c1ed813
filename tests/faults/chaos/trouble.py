"""The faults of a round, one function each. Each waits until its trouble is over and leaves the world whole."""

import contextlib
import dataclasses

import pymysql

from support.ledger import now_us

from .world import DATABASE, LEASE_S

REFUSAL = """
CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW
BEGIN
  IF MOD(NEW.id, 5) = 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the programme'; END IF;
END"""


@dataclasses.dataclass
class Fault:
    name: str
    start_us: int
    end_us: int = 0


def kill_daemon(world, dice):
    victim = dice.choice(world.daemons)
    victim.kill9()
    victim.start(wait_ready=False)


def freeze_daemon(world, dice):
    """Past its lease: the other one takes over, then it wakes up."""
    victim = dice.choice(world.daemons)
    victim.pause()
    world.pause(LEASE_S * 1.4)
    victim.resume()


def kill_server(world, _dice):
    world.pair.primary.kill9()
    world.pair.primary.start()


def kill_connections(world, dice):
    for number, user in world.pair.primary.execute("SELECT ID, USER FROM information_schema.PROCESSLIST"):
        if user in ("duebox", "app") and dice.random() < 0.7:
            with contextlib.suppress(pymysql.err.MySQLError):      # it may have ended by itself
                world.execute(f"KILL {number}")


def flip_read_only(world, dice):
    world.pair.primary.set_read_only(True)
    world.pause(dice.random() * 1.5)
    world.pair.primary.set_read_only(False)


def lock_rows(world, dice):
    with world.pair.primary.connect(DATABASE, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM outbox ORDER BY RAND() LIMIT 40")
        for number in sorted(number for number, in cursor.fetchall()):
            with contextlib.suppress(pymysql.err.OperationalError):     # a deadlock: it holds no others then
                cursor.execute("SELECT id FROM outbox WHERE id = %s FOR UPDATE", (number,))
        world.pause(0.5 + dice.random() * 2)
        connection.rollback()


def lock_table(world, dice):
    with world.pair.primary.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {dice.choice(('outbox_history', 'outbox_attempts', 'outbox_instances'))} WRITE")
        world.pause(dice.random() * 1.5)
        cursor.execute("UNLOCK TABLES")


def freeze_broker(world, dice):
    world.kafka.pause()
    world.pause(0.5 + dice.random() * 3)
    world.kafka.resume()


def late_commit(world, dice):
    """A transaction that is open for seconds: what is due meanwhile becomes visible late."""
    with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InterfaceError), world.connect() as connection:
        world.insert(connection, [plain_task(world, dice) for _ in range(20)],
                     hold_s=0.5 + dice.random() * 2)


def plain_task(world, dice):
    """One without an order_key: those belong to the thread of the load."""
    while True:
        task = world.task(dice, {"": -1})
        if task.route != "o":
            return task


def fail_over(world, dice):
    """To a replica that lacks the last commits. What people changed meanwhile is lost too."""
    since = now_us()                    # what was committed before is at the replica
    world.pair.wait_replicated()
    world.pair.stop_receiving()
    world.pause(0.2 + dice.random())
    before = world.pair.fail_over(
        lambda old: dict(old.execute("SELECT message_id, due_at FROM truth", db=DATABASE)))
    kept = world.committed()
    world.book.lost.update({message_id: due for message_id, due in before.items() if message_id not in kept})
    for change in world.changes:
        if change.after_us == 0 or change.after_us > since:
            change.sure = None


def refuse_writes(world, dice):
    """The server refuses some rows of the history."""
    world.execute(REFUSAL)
    world.pause(dice.random() * 2)
    world.execute("DROP TRIGGER refuse")


def fired(world, fault, dice):
    """Lets one fault happen and notes it."""
    noted = Fault(fault.__name__, now_us())
    world.faults.append(noted)
    fault(world, dice)
    noted.end_us = now_us()


ALL = (kill_daemon, freeze_daemon, kill_server, kill_connections, flip_read_only, lock_rows, lock_table, freeze_broker,
       late_commit, fail_over, refuse_writes)
# These stop nothing that goes to an HTTP hook, except what they hold themselves.
ONLY_KAFKA = {"freeze_broker"}
