"""A result topic that nobody reads though its brokers answer is said: by /readyz, the metrics and doctor, with the
reason and what to change. Of the answers of consumers nothing would be seen otherwise, until their tasks are sent again."""

import copy
import json

import pytest

from support.servers.kafka import Kafka, start_or_skip
from support.servers.kafka_client import TransactionalProducer
from support.stage import Stage
from support.wait import wait_until

LIMIT_S = 120
EVERYBODY = "User:*"


@pytest.fixture(scope="module")
def kafka():
    """A broker whose groups refuse our default session, and which has rules about who may do what."""
    server = Kafka()
    server.properties = ["group.min.session.timeout.ms=10000",
                         "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                         "allow.everyone.if.no.acl.found=true"]
    yield start_or_skip(server)
    server.stop()


def answered_route(stage, partitions=2, **options):
    """A route whose consumers answer on a new topic; returns that."""
    stage.plugin("bus", module="kafka", brokers=stage.kafka_server.bootstrap, **options)
    stage.kafka("orders", result="expected", timeout="10m", history="1h")
    answers = stage.topic(partitions)
    stage.configuration["results"] = [{"via": "bus", "topic": answers, "group": answers}]
    return answers


def not_ready(daemon):
    status, body = daemon.api("GET", "/readyz")
    return json.dumps(body) if status == 503 and "have not been read" in json.dumps(body) else ""


def unread(daemon):
    """Why the source is down; "" = it is up."""
    status, body = daemon.api("GET", "/api/v1/stats")
    assert status == 200
    source = next(plugin for plugin in body["plugins"] if plugin["role"] == "source")
    return "" if source["up"] else source["text"]


def findings(daemon):
    done = daemon.run("doctor", "-o", "jsonl", check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def an_answer_counts(stage, answers):
    task = stage.insert("orders")[0]
    stage.wait_row(task, LIMIT_S, state="awaiting")
    stage.kafka_server.produce(answers, value=json.dumps({"id": task, "attempt": 1, "status": "done"}).encode())
    stage.wait_row(task, LIMIT_S, state="done")


def test_a_topic_that_is_made_again_is_read_from_its_beginning(stage):
    """Its first answers used to be passed over without a word, as many as had been read of the one before."""
    answers = answered_route(stage, partitions=1, rdkafka={"session.timeout.ms": "10000"})
    daemon = stage.start()
    for _ in range(3):
        an_answer_counts(stage, answers)
    tasks = stage.insert("orders", count=5)
    for task in tasks:
        stage.wait_row(task, LIMIT_S, state="awaiting")
    stage.kafka_server.delete_topic(answers)
    daemon.wait_log("KAFKA-CONSUMER-LOST", limit_s=LIMIT_S, text="is gone")
    stage.kafka_server.create_topic(answers, 1)
    stage.kafka_server.produce_many(answers, [
        (None, json.dumps({"id": task, "attempt": 1, "status": "done"}).encode()) for task in tasks])
    stage.wait_empty(LIMIT_S)


def test_a_group_that_refuses_the_session(stage):
    answers = answered_route(stage)
    daemon = stage.start()
    why = wait_until(lambda: not_ready(daemon), LIMIT_S, "/readyz to say so", detail=daemon.log_tail)
    assert "results at bus#1 have not been read for" in why and "session.timeout.ms" in why, why
    assert daemon.metric("duebox_plugin_up", plugin="bus#1", role="source") == 0
    assert daemon.metric("duebox_plugin_up", plugin="bus", role="sink") == 1
    said = findings(daemon)
    assert any("bus#1" in one["text"] and "session.timeout.ms" in one["text"] for one in said), said
    assert any(f"nobody reads topic {answers}" in one["text"] and one["level"] == "warn" for one in said), said

    daemon.stop()
    stage.configuration["plugins"]["bus"]["rdkafka"] = {"session.timeout.ms": "12000", "heartbeat.interval.ms": "3000"}
    cured = stage.start()
    an_answer_counts(stage, answers)
    assert not not_ready(cured)
    assert not any("nobody reads" in one["text"] for one in findings(cured))


def test_rights_that_are_missing(stage):
    """The group lets us in, and its partitions are not answered; or it does not. What was missing is given, and nobody
    has to start anything again."""
    answers = answered_route(stage, rdkafka={"session.timeout.ms": "10000"})
    broker = stage.kafka_server
    rule = ("--deny-principal", EVERYBODY, "--operation", "Read")
    broker.acl("--add", *rule, "--topic", answers)
    daemon = stage.start()
    for what in ("--topic", "--group"):
        wait_until(lambda: "authorization" in unread(daemon) and "ACLs" in unread(daemon), LIMIT_S,
                   f"the source to miss the right to the {what[2:]}", detail=daemon.log_tail)
        broker.acl("--remove", "--force", *rule, what, answers)
        wait_until(lambda: not unread(daemon), LIMIT_S, "the source to be read", detail=daemon.log_tail)
        an_answer_counts(stage, answers)
        if what == "--topic":
            broker.acl("--add", *rule, "--group", answers)
    daemon.stop()


def test_a_spare_member(stage):
    """Of two daemons and one partition, one reads nothing, and nothing is wrong with that."""
    answers = answered_route(stage, partitions=1, rdkafka={"session.timeout.ms": "10000"})
    daemons = [stage.start(), stage.start()]
    an_answer_counts(stage, answers)
    wait_until(lambda: any("0 partitions of" in daemon.log_tail(50) for daemon in daemons), LIMIT_S, "one to be spare")

    def complaints():
        said = [not_ready(daemon) or unread(daemon) for daemon in daemons]
        said += [line["text"] for daemon in daemons for line in findings(daemon)
                 if line["level"] != "ok" and ("bus#1" in line["text"] or "nobody reads" in line["text"])]
        return list(filter(None, said))
    # While partitions change hands somebody may have none; afterwards all is well.
    wait_until(lambda: not complaints(), LIMIT_S, "nothing to complain about", detail=lambda: str(complaints()))
    an_answer_counts(stage, answers)


def test_a_stranger_in_the_group(stage):
    """What it reads is not read here: the daemon and `doctor` say who it is, until it is gone."""
    answers = answered_route(stage, partitions=1, client_id="another", rdkafka={"session.timeout.ms": "12000"})
    stranger = stage.start()        # partitions go to members in the order of their names
    an_answer_counts(stage, answers)
    del stage.configuration["plugins"]["bus"]["client_id"]
    daemon = stage.start()
    why = wait_until(lambda: not_ready(daemon), LIMIT_S, "/readyz to say so", detail=daemon.log_tail)
    assert "another at" in why and "no daemon of this outbox" in why and answers in why, why
    assert daemon.metric("duebox_plugin_up", plugin="bus#1", role="source") == 0
    found = [line for line in findings(daemon) if "no daemon of this outbox" in line["text"] and "another at" in line["text"]]
    assert found and "fail" in [line["level"] for line in found], found

    stranger.stop()
    wait_until(lambda: not unread(daemon) and not not_ready(daemon), LIMIT_S, "it to be read again", detail=daemon.log_tail)
    an_answer_counts(stage, answers)


def test_a_stranger_with_a_share(stage):
    """We have the other partition, whose records do not make up for what the stranger takes."""
    answers = answered_route(stage, client_id="another", rdkafka={"session.timeout.ms": "12000"})
    stranger = stage.start()
    del stage.configuration["plugins"]["bus"]["client_id"]
    daemon = stage.start()
    wait_until(lambda: "another at" in unread(daemon), LIMIT_S, "it to be said", detail=daemon.log_tail)
    for _ in range(4):              # some of their answers come here
        an_answer_counts(stage, answers)
    assert "another at" in unread(daemon)
    stranger.stop()
    wait_until(lambda: not unread(daemon), LIMIT_S, "all to be read again", detail=daemon.log_tail)


def test_a_transaction_that_hangs(stage):
    """Nothing behind it is delivered, and broker and group are well: the daemon says which transaction it is. Records of
    the other partition do not make up for it."""
    answers = answered_route(stage, rdkafka={"session.timeout.ms": "10000"})
    daemon = stage.start()
    produce = stage.kafka_server.client.produce
    with TransactionalProducer(stage.kafka_server.bootstrap, f"hung-{answers}") as hung:
        hung.produce(answers, value=b"{}", partition=0)
        held, other = stage.insert("orders", count=2)
        for task, partition in ((held, 0), (other, 1)):
            stage.wait_row(task, LIMIT_S, state="awaiting")
            produce(answers, value=json.dumps({"id": task, "attempt": 1, "status": "done"}).encode(), partition=partition)
        stage.wait_row(other, LIMIT_S, state="done")
        why = wait_until(lambda: not_ready(daemon), LIMIT_S, "/readyz to say so", detail=daemon.log_tail)
        assert f"transaction has been open for 60 s at {answers}[0]@0" in why and "kafka-transactions.sh" in why, why
        assert daemon.metric("duebox_plugin_up", plugin="bus#1", role="source") == 0
        assert any("kafka.transaction" in one["text"] for one in findings(daemon))
        stage.wait_row(held, LIMIT_S, state="awaiting")
        hung.abort()
        stage.wait_row(held, LIMIT_S, state="done")
        wait_until(lambda: not unread(daemon) and not not_ready(daemon), LIMIT_S, "it to be read", detail=daemon.log_tail)


def test_two_outboxes_on_one_topic(stage, request, tmp_path):
    """By default neither takes the answers of the other away."""
    answers = answered_route(stage, partitions=1, rdkafka={"session.timeout.ms": "10000"})
    del stage.configuration["results"][0]["group"]
    stage.start()
    (tmp_path / "other").mkdir()
    with Stage(request, tmp_path / "other") as other:
        for part in ("plugins", "routes", "results"):
            other.configuration[part] = copy.deepcopy(stage.configuration[part])
        daemon = other.start()
        for _ in range(3):
            an_answer_counts(other, answers)
            an_answer_counts(stage, answers)
        said = findings(daemon)
        assert not any("no daemon of this outbox" in line["text"] for line in said), said
