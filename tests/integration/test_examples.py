"""Every statement of sql/examples does what it says, literally as it is there, and the word DEFAULT makes no task early,
on both servers."""

import re
import sys
from pathlib import Path

import pymysql
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from integration.test_schema import SHARDS, SQL, insert, install, one, run, statements  # noqa: E402

DUPLICATE, LOCKED, REFUSED = 1062, 1205, (4025, 3819)
STRICT = "SET time_zone = '+00:00', sql_mode = 'TRADITIONAL'"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def connect(request):
    """connect() is a connection to an outbox of one server."""
    server = request.getfixturevalue(request.param)
    name = server.create_database("examples")
    with server.connect(name) as connection:
        install(connection)
    return lambda: server.connect(name, init_command=STRICT)


@pytest.fixture
def cursor(connect):
    """On empty tables."""
    with connect() as connection, connection.cursor() as it:
        for table in ("outbox", "outbox_history", "outbox_attempts"):
            it.execute(f"DELETE FROM {table}")
        yield it


@pytest.fixture(params=["default", "null"])
def task(request, cursor):
    """task(..) inserts a row as those clients do that leave due_at out, and as those that write NULL for it."""
    return lambda **columns: insert(cursor, **({"due_at": None} if request.param == "null" else {}), **columns)


def finish(cursor, state, late_ms=0, **columns):
    """A task that is over."""
    row_id = insert(cursor, **columns)
    cursor.execute("INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority,"
                   " order_key, dedup_key, expires_at, target_host, shard, created_at, state, attempt, failures, recoveries,"
                   " published_at, finished_at, keep_until) SELECT id, message_id, route, payload, headers, task_key,"
                   " due_at, priority, order_key, dedup_key, expires_at, target_host, shard, created_at, %s, 3, 3, 0,"
                   " due_at + INTERVAL %s MICROSECOND, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 DAY FROM outbox"
                   " WHERE id = %s", (state, late_ms * 1000, row_id))
    cursor.execute("DELETE FROM outbox WHERE id = %s", (row_id,))
    return row_id


def test_insert(cursor):
    run(cursor, "insert")
    assert one(cursor, "SELECT route, payload FROM outbox") == ("orders.created", b'{"order": 17}')


def test_insert_at(cursor):
    run(cursor, "insert_at")
    assert one(cursor, "SELECT ROUND(TIMESTAMPDIFF(SECOND, created_at, due_at) / 3600), priority FROM outbox") == (2, 9)
    assert "traceparent" in one(cursor, "SELECT JSON_KEYS(headers) FROM outbox")


def test_insert_delay(cursor):
    run(cursor, "insert_delay")
    assert one(cursor, "SELECT TIMESTAMPDIFF(MINUTE, created_at, due_at) FROM outbox") == 30
    with pytest.raises(pymysql.err.IntegrityError):
        run(cursor, "insert_delay")


def test_cancel(cursor, task):
    task(task_key="order-17", route="orders.cancel", delay_ms=1_800_000)
    task(task_key="order-18", route="orders.cancel")
    assert run(cursor, "cancel")[1] == 1
    assert one(cursor, "SELECT GROUP_CONCAT(task_key) FROM outbox") == "order-18"
    assert run(cursor, "cancel")[1] == 0


def test_cancel_leaves_a_claimed_row(cursor, task):
    task(task_key="order-17", route="orders.cancel", state="claimed", lease_until="2030-01-01")
    assert run(cursor, "cancel")[1] == 0
    assert run(cursor, "cancel_kept")[1] == 0
    assert run(cursor, "reschedule")[1] == 0
    assert one(cursor, "SELECT COUNT(*) FROM outbox_history") == 0


def test_cancel_kept(cursor, task):
    task(task_key="order-17", route="orders.cancel", payload=b'{"order": 17}', delay_ms=1_800_000)
    due = one(cursor, "SELECT next_at FROM outbox")
    assert run(cursor, "cancel_kept")[1] == 1
    assert one(cursor, "SELECT COUNT(*) FROM outbox") == 0
    assert one(cursor, "SELECT state, due_at, payload, TIMESTAMPDIFF(DAY, finished_at, keep_until) FROM outbox_history") == (
        "cancelled", due, b'{"order": 17}', 30)


def test_cancel_kept_in_a_careful_session(cursor, task):
    """A client that refuses a DELETE without a key (Workbench, `mariadb -U`), and goes on after an error, leaves no task
    that is in the history as cancelled and goes out all the same."""
    for key in ("order-17", "order-17", "other"):
        task(task_key=key, route="orders.cancel", delay_ms=1_800_000)
    cursor.execute("SET SESSION sql_safe_updates = 1")
    try:
        assert run(cursor, "cancel_kept")[1] == 2
    finally:
        cursor.execute("SET SESSION sql_safe_updates = 0")
    assert one(cursor, "SELECT GROUP_CONCAT(task_key) FROM outbox") == "other"
    assert one(cursor, "SELECT COUNT(*) FROM outbox_history WHERE state = 'cancelled'") == 2


def test_reschedule(cursor, task):
    """A task whose time is put off does not leave at the old one, whichever client wrote it."""
    task(task_key="order-17", route="orders.cancel", delay_ms=1_800_000)
    for minutes in (40, 50):
        assert run(cursor, "reschedule")[1] == 1
        assert one(cursor, "SELECT TIMESTAMPDIFF(MINUTE, created_at, due_at), next_at = due_at FROM outbox") == (minutes, 1)


def test_a_time_is_put_off_without_naming_the_delay(cursor):
    """What applications write for rows of their own, that have no NULL."""
    insert(cursor, delay_ms=1_800_000)
    cursor.execute("UPDATE outbox SET due_at = due_at + INTERVAL 10 MINUTE")
    assert one(cursor, "SELECT TIMESTAMPDIFF(MINUTE, created_at, next_at) FROM outbox") == 40


def test_bulk_change(cursor, task):
    """All that is due in the outage leaves after it, whichever client wrote it."""
    soon, later = task(route="crm.push", delay_ms=60_000), task(route="crm.push", delay_ms=7_200_000)
    task(route="other")
    assert run(cursor, "bulk_change")[1] == 1
    cursor.execute(statements((SQL / "examples" / "bulk_change.sql").read_text())[-1])
    assert cursor.rowcount == 0     # repeated, it ends
    assert one(cursor, "SELECT ROUND(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), next_at) / 3600), priority, max_attempts,"
                       " TIMESTAMPDIFF(SECOND, created_at, first_due_at) FROM outbox WHERE id = %s", soon) == (1, 8, 20, 60)
    assert one(cursor, "SELECT priority FROM outbox WHERE id = %s", later) == 5


def test_bind(cursor, task):
    task(task_key="report-9")
    assert run(cursor, "bind")[1] == 1
    assert one(cursor, "SELECT move_to_host, target_host, shard < 63 FROM outbox") == ("worker-3", "", 1)


def test_retry(cursor):
    dead = finish(cursor, "dead", route="crm.push", message_id="m", task_key="k", dedup_key="d")
    cursor.execute("UPDATE outbox_history SET error_class = 'result.timeout'")
    finish(cursor, "done", route="crm.push")
    finish(cursor, "dead", route="other")
    assert run(cursor, "retry")[1] == 1
    assert one(cursor, "SELECT id, message_id, state, attempt, failures, task_key, dedup_key,"
                       " due_at <= UTC_TIMESTAMP(6) FROM outbox") == (dead, "m", "scheduled", 3, 0, "k", "d", 1)
    # Nobody has changed it since it was sent last: a late success of that attempt still counts.
    assert one(cursor, "SELECT changed_at = created_at - INTERVAL 1 MICROSECOND FROM outbox") == 1
    assert one(cursor, "SELECT COUNT(*) FROM outbox_history") == 2
    # Of one that died otherwise nobody knows: what came to its consumer before may have been another content.
    finish(cursor, "dead", route="crm.push", message_id="n")
    run(cursor, "retry")
    assert one(cursor, "SELECT changed_at > created_at FROM outbox WHERE message_id = 'n'") == 1


def test_a_retry_keeps_the_time_after_which_nothing_is_sent(cursor):
    for expires_at in ("2199-01-01", "2020-01-01"):
        finish(cursor, "dead", route="crm.push", message_id=expires_at, expires_at=expires_at)
    run(cursor, "retry")
    cursor.execute("SELECT message_id, DATE(expires_at) = '2199-01-01' FROM outbox ORDER BY message_id")
    assert cursor.fetchall() == (("2020-01-01", None), ("2199-01-01", 1))


def test_a_retry_ends_beside_living_tasks(cursor):
    """Tasks whose dedup_key or message_id lives stay dead, and keep no others from coming back. (One of them made the batch
    fail with error 1062, each time.)"""
    for number, keys in enumerate(({"dedup_key": "lives"}, {"message_id": "living"}, {"dedup_key": "both"},
                                   {"dedup_key": "both"}, {})):
        finish(cursor, "dead", **{"route": "crm.push", "message_id": f"m{number}", **keys})
    insert(cursor, dedup_key="lives", message_id="living")
    for _ in range(2):
        run(cursor, "retry")
        assert one(cursor, "SELECT GROUP_CONCAT(message_id ORDER BY message_id) FROM outbox") == "living,m2,m4"
        assert one(cursor, "SELECT GROUP_CONCAT(message_id ORDER BY message_id) FROM outbox_history") == "living,m0,m3"


def test_a_retry_in_a_careful_session(cursor):
    """sql_safe_updates refuses no statement of it. (MariaDB refused the DELETE, and who went on with the COMMIT had the
    tasks in both tables.)"""
    finish(cursor, "dead", route="crm.push")
    cursor.execute("SET SESSION sql_safe_updates = 1")
    try:
        run(cursor, "retry")
    finally:
        cursor.execute("SET SESSION sql_safe_updates = 0")
    assert one(cursor, "SELECT COUNT(*) FROM outbox_history") == 0
    assert one(cursor, "SELECT COUNT(*) FROM outbox") == 1


def test_a_retry_that_is_refused_loses_nothing(cursor):
    """A client that goes on after the error, as `mariadb --force` does, deletes nothing that has not come back."""
    finish(cursor, "dead", route="crm.push", dedup_key="d")
    insert(cursor, dedup_key="d")
    for statement in statements((SQL / "examples" / "retry.sql").read_text()):
        try:
            cursor.execute(statement)
        except pymysql.err.IntegrityError as error:
            assert error.args[0] == DUPLICATE
    assert one(cursor, "SELECT COUNT(*) FROM outbox_history") == 1


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("example, columns, before, between", [
    ("retry", {"route": "crm.push"}, "die", "die"),
    ("cancel_kept", {"route": "orders.cancel", "task_key": "order-17"}, None, "appear")], ids=["retry", "cancel_kept"])
def test_what_was_not_copied_is_not_deleted(connect, cursor, level, example, columns, before, between):
    """A task that meets the condition only after the copy was made is in neither table twice, and not gone from both."""
    if before == "die":
        finish(cursor, "dead", message_id="first", **columns)
    else:
        insert(cursor, message_id="first", **columns)
    cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    with connect() as connection, connection.cursor() as other:
        other.execute("SET innodb_lock_wait_timeout = 1")
        late = insert(other, message_id="second", delay_ms=60_000, **columns) if between == "die" else None
        for statement in statements((SQL / "examples" / f"{example}.sql").read_text()):
            cursor.execute(statement)
            if statement.startswith("INSERT"):
                met = meet(connection, other, late, columns)    # else the server made it wait until all is over
    left = one(cursor, "SELECT (SELECT COUNT(*) FROM outbox WHERE message_id = 'second'),"
                       " (SELECT COUNT(*) FROM outbox_history WHERE message_id = 'second')")
    assert left == {(True, "die"): (0, 1), (True, "appear"): (1, 0), (False, "die"): (1, 0)}.get((met, between), (0, 0))
    assert one(cursor, "SELECT (SELECT COUNT(*) FROM outbox WHERE message_id = 'first'),"
                       " (SELECT COUNT(*) FROM outbox_history WHERE message_id = 'first')") == (
        (1, 0) if example == "retry" else (0, 1))


def meet(connection, other, late, columns):
    """In a transaction of the other session: the late task dies, or comes. Whether the server let it."""
    connection.begin()
    try:
        if late is None:
            insert(other, message_id="second", **columns)
        else:
            other.execute("INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority,"
                          " order_key, target_host, shard, created_at, state, attempt, failures, recoveries, finished_at,"
                          " keep_until) SELECT id, message_id, route, payload, headers, task_key, due_at, priority,"
                          " order_key, target_host, shard, created_at, 'dead', 3, 3, 0, UTC_TIMESTAMP(6),"
                          " UTC_TIMESTAMP(6) + INTERVAL 1 DAY FROM outbox WHERE id = %s", (late,))
            other.execute("DELETE FROM outbox WHERE id = %s", (late,))
        connection.commit()
        return True
    except pymysql.err.OperationalError as error:
        assert error.args[0] == LOCKED, error
        connection.rollback()
        return False


def test_status(cursor, task):
    finish(cursor, "done", task_key="order-17", due_at="2026-01-01")
    task(task_key="order-17", delay_ms=60_000)
    task(task_key="order-18")
    rows, _ = run(cursor, "status")
    assert [row[2] for row in rows] == ["done", "scheduled"]
    assert rows[1][4] == rows[1][5] is not None     # asked for at, next at


def test_counts(cursor, task):
    task(route="a")
    task(route="a", delay_ms=3_600_000)
    task(route="b", state="held")
    assert [row[:4] for row in run(cursor, "counts")[0]] == [("a", "scheduled", 2, 1), ("b", "held", 1, 1)]


def test_lateness(cursor):
    for late_ms in range(1, 101):
        finish(cursor, "done", route="a", late_ms=late_ms)
    finish(cursor, "done", route="b", late_ms=7)
    rows = [tuple(float(value) for value in row[1:]) for row in run(cursor, "lateness")[0]]
    assert rows == [(100, 1, 50, 99, 100), (1, 7, 7, 7, 7)]


def test_statistics(cursor):
    finish(cursor, "done", route="a")
    finish(cursor, "dead", route="a")
    finish(cursor, "dead", route="b")     # keeps its failures only: nothing says how many succeeded
    rows, _ = run(cursor, "statistics")
    assert rows[0][:2] == ("a", 2) and float(rows[0][2]) == 0.5 and float(rows[0][4]) == 3
    assert rows[1][:3] == ("b", 1, None)


def test_attempts(cursor):
    for attempt in (1, 2):
        cursor.execute("INSERT INTO outbox_attempts (message_id, attempt, kind, outcome, task_id, route, due_at,"
                       " finished_at) VALUES ('d2f5b6de-63b4-11ef-9c7e-0242ac120002', %s, 'failure', 'retry', 1, 'r',"
                       " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))", (attempt,))
    assert [row[:3] for row in run(cursor, "attempts")[0]] == [(1, "failure", "retry"), (2, "failure", "retry")]


def test_every_example_has_its_test():
    here = "".join((Path(__file__).parent / name).read_text() for name in ("test_examples.py", "test_schema.py"))
    for file in (SQL / "examples").glob("*.sql"):
        assert f'"{file.stem}"' in here or f'"{file.name}"' in here, file.name


# -- the word DEFAULT -------------------------------------------------------------


@pytest.mark.parametrize("insertion", ["(route, payload, due_at, delay_ms) VALUES ('r', 'x', DEFAULT, 1800000)",
                                       "(route, payload, due_at, delay_ms) VALUES ('r', 'x', NULL, 5), ('r', 'x', DEFAULT, 5)",
                                       "SET due_at = DEFAULT, route = 'r', payload = 'x', delay_ms = 1800000"])
def test_a_default_due_time_that_misses_the_delay_is_refused_by_name(cursor, insertion):
    """A mapper that writes DEFAULT for due_at before delay_ms would make its task leave at once, early by the whole delay,
    and nobody would hear of it."""
    for verb in ("INSERT", "REPLACE"):
        with pytest.raises(pymysql.err.MySQLError) as refused:
            cursor.execute(f"{verb} INTO outbox {insertion}")
        assert refused.value.args[0] in REFUSED and "outbox_due_at_default" in refused.value.args[1]
    assert one(cursor, "SELECT COUNT(*) FROM outbox") == 0


@pytest.mark.parametrize("columns, values, wait_ms", [
    ("delay_ms, due_at", "1800000, DEFAULT", 1_800_000), ("due_at, delay_ms", "NULL, 1800000", 1_800_000),
    ("due_at, delay_ms", "DEFAULT, DEFAULT", 0), ("due_at, delay_ms", "DEFAULT, 0", 0),
    ("due_at, delay_ms, created_at", "'2031-01-01', 5, '2030-12-31'", 86_400_000)])
def test_a_due_time_that_heeds_the_delay_or_stands_by_itself_is_taken(cursor, columns, values, wait_ms):
    cursor.execute(f"INSERT INTO outbox (route, payload, {columns}) VALUES ('r', 'x', {values})")
    assert one(cursor, "SELECT TIMESTAMPDIFF(MICROSECOND, created_at, next_at) / 1000 FROM outbox") == wait_ms


def test_a_task_with_a_delay_may_be_made_due_now(cursor):
    """The rule is for what an INSERT makes of DEFAULT: it is in nobody's way who changes the time."""
    row = insert(cursor, delay_ms=1_800_000)
    for now in ("UTC_TIMESTAMP(6)", "created_at + INTERVAL 1 MICROSECOND"):
        assert cursor.execute(f"UPDATE outbox SET due_at = {now} WHERE id = {row}") == 1


@pytest.mark.parametrize("columns, values", [("shard, order_key", "DEFAULT, 'k'"), ("shard, message_id", "DEFAULT, 'm'"),
                                             ("shard, order_key, message_id", "DEFAULT, 'k', 'm'"), ("shard", "DEFAULT")])
def test_a_default_shard_that_misses_its_columns_is_refused(cursor, columns, values):
    """Else tasks of one order_key would be in two shards, with nothing that keeps their order."""
    with pytest.raises(pymysql.err.MySQLError) as refused:
        cursor.execute(f"INSERT INTO outbox (route, payload, {columns}) VALUES ('r', 'x', {values})")
    assert refused.value.args[0] in REFUSED and "outbox_shard" in refused.value.args[1]


@pytest.mark.parametrize("columns, values", [("order_key", "'k'"), ("order_key, shard", "'k', DEFAULT"),
                                             ("message_id, order_key, shard", "DEFAULT, 'k', DEFAULT")])
def test_a_default_shard_after_its_columns_is_that_of_the_key(cursor, columns, values):
    cursor.execute(f"INSERT INTO outbox (route, payload, {columns}) VALUES ('r', 'x', {values})")
    assert one(cursor, f"SELECT shard = CRC32('k') MOD {SHARDS} FROM outbox") == 1


def test_a_trigger_makes_no_task_early(cursor):
    """MySQL computes defaults before the columns where a table has a BEFORE INSERT trigger: refused, not early."""
    cursor.execute("CREATE TRIGGER before_insert BEFORE INSERT ON outbox FOR EACH ROW SET @seen = 1")
    try:
        insert(cursor, due_at=None, delay_ms=1_800_000)
        try:
            insert(cursor, delay_ms=1_800_000)
        except pymysql.err.MySQLError as error:
            assert error.args[0] in REFUSED and "outbox_due_at_default" in error.args[1]
        assert one(cursor, "SELECT MIN(TIMESTAMPDIFF(MINUTE, created_at, next_at)) FROM outbox") == 30
    finally:
        cursor.execute("DROP TRIGGER before_insert")


# -- statements in pages --------------------------------------------------------------------------

VERBS = r"(?:SELECT|INSERT|UPDATE|DELETE|ALTER)\b"


def of_page(text):
    """The statements that a page shows: in blocks of SQL, as indented lines, and within sentences."""
    for block in re.findall(r"^```sql\n(.*?)^```", text, re.M | re.S):
        yield from statements(re.sub(r"\s+-- .*$", "", block, flags=re.M))
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for found in (*re.findall(rf"^    ({VERBS}.*)$", prose, re.M), *re.findall(rf"`({VERBS}[^`]*)`", prose)):
        statement = " ".join(found.split()).rstrip(";")
        if re.search(r"\boutbox", statement) and ".." not in statement:
            yield statement


def test_statements_in_pages_run_as_they_are(cursor):
    """People copy them."""
    top = SQL.parent
    pages = [top / "README.md", SQL / "README.md", *sorted((top / "docs").glob("*.md")), *sorted(top.glob("plugins/*/README.md"))]
    found = [(page.name, statement) for page in pages for statement in of_page(page.read_text())]
    assert {"README.md", "CLIENTS.md", "CONSUMERS.md", "OPERATIONS.md"} <= {name for name, _ in found}, found
    for name, statement in found:
        partition = re.search(r"(\w+) DROP PARTITION (\w+)", statement)
        if partition:
            cursor.execute(f"ALTER TABLE {partition[1]} REORGANIZE PARTITION p_later INTO (PARTITION {partition[2]} "
                           "VALUES LESS THAN ('2001-01-01'), PARTITION p_later VALUES LESS THAN (MAXVALUE))")
        try:
            cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            raise AssertionError(f"{name}: {statement}: {error}") from error
