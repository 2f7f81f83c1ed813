"""What one test plays on: a database with the outbox, destinations under names of its
own on the shared servers, any number of daemons, and a ledger.

    def test_it(stage):
        stage.kafka("orders", topic=stage.topic(), history="1h")
        daemon = stage.start()
        stage.insert("orders", b"{}")

Fixtures: `stage`, `stage_on_each_server` and `remote`.  A conftest.py, or a test, imports them
from here.  At the end all daemons are stopped, and the test fails when one ended badly.
"""

import contextlib
import copy
import itertools
import os
import re

import pytest

from .application import Application, Task, new_id, prepare
from .consumers import AmqpArrivals, HttpArrivals, KafkaArrivals
from .daemon import Daemon
from .ledger import Ledger, Promise
from .servers.mysql import QUICK, MySQL, start_or_skip
from .tcp_proxy import TcpProxy
from .wait import wait_until

# That of the product. A machine that stands still for longer than a lease is a fault, after which another daemon may
# send a copy: only tests that wait for a lease to run out have a short one.
LEASE = "10s"
NAME_CHARACTERS = 30
LATER = pytest.mark.skipif("DUEBOX_TEST_ENGINES" not in os.environ, reason="scripts/test --engines")

_count = itertools.count(1)


@pytest.fixture
def stage(request, tmp_path):
    with Stage(request, tmp_path) as it:
        yield it


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=LATER)])
def stage_on_each_server(request, tmp_path):
    server = start_or_skip(MySQL, extra_args=QUICK) if request.param == "mysql" else None
    with Stage(request, tmp_path, server) as it:
        yield it
    if server:
        server.stop()


REMOTE_PASSWORD = "right"


@pytest.fixture
def remote(stage):
    """A stage whose daemons reach the database over TCP through a proxy, as a user with rights on its own tables only."""
    user = f"user_{stage.database[-27:]}"     # 32 characters are what MySQL takes
    stage.mariadb.create_user(user, REMOTE_PASSWORD, [f"ALL ON `{stage.database}`.*"])
    with TcpProxy(stage.mariadb.port) as proxy:
        stage.configuration["database"] = {
            "host": "127.0.0.1", "port": proxy.port, "user": user, "password": REMOTE_PASSWORD,
            "name": stage.database, "connect_timeout": "2s", "read_timeout": "2s"}
        stage.configuration["engine"]["lease"] = "2s"
        stage.proxy, stage.user = proxy, user
        yield stage


class Stage:
    program = None      # the words that start another duebox than that of the build

    def __init__(self, request, folder, server=None):
        self._request = request
        self.folder = folder
        short = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))[:NAME_CHARACTERS].strip("-")
        self.name = f"{short}-{next(_count)}".lower()
        self.mariadb = server or request.getfixturevalue("mariadb")
        self.database = self.mariadb.create_database(self.name)
        self.ledger = Ledger()
        self.daemons = []
        self._consumers = []
        self._names = 0
        self._stack = contextlib.ExitStack()
        self.configuration = {
            "database": {"socket": str(self.mariadb.socket), "user": "root", "name": self.database},
            "plugins": {}, "routes": {}, "results": [],
            "engine": {"lease": LEASE},
            "log": {"level": "debug"}}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        failed = kind is not None
        with self._stack:
            for daemon in self.daemons:
                if failed and daemon.alive():
                    daemon.resume()
                    daemon.kill9()
                elif not failed:
                    daemon.stop()

    # -- servers and destinations -------------------------------------------------

    @property
    def kafka_server(self):
        return self._request.getfixturevalue("kafka")

    @property
    def rabbitmq(self):
        return self._request.getfixturevalue("rabbitmq")

    @property
    def receiver(self):
        return self._request.getfixturevalue("http_receiver")

    def topic(self, partitions=2):
        """A new topic."""
        return self.kafka_server.create_topic(self._new_name(), partitions)

    def queue(self):
        """A new durable queue."""
        return self.rabbitmq.declare_queue(self._new_name())

    def _new_name(self):
        self._names += 1
        return f"{self.name}-{self._names}"

    # -- configuration ------------------------------------------------------------

    def plugin(self, name, **options):
        self.configuration["plugins"].setdefault(name, options)

    def route(self, name, **options):
        self.configuration["routes"][name] = options
        return name

    def kafka(self, route, **options):
        """A route to Kafka; without `topic`, to a new one."""
        self.plugin("bus", module="kafka", brokers=self.kafka_server.bootstrap)
        return self.route(route, via="bus", **{"topic": options.get("topic") or self.topic(), **options})

    def amqp(self, route, **options):
        """A route to a queue of RabbitMQ; without `routing_key`, to a new one."""
        self.plugin("rabbit", module="amqp", url=self.rabbitmq.url)
        return self.route(route, via="rabbit", **{"routing_key": options.get("routing_key") or self.queue(),
                                                  **options})

    def http(self, route, **options):
        """A route to the HTTP receiver, below the path /<route>."""
        self.plugin("hooks", module="http", allow_private=True)
        return self.route(route, via="hooks", **{"url": f"{self.receiver.url}/{route}", **options})

    def destination(self, route):
        """The topic, queue or URL of a route."""
        options = self.configuration["routes"][route]
        return options.get("topic") or options.get("routing_key") or options["url"]

    # -- daemons --------------------------------------------------------------------

    def daemon(self, name=None, *, migrate=True, **changes):
        """A daemon that is not started, with the configuration so far; the first one
        migrates.  changes: sections that are merged into it."""
        name = name or f"duebox-{len(self.daemons) + 1}"
        configuration = copy.deepcopy(self.configuration)
        configuration["engine"].setdefault("instance", name)
        for section, values in changes.items():
            configuration[section] = {**configuration.get(section, {}), **values}
        daemon = Daemon(self.folder / name, configuration, name=name, program=self.program)
        if migrate and not self.daemons:
            self.migrate(daemon)
        self.daemons.append(daemon)
        return daemon

    def migrate(self, daemon):
        daemon.migrate()
        with self.connect() as connection:
            prepare(connection)

    def start(self, name=None, **changes):
        return self.daemon(name, **changes).start()

    # -- the application ---------------------------------------------------------------

    def connect(self, **options):
        return self.mariadb.connect(self.database, **options)

    def execute(self, statement, *values):
        return self.mariadb.execute(statement, *values, db=self.database)

    def application(self):
        """An Application on a connection of its own; closed at the end."""
        return self._stack.enter_context(Application(self.connect(), self.ledger))

    def insert(self, route, body=b"{}", *, delay_ms=0, count=1, **promise):
        """Commit `count` tasks that are promised to arrive; returns their message ids."""
        tasks = [Task(Promise(new_id(), route, body, **promise), delay_ms) for _ in range(count)]
        with Application(self.connect(), self.ledger) as application:
            application.insert(tasks)
        return [task.promise.message_id for task in tasks]

    # -- consumers ------------------------------------------------------------------------

    def consume_kafka(self, *routes, answer=None):
        """Follow the topics of these routes."""
        topics = [self.destination(route) for route in routes]
        return self._consume(KafkaArrivals(self.kafka_server.bootstrap, topics, self.ledger, answer))

    def consume_amqp(self, *routes, answer=None):
        """Consume the queues of these routes."""
        queues = [self.destination(route) for route in routes]
        return self._consume(AmqpArrivals(self.rabbitmq, queues, self.ledger, answer))

    def consume_http(self):
        """Note what the receiver gets; the test's rules on `receiver` answer."""
        return self._consume(HttpArrivals(self.receiver, self.ledger))

    def _consume(self, consumer):
        self._consumers.append(consumer)
        return self._stack.enter_context(consumer)

    # -- waiting and judging --------------------------------------------------------------

    def count(self, table="outbox", where="TRUE"):
        return self.execute(f"SELECT COUNT(*) FROM `{table}` WHERE {where}")[0][0]

    def wait_empty(self, limit_s, where="TRUE"):
        """Wait until no living row (that fulfils `where`) is left."""
        wait_until(lambda: self.count("outbox", where) == 0, limit_s, f"no living row where {where}",
                   detail=self.living)

    def wait_row(self, message_id, limit_s, **wanted):
        """Wait until the row of that message, living or not, has these values in its columns;
        returns it as a dict."""
        def found():
            row = self.row(message_id)
            return row if row and all(row.get(name) == value for name, value in wanted.items()) else None
        return wait_until(found, limit_s, f"{message_id} to have {wanted}", detail=lambda: str(self.row(message_id)))

    def row(self, message_id):
        """The row from outbox or outbox_history as a dict; None where it is gone."""
        for table in ("outbox", "outbox_history"):
            with self.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {table} WHERE message_id = %s", (message_id,))
                values = cursor.fetchone()
                if values:
                    return dict(zip([column[0] for column in cursor.description], values))
        return None

    def attempts(self, message_id):
        """[(attempt, kind, outcome, error_class)] of outbox_attempts"""
        return list(self.execute("SELECT attempt, kind, outcome, error_class FROM outbox_attempts"
                                 " WHERE message_id = %s ORDER BY seq", message_id))

    def wait_arrived(self, count, limit_s):
        """Wait until that many different messages have arrived."""
        wait_until(lambda: len(self.ledger.arrived_ids()) >= count, limit_s, f"{count} messages to arrive",
                   detail=lambda: f"{len(self.ledger.arrived_ids())} arrived\n{self.living()}")

    def living(self):
        rows = self.execute("SELECT route, state, COUNT(*), MIN(due_at), MAX(attempt), MAX(last_error)"
                            " FROM outbox GROUP BY route, state")
        tails = "\n".join(daemon.log_tail(15) for daemon in self.daemons)
        return "living rows: " + ("; ".join(map(str, rows)) or "none") + f"\n{tails}"

    def stop_and_drain(self):
        """Stop the daemons and take what is still at the destinations."""
        for daemon in self.daemons:
            daemon.stop()
        for consumer in self._consumers:
            consumer.drain()

    def kafka_records(self):
        """All records that Kafka consumers of this stage have taken."""
        return [record for consumer in self._consumers if isinstance(consumer, KafkaArrivals)
                for record in consumer.records]

    def check(self, *, duplicates=0):
        """Stop the daemons, take what is still at the destinations, read the books and
        compare them; returns the number of copies too many."""
        self.stop_and_drain()
        return self.compare(duplicates=duplicates)

    def compare(self, *, duplicates=0):
        """Read the books as they are now, and compare them."""
        with self.connect() as connection:
            self.ledger.read_committed(connection)
            self.ledger.read_rows(connection)
        extra = self.ledger.check(duplicates=duplicates)
        print(f"{len(self.ledger.committed)} tasks committed, {extra} copies")
        return extra
