"""A row that the table's CHECKs refuse, and that somebody got past them, costs only itself."""

import json
from random import Random

import pymysql
import pytest

from support.application import Task, new_id
from support.ledger import Promise
from support.wait import wait_until

FAR = "'9999-12-31 23:59:59'"

#: Columns and values that an application can write once it has switched the CHECKs off. None of them is an error then.
MISFITS = [
    *[("route", repr(value)) for value in ("r" * 65, "", "a b", "\n", "h\t")],
    *[("message_id", repr(value)) for value in ("m" * 65, "", "a\r\nb", "a b")],
    *[("priority", value) for value in ("0", "10", "31", "200", "-1", "256")],
    *[("shard", value) for value in ("62", "63", "64", "200", "255", "-1")],
    *[("task_key", value) for value in ("REPEAT('k', 256)", "REPEAT('\u00fc', 256)", "X'FF'")],
    *[("order_key", value) for value in ("REPEAT('k', 256)", "REPEAT('\u00fc', 256)")],
    *[("dedup_key", value) for value in ("REPEAT('k', 256)", "''")],
    *[("headers", value) for value in ("''", "'[]'", "X'FFFE'", "REPEAT('x', 70000)")],
    *[("delay_ms", value) for value in ("-1", "1000000000000000")],
    ("delay_ms, due_at", "-9223372036854775808, UTC_TIMESTAMP(6)"),
    *[("due_at", value) for value in ("'0000-00-00'", "'1000-01-01'", FAR, "'2026-00-31'")],
    *[("expires_at", value) for value in ("'0000-00-00'", "'1000-01-01'", FAR)],
    *[("max_attempts", value) for value in ("0", "-1", "4294967296")],
    *[("timeout_ms", value) for value in ("0", "-1", "4294967296")],
    *[("target_host", value) for value in ("REPEAT('t', 65)", "'t '", "' '")],
    ("state", "'nonsense'"), ("state", "'done'"), ("attempt", "4294967295"), ("failures", "4294967295"),
    ("recoveries", "4294967295"), ("revision", "4294967295"), ("first_due_at", "'0000-00-00'"),
    ("created_at", "'0000-00-00'"), ("published_at", "'0000-00-00'"), ("move_to_shard", "200"),
    ("move_to_host", "REPEAT('t', 65)"), ("progress", "1e308"),
    *[("route", repr(value)) for value in ("h ", "k  ", " k")],
    *[("route", value) for value in ("X'00'", "X'6800'", "X'006B'", "X'6B0078'", "X'680020'")],
    *[(column, f"CONCAT('{column}', X'00')") for column in ("message_id", "task_key", "order_key", "dedup_key")],
    ("target_host", "X'00'"),
    ("delay_ms, due_at, shard", "1000000000000000000, '0000-00-00', 40"),
    ("delay_ms, due_at, created_at", "-9223372036854775808, '0000-00-00', '0000-00-00'"),
    ("delay_ms, due_at, first_due_at", "9223372036854775807, '0000-00-00', '0000-00-00'"),
]


def insert_misfits(stage):
    """One row for each, beside good ones of the same route; returns {id: (column, value)}."""
    rows = {}
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for number, (column, value) in enumerate(MISFITS):
            columns = {"route": f"'{'hk'[number % 2]}'", "payload": "'misfit'", "message_id": f"'misfit-{number}'",
                       column: value}
            cursor.execute(f"INSERT INTO outbox ({', '.join(columns)}) VALUES ({', '.join(columns.values())})")
            rows[cursor.lastrowid] = (column, value)
    return rows


def random_misfits(random):
    """Columns of a row that has several of them, on the route k or h."""
    columns = {"route": f"'{random.choice('hk')}'", "payload": "'misfit'"}
    for names, values in random.sample(MISFITS, random.randint(1, 4)):
        columns |= dict(zip(names.split(", "), values.split(", ") if ", " in names else [values]))
    return columns


def test_commands_go_on_beside_misfit_rows(stage):
    """No daemon has ended the rows yet, as where it does not look at their shard. Commands that list, count or change tasks
    by filters do so with all others, and a row that cannot be read or changed costs them that row alone. (One with a zero
    date and a huge delay ended `duebox task list` with 75, for as long as it was there.)"""
    random, refused = Random(17), []
    stage.kafka("k", history="1h")
    stage.http("h", history="1h")
    daemon = stage.daemon()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for number in range(400):
            columns = {"message_id": f"'misfit-{number}'", **random_misfits(random)}
            try:
                cursor.execute(f"INSERT INTO outbox ({', '.join(columns)}) VALUES ({', '.join(columns.values())})")
            except pymysql.err.MySQLError as error:
                refused.append(error.args[0])
        cursor.execute("INSERT INTO outbox (route, payload, message_id, delay_ms) VALUES ('k', 'good', 'good', 3600000)")
    assert len(refused) < 100, refused
    rows = stage.count(where="state <> ''")  # doctor names those that have none
    for filters in ([], ["--route", "k"], ["--due-before", "+1d"], ["--due-after", "-1d"], ["--state", "scheduled"],
                    ["--created-before", "+1h", "--priority", "5"], ["--where", "delay_ms > 5"]):
        listed = [json.loads(line) for line in daemon.run("task", "list", "--limit", 1000, "-o", "jsonl", *filters).stdout.splitlines()]
        assert any(row["message_id"] == "good" for row in listed), filters
        assert filters or len(listed) == rows
    for words in (("dead", "list"), ("route", "list"), ("route", "show", "k"), ("doctor",)):
        result = daemon.run(*words, check=False)
        assert result.returncode in (0, 1, 78), (words, result.stdout, result.stderr)
    for words in (("set", "--priority", "7"), ("reschedule", "--delay", "2h"), ("cancel",)):
        for filters in (["--route", "k"], ["--due-after", "-1d"]):
            done = daemon.run("task", *words, *filters, "--yes", "-o", "json", check=False)
            assert done.returncode in (0, 65, 75), (words, filters, done.stdout, done.stderr)
    assert stage.count("outbox_history", "message_id = 'good' AND state = 'cancelled' AND priority = 7") == 1


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_blank_at_the_end_of_a_route_ends_no_other_task(stage, claim):
    """To the database 'k ' and 'k' are equal, so that a row of the one name gave its own to the group of the other: all
    tasks of that group, whenever they were due, ended dead as if each had got past the CHECKs."""
    stage.kafka("k", claim=claim, history="1h")
    stage.consume_kafka("k")
    daemon = stage.daemon()
    application = stage.application()
    application.insert([Task(Promise(new_id(), "k", b"now")) for _ in range(40)])
    application.insert([Task(Promise(new_id(), "k", b"later"), delay_ms=5000) for _ in range(40)])
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for shard in range(8):
            cursor.execute("INSERT INTO outbox (route, payload, due_at, shard) VALUES"
                           " ('k ', 'misfit', '2000-01-01', %s), ('k ', 'misfit', UTC_TIMESTAMP(6), %s)", (shard, shard))
    daemon.start()
    wait_until(lambda: stage.count() == 0, 60, "an empty outbox", detail=stage.living)
    assert stage.execute("SELECT payload, state, error_class, COUNT(*) FROM outbox_history GROUP BY 1, 2, 3 ORDER BY 1") == (
        (b"later", "done", None, 40), (b"misfit", "dead", "row.unreadable", 16), (b"now", "done", None, 40))
    assert len(stage.ledger.arrivals) == 80
    shown = json.loads(daemon.run("route", "show", "k", "-o", "json").stdout)
    assert (shown["route"], shown["dead"]) == ("k", 16)


@pytest.mark.parametrize("clock", ["0.000001", "1", "946684799.999999"])
def test_a_row_by_a_clock_before_2000_is_long_due(stage, clock):
    """With due_at NULL it passes every CHECK. It was sent, or died unsent, by which read came to it first."""
    for route, claim in (("m", "memory"), ("r", "recorded")):
        stage.http(route, claim=claim, history="1h")
    stage.consume_http()
    daemon = stage.daemon()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SET timestamp = {clock}")
        cursor.execute("SET sql_mode = ''")
        for number in range(40):
            cursor.execute("INSERT INTO outbox (route, payload, due_at, order_key) VALUES (%s, 'x', NULL, %s)",
                           ("mr"[number % 2], ["", "key"][number // 20]))
    daemon.start()
    wait_until(lambda: stage.count() == 0, 60, "an empty outbox", detail=stage.living)
    assert stage.execute("SELECT state, error_class, COUNT(*) FROM outbox_history GROUP BY 1, 2") == (("done", None, 40),)


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_row_that_got_past_the_checks_costs_only_itself(stage, claim):
    """Every user of MariaDB may switch CHECKs off for itself. Whatever such a client writes into whichever column, all
    other tasks of its route and of others leave at once, the row ends or is named by doctor, and people can list and
    count tasks. (One row with priority 10, or with a route of 65 characters, used to stop every route.)"""
    stage.kafka("k", claim=claim, history="1h")
    stage.http("h", claim=claim, history="1h")
    stage.consume_kafka("k")
    stage.consume_http()
    daemon = stage.daemon()
    application = stage.application()
    application.insert([Task(Promise(new_id(), "hk"[number % 2], b"before")) for number in range(20)])
    misfits = insert_misfits(stage)
    daemon.start()
    application.insert([Task(Promise(new_id(), "hk"[number % 2], b"after")) for number in range(20)])
    good = "SELECT COUNT(*) FROM outbox_history WHERE state = 'done' AND payload <> 'misfit'"
    wait_until(lambda: stage.execute(good) == ((40,),), 60, "all good tasks to leave", detail=stage.living)

    def left():
        return {row[0] for row in stage.execute("SELECT id FROM outbox")}

    def named():
        lines = [json.loads(line) for line in daemon.run("doctor", "-o", "jsonl", check=False).stdout.splitlines()]
        text = json.dumps([line for line in lines if "unreadable" in json.dumps(line)])
        return {number for number in left() if f"id {number} " in text}

    wait_until(lambda: left() == named(), 60, "what no daemon reads to be named, and all else to end",
               detail=lambda: {number: misfits.get(number) for number in left() - named()})
    wait_until(lambda: left() == named(), 60, "all else to end")
    ended = dict(stage.execute("SELECT id, CONCAT(state, ' ', COALESCE(error_class, '')) FROM outbox_history"
                               " WHERE payload = 'misfit'"))
    assert set(ended) | left() == set(misfits)
    assert {misfits[number][0] for number in left()} <= {"shard", "state", "target_host", "due_at",
                                                            "message_id", "move_to_host", "delay_ms, due_at, shard"}
    for number, (column, value) in misfits.items():
        if column in ("route", "priority", "max_attempts") and value != "4294967296" and number in ended:
            assert ended[number] in ("dead row.unreadable",), (column, value)
    for words in (("task", "list"), ("route", "list"), ("dead", "list"), ("doctor",)):
        result = daemon.run(*words, check=False)
        assert result.returncode in (0, 1), (words, result.stdout, result.stderr)
    listed = {row["route"]: row["dead"] for row in json.loads(daemon.run("route", "list", "-o", "json").stdout)}
    assert listed["h"] > 0 and listed["k"] > 0, listed  # a dead task of no route ended the list before them
    for number in sorted(misfits):
        # One whose state is none is no task to show; doctor names it. (It seemed to be shown: another one was, with an empty id.)
        shown = daemon.run("task", "show", f"id:{number}", check=False).returncode
        assert shown == (66 if misfits[number][0] == "state" and number in left() else 0), misfits[number]
    application.insert([Task(Promise(new_id(), "h", b"late"))])
    wait_until(lambda: stage.execute(good) == ((41,),), 60, "a task after all of them to leave")
