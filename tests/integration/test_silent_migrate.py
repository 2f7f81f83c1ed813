"""A database that falls silent while `duebox migrate` is connected to it: questions end after database.read_timeout, and
an ALTER is waited for as long as its server is at work."""

import os
import threading

import pytest
from support.stage import stage_on_each_server  # noqa: F401 (a fixture)
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

LIMIT_S = 30
LONG = b"CREATE TABLE IF NOT EXISTS `outbox_history`"       # of migration 2: nobody knows how long it may take
STARTS = b"INTO `outbox_schema`"                            # that a migration has begun
ASKS = b"FROM `outbox_schema`"


@pytest.fixture
def far(stage_on_each_server):
    """Commands that reach the database through a proxy, as a user of their own, and a second for each answer."""
    stage = stage_on_each_server
    server, user = stage.mariadb, f"far_{stage.database}"[:32]
    server.create_user(user, "right", [f"ALL ON `{stage.database}`.*"])
    with TcpProxy(server.port) as proxy:
        stage.configuration["database"] = {
            "host": "127.0.0.1", "port": proxy.port, "user": user, "password": "right", "name": stage.database,
            "connect_timeout": "2s", "read_timeout": "1s"}
        key = server.data / "public_key.pem"
        if key.exists():
            stage.configuration["database"]["server_public_key_file"] = str(key)
        stage.proxy, stage.user = proxy, user
        yield stage


def sessions(stage):
    return sum(user == stage.user for _, user, *_ in stage.execute("SHOW PROCESSLIST"))


def run_beside(daemon, *words):
    """The command, as a function that waits for its end and gives it."""
    done = []
    thread = threading.Thread(target=lambda: done.append(daemon.run(*words, check=False, limit_s=LIMIT_S)), daemon=True)
    thread.start()

    def end():
        thread.join(LIMIT_S)
        assert done, f"{words} has not ended"
        return done[0]
    return end


def again(stage, daemon, *words):
    """When the server, too, knows that the connection is over, which has the lock of migrations."""
    stage.proxy.reset()
    wait_until(lambda: sessions(stage) == 0, LIMIT_S, "the server to end the sessions")
    daemon.run("migrate", *words, limit_s=LIMIT_S)


@pytest.mark.parametrize("words, asks", [(["status"], ASKS), (["--dry-run"], ASKS), ([], ASKS), ([], STARTS)],
                         ids=["status", "dry-run", "migrate", "begins"])
def test_a_question_has_a_limit(far, words, asks):
    daemon = far.daemon("one", migrate=asks == ASKS)
    far.proxy.deafen_at(asks)
    done = run_beside(daemon, "migrate", *words)()
    assert far.proxy.deafened.is_set()
    assert done.returncode == os.EX_UNAVAILABLE, done
    assert "has not answered in full within 1 s (database.read_timeout)" in done.stderr
    again(far, daemon, *words)


def test_what_the_server_is_at_work_at_is_waited_for(far):
    """Longer than for an answer: until another session has asked how it goes, and is heard."""
    daemon = far.daemon("one")
    far.execute("DELETE FROM outbox_schema WHERE version > 6")
    far.execute("ALTER TABLE outbox_shards DROP COLUMN abandoned_at")
    with far.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM outbox_shards")
        end = run_beside(daemon, "migrate")
        wait_until(lambda: sessions(far) >= 2, LIMIT_S, "a session that asks")
        connection.rollback()
    assert end().returncode == 0
    assert daemon.run("migrate").stdout.startswith("table outbox is up to date")


def test_an_answer_that_was_lost_is_not_waited_for(far):
    daemon = far.daemon("one", migrate=False)
    far.proxy.deafen_at(LONG)
    done = run_beside(daemon, "migrate")()
    assert done.returncode == os.EX_UNAVAILABLE, done
    assert "waiting for the server was given up" in done.stderr and "the answer was lost" in done.stderr
    again(far, daemon)


def test_a_server_that_answers_nobody_is_not_waited_for(far):
    daemon = far.daemon("one", migrate=False)
    far.proxy.deafen_at(LONG)
    end = run_beside(daemon, "migrate")
    assert far.proxy.deafened.wait(LIMIT_S)
    far.proxy.blackhole()
    done = end()
    far.proxy.restore()
    assert done.returncode == os.EX_UNAVAILABLE, done
    assert "does not answer on another connection either" in done.stderr
    again(far, daemon)
