"""Destinations: how the daemon and the raw loop are pointed at one, and how what arrived there is counted."""

import json
from pathlib import Path

from .tools import Receiver

PARTITIONS = 4
HTTP_WINDOW = 64        # requests at once, on both sides


class KafkaSink:
    name = "Kafka"
    live = False        # what arrived can be read afterwards

    def __init__(self, answers=False):
        self.answers = answers      # after open(): the topic that consumers answer on

    def open(self, bench, name):
        self._kafka = bench.kafka
        self.topic = self._kafka.create_topic(name, partitions=PARTITIONS)
        if self.answers:
            self.answers = self._kafka.create_topic(f"{name}-answers", partitions=PARTITIONS)

    def plugins(self):
        return {"bus": {"module": "kafka", "brokers": self._kafka.bootstrap}}

    def route(self):
        return {"via": "bus", "topic": self.topic}

    def raw(self):
        return ["--sink", "kafka", "--to", self._kafka.bootstrap, "--topic", self.topic]

    def receiver(self, first, count, *more, from_beginning=False):
        more = (*more, "--from-beginning") if from_beginning else more
        return Receiver("kafka", self._kafka.bootstrap, self.topic, *more, first=first, count=count)

    def close(self):
        self._kafka.delete_topic(self.topic)
        if self.answers:
            self._kafka.delete_topic(self.answers)

    def servers(self):
        return [self._kafka]


class AmqpSink:
    live = False

    def __init__(self, kind):
        self.kind = kind                # "classic" or "quorum"
        self.name = f"RabbitMQ, {kind} queue"

    def open(self, bench, name):
        self._rabbitmq = bench.rabbitmq
        self.queue = self._rabbitmq.declare_queue(name, arguments={"x-queue-type": self.kind})

    def plugins(self):
        return {"rabbit": {"module": "amqp", "url": self._rabbitmq.url}}

    def route(self):
        return {"via": "rabbit", "routing_key": self.queue}

    def raw(self):
        return ["--sink", "amqp", "--to", self._rabbitmq.url, "--topic", self.queue]

    def receiver(self, first, count, from_beginning=False):
        return Receiver("amqp", self._rabbitmq.url, self.queue, first=first, count=count)

    def close(self):
        self._rabbitmq.delete_queue(self.queue)

    def servers(self):
        return [self._rabbitmq]


class HttpSink:
    live = True         # somebody must listen while it runs

    def __init__(self, claim="memory"):
        self.claim = claim
        self.name = f"HTTP, claim: {claim}"

    def open(self, bench, name):
        from support.servers.ports import free_port
        self.port = free_port()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks/bench"

    def plugins(self):
        return {"hooks": {"module": "http", "allow_private": True}}

    def route(self):
        return {"via": "hooks", "url": self.url, "concurrency": HTTP_WINDOW, "claim": self.claim}

    def raw(self):
        return ["--sink", "http", "--to", self.url, "--window", HTTP_WINDOW]

    def receiver(self, first, count, from_beginning=False):
        return Receiver("http", self.port, first=first, count=count)

    def close(self):
        pass

    def servers(self):
        return []


class ProbeSink:
    """The plugin tools/probe_sink.c, which completes every task at once and keeps the book itself."""
    name = "no destination"
    live = False

    def __init__(self, first=1, count=0, **options):
        self.first, self.count, self.options = first, count, options

    def open(self, bench, name):
        self.path = Path(bench.folder) / f"{name}.book"

    def plugins(self):
        return {"probe": {"module": "probe", "first": self.first, "count": self.count, "book": str(self.path), **self.options}}

    def route(self):
        return {"via": "probe"}

    def raw(self):
        return ["--sink", "null"]

    def book(self):
        """Written when the daemon has stopped; None after a raw loop, which has no destination at all."""
        return json.loads(self.path.read_text()) if self.path.exists() else None

    def close(self):
        self.path.unlink(missing_ok=True)

    def servers(self):
        return []
