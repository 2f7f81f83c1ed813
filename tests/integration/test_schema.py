"""The table as a contract: what applications may insert and what is refused whatever
their sql_mode is, and the users of sql/examples/grants.sql. test_examples.py runs the examples.
"""

import re
import uuid
from datetime import datetime, timezone

import pymysql
import pytest

from support.servers import REPOSITORY

SQL = REPOSITORY / "sql"
SHARDS = 8
CHECK_FAILED = 4025
LENIENT = ""


SCHEMA = sorted((SQL / "schema").glob("*.sql"))


def install(connection, files=SCHEMA):
    """The schema, in the connection's database, as `duebox migrate` makes it."""
    rows = ",".join(f"({shard})" for shard in range(SHARDS))
    with connection.cursor() as cursor:
        for file in files:
            text = file.read_text()
            for name, value in {"table": "outbox", "shards": str(SHARDS), "shard_rows": rows}.items():
                text = text.replace("{" + name + "}", value)
            for statement in statements(text):
                cursor.execute(statement)


def statements(text):
    """The statements of a file: each ends with a semicolon at the end of a line."""
    text = re.sub(r"^\s*--.*\n", "", text, flags=re.M)
    return [part.strip() for part in re.split(r";$", text, flags=re.M) if part.strip()]


@pytest.fixture(scope="module")
def database(mariadb):
    name = mariadb.create_database("schema_contract")
    with mariadb.connect(name) as connection:
        install(connection)
    return name


@pytest.fixture
def cursor(mariadb, database):
    """Strict, UTC, on empty tables."""
    with mariadb.connect(database, init_command="SET time_zone = '+00:00', sql_mode = 'TRADITIONAL'") as connection:
        with connection.cursor() as it:
            for table in ("outbox", "outbox_history", "outbox_attempts"):
                it.execute(f"DELETE FROM {table}")
            yield it


def one(cursor, statement, *values):
    cursor.execute(statement, values or None)
    row = cursor.fetchone()
    return row[0] if row and len(row) == 1 else row


def insert(cursor, **columns):
    columns = {"route": "r", "payload": b"x", **columns}
    marks = ", ".join(["%s"] * len(columns))
    cursor.execute(f"INSERT INTO outbox ({', '.join(columns)}) VALUES ({marks})", list(columns.values()))
    return cursor.lastrowid


def run(cursor, name):
    """Run an example; returns the rows of its last statement that gives any, and the rows changed by the last."""
    rows, changed = (), 0
    for statement in statements((SQL / "examples" / f"{name}.sql").read_text()):
        cursor.execute(statement)
        if cursor.description:
            rows = cursor.fetchall()
        elif not re.match("COMMIT|START", statement):
            changed = cursor.rowcount
    return rows, changed


# -- what an application gets without asking ------------------------------------


def test_shortest_insert(cursor):
    cursor.execute("INSERT INTO outbox (route, payload) VALUES ('orders.cancel', '{\"order\":17}')")
    assert one(cursor, "SELECT state, attempt, failures, priority, headers, task_key, delay_ms, next_at = due_at,"
                       " due_at = created_at, max_attempts, expires_at, dedup_key FROM outbox") == (
        "scheduled", 0, 0, 5, "{}", "", 0, 1, 1, None, None, None)
    late = one(cursor, "SELECT TIMESTAMPDIFF(MICROSECOND, due_at, UTC_TIMESTAMP(6)) FROM outbox")
    assert 0 <= late < 60_000_000


def test_every_row_has_its_own_message_id_and_the_shards_are_all_used(cursor):
    cursor.execute("INSERT INTO outbox (route, payload) SELECT 'r', 'x' FROM seq_1_to_2000")
    assert one(cursor, "SELECT COUNT(DISTINCT message_id) FROM outbox") == 2000
    cursor.execute("SELECT shard, COUNT(*) FROM outbox GROUP BY shard ORDER BY shard")
    rows = cursor.fetchall()
    assert [shard for shard, _ in rows] == list(range(SHARDS))
    assert all(150 < count < 350 for _, count in rows), rows


def test_a_delay_counts_from_the_insert(cursor):
    insert(cursor, delay_ms=1_800_000)
    assert one(cursor, "SELECT TIMESTAMPDIFF(MICROSECOND, created_at, due_at) FROM outbox") == 1_800_000_000


def test_a_due_time_is_utc_in_any_session(cursor):
    cursor.execute("SET time_zone = '+09:00'")
    insert(cursor)
    assert abs(one(cursor, "SELECT TIMESTAMPDIFF(SECOND, due_at, UTC_TIMESTAMP(6)) FROM outbox")) < 60


@pytest.mark.parametrize("key", ["customer-3", " "])    # a blank is a key, though the server compares it as equal to ''
def test_one_order_key_is_one_shard(cursor, key):
    for _ in range(20):
        insert(cursor, order_key=key)
    assert one(cursor, "SELECT COUNT(DISTINCT shard) FROM outbox") == 1


def test_a_shard_may_be_chosen(cursor):
    insert(cursor, shard=3)
    assert one(cursor, "SELECT shard FROM outbox") == 3


def test_a_task_for_a_host_is_in_the_shard_of_those(cursor):
    insert(cursor, target_host="worker-3")
    assert one(cursor, "SELECT shard FROM outbox") == 63


def test_dedup_key_is_unique_among_the_living(cursor):
    insert(cursor, dedup_key="d")
    with pytest.raises(pymysql.err.IntegrityError) as refused:
        insert(cursor, dedup_key="d")
    assert refused.value.args[0] == 1062
    assert cursor.execute("INSERT IGNORE INTO outbox (route, payload, dedup_key) VALUES ('r', '', 'd')") == 0
    cursor.execute("DELETE FROM outbox")
    insert(cursor, dedup_key="d")
    insert(cursor)
    insert(cursor)      # NULLs do not collide


@pytest.mark.parametrize("size", [0, 1, 256, 1 << 20])
def test_payload_bytes(cursor, size):
    payload = (bytes(range(256)) * (size // 256 + 1))[:size]
    insert(cursor, payload=payload)
    assert one(cursor, "SELECT payload FROM outbox") == payload


@pytest.mark.parametrize("sql_mode", [LENIENT, "TRADITIONAL"], ids=["lenient", "strict"])
def test_an_explicit_null_is_the_default_due_time(cursor, sql_mode):
    """ORMs write every column of a row, NULL where they know of no value."""
    cursor.execute("SET sql_mode = %s", (sql_mode,))
    insert(cursor, due_at=None)
    insert(cursor, due_at=None, delay_ms=5000)
    cursor.execute("INSERT INTO outbox (route, payload, due_at, delay_ms) VALUES ('r', 'x', NULL, 0), ('r', 'x', NULL, 1)")
    cursor.execute("SELECT TIMESTAMPDIFF(MICROSECOND, created_at, next_at) FROM outbox ORDER BY id")
    assert [row[0] for row in cursor.fetchall()] == [0, 5_000_000, 0, 1000]


def test_dedup_keys_that_differ_by_a_space_at_the_end_are_different(cursor):
    """Else INSERT IGNORE of the second task would silently lose it."""
    insert(cursor, dedup_key="d")
    assert cursor.execute("INSERT IGNORE INTO outbox (route, payload, dedup_key) VALUES ('r', '', 'd ')") == 1


@pytest.mark.parametrize("zone", ["+00:00", "+13:00", "-11:00"])
def test_a_message_id_is_a_random_uuid_in_the_order_of_time(cursor, zone):
    """Nobody can guess a neighbour's: all but the time is random. The time is UTC in any session."""
    cursor.execute("SET time_zone = %s", (zone,))
    cursor.execute("INSERT INTO outbox (route, payload) SELECT 'r', 'x' FROM seq_1_to_5000")
    cursor.execute("SELECT message_id, created_at FROM outbox")
    ids = []
    for text, created in cursor.fetchall():
        assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", text), text
        at = datetime.fromtimestamp((uuid.UUID(text).int >> 80) / 1000, timezone.utc).replace(tzinfo=None)
        assert abs((at - created).total_seconds()) < 0.002
        ids.append(uuid.UUID(text).int)
    random_bits = [bit for bit in range(76) if bit not in (62, 63)]
    for bit in random_bits:
        assert 2000 < sum(one >> bit & 1 for one in ids) < 3000, bit


COLLATIONS = ["utf8mb4_general_ci", "utf8mb3_general_ci", "latin1_swedish_ci", "ascii_bin", "binary", "gbk_chinese_ci",
              "sjis_japanese_ci", "swe7_swedish_ci", "ucs2_general_ci", "utf16_general_ci", "utf32_general_ci"]


@pytest.mark.parametrize("collation", COLLATIONS)
def test_message_ids_are_new_whoever_opened_the_table(mariadb, database, cursor, collation):
    """A server reads the default of a column in the character set of the session that opens the table, for all sessions.
    What it takes for a constant there would be the id of every task."""
    cursor.execute("FLUSH TABLES outbox")
    with mariadb.connect(database) as opener, opener.cursor() as first:
        first.execute(f"SET collation_connection = {collation}")
        first.execute("SELECT COUNT(*) FROM outbox")
        for _ in range(3):
            first.execute("INSERT INTO outbox (route, payload) VALUES ('r', 'x'), ('r', 'y')")
            cursor.execute("INSERT INTO outbox (route, payload) SELECT 'r', 'x' FROM seq_1_to_100")
            cursor.execute("DO SLEEP(0.002)")
    cursor.execute("SELECT message_id FROM outbox")
    ids = [text for text, in cursor.fetchall()]
    assert all(re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", text) for text in ids)
    assert len(ids) == 306 and len(set(ids)) == len({text[-20:] for text in ids}) == 306
    assert len({text[:13] for text in ids}) >= 3, "the time stands still"


def test_every_change_moves_changed_at(cursor):
    """It tells the daemon that a task was changed while a copy was on its way."""
    row = insert(cursor, delay_ms=60_000)
    before = one(cursor, "SELECT changed_at FROM outbox")
    cursor.execute("UPDATE outbox SET priority = 9 WHERE id = %s", (row,))
    changed = one(cursor, "SELECT changed_at FROM outbox")
    assert changed > before
    cursor.execute("UPDATE outbox SET priority = 8, changed_at = changed_at WHERE id = %s", (row,))
    assert one(cursor, "SELECT changed_at FROM outbox") == changed


# -- what is refused, strict or not ----------------------------------------------

BAD = {
    "no route": {"route": ""},
    "space in route": {"route": "a b"},
    "NUL in route": {"route": "a\0b"},
    "route of 65 characters": {"route": "r" * 65},
    "route of 300 characters": {"route": "r" * 300},
    "empty message id": {"message_id": ""},
    "message id of 65 characters": {"message_id": "m" * 65},
    "message id of 300 characters": {"message_id": "m" * 300},
    "line feed in message id": {"message_id": "a\nb"},
    "NUL in message id": {"message_id": "a\0"},
    "year 9999": {"due_at": "9999-12-31 23:59:59"},
    "year 1": {"due_at": "0001-01-01"},
    "zero date": {"due_at": "0000-00-00"},
    "no date": {"due_at": "soon"},
    "negative delay": {"delay_ms": -1},
    "delay of eleven years": {"delay_ms": 11 * 366 * 86_400_000},
    "priority 77": {"priority": 77},
    "priority 0": {"priority": 0},
    "empty dedup key": {"dedup_key": ""},
    "dedup key of 300 characters": {"dedup_key": "d" * 300},
    "order key of 300 characters": {"order_key": "o" * 300},
    "task key of 300 characters": {"task_key": "k" * 300},
    "host of 300 characters": {"target_host": "h" * 300},
    "no attempt": {"max_attempts": 0},
    "no time": {"timeout_ms": 0},
    "expires in year 9999": {"expires_at": "9999-12-31"},
    "shard that is not there": {"shard": SHARDS},
    "host without its shard": {"target_host": "h", "shard": 0},
    "shard of hosts without a host": {"shard": 63},
    "unknown state": {"state": "running"},
    "final state": {"state": "done"},
    "claim that never ends": {"state": "claimed"},
    "finished and alive": {"finished_at": "2020-01-01"},
    "lease until no date": {"lease_until": "0000-00-00"},
    "claimed until no date": {"state": "claimed", "lease_until": "0000-00-00"},
    "claimed until year 9999": {"state": "claimed", "lease_until": "9999-12-31"},
    "first due at no date": {"first_due_at": "0000-00-00"},
    "published at no date": {"published_at": "0000-00-00"},
    "created at no date": {"created_at": "0000-00-00"},
    "attempt without end": {"attempt": 4294967295},
    "failures without end": {"failures": 4294967295},
    "recoveries without end": {"recoveries": 4294967295},
    "move to no shard": {"move_to_shard": SHARDS},
    "move to a host of 300 characters": {"move_to_host": "h" * 300},
}


@pytest.mark.parametrize("sql_mode", [LENIENT, "TRADITIONAL"], ids=["lenient", "strict"])
@pytest.mark.parametrize("columns", BAD.values(), ids=BAD.keys())
def test_refused(cursor, columns, sql_mode):
    cursor.execute("SET sql_mode = %s", (sql_mode,))
    with pytest.raises(pymysql.err.MySQLError) as refused:
        insert(cursor, **columns)
    if sql_mode == LENIENT:
        assert refused.value.args[0] == CHECK_FAILED, refused.value
    assert one(cursor, "SELECT COUNT(*) FROM outbox") == 0


NOT_STRICT_ABOUT_ZEROS = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"


@pytest.mark.parametrize("sql_mode", [NOT_STRICT_ABOUT_ZEROS, "STRICT_ALL_TABLES,ALLOW_INVALID_DATES", LENIENT,
                                      "ALLOW_INVALID_DATES", "TRADITIONAL"])
@pytest.mark.parametrize("column", ["due_at", "expires_at", "first_due_at"])
def test_a_time_that_is_in_no_calendar_is_refused(cursor, column, sql_mode):
    """MariaDB's own default is the first. It makes 2008-00-00 of a time without a date; such a task, and one that is due on
    the 31st of February, could not be sent."""
    cursor.execute("SET sql_mode = %s", (sql_mode,))
    bad = ("08:00:00", "2008-00-00", "2030-00-15 01:02:03.4", "2030-12-00", "2199-00-00", "0000-00-00", "2030-02-31",
           "2030-02-29", "2030-04-31 10:00:00")
    for value in bad:
        with pytest.raises(pymysql.err.MySQLError):
            insert(cursor, **{column: value})
    insert(cursor)
    for value in bad:
        with pytest.raises(pymysql.err.MySQLError):
            cursor.execute(f"UPDATE outbox SET {column} = %s", (value,))
    for value in ("2000-01-01", "2028-02-29 23:59:59.999999", "2199-12-31 23:59:59.999999", None):
        insert(cursor, **{column: value})
    assert one(cursor, "SELECT COUNT(*) FROM outbox") == 5


@pytest.mark.parametrize("column", ["message_id", "route"])
def test_null_in_a_multi_row_insert_is_refused_by_a_lenient_session(cursor, column):
    """There NULL silently becomes '0000-00-00' or ''."""
    cursor.execute("SET sql_mode = ''")
    with pytest.raises(pymysql.err.MySQLError) as refused:
        columns = "route, payload" if column == "route" else f"route, payload, {column}"
        values = "(NULL, 'x'), ('r', 'x')" if column == "route" else f"('r', 'x', NULL), ('r', 'x', DEFAULT({column}))"
        cursor.execute(f"INSERT INTO outbox ({columns}) VALUES {values}")
    assert refused.value.args[0] == CHECK_FAILED, refused.value


@pytest.mark.parametrize("column", ["route", "payload", "priority", "state", "shard"])
def test_null_is_refused(cursor, column):
    with pytest.raises(pymysql.err.MySQLError):
        insert(cursor, **{column: None})


# -- users ------------------------------------------------------------------------


def run_for(connection, database, name):
    """Run users.sql or grants.sql for another database than `shop`."""
    with connection.cursor() as cursor:
        for statement in statements((SQL / "examples" / f"{name}.sql").read_text()):
            cursor.execute(statement.replace("`shop`", f"`{database}`"))


@pytest.fixture(scope="module")
def users(mariadb, database):
    with mariadb.connect() as connection:
        run_for(connection, database, "users")
        run_for(connection, database, "grants")


@pytest.fixture
def login(mariadb, database, users, cursor):
    """login(user) is a cursor of one of the users, on empty tables."""
    connections = []

    def connect(user):
        password = {"duebox": "duebox-password", "duebox_operator": "operator-password"}.get(user, "app-password")
        connections.append(mariadb.connect(database, user=user, password=password, host="127.0.0.1"))
        return connections[-1].cursor()
    yield connect
    for connection in connections:
        connection.close()


def test_users_and_grants_run_in_their_order_and_again_without_an_error(mariadb):
    """Setting duebox up takes no statement that is expected to fail: users, migrate, grants, and all of it again."""
    name = mariadb.create_database("schema_grants")
    with mariadb.connect(name) as connection:
        run_for(connection, name, "users")
        install(connection)
        for example in ("grants", "users", "grants"):
            run_for(connection, name, example)


INSERTS = ["INSERT INTO outbox (route, payload, delay_ms, dedup_key) VALUES ('r', 'x', 5, 'd')",
           "INSERT IGNORE INTO outbox (route, payload, dedup_key) VALUES ('r', 'x', 'd')",
           "INSERT INTO outbox (route, payload, target_host) VALUES ('r', 'x', 'h')",
           "INSERT INTO outbox (route, payload, shard) VALUES ('r', 'x', 1)"]
NEVER = ["INSERT INTO outbox (route, payload, state) VALUES ('r', 'x', 'held')",
         "INSERT INTO outbox (route, payload, attempt) VALUES ('r', 'x', 7)",
         "INSERT INTO outbox_routes (route) VALUES ('r')", "SELECT * FROM outbox_history",
         "UPDATE outbox SET shard = 3", "UPDATE outbox SET target_host = 'h'", "UPDATE outbox SET attempt = 0",
         "UPDATE outbox SET message_id = 'm'", "UPDATE outbox SET state = 'held'"]
READS = ["SELECT * FROM outbox", "SELECT state FROM outbox"]
CHANGES = ["UPDATE outbox SET priority = 1 WHERE state = 'scheduled'", "DELETE FROM outbox WHERE state = 'scheduled'"]
RETURNING = "INSERT INTO outbox (route, payload) VALUES ('r', 'x') RETURNING id"


@pytest.mark.parametrize("user, allowed, refused", [
    ("app", INSERTS, [*NEVER, *READS, *CHANGES, RETURNING]),
    ("app_orm", [*INSERTS, RETURNING, "SELECT MAX(id) FROM outbox"], [*NEVER, *READS, *CHANGES]),
    ("app_cancel", [*INSERTS, RETURNING, *READS, *CHANGES], NEVER)])
def test_each_role_of_an_application_may_do_its_part_and_no_more(login, user, allowed, refused):
    """An application can do all that its role says; it can never write what only duebox writes, and never move a living
    task to another shard or host behind the back of the daemon that holds it."""
    app = login(user)
    for statement in allowed:
        app.execute(statement)
    for statement in refused:
        with pytest.raises(pymysql.err.OperationalError) as error:
            app.execute(statement)
        assert error.value.args[0] in (1142, 1143), statement


@pytest.mark.parametrize("user, examples", [
    ("app", ["insert", "insert_delay", "insert_at"]),
    ("app_orm", ["insert", "insert_delay", "insert_at"]),
    ("app_cancel", ["insert", "insert_delay", "insert_at", "reschedule", "bulk_change", "cancel", "counts"]),
    ("duebox_operator", ["insert_delay", "reschedule", "cancel_kept", "bulk_change", "retry", "cancel", "status", "counts",
                         "lateness", "statistics", "attempts"])])
def test_examples_run_as_the_user_whose_part_they_are(login, user, examples):
    """Every statement of sql/examples works with the rights that sql/examples/grants.sql gives for it."""
    for example in examples:
        run(login(user), example)


def test_a_second_task_of_a_dedup_key_leaves_the_transaction_as_it_is(login):
    """How an application that may only insert is to do it: error 1062 says that there is one, and nothing else is undone.
    INSERT IGNORE would leave out with it what the table refuses, without an error; its warnings tell the two apart."""
    app = login("app")
    app.execute("START TRANSACTION")
    insert(app, payload=b"1", dedup_key="d")
    with pytest.raises(pymysql.err.IntegrityError) as refused:
        insert(app, payload=b"2", dedup_key="d")
    assert refused.value.args[0] == 1062 and "ux_dedup_key" in refused.value.args[1]
    insert(app, payload=b"3", dedup_key="e")
    app.execute("COMMIT")
    with pytest.raises(pymysql.err.OperationalError) as refused:
        app.execute("INSERT INTO outbox (route, payload, dedup_key) VALUES ('r', 'x', 'd') ON DUPLICATE KEY UPDATE id = id")
    assert refused.value.args[0] in (1142, 1143)
    assert app.execute("INSERT IGNORE INTO outbox (route, payload, dedup_key, priority) VALUES ('r', 'x', 'f', 5),"
                       " ('r', 'x', 'g', 10), ('r', 'x', 'd', 5)") == 1
    app.execute("SHOW WARNINGS")
    assert sorted(row[1] for row in app.fetchall()) == [1062, CHECK_FAILED]


def test_the_daemon_cannot_reach_beyond_its_tables(mariadb, database, users):
    with mariadb.connect(database, user="duebox", password="duebox-password", host="127.0.0.1") as connection:
        with connection.cursor() as daemon:
            for statement in ("DROP TABLE outbox", "TRUNCATE TABLE outbox", "ALTER TABLE outbox_shards ADD COLUMN x INT", "CREATE TABLE other (x INT)",
                              "SET GLOBAL read_only = 0", "SELECT * FROM mysql.user",
                              "DELETE FROM outbox_schema"):
                with pytest.raises(pymysql.err.MySQLError):
                    daemon.execute(statement)


# -- an upgrade -------------------------------------------------------------------

OF_EACH_KIND = """INSERT INTO outbox (id, message_id, route, payload, headers, task_key, due_at, priority, order_key,
  dedup_key, max_attempts, timeout_ms, expires_at, target_host, state, attempt, failures, lease_until, last_error) VALUES
  (1, 'm1', 'r', x'00ff', '{"a":"b"}', 'k', '2030-01-01 00:00:00.123456', 9, 'o', 'd', 3, 4, '2040-01-01', '', 'scheduled',
   2, 1, NULL, 'no'),
  (2, 'm2', 'r', '', '{}', '', '2030-01-01', 5, '', NULL, NULL, NULL, NULL, 'h', 'claimed', 1, 0, '2030-01-01', NULL),
  (3, 'm3', 'r', '', '{}', '', '2030-01-01', 5, '', 'e', NULL, NULL, NULL, '', 'awaiting', 1, 0, '2030-01-01', NULL),
  (4, 'm4', 'r', '', '{}', '', '2030-01-01', 5, '', NULL, NULL, NULL, NULL, '', 'held', 0, 0, NULL, NULL),
  (5, 'm5', 'r', '', '{}', '', '2030-01-01', 5, 'o', NULL, NULL, NULL, NULL, '', 'blocked', 0, 0, NULL, NULL)"""
OF_LENIENT_CLIENTS = """INSERT INTO outbox (id, message_id, route, payload, state, attempt, lease_until, first_due_at)
  VALUES (6, 'm6', 'r', 'x', 'claimed', 1, '0000-00-00', NULL), (7, 'm7', 'r', 'x', 'scheduled', 4294967295, NULL,
  '0000-00-00')"""
OF_A_DEFAULT_TOO_EARLY = "INSERT INTO outbox (id, message_id, route, payload, due_at, delay_ms) VALUES (8, 'm8', 'r', 'x', DEFAULT, 1800000)"
KEPT = """id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, max_attempts,
  timeout_ms, expires_at, target_host, shard, state, attempt, failures, next_at, last_error, created_at"""


def test_an_upgrade_keeps_every_living_row(mariadb):
    """Living rows of the schema before are there after the migration as they were, those that a lenient client wrote are
    put right and not in its way, and every documented INSERT works."""
    name = mariadb.create_database("schema_upgrade")
    with mariadb.connect(name, init_command="SET time_zone = '+00:00', sql_mode = 'TRADITIONAL'") as connection:
        install(connection, [file for file in SCHEMA if file.name < "0005"])
        with connection.cursor() as cursor:
            cursor.execute(OF_EACH_KIND)
            cursor.execute("SET sql_mode = ''")
            cursor.execute(OF_LENIENT_CLIENTS)
            cursor.execute("SET sql_mode = 'TRADITIONAL'")
            cursor.execute(OF_A_DEFAULT_TOO_EARLY)
            cursor.execute(f"SELECT {KEPT} FROM outbox WHERE id <= 5 ORDER BY id")
            before = cursor.fetchall()
            install(connection, [file for file in SCHEMA if file.name >= "0005"])
            cursor.execute(f"SELECT {KEPT} FROM outbox WHERE id <= 5 ORDER BY id")
            assert cursor.fetchall() == before and len(before) == 5
            cursor.execute("SELECT message_id, payload, state, lease_until IS NULL,"
                           " TIMESTAMPDIFF(MICROSECOND, created_at, due_at) FROM outbox WHERE id > 5 ORDER BY id")
            assert cursor.fetchall() == (("m6", b"x", "claimed", 0, 0), ("m7", b"x", "scheduled", 1, 0),
                                         ("m8", b"x", "scheduled", 1, 1_800_000_000))
            for statement in INSERTS[2:]:
                cursor.execute(statement)
            for example in ("insert", "insert_delay", "insert_at"):
                run(cursor, example)
