"""A steady load: application threads that insert due tasks as fast as they can."""

import random
import threading

import pymysql

from .application import Application, Task, new_id
from .ledger import Promise
from .wait import wait_until

THREADS = 2
TRANSACTION = 200       # rows
RECONNECT_S = 0.1       # pause between two tries to reach a database that is down
FULL_S = 0.005          # pause while the backlog is full


class Load:
    """Inserts mixed tasks while the with statement lasts.

    routes: the routes, each as often as it is named; backlog: living rows at which it
    waits.  When the database fails, the transaction is given up and its tasks stay
    promised: whether they were committed says the ledger's table."""

    def __init__(self, stage, routes, *, backlog=5000, max_delay_ms=300):
        self.transactions = 0
        self.failures = 0
        self._stage = stage
        self._routes = routes
        self._backlog = backlog
        self._max_delay_ms = max_delay_ms
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(random.Random(seed),), name="load", daemon=True)
                         for seed in range(THREADS)]
        self._errors = []

    def wait_transactions(self, count, limit_s=60):
        """Wait until so many more transactions are committed."""
        wanted = self.transactions + count
        wait_until(lambda: self._errors or self.transactions >= wanted, limit_s, f"{count} transactions of the load")

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def _run(self, dice):
        try:
            while not self._stopping.is_set():
                try:
                    self._insert_on_one_connection(dice)
                except pymysql.err.OperationalError:
                    self.failures += 1
                    self._stopping.wait(RECONNECT_S)
        except BaseException as error:
            self._errors.append(error)

    def _insert_on_one_connection(self, dice):
        with Application(self._stage.connect(), self._stage.ledger) as application, \
                self._stage.connect() as look:
            while not self._stopping.is_set():
                if self._living(look) >= self._backlog:
                    self._stopping.wait(FULL_S)
                    continue
                application.insert([self._task(dice) for _ in range(TRANSACTION)])
                self.transactions += 1

    def _living(self, connection):
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM outbox")
            return cursor.fetchone()[0]

    def _task(self, dice):
        return Task(Promise(new_id(), dice.choice(self._routes), dice.randbytes(100)),
                    delay_ms=dice.randrange(self._max_delay_ms + 1), priority=dice.choice([1, 5, 9]))
