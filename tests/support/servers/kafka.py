"""A private Apache Kafka broker in KRaft mode, or a stand-in said out loud.

Kafka: one process that is broker and controller, from the jars that
tests/support/kafka/pom.xml pins (jars.py fetches and verifies them).

KafkaMock: librdkafka's mock cluster in a process of its own, for machines where
Maven cannot deliver.  It has `is_real = False`; tests that need a broker that
survives a crash skip on that.  start_best() picks.
"""

import os
import subprocess
import sys
from pathlib import Path

from ..wait import wait_until
from . import jars
from .java import find_java
from .kafka_client import Client, KafkaError, TailConsumer, consume_all
from .ports import free_port
from .server import REPOSITORY, Server, ServerError, build_folder

VERSION = "3.9.1"
SOURCES = REPOSITORY / "tests" / "support" / "kafka"
CLUSTER_ID = "ZHVlYm94LXRlc3RzLTAwMQ"     # 16 bytes in base64, as StorageTool wants it

CONFIGURATION = """\
# Written at each start by the test harness.
process.roles=broker,controller
node.id={number}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
num.partitions=4
default.replication.factor={copies}
min.insync.replicas={in_sync}
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=4
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={in_sync}
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
# After a crash the broker may register again only when its old session is over.
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
# Nothing lives long enough here to be worth the cleaner's 128 MB.
log.cleaner.enable=false
"""

LOGGING = """\
log4j.rootLogger=WARN, stdout
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


class KafkaUnavailable(RuntimeError):
    """This machine cannot have a real broker; the text says why."""


class _KafkaVerbs(Server):
    """What a test does with a cluster, real or not."""

    name = "kafka"
    is_real = None
    _client = None

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    @property
    def client(self):
        """The Client that the verbs below use."""
        if self._client is None:
            self._client = Client(self.bootstrap)
        return self._client

    def create_topic(self, topic, partitions=4, config=None):
        """Create `topic`, wait for its leaders, return its name."""
        self.client.create_topic(topic, partitions, config)
        return topic

    def delete_topic(self, topic):
        self.client.delete_topic(topic)

    def produce(self, topic, key=None, value=b"", headers=()):
        """Produce one record (text or bytes) and wait for its confirm."""
        self.client.produce(topic, key, value, headers)

    def produce_many(self, topic, records):
        """Produce (key, value) or (key, value, headers) tuples; wait for all confirms."""
        self.client.produce_many(topic, records)

    def consume_all(self, topic, limit_s=60):
        """All records up to the present end of `topic`, as dicts."""
        return consume_all(self.bootstrap, topic, limit_s)

    def tail(self, *topics, from_beginning=True):
        """A TailConsumer that follows `topics`; stop() it, or use it in a with."""
        return TailConsumer(self.bootstrap, topics, from_beginning=from_beginning)

    def stop(self):
        if self._client:
            self._client.close()
            self._client = None
        super().stop()

    def env(self):
        return {"DUEBOX_TEST_KAFKA_BOOTSTRAP": self.bootstrap,
                "DUEBOX_TEST_KAFKA_REAL": str(int(self.is_real))}

    def _answers(self):
        try:
            return self.client.brokers() > 0
        except KafkaError:
            return False


class Kafka(_KafkaVerbs):
    is_real = True
    port_names = ("port", "controller_port")
    properties = ()     # more lines for server.properties

    def _prepare(self):
        self._java = [_java(), "-Xmx512m", "-XX:+UseSerialGC",
                      f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
                      "-cp", f"{fetch_jars()}/*"]
        self._configuration = self.folder / "server.properties"
        self._configuration.write_text(CONFIGURATION.format(
            port=self.port, controller_port=self.controller_port, data=self.data, **self._place())
            + "\n".join(self.properties))
        (self.folder / "log4j.properties").write_text(LOGGING)
        if not (self.data / "meta.properties").exists():
            self._format()

    def _place(self):
        """What the configuration says of the cluster: here, that it is alone."""
        return {"number": 1, "voters": f"1@127.0.0.1:{self.controller_port}", "copies": 1, "in_sync": 1}

    def _format(self):
        done = subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format",
             "-t", CLUSTER_ID, "-c", self._configuration],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise ServerError(f"kafka.tools.StorageTool failed:\n{done.stdout}")

    def _launch(self):
        return self._spawn([*self._java, "kafka.Kafka", self._configuration], cwd=self.folder)

    def acl(self, *words):
        """kafka-acls.sh with these words."""
        self._administer("kafka.admin.AclCommand", *words)

    def configure(self, *words):
        """kafka-configs.sh with these words."""
        self._administer("kafka.admin.ConfigCommand", *words)

    def _administer(self, command, *words):
        done = subprocess.run([*self._java, command, "--bootstrap-server", self.bootstrap, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise ServerError(f"{command} failed:\n{done.stdout}")


class _Node(Kafka):
    """One of a cluster, not to be started by itself: it answers when most of them run."""

    def __init__(self, number, nodes, folder):
        super().__init__(folder)
        self.number = number
        self._nodes = nodes
        for name in self.port_names:
            setattr(self, name, free_port())

    def wait_ready(self, limit_s=None):
        """Its cluster waits."""

    def _place(self):
        voters = ",".join(f"{node.number}@127.0.0.1:{node.controller_port}" for node in self._nodes)
        return {"number": self.number, "voters": voters, "copies": 3, "in_sync": 2}


class KafkaCluster(_KafkaVerbs):
    """Three brokers; each topic is on all of them, and two of them confirm a record. `nodes` are killed one by one."""

    is_real = True
    port_names = ()

    def __init__(self, folder=None):
        super().__init__(folder)
        self.nodes = []
        self.nodes.extend(_Node(number, self.nodes, self.folder / f"node-{number}") for number in (1, 2, 3))

    @property
    def bootstrap(self):
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self):
        try:
            for node in self.nodes:
                node.start()
            self.wait_complete()
        except BaseException:
            self.stop()
            raise
        return self

    def wait_complete(self, limit_s=180):
        """Wait until all brokers are in the cluster."""
        wait_until(lambda: self.client.brokers() == len(self.nodes), limit_s, "all brokers to be there",
                   ignore=KafkaError, detail=lambda: "\n".join(node.log_tail(10) for node in self.nodes))

    def leader(self, topic, partition=0):
        """The node that leads a partition."""
        number = self.client.leader(topic, partition)
        return next(node for node in self.nodes if node.number == number)

    def stop(self):
        if self._client:
            self._client.close()
            self._client = None
        for node in self.nodes:
            node.kill9()        # an orderly end of the last two waits for the one that has gone
            node.stop()


class KafkaMock(_KafkaVerbs):
    """Data lives in the process: kill9() and restart() would lose it and the port."""

    is_real = False
    port_names = ()

    @property
    def port(self):
        said = self.log.read_text() if self.log.exists() else ""
        line = next((line for line in said.splitlines() if line.startswith("bootstrap.")), None)
        return int(line.rpartition(":")[2]) if line else None

    def create_topic(self, topic, partitions=4, config=None):
        command = f"topic {topic} {partitions}"
        with open(self._commands, "w") as commands:
            commands.write(command + "\n")
        wait_until(lambda: command in self.log.read_text().splitlines(), 10,
                   f"the mock cluster to say: {command}", detail=self.log_tail)
        return topic

    def restart(self):
        raise NotImplementedError("the mock cluster cannot be restarted: its data is in memory")

    kill9 = restart

    @property
    def _commands(self):
        return self.folder / "commands"

    def _prepare(self):
        self.log.unlink(missing_ok=True)        # the port is read from it
        if not self._commands.exists():
            os.mkfifo(self._commands)

    def _launch(self):
        # Opened for writing too, the pipe does not end when a writer closes it.
        commands = os.open(self._commands, os.O_RDWR)
        try:
            return self._spawn([_mock_program()], stdin=commands)
        finally:
            os.close(commands)

    def _answers(self):
        return self.port is not None and super()._answers()


def start_best(folder=None, *, background=False):
    """Start a real broker where this machine can have one, else the mock."""
    reason = _why_not_real()
    if reason is None:
        server = Kafka(folder, background=background)
        return (server.attach() if background else server).start()
    print("*" * 72, "NO REAL KAFKA: librdkafka's mock cluster stands in for the broker.",
          f"Reason: {reason}", "*" * 72, sep="\n", file=sys.stderr)
    return KafkaMock(folder, background=background).start()


def start_or_skip(server):
    """The broker, started; where this machine cannot have a real one, the test is skipped and says why."""
    import pytest
    try:
        return server.start()
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka broker: {reason}")


def attach(folder):
    """The cluster that runs in `folder` in the background, whichever it is."""
    real = (Path(folder) / "server.properties").exists()
    return (Kafka if real else KafkaMock)(folder).attach()


def _why_not_real():
    if os.environ.get("DUEBOX_TEST_KAFKA") == "mock":
        return "DUEBOX_TEST_KAFKA=mock asks for the stand-in"
    try:
        _java()
        fetch_jars()
    except KafkaUnavailable as reason:
        return str(reason)
    return None


# -- jars -------------------------------------------------------------------------


def fetch_jars():
    """The folder of verified jars; KafkaUnavailable where they cannot be had."""
    try:
        return jars.fetch(SOURCES, f"kafka-{VERSION}", _java())
    except jars.JarsUnavailable as reason:
        raise KafkaUnavailable(str(reason)) from None


def _java():
    java = find_java()
    if java is None:
        raise KafkaUnavailable("there is no Java 11 to 23; see scripts/packages")
    return java


def _mock_program():
    source = SOURCES / "mock_cluster.c"
    program = build_folder() / "tests" / "mock_cluster"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-Wall", "-Wextra", "-O1", "-o", fresh, source, "-lrdkafka"],
                       check=True)
        fresh.rename(program)
    return program
