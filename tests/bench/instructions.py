#!/usr/bin/python3
"""Instructions per task: what the daemon's own code costs, counted by callgrind, so that no clock is needed.

    tests/bench/instructions.py                     a profile, compared with the baseline
    tests/bench/instructions.py --record            make the baseline anew (tests/bench/instructions.json)
    tests/bench/instructions.py --sink kafka --top 40 --inclusive     a profile of the drain to Kafka

A table of due rows is drained by `duebox run` under `valgrind --tool=callgrind`, once small and once large; the
difference divided by the difference in rows is what a row costs in user space, start and end left out. On a busy machine
some rows are read or looked at once more, which is up to a tenth; the least of a few counts differs by about a percent.
The daemon comes from a build of its own with the flags of the release, below the build folder.
Waiting and the database are not in these figures: tests/bench/run measures those.

After a change that is meant to cost more, or with another compiler or library: --record, and commit the file.
"""

import argparse
import contextlib
import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from support.daemon import Daemon  # noqa: E402
from support.servers import build_folder  # noqa: E402
from support.wait import wait_until  # noqa: E402

BASELINE = HERE / "instructions.json"
SMALL, LARGE = 5_000, 25_000    # rows
PAYLOAD = 200                   # bytes
TOLERANCE = 0.15                # a cost may be so much above the baseline
KEPT = 80                       # functions in the baseline
ATTEMPTS = 3                    # counts, of which the least is taken
DRAIN_LIMIT_S = 120

# One line of callgrind_annotate: cost, share, file:function, and the object in brackets.
LINE = re.compile(r"\s*([\d,]+) \([\s\d.]+%\)\s+.*?:([^:]+?) \[(.*)\]$")
# What the compiler and callgrind (recursion) add to a function's name.
DECORATION = re.compile(r"(\.(isra|constprop|part|cold)(\.\d+)?)+|'\d+")


class CountError(RuntimeError):
    """Nothing was counted; the text says why."""


# -- counting ----------------------------------------------------------------------------


def release_build():
    """A build with the flags of the release, next to the one that is tested; its folder."""
    folder = build_folder() / "instructions"
    for command in (["cmake", "-S", TOP, "-B", folder, "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"],
                    ["cmake", "--build", folder, "--target", "duebox", "testplugin_null", "kafka.so"]):
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise CountError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}")
    return folder


def drain(build, mariadb, kafka, folder, rows):
    """Drain so many rows under callgrind; the file of its counts."""
    database = mariadb.create_database(f"instructions{rows}")
    counts = folder / f"callgrind.{rows}"
    plugin, route = {"module": "null"}, {}
    if kafka:
        plugin, route = {"module": "kafka", "brokers": kafka.bootstrap}, {"topic": kafka.create_topic(database)}
    daemon = Daemon(
        folder / database, {"database": {"socket": str(mariadb.socket), "user": "root", "name": database},
                            "plugins": {"sink": plugin}, "routes": {"bench": {"via": "sink", **route}}},
        environment={"DUEBOX_PLUGIN_PATH": f"{build}/plugins:{build}/tests/plugins"},
        program=["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", build / "bin" / "duebox"])
    with daemon:
        daemon.migrate()
        mariadb.execute("INSERT INTO outbox (route, task_key, payload, due_at) SELECT 'bench', CONCAT('key-', seq),"
                        f" RPAD(seq, {PAYLOAD}, 'x'), UTC_TIMESTAMP(6) - INTERVAL ({rows} - seq) * 1000 MICROSECOND"
                        f" FROM seq_1_to_{rows}", db=database)
        daemon.start(wait_ready=False)
        wait_until(lambda: daemon.check() or not mariadb.execute("SELECT EXISTS (SELECT * FROM outbox)", db=database)[0][0],
                   DRAIN_LIMIT_S, f"{rows} rows to be drained under callgrind", detail=daemon.log_tail)
    mariadb.execute(f"DROP DATABASE `{database}`")
    return counts


def functions(counts, inclusive):
    """{(object, function): instructions} of a callgrind file."""
    done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", f"--inclusive={'yes' if inclusive else 'no'}",
                           counts], stdout=subprocess.PIPE, text=True, check=True)
    found = {}
    for match in filter(None, map(LINE.match, done.stdout.splitlines())):
        key = Path(match[3]).name, DECORATION.sub("", match[2])
        found[key] = found.get(key, 0) + int(match[1].replace(",", ""))
    return found


def per_task(files, inclusive=False):
    """{(object, function): instructions per task}"""
    small, large = (functions(counts, inclusive) for counts in files)
    return {key: (cost - small.get(key, 0)) / (LARGE - SMALL) for key, cost in large.items()}


def count(mariadb, folder, kafka=None):
    """Drain twice; the two files of counts."""
    if not shutil.which("valgrind"):
        raise CountError("there is no valgrind; see scripts/packages")
    build = release_build()
    folder.mkdir(parents=True, exist_ok=True)
    return [drain(build, mariadb, kafka, folder, rows) for rows in (SMALL, LARGE)]


def least(mariadb, folder, enough):
    """The summary with the least total of ATTEMPTS counts, or the first one that is enough(summary)."""
    best = None
    for _ in range(ATTEMPTS):
        found = {**summary(per_task(count(mariadb, folder))), "with": surroundings()}
        best = found if best is None or found["total"] < best["total"] else best
        if enough(best):
            break
    return best


def summary(costs):
    """What the baseline holds: per task in all, in the daemon itself, and of the dearest functions."""
    dearest = sorted(costs.items(), key=lambda item: -item[1])[:KEPT]
    return {"total": round(sum(costs.values())), "duebox": round(sum(cost for (part, _), cost in costs.items() if part == "duebox")),
            "functions": {f"{part}: {function}": round(cost, 1) for (part, function), cost in dearest}}


def surroundings():
    """What else decides how many instructions there are."""
    compiler = subprocess.run(["gcc", "-dumpfullversion"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    client = subprocess.run(["pkg-config", "--modversion", "libmariadb"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return {"machine": platform.machine(), "gcc": compiler, "libc": platform.libc_ver()[1], "libmariadb": client}


# -- comparing ---------------------------------------------------------------------------


def compare(found, baseline):
    """None, or a text that says what costs more than it did."""
    dearer = [(what, found[what], baseline[what]) for what in ("total", "duebox") if found[what] > baseline[what] * (1 + TOLERANCE)]
    if not dearer:
        return None
    lines = [f"a drained task costs {now:,} instructions ({what}), {100 * now / before - 100:.0f} % more than the {before:,} of the baseline"
             for what, now, before in dearer]
    changes = sorted(((cost - baseline["functions"].get(name, 0), name, cost) for name, cost in found["functions"].items()), reverse=True)
    lines.append("what grew most, per task:")
    lines += [f"  {grown:+9.1f} to {cost:9.1f}  {name}" for grown, name, cost in changes[:15] if grown > 0]
    other = {name: value for name, value in surroundings().items() if baseline["with"].get(name) != value}
    if other:
        lines.append(f"the baseline was recorded with {baseline['with']}; here it is {other}")
    lines.append("meant to be so? tests/bench/instructions.py --record, and commit tests/bench/instructions.json")
    return "\n".join(lines)


def show(costs, top, title):
    print(f"\n{title}, instructions per task:")
    for (part, function), cost in sorted(costs.items(), key=lambda item: -item[1])[:top]:
        print(f"{cost:10.1f}  {function}  [{part}]")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="make this the baseline")
    parser.add_argument("--sink", choices=("null", "kafka"), default="null", help="where the tasks go (default null)")
    parser.add_argument("--top", type=int, default=25, help="how many functions to show (default 25)")
    parser.add_argument("--inclusive", action="store_true", help="show costs with what is called, too")
    options = parser.parse_args()
    if options.record and options.sink != "null":
        parser.error("the baseline is that of the null sink")
    return options


def main():
    options = parse()
    from support.servers.kafka import Kafka
    from support.servers.mariadb import MariaDB
    folder = TOP / "build" / "bench" / "instructions"
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.ExitStack() as servers:
        mariadb = servers.enter_context(MariaDB(folder / "mariadb"))
        if options.record:
            found = least(mariadb, folder, lambda _: False)
            BASELINE.write_text(json.dumps(found, indent=1) + "\n")
            print(f"recorded: {found['total']:,} instructions per task, {found['duebox']:,} of them in duebox itself")
            return 0
        kafka = servers.enter_context(Kafka(folder / "kafka")) if options.sink == "kafka" else None
        files = count(mariadb, folder, kafka)
    costs = per_task(files)
    found = {**summary(costs), "with": surroundings()}
    show(costs, options.top, "self")
    if options.inclusive:
        show(per_task(files, inclusive=True), options.top, "inclusive (recursion is counted at every level)")
    print(f"\n{found['total']:,} instructions per task, {found['duebox']:,} of them in duebox itself")
    if options.sink == "null":
        print(compare(found, json.loads(BASELINE.read_text())) or f"within {TOLERANCE:.0%} of the baseline")
    return 0


if __name__ == "__main__":
    sys.exit(main())
