"""A Galera cluster: a node applies what another one committed a little later, and no task may arrive twice because one
session reads what another has settled (P4). Behind a balancer that gives each connection another node, and with a daemon
on each node; with a daemon that is killed, a node that stands still, and a node that dies and returns (P1).

Behind `scripts/test --engines`.
"""

import os

import pytest

from support.servers.galera import Galera, provider
from support.stage import Stage
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

# A node that is slower than the others: each row that another node deleted costs it a millisecond.
CONCURRENCY = 64
IN_FLIGHT = 2 * CONCURRENCY     # at the endpoint, or answered there and not settled yet
SLOW = """CREATE TRIGGER slow AFTER DELETE ON outbox FOR EACH ROW
          SET @slow = IF(COALESCE(USER(), '') LIKE 'duebox@%', 0, SLEEP(0.001))"""

if "DUEBOX_TEST_ENGINES" not in os.environ:
    pytest.skip("scripts/test --engines", allow_module_level=True)


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


def reached_by(stage, port):
    """The settings of a daemon that reaches the cluster there."""
    return {"host": "127.0.0.1", "port": port, "user": "duebox", "name": stage.database, "wake": "poll"}


@pytest.fixture
def stage(request, cluster, mariadb, tmp_path):
    with Stage(request, tmp_path) as it, TcpProxy([node.port for node in cluster.nodes]) as balancer:
        it.configuration["database"] = reached_by(it, balancer.port)
        yield it


def http(stage):
    stage.http("h", concurrency=CONCURRENCY, timeout="5s", retry={"backoff": "100ms", "max": "1s"})
    stage.configuration["engine"] |= {"max_recoveries": 1000}
    stage.consume_http()


def insert_everywhere(stage, cluster, count):
    """The application writes on every node that lives."""
    for node in cluster.nodes:
        if node.alive():
            stage.mariadb = node
            stage.insert("h", b"x" * 100, count=count)
    stage.mariadb = cluster.nodes[0]


def test_without_a_fault_each_task_arrives_once(stage):
    stage.http("h", concurrency=CONCURRENCY)
    stage.consume_http()
    daemon = stage.daemon()
    stage.execute(SLOW)
    daemon.start()
    for _ in range(20):
        stage.insert("h", b"x" * 100, count=500)
    stage.wait_empty(240)
    stage.wait_arrived(10000, 60)
    assert "a Galera node" in daemon.run("doctor").stdout
    stage.check(duplicates=0)


def test_a_ledger_with_a_kill(stage):
    http(stage)
    daemon = stage.start()
    for delay_ms in (0, 500, 1500, 3000):
        stage.insert("h", b"x" * 100, delay_ms=delay_ms, count=500)
        if delay_ms == 500:
            wait_until(lambda: len(stage.receiver.requests) > 100, 60, "tasks to arrive")
            daemon.kill9()
            daemon.start()
    stage.wait_empty(120)
    assert len(stage.ledger.arrived_ids()) == 2000
    stage.check(duplicates=IN_FLIGHT)


def test_a_daemon_on_each_node(stage, cluster):
    """All write to the same tables, and so does the application; then one is killed, and the others take over."""
    http(stage)
    daemons = [stage.daemon(database=reached_by(stage, node.port)) for node in cluster.nodes]
    for daemon in daemons:
        daemon.start()
    wait_until(lambda: all(daemon.metric("duebox_shards_held") > 1 for daemon in daemons), 60, "all to hold shards")
    for _ in range(5):
        insert_everywhere(stage, cluster, 200)
    stage.wait_empty(120)
    assert stage.compare(duplicates=0) == 0
    insert_everywhere(stage, cluster, 500)
    wait_until(lambda: len(stage.receiver.requests) > 3100, 60, "tasks to arrive")
    daemons[0].kill9()
    insert_everywhere(stage, cluster, 100)
    stage.wait_empty(120)
    stage.check(duplicates=IN_FLIGHT)


def test_a_node_that_stands_still(stage, cluster):
    """Its connections stay open and say nothing; the others go on without it, and it comes back by itself."""
    http(stage)
    stage.configuration["database"] |= {"connect_timeout": "2s", "read_timeout": "5s"}
    stage.start()
    node = cluster.nodes[2]
    try:
        for count in range(1, 5):
            if count == 2:
                node.pause()
            stage.insert("h", b"x" * 100, count=500)
            wait_until(lambda: len(stage.receiver.requests) > 400 * count, 120, "tasks to arrive", detail=stage.living)
    finally:
        node.resume()
    cluster.wait_complete()
    stage.insert("h", b"x" * 100, count=500)
    stage.wait_empty(180)
    assert len(stage.ledger.arrived_ids()) == 2500
    stage.check(duplicates=2 * IN_FLIGHT)  # it is silent, and it closes what is open when it comes back


def test_a_node_that_dies_and_returns(stage, cluster):
    http(stage)
    stage.start()
    node = cluster.nodes[1]
    stage.insert("h", b"x" * 100, count=500)
    wait_until(lambda: len(stage.receiver.requests) > 100, 60, "tasks to arrive")
    node.kill9()
    stage.insert("h", b"x" * 100, count=500)
    stage.wait_arrived(1000, 120)
    node.start()
    cluster.wait_complete()
    stage.insert("h", b"x" * 100, count=500)
    stage.wait_empty(120)
    assert len(stage.ledger.arrived_ids()) == 1500
    stage.check(duplicates=IN_FLIGHT)
