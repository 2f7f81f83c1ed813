"""Shards change hands between daemons that live, while calls of a slow route are out.

A shard is given back when nothing of it is in flight.  The slow route alone pays for that: the others read on.
How long they stand still is tested in virtual time (tests/sim/story_isolation.c).
"""

import contextlib
import signal
import threading

from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 240       # a hand-over that was called off is tried again after 50 s
SHARDS = 8
CALL_S = 4
SLOW = 60           # calls, of which each shard has some
QUICK_GAP_MS, QUICK_S = 20, 12

# Tasks whose times come one after the other; that of the first is now.
SPREAD = ("INSERT INTO outbox (route, payload, delay_ms) "
          "SELECT '{route}', seq, seq * {gap_ms} FROM seq_0_to_{last}")
LATE = ("SELECT TIMESTAMPDIFF(MICROSECOND, due_at, published_at) / 1000 FROM outbox_history WHERE route = %s "
        "ORDER BY 1 DESC LIMIT 1")


def spread(stage, route, count, gap_ms):
    stage.execute(SPREAD.format(route=route, gap_ms=gap_ms, last=count - 1))


def shards(daemon, leaving=False):
    """{shard: epoch} of those that it holds, or of those that are leaving it."""
    status, stats = daemon.api("GET", "/api/v1/stats")
    assert status == 200, stats
    return {shard["shard"]: shard["epoch"] for shard in stats["shards"] if shard["leaving"] or not leaving}


def start_first(stage, timeout="10m"):
    stage.http("slow", history="1h", concurrency=200, timeout=timeout)
    stage.amqp("quick", history="1h")
    daemon = stage.start()
    wait_until(lambda: len(shards(daemon)) == SHARDS, LIMIT_S, "the first daemon to hold all shards")
    return daemon


def wait_shared(*daemons):
    wait_until(lambda: sorted(len(shards(daemon)) for daemon in daemons) == [SHARDS // 2] * 2, LIMIT_S,
               "the shards to be shared out")


@contextlib.contextmanager
def slow_calls(stage):
    """Calls that do not come back before the end."""
    gate = threading.Event()
    stage.receiver.on("/slow", Answer(after=gate))
    spread(stage, "slow", SLOW, 0)
    stage.receiver.wait_count(SLOW, LIMIT_S, "/slow")
    try:
        yield
    finally:
        gate.set()


def all_sent_once(stage):
    assert len(stage.receiver.bodies()) == len(set(stage.receiver.bodies())) == SLOW
    return True


def test_a_leaving_shard_is_read_on_while_slow_calls_keep_it(stage):
    """Rounds of quick tasks come and go in shards that are leaving before and after, and are this daemon's still."""
    one = start_first(stage)
    with slow_calls(stage):
        stage.start()

        def went_while_leaving():
            before = shards(one, leaving=True)
            if not before:
                return False
            spread(stage, "quick", 100, 0)
            stage.wait_empty(LIMIT_S, "route = 'quick'")
            return before.items() & shards(one, leaving=True).items()
        wait_until(went_while_leaving, LIMIT_S, "tasks to leave from a shard that is leaving")
    stage.wait_empty(LIMIT_S)
    assert all_sent_once(stage)


def test_slow_calls_alone_wait_for_a_daemon_that_ends(stage):
    """Its shards are read until those calls are back: quick tasks beside them go meanwhile."""
    stage.configuration["engine"]["drain_timeout"] = "1h"
    one = start_first(stage, timeout="1h")
    two = stage.start()
    wait_shared(one, two)
    its = ", ".join(map(str, shards(one)))
    with slow_calls(stage):
        one.signal(signal.SIGTERM)
        one.wait_log("DUEBOX-DRAINING")
        spread(stage, "quick", 100, 0)
        went = f"SELECT COUNT(*) FROM outbox_history WHERE route = 'quick' AND shard IN ({its})"
        wait_until(lambda: stage.execute(went)[0][0], LIMIT_S, "quick tasks to go", detail=one.log_tail)
        assert one.alive() and len(shards(two)) == SHARDS // 2
    assert one.wait_end(LIMIT_S) == 0
    stage.wait_empty(LIMIT_S)
    assert all_sent_once(stage)


def test_a_daemon_joins_leaves_and_joins_again(stage):
    """With slow calls and a quick task each 20 ms: the shards follow, and nothing is sent twice."""
    one = start_first(stage)
    stage.receiver.on("/slow", Answer(delay_s=CALL_S))
    spread(stage, "slow", SLOW, QUICK_S * 1000 // SLOW)
    spread(stage, "quick", QUICK_S * 1000 // QUICK_GAP_MS, QUICK_GAP_MS)
    two = stage.start()
    wait_shared(one, two)
    two.stop()
    wait_until(lambda: len(shards(one)) == SHARDS, LIMIT_S, "all shards to come back")
    three = stage.start()
    wait_shared(one, three)
    stage.wait_empty(LIMIT_S)
    for route in ("quick", "slow"):
        print(f"{route}: {stage.execute(LATE, route)[0][0]:.0f} ms late at most")
    assert all_sent_once(stage)
    quick = [message["body"] for message in stage.rabbitmq.get_all(stage.destination("quick"))]
    assert len(quick) == len(set(quick)) == QUICK_S * 1000 // QUICK_GAP_MS


def test_a_call_under_an_earlier_lease_keeps_no_claim_of_the_dead(stage):
    """A daemon comes back from a freeze with its call still out. The other one, which had taken the task over and called
    again, is killed: its claim was taken back when the first one's call was over, and its row not read before."""
    come, gate = [], threading.Event()

    def answer(request):
        come.append(request.body.decode())
        return Answer(200, after=gate if len(come) < 3 else None)
    stage.configuration["engine"] |= {"lease": "2s"}
    stage.http("slow", claim="recorded", timeout="10m")
    stage.receiver.on("/slow", answer)
    daemons = {name: stage.start(name) for name in ("one", "two")}
    wait_shared(*daemons.values())
    stage.execute("INSERT INTO outbox (route, payload, order_key) VALUES ('slow', 'first', 'k'), ('slow', 'second', 'k')")
    wait_until(lambda: come, LIMIT_S, "the call")
    (holder,), = stage.execute("SELECT claimed_by FROM outbox WHERE state = 'claimed'")
    one = daemons.pop(holder.split("-")[0])
    two, = daemons.values()
    one.pause()
    wait_until(lambda: len(come) == 2, LIMIT_S, "the other one to call", detail=stage.living)
    one.resume()
    two.kill9()
    wait_until(lambda: len(come) > 2, LIMIT_S, "the claim to be taken back", detail=stage.living)
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert come == ["first"] * 3 + ["second"]
    gate.set()
