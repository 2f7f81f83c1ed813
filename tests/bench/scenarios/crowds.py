"""What one route, or a stranger, may put into the table without the other routes noticing: thousands of names that no
configuration has, rows that were deleted and cannot be purged, results that are missing by the hundred thousand."""

import contextlib
import threading
import time

from ..measure import Load, scheduled, show_load
from ..scenario import BenchError, Goal, Scenario, median, say
from ..sinks import ProbeSink
from ..stage import Stage
from .lateness import LATENESS_HEAD, WARM, lateness_row

PER_S = 200
DRAINED = 100_000           # rows of the drain that follows, beside what is still there
FIRST_DRAINED = 10_000_000  # their numbers


@contextlib.contextmanager
def unknown_routes(stage, size):
    """Half of the names are there when the load begins, the others come meanwhile, some every tenth of a second."""
    over = threading.Event()
    execute = stage.bench.mariadb.execute

    def insert(first, last):
        execute("INSERT INTO outbox (route, payload) SELECT CONCAT('nobodys.', seq), 'x' FROM"
                f" seq_{first}_to_{last}", db=stage.database)

    def trickle():
        names, steps = size["names"], round(size["seconds"] * 10)
        for step in range(steps):
            first, last = (names // 2 + names // 2 * (step + more) // steps for more in (0, 1))
            if last > first:
                insert(first + 1, last)
            if over.wait(0.1):
                return

    insert(1, size["names"] // 2)
    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def pinned(stage, size):
    """A snapshot that was opened before so many rows were sent and deleted stays open."""
    with stage.bench.mariadb.connect(stage.database) as snapshot, snapshot.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SELECT COUNT(*) FROM outbox")
        settled = stage.settled()
        stage.fill(FIRST_DRAINED * 2, size["deleted"], "UTC_TIMESTAMP(6)")
        stage.wait(settled + size["deleted"])
        yield
        cursor.execute("ROLLBACK")


@contextlib.contextmanager
def missing_results(stage, size):
    """Tasks of another route whose results should have come: they end dead, at their last attempt."""
    stage.bench.mariadb.execute(
        "INSERT INTO outbox (route, payload, state, attempt, max_attempts, due_at, published_at, lease_until) SELECT 'asked',"
        " 'x', 'awaiting', 1, 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) - INTERVAL 1 SECOND FROM"
        f" seq_1_to_{size['missing']}", db=stage.database)
    yield


def drained_per_s(stage):
    settled, began = stage.settled(), time.monotonic()
    stage.fill(FIRST_DRAINED, DRAINED, "UTC_TIMESTAMP(6)", route="other")
    while stage.bench.mariadb.execute("SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE route = 'other' LIMIT 1) x",
                                      db=stage.database)[0][0]:
        if time.monotonic() - began > 600:
            raise BenchError(f"the drain has not ended; {stage.settled() - settled} rows were settled")
        time.sleep(0.05)
    return round(DRAINED / (time.monotonic() - began))


def once(bench, size, crowd):
    load = Load(PER_S, size["seconds"])
    sink = ProbeSink(1 + WARM.count, load.count)
    routes = {name: {**sink.route(), "history": 0} for name in ("other", "asked")}
    with Stage(bench, sink, routes=routes) as stage:
        stage.settle_in()
        bench.calm()
        stage.start()
        scheduled(stage, WARM, control=False)
        with crowd(stage, size) if crowd else contextlib.nullcontext():
            found = scheduled(stage, load, 1 + WARM.count, control=False)
            found["drained_per_s"] = drained_per_s(stage)
        found["left"] = bench.mariadb.execute("SELECT COUNT(*) FROM outbox WHERE state = 'awaiting'", db=stage.database)[0][0]
        stage.stop()
        book = stage.sink.book()
        stage.check_empty()
    if (book["distinct"], book["arrivals"], book["early"]) != (load.count, load.count, 0):
        raise BenchError(f"the plugin's book does not come out even: {book}")
    found["exact"] = book["lateness"]
    return found


def compare(crowd):
    def run(bench, size):
        every = {"alone": [], "beside": []}
        for number in range(size["rounds"]):
            for what in ("alone", "beside") if number % 2 == 0 else ("beside", "alone"):
                found = once(bench, size, crowd if what == "beside" else None)
                every[what].append(found)
                show_load(found, what)
                say("  {:<28} exactly: p50 {p50_ms:.3f} p99 {p99_ms:.3f} max {max_ms:.3f} ms".format("", **found["exact"])
                    + f"   drained {found['drained_per_s']:,}/s   left {found['left']:,}")
        middle = {what: median([one["exact"]["p99_ms"] for one in ones]) for what, ones in every.items()}
        rates = {what: median([one["drained_per_s"] for one in ones]) for what, ones in every.items()}
        return {"size": size, **{what: ones[-1] for what, ones in every.items()}, "p99_ms": middle, "rates": rates,
                "p99_ratio": round(middle["beside"] / middle["alone"], 2), "ratio": round(rates["beside"] / rates["alone"], 2)}
    return run


def goals_of(what):
    def goals(found):
        alone = found["p99_ms"]["alone"]
        return [Goal(f"{what}: p99 of the other routes", round(found["p99_ms"]["beside"], 2), "<=",
                     round(max(1.2 * alone, alone + 2), 2), "ms")]
    return goals


def show_of(text):
    def show(found, page):
        page.text(f"{text.format(**found['size'])} {PER_S} tasks a second for {found['size']['seconds']} s that were scheduled"
                  f" ahead on another route, without it and beside it, to a plugin that notes the microsecond of each"
                  f" hand-over; then {DRAINED:,} due rows of a third route, in rows a second from their INSERT on until none"
                  " is left.")
        page.table([*LATENESS_HEAD, "drained/s"], [
            [*lateness_row(name, PER_S, found[name]["exact"], found[name]), f"{found[name]['drained_per_s']:,}"]
            for name in ("alone", "beside")])
    return show


def scenario(name, title, crowd, what, text, sizes):
    rounds = {"quick": 1, "default": 1, "full": 5}
    lasts = {"quick": 5, "default": 20, "full": 20}
    return Scenario(name, title, compare(crowd),
                    {size: {**sizes[size], "seconds": lasts[size], "rounds": rounds[size]} for size in rounds},
                    {"quick": 60, "default": 330, "full": 550}, show_of(text), goals_of(what))


SCENARIOS = [
    scenario("unknown-routes", "20,000 unknown routes", unknown_routes, "20,000 unknown routes",
             "{names:,} rows, each of another route that no configuration has: half of them before, half of them meanwhile.",
             {"quick": {"names": 2_000}, "default": {"names": 20_000}, "full": {"names": 20_000}}),
    scenario("purge-pinned", "Purge pinned with 400,000 deleted rows", pinned, "purge pinned with 400,000 deleted rows",
             "{deleted:,} rows that were sent and deleted under an open snapshot.",
             {"quick": {"deleted": 40_000}, "default": {"deleted": 400_000}, "full": {"deleted": 400_000}}),
    scenario("missing-results", "100,000 missing results", missing_results, "100,000 missing results",
             "{missing:,} tasks whose results are overdue when the load begins.",
             {"quick": {"missing": 10_000}, "default": {"missing": 100_000}, "full": {"missing": 100_000}}),
]
