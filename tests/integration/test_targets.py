"""What a configuration names at brokers and hosts: `duebox doctor` finds out whether it is there, before a task waits.

Nothing is sent and nothing is created by asking.
"""

import json
import socket
import time

import pytest

from support.stray_kafka import StrayKafka
from support.wait import wait_until

pytest_plugins = ["support.command_line"]

ELSEWHERE = "192.0.2.1"  # RFC 5737: belongs to nobody, and is not loopback


@pytest.fixture
def asker(cli):
    """Nothing is configured but what the test adds."""
    cli.stage.configuration["plugins"].clear()
    cli.stage.configuration["routes"].clear()
    return cli


def targets(cli, *codes):
    """The lines of doctor about targets; it ends with one of the codes, or with that for what is wrong."""
    cli.daemon.configure(cli.stage.configuration)
    done = cli.run("doctor", "-o", "jsonl")
    assert done.returncode in (codes or (78,)), done
    return [line for line in map(json.loads, done.stdout.splitlines()) if line["check"] == "target"]


def said_of(lines, name):
    found = [line for line in lines if f" {name}:" in line["text"] or f" {name} and" in line["text"]]
    assert len(found) == 1, lines
    return found[0]


@pytest.fixture
def stray():
    broker = StrayKafka(ELSEWHERE)
    yield broker
    broker.close()


def test_topics(asker, kafka):
    stage = asker.stage
    there, missing, answers = stage.topic(), stage.topic() + "-missing", stage.topic()
    stage.plugin("live", module="kafka", brokers=kafka.bootstrap)
    stage.route("good", via="live", topic=there)
    stage.route(there, via="live", topic="{route}")
    stage.route("varied", via="live", topic="{task_key}")
    stage.route("missing", via="live", topic=missing)
    stage.route("partition", via="live", topic=there, partition=7)
    stage.configuration["results"] = [{"via": "live", "topic": answers}, {"via": "live", "topic": missing + "2"}]
    unread = f"nobody reads topic {answers}"
    wait_until(lambda: unread in str(targets(asker)), 120, "the new broker to have a coordinator for the group")
    for _ in range(2):  # the second time would find what the first had created
        lines = targets(asker)
        assert [line["text"] for line in lines if line["level"] == "ok"] == ["plugin live: 3 of 7 targets are there"]
        assert unread in said_of(lines, "live#1")["text"] and said_of(lines, "live#1")["level"] == "warn"
        for name, text in (("missing", f"topic {missing} does not exist"), ("live#2", "does not exist"),
                           ("partition", "has 2 partitions, and partition is 7")):
            line = said_of(lines, name)
            assert line["level"] == "fail" and text in line["text"] and line["cure"], line


def test_a_client_that_does_not_start(asker):
    """For want of a file, which no broker need be asked about."""
    asker.stage.plugin("bus", module="kafka", brokers="localhost:1", tls=True, ca_file="/nonexistent/ca.pem")
    asker.stage.route("r", via="bus", topic="t")
    [line] = targets(asker)
    assert line["level"] == "fail" and "ssl.ca.location failed" in line["text"], line
    assert "are ca_file, cert_file and key_file there" in line["cure"], line


def test_queues_and_exchanges(asker, rabbitmq):
    stage = asker.stage
    queue, answers = stage.queue(), stage.queue()
    exchange = rabbitmq.declare_exchange(queue + "-exchange") or queue + "-exchange"
    stage.plugin("rabbit", module="amqp", url=rabbitmq.url)
    stage.route("good", via="rabbit", routing_key=queue)
    stage.route(queue, via="rabbit")
    stage.route("varied", via="rabbit", routing_key="{task_key}")
    stage.route("exchanged", via="rabbit", exchange=exchange, routing_key="any")
    stage.route("missing", via="rabbit", routing_key=queue + "-missing")
    stage.route("nowhere", via="rabbit", exchange=queue + "-none", routing_key="any")
    stage.configuration["results"] = [{"via": "rabbit", "queue": answers}, {"via": "rabbit", "queue": queue + "-no"}]
    for _ in range(2):
        lines = targets(asker)
        assert [line["text"] for line in lines if line["level"] == "ok"] == ["plugin rabbit: 5 of 8 targets are there"]
        for name, text in (("missing", f'queue "{queue}-missing": 404'), ("nowhere", f'exchange "{queue}-none": 404'),
                           ("rabbit#2", "404")):
            line = said_of(lines, name)
            assert line["level"] == "fail" and text in line["text"] and "create it" in line["cure"], line
    assert rabbitmq.queue_depth(queue) == 0


def test_an_exclusive_queue(asker, rabbitmq):
    """A queue that one connection has for itself takes everybody's messages; only its results are nobody else's."""
    stage = asker.stage
    stage.plugin("rabbit", module="amqp", url=rabbitmq.url)
    connection = rabbitmq.connect()
    queue = connection.channel().queue_declare("", exclusive=True).method.queue
    try:
        stage.route("own", via="rabbit", routing_key=queue)
        assert targets(asker, 0)[0]["text"] == "plugin rabbit: 1 of 1 targets are there"
        stage.route("own", via="rabbit", routing_key=stage.queue())     # nobody sends to where results are read
        stage.configuration["results"] = [{"via": "rabbit", "queue": queue}]
        line = said_of(targets(asker), "rabbit#1")
        assert line["level"] == "fail" and "405" in line["text"] and "exclusive" in line["cure"], line
    finally:
        connection.close()


def test_hosts(asker, http_receiver):
    """Resolved, judged, connected; a host that does not answer takes its time but once."""
    stage = asker.stage
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as gone:
        mute, closed = silent.getsockname()[1], gone.getsockname()[1]
        gone.close()
        stage.plugin("open", module="http", allow_private=True)
        stage.plugin("strict", module="http")
        for i in range(3):
            stage.route(f"good{i}", via="open", url=f"{http_receiver.url}/{i}/{{task_key}}")
        stage.route("closed", via="open", url=f"http://127.0.0.1:{closed}/")
        stage.route("mute", via="open", url=f"https://127.0.0.1:{mute}/a")
        stage.route("mute2", via="open", url=f"https://127.0.0.1:{mute}/b")
        stage.route("nameless", via="open", url="https://no.such.host.invalid/")
        stage.route("refused", via="strict", url=f"https://localhost:{mute}/")
        before = len(http_receiver.requests)
        began = time.monotonic()
        lines = targets(asker)
        took = time.monotonic() - began
    assert [line["text"] for line in lines if line["level"] == "ok"] == ["plugin open: 3 of 7 targets are there"]
    levels = {name: said_of(lines, name)["level"] for name in ("closed", "mute", "nameless", "refused")}
    assert levels == {"closed": "warn", "mute": "warn", "nameless": "warn", "refused": "fail"}, lines
    assert "mute and 1 more" in said_of(lines, "mute")["text"]
    assert "loopback" in said_of(lines, "refused")["text"]
    assert len(http_receiver.requests) == before
    assert took < 60  # 5 s for the host that is mute, on a slow machine


def test_a_broker_elsewhere(asker, stray):
    """A broker's metadata sends clients where the configuration would not let them go: another host, without TLS."""
    stage = asker.stage
    stage.plugin("stray", module="kafka", brokers=stray.bootstrap, delivery_timeout="2s")
    stage.route("away", via="stray", topic="away")
    line = said_of(targets(asker), "away")
    assert line["level"] == "fail" and f"reached as {ELSEWHERE}:9092" in line["text"], line
    assert "advertised.listeners" in line["cure"]
    asker.add("away", delay_ms=0)
    daemon = asker.daemon.start()
    assert "another host" in daemon.wait_log("KAFKA-DOWN", text="without TLS", limit_s=60)["msg"]


def test_a_broker_with_a_name_that_is_not_known_here(asker):
    """A broker's own name that nobody here can resolve is that, and no other host that lacks TLS."""
    stray = StrayKafka("no.such.host.invalid")
    try:
        asker.stage.plugin("stray", module="kafka", brokers=stray.bootstrap, delivery_timeout="2s")
        asker.stage.route("away", via="stray", topic="away")
        line = said_of(targets(asker, 0, 78), "away")
    finally:
        stray.close()
    assert "reached as no.such.host.invalid:9092" in line["text"] and "another host" not in line["text"], line
    assert "name service" in line["cure"] and "tls" not in line["cure"], line


def test_a_plugin_that_does_not_come_back(asker):
    """Its thread goes on with the configuration until the very end of the process, which comes all the same."""
    asker.stage.plugin("stuck", module="hang_check")
    asker.stage.route("any", via="stuck")
    line, = targets(asker, 0)
    assert line["level"] == "warn" and "the plugin hangs" in line["text"], line
