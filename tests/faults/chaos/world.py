"""What a round of chaos runs: servers, daemons, the application's load, and the consumers.

Every transaction of the application writes its tasks also into `truth`, a table of its own: what was committed says
the database, also after a failover that loses the last commits.
"""

import contextlib
import dataclasses
import itertools
import json
import random
import threading
import uuid

import pymysql

from support.consumers import HttpArrivals, KafkaArrivals
from support.daemon import Daemon
from support.failover import FailoverPair
from support.ledger import now_us, to_us
from support.servers.http_receiver import Answer
from support.wait import wait_until

LEASE_S = 3
CREDIT = 600            # what both daemons together may have in flight
DATABASE = "chaos"
USERS = {"duebox": "daemon-password", "app": "app-password"}
RATE = 250              # tasks a second, about
RECONNECT_S = 0.1
TRUTH = """
CREATE TABLE truth (
  message_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, due_at DATETIME(6) NOT NULL
) ENGINE = InnoDB"""
READ_DUE = "SELECT message_id, COALESCE(due_at, created_at + INTERVAL delay_ms * 1000 MICROSECOND) FROM outbox" \
           " WHERE message_id IN %s"

_rounds = itertools.count(1)


@dataclasses.dataclass
class Task:
    """One task as the application wanted it."""
    message_id: str
    route: str
    body: bytes
    delay_ms: int
    key: str = ""               # order_key
    number: int = 0             # in its order_key
    wishes: str = "done"        # what its consumer answers: done, again (once, then done), fail
    sent_us: int = 0            # right before COMMIT was sent


class Book:
    """What was tried, what arrived. list.append and dict assignment are atomic."""

    def __init__(self):
        self.tasks = {}         # message id -> Task, also of transactions that failed
        self.arrivals = []
        self.lost = {}          # message id -> due: committed, and lost by a failover
        self.doubtful = set()   # order keys with an insert whose outcome the application does not know

    def arrive(self, arrival):
        self.arrivals.append(arrival)


class World:
    """with World(kafka, folder, seed) as world: everything runs."""

    def __init__(self, kafka, receiver, folder, seed):
        self.kafka = kafka
        self.receiver = receiver
        self.folder = folder
        self.dice = random.Random(seed)
        self.book = Book()
        self.pair = FailoverPair()
        self.daemons = []
        self.changes = []                   # of operators.py
        self.faults = []                    # of trouble.py
        self._stopping = threading.Event()
        self._threads = []
        self._errors = []
        self._stack = contextlib.ExitStack()
        self._seen = {}                     # message id -> copies that its consumer has answered
        number = next(_rounds)
        self.topics = {route: kafka.create_topic(f"chaos-{seed}-{number}-{route}-{uuid.uuid4().hex[:8]}", 2)
                       for route in ("k", "o", "r", "answers")}

    # -- life ---------------------------------------------------------------------------

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.pair)
            self._make_database()
            self._make_consumers(stack)
            for name in ("left", "right"):
                daemon = Daemon(self.folder / name, self._configuration(name), name=name)
                if not self.daemons:
                    self._migrate(daemon)
                self.daemons.append(daemon)
                daemon.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind, *_):
        with self._stack:
            self._stopping.set()
            for thread in self._threads:
                thread.join()
            for daemon in self.daemons:
                if kind is not None and daemon.alive():
                    daemon.resume()
                    daemon.kill9()

    def _make_database(self):
        self.pair.primary.create_database(DATABASE)
        for user, password in USERS.items():
            self.pair.primary.create_user(user, password, [f"ALL ON {DATABASE}.*"])

    def _migrate(self, daemon):
        daemon.migrate()
        self.execute(TRUTH)

    def _configuration(self, name):
        short = {"backoff": "100ms", "max": "300ms"}
        return {
            "database": {"host": "127.0.0.1", "port": self.pair.port, "user": "duebox", "password": USERS["duebox"],
                         "name": DATABASE},
            "plugins": {"bus": {"module": "kafka", "brokers": self.kafka.bootstrap},
                        "hooks": {"module": "http", "allow_private": True}},
            "routes": {
                "k": {"via": "bus", "topic": self.topics["k"], "concurrency": 100},
                "o": {"via": "bus", "topic": self.topics["o"], "key": "{task_key}", "concurrency": 100, "retry": dict(short)},
                "r": {"via": "bus", "topic": self.topics["r"], "result": "expected", "reply_to": self.topics["answers"],
                      "timeout": "60s", "retry": dict(short), "max_attempts": 1000, "history": "1h", "concurrency": 80},
                "h": {"via": "hooks", "url": f"{self.receiver.url}/h", "timeout": "10s", "retry": dict(short),
                      "max_attempts": 1000, "concurrency": 20, "history": "1h"}},
            "results": [{"via": "bus", "topic": self.topics["answers"], "group": "chaos"}],
            # The programme kills far more often than anybody's daemons crash: no row is poison here.
            "engine": {"instance": name, "lease": f"{LEASE_S}s", "max_recoveries": 1000},
            "log": {"level": "info"}}

    # -- consumers ------------------------------------------------------------------------

    def _make_consumers(self, stack):
        book = self.book
        topics = [self.topics[route] for route in ("k", "o")]
        self._consumers = [stack.enter_context(KafkaArrivals(self.kafka.bootstrap, topics, book)),
                           stack.enter_context(KafkaArrivals(self.kafka.bootstrap, [self.topics["r"]], book,
                                                             self._answer)),
                           stack.enter_context(HttpArrivals(self.receiver, book))]
        self.receiver.on("/h", self._respond)

    def _wish(self, message_id):
        """What the consumer says to this copy."""
        task = self.book.tasks.get(message_id)
        first = self._seen.setdefault(message_id, 0) == 0
        self._seen[message_id] += 1
        if task is None or task.wishes == "done" or (task.wishes == "again" and not first):
            return "done"
        return "retry" if task.wishes == "again" else "fail"

    def _answer(self, arrival):
        return {"status": self._wish(arrival.message_id)}

    def _respond(self, request):
        wish = self._wish(request.headers["webhook-id"])
        slow_s = self.dice.random() * 1.5 if self.dice.random() < 0.03 else 0     # it is in flight when something fails
        return Answer(503 if wish == "retry" else 200, b'{"status": "fail"}' if wish == "fail" else b"",
                      {"Content-Type": "application/json"}, delay_s=slow_s)

    def drain(self):
        """Take what is still at the destinations; the daemons have stopped."""
        for consumer in self._consumers:
            consumer.drain()

    # -- the application --------------------------------------------------------------------

    def connect(self, user="app", **options):
        """Through the address that moves with a failover."""
        return pymysql.connect(host="127.0.0.1", port=self.pair.port, user=user, password=USERS[user],
                               database=DATABASE, charset="utf8mb4",
                               **{"connect_timeout": 5, "read_timeout": 20, "write_timeout": 20, **options})

    def execute(self, statement, *values):
        """Directly at the primary, as root."""
        return self.pair.primary.execute(statement, *values, db=DATABASE)

    def run_thread(self, body):
        """body(world, dice) until stopped(); its exception fails the round."""
        def run():
            try:
                body(self, random.Random(self.dice.random()))
            except BaseException as error:
                self._errors.append(error)
        thread = threading.Thread(target=run, name=body.__name__, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stopped(self):
        return self._stopping.is_set()

    def pause(self, seconds):
        """The length of a fault, or the pace of a load; nothing is judged by it."""
        return self._stopping.wait(seconds)

    def stop_threads(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._stopping.clear()
        if self._errors:
            raise self._errors[0]

    def check_threads(self):
        if self._errors:
            raise self._errors[0]

    def task(self, dice, keys):
        route = dice.choice("kkkhor")
        delay = dice.choice((0, 0, dice.randrange(400), dice.randrange(3000)))
        message_id = str(uuid.uuid4())
        body = json.dumps({"id": message_id, "version": 0}).encode()
        task = Task(message_id, route, body, delay)
        if route in "hr":
            task.wishes = dice.choice(("done",) * 8 + ("again", "fail"))
        if route == "o":
            task.key, task.delay_ms = dice.choice(list(keys)), 0
            task.number = keys[task.key] = keys[task.key] + 1
        return task

    def insert(self, connection, tasks, hold_s=0):
        """One transaction; hold_s: it stays open for so long."""
        rows = [value for task in tasks
                for value in (task.route, task.body, task.message_id, task.key, task.key, task.delay_ms)]
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO outbox (route, payload, message_id, task_key, order_key, delay_ms) VALUES "
                           + ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(tasks)), rows)
            cursor.execute(READ_DUE, ([task.message_id for task in tasks],))
            cursor.executemany("INSERT INTO truth (message_id, due_at) VALUES (%s, %s)", cursor.fetchall())
        if hold_s:
            self.pause(hold_s)
        stamp = now_us()
        for task in tasks:
            task.sent_us = stamp
            self.book.tasks[task.message_id] = task
        connection.commit()

    def load(self, _world, dice):
        """The body of the application's thread."""
        keys = {}
        while not self.stopped():
            with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InterfaceError):
                with self.connect() as connection:
                    keys = {f"key-{uuid.uuid4().hex[:8]}": 0 for _ in range(8)}
                    while not self.stopped():
                        tasks = [self.task(dice, keys) for _ in range(dice.randrange(1, 20))]
                        # Of a transaction that fails nobody knows whether it was committed: its keys end here.
                        self.book.doubtful |= {task.key for task in tasks}
                        self.insert(connection, tasks)
                        self.book.doubtful -= {task.key for task in tasks}
                        self.pause(len(tasks) / RATE)
            self.pause(RECONNECT_S)

    # -- at the end ---------------------------------------------------------------------------

    def committed(self):
        """message id -> due time, by the present primary."""
        return {message_id: to_us(due) for message_id, due in self.execute("SELECT message_id, due_at FROM truth")}

    def living(self):
        rows = self.execute("SELECT route, state, COUNT(*), MIN(next_at), MAX(attempt), MAX(last_error), MIN(id)"
                            " FROM outbox GROUP BY route, state")
        tails = "\n".join(daemon.log_tail(25) for daemon in self.daemons)
        return "living rows: " + ("; ".join(map(str, rows)) or "none") + f"\n{tails}"

    def wait_empty(self, limit_s):
        wait_until(lambda: self.execute("SELECT COUNT(*) FROM outbox")[0][0] == 0, limit_s, "an empty outbox",
                   detail=self.living)
