"""A great many rows at once: after hours down, and a task of priority 9 that comes behind a backlog of priority 1."""

import time

from ..measure import LIMIT_S, bucket_figures, hand_over
from ..scenario import Goal, Scenario, say
from ..sinks import KafkaSink
from ..stage import Stage
from ..tools import judge
from .arrival import insert

URGENT_PER_S = 10


class Urgent:
    """A topic for the tasks of priority 9, beside that of the backlog."""

    def __init__(self, stage):
        self.stage = stage
        self.sink = KafkaSink()

    def __enter__(self):
        self.sink.open(self.stage.bench, f"{self.stage.name}-urgent")
        daemon = self.stage.daemon
        configuration = daemon.configuration
        configuration["routes"]["urgent"] = self.sink.route()
        daemon.configure(configuration)
        return self

    def __exit__(self, *_):
        self.sink.close()

    def receiver(self, count):
        return self.sink.receiver(1, count)


def behind(bench, size, priority, wait_first):
    """Drain `rows` of `priority` while tasks of priority 9 are inserted, one transaction each; wait_first: seconds of the
    drain before the first of them."""
    rows, count = size["rows"], size["urgent"]
    with Stage(bench, KafkaSink()) as stage, Urgent(stage) as urgent:
        stage.settle_in()
        stage.install(rows, priority=priority)
        bench.calm()
        with urgent.receiver(count) as receiver:
            started = time.time()
            stage.start()
            ready = time.time() - started
            time.sleep(wait_first)
            took = insert(stage, 1, count, priority=9, route="urgent", per_s=URGENT_PER_S)
            receiver.wait_complete(LIMIT_S)
            during = stage.settled() < rows
            handed = bucket_figures((None, None), hand_over(stage, "urgent"))
            first, already, ended = stage.wait(rows + count)
            found = {"rows": rows, "urgent": judge(receiver.end(), "priority 9")["lateness"], "all_during": during,
                     "insert": took["took"], "hand_over": handed,
                     "ready_s": round(ready, 2), "rows_per_s": round((rows + count - already) / max(0.001, ended - first)),
                     "peak_mib": round(stage.peak_mib(), 1)}
        stage.stop()
        stage.check_empty()
        with stage.sink.receiver(1, rows, from_beginning=True) as receiver:
            receiver.wait_complete(LIMIT_S)
            judge(receiver.end(), "backlog")
    say(f"  {rows:,} due rows of priority {priority}: priority 9 at the consumer p50 {found['urgent']['p50_ms']:.1f}"
        f" p99 {found['urgent']['p99_ms']:.1f} max {found['urgent']['max_ms']:.1f} ms, of this INSERT and COMMIT p50"
        f" {found['insert']['p50_ms']:.1f} max {found['insert']['max_ms']:.1f} ms; at hand-over, from the due time, p50"
        f" {found['hand_over']['p50_ms']:.1f} p99 {found['hand_over']['p99_ms']:.1f} ms; peak {found['peak_mib']} MiB;"
        f" the backlog outlived them: {during}")
    return found


def priority(bench, size):
    say("priority: tasks of priority 9 behind a due backlog of priority 1")
    return behind(bench, size, 1, 2)


def priority_goals(found):
    return [Goal("priority 9 behind 500,000 due rows of priority 1, max", found["urgent"]["max_ms"], "<=", 100, "ms")]


def herd(bench, size):
    say("herd: all rows due at once, after hours down")
    return behind(bench, size, 5, 0)


def herd_goals(found):
    return [Goal("herd of a million: memory", found["peak_mib"], "<=", 256, "MiB"),
            Goal("herd of a million: a fresh task of priority 9, max", found["urgent"]["max_ms"], "<=", 2000, "ms")]


def show(found, page):
    page.text(f"{found['rows']:,} due rows to Kafka, and {found['urgent']['count']} tasks of priority 9, {URGENT_PER_S} a second,"
              " inserted while they drain. Lateness of these at the consumer, from the moment of their INSERT:")
    ranks = ("p50_ms", "p90_ms", "p99_ms", "max_ms")
    page.table(["", "p50 ms", "p90", "p99", "max"],
               [["at the consumer", *[f"{found['urgent'][rank]:.1f}" for rank in ranks]],
                ["of this, INSERT and COMMIT", *[f"{found['insert'][rank]:.1f}" for rank in ranks]],
                ["at hand-over, from the due time", *[f"{found['hand_over'][rank]:.1f}" if rank in found["hand_over"] else ""
                                                      for rank in ranks]]])
    page.text(f"The backlog outlived them: {'yes' if found['all_during'] else 'no'}. Peak memory {found['peak_mib']} MiB. From the"
              f" start of the daemon until it was ready: {found['ready_s']} s.")
    page.curves([("priority 9", found["urgent"]["buckets"])])


SCENARIOS = [
    Scenario("priority", "Priority 9 behind a backlog of priority 1", priority,
             {"quick": {"rows": 50_000, "urgent": 10}, "default": {"rows": 500_000, "urgent": 80},
              "full": {"rows": 500_000, "urgent": 80}},
             {"quick": 15, "default": 50, "full": 50}, show, priority_goals),
    Scenario("herd", "Herd: a million rows due at once", herd,
             {"quick": {"rows": 50_000, "urgent": 10}, "default": {"rows": 1_000_000, "urgent": 100},
              "full": {"rows": 1_000_000, "urgent": 100}},
             {"quick": 15, "default": 120, "full": 120}, show, herd_goals),
]
