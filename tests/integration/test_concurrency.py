"""How many tasks are at the sink at once, and what becomes of those that are read ahead of their turn."""

import threading

from support.servers.http_receiver import Answer
from support.wait import wait_until

CONCURRENCY = 4


def in_flight(daemon):
    return int(daemon.metric("duebox_inflight_tasks", route="h"))


def test_no_more_are_at_the_sink_than_the_route_allows(stage):
    """Each request at once takes a connection of its own, which is kept and used again."""
    stage.http("h", claim="memory", concurrency=CONCURRENCY)
    stage.consume_http()
    stage.start()
    stage.insert("h", count=3000)
    stage.wait_empty(60)
    stage.check()
    assert len({request.connection for request in stage.receiver.requests}) <= CONCURRENCY


def test_what_waits_for_room_goes_back_to_the_table(stage):
    """A quick destination is read ahead of. When it hesitates, plain SQL can still take back what was read."""
    stage.http("h", claim="memory", concurrency=CONCURRENCY, timeout="30s")
    stage.consume_http()
    stage.receiver.on("/h", lambda request: Answer(never=len(stage.receiver.requests) > 1000))
    daemon = stage.start()
    stage.insert("h", count=2000, end="")
    stage.receiver.wait_count(1000 + CONCURRENCY, 60)
    wait_until(lambda: in_flight(daemon) == CONCURRENCY, 30, "all but those at the sink to be back in the table")
    sent = len(stage.receiver.requests)
    assert sent < 2000
    stage.execute("DELETE FROM outbox")
    stage.receiver.stop()
    wait_until(lambda: in_flight(daemon) == 0, 30, "the calls that hang to end")
    stage.receiver.start()
    stage.receiver.on("/h", 200)
    stage.insert("h", b"another")
    stage.receiver.wait_count(sent + 1, 30)
    assert stage.receiver.requests[-1].body == b"another" and len(stage.receiver.requests) == sent + 1


def test_a_route_with_a_backlog_leaves_room_for_its_neighbour(stage):
    """Both go through one plugin instance; what the quick one has read ahead is not at the sink."""
    stage.http("h", concurrency=32)
    stage.http("n", concurrency=32)
    backlogged, answered = threading.Event(), threading.Event()

    def quick(request):
        if len(stage.receiver.requests) > 500:
            backlogged.set()
        return Answer(200, delay_s=0.005)

    stage.receiver.on("/h", quick)
    stage.consume_http()
    stage.start()
    stage.insert("h", count=20000, end="")
    assert backlogged.wait(60)
    stage.receiver.subscribe(lambda request: answered.set() if request.path.startswith("/n") else None)
    stage.insert("n")
    assert answered.wait(60)
    assert stage.count("outbox", "route = 'h'") > 0, "the backlog was over too soon to tell"
