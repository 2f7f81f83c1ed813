"""Results that are wrong, late, stale, twice or huge: each is kept or ignored as the
contract says, changes no row that it should not, and the stream goes on (P7)."""

import gzip
import json
import urllib.error
import urllib.request

import pytest

from support.servers.http_receiver import Answer
from support.servers.kafka_client import Client
from support.wait import wait_until

HUGE = 10 * 1024 * 1024


class Results:
    """A route whose results come over one kind of stream, and the means to send them."""

    def __init__(self, stage, kind, **route):
        self.stage = stage
        options = {"result": "expected", "history": "1h", "timeout": "60s", "max_attempts": 5,
                   "retry": {"backoff": "100ms", "max": "100ms"}, **route}
        if kind == "kafka":
            self.route = stage.kafka("work", **options)
            self.address = stage.kafka_server.create_topic(f"{stage.name}-results", 1,
                                                           {"max.message.bytes": str(2 * HUGE)})
            entry = {"via": "bus", "topic": self.address, "group": stage.name}
            self.producer = Client(stage.kafka_server.bootstrap, **{"message.max.bytes": 2 * HUGE})
        else:
            self.route = stage.amqp("work", **options)
            self.address = stage.queue()
            entry = {"via": "rabbit", "queue": self.address}
            self.producer = None
        stage.configuration["results"] = [entry]
        self.daemon = stage.start()
        (stage.consume_kafka if kind == "kafka" else stage.consume_amqp)(self.route)

    def send(self, *bodies):
        for body in bodies:
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            if self.producer:
                self.producer.produce(self.address, None, body)
            else:
                self.stage.rabbitmq.publish("", self.address, body)

    def task(self, body=b"{}", **promise):
        """Insert one task and wait until its result is awaited; returns its message id."""
        message_id = self.stage.insert(self.route, body, **{"kept": True, **promise})[0]
        self.stage.wait_row(message_id, 20, state="awaiting")
        return message_id

    def quarantined(self, count, limit_s=20):
        """Wait for that many rows in the quarantine; returns [(reason, length, body, seen)]"""
        wait_until(lambda: self.stage.count("outbox_quarantine") >= count, limit_s, f"{count} quarantined results",
                   detail=self.daemon.log_tail)
        return self.stage.execute("SELECT reason, length, body, seen FROM outbox_quarantine ORDER BY id")

    def fates(self, fate):
        return self.daemon.metric("duebox_results", fate=fate, route=self.route)

    def goes_on(self):
        """A good result after all the bad ones is applied."""
        message_id = self.task()
        self.send({"id": message_id, "attempt": 1, "status": "done", "result": "good"})
        row = self.stage.wait_row(message_id, 20, state="done")
        assert row["result"] == '"good"'


@pytest.fixture(params=["kafka", "amqp"])
def results(request, stage):
    it = Results(stage, request.param)
    yield it
    if it.producer:
        it.producer.close()


def test_what_is_no_record_is_quarantined(results):
    task = results.task()
    bad = {
        b"": "JSON", b"done": "JSON", b"{": "JSON", b"[]": "object", b"null": "object", b"\xff\xfe\x00": "JSON",
        b'{"id": "%s", "attempt": 1, "status": "do' % task.encode(): "JSON",
        b'{"attempt": 1, "status": "done"}': '"id"',
        b'{"id": "x", "status": "done"}': '"attempt"',
        b'{"id": "x", "attempt": 1}': '"status"',
        b'{"id": "a b", "attempt": 1, "status": "done"}': '"id"',
        b'{"id": "x", "attempt": 1, "status": "finished"}': '"status"',
        b'{"id": "x", "attempt": 1, "status": 7}': '"status"',
        b'{"id": "x", "attempt": "1", "status": "done", "status": "fail"}': '"status"',
    }
    results.send(*bad)
    kept = {body: (reason, length) for reason, length, body, _ in results.quarantined(len(bad))}
    assert set(kept) == set(bad)
    for body, word in bad.items():
        reason, length = kept[body]
        assert length == len(body) and (word == "JSON" or word in reason), (body, reason)
        assert len(reason) > 10
    assert "quarantine" in results.daemon.wait_log("DUEBOX-RESULT-QUARANTINE")["msg"]
    assert results.stage.row(task)["state"] == "awaiting"
    results.goes_on()


def test_an_intelligible_status_counts_whatever_else_is_wrong(results):
    """A consumer that said "retry" is tried again, and the one who wrote the record finds out what
    is wrong with it: the task carries the class answer.broken and the body is kept."""
    stage = results.stage
    bodies = ['{"id": "%s", "attempt": "1", "status": "retry", "error": "partner is closed"}',
              '{"id": "%s", "attempt": 1, "status": "retry", "retry_in_ms": 1e999}',
              '{"id": "%s", "attempt": 1, "status": "retry",}',
              '{"error": {"message": "g\xe9n\xe9ral"}, "id": "%s", "attempt": 1, "status": "retry"}']
    tasks = [results.task() for _ in bodies]
    results.send(*((body % task).encode("latin-1") for body, task in zip(bodies, tasks)))
    for task in tasks:
        row = stage.wait_row(task, 60, state="awaiting", attempt=2)
        assert (row["failures"], row["error_class"]) == (1, "answer.broken")
    kept = results.quarantined(len(tasks))
    assert sorted(reason.split(":")[0] for reason, *_ in kept) == sorted(tasks)
    results.send(*({"id": task, "attempt": 2, "status": "done"} for task in tasks))
    for task in tasks:
        stage.wait_row(task, 60, state="done")
    assert stage.count("outbox_quarantine") == len(tasks)


def test_a_record_from_before_its_task_was_due_ends_nothing_later(results):
    """A task that somebody changed may have been put off while it was out, so the record waits. When the task comes due
    and leaves, it was ended by what had been written before."""
    stage = results.stage
    task, = stage.insert(results.route, b"{}", delay_ms=3600_000, kept=True)
    stage.execute("UPDATE outbox SET priority = 7 WHERE message_id = %s", task)
    results.send({"id": task, "attempt": 1, "status": "done", "result": "early"})
    results.goes_on()   # so it has been met
    stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE message_id = %s", task)
    (reason, *_), = results.quarantined(1)
    assert "attempt 1 was not due when this came" in reason
    assert stage.wait_row(task, 20, state="awaiting")["attempt"] == 1
    results.send({"id": task, "attempt": 1, "status": "done", "result": "good"})
    assert stage.wait_row(task, 20, state="done")["result"] == '"good"'


def test_the_correlation_id_names_the_task(results):
    """Where the broker says which message is answered, the record need not: an automatic reply of
    Spring and a record of Celery's result backend end their task."""
    replies = [{"status": "done", "result": 5},
               {"task_id": None, "status": "SUCCESS", "result": 5, "traceback": None, "children": []}]
    for reply in replies:
        task = results.task()
        body = json.dumps({**reply, **({"task_id": task} if "task_id" in reply else {})}).encode()
        if results.producer:
            results.producer.produce(results.address, None, body, {"kafka_correlationId": task})
        else:
            results.stage.rabbitmq.publish("", results.address, body, correlation_id=task)
        assert results.stage.wait_row(task, 60, state="done")["result"] == "5"
    assert results.stage.count("outbox_quarantine") == 0


def test_a_replay_knows_the_task_by_its_correlation_id(results):
    """The answer came before its task was there again (a restored database). It is applied as it would be if it came
    now, by the command line and over HTTP, though its body names no task."""
    stage = results.stage
    tasks = [f"again-{number}" for number in range(3)]
    bodies = [{"status": "done", "attempt": 1}, {"task_id": "x", "status": "SUCCESS", "result": 5}, {"status": "done"}]
    for task, record in zip(tasks, bodies):
        body = json.dumps(record).encode()
        if results.producer:
            results.producer.produce(results.address, None, body, {"duebox-id": task})
        else:
            stage.rabbitmq.publish("", results.address, body, correlation_id=task)
    results.quarantined(3)
    numbers = [number for (number,) in stage.execute("SELECT id FROM outbox_quarantine ORDER BY id")]
    for number in numbers:
        assert results.daemon.run("quarantine", "replay", number, check=False).returncode == 66
    for task in tasks:
        stage.execute("INSERT INTO outbox (route, message_id, payload) VALUES ('work', %s, '{}')", task)
    for task in tasks:
        stage.wait_row(task, 60, state="awaiting")
    assert results.daemon.run("quarantine", "replay", *numbers[:2]).stdout.count("applied") == 2
    status, answer = results.daemon.api("POST", f"/api/v1/quarantine/{numbers[2]}/replay", {})
    assert (status, answer.get("fate")) == (200, "applied"), answer
    for task in tasks:
        stage.wait_row(task, 60, state="done")
    assert stage.count("outbox_quarantine") == 0
    results.goes_on()


def test_an_answer_without_attempt_to_a_later_attempt_is_that_ones(stage):
    """It often comes before it is recorded that its message has left: it is no second answer to the attempt before."""
    stage.amqp("work", result="expected", history="1h", timeout="10m", retry={"levels": ["20ms"]})
    stage.configuration["results"] = [{"via": "rabbit", "queue": stage.queue()}]
    daemon = stage.start()
    stage.consume_amqp("work", answer=lambda arrival: {
        "attempt": None, "status": ("retry", "retry", "fail" if arrival.body == b"fail" else "done")[arrival.attempt - 1]})
    for _ in range(50):
        stage.insert("work", b"done", kept=True, copies=3)
        stage.insert("work", b"fail", end="dead", copies=3)
    stage.wait_empty(120)
    assert list(stage.execute("SELECT state, attempt, COUNT(*) FROM outbox_history GROUP BY 1, 2 ORDER BY 1")) == [
        ("done", 3, 50), ("dead", 3, 50)]
    assert stage.count("outbox_quarantine") == 0 and daemon.metric("duebox_results", fate="duplicate", route="work") == 0


def test_a_correlation_id_that_is_no_message_id_is_quarantined_at_once(results):
    """Spring writes the bytes of a UUID. The database would refuse to compare them with an id, and the results of all
    others would wait for that. One with a NUL is not the id before it."""
    task = results.task()
    odd = [bytes(range(0x80, 0x90)), b"p-09\xff", "bestellung-ü".encode(), b"two words", task.encode()[:30] + b"\0x"]
    for number, correlation in enumerate(odd):
        body = json.dumps({"status": "done", "result": number}).encode()
        if results.producer:
            results.producer.produce(results.address, None, body, {"kafka_correlationId": correlation})
        elif number in (2, 3):      # the client writes text alone
            results.stage.rabbitmq.publish("", results.address, body, correlation_id=correlation.decode())
    count = len(odd) if results.producer else 2
    assert ['"id" is missing'] * count == [reason for reason, *_ in results.quarantined(count)]
    assert "DUEBOX-RESULT-REFUSED" not in results.daemon.log_tail() and results.stage.row(task)["state"] == "awaiting"
    results.goes_on()


@pytest.mark.parametrize("results", ["kafka"], indirect=True)
def test_two_correlation_ids_name_no_task(results):
    """Kafka lets a header come twice. The record's own id goes before them, and the same id twice is one."""
    first, second, third = (results.task() for _ in range(3))

    def send(record, *ids):
        results.producer.produce(results.address, None, json.dumps(record).encode(), [("duebox-id", one) for one in ids])
    send({"status": "done"}, first, second)
    assert ['"id" is missing'] == [reason for reason, *_ in results.quarantined(1)]
    send({"id": second, "attempt": 1, "status": "done"}, first, second)
    send({"status": "done"}, third, third)
    for task in (second, third):
        results.stage.wait_row(task, 60, state="done")
    assert results.stage.row(first)["state"] == "awaiting" and results.stage.count("outbox_quarantine") == 1
    results.goes_on()


@pytest.mark.parametrize("results", ["kafka"], indirect=True)
def test_a_foreign_header_does_not_hide_which_task_is_meant(results):
    """correlation_id is a usual name for tracing headers, and interceptors add theirs to the ones that came in."""
    task = results.task()
    results.producer.produce(results.address, None, b'{"status": "done"}',
                             [("correlation_id", "a"), ("duebox-id", task), ("correlation_id", "b")])
    results.stage.wait_row(task, 60, state="done")
    assert results.stage.count("outbox_quarantine") == 0


def test_a_checkpoint_that_is_too_large_is_refused(results):
    """Each attempt carries the checkpoint in a header, so one that fits no header would kill its
    task. The status still counts, and the class says what was left out."""
    task = results.task()
    results.send({"id": task, "attempt": 1, "status": "retry", "checkpoint": "x" * 140_000, "retry_in_ms": 0})
    row = results.stage.wait_row(task, 60, state="awaiting", attempt=2)
    assert (row["checkpoint"], row["error_class"]) == (None, "answer.checkpoint_too_large")
    results.send({"id": task, "attempt": 2, "status": "done"})
    results.stage.wait_row(task, 60, state="done")


def call_back(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_a_checkpoint_that_no_attempt_can_carry_is_refused(stage):
    """engine.max_checkpoint takes more than a request over HTTP or a frame of AMQP has room for. What was stored of it
    made the next attempt dead; now whoever answers with it is told, and what was stored before stays."""
    options = {"result": "expected", "history": "1h", "max_attempts": 5}
    stage.plugin("hooks", module="http", allow_private=True, max_response="1MiB")
    stage.http("now", **options)
    stage.http("later", **options)
    stage.amqp("queued", **options)
    answers, large = stage.queue(), "x" * 300_000
    stage.configuration["results"] = [{"via": "rabbit", "queue": answers}]
    stage.receiver.on("/now", lambda request: Answer(
        200, json.dumps({"status": "retry", "retry_in_ms": 0, "checkpoint": large} if request.headers["duebox-attempt"] == "1"
                        else {"status": "done"}).encode(), {"Content-Type": "application/json"}))
    stage.receiver.on("/later", Answer(202))
    stage.start(engine={"max_checkpoint": "1MiB", "max_record": "2MiB"})
    stage.consume_amqp("queued")
    now, later, queued = (stage.insert(route, kept=True)[0] for route in ("now", "later", "queued"))

    stage.wait_row(now, 60, state="done", attempt=2)
    ((reason,),) = stage.execute("SELECT reason FROM outbox_quarantine")
    assert now in reason and "245760" in reason

    stage.wait_row(later, 60, state="awaiting")
    url = stage.receiver.wait_count(1, 60, "/later")[0].headers["duebox-callback"]
    assert call_back(url, {"status": "progress", "checkpoint": "half"})["fate"] == "applied"
    assert "245760" in call_back(url, {"status": "progress", "progress": 0.5, "checkpoint": large})["flaw"]
    row = stage.row(later)
    assert (row["checkpoint"], row["progress"]) == ("half", 0.5)
    call_back(url, {"status": "retry", "checkpoint": large, "retry_in_ms": 0})
    second = stage.receiver.wait_count(2, 60, "/later")[1]
    assert (second.headers["duebox-attempt"], second.headers["duebox-checkpoint"]) == ("2", "half")

    stage.wait_row(queued, 60, state="awaiting")
    for attempt, size in (1, 112_641), (2, 112_640):
        stage.rabbitmq.publish("", answers, json.dumps({"id": queued, "attempt": attempt, "status": "retry",
                                                        "checkpoint": "x" * size, "retry_in_ms": 0}).encode())
        row = stage.wait_row(queued, 60, state="awaiting", attempt=attempt + 1)
        kept = (None, "answer.checkpoint_too_large") if attempt == 1 else ("x" * size, "result.retry")
        assert (row["checkpoint"], row["error_class"]) == kept


def test_what_says_the_opposite_names_its_task(stage):
    """Consumers that call back need not name the task in what they say, and it is kept of each task for itself; the
    token of the URL is not. (300 tasks that were dead and done had one row in the quarantine.)"""
    tasks = 3
    stage.http("later", history="1h", timeout="60s", max_attempts=1)
    stage.receiver.on("/later", Answer(202))
    daemon = stage.start()
    ids = sorted(stage.insert("later", kept=True)[0] for _ in range(tasks))
    for task in ids:
        stage.wait_row(task, 60, state="awaiting")
    urls = [copy.headers["duebox-callback"] for copy in stage.receiver.wait_count(tasks, 60, "/later")]
    for task in ids:
        assert daemon.api("POST", "/api/v1/results", {"id": task, "attempt": 1, "status": "fail"})[0] == 200
        stage.wait_row(task, 60, state="dead")
    for url in urls * 2:
        assert call_back(url, {"status": "done"})["fate"] == "duplicate"
    kept = stage.execute("SELECT source, origin, reason, seen FROM outbox_quarantine ORDER BY origin")
    assert [row[:2] for row in kept] == [("callback", f"/callback/{task}/1") for task in ids]
    assert all(row[2].startswith(task) and row[3] == 2 for row, task in zip(kept, ids, strict=True))


def test_a_message_with_all_that_is_allowed_leaves(stage):
    """The largest headers of an application beside the largest checkpoint that is stored for their route."""
    stage.amqp("queued", history="1h")
    stage.start()
    headers = {f"{number}{'x' * 248}": 1 for number in range(10, 74)}
    assert 16_300 < len(json.dumps(headers, separators=(",", ":"))) <= 16_384
    stage.execute("INSERT INTO outbox (message_id, route, payload, headers, checkpoint)"
                  " VALUES ('whole', 'queued', '{}', %s, %s)", json.dumps(headers, separators=(",", ":")),
                  "x" * 112_640)
    assert stage.wait_row("whole", 60, attempt=1)["state"] == "done"


def test_the_same_bad_record_again_only_counts_up(results):
    results.send(*[b"again and again"] * 3)
    results.goes_on()
    # The origin (partition, or queue) tells two records apart only where it is another one.
    assert sum(seen for _, _, _, seen in results.quarantined(1)) == 3


def test_an_unknown_id_is_quarantined(results):
    results.send({"id": "nobody", "attempt": 1, "status": "done"})
    [(reason, _, body, _)] = results.quarantined(1)
    assert json.loads(body)["id"] == "nobody" and reason
    results.goes_on()


def test_the_opposite_of_what_ended_a_task_is_kept(results):
    """A consumer that says "fail" after "done" changes nothing, and is not forgotten either: people find
    what it said, and a replay does not take it away."""
    task = results.task()
    results.send({"id": task, "attempt": 1, "status": "done"})
    results.stage.wait_row(task, 60, state="done")
    results.send({"id": task, "attempt": 1, "status": "fail", "error": {"message": "the money was not taken"}})
    [(reason, _, body, _)] = results.quarantined(1)
    assert task in reason and b"the money was not taken" in body
    assert results.stage.row(task)["state"] == "done"
    wait_until(lambda: any(line["id"] == "DUEBOX-RESULT-QUARANTINE" and "opposite" in line["msg"]
                           for line in results.daemon.lines()), 60, "the log to say so")
    [(number,)] = results.stage.execute("SELECT id FROM outbox_quarantine")
    replayed = results.daemon.run("quarantine", "replay", number, check=False)
    assert replayed.returncode == 65 and "opposite" in replayed.stderr
    assert len(results.quarantined(1)) == 1
    results.goes_on()


def test_an_attempt_that_never_was_is_quarantined(results):
    task = results.task()
    results.send({"id": task, "attempt": 7, "status": "done"})
    [(reason, _, _, _)] = results.quarantined(1)
    assert "7" in reason
    row = results.stage.row(task)
    assert (row["state"], row["attempt"]) == ("awaiting", 1)
    results.send({"id": task, "attempt": 1, "status": "done"})
    results.stage.wait_row(task, 20, state="done")


def test_a_stale_result_changes_nothing(results):
    task = results.task()
    results.send({"id": task, "attempt": 1, "status": "retry", "retry_in_ms": 10})
    results.stage.wait_row(task, 20, state="awaiting", attempt=2)
    results.send({"id": task, "attempt": 1, "status": "fail"}, {"id": task, "attempt": 1, "status": "retry"})
    wait_until(lambda: results.fates("stale") + results.fates("duplicate") >= 2, 20, "two stale results",
               detail=results.daemon.log_tail)
    row = results.stage.row(task)
    assert (row["state"], row["attempt"], row["failures"]) == ("awaiting", 2, 1)
    results.send({"id": task, "attempt": 2, "status": "done"})
    results.stage.wait_row(task, 20, state="done")
    results.goes_on()


def test_a_duplicate_result_changes_nothing(results):
    task = results.task()
    answer = {"id": task, "attempt": 1, "status": "done", "result": 1}
    results.send(answer, answer, {**answer, "result": 2}, {**answer, "status": "fail"})
    results.stage.wait_row(task, 20, state="done", result="1")
    results.goes_on()
    row = results.stage.row(task)
    assert (row["state"], row["result"]) == ("done", "1")
    assert [what[1:3] for what in results.stage.attempts(task)].count(("result", "done")) == 1


def test_a_retry_told_twice_counts_once(results):
    task = results.task()
    answer = {"id": task, "attempt": 1, "status": "retry", "retry_in_ms": 400}
    results.send(answer, answer)
    row = results.stage.wait_row(task, 20, state="awaiting", attempt=2)
    assert row["failures"] == 1
    results.send({"id": task, "attempt": 2, "status": "done"})
    results.stage.wait_row(task, 20, state="done")


def test_a_result_of_ten_megabytes(results):
    """It is never loaded as a whole; its beginning is kept, with its length, and counts if it says enough."""
    task, other = results.task(), results.task()
    body = json.dumps({"id": task, "attempt": 1, "status": "done", "result": "x" * HUGE}).encode()
    results.send(body)
    [(reason, length, kept, _)] = results.quarantined(1)
    assert reason.startswith(task) and "max_record" in reason and str(len(body)) in reason
    assert 0 < len(kept) <= 65535 and body.startswith(kept[:100])
    row = results.stage.wait_row(task, 20, state="done")
    assert (row["error_class"], row["result"]) == ("answer.broken", None)
    late = json.dumps({"id": other, "attempt": 1, "result": "x" * HUGE, "status": "done"}).encode()
    results.send(late)
    reason = results.quarantined(2)[1][0]
    assert "max_record" in reason and str(len(late)) in reason
    assert results.stage.row(other)["state"] == "awaiting"
    results.goes_on()


def test_a_result_that_overtakes_the_record_of_its_publishing(stage):
    """The consumer answers long before the daemon writes down that it has published."""
    stage.configuration["engine"]["settle_delay"] = "3s"
    stage.configuration["engine"]["settle_rows"] = 100000
    stage.kafka("work", result="expected", history="1h", timeout="60s")
    stage.configuration["results"] = [{"via": "bus", "topic": stage.topic(1), "group": stage.name}]
    daemon = stage.start()
    stage.consume_kafka("work", answer=lambda arrival: {"status": "done", "result": arrival.attempt})
    ids = stage.insert("work", count=50, kept=True, result="1")
    for message_id in ids:
        row = stage.wait_row(message_id, 20, state="done")
        assert row["attempt"] == 1 and row["published_at"] >= row["due_at"]
    wait_until(lambda: daemon.metric("duebox_inflight_tasks") == 0, 20, "the late settling")
    stage.check()
    assert stage.count("outbox_quarantine") == 0


def test_progress_keeps_a_task_alive_and_its_checkpoint_travels(results):
    stage = results.stage
    task = results.task()
    until = stage.row(task)["lease_until"]
    results.send({"id": task, "attempt": 1, "status": "progress", "progress": 0.5, "checkpoint": "half",
                  "extend_ms": 120000})
    row = stage.wait_row(task, 20, progress=0.5)
    assert (row["state"], row["attempt"], row["checkpoint"]) == ("awaiting", 1, "half")
    assert row["lease_until"] > until
    results.send({"id": task, "attempt": 1, "status": "retry", "retry_in_ms": 0})
    wait_until(lambda: len(stage.ledger.arrivals) == 2, 20, "the second attempt")
    second = stage.ledger.arrivals[1]
    assert (second.attempt, second.headers["duebox-checkpoint"]) == (2, "half")
    results.send({"id": task, "attempt": 2, "status": "done"})
    stage.wait_row(task, 20, state="done")


def test_what_an_http_response_says_counts(stage):
    """A consumer of HTTP that answers retry or fail is never taken for done, whatever its media type
    and however carelessly it wrote the body. Where nobody can know whether there is a status in it, the
    HTTP status counts, and that is said: the work of a task that was done is not done again (P4)."""
    stage.http("hook", history="1h", max_attempts=5, retry={"backoff": "1h"})
    daemon = stage.start()
    bodies = {"plain": (b'{"status":"fail"}', "text/plain", "dead"),
              "none": (b'{"status":"fail"}', None, "dead"),
              "text": (b'{"status":"retry","error":"closed"}', "application/json", "scheduled"),
              "comma": (b'{"status":"retry",}', "application/json", "scheduled"),
              "latin1": (b'{"status":"retry","error":{"message":"g\xe9n\xe9ral"}}', "text/html", "scheduled"),
              "number": (b'{"status":"retry","attempt":"1","at":1e999}', "application/json", "scheduled"),
              "large": (b'{"status":"retry","checkpoint":"%s"}' % (b"x" * 50_000), "application/json", "scheduled"),
              "capitals": (b'{"Status":"Fail","Error":{"Message":"no"}}', "application/json", "dead"),
              "utf16": ('{"status":"fail"}'.encode("utf-16"), "application/json", "dead"),
              "last": (b'{"error":{"message":"no"},"pad":"%s","status":"fail"}' % (b"x" * 70_000), "application/json",
                       "dead"),
              "first": (b'{"status":"fail","pad":"%s"}' % (b"x" * 70_000), "application/json", "dead"),
              "page": (b"<html>%s" % (b"x" * 70_000), "text/html", "done"),
              "long": (b'{"orders":"%s","status":"paid"}' % (b"x" * 70_000), "application/json", "done"),
              "longest": (b'{"pad":"%s","status":"fail"}' % (b"x" * 1_200_000), "application/json", "done"),
              "gzip": (gzip.compress(b'{"status":"fail"}'), "application/json", "done"),
              "ordinary": (b'{"status":"ok","id":17}', "application/json", "done"),
              "order": (b'{"id":17,"status":"done","attempt":9}', "application/json", "done")}

    def respond(request):
        body, media_type, _ = bodies[request.body.decode()]
        headers = {"Content-Type": media_type} if media_type else {}
        return Answer(200, body, {**headers, "Content-Encoding": "gzip"} if request.body == b"gzip" else headers)

    stage.receiver.on("/hook", respond)
    tasks = {name: stage.insert("hook", name.encode(), kept=True)[0] for name in bodies}
    for name, task in tasks.items():
        row = stage.wait_row(task, 60, state=bodies[name][2], attempt=1)
        assert row["failures"] == (0 if bodies[name][2] == "done" else 1), name
    assert stage.row(tasks["text"])["error_class"] == "answer.broken"
    assert [stage.row(tasks[name])["last_error"] for name in ("capitals", "last")] == ["no", "no"]
    assert stage.row(tasks["large"])["error_class"] == "answer.checkpoint_too_large"
    for name in ("order", "ordinary", "page", "long"):
        assert stage.row(tasks[name])["error_class"] is None, name
    for name in ("longest", "gzip"):
        assert stage.row(tasks[name])["error_class"] == "http.answer_unread", name
    daemon.wait_log("DUEBOX-ANSWER-UNREAD", limit_s=60)
    flawed = {tasks[name] for name in ("text", "comma", "latin1", "large", "utf16", "last", "first")}
    wait_until(lambda: {reason.split(":")[0] for (reason,) in stage.execute("SELECT reason FROM outbox_quarantine")}
               == flawed, 60, "the flawed answers in the quarantine")


def test_what_the_server_refuses_of_a_result_is_said(stage):
    """A result that comes later is settled like one that is the answer to the call: without what the server refuses
    of it, and that is logged and counted; where nothing can be written, its sender and the quarantine learn why."""
    stage.http("hook", history="1h", result="expected", timeout="10m")
    stage.receiver.on("/hook", Answer(202))
    daemon = stage.start()
    done, dead = (stage.insert("hook", kept=True)[0] for _ in range(2))
    for task in (done, dead):
        stage.wait_row(task, 20, state="awaiting")
    stage.execute("CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW"
                  " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no thanks'")
    status, answer = daemon.api("POST", "/api/v1/results", {"id": done, "attempt": 1, "status": "done"})
    assert (status, answer["fate"]) == (200, "applied")
    said = daemon.wait_log("DUEBOX-SETTLE-REDUCED", text=done)["msg"]
    assert "line in the history" in said and "no thanks" in said
    assert daemon.metric("duebox_settled_reduced") == 1
    status, answer = daemon.api("POST", "/api/v1/results", {"id": dead, "attempt": 1, "status": "fail"})
    assert (status, answer["code"]) == (500, "refused") and "no thanks" in answer["detail"]
    daemon.wait_log("DUEBOX-RESULT-QUARANTINE", text="the server refuses")
    assert "no thanks" in stage.execute("SELECT reason FROM outbox_quarantine")[0][0]
    urls = {copy.headers["webhook-id"]: copy.headers["duebox-callback"]
            for copy in stage.receiver.wait_count(2, 60, "/hook")}
    with pytest.raises(urllib.error.HTTPError) as refused:
        call_back(urls[dead], {"status": "fail"})
    assert refused.value.code == 500 and "no thanks" in json.load(refused.value)["detail"]
    assert stage.count("outbox_quarantine") == 1  # by its callback URL nothing is kept that its sender is told of
    stage.execute("DROP TRIGGER refuse")
    assert daemon.api("POST", "/api/v1/results", {"id": dead, "attempt": 1, "status": "fail"})[1]["fate"] == "applied"


def test_an_answer_that_says_progress_where_no_more_can_come(stage):
    """It used to await its time-out, and was sent again though it was taken: 202 is done there, too."""
    stage.http("work", history="1h", timeout="5s")
    stage.receiver.on("/work", Answer(200, body=b'{"status": "progress"}'))
    stage.start(callbacks={"listen": "off"})
    task, = stage.insert("work", end="")
    stage.wait_row(task, 60, state="done")
    assert stage.execute("SELECT attempt, failures FROM outbox_history WHERE message_id = %s", task) == ((1, 0),)
