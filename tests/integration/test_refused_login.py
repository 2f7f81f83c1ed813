"""A broker that refuses the login of a result source has answered, and nobody reads its answers: /readyz and doctor say so,
with what the broker said, until it lets the source in."""

import json

import pytest

from support.servers.kafka import Kafka, start_or_skip
from support.wait import wait_until

LIMIT_S = 120


class KafkaWithLogins(Kafka):
    """Has a listener that asks for a password, beside the one that does not."""

    port_names = (*Kafka.port_names, "sasl_port")

    def _prepare(self):
        plain, sasl = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.sasl_port}"
        self.properties = [
            f"listeners=PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl},CONTROLLER://127.0.0.1:{self.controller_port}",
            f"advertised.listeners=PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms=SCRAM-SHA-512",
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config="
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"]
        super()._prepare()

    def add_user(self, name, password):
        self.configure("--alter", "--entity-type", "users", "--entity-name", name,
                       "--add-config", f"SCRAM-SHA-512=[password={password}]")


@pytest.fixture(scope="module")
def kafka():
    server = start_or_skip(KafkaWithLogins())
    yield server
    server.stop()


def problem(daemon):
    """What /readyz says of a source that is not read; "" = nothing."""
    status, body = daemon.api("GET", "/readyz")
    return next((text for text in body.get("problems", []) if "have not been read" in text), "") if status == 503 else ""


def failures(daemon):
    done = daemon.run("doctor", "-o", "jsonl", check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode == 0) == all(one["level"] != "fail" for one in found)
    return [one["text"] for one in found if one["level"] == "fail"]


def test_rabbitmq(stage):
    """Three ways to be kept out. Each source is let in in turn, as soon as /readyz names it."""
    broker, name = stage.rabbitmq, stage.name

    def permit(user):
        broker.ctl("set_permissions", user, ".*", ".*", ".*")

    ways = {
        "password": ("ACCESS_REFUSED", lambda user: broker.ctl("change_password", user, "secret")),
        "vhost": ("NOT_ALLOWED", permit),
        "limit": ("NOT_ALLOWED", lambda user: broker.ctl("clear_user_limits", user, "max-connections"))}
    stage.amqp("orders")
    for way in ways:
        user = f"{name}-{way}"
        broker.ctl("add_user", user, "another" if way == "password" else "secret")
        if way != "vhost":
            permit(user)
        if way == "limit":
            broker.ctl("set_user_limits", user, '{"max-connections": 0}')
        stage.plugin(way, module="amqp", url=f"amqp://{user}@127.0.0.1:{broker.port}/%2f", password="secret")
        stage.configuration["results"].append({"via": way, "queue": stage.queue(), "routes": ["orders"]})
    try:
        daemon = stage.start()
        said = failures(daemon)
        for way, (word, _) in ways.items():
            assert any(f"{way}#" in text and word in text for text in said), (way, said)
        for _ in range(len(ways)):
            text = wait_until(lambda: problem(daemon), LIMIT_S, "/readyz to say so", detail=daemon.log_tail)
            way = next(way for way in ways if f"results at {way}#" in text)
            word, let_in = ways[way]
            assert word in text and "check user, password, vhost and permissions" in text, text
            let_in(f"{name}-{way}")
            wait_until(lambda way=way: f"{way}#" not in problem(daemon), LIMIT_S, f"{way} to be read",
                       detail=daemon.log_tail)
        wait_until(lambda: daemon.api("GET", "/readyz")[0] == 200, LIMIT_S, "all to be read", detail=daemon.log_tail)
        assert not failures(daemon)
    finally:
        for way in ways:
            broker.ctl("delete_user", f"{name}-{way}")


def test_kafka(stage):
    broker = stage.kafka_server
    stage.kafka("orders")
    stage.plugin("locked", module="kafka", brokers=f"127.0.0.1:{broker.sasl_port}", username="reader", password="secret")
    stage.configuration["results"] = [{"via": "locked", "topic": stage.topic(), "routes": ["orders"]}]
    daemon = stage.start()
    said = failures(daemon)
    assert any("locked" in text and "uthentication" in text for text in said), said
    text = wait_until(lambda: problem(daemon), LIMIT_S, "/readyz to say so", detail=daemon.log_tail)
    assert "kafka.authentication" in text and "check username, password" in text, text
    broker.add_user("reader", "secret")
    wait_until(lambda: daemon.api("GET", "/readyz")[0] == 200, LIMIT_S, "it to be read", detail=daemon.log_tail)
    assert not failures(daemon)
