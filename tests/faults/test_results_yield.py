"""A daemon that reads results and cannot write them: its way to the database is cut, its way to the broker is not.

It used to keep what it had read, and whatever came, for as long as that lasted: with the only reader of a RabbitMQ queue
all results of the outbox, with a member of a Kafka group those of its partitions.
"""

import contextlib
import json

import pytest

from support.tcp_proxy import TcpProxy
from support.wait import wait_until

LIMIT_S = 120
LEASE = "3s"
PASSWORD = "right"
COUNT = 40


class Answered:
    """Two daemons, of which the first comes to the database through a proxy; and tasks that wait for their results."""

    def __init__(self, stage, proxy, source):
        self.stage, self.source = stage, source
        stage.configuration["engine"]["lease"] = LEASE
        (stage.kafka if source == "kafka" else stage.amqp)("orders", result="expected", timeout="30m", history="1d")
        if source == "kafka":
            self.place = stage.topic(2)
            entry = {"via": "bus", "topic": self.place, "group": stage.name}
        else:
            self.place = stage.queue()
            entry = {"via": "rabbit", "queue": self.place}
        stage.configuration["results"] = [entry]
        self.first = self.through(proxy)
        self.first.start()
        self.wait_reading(self.first)
        self.second = stage.start()
        if source == "kafka":
            self.second.wait_log("KAFKA-REBALANCE", text="1 partitions", limit_s=LIMIT_S)
            self.first.wait_log("KAFKA-REBALANCE", text="1 partitions", limit_s=LIMIT_S)
        self.tasks = stage.insert("orders", count=COUNT, end="")
        wait_until(lambda: stage.count("outbox", "state = 'awaiting'") == COUNT, LIMIT_S, "the tasks to be sent",
                   detail=self.second.log_tail)

    def through(self, proxy):
        stage = self.stage
        daemon = stage.daemon("first")
        user = f"user_{stage.database}"[:60]
        stage.mariadb.create_user(user, PASSWORD, [f"ALL ON `{stage.database}`.*"])
        configuration = dict(daemon.configuration)
        configuration["database"] = {"host": "127.0.0.1", "port": proxy.port, "user": user, "password": PASSWORD,
                                     "name": stage.database, "connect_timeout": "1s", "read_timeout": "1s"}
        daemon.configure(configuration)
        return daemon

    def wait_reading(self, daemon):
        if self.source == "kafka":
            daemon.wait_log("KAFKA-REBALANCE", text="2 partitions", limit_s=LIMIT_S)
        else:
            with self.stage.rabbitmq.connect() as connection:
                channel = connection.channel()
                wait_until(lambda: channel.queue_declare(self.place, passive=True).method.consumer_count == 1, LIMIT_S,
                           "the first daemon to read the queue")

    def publish(self, records):
        if self.source == "kafka":
            self.stage.kafka_server.produce_many(self.place, [(record["id"], json.dumps(record)) for record in records])
            return
        with self.stage.rabbitmq.connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for record in records:
                channel.basic_publish("", self.place, json.dumps(record).encode())


@pytest.mark.parametrize("source", ["kafka", "rabbit"])
def test_another_daemon_writes_what_one_cannot(stage, source):
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(TcpProxy(stage.mariadb.port))
        it = Answered(stage, proxy, source)
        proxy.blackhole()
        it.publish([{"id": task, "attempt": 1, "status": "done", "result": i} for i, task in enumerate(it.tasks)])
        it.first.wait_log("DUEBOX-RESULTS-YIELDED", limit_s=LIMIT_S)
        stage.wait_empty(LIMIT_S)
        assert stage.count("outbox_history", "state = 'done'") == COUNT
        proxy.restore()
        it.first.wait_log("DUEBOX-RESULTS-RESUMED", limit_s=LIMIT_S)
        it.first.wait_ready()
        more = stage.insert("orders", count=COUNT, end="")
        wait_until(lambda: stage.count("outbox", "state = 'awaiting'") == COUNT, LIMIT_S, "more tasks to be sent")
        it.publish([{"id": task, "attempt": 1, "status": "done"} for task in more])
        stage.wait_empty(LIMIT_S)
        assert stage.count("outbox_history", "state = 'done'") == 2 * COUNT
        assert not stage.count("outbox_quarantine")
