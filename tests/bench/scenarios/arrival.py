"""From the INSERT of a task that is due at once to its arrival at the consumer.

The application inserts one row per transaction at moments fixed beforehand; the moment stands in the payload, so the time
of its own INSERT and COMMIT (shown beside it) counts, and a late INSERT counts as late.
"""

from ..measure import LIMIT_S
from ..scenario import Goal, Scenario, say, tool
from ..sinks import KafkaSink
from ..stage import Stage
from ..tools import judge, run_json

PER_S = 100
WARM_TASKS = 300
# By name: options of the section `database`.
VARIANTS = {"polling": {"wake": "poll"}, "binlog": {"wake": "binlog"}}


def insert(stage, first, count, priority=5, route="bench", per_s=PER_S):
    return run_json(tool("insert"), stage.bench.mariadb.socket, stage.database, route, priority, first, count, per_s, 200)


def arrival(bench, size):
    count = PER_S * size["seconds"]
    say(f"insert to arrival: {PER_S} transactions a second for {size['seconds']} s")
    found = {}
    for name, options in VARIANTS.items():
        with Stage(bench, KafkaSink(), database=options) as stage:
            stage.settle_in()
            stage.start()
            insert(stage, 1, WARM_TASKS)
            stage.wait(WARM_TASKS)
            with stage.sink.receiver(1 + WARM_TASKS, count, "--times") as receiver:
                before = stage.statements()
                took = insert(stage, 1 + WARM_TASKS, count)
                receiver.wait_complete(LIMIT_S)
                stage.wait(WARM_TASKS + count)
                book = judge(receiver.end(), name)
                found[name] = {"arrival": book["lateness"], "insert": took["took"],
                               "after_commit": after(took["committed_us"], book["times_us"]),
                               "statements": round((stage.statements() - before) / count, 2)}
            stage.stop()
            stage.check_empty()
        say("  {:<18} at the consumer p50 {p50_ms:.2f} p99 {p99_ms:.2f} max {max_ms:.1f} ms".format(
            name, **found[name]["arrival"]) + "; INSERT and COMMIT of it p50 {p50_ms:.2f} p99 {p99_ms:.2f} ms".format(
            **took["took"]) + "; from the answer to COMMIT p50 {p50_ms:.2f} p99 {p99_ms:.2f} ms".format(
            **found[name]["after_commit"]))
    return found


def after(committed_us, arrived_us):
    """From each COMMIT's answer to the arrival: below nought where the binlog was faster than the answer."""
    late = sorted(arrived - committed for committed, arrived in zip(committed_us, arrived_us))
    ranks = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1}
    return {name: round(late[min(len(late) - 1, int(share * len(late)))] / 1000, 3) for name, share in ranks.items()}


def goals(found):
    arrived = found["polling"]["arrival"]
    listed = [Goal("insert to arrival without the binlog, p99", arrived["p99_ms"], "<=", 50, "ms")]
    if "binlog" in found:
        arrived = found["binlog"]["arrival"]
        listed += [Goal("insert to arrival with the binlog, p50", arrived["p50_ms"], "<=", 3, "ms"),
                   Goal("insert to arrival with the binlog, p99", arrived["p99_ms"], "<=", 15, "ms")]
    return listed


def show(found, page):
    rows = []
    for name, one in found.items():
        for what, text in (("arrival", "at the consumer"), ("insert", "of this, INSERT and COMMIT"),
                           ("after_commit", "from the answer to COMMIT to the consumer")):
            rows.append([name, text,
                         *[f"{one[what][rank]:.2f}" for rank in ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms")],
                         f"{one['statements']:.2f}" if what == "arrival" else ""])
    page.text(f"{PER_S} transactions a second, one row each, due at once, to Kafka.")
    page.table(["", "", "p50 ms", "p90", "p99", "p99.9", "max", "statements/task"], rows)
    page.curves([(name, one["arrival"]["buckets"]) for name, one in found.items()])


SCENARIOS = [
    Scenario("insert-arrival", "From INSERT to arrival", arrival,
             {"quick": {"seconds": 5}, "default": {"seconds": 30}, "full": {"seconds": 120}},
             {"quick": 28, "default": 85, "full": 260}, show, goals),
]
