"""Whoever may write to a result topic of Kafka can write what librdkafka does not get past by itself: batches that it
does not unpack, and records that claim an offset of their own choice, which Apache Kafka does not check in a batch that
is not compressed. The answers of others, before, between and behind, are applied, and each is given once (P7)."""

import json

import pytest

from support.kafka_raw import RawProducer, batch, gzip_members, record, zstd_zeros
from support.servers.kafka_client import TransactionalProducer
from support.wait import wait_until

LIMIT_S = 60
FAR = 2_000_000_000
LARGE = b"y" * 900_000  # five of them are more than one fetch brings (fetch.message.max.bytes)


class Answers:
    """A result topic of one partition, a route that is answered there, and a stranger who writes to it."""

    def __init__(self, stage):
        self.stage = stage
        stage.plugin("bus", module="kafka", brokers=stage.kafka_server.bootstrap)
        stage.kafka("orders", result="expected", timeout="10m", history="1h")
        self.topic = stage.topic(1)
        stage.configuration["results"] = [{"via": "bus", "topic": self.topic, "group": self.topic}]
        self.daemon = stage.start()
        self.stranger = RawProducer(stage.kafka_server.port)
        self.tasks = []

    def await_tasks(self, count):
        self.tasks = self.stage.insert("orders", count=count)
        for task in self.tasks:
            self.stage.wait_row(task, LIMIT_S, state="awaiting")

    def answer(self, task):
        return self.stranger.write(self.topic, batch(record(self.body(task))))

    @staticmethod
    def body(task):
        return json.dumps({"id": task, "attempt": 1, "status": "done"}).encode()

    def odd(self, delta):
        return self.stranger.write(self.topic, batch(record(b"odd", delta)))

    def ends_a_fetch(self, delta):
        """Writes a record that claims to be elsewhere, for which there is room in a fetch but not for that behind it."""
        large = batch(record(LARGE))
        for _ in range(4):
            self.stranger.write(self.topic, large)
        self.odd(delta)
        self.stranger.write(self.topic, large)

    def all_count(self):
        for task in self.tasks:
            self.stage.wait_row(task, LIMIT_S, state="done")

    def quarantined(self):
        return dict(self.stage.execute("SELECT origin, seen FROM outbox_quarantine"))

    def origin(self, offset):
        return f"{self.topic}[0]@{offset}"


@pytest.fixture
def answers(stage):
    it = Answers(stage)
    yield it
    it.stranger.close()


def test_a_record_that_claims_to_be_beyond_the_log(answers):
    """The source went on where it said, found nothing there, and read everything again and again."""
    answers.await_tasks(6)
    for task in answers.tasks[:3]:
        answers.answer(task)
        answers.odd(FAR)
    for task in answers.tasks[3:]:
        answers.answer(task)
    answers.all_count()
    assert answers.quarantined() == {answers.origin(offset): 1 for offset in (1, 3, 5)}


@pytest.mark.parametrize("delta", [FAR, 5, 1])
def test_claims_in_what_waited_for_the_daemon(answers, delta):
    """A fetch ends with such a record: in nothing that comes with it can be seen that it lies, and the client goes on
    where it says. What was passed over is read when the gap is looked into."""
    answers.await_tasks(6)
    answers.daemon.stop()
    answers.ends_a_fetch(delta)
    for task in answers.tasks:
        answers.answer(task)
    answers.daemon.start()
    answers.all_count()
    answers.daemon.stop()
    answers.daemon.start()  # what the group holds is a place in the log
    answers.await_tasks(1)
    answers.answer(answers.tasks[0])
    answers.all_count()
    assert set(answers.quarantined().values()) == {1}


def test_a_batch_of_many_that_cannot_be_unpacked(answers):
    """Each of its records used to cost half a second: this one, of some 400 KB, three hours."""
    answers.await_tasks(1)
    first = answers.stranger.write(answers.topic, zstd_zeros(20_000, 6_000))
    answers.answer(answers.tasks[0])
    answers.all_count()
    assert answers.quarantined() == {answers.origin(first): 1}


@pytest.mark.parametrize("odd", [
    batch(record(b"", key_length=-2)),
    batch(record(b"", value_length=-2)),
    gzip_members(record(b"odd")[:4], record(b"odd")[4:]),
    batch(b"".join(record(b"", delta, value_length=-2) for delta in (FAR, 1, 2)), 3),
], ids=["key", "value", "gzip", "batch"])
def test_what_ends_too_early_for_the_client(answers, odd):
    """Java takes any negative length for null, and reads all members of a gzip file. librdkafka took what was left for
    the first part of a batch and fetched it again and again, without a word."""
    answers.await_tasks(3)
    answers.answer(answers.tasks[0])
    first = answers.stranger.write(answers.topic, odd)
    for task in answers.tasks[1:]:
        answers.stranger.write(answers.topic, odd)
        answers.answer(task)
    answers.all_count()
    assert answers.quarantined()[answers.origin(first)] == 1


def test_a_partition_that_is_held_up_for_long_is_said(answers):
    """Each of them costs some seconds, and meanwhile nothing behind them counts."""
    answers.await_tasks(1)
    first = [answers.stranger.write(answers.topic, batch(record(b"", key_length=-2))) for _ in range(30)][0]
    answers.answer(answers.tasks[0])

    def not_ready():
        status, body = answers.daemon.api("GET", "/readyz")
        return json.dumps(body) if status == 503 else ""

    said = wait_until(not_ready, LIMIT_S, "the source to be said to be unread")
    assert "kafka.obstacle" in said and f"{answers.topic}[0]@" in said
    assert "kafka.obstacle" in answers.daemon.run("doctor", check=False).stdout
    answers.all_count()
    wait_until(lambda: answers.daemon.api("GET", "/readyz")[0] == 200, LIMIT_S, "the source to be read")
    assert answers.origin(first) in answers.quarantined()


def test_transactions_beside_it(answers):
    """What a producer took back, and the marks of its transactions, leave gaps between offsets: nothing is wrong then."""
    answers.await_tasks(30)
    with TransactionalProducer(answers.stage.kafka_server.bootstrap, answers.topic) as producer:
        for i, task in enumerate(answers.tasks):
            producer.produce(answers.topic, value=b'{"id": "taken back", "attempt": 1, "status": "done"}')
            producer.abort()
            producer.begin()
            producer.produce(answers.topic, value=answers.body(task))
            producer.commit()
            if i % 3 == 0:
                answers.odd(FAR + i)
            producer.begin()
        producer.abort()
    answers.all_count()
    assert len(answers.quarantined()) == 10 and set(answers.quarantined().values()) == {1}
