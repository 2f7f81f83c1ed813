"""Whoever may write to one result queue ends, moves and feeds no task of another road (P7): neither that of
another partner nor one whose own HTTP call is still open (P1), though he knows their message ids."""

import json
import threading

import pytest
from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60


def test_a_partner_speaks_for_nobody_else(stage):
    queue = {name: stage.queue() for name in "ab"}
    claims = ["memory", "recorded"]
    for claim in claims:
        for name in "ab":
            stage.amqp(f"{name}.{claim}", reply_to=queue[name], result="expected", timeout="10m", history="1h",
                       claim=claim)
        stage.http(f"pay.{claim}", timeout="10m", history="1h", claim=claim)
        stage.http(f"sync.{claim}", timeout="5m", history="1h", claim=claim)
    stage.configuration["results"] = [{"via": "rabbit", "queue": queue[name]} for name in "ab"]
    daemon = stage.start()
    stage.consume_amqp(*(f"{name}.{claim}" for name in "ab" for claim in claims))
    stage.consume_http()
    opened = threading.Event()
    stage.receiver.on("/pay.", Answer(202))
    stage.receiver.on("/sync.", Answer(500, after=opened))
    ids = {route: stage.insert(route, kept=True)[0] for route in stage.configuration["routes"]}
    for route in ids:
        if not route.startswith("sync"):
            stage.wait_row(ids[route], LIMIT_S, state="awaiting")
    stage.wait_arrived(len(ids), LIMIT_S)

    def send(name, route, **members):
        stage.rabbitmq.publish("", queue[name], json.dumps({"id": ids[route], "attempt": 1, **members}).encode())

    for claim in claims:
        send("a", f"b.{claim}", status="done")
        send("a", f"b.{claim}", status="progress", checkpoint="planted")
        send("a", f"pay.{claim}", status="fail", error={"message": "killed by a"})
        send("a", f"pay.{claim}", status="retry", retry_in_ms=0, checkpoint="planted")
        send("a", f"sync.{claim}", status="done")
        send("a", f"a.{claim}", status="done")     # the stream goes on
    for claim in claims:
        stage.wait_row(ids[f"a.{claim}"], LIMIT_S, state="done")
    reasons = [reason for (reason,) in stage.execute("SELECT reason FROM outbox_quarantine")]
    for claim in claims:
        for name, count in (("b", 2), ("pay", 2), ("sync", 1)):
            said = [reason for reason in reasons if f"route {name}.{claim} takes no results from rabbit#1" in reason]
            assert len(said) == count and all("reply_to" in reason for reason in said), reasons
            assert daemon.metric("duebox_results", fate="misrouted", route=f"{name}.{claim}") == count
        for name in ("b", "pay"):
            row = stage.row(ids[f"{name}.{claim}"])
            assert (row["state"], row["attempt"], row["failures"], row["checkpoint"]) == ("awaiting", 1, 0, None)
    assert any("does not answer there" in line["msg"] for line in daemon.lines()
               if line["id"] == "DUEBOX-RESULT-QUARANTINE")
    opened.set()        # the endpoint's own answer is the one that counts
    for claim in claims:
        wait_until(lambda task=ids[f"sync.{claim}"]: stage.row(task)["failures"] == 1, LIMIT_S, "the 500 to count")
    # On its own road, and where an operator replays what he has read, it counts.
    for claim in claims:
        send("b", f"b.{claim}", status="done")
    for (number,) in stage.execute("SELECT id FROM outbox_quarantine WHERE body LIKE '%%killed by a%%'"):
        daemon.run("quarantine", "replay", number)
    for claim in claims:
        stage.wait_row(ids[f"b.{claim}"], LIMIT_S, state="done")
        stage.wait_row(ids[f"pay.{claim}"], LIMIT_S, state="dead")


def test_an_answer_over_another_broker(stage):
    """With one line: the entry that it comes on lists the route. Check says that the line is missing."""
    stage.http("pay.x", timeout="10m", history="1h")
    stage.kafka("k.x", result="expected", reply_to="elsewhere", timeout="10m", history="1h")
    queue = stage.queue()
    stage.plugin("rabbit", module="amqp", url=stage.rabbitmq.url)
    stage.configuration["results"] = [{"via": "rabbit", "queue": queue}]
    daemon = stage.daemon()
    checked = daemon.run("check").stderr
    assert "rabbit#1: no route of this configuration answers there" in checked
    assert "k.x: its reply_to is no topic or queue of results here" in checked
    listed = [{"via": "rabbit", "queue": queue, "routes": ["pay.*", "k.x"]}]
    daemon.configure({**daemon.configuration, "results": listed})
    assert "DUEBOX-CONFIG-ANSWERS" not in daemon.run("check").stderr
    daemon.start()
    stage.consume_kafka("k.x")
    stage.consume_http()
    opened = threading.Event()
    stage.receiver.on("/pay.x", Answer(202, after=opened))
    pay, order = stage.insert("pay.x", kept=True)[0], stage.insert("k.x", kept=True)[0]
    stage.wait_row(order, LIMIT_S, state="awaiting")
    stage.wait_row(pay, LIMIT_S, state="claimed")
    stage.wait_arrived(2, LIMIT_S)
    for task in (pay, order):
        stage.rabbitmq.publish("", queue, json.dumps({"id": task, "attempt": 1, "status": "done"}).encode())
    stage.wait_row(order, LIMIT_S, state="done")
    assert stage.row(pay)["state"] == "claimed"     # its call is open, and says first that the result comes later
    opened.set()
    stage.wait_row(pay, LIMIT_S, state="done")
    assert stage.count("outbox_quarantine") == 0


def test_a_message_is_answered_where_it_said(stage):
    """Also when its route has another reply_to by now, or the task another route: nothing waits for its time-out and
    is sent a second time (P4). What the message did not name is refused as before (P7)."""
    queue = {name: stage.queue() for name in ("first", "second", "third")}
    stage.amqp("a.x", reply_to=queue["first"], result="expected", timeout="1h", history="1h")
    stage.amqp("c.x", reply_to=queue["third"], result="expected", timeout="1h", history="1h")
    stage.http("h.x", timeout="1h", history="1h")
    stage.configuration["results"] = [{"via": "rabbit", "queue": name} for name in queue.values()]
    daemon = stage.start()
    stage.consume_amqp("a.x", "c.x")
    stage.consume_http()
    reloaded, moved = stage.insert("a.x", kept=True, count=2)
    for task in (reloaded, moved):
        stage.wait_row(task, LIMIT_S, state="awaiting")
    stage.wait_arrived(2, LIMIT_S)
    changed = {**daemon.configuration["routes"]["a.x"], "reply_to": queue["second"]}
    assert daemon.reload({**daemon.configuration, "routes": {**daemon.configuration["routes"], "a.x": changed}})
    stage.execute("UPDATE outbox SET route = 'h.x' WHERE message_id = %s", moved)

    def send(name, task, **members):
        stage.rabbitmq.publish("", queue[name], json.dumps({"id": task, "attempt": 1, **members}).encode())

    for task in (reloaded, moved):
        send("third", task, status="fail", error={"message": "a stranger"})
    wait_until(lambda: stage.count("outbox_quarantine") == 2, LIMIT_S, "the strangers to be refused")
    assert {stage.row(task)["state"] for task in (reloaded, moved)} == {"awaiting"}
    daemon.stop()       # what the message said is in the table
    daemon.start()
    for task in (reloaded, moved):
        send("first", task, status="done")
    stage.wait_row(reloaded, LIMIT_S, state="done", attempt=1)
    stage.wait_row(moved, LIMIT_S, state="done", attempt=2, route="h.x")    # changed meanwhile: sent again, at once
    assert stage.count("outbox_quarantine") == 2


def test_an_answer_that_comes_again_is_counted_after_a_reload(stage):
    """Kafka and AMQP give records again. Those of tasks that are done came where their messages had named, and went to the
    quarantine by the hundred, as misrouted, when the route's reply_to had changed since. What says the opposite is kept."""
    queue = {name: stage.queue() for name in ("first", "second")}
    stage.amqp("a.x", reply_to=queue["first"], result="expected", timeout="1h", history="1h")
    stage.configuration["results"] = [{"via": "rabbit", "queue": name} for name in queue.values()]
    daemon = stage.start()
    stage.consume_amqp("a.x")
    task, = stage.insert("a.x", kept=True)
    stage.wait_row(task, LIMIT_S, state="awaiting")

    def send(status):
        stage.rabbitmq.publish("", queue["first"], json.dumps({"id": task, "attempt": 1, "status": status}).encode())

    send("done")
    stage.wait_row(task, LIMIT_S, state="done")
    changed = {**daemon.configuration["routes"]["a.x"], "reply_to": queue["second"]}
    assert daemon.reload({**daemon.configuration, "routes": {**daemon.configuration["routes"], "a.x": changed}})
    for _ in range(3):
        send("done")
    send("fail")
    wait_until(lambda: stage.count("outbox_quarantine") == 1, LIMIT_S, "the failure in the quarantine")
    assert b'"fail"' in stage.execute("SELECT body FROM outbox_quarantine")[0][0]
    assert daemon.metric("duebox_results_total", fate="duplicate") == 3


def test_results_in_the_answers_to_calls_are_counted(stage):
    """Only those that came by another way were, and who looked at the numbers of the consumers that answer saw none."""
    stage.http("h", history="1h", retry={"backoff": "10ms"})
    told = {"Content-Type": "application/json"}
    for body in (b'{"status": "done"}', b'{"status": "done", "status": "fail"}', b'{"status": "retry", "retry_in_ms": 0}'):
        stage.receiver.on("/h", Answer(200, body, told), times=1)
    daemon = stage.start()
    stage.insert("h")
    stage.wait_empty(LIMIT_S)
    wait_until(lambda: [daemon.metric("duebox_results_total", route="h", fate=fate) for fate in ("applied", "broken", "late")]
               == [2, 1, 0], LIMIT_S, "all results to be counted")


def test_no_task_is_sent_to_where_results_are_read(stage):
    """Whoever may only insert could have the daemon itself write answers for the tasks of others, in any column or header
    that a route's target is made of, and over any instance."""
    stage.amqp("pay.amqp", result="expected", timeout="10m", history="1h")
    stage.kafka("pay.kafka", result="expected", timeout="10m", history="1h")
    stage.plugin("again", module="amqp", url=stage.rabbitmq.url.replace("127.0.0.1", "localhost"))
    queue, topic, other = stage.queue(), stage.topic(), stage.queue()
    stage.amqp("notify.key", routing_key="{task_key}", history="1h")
    stage.route("notify.again", via="again", routing_key="{header.to}", history="1h")
    stage.kafka("notify.kafka", topic="{header.to}", history="1h")
    stage.configuration["results"] = [{"via": "rabbit", "queue": queue}, {"via": "bus", "topic": topic}]
    daemon = stage.start()
    paid = [stage.insert(route)[0] for route in ("pay.amqp", "pay.kafka")]
    for task in paid:
        stage.wait_row(task, LIMIT_S, state="awaiting")

    def insert(route, task, task_key="", **headers):
        stage.execute("INSERT INTO outbox (route, message_id, task_key, headers, payload) VALUES (%s, %s, %s, %s, %s)",
                      route, f"{route}-{task_key or headers['to']}", task_key, json.dumps(headers),
                      json.dumps({"id": task, "attempt": 1, "status": "done"}))
        return f"{route}-{task_key or headers['to']}"

    for task in (insert("notify.key", paid[0], queue), insert("notify.again", paid[0], to=queue),
                 insert("notify.kafka", paid[1], to=topic)):
        row = stage.wait_row(task, LIMIT_S, state="dead")
        assert row["error_class"] == "row.target_refused" and "from where results are read" in row["last_error"], row
    stage.wait_row(insert("notify.key", paid[0], other), LIMIT_S, state="done")
    assert all(stage.row(task)["state"] == "awaiting" for task in paid)
    assert daemon.metric("duebox_results", fate="applied", route="pay.amqp") in (None, 0)


@pytest.mark.parametrize("end", ["", "/", "//"])
def test_a_callback_is_taken_at_the_url_that_was_announced(stage, end):
    """Consumers use it as it came, and no proxy stands before the listener that would mend it."""
    stage.http("h.later", result="expected", timeout="10m", history="1h")
    daemon = stage.daemon()
    daemon.configure({**daemon.configuration, "callbacks": {
        "base_url": f"http://127.0.0.1:{daemon.callbacks_port}{end}"}})
    http = stage.consume_http()
    http.callback("/h.later", lambda arrival: {"status": "done"})
    daemon.start()
    task = stage.insert("h.later", kept=True)[0]
    stage.wait_row(task, LIMIT_S, state="done")
    http.drain()
    assert http.refused == []
