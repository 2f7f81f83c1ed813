"""Every engine keeps what MariaDB 10.11 keeps: nothing is lost, early or invented (P1, P3), and a
killed daemon costs copies, not tasks (P4).  A ledger of 2,000 tasks with mixed delays, inserted
by the application's transactions, with one kill -9 of the daemon in the middle.

MySQL is part of every run; MariaDB 11.8 is behind `scripts/test --engines`.
"""

import json

import pytest

from support.servers.mariadb import MariaDB
from support.servers.mysql import LaterMariaDB, MySQL, start_or_skip
from support.stage import LATER, Stage
from support.wait import wait_until

TASKS = 2000
CONCURRENCY = 64
IN_FLIGHT = 2 * CONCURRENCY     # at the endpoint, or answered there and not settled yet


@pytest.fixture(scope="module", params=[MySQL, pytest.param(LaterMariaDB, marks=LATER)], ids=lambda kind: kind.name)
def mariadb(request):
    """The engine in the place of the server that a Stage uses."""
    server = start_or_skip(request.param)
    yield server
    server.stop()


@pytest.fixture
def stage(request, mariadb, tmp_path):
    with Stage(request, tmp_path) as it:
        yield it


def test_the_shortest_insert_and_an_explicit_null_arrive(stage):
    """What the README shows first: two columns. ORMs add NULL for the columns that they know nothing of."""
    stage.http("orders.cancel", concurrency=4)
    stage.start()
    stage.execute("INSERT INTO outbox (route, payload) VALUES ('orders.cancel', '{\"order\":17}')")
    stage.execute("INSERT INTO outbox (route, payload, due_at, dedup_key) VALUES ('orders.cancel', '2', NULL, NULL)")
    stage.receiver.wait_count(2, 60)
    assert sorted(one.body for one in stage.receiver.requests) == [b'2', b'{"order":17}']
    wait_until(lambda: stage.execute("SELECT COUNT(*) FROM outbox")[0][0] == 0, 60, "the table to be empty")


def test_a_ledger_with_a_kill(stage):
    stage.http("h", concurrency=CONCURRENCY, timeout="5s", retry={"backoff": "100ms", "max": "1s"})
    stage.configuration["engine"] |= {"max_recoveries": 1000, "lease": "2s"}
    daemon = stage.start()
    stage.consume_http()
    for delay_ms in (0, 500, 1500, 3000):
        stage.insert("h", b"x" * 100, delay_ms=delay_ms, count=TASKS // 4)
        if delay_ms == 500:
            wait_until(lambda: len(stage.receiver.requests) > 100, 60, "tasks to arrive")
            daemon.kill9()
            daemon.start()
    stage.wait_empty(120)
    assert len(stage.ledger.arrived_ids()) == TASKS
    stage.check(duplicates=IN_FLIGHT)


@LATER
def test_a_daemon_dies_and_another_takes_over(stage):
    """Two share the shards; what the dead one had is sent by the other, and nothing by both but what was in flight."""
    stage.http("h", concurrency=CONCURRENCY, timeout="5s", retry={"backoff": "100ms", "max": "1s"})
    stage.configuration["engine"] |= {"max_recoveries": 1000}
    stage.consume_http()
    left, right = stage.start("left"), stage.start("right")
    wait_until(lambda: min(left.metric("duebox_shards_held"), right.metric("duebox_shards_held")) > 2, 60, "both to hold shards")
    stage.insert("h", b"x" * 100, count=TASKS)
    wait_until(lambda: len(stage.receiver.requests) > 100, 60, "tasks to arrive")
    left.kill9()
    stage.insert("h", b"x" * 100, delay_ms=500, count=TASKS // 2)
    stage.wait_empty(120)
    assert len(stage.ledger.arrived_ids()) == TASKS + TASKS // 2
    stage.check(duplicates=IN_FLIGHT)


def test_a_commit_is_noticed(stage):
    """By the server's binlog, long before the next look."""
    stage.http("h", claim="memory")
    stage.configuration["engine"] |= {"poll_min": "1m", "poll_max": "1m"}
    daemon = stage.start()
    daemon.wait_log("DUEBOX-BINLOG-ON")
    for count in range(1, 4):
        stage.insert("h")
        stage.receiver.wait_count(count, 60)
    stage.wait_empty(60)
    assert daemon.metric("duebox_binlog_up") == 1 and daemon.metric("duebox_binlog_hints") > 0


def test_doctor_says_what_is_so(stage):
    """The user that sql/examples gives the daemon: nothing to complain of, and how new tasks are noticed. A right that is
    missing is told with the GRANT that gives it."""
    database, mysql = stage.database, stage.mariadb.name == "mysql"
    follow = "REPLICATION SLAVE, REPLICATION CLIENT" if mysql else "REPLICATION SLAVE"
    stage.http("h")
    stage.migrate(stage.daemon(migrate=False))
    stage.mariadb.create_user("doctor", "secret", [f"ALL ON `{database}`.*", "REPLICATION SLAVE ON *.*"])
    stage.configuration["database"] |= {"user": "doctor", "password": "secret"}

    def doctor(code, **changes):
        done = stage.daemon(migrate=False, database={**stage.configuration["database"], **changes}).run(
            "doctor", "-o", "json", check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return {line["check"]: line for line in json.loads(done.stdout)}

    if mysql:
        said = doctor(0)["wake-up"]
        assert said["level"] == "warn" and said["cure"].startswith(f"GRANT {follow} ON *.* TO 'doctor'@'%'")
        stage.mariadb.execute("GRANT REPLICATION CLIENT ON *.* TO 'doctor'@'%'")
    said = doctor(0)
    assert [line for line in said.values() if line["level"] == "fail"] == []
    assert said["server"]["text"].startswith("MySQL " if mysql else "MariaDB ")
    assert said["rights"]["level"] == said["least privilege"]["level"] == "ok"
    assert (said["wake-up"]["level"], said["wake-up"]["text"]) == ("ok", "by the server's binlog")
    assert doctor(0, wake="poll")["wake-up"]["text"] == "by polling, as configured"
    stage.mariadb.execute(f"REVOKE DELETE ON `{database}`.* FROM 'doctor'@'%'")
    said = doctor(77)["rights"]
    assert said["level"] == "fail" and "GRANT DELETE" in said["cure"]


@LATER
@pytest.mark.parametrize(("version", "code", "check", "text"), [
    ("10.9.8", 78, "server", "MariaDB 10.9.8"), ("11.4.5", 0, "server kind", "not tested on 11.4.5")])
def test_doctor_knows_what_was_run(version, code, check, text, stage, tmp_path):
    """An older server lacks what the schema uses; a later one that no test runs on is named."""
    with MariaDB(tmp_path / "server", extra_args=[f"--version={version}-MariaDB"]) as server:
        stage.mariadb = server
        server.create_database(stage.database)
        stage.configuration["database"]["socket"] = str(server.socket)
        done = stage.daemon().run("doctor", "-o", "json", check=False)
        assert done.returncode == code, done.stdout + done.stderr
        said = {line["check"]: line for line in json.loads(done.stdout)}[check]
        assert said["level"] == ("fail" if code else "warn") and text in said["text"]
