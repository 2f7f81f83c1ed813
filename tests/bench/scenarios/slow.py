"""Destinations that confirm late: all tasks, as at a distance, or one task in a thousand.

A route with memory claims hands nothing more to a destination that stands still (core/stall.h). What that rule costs
where a destination is only far away is seen beside a build without it.
"""

import os
import subprocess

from ..measure import Side, compare, hand_over, bucket_figures, past
from ..scenario import FOLDER, TOP, Goal, Scenario, median, say
from ..sinks import ProbeSink
from ..stage import Stage

DELAYS_MS = (5, 50, 200)


def without_the_rule():
    """The daemon of the same sources, with the flags of the release, that never takes a destination for stalled."""
    folder = FOLDER / "stall-off"
    for command in (["cmake", "-S", TOP, "-B", folder, "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc", "-DDUEBOX_TESTS=OFF",
                     "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS=-DSTALL_OFF"],
                    ["cmake", "--build", folder, "--target", "duebox"]):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env={**os.environ})
    return folder / "bin" / "duebox"


def distance(bench, size):
    """A drain with so much added to each confirm, with and without the rule, in turns."""
    other, found = without_the_rule(), {}
    for delay in DELAYS_MS:
        say(f"confirms {delay} ms late: {size['rows']:,} rows, {size['rounds']} rounds")
        sides = [Side(name, "daemon", lambda: ProbeSink(1, size["rows"], delay=f"{delay}ms"), past(), options)
                 for name, options in (("without the rule", {"program": other}), ("with it", {}))]
        found[str(delay)] = compare(bench, sides, size["rows"], size["rounds"], warm=False)
    return found


def distance_goals(found):
    return [Goal(f"drain with confirms {delay} ms late, of that without the stall rule", one["sides"]["with it"]["pairs"], ">=", 0.95)
            for delay, one in found.items()]


def show_distance(found, page):
    page.text("To a plugin without a destination that confirms each task so much later; in turns with a build that never takes"
              " a destination for stalled. The ratio is the median of those of the pairs.")
    rows = []
    for delay, one in found.items():
        rows += [[f"{delay} ms", name, f"{side['rows_per_s']:,.0f}", f"{min(side['all']):,} - {max(side['all']):,}",
                  f"{side['pairs']:.2f}"] for name, side in one["sides"].items()]
    page.table(["confirms late by", "", "rows/s", "lowest - highest", "ratio"], rows)


# -- one in a thousand -------------------------------------------------------------------------

SLOW = {"slow": "5s", "slow_every": 1000}


def one_in_a_thousand(bench, size):
    """Two routes; of the tasks of one, every thousandth is confirmed after 5 s, or none is. In turns."""
    found = {name: [] for name in ("none slow", "one slow")}
    say(f"one slow task in a thousand: {size['rounds']} rounds of {size['seconds']} s")
    for number in range(size["rounds"]):
        for name in sorted(found, reverse=number % 2 == 0):
            found[name].append(slow_round(bench, size, SLOW if name == "one slow" else {}))
            say(f"  {name:<12} " + "   ".join(f"{key} {value:g}" for key, value in found[name][-1].items()))
    pairs = list(zip(found["none slow"], found["one slow"]))
    return {"rounds": size["rounds"], "seconds": size["seconds"],
            **{name: {key: median([one[key] for one in ones]) for key in ones[0]} for name, ones in found.items()},
            "ratio": {key: round(median([b[key] / max(a[key], 0.001) for a, b in pairs]), 2) for key in found["one slow"][0]},
            "more": {key: round(median([b[key] - a[key] for a, b in pairs]), 2) for key in found["one slow"][0]}}


OTHERS_PER_S, SLOW_PER_S = 200, 1000


def slow_round(bench, size, options):
    count = OTHERS_PER_S * size["seconds"]
    plugins = {"sometimes": {"module": "probe", **options}}
    with Stage(bench, ProbeSink(1, count), plugins=plugins, routes={"slow": {"via": "sometimes"}}) as stage:
        stage.settle_in()
        start = stage.now()
        for route, first, per_s in (("bench", 1, OTHERS_PER_S), ("slow", 1 + count, SLOW_PER_S)):
            stage.fill(first, per_s * size["seconds"],
                       f"'{start}' + INTERVAL {10 + size['seconds'] * SLOW_PER_S // 15000} SECOND"
                       f" + INTERVAL (seq - {first}) * {round(1e6 / per_s)} MICROSECOND", route=route)
        stage.start()
        before = {route: hand_over(stage, route) for route in ("bench", "slow")}
        stage.wait(count + SLOW_PER_S * size["seconds"])
        p99 = {route: bucket_figures(before[route], hand_over(stage, route))["p99_ms"] for route in before}
        peak = stage.peak_mib()
        stage.stop()
    return {"others_p99_ms": p99["bench"], "same_route_p99_ms": p99["slow"], "peak_mib": round(peak, 1)}


def slow_goals(found):
    more = min(found["more"]["others_p99_ms"] / 2, found["ratio"]["others_p99_ms"] / 1.2)
    return [Goal("one slow task in a thousand: p99 of the other routes, of 1.2 times that without or 2 ms more", round(more, 2), "<=", 1),
            Goal("one slow task in a thousand: memory", found["one slow"]["peak_mib"], "<=", 64, "MiB")]


def show_slow(found, page):
    page.text(f"{SLOW_PER_S:,} tasks a second for {found['seconds']} s, of which every thousandth is confirmed after 5 s, beside"
              f" {OTHERS_PER_S} a second of another route, and the same without a slow one; {found['rounds']} rounds in turns,"
              " medians. Lateness at hand-over:")
    page.table(["", "none slow", "one slow", "ratio"],
               [[label, f"{found['none slow'][key]:.2f}", f"{found['one slow'][key]:.2f}", f"{found['ratio'][key]:.2f}"]
                for label, key in (("p99 of the other route, ms", "others_p99_ms"), ("p99 of the same route, ms", "same_route_p99_ms"),
                                   ("peak memory, MiB", "peak_mib"))])


SCENARIOS = [
    Scenario("distance", "Confirms that come late", distance,
             {"quick": {"rows": 50_000, "rounds": 1}, "default": {"rows": 200_000, "rounds": 7},
              "full": {"rows": 1_000_000, "rounds": 7}},
             {"quick": 100, "default": 500, "full": 1500}, show_distance, distance_goals),
    Scenario("one-slow", "One slow task in a thousand", one_in_a_thousand,
             {"quick": {"seconds": 5, "rounds": 1}, "default": {"seconds": 20, "rounds": 5}, "full": {"seconds": 60, "rounds": 5}},
             {"quick": 60, "default": 450, "full": 900}, show_slow, slow_goals),
]
