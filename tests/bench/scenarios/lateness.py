"""Tasks scheduled ahead: how late they are handed over, and how late they are at the consumer.

Due times are in the table before the load begins, evenly spread, and lateness is measured against them: a stall delays
no later moment, so there is no coordinated omission. Beside each load, a program that sleeps until a moment and then
reads one row by its key shows what the machine itself adds.
"""

from ..measure import Load, scheduled, show_load
from ..scenario import Goal, Scenario, say
from ..sinks import AmqpSink, KafkaSink, ProbeSink
from ..stage import Stage

WARM = Load(500, 3)


def hand_over(bench, size):
    """Measured inside a plugin without a destination, to the microsecond."""
    load = Load(100, size["seconds"])
    say(f"lateness at hand-over: {load.per_s}/s for {load.seconds} s")
    with Stage(bench, ProbeSink(1 + WARM.count, load.count)) as stage:
        stage.settle_in()
        stage.start()
        scheduled(stage, WARM, control=False)
        found = scheduled(stage, load, 1 + WARM.count)
        stage.stop()
        book = stage.sink.book()
        stage.check_empty()
    if (book["distinct"], book["arrivals"], book["early"]) != (load.count, load.count, 0):
        raise RuntimeError(f"the plugin's book does not come out even: {book}")
    found["exact"] = book["lateness"]
    show_load(found, "hand-over")
    say("  {:<28} exactly: p50 {p50_ms:.3f} p99 {p99_ms:.3f} max {max_ms:.3f} ms".format("", **found["exact"]))
    return found


def hand_over_goals(found):
    return [Goal("lateness at hand-over, 100/s, p50", found["exact"]["p50_ms"], "<=", 0.5, "ms"),
            Goal("lateness at hand-over, 100/s, p99", found["exact"]["p99_ms"], "<=", 2, "ms"),
            Goal("statements per task, 100/s", found["statements"], "<=", 3)]


def show_hand_over(found, page):
    page.text(f"{found['tasks']:,} tasks, {found['per_s']} a second, to a plugin that notes the microsecond of each"
              " hand-over and has no destination. None was early.")
    page.table(LATENESS_HEAD, [lateness_row("at hand-over", found["per_s"], found["exact"], found),
                               *machine_rows(found)])
    page.curves([("at hand-over", found["exact"]["buckets"])])


LATENESS_HEAD = ["", "per second", "p50 ms", "p90", "p99", "p99.9", "max", "statements/task", "CPU us/task"]


def lateness_row(name, per_s, lateness, found):
    return [name, f"{per_s:,}", *[f"{lateness[rank]:.2f}" for rank in ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms")],
            f"{found['statements']:.2f}", f"{found['client_cpu_us']:.0f}"]


def machine_rows(found):
    if "machine" not in found:
        return []
    machine = found["machine"]
    return [["the machine: sleep, read a row", "100", f"{machine['answered_p50_ms']:.2f}", "", f"{machine['answered_p99_ms']:.2f}",
             "", f"{machine['answered_max_ms']:.2f}", "", ""]]


# -- at the consumer -----------------------------------------------------------------------


def at_500(bench, size):
    load = Load(500, size["seconds"])
    say(f"lateness at the consumer: {load.per_s}/s for {load.seconds} s")
    found = {}
    for sink in (KafkaSink(), AmqpSink("classic")):
        with Stage(bench, sink) as stage:
            stage.settle_in()
            stage.start()
            scheduled(stage, WARM, control=False)
            found[sink.name] = scheduled(stage, load, 1 + WARM.count)
            stage.stop()
            stage.check_empty()
        show_load(found[sink.name], sink.name)
    return found


def at_500_goals(found):
    return [Goal("lateness at the consumer behind Kafka, 500/s, p99", found["Kafka"]["arrival"]["p99_ms"], "<=", 20, "ms")]


def show_consumer(found, page):
    rows = []
    for name, one in found.items():
        if isinstance(one, dict):
            rows += [lateness_row(name, one["per_s"], one["arrival"], one), *machine_rows(one)]
    page.table(LATENESS_HEAD, rows)
    page.curves([(name, one["arrival"]["buckets"]) for name, one in found.items() if isinstance(one, dict)])


SHARES = (10, 50, 90)


def at_shares(bench, size):
    """The load as a share of what the same stage can drain with its consumer reading."""
    found = {}
    for sink, shares in ((KafkaSink, SHARES), (lambda: AmqpSink("classic"), (50,))):
        with Stage(bench, sink()) as stage:
            name = stage.sink.name
            stage.settle_in()
            stage.install(size["rows"])
            bench.calm()
            with stage.sink.receiver(1, size["rows"]) as receiver:
                stage.start()
                first, already, ended = stage.wait(size["rows"])
                receiver.wait_complete(60)
            capacity = found[f"{name}, capacity"] = round((size["rows"] - already) / (ended - first))
            say(f"lateness at load levels: {name} drains {capacity:,}/s with its consumer")
            number = 1 + size["rows"]
            for share in shares:
                load = Load(max(1, capacity * share // 100), size["seconds"])
                bench.calm()
                one = found[f"{name}, {share} %"] = scheduled(stage, load, number)
                number += load.count
                show_load(one, f"{name}, {share} %")
            stage.stop()
            stage.check_empty()
    return found


def shares_goals(found):
    goals = []
    for name in ("Kafka", "RabbitMQ, classic queue"):
        arrival = found[f"{name}, 50 %"]["arrival"]
        goals += [Goal(f"lateness at the consumer at half load, {name}, p50", arrival["p50_ms"], "<=", 2, "ms"),
                  Goal(f"lateness at the consumer at half load, {name}, p99", arrival["p99_ms"], "<=", 5, "ms")]
    return goals


def show_shares(found, page):
    for name, value in found.items():
        if name.endswith("capacity"):
            page.text(f"{name}: {value:,} tasks a second, drained with the consumer reading.")
    show_consumer(found, page)


SCENARIOS = [
    Scenario("lateness-hand-over", "Lateness at hand-over, 100 tasks a second", hand_over,
             {"quick": {"seconds": 5}, "default": {"seconds": 30}, "full": {"seconds": 120}},
             {"quick": 16, "default": 42, "full": 140}, show_hand_over, hand_over_goals),
    Scenario("lateness-500", "Lateness at the consumer, 500 tasks a second", at_500,
             {"quick": {"seconds": 5}, "default": {"seconds": 20}, "full": {"seconds": 60}},
             {"quick": 34, "default": 80, "full": 150}, show_consumer, at_500_goals),
    Scenario("lateness-load", "Lateness at the consumer at 10, 50 and 90 % load", at_shares,
             {"quick": {"rows": 20_000, "seconds": 2}, "default": {"rows": 100_000, "seconds": 10},
              "full": {"rows": 300_000, "seconds": 30}},
             {"quick": 45, "default": 110, "full": 400}, show_shares, shares_goals),
]
