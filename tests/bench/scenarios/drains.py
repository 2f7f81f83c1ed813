"""A table of due rows, emptied by the daemon and by the raw loop in turn.

Each round begins with a fresh copy of the same table and an empty destination. The rate is that of the settled (deleted)
rows between the first and the last that were settled; then the table must be empty and each task at its destination once.
"""

import time

from ..measure import Side, compare, past
from ..scenario import BenchError, Goal, Scenario, say
from ..sinks import HTTP_WINDOW, AmqpSink, HttpSink, KafkaSink, ProbeSink

ANSWER_S = 12       # until daemons have started and shared the shards
FILLED_PER_S = 15_000


def sizes(quick, default, full, rounds=3):
    return {"quick": {"rows": quick, "rounds": 1}, "default": {"rows": default, "rounds": rounds},
            "full": {"rows": full, "rounds": 5}}


def pair(sink, **raw):
    """The raw loop and the daemon into the same kind of destination."""
    return [Side("raw loop", "raw", sink, past(), **raw), Side("duebox", "daemon", sink, past())]


def run(title, make_sides):
    def measure(bench, size):
        say(f"{title}: {size['rows']:,} rows, {size['rounds']} rounds")
        return compare(bench, make_sides(size["rows"]), size["rows"], size["rounds"])
    return measure


def goal(what, limit, side="duebox"):
    def goals(found):
        return [Goal(what, found["sides"][side]["ratio"], ">=", limit)]
    return goals


def show(found, page):
    rows = []
    for name, side in found["sides"].items():
        rows.append([name, f"{side['rows_per_s']:,.0f}", f"{min(side['all']):,} - {max(side['all']):,}", f"{side['ratio']:.2f}",
                     f"{side['client_cpu_us']:.1f}", f"{side['mariadb_cpu_us']:.1f}", f"{side['broker_cpu_us']:.1f}",
                     f"{side['questions']:.3f}", f"{side['peak_mib']:.0f}" if "peak_mib" in side else ""])
    page.text(f"{found['rows']:,} rows, {found['rounds']} rounds, medians.")
    page.table(["", "rows/s", "lowest - highest", "ratio", "its CPU, us/row", "MariaDB", "broker", "statements/row", "peak MiB"], rows)
    page.bars([(name, side["rows_per_s"]) for name, side in found["sides"].items()], "rows per second")


def scenario(name, title, make_sides, size, seconds, goals=lambda found: []):
    return Scenario(name, title, run(title, make_sides), size, dict(zip(("quick", "default", "full"), seconds)), show, goals)


# -- destinations -------------------------------------------------------------------------


def kafka(rows):
    return pair(KafkaSink)


def kafka_goals(found):
    ratio = found["sides"]["duebox"]["ratio"]
    return [Goal("drain to Kafka, of the raw loop", ratio, ">=", 0.9),
            Goal("drain to Kafka, of the raw loop (first goal)", ratio, ">=", 0.5)]


def classic(rows):
    return pair(lambda: AmqpSink("classic"))


def quorum(rows):
    return pair(lambda: AmqpSink("quorum"))


def http(rows):
    return [*pair(HttpSink), Side("duebox, claims recorded", "daemon", lambda: HttpSink("recorded"), past())]


def null(rows):
    return pair(lambda: ProbeSink(1, rows))


# -- what a route may ask for ---------------------------------------------------------------


def kept(rows):
    """What history and results add."""
    return [*pair(KafkaSink),
            Side("duebox, history kept", "daemon", KafkaSink, past(), {"route": {"history": "30d"}})]


def results(bench, size):
    """The consumer answers each task, and its result is applied to the row."""
    say(f"drain with results expected: {size['rows']:,} rows, {size['rounds']} rounds")
    return compare(bench, [*pair(KafkaSink), Side("duebox, result expected", "daemon", AnsweredKafka, past(),
                                                  answers=True)], size["rows"], size["rounds"])


class AnsweredKafka(KafkaSink):
    """A topic whose consumer answers; the daemon reads the answers."""

    def __init__(self):
        super().__init__(answers=True)

    def route(self):
        return {**super().route(), "result": "expected", "reply_to": self.answers}

    def results(self):
        return [{"via": "bus", "topic": self.answers}]


# -- payloads --------------------------------------------------------------------------------

PAYLOADS = ((100, "100 B", 1, ()), (1024, "1 KiB", 1, ()), (65536, "64 KiB", 25, ("--batch", 100, "--window", 200)))


def payloads(bench, size):
    found = {}
    for payload, name, fewer, raw in PAYLOADS:
        rows = size["rows"] // fewer
        say(f"drain of payloads of {name}: {rows:,} rows, {size['rounds']} rounds")
        found[name] = compare(bench, [Side("raw loop", "raw", KafkaSink, past(payload), raw=raw),
                                      Side("duebox", "daemon", KafkaSink, past(payload))], rows, size["rounds"])
    return found


def show_payloads(found, page):
    rows = []
    for name, one in found.items():
        for who, side in one["sides"].items():
            rows.append([name, who, f"{one['rows']:,}", f"{side['rows_per_s']:,.0f}", f"{side['ratio']:.2f}",
                         f"{side['client_cpu_us']:.1f}", f"{side['questions']:.3f}"])
    page.table(["payload", "", "rows", "rows/s", "ratio", "its CPU, us/row", "statements/row"], rows)
    page.bars([(f"{name}, {who}", side["rows_per_s"]) for name, one in found.items() for who, side in one["sides"].items()],
              "rows per second")


# -- several daemons --------------------------------------------------------------------------


def due_together(stage, rows):
    """Rows that become due in one moment, when the daemons have started and shared the shards."""
    lead_s = ANSWER_S + rows / FILLED_PER_S
    start, begin = stage.now(), time.monotonic() + lead_s
    stage.fill(1, rows, f"'{start}' + INTERVAL {round(lead_s * 1e6)} MICROSECOND")

    def ready():
        if time.monotonic() > begin:
            raise BenchError(f"the daemons were not ready within {ANSWER_S} s")
        wait_shared(stage)
        time.sleep(max(0, begin - time.monotonic()))
    return ready


def wait_shared(stage):
    from support.wait import wait_until
    if not any(daemon.alive() for daemon in stage.daemons):
        return
    least = 8 // len(stage.daemons)
    wait_until(lambda: all(sum(shard["held"] for shard in stats["shards"]) >= least for stats in stage.stats()), ANSWER_S,
               "the daemons to share the shards")


def several(rows):
    fast = {"engine": {"lease": "3s"}}      # shards are shared within a second
    return [Side("raw loop", "raw", KafkaSink, due_together),
            *[Side(f"{count} daemon{'s' * (count > 1)}", "daemon", KafkaSink, due_together, {"daemons": count, **fast})
              for count in (1, 2, 4)]]


SCENARIOS = [
    scenario("drain-kafka", "Drain to Kafka", kafka, sizes(20_000, 300_000, 1_000_000), (20, 100, 600), kafka_goals),
    scenario("drain-quorum", "Drain to a RabbitMQ quorum queue", quorum, sizes(20_000, 100_000, 300_000), (18, 85, 500),
             goal("drain to a RabbitMQ quorum queue, of the raw loop", 0.9)),
    scenario("drain-classic", "Drain to a RabbitMQ classic queue", classic, sizes(20_000, 100_000, 300_000), (15, 85, 400)),
    scenario("drain-http", f"Drain to an HTTP hook, {HTTP_WINDOW} requests at once", http, sizes(10_000, 60_000, 200_000),
             (12, 150, 500), goal("drain to HTTP, of a bare libcurl multi loop", 0.8)),
    scenario("drain-null", "Drain to nowhere: reading and deleting alone", null, sizes(20_000, 200_000, 1_000_000),
             (6, 60, 400)),
    scenario("drain-history", "Drain to Kafka with the history kept", kept, sizes(20_000, 100_000, 300_000), (10, 80, 400)),
    Scenario("drain-results", "Drain to Kafka with results expected", results, sizes(10_000, 60_000, 200_000),
             {"quick": 13, "default": 80, "full": 500}, show),
    Scenario("payloads", "Payload sizes, to Kafka", payloads, sizes(10_000, 100_000, 200_000, rounds=1),
             {"quick": 30, "default": 90, "full": 600}, show_payloads),
    scenario("daemons", "One, two and four daemons, to Kafka", several, sizes(20_000, 100_000, 300_000, rounds=1),
             (70, 110, 700)),
]
