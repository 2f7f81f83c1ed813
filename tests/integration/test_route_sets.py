"""Routes that differ between daemons, or between two configurations of one, one after the other."""

import time

LIMIT_S = 60
TASKS, SPREAD_MS = 600, 3000


def test_different_routes_are_said(stage):
    stage.plugin("nowhere", module="null")
    stage.route("a", via="nowhere", history="1h")
    stage.route("b", via="nowhere", history="1h")
    one = stage.start("one")
    two = stage.daemon("two")
    two.configure({**two.configuration, "routes": {"a": stage.configuration["routes"]["a"]}})
    two.start()
    for daemon in (one, two):
        daemon.wait_log("DUEBOX-ROUTES-DIFFER", limit_s=LIMIT_S, text="2 different sets of routes")
    assert "one, two have 2 different sets of routes" in one.run("doctor", check=False).stdout
    two.reload({**two.configuration, "routes": stage.configuration["routes"]})
    for daemon in (one, two):
        daemon.wait_log("DUEBOX-ROUTES-SAME", limit_s=LIMIT_S)
    assert "all living daemons have the same" in one.run("doctor", check=False).stdout


def test_a_route_goes_another_way_under_load(stage):
    """A reload that gives a route to another plugin takes effect as one step: what was read under the configuration
    before never reaches the new plugin, which would read options there that are not its own (and used to kill the
    daemon), and nothing is lost."""
    stage.http("work", concurrency=50, retry={"levels": ["50ms"]}, breaker=0)
    way = {"http": stage.configuration["routes"]["work"]}
    stage.amqp("other", concurrency=50, retry={"levels": ["50ms"]}, breaker=0)
    way["amqp"] = stage.configuration["routes"]["other"]
    came = set()
    stage.receiver.subscribe(lambda request: came.add(request.body))
    daemon = stage.start()
    # Their times are all over these seconds: at each reload some wait in memory for their moment.
    stage.execute("INSERT INTO outbox (route, payload, delay_ms)"
                  f" SELECT 'work', seq, 500 + seq * {SPREAD_MS} DIV {TASKS} FROM seq_1_to_{TASKS}")
    reloads = 0
    until = time.monotonic() + 2 * LIMIT_S
    while stage.count() or reloads < 20:
        assert daemon.alive() and time.monotonic() < until, daemon.log_tail()
        options = way[("amqp", "http")[reloads % 2]]
        assert daemon.reload({**daemon.configuration, "routes": {**daemon.configuration["routes"], "work": options}},
                             limit_s=LIMIT_S), daemon.log_tail()
        reloads += 1
    by_queue = {message["body"] for message in stage.rabbitmq.get_all(way["amqp"]["routing_key"])}
    assert came and by_queue
    assert came | by_queue == {b"%d" % number for number in range(1, TASKS + 1)}
