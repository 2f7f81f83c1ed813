"""A Galera cluster behind a balancer that gives each connection another node: a node applies what another one
committed a little later, and no task may arrive twice because one session reads what another has settled (P1).

Behind `scripts/test --engines`.
"""

import os

import pytest

from support.servers.galera import Galera, provider
from support.stage import Stage
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

# A node that is slower than the others: each row that another node deleted costs it a millisecond.
SLOW = """CREATE TRIGGER slow AFTER DELETE ON outbox FOR EACH ROW
          SET @slow = IF(COALESCE(USER(), '') LIKE 'duebox@%', 0, SLEEP(0.001))"""

pytestmark = pytest.mark.skipif("DUEBOX_TEST_ENGINES" not in os.environ, reason="scripts/test --engines")


@pytest.fixture(scope="module")
def cluster():
    if not provider():
        pytest.skip("NOT TESTED on Galera: the package galera-4 is not installed")
    with Galera() as it:
        for node in it.nodes[:1]:
            node.create_user("duebox", "", "ALL ON *.*")
        yield it


@pytest.fixture(scope="module")
def mariadb(cluster):
    """The application writes to the first node."""
    return cluster.nodes[0]


@pytest.fixture
def stage(request, cluster, mariadb, tmp_path):
    with Stage(request, tmp_path) as it, TcpProxy([node.port for node in cluster.nodes]) as balancer:
        it.configuration["database"] = {"host": "127.0.0.1", "port": balancer.port, "user": "duebox",
                                        "name": it.database, "wake": "poll"}
        yield it


def test_without_a_fault_each_task_arrives_once(stage):
    stage.http("h", concurrency=64)
    stage.consume_http()
    daemon = stage.daemon()
    stage.execute(SLOW)
    daemon.start()
    for _ in range(20):
        stage.insert("h", b"x" * 100, count=500)
    stage.wait_empty(240)
    stage.wait_arrived(10000, 60)
    assert "Galera" in daemon.run("doctor", check=False).stdout
    stage.check(duplicates=0)


def test_a_ledger_with_a_kill(stage):
    stage.http("h", concurrency=64, timeout="5s", retry={"backoff": "100ms", "max": "1s"})
    stage.configuration["engine"] |= {"max_recoveries": 1000, "lease": "2s"}
    daemon = stage.start()
    stage.consume_http()
    for delay_ms in (0, 500, 1500, 3000):
        stage.insert("h", b"x" * 100, delay_ms=delay_ms, count=500)
        if delay_ms == 500:
            wait_until(lambda: len(stage.receiver.requests) > 100, 60, "tasks to arrive")
            daemon.kill9()
            daemon.start()
    stage.wait_empty(120)
    assert len(stage.ledger.arrived_ids()) == 2000
    stage.check(duplicates=64)      # at most what was in flight
