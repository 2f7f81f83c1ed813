"""Rows that wait for the future: what they cost those that are due."""

from ..measure import Load, Meter, scheduled, show_load
from ..scenario import Goal, Scenario, say, tool
from ..sinks import KafkaSink
from ..stage import Stage
from ..tools import judge, run_json
from .lateness import LATENESS_HEAD, WARM, lateness_row, machine_rows

COPIED_ROWS = 1_000_000     # more than this is filled in place


def one(bench, size, waiting):
    """Drain rate of the raw loop and of the daemon, and lateness, beside `waiting` rows."""
    rows, load = size["rows"], Load(500, size["seconds"])
    with Stage(bench, KafkaSink()) as stage:
        stage.settle_in()
        if waiting > COPIED_ROWS:
            bench.templates.fill_bare(stage.database, waiting, payload=200, due="future")
        elif waiting:
            stage.install(waiting, due="future")
        stage.fill(waiting + 1, rows, f"UTC_TIMESTAMP(6) - INTERVAL ({waiting + rows} - seq) * 1000 MICROSECOND")
        bench.calm()
        raw = run_json(tool("raw_loop"), "--socket", bench.mariadb.socket, "--database", stage.database, "--rows", rows,
                       *stage.sink.raw())
        number = waiting + rows + 1
        stage.fill(number, rows, f"UTC_TIMESTAMP(6) - INTERVAL ({number + rows} - seq) * 1000 MICROSECOND")
        bench.calm()
        with stage.sink.receiver(number, rows) as receiver:
            meter = Meter(stage)
            stage.start()
            first, already, ended = stage.wait(rows)
            cost = meter.end(rows, stage.cpu_seconds())
            receiver.wait_complete(60)
            judge(receiver.end(), f"beside {waiting:,} rows")
        scheduled(stage, WARM, number + rows, control=False)
        late = scheduled(stage, load, number + rows + WARM.count)
        found = {"waiting": waiting, "rows": rows, **cost, "lateness": late, "peak_mib": round(stage.peak_mib(), 1),
                 "raw_rows_per_s": round((rows - raw["first_rows"]) / ((raw["ended_us"] - raw["first_us"]) / 1e6)),
                 "rows_per_s": round((rows - already) / (ended - first))}
        stage.stop()
        stage.check_empty()
    say(f"  beside {waiting:,} rows: raw {found['raw_rows_per_s']:,}, duebox {found['rows_per_s']:,} rows/s;"
        f" peak {found['peak_mib']} MiB")
    show_load(late, f"beside {waiting:,}")
    return found


def backlog(bench, size):
    say("backlog: draining and lateness beside rows of the future")
    return {"levels": [one(bench, size, waiting) for waiting in size["waiting"]]}


def goals(found):
    empty, most = found["levels"][0], found["levels"][-1]
    name = f"{most['waiting']:,} rows waiting"
    return [Goal(f"{name}: drain, of that of an empty table", round(most["rows_per_s"] / empty["rows_per_s"], 3), ">=", 0.9),
            Goal(f"{name}: p99 at the consumer, times that of an empty table",
                 round(most["lateness"]["arrival"]["p99_ms"] / empty["lateness"]["arrival"]["p99_ms"], 2), "<=", 1.1),
            Goal(f"{name}: memory", most["peak_mib"], "<=", 64, "MiB")]


def show(found, page):
    levels = found["levels"]
    page.text(f"{levels[0]['rows']:,} due rows drained to Kafka beside rows that wait for the future, then a load of tasks"
              " scheduled ahead.")
    page.table(["rows waiting", "raw loop, rows/s", "duebox, rows/s", "ratio", "peak MiB"],
               [[f"{level['waiting']:,}", f"{level['raw_rows_per_s']:,}", f"{level['rows_per_s']:,}",
                 f"{level['rows_per_s'] / level['raw_rows_per_s']:.2f}", level["peak_mib"]] for level in levels])
    page.table(LATENESS_HEAD, [row for level in levels for row in (
        lateness_row(f"beside {level['waiting']:,}", level["lateness"]["per_s"], level["lateness"]["arrival"],
                     level["lateness"]), *machine_rows(level["lateness"]))])
    page.bars([(f"{level['waiting']:,} waiting, {who}", level[key]) for level in levels
               for who, key in (("raw loop", "raw_rows_per_s"), ("duebox", "rows_per_s"))], "rows per second")
    page.curves([(f"beside {level['waiting']:,}", level["lateness"]["arrival"]["buckets"]) for level in levels])


SCENARIOS = [
    Scenario("backlog", "Beside rows of the future", backlog,
             {"quick": {"rows": 10_000, "seconds": 3, "waiting": [0, 50_000]},
              "default": {"rows": 50_000, "seconds": 10, "waiting": [0, 10_000, 1_000_000]},
              "full": {"rows": 100_000, "seconds": 20, "waiting": [0, 10_000, 1_000_000, 10_000_000]}},
             {"quick": 35, "default": 120, "full": 700}, show, goals),
]
