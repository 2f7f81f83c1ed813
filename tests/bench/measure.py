"""Draining and loads: what is done to a stage, what is counted meanwhile, and the ledger afterwards."""

import contextlib
import dataclasses
import time

from .scenario import BenchError, median, say, tool
from .sinks import ProbeSink
from .stage import LIMIT_S, Stage, cpu_seconds
from .tools import background, judge, run_json

WARM_ROWS = 30_000      # not counted: a JVM that has just started compiles what it runs
LEAD_S = 3              # from the end of an INSERT of tasks scheduled ahead to the first due time
FILLED_PER_S = 15_000   # rows that an INSERT certainly makes in a second


class Meter:
    """CPU time of servers and statements of the database, from its making to end()."""

    def __init__(self, stage):
        self._stage = stage
        self._servers = {"mariadb": [stage.bench.mariadb], "broker": stage.sink.servers()}
        self._cpu = self._cpu_now()
        self._questions = stage.bench.status("Questions")

    def end(self, tasks, client_s):
        """Costs of a task; client_s: CPU seconds of the daemons or of the raw loop."""
        now = self._cpu_now()
        cost = {f"{name}_cpu_us": (now[name] - self._cpu[name]) * 1e6 / tasks for name in now}
        cost["client_cpu_us"] = client_s * 1e6 / tasks
        cost["cpu_us"] = sum(cost.values())
        cost["questions"] = (self._stage.bench.status("Questions") - self._questions) / tasks
        return {name: round(value, 3) for name, value in cost.items()}

    def _cpu_now(self):
        return {name: sum(cpu_seconds(server.process.pid) for server in servers) for name, servers in self._servers.items()}


# -- drains -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Side:
    """One side of a comparison. who: "raw" or "daemon"; sink() makes its destination; fill(stage, rows) puts the rows;
    options: more of Stage; value: what counts as done, see Stage.wait."""
    name: str
    who: str
    sink: object
    fill: object
    options: dict = dataclasses.field(default_factory=dict)
    answers: bool = False       # a consumer answers each task, and its result counts
    raw: tuple = ()             # more words for raw_loop


def drain(bench, side, rows):
    """One round: an outbox is filled, emptied, and the ledger compared. A dict of figures."""
    with Stage(bench, side.sink(), **side.options) as stage:
        if side.who == "daemon" and isinstance(stage.sink, ProbeSink) and stage.sink.count != rows:
            raise BenchError("the probe does not expect what is sent")
        if side.who == "daemon":
            stage.settle_in()
        ready = side.fill(stage, rows)
        bench.calm()
        meter = Meter(stage)
        with _live(stage, side, rows) as live:
            measure = _raw if side.who == "raw" else _daemon
            found = measure(stage, side, rows, meter, ready)
            book = _book(stage, side, live, rows)
        if book:
            judge(book, side.name)
        stage.check_empty()
    return found


def _raw(stage, side, rows, meter, ready):
    if ready:
        ready()
    said = run_json(tool("raw_loop"), "--socket", stage.bench.mariadb.socket, "--database", stage.database,
                    "--rows", rows, *stage.sink.raw(), *side.raw)
    counted = rows - said["first_rows"]
    seconds = (said["ended_us"] - said["first_us"]) / 1e6
    return {"rows_per_s": round(counted / seconds), **meter.end(rows, said["cpu_s"])}


def _daemon(stage, side, rows, meter, ready):
    stage.start()
    if ready:
        ready()
    first, already, ended = stage.wait(rows, _answered if side.answers else None)
    cost = meter.end(rows, stage.cpu_seconds())
    found = {"rows_per_s": round((rows - already) / (ended - first)), **cost, "statements": round(stage.statements() / rows, 3),
             "peak_mib": round(stage.peak_mib(), 1)}
    stage.stop()
    return found


def _answered(stage):
    return sum(route["results"]["applied"] for stats in stage.stats() for route in stats["routes"])


@contextlib.contextmanager
def _live(stage, side, rows):
    """The receiver of a destination that needs one while it runs, or None."""
    if side.answers and side.who == "daemon":
        with stage.sink.receiver(1, rows, "--answer", stage.sink.answers) as receiver:
            yield receiver
    elif stage.sink.live:
        with stage.sink.receiver(1, rows) as receiver:
            yield receiver
    else:
        yield None


def _book(stage, side, live, rows):
    if live:
        return live.end()
    if isinstance(stage.sink, ProbeSink):
        return stage.sink.book()
    with stage.sink.receiver(1, rows, from_beginning=True) as receiver:
        receiver.wait_complete(LIMIT_S)
        return receiver.end()


def compare(bench, sides, rows, rounds, warm=True):
    """All sides in turn, each round beginning with another one. {"rows", "rounds", "sides": {name: {figure: median,
    "all": rows/s of each round, "ratio": to the first side, "pairs": the same, the median over the rounds}}}. warm: a
    drain of a few rows goes before, not counted."""
    every = {side.name: [] for side in sides}
    if warm:
        drain(bench, dataclasses.replace(sides[0], fill=past()), min(rows, WARM_ROWS))
    for number in range(rounds):
        shift = number % len(sides)
        for side in sides[shift:] + sides[:shift]:
            one = drain(bench, side, rows)
            every[side.name].append(one)
            say(f"  {side.name:<28} {one['rows_per_s']:>9,} rows/s   CPU per row: {one['cpu_us']:6.1f} us"
                f" (of its own {one['client_cpu_us']:5.1f})   {one.get('statements', 0):.3f} statements")
    found = {"rows": rows, "rounds": rounds, "sides": {}}
    for name, ones in every.items():
        figures = {figure: median([one[figure] for one in ones]) for figure in ones[0]}
        found["sides"][name] = {**figures, "all": [one["rows_per_s"] for one in ones]}
    base = found["sides"][sides[0].name]
    for side in found["sides"].values():
        side["ratio"] = round(side["rows_per_s"] / base["rows_per_s"], 3)
        side["pairs"] = round(median([a / b for a, b in zip(side["all"], base["all"])]), 3)
        side["cpu_ratio"] = round(base["cpu_us"] / side["cpu_us"], 3)
    for name in list(found["sides"])[1:]:
        say(f"  {name}: {found['sides'][name]['ratio']:.2f} of {sides[0].name}, by CPU time of all"
            f" {found['sides'][name]['cpu_ratio']:.2f}")
    return found


def past(payload=200):
    """Rows that are due already, a millisecond apart."""
    def fill(stage, rows):
        stage.install(rows, payload=payload)
    return fill


# -- loads ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Load:
    """Tasks scheduled ahead, evenly. route: a name, or an SQL expression in brackets over seq."""
    per_s: int
    seconds: float
    payload: int = 200
    route: str = "bench"
    priority: int = 5

    @property
    def count(self):
        return round(self.per_s * self.seconds)


def scheduled(stage, load, first=1, *, control=True):
    """Insert the load beside running daemons and watch it arrive; the ledger is compared. A dict of figures."""
    lead_s = LEAD_S + load.count / FILLED_PER_S
    probe = isinstance(stage.sink, ProbeSink)
    settled = stage.settled()
    with contextlib.ExitStack() as open_things:
        receiver = None if probe else open_things.enter_context(stage.sink.receiver(first, load.count))
        start, begin = stage.now(), time.monotonic() + lead_s
        stage.fill(first, load.count, _due(start, lead_s, first, load.per_s), payload=load.payload, route=load.route,
                   priority=load.priority)
        if time.monotonic() > begin:
            raise BenchError(f"{load.count} rows could not be inserted in {lead_s:.0f} s")
        time.sleep(begin - time.monotonic())
        pulse = open_things.enter_context(_pulse(stage, load.seconds)) if control else None
        handed, meter, cpu, statements = hand_over(stage), Meter(stage), stage.cpu_seconds(), stage.statements()
        if receiver:
            receiver.wait_complete(load.seconds + LIMIT_S)
        stage.wait(settled + load.count)
        found = {"per_s": load.per_s, "tasks": load.count, **meter.end(load.count, stage.cpu_seconds() - cpu),
                 "statements": round((stage.statements() - statements) / load.count, 3),
                 "hand_over": bucket_figures(handed, hand_over(stage)), "peak_mib": round(stage.peak_mib(), 1)}
        if receiver:
            found["arrival"] = judge(receiver.end(), f"{load.per_s}/s")["lateness"]
        if pulse:
            found["machine"] = pulse()
    return found


def _due(start, lead_s, first, per_s):
    return f"'{start}' + INTERVAL {round(lead_s * 1e6)} + (seq - {first}) * {round(1e6 / per_s, 3)} MICROSECOND"


def _pulse(stage, seconds):
    return background(tool("pulse"), stage.bench.mariadb.socket, stage.database, max(1, round(seconds)))


def hand_over(stage, name=None):
    """The daemons' own histograms of lateness at hand-over, of all routes or of one: ([count of each bucket], [upper
    bounds in us])."""
    counts, bounds = None, None
    for stats in stage.stats():
        bounds = stats["bucket_bounds_us"]
        for route in stats["routes"]:
            buckets = route["lateness"]["buckets"]
            if name not in (None, route["name"]):
                buckets = [0] * len(buckets)
            counts = [a + b for a, b in zip(counts, buckets)] if counts else buckets
    return counts, bounds


def bucket_figures(before, after):
    """Quantiles of what came between, interpolated within the daemon's coarse buckets."""
    counts = [now - then for now, then in zip(after[0], before[0] or [0] * len(after[0]))]
    return {"p50_ms": round(_quantile(counts, after[1], 0.5) / 1000, 3),
            "p99_ms": round(_quantile(counts, after[1], 0.99) / 1000, 3)}


def _quantile(counts, bounds, share):
    wanted, low = share * sum(counts), 0
    for number, bound in zip(counts, bounds):
        if number and wanted <= number:
            return low + (bound - low) * wanted / number
        wanted, low = wanted - number, bound
    return float(bounds[-1])


def show_load(found, name):
    text = f"  {name:<28} {found['per_s']:>6}/s"
    if "arrival" in found:
        text += "   at the consumer p50 {p50_ms:.2f} p99 {p99_ms:.2f} max {max_ms:.1f} ms".format(**found["arrival"])
    text += "   at hand-over p50 {p50_ms:.2f} p99 {p99_ms:.2f} ms".format(**found["hand_over"])
    say(f"{text}   {found['statements']:.2f} statements")
    if "machine" in found:
        say("  {:<28} a sleeper woke with p99 {woken_p99_ms} ms and had read a row with p50 {answered_p50_ms} p99"
            " {answered_p99_ms} ms".format("  (the machine)", **found["machine"]))
