"""The application of a test: it inserts tasks in transactions of its own.

Each transaction writes outbox rows and, by ledger.COPY, the application's own table,
so that both are committed or neither is.
"""

import dataclasses
import json
import uuid

from . import ledger as books
from .ledger import Promise

COLUMNS = ("route", "payload", "message_id", "headers", "task_key", "priority")


@dataclasses.dataclass(slots=True)
class Task:
    """One row to insert: a promise, and when it is due."""
    promise: Promise
    delay_ms: int = 0
    by_due_at: bool = False     # write due_at instead of delay_ms
    priority: int = 5
    task_key: str = ""


def new_id():
    return str(uuid.uuid4())


def prepare(db):
    """Create the application's table in a database whose outbox is migrated."""
    with db.cursor() as cursor:
        cursor.execute(books.TABLE)


class Application:
    """Inserts on one connection (autocommit off), one thread."""

    def __init__(self, connection, ledger):
        self.connection = connection
        self.ledger = ledger
        connection.autocommit(False)

    def insert(self, tasks):
        """Commit the tasks in one transaction."""
        self.begin(tasks)
        self.commit(tasks)

    def begin(self, tasks):
        """Insert without committing."""
        with self.connection.cursor() as cursor:
            for by_due_at in (False, True):
                some = [task for task in tasks if task.by_due_at == by_due_at]
                if some:
                    cursor.execute(*_statement(some, by_due_at))
            cursor.execute(books.READ_DUE, ([task.promise.message_id for task in tasks],))
            cursor.executemany(books.COPY, cursor.fetchall())

    def commit(self, tasks):
        self.ledger.promise(*(task.promise for task in tasks))
        self.connection.commit()

    def roll_back(self, tasks):
        self.ledger.promise(*(task.promise for task in tasks))
        self.connection.rollback()

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _statement(tasks, by_due_at):
    when = "due_at" if by_due_at else "delay_ms"
    place = "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND" if by_due_at else "%s"
    row = f"({', '.join(['%s'] * len(COLUMNS))}, {place})"
    values = []
    for task in tasks:
        promise = task.promise
        values += [promise.route, promise.body, promise.message_id, json.dumps(promise.headers), task.task_key,
                   task.priority, task.delay_ms * 1000 if by_due_at else task.delay_ms]
    return (f"INSERT INTO outbox ({', '.join(COLUMNS)}, {when}) VALUES " + ", ".join([row] * len(tasks)), values)
