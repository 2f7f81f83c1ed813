"""What the daemon costs while nothing is due."""

import time

from ..scenario import Goal, Scenario, say
from ..sinks import KafkaSink
from ..stage import Stage

SETTLE_S = 10       # after the start: its first looks and the first consumption are over


def idle(bench, size):
    found = {}
    for name, rows in (("empty table", 0), (f"{size['rows']:,} rows of the future", size["rows"])):
        with Stage(bench, KafkaSink()) as stage:
            stage.settle_in()
            if rows:
                stage.install(rows, due="future")
            stage.start()
            time.sleep(SETTLE_S)
            cpu, statements, questions = stage.cpu_seconds(), stage.statements(), bench.status("Questions")
            time.sleep(size["seconds"])
            found[name] = {
                "cpu_percent": round((stage.cpu_seconds() - cpu) / size["seconds"] * 100, 2),
                "statements_per_s": round((stage.statements() - statements) / size["seconds"], 1),
                "questions_per_s": round((bench.status("Questions") - questions) / size["seconds"], 1),
                "peak_mib": round(stage.peak_mib(), 1)}
            stage.stop()
        say(f"  idle, {name}: {found[name]}")
    return found


def goals(found):
    return [Goal("idle: CPU", max(one["cpu_percent"] for one in found.values()), "<=", 1, "% of a core"),
            Goal("idle: statements a second", max(one["statements_per_s"] for one in found.values()), "<=", 20),
            Goal("memory while a million rows wait", max(one["peak_mib"] for one in found.values()), "<=", 64, "MiB")]


def show(found, page):
    page.table(["", "CPU, % of a core", "statements/s (its own count)", "questions/s (the server's)", "peak MiB"],
               [[name, one["cpu_percent"], one["statements_per_s"], one["questions_per_s"], one["peak_mib"]]
                for name, one in found.items()])


SCENARIOS = [
    Scenario("idle", "Idle", idle,
             {"quick": {"rows": 20_000, "seconds": 5}, "default": {"rows": 1_000_000, "seconds": 20},
              "full": {"rows": 1_000_000, "seconds": 60}},
             {"quick": 40, "default": 80, "full": 180}, show, goals),
]
