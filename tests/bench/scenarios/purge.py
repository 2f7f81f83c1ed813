"""An open snapshot pins InnoDB's purge: rows that were deleted stay in the indexes, where every scan meets them."""

import time

from ..scenario import Goal, Scenario, median, say, tool
from ..sinks import KafkaSink
from ..stage import Stage
from ..tools import judge, run_json

ROWS_A_BATCH = 20_000


def burst(stage, first, rows, who, already):
    """Insert and drain; rows/s."""
    due = f"UTC_TIMESTAMP(6) - INTERVAL ({first + rows} - seq) * 10 MICROSECOND"
    if who == "raw":
        stage.fill(first, rows, due)
        said = run_json(tool("raw_loop"), "--socket", stage.bench.mariadb.socket, "--database", stage.database, "--rows", rows,
                        *stage.sink.raw())
        return round((rows - said["first_rows"]) / ((said["ended_us"] - said["first_us"]) / 1e6))
    with stage.sink.receiver(first, rows) as receiver:
        stage.fill(first, rows, due)
        began = time.time()
        stage.wait(already + rows)
        took = time.time() - began
        receiver.wait_complete(60)
        judge(receiver.end(), "a burst")
    return round(rows / took)


def bursts(stage, who, seconds, at_least):
    """Bursts for so long, and so many; the rows/s of each, and the undo logs that wait at the end."""
    rates, number, settled, until = [], 1, 0, time.monotonic() + seconds
    if who == "daemon":
        stage.start()
    while time.monotonic() < until or len(rates) < at_least:
        rates.append(burst(stage, number, ROWS_A_BATCH, who, settled))
        number += ROWS_A_BATCH
        settled += ROWS_A_BATCH
    return rates, stage.bench.status("Innodb_history_list_length")


def pinned(bench, size):
    found = {"seconds": size["seconds"]}
    for who in ("raw", "daemon"):
        for what in ("free", "pinned"):
            with Stage(bench, KafkaSink()) as stage:
                if who == "daemon":
                    stage.settle_in()
                bench.calm()
                with bench.mariadb.connect(stage.database) as snapshot, snapshot.cursor() as cursor:
                    if what == "pinned":
                        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                        cursor.execute("SELECT COUNT(*) FROM outbox")
                    rates, history = bursts(stage, who, size["seconds"] if what == "pinned" else size["free_seconds"], 3)
                    cursor.execute("ROLLBACK")
                if who == "daemon":
                    stage.stop()
                stage.check_empty()
            last = median(rates[-3:])
            found[f"{who}, {what}"] = {"rates": rates, "last": last, "history": history}
            say(f"  {who}, purge {what}: {last:,.0f} rows/s at the end, undo logs waiting {history:,}, bursts {rates}")
    for who in ("raw", "daemon"):
        found[f"{who} slower"] = round(found[f"{who}, free"]["last"] / found[f"{who}, pinned"]["last"], 2)
    return found


def goals(found):
    return [Goal(f"purge pinned for {found['seconds']} s: times slower", found["daemon slower"], "<=", 1.2)]


def show(found, page):
    page.text(f"Bursts of {ROWS_A_BATCH:,} rows, inserted and drained to Kafka one after the other; without and with a snapshot that"
              f" was opened before and stays open for {found['seconds']} s. The rate is the median of the last three bursts.")
    page.table(["", "purge free, rows/s", "pinned", "times slower", "undo logs waiting at the end"],
               [[who, f"{found[f'{who}, free']['last']:,.0f}", f"{found[f'{who}, pinned']['last']:,.0f}", found[f"{who} slower"],
                 f"{found[f'{who}, pinned']['history']:,}"] for who in ("raw", "daemon")])
    page.lines_chart([(name, found[name]["rates"]) for name in ("raw, free", "raw, pinned", "daemon, free", "daemon, pinned")],
               "burst", "rows per second")


SCENARIOS = [
    Scenario("purge", "Purge pinned by an open snapshot", pinned,
             {"quick": {"seconds": 5, "free_seconds": 3}, "default": {"seconds": 60, "free_seconds": 15},
              "full": {"seconds": 600, "free_seconds": 60}},
             {"quick": 40, "default": 165, "full": 1400}, show, goals),
]
