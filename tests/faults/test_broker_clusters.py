"""Kafka with three brokers and RabbitMQ with three nodes, one of which dies while tasks are handed over: nothing is lost
(P1), and copies are at most those of what was in flight (P4).

Behind `scripts/test --engines`.
"""

import os

import pytest

from support.servers.kafka import KafkaCluster, KafkaUnavailable, fetch_jars
from support.servers.rabbitmq import RabbitMQCluster
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

LIMIT_S = 180
TASKS = 2000
IN_FLIGHT = 200

if "DUEBOX_TEST_ENGINES" not in os.environ:
    pytest.skip("scripts/test --engines", allow_module_level=True)


@pytest.fixture
def kafka():
    """Three brokers in the place of the one that a Stage uses."""
    try:
        fetch_jars()
    except KafkaUnavailable as why:
        pytest.skip(f"NOT TESTED on a cluster of Kafka: {why}")
    with KafkaCluster() as cluster:
        yield cluster


@pytest.fixture
def rabbitmq():
    with RabbitMQCluster() as cluster:
        yield cluster


def insert_more(stage, route):
    """Tasks that go at once, and those of the next seconds."""
    for delay_ms in (0, 500, 2000, 4000):
        stage.insert(route, b"x" * 200, delay_ms=delay_ms, count=TASKS // 4)


def wait_some(stage):
    seen = len(stage.ledger.arrivals)
    wait_until(lambda: len(stage.ledger.arrivals) > seen + 50, LIMIT_S, "tasks to arrive", detail=stage.living)


def test_a_broker_of_kafka_dies(stage, kafka):
    stage.kafka("k", topic=stage.topic(partitions=4), concurrency=IN_FLIGHT)
    stage.consume_kafka("k")
    stage.start()
    insert_more(stage, "k")
    wait_some(stage)
    leader = kafka.leader(stage.destination("k"), 0)
    leader.kill9()
    insert_more(stage, "k")
    wait_some(stage)
    leader.start()
    kafka.wait_complete()
    insert_more(stage, "k")
    stage.wait_empty(LIMIT_S)
    assert len(stage.ledger.committed or stage.ledger.promised) == 3 * TASKS
    stage.check(duplicates=2 * IN_FLIGHT)   # it dies, and it takes its partitions back


@pytest.mark.parametrize("victim", ["leader", "connected"])
def test_a_node_of_rabbitmq_dies(stage, rabbitmq, victim):
    """The one that leads the queue while the daemon is connected to another, and the one that the daemon is connected to."""
    queue = rabbitmq.declare_queue(stage.name)
    leader = rabbitmq.leader(queue)
    connected, other = [node for node in rabbitmq.nodes if node is not leader]
    with TcpProxy(connected.port) as address:
        stage.plugin("rabbit", module="amqp", url=f"amqp://guest:guest@127.0.0.1:{address.port}/%2f")
        stage.route("a", via="rabbit", routing_key=queue, concurrency=IN_FLIGHT)
        stage.consume_amqp("a")
        daemon = stage.start()
        insert_more(stage, "a")
        wait_some(stage)
        dead, mark = leader if victim == "leader" else connected, daemon.mark()
        dead.kill9()
        if dead is connected:
            address.retarget(other.port)
            daemon.wait_log("DUEBOX-PLUGIN-UP", after=mark, limit_s=60)
        insert_more(stage, "a")
        wait_some(stage)
        dead.start()
        insert_more(stage, "a")
        stage.wait_empty(LIMIT_S)
        daemon.stop()
        stage.check(duplicates=2 * IN_FLIGHT)
