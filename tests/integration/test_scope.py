"""Trouble costs what it concerns and nothing else: a row, a target (one topic, routing key or URL), a route."""

import pytest

from support.servers.http_receiver import Answer, HttpReceiver
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

LIMIT_S = 90
GOOD = 200


def insert_keys(stage, route, keys):
    """One task for each key, due at once, in this order; returns the ids by key."""
    stage.execute("INSERT INTO outbox (route, task_key, payload) VALUES "
                  + ",".join(f"('{route}', '{key}', '{{}}')" for key in keys))


def route_status(daemon, name):
    routes = daemon.api("GET", "/api/v1/routes")[1]["routes"]
    return next(one for one in routes if one["name"] == name)


def trouble(daemon):
    """Wait until the daemon has met the trouble: what comes now is behind the bad tasks."""
    daemon.wait_log("DUEBOX-TARGET-SUSPENDED", "DUEBOX-ROUTE-SUSPENDED", "DUEBOX-ROUTE-GONE", limit_s=LIMIT_S)


def named_everywhere(stage, daemon, route, target, error_class):
    """The target and the task that met the trouble are in the log, at the API, in `route list` and in doctor."""
    status = wait_until(lambda: next((one for one in route_status(daemon, route)["targets"] if target in one["target"]),
                                     None), LIMIT_S, f"{target} to be suspended", detail=daemon.log_tail)
    assert status["error_class"] == error_class
    assert stage.count(where=f"message_id = '{status['message_id']}'") == 1
    assert not route_status(daemon, route)["suspended"]
    line = daemon.wait_log("DUEBOX-TARGET-SUSPENDED")
    assert target in line["msg"] and status["message_id"] in line["msg"]
    for words in (["route", "list", "-o", "json"], ["doctor"]):
        done = daemon.run(*words, check=False)
        assert target in done.stdout and status["message_id"] in done.stdout, done
    return status


def test_a_key_without_a_binding_costs_only_its_own_tasks(stage):
    """One routing key that no queue takes does not stop the route: the tasks of other keys flow at once, its own wait
    without using an attempt, are named, and go out when the queue is there."""
    queue, later = stage.queue(), f"{stage.name}-later"
    stage.amqp("a", routing_key="{task_key}", give_up="1h")
    daemon = stage.start()
    insert_keys(stage, "a", [later] * 40)
    trouble(daemon)
    insert_keys(stage, "a", [queue] * GOOD)
    wait_until(lambda: stage.count(where=f"task_key = '{queue}'") == 0, LIMIT_S, "the good tasks to leave",
               detail=stage.living)
    named_everywhere(stage, daemon, "a", later, "amqp.no_route")
    assert stage.count() == 40
    assert stage.execute("SELECT DISTINCT failures, state FROM outbox") == ((0, "scheduled"),)
    wait_until(lambda: stage.count(where="error_class = 'amqp.no_route'") == 40, LIMIT_S, "the rows to say why")
    stage.rabbitmq.declare_queue(later)
    stage.wait_empty(LIMIT_S)
    assert len(stage.rabbitmq.get_all(later)) == 40
    assert len(stage.rabbitmq.get_all(queue)) == GOOD


def test_a_topic_that_does_not_exist_costs_only_its_own_tasks(stage):
    """One topic of a template that does not exist does not stop the route; its tasks end as dead with that reason after
    give_up, and others never notice."""
    topic, missing = stage.topic(), f"{stage.name}-missing"
    stage.kafka("k", topic="{task_key}", give_up="20s")
    daemon = stage.start()
    insert_keys(stage, "k", [missing] * 6)
    trouble(daemon)
    insert_keys(stage, "k", [topic] * GOOD)
    wait_until(lambda: stage.count(where=f"task_key = '{topic}'") == 0, LIMIT_S, "the good tasks to leave",
               detail=stage.living)
    stage.wait_empty(LIMIT_S)
    ends = stage.execute("SELECT state, error_class, COUNT(*) FROM outbox_history GROUP BY 1, 2")
    assert ends == (("dead", "kafka.unknown_topic", 6),)


def test_one_url_that_is_gone_costs_only_its_own_tasks(stage):
    """410 from one URL of a template suspends that URL; the route is not paused and the other URLs are called."""
    stage.plugin("hooks", module="http", allow_private=True)
    stage.route("h", via="hooks", url=f"{stage.receiver.url}/{stage.name}/{{task_key}}")
    stage.receiver.on(f"/{stage.name}/gone", Answer(410))
    daemon = stage.start()
    insert_keys(stage, "h", ["gone"] * 3)
    trouble(daemon)
    insert_keys(stage, "h", ["good"] * GOOD)
    wait_until(lambda: stage.count(where="task_key = 'good'") == 0, LIMIT_S, "the good tasks to leave",
               detail=stage.living)
    status = named_everywhere(stage, daemon, "h", "task_key gone", "http.410")
    assert status["probe_in_us"] > 60e6
    assert not route_status(daemon, "h")["paused"]
    assert stage.count("outbox_routes", "paused") == 0
    assert len([one for one in stage.receiver.requests if one.path.endswith(f"{stage.name}/gone")]) <= 3


def test_retry_after_holds_the_destination(stage):
    """429 with Retry-After is for everyone who calls: a backlog of a thousand sends a handful of requests, not one for
    each task, and goes on when the time is over."""
    with HttpReceiver() as receiver:
        receiver.on("/", Answer(429, headers={"Retry-After": "3600"}))
        stage.plugin("hooks", module="http", allow_private=True)
        stage.route("h", via="hooks", url=f"{receiver.url}/x", concurrency=8)
        stage.route("other", via="hooks", url=f"{receiver.url}/other")
        receiver.on("/other", Answer(200))
        daemon = stage.start()
        insert_keys(stage, "h", ["k"] * 1000)
        wait_until(lambda: route_status(daemon, "h")["suspended"], LIMIT_S, "the route to rest")
        wait_until(lambda: route_status(daemon, "h")["inflight"] == 0, LIMIT_S, "nothing to be out")
        seen = len(receiver.requests)
        assert seen <= 16, seen
        assert "429" in route_status(daemon, "h")["trouble"]
        insert_keys(stage, "h", ["k"] * 100)            # nor do new ones
        insert_keys(stage, "other", ["k"] * 100)
        stage.wait_empty(LIMIT_S, where="route = 'other'")
        assert len(receiver.requests) - 100 == seen
        assert stage.count(where="attempt > 0") <= 16


@pytest.mark.parametrize("way", ["reload", "resume"])
def test_rest_that_was_asked_for_ends_with_who_asked_or_by_an_operator(stage, way):
    """An endpoint asked for an hour of rest: a reload with another URL does not make the new one wait for that, and an
    operator's resume ends it, without a pause before. (Only a restart did.) A reload that changes nothing of the route
    leaves it at rest."""
    with HttpReceiver() as receiver:
        receiver.on("/old", Answer(503, headers={"Retry-After": "3600"}))
        receiver.on("/new", Answer(200))
        stage.plugin("hooks", module="http", allow_private=True)
        stage.route("h", via="hooks", url=f"{receiver.url}/old")
        daemon = stage.start()
        insert_keys(stage, "h", ["k"])
        wait_until(lambda: route_status(daemon, "h")["suspended"], LIMIT_S, "the route to rest")
        stage.configuration["routes"]["h"]["concurrency"] = 3
        assert daemon.reload({**daemon.configuration, "routes": stage.configuration["routes"]})
        assert route_status(daemon, "h")["suspended"]
        if way == "reload":
            stage.configuration["routes"]["h"]["url"] = f"{receiver.url}/new"
            assert daemon.reload({**daemon.configuration, "routes": stage.configuration["routes"]})
        else:
            receiver.on("/old", Answer(200))
            daemon.run("route", "resume", "h", "--reason", "it said that it is well")
        daemon.wait_log("DUEBOX-ROUTE-RESUMED")
        insert_keys(stage, "h", ["k"])
        where = "/new" if way == "reload" else "/old"
        wait_until(lambda: [one.path for one in receiver.requests].count(where) >= (1 if way == "reload" else 2), LIMIT_S,
                   "a task to be sent")
        assert not route_status(daemon, "h")["suspended"]


def test_a_destination_that_only_fails_is_called_seldom(stage):
    """An endpoint that answers every call with 500 is probed with one task at a time, and used again after a success."""
    with HttpReceiver() as receiver:
        receiver.on("/", Answer(500))
        stage.plugin("hooks", module="http", allow_private=True)
        stage.route("h", via="hooks", url=f"{receiver.url}/x", concurrency=4, breaker=10,
                    retry={"backoff": "1s", "max": "1s"}, max_attempts=1000)
        daemon = stage.start()
        insert_keys(stage, "h", ["k"] * 500)
        wait_until(lambda: route_status(daemon, "h")["suspended"], LIMIT_S, "the breaker to open")
        assert len(receiver.requests) <= 20
        receiver.on("/", Answer(200))
        stage.wait_empty(LIMIT_S)
        daemon.wait_log("DUEBOX-ROUTE-RESUMED")


@pytest.mark.parametrize("priority", [9, 5])
def test_tasks_that_fail_by_their_content_keep_no_others_waiting(stage, priority):
    """An endpoint that is well answers 500 to what is wrong with some tasks. These stand first, by their priority or
    their age, and there are many: they are not the only probes of their route, which is open again as soon as another
    task got through. (300 of them used to keep all others waiting for as many probes.)"""
    with HttpReceiver() as receiver:
        receiver.on("/", lambda request: Answer(500 if request.body == b"bad" else 200))
        stage.plugin("hooks", module="http", allow_private=True)
        stage.route("h", via="hooks", url=f"{receiver.url}/x", history="1h", retry={"backoff": "1h", "max": "1h"})
        daemon = stage.start()
        stage.execute(f"INSERT INTO outbox (route, payload, priority) SELECT 'h', 'bad', {priority} FROM seq_1_to_1000")
        daemon.wait_log("DUEBOX-ROUTE-SUSPENDED", limit_s=LIMIT_S)
        good = stage.insert("h", count=20)
        for message_id in good:
            stage.wait_row(message_id, LIMIT_S, state="done")
        daemon.wait_log("DUEBOX-ROUTE-RESUMED")
        assert stage.count(where="payload = 'bad' AND failures = 0") > 100


def test_a_full_queue_is_waited_for(stage):
    """It rejects what is published, whichever task it is: few of them find that out, and all arrive when it is read."""
    small = {"x-max-length": 5, "x-overflow": "reject-publish"}
    full = stage.rabbitmq.declare_queue(f"{stage.name}-full", arguments=small)
    stage.amqp("a", routing_key=full, history="1h", max_attempts=100, retry={"levels": ["1s"]})
    daemon = stage.start()
    stage.insert("a", count=200)
    daemon.wait_log("DUEBOX-ROUTE-SUSPENDED", limit_s=LIMIT_S, text="queue is full")
    stage.consume_amqp("a")
    stage.wait_empty(LIMIT_S)
    assert stage.execute("SELECT state, COUNT(*) FROM outbox_history GROUP BY state") == (("done", 200),)


def test_a_route_resumes_when_its_broker_is_back(stage):
    """Without a task that waits: the plugin says when it is connected again."""
    with TcpProxy(stage.rabbitmq.port) as proxy:
        stage.plugin("rabbit", module="amqp", url=f"amqp://guest:guest@127.0.0.1:{proxy.port}/%2f")
        stage.amqp("a")
        proxy.drop()
        daemon = stage.start()
        insert_keys(stage, "a", ["k"])
        wait_until(lambda: route_status(daemon, "a")["suspended"], LIMIT_S, "the route to be suspended")
        stage.execute("DELETE FROM outbox")
        proxy.restore()
        wait_until(lambda: not route_status(daemon, "a")["suspended"], LIMIT_S, "the route to go on",
                   detail=daemon.log_tail)


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_route_whose_tasks_all_have_an_order_key_goes_on_after_an_outage(stage, claim):
    """Half as many failures in a row as suspend a route make it look for a task that could tell whether the endpoint
    fails or only these tasks do. Where all have an order_key there is none: those whose turn it is go on."""
    stage.http("a", claim=claim, retry={"levels": ["2s"]}, max_attempts=1000)
    stage.receiver.on("/a", Answer(500), times=12)      # of the 20 that suspend it
    stage.start()
    stage.execute("INSERT INTO outbox (route, order_key, payload) VALUES "
                  + ",".join(f"('a', 'key{i % 12}', '{{}}')" for i in range(36)))
    stage.wait_empty(LIMIT_S)
    assert len(stage.receiver.requests) == 12 + 36
