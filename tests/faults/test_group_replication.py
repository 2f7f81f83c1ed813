"""MySQL's Group Replication, three members and one of them primary, behind an address that follows the primary: nothing
is lost (P1) and nothing comes that was not committed (P2) when the primary is killed under load.

Behind `scripts/test --engines`.
"""

import os

import pytest

from support.servers.engines import EngineUnavailable
from support.servers.group import Group
from support.stage import Stage
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

LIMIT_S = 120
CONCURRENCY = 64
IN_FLIGHT = 2 * CONCURRENCY     # at the endpoint, or answered there and not settled yet

if "DUEBOX_TEST_ENGINES" not in os.environ:
    pytest.skip("scripts/test --engines", allow_module_level=True)


@pytest.fixture(scope="module")
def group():
    try:
        with Group() as it:
            it.primary.create_user("duebox", "", "ALL ON *.*")
            yield it
    except EngineUnavailable as why:
        pytest.skip(f"NOT TESTED on Group Replication: {why}")


@pytest.fixture
def mariadb(group):
    """The application writes to the primary."""
    return group.primary


@pytest.fixture
def address(group):
    with TcpProxy(group.primary.port) as it:
        yield it


@pytest.fixture
def stage(request, address, mariadb, tmp_path):
    with Stage(request, tmp_path) as it:
        it.configuration["database"] = {"host": "127.0.0.1", "port": address.port, "user": "duebox",
                                        "name": it.database}
        it.configuration["engine"] |= {"max_recoveries": 1000}
        it.http("h", concurrency=CONCURRENCY, timeout="5s", retry={"backoff": "100ms", "max": "1s"})
        it.consume_http()
        yield it


def test_without_a_fault_each_task_arrives_once(stage):
    daemon = stage.start()
    for delay_ms in (0, 200, 500, 1000):
        stage.insert("h", b"x" * 100, delay_ms=delay_ms, count=500)
    stage.wait_empty(LIMIT_S)
    assert "a group with one primary" in daemon.run("doctor").stdout
    assert len(stage.ledger.arrived_ids()) == 2000
    stage.check(duplicates=0)


def test_the_primary_is_killed_under_load(stage, group, address):
    stage.start()
    for delay_ms in (0, 500, 1500, 3000):
        stage.insert("h", b"x" * 100, delay_ms=delay_ms, count=500)
    wait_until(lambda: len(stage.receiver.requests) > 100, LIMIT_S, "tasks to arrive")
    dead = group.primary
    address.drop()
    dead.kill9()
    stage.mariadb = group.wait_primary()
    address.retarget(stage.mariadb.port)
    address.restore()
    stage.insert("h", b"x" * 100, count=500)
    stage.wait_empty(LIMIT_S)
    dead.start()
    dead.join()
    group.wait_complete()
    stage.insert("h", b"x" * 100, count=500)
    stage.wait_empty(LIMIT_S)
    assert len(stage.ledger.arrived_ids()) == 3000
    stage.check(duplicates=IN_FLIGHT)


def test_a_daemon_is_killed_under_load(stage):
    daemon = stage.start()
    stage.insert("h", b"x" * 100, count=1500)
    wait_until(lambda: len(stage.receiver.requests) > 100, LIMIT_S, "tasks to arrive")
    daemon.kill9()
    daemon.start()
    stage.insert("h", b"x" * 100, delay_ms=500, count=500)
    stage.wait_empty(LIMIT_S)
    assert len(stage.ledger.arrived_ids()) == 2000
    stage.check(duplicates=IN_FLIGHT)
