"""A quota of the cluster holds the daemon back: the broker falls silent for seconds, as one that is away does. The log
says which of both it is, and nothing is lost."""

import pytest

from support.servers.kafka import Kafka, start_or_skip

LIMIT_S = 120
CLIENT = "held-back"
TASKS = 40


@pytest.fixture(scope="module")
def kafka():
    """A broker whose quotas look at two seconds, not at eleven, so that they hold nobody back for long."""
    server = Kafka()
    server.properties = ["quota.window.num=2", "quota.window.size.seconds=1"]
    yield start_or_skip(server)
    server.stop()


def test_a_quota_is_named(stage):
    """40 tasks of 1 KB at a quota of 5 KB/s: the broker takes nothing for some six seconds. (All that was said, if it
    lasted, was that brokers are down.)"""
    stage.plugin("bus", module="kafka", brokers=stage.kafka_server.bootstrap, client_id=CLIENT)
    stage.kafka("orders", history="1h")
    consumer = stage.consume_kafka("orders")
    daemon = stage.start()
    stage.kafka_server.configure("--alter", "--add-config", "producer_byte_rate=5000", "--entity-type", "clients",
                                 "--entity-name", CLIENT)
    stage.insert("orders", b"x" * 1000, count=TASKS)
    daemon.wait_log("KAFKA-THROTTLED", limit_s=LIMIT_S, text="Raise the quota")
    stage.wait_empty(LIMIT_S)
    assert len({record["value"] for record in consumer.records}) == 1 and len(consumer.records) == TASKS
