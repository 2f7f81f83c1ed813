"""A MySQL server, and duebox with either client library: tasks are noticed by the binlog as they commit, and none is lost.
With MySQL's own library the store's contract holds too.

Behind `scripts/test --engines`.
"""

import os

import pytest
from faults.test_engines import test_a_ledger_with_a_kill  # noqa: F401
from test_binlog import (POLL_S, SOON_S, assert_soon, follow, quiet,  # noqa: F401 (a fixture)
                         test_a_killed_connection_comes_back, test_a_row_bound_to_this_host_is_noticed,
                         test_a_row_that_comes_back_is_noticed, test_a_row_that_is_due_in_a_moment_is_on_time,
                         test_an_altered_table, test_partial_row_images, test_rescheduling_by_plain_sql_is_noticed,
                         test_rotated_and_purged_logs, test_rows_are_noticed_as_they_commit,
                         test_statements_in_the_log, test_the_end_is_prompt,
                         test_what_is_not_ours_costs_no_statement)
from test_store import OTHERS, run_all

from support.mysql_client import mysql_client_build
from support.servers.engines import EngineUnavailable
from support.servers.mysql import MySQL, start_or_skip
from support.stage import Stage

if "DUEBOX_TEST_ENGINES" not in os.environ:
    pytest.skip("scripts/test --engines", allow_module_level=True)


@pytest.fixture(scope="module")
def build():
    try:
        return mysql_client_build(*(source.stem for source in OTHERS))
    except EngineUnavailable as why:
        pytest.skip(f"NOT TESTED with libmysqlclient: {why}")


@pytest.fixture(scope="module")
def mariadb():
    """MySQL in the place of the server that a Stage uses."""
    server = start_or_skip(MySQL)
    yield server
    server.stop()


@pytest.fixture(params=["libmariadb", "mysqlclient"])
def stage(request, tmp_path, monkeypatch):
    with Stage(request, tmp_path) as it:
        if request.param == "mysqlclient":
            build = request.getfixturevalue("build")
            monkeypatch.setenv("DUEBOX_PLUGIN_PATH", str(build / "plugins"))
            it.program = [str(build / "bin" / "duebox")]
        it.client = request.param
        yield it


def test_a_compressed_transaction(quiet):  # noqa: F811
    """MySQL's own library gives it as it is, and it costs a look. Connector/C stops there: the daemon polls, and follows
    again later."""
    daemon = follow(quiet)
    before, mark = len(quiet.receiver.requests), daemon.mark()
    with quiet.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("INSERT INTO outbox (route, payload) VALUES ('h', REPEAT('x', 5000))")
    if quiet.client == "mysqlclient":
        quiet.receiver.wait_count(before + 1, SOON_S)
        assert_soon(quiet)
    else:
        daemon.wait_log("DUEBOX-BINLOG-OFF", after=mark)
        quiet.receiver.wait_count(before + 1, 2 * POLL_S)


@pytest.mark.parametrize("program", [source.stem for source in OTHERS])
def test_c(build, mariadb, program):
    run_all(build / "tests" / program, DUEBOX_TEST_MYSQL=str(mariadb.socket))
