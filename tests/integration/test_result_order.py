"""Records about one task are applied in the order of their queue, however many daemons there are: one of them reads a
RabbitMQ queue, the others stand by and take over. Each used to read a part of it, and in 119 of 400 tasks the second
answer counted."""

import json

import pytest

from support.wait import wait_until

LIMIT_S = 120
KINDS = {"classic": {}, "quorum": {"x-queue-type": "quorum"}, "single": {"x-single-active-consumer": True},
         "quorum single": {"x-queue-type": "quorum", "x-single-active-consumer": True}}
EACH = 60


@pytest.fixture
def answered(stage):
    """A stage with a route whose consumers answer to a queue of a kind; a function that makes it."""
    def make(kind):
        stage.amqp("orders", result="expected", timeout="10m", history="1d")
        stage.configuration["plugins"]["rabbit"]["heartbeat"] = "1s"
        stage.answers = stage.rabbitmq.declare_queue(f"{stage.name}-answers", arguments=KINDS[kind])
        stage.configuration["results"] = [{"via": "rabbit", "queue": stage.answers}]
        return stage
    return make


def publish(stage, records):
    """On one channel, so in this order."""
    with stage.rabbitmq.connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for record in records:
            channel.basic_publish("", stage.answers, json.dumps(record).encode())


def readers(stage):
    with stage.rabbitmq.connect() as connection:
        return connection.channel().queue_declare(stage.answers, passive=True).method.consumer_count


def is_reading(daemon):
    status, body = daemon.api("GET", "/api/v1/stats")
    assert status == 200
    source = next(plugin for plugin in body["plugins"] if plugin["role"] == "source")
    return source["up"] and "another consumer" not in source["text"]


def awaiting(stage, count):
    tasks = stage.insert("orders", count=count, end="")
    wait_until(lambda: stage.count("outbox", "state = 'awaiting'") == count, LIMIT_S, "the tasks to be sent")
    return tasks


def contradict(stage, tasks):
    """Two answers for each, one behind the other; returns what the first ones say."""
    wanted, records = {}, []
    for i, task in enumerate(tasks):
        words = ("done", "fail") if i % 2 else ("fail", "done")
        records += [{"id": task, "attempt": 1, "status": word} for word in words]
        wanted[task] = "done" if i % 2 else "dead"
    publish(stage, records)
    return wanted


def came_to(stage):
    return dict(stage.execute("SELECT message_id, state FROM outbox_history"))


def other(daemons, one):
    return next(daemon for daemon in daemons if daemon is not one)


def reader_of(daemons):
    return wait_until(lambda: next((d for d in daemons if is_reading(d)), None), LIMIT_S, "a daemon to read")


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_answer_counts(answered, kind):
    stage = answered(kind)
    daemons = [stage.start(), stage.start(), stage.start()]
    reader_of(daemons)
    tasks = awaiting(stage, EACH)
    wanted = contradict(stage, tasks)
    stage.wait_empty(LIMIT_S)
    wait_until(lambda: stage.rabbitmq.queue_depth(stage.answers) == 0, LIMIT_S, "the queue to be read")
    assert came_to(stage) == wanted
    assert [is_reading(daemon) for daemon in daemons].count(True) == 1
    assert readers(stage) == 1
    for daemon in daemons:
        daemon.wait_ready()
        assert not [line for line in daemon.lines() if line["level"] in ("warn", "error")
                    and line["id"].startswith("AMQP")], daemon.log_tail()


def test_the_last_checkpoint_stays(answered):
    stage = answered("classic")
    daemons = [stage.start(), stage.start()]
    reader_of(daemons)
    tasks = awaiting(stage, EACH)
    publish(stage, [{"id": task, "attempt": 1, "status": "progress", "checkpoint": f"c{i}"}
                    for task in tasks for i in range(4)])
    wait_until(lambda: stage.rabbitmq.queue_depth(stage.answers) == 0, LIMIT_S, "the records to be read")
    wait_until(lambda: stage.count("outbox", "checkpoint = 'c3'") == EACH, 10, "the last checkpoint of each",
               detail=lambda: str(stage.execute("SELECT checkpoint, COUNT(*) FROM outbox GROUP BY checkpoint")))
    for daemon in daemons:
        daemon.kill9()


@pytest.mark.parametrize("kind, end", [("classic", "killed"), ("classic", "frozen"), ("classic", "stopped"),
                                       ("quorum", "killed"), ("quorum", "frozen"), ("single", "killed")])
def test_another_daemon_takes_over(answered, kind, end):
    """Whoever reads is gone, or stands still: the broker's heartbeats end that. Nothing is lost, and the order stays."""
    stage = answered(kind)
    daemons = [stage.start(), stage.start()]
    first = reader_of(daemons)
    second = other(daemons, first)
    tasks = awaiting(stage, EACH)
    if end == "frozen":
        first.pause()
    elif end == "killed":
        first.kill9()
    wanted = contradict(stage, tasks)
    if end == "stopped":
        first.stop()
    stage.wait_empty(LIMIT_S)
    wait_until(lambda: is_reading(second), LIMIT_S, "the second one to read")  # the first may have written all
    assert came_to(stage) == wanted
    if end == "frozen":
        first.resume()
        wait_until(lambda: not is_reading(first), LIMIT_S, "the first one to stand by")
        assert came_to(stage) == wanted
        assert readers(stage) == 1


def test_doctor_counts_who_reads(answered):
    """One daemon is a consumer of the queue. A stranger beside it would take a part of the answers."""
    stage = answered("quorum")
    daemons = [stage.start(), stage.start()]
    reader_of(daemons)

    def said():
        done = daemons[0].run("doctor", "-o", "jsonl", check=False)
        return [line["text"] for line in map(json.loads, done.stdout.splitlines())
                if line["check"] == "target" and line["level"] != "ok"]
    assert not said()
    with stage.rabbitmq.connect() as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(stage.answers, lambda *_: None)
        text, = said()
        assert "2 consumers, and only one daemon of this outbox is to be one" in text


def test_a_stranger_is_told_from_a_daemon(answered):
    """A debugging consumer came first: all daemons stood by for it, as for each other, ready and without a word, and the
    answers went to it. While a daemon reads, the one that stands by is ready."""
    stage = answered("classic")
    with stage.rabbitmq.connect() as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(stage.answers, lambda *_: None)
        daemons = [stage.daemon("one").start(wait_ready=False), stage.daemon("two").start(wait_ready=False)]
        for daemon in daemons:
            daemon.wait_log("DUEBOX-RESULTS-TAKEN", limit_s=LIMIT_S)

            def why(daemon=daemon):
                status, body = daemon.api("GET", "/readyz")
                return json.dumps(body) if status == 503 and "have not been read" in json.dumps(body) else ""
            text = wait_until(why, LIMIT_S, "/readyz to say so", detail=daemon.log_tail)
            assert "no daemon of this outbox reads it: another consumer reads the queue" in text, text
        tasks = awaiting(stage, EACH)
        wanted = contradict(stage, tasks)
    stage.wait_empty(LIMIT_S)
    assert came_to(stage) == wanted
    for daemon in daemons:
        daemon.wait_ready()
    reader, = (daemon for daemon in daemons if is_reading(daemon))
    name = reader.configuration["engine"]["instance"]
    assert stage.execute("SELECT COUNT(*) FROM outbox_instances WHERE id LIKE 'results %%' AND version LIKE %s"
                         " AND alive_until > UTC_TIMESTAMP(6)", f"{name}-%")[0][0] == 1
