"""Instant wake-up: rows are noticed as they commit, by the server's binlog, long before a look would find them.

Looks are POLL_S apart here.  What arrives within SOON_S was noticed by the binlog; what the binlog cannot tell is
found by looking all the same.
"""

import contextlib
import time

import pymysql
import pytest

from support.wait import wait_until

POLL_S = 50
SOON_S = 15     # far below POLL_S, and far above what a busy machine needs


@pytest.fixture
def quiet(stage):
    """A stage whose daemons look rarely."""
    stage.configuration["engine"] |= {"poll_min": f"{POLL_S}s", "poll_max": f"{POLL_S}s", "lease": "10s"}
    stage.http("h", claim="memory")
    return stage


def follow(stage, **changes):
    """A daemon that follows the binlog, and has made its first looks."""
    daemon = stage.start(**changes)
    daemon.wait_log("DUEBOX-BINLOG-ON")
    wait_until(lambda: daemon.metric("duebox_shards_held") > 1, 20, "the shards to be held")
    settle(stage)
    return daemon


def settle(stage):
    """Have one task through: by then the looks that belong to the start, or to a reconnect, are over."""
    before = len(stage.receiver.requests)
    stage.insert("h", b"first")
    stage.receiver.wait_count(before + 1, POLL_S * 2)
    stage.wait_empty(20, "route = 'h' AND due_at < UTC_TIMESTAMP(6)")


def assert_soon(stage, statement=None):
    """What the statement makes due arrives long before the next look; without one a new row is inserted."""
    before, started = len(stage.receiver.requests), time.monotonic()
    if statement:
        stage.execute(statement)
    else:
        stage.insert("h", b"soon")
    stage.receiver.wait_count(before + 1, SOON_S)
    assert time.monotonic() - started < SOON_S
    stage.wait_empty(20, "route = 'h' AND due_at < UTC_TIMESTAMP(6)")


# -- what is noticed ------------------------------------------------------------------------


def test_rows_are_noticed_as_they_commit(quiet):
    daemon = follow(quiet)
    for _ in range(5):
        assert_soon(quiet)
    assert daemon.metric("duebox_binlog_up") == 1 and daemon.metric("duebox_binlog_hints") >= 5


def test_a_row_that_is_due_in_a_moment_is_on_time(quiet):
    """Nobody looks between its insert and its due time."""
    follow(quiet)
    before, started = len(quiet.receiver.requests), time.monotonic()
    quiet.insert("h", b"in a second", delay_ms=1000)
    quiet.receiver.wait_count(before + 1, SOON_S)
    assert 1 <= time.monotonic() - started < SOON_S


def test_rescheduling_by_plain_sql_is_noticed(quiet):
    follow(quiet)
    quiet.insert("h", b"later", delay_ms=3600000)
    assert_soon(quiet, "UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE route = 'h'")


def test_a_row_that_comes_back_is_noticed(quiet):
    follow(quiet)
    quiet.execute("INSERT INTO outbox (route, payload, state) VALUES ('h', '{}', 'blocked')")
    assert_soon(quiet, "UPDATE outbox SET state = 'scheduled' WHERE state = 'blocked'")


def test_a_row_bound_to_this_host_is_noticed(quiet):
    daemon = follow(quiet)
    host = daemon.configuration["engine"]["instance"]
    assert_soon(quiet, f"INSERT INTO outbox (route, payload, target_host) VALUES ('h', '{{}}', '{host}')")


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_partial_row_images(quiet, image):
    """What an image lacks makes the hint a general one."""
    follow(quiet)
    for statement in ("INSERT INTO outbox (route, payload) VALUES ('h', '{}')",
                      "UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE route = 'h'"):
        if statement.startswith("UPDATE"):
            quiet.insert("h", b"later", delay_ms=3600000)
        before, started = len(quiet.receiver.requests), time.monotonic()
        with quiet.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION binlog_row_image = {image}")
            cursor.execute(statement)
        quiet.receiver.wait_count(before + 1, SOON_S)
        assert time.monotonic() - started < SOON_S
        quiet.wait_empty(20)


def test_statements_in_the_log(quiet):
    """An application's session may log statements, in MIXED and STATEMENT format."""
    follow(quiet)
    for form in ("MIXED", "STATEMENT"):
        before, started = len(quiet.receiver.requests), time.monotonic()
        with quiet.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION binlog_format = {form}")
            cursor.execute("INSERT INTO outbox (route, payload, message_id, shard) VALUES ('h', '{}', %s, 3)", (form,))
        quiet.receiver.wait_count(before + 1, SOON_S)
        assert time.monotonic() - started < SOON_S
        quiet.wait_empty(20)


def test_compressed_events(quiet):
    follow(quiet)
    quiet.execute("SET GLOBAL log_bin_compress = 1")
    try:
        before, started = len(quiet.receiver.requests), time.monotonic()
        quiet.execute("INSERT INTO outbox (route, payload) SELECT 'h', REPEAT('x', 2000) FROM seq_1_to_20")
        quiet.receiver.wait_count(before + 20, SOON_S)
        assert time.monotonic() - started < SOON_S
    finally:
        quiet.execute("SET GLOBAL log_bin_compress = 0")


def test_a_large_transaction(quiet):
    follow(quiet)
    quiet.execute("INSERT INTO outbox (route, payload, due_at)"
                  " SELECT 'h', REPEAT('x', 500), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR FROM seq_1_to_20000")
    assert_soon(quiet, "UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE due_at > UTC_TIMESTAMP(6) ORDER BY id LIMIT 1")


# -- what is no reason to look ---------------------------------------------------------------


def test_what_is_not_ours_costs_no_statement(quiet):
    """A table of the same name elsewhere, our own settling, rows of the far future, rows for other hosts."""
    daemon = follow(quiet)
    other = quiet.mariadb.create_database(f"{quiet.database}-other")
    quiet.execute(f"CREATE TABLE `{other}`.outbox LIKE outbox")
    quiet.insert("h", b"x")
    quiet.receiver.wait_count(2, SOON_S)
    quiet.wait_empty(20)
    read = daemon.metric("duebox_rows_read")
    hints = daemon.metric("duebox_binlog_hints")
    for _ in range(50):
        quiet.execute(f"INSERT INTO `{other}`.outbox (route, payload) VALUES ('h', '{{}}')")
        quiet.execute("INSERT INTO outbox (route, payload, target_host) VALUES ('h', '{}', 'elsewhere')")
    quiet.execute("DELETE FROM outbox WHERE target_host = 'elsewhere'")
    assert_soon(quiet)
    assert daemon.metric("duebox_binlog_hints") == hints + 1
    assert daemon.metric("duebox_rows_read") == read + 1
    quiet.execute(f"DROP DATABASE `{other}`")


# -- what it survives -------------------------------------------------------------------------


def test_rotated_and_purged_logs(quiet):
    follow(quiet)
    quiet.execute("FLUSH BINARY LOGS")
    assert_soon(quiet)
    quiet.execute("FLUSH BINARY LOGS")
    quiet.execute("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    assert_soon(quiet)


def followers(stage):
    """The ids of all threads of the server that send its binlog.  That of a daemon that has ended stays until the next
    event does not reach it."""
    return [id_ for id_, in stage.execute("SELECT id FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'")]


def test_a_killed_connection_comes_back(quiet):
    """What was inserted meanwhile is found by one look."""
    daemon = follow(quiet)
    for _ in range(3):
        mark = daemon.mark()
        for thread in wait_until(lambda: followers(quiet), 10, "the thread of the binlog"):
            with contextlib.suppress(pymysql.err.MySQLError):       # it has ended meanwhile
                quiet.execute(f"KILL {thread}")
        assert_soon(quiet)
        daemon.wait_log("DUEBOX-BINLOG-ON", after=mark)
    assert_soon(quiet)


def test_a_huge_row_of_a_stranger_costs_no_memory(quiet):
    """The log holds the rows of all databases of the server.  One that is far larger than any task is not read: the log
    is followed again from behind it, and what was inserted meanwhile is found by one look."""
    daemon = follow(quiet)
    mark = daemon.mark()
    other = quiet.mariadb.create_database(f"{quiet.database}-huge")
    quiet.execute(f"CREATE TABLE `{other}`.big (b LONGBLOB)")
    quiet.execute(f"INSERT INTO `{other}`.big VALUES (REPEAT('x', 40 << 20))")
    assert "larger than 16 MiB" in daemon.wait_log("DUEBOX-BINLOG-LOST", after=mark)["msg"]
    daemon.wait_log("DUEBOX-BINLOG-ON", after=mark)
    settle(quiet)
    mark = daemon.mark()
    quiet.execute(f"INSERT INTO `{other}`.big VALUES (REPEAT('x', 10 << 20))")
    assert_soon(quiet)
    assert not [line for line in daemon.lines(after=mark) if line["id"] == "DUEBOX-BINLOG-LOST"]
    quiet.execute(f"DROP DATABASE `{other}`")


def test_an_altered_table(quiet):
    """Columns change their positions."""
    daemon = follow(quiet)
    quiet.execute("ALTER TABLE outbox ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'x' FIRST")
    assert_soon(quiet)
    quiet.execute("ALTER TABLE outbox DROP COLUMN note, MODIFY priority TINYINT UNSIGNED NOT NULL DEFAULT 5 FIRST")
    for _ in range(3):
        assert_soon(quiet)
    assert daemon.metric("duebox_binlog_up") == 1


def test_the_server_is_restarted(stage, tmp_path):
    from support.servers.mariadb import MariaDB
    with MariaDB(tmp_path / "mariadb") as server:
        stage.mariadb = server
        server.create_database(stage.database)
        stage.configuration["database"]["socket"] = str(server.socket)
        stage.configuration["engine"] |= {"poll_min": f"{POLL_S}s", "poll_max": f"{POLL_S}s", "lease": "10s"}
        stage.http("h", claim="memory")
        daemon = follow(stage)
        mark = daemon.mark()
        server.stop()
        server.start()
        daemon.wait_log("DUEBOX-BINLOG-ON", after=mark, limit_s=60)
        settle(stage)
        assert_soon(stage)
        daemon.stop()


# -- where it cannot be had --------------------------------------------------------------------


def test_without_the_right_polling_goes_on(stage):
    """One line says what to grant; granted, it is taken up."""
    grants = [f"SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON `{stage.database}`.*"]
    stage.mariadb.create_user("nobinlog", "secret", grants)
    stage.configuration["database"] |= {"user": "nobinlog", "password": "secret"}
    stage.http("h", claim="memory")
    daemon = stage.start()
    line = daemon.wait_log("DUEBOX-BINLOG-OFF")
    assert line["level"] == "info"
    assert "GRANT REPLICATION SLAVE ON *.* TO 'nobinlog'@'%'" in line["msg"]
    stage.insert("h", b"polled")
    stage.receiver.wait_count(1, 20)
    assert daemon.metric("duebox_binlog_up") == 0
    assert "REPLICATION SLAVE" in daemon.run("doctor", check=False).stdout
    daemon.stop()
    loud = stage.start(database={**stage.configuration["database"], "wake": "binlog"})
    assert loud.wait_log("DUEBOX-BINLOG-OFF")["level"] == "error"


def test_wake_poll_asks_for_nothing(stage):
    stage.http("h", claim="memory")
    stage.configuration["database"]["wake"] = "poll"
    daemon = stage.start()
    stage.insert("h", b"polled")
    stage.receiver.wait_count(1, 20)
    assert not [line for line in daemon.lines() if line["id"].startswith("DUEBOX-BINLOG")]
    wait_until(lambda: not followers(stage), 20, "nobody to follow the binlog")


def test_the_end_is_prompt(quiet):
    """Also while nothing happens in the log."""
    assert follow(quiet).stop() < SOON_S
