"""Answers of the database that begin and do not end, or that come slowly: no single wait is long, but each statement's
answer has a limit as a whole, after which its connection is cut and what it was for is tried again on a new one."""

import time

import pytest

from support.stage import remote, stage_on_each_server  # noqa: F401 (fixtures)
from support.wait import wait_until

RECOVERY_S = 20         # several times database.read_timeout and engine.lease, which are 2 s
DUPLICATES = 200        # copies that a cut connection may cause: what is in flight at most
LATE = "the server has not answered in full within 2 s (database.read_timeout)"



@pytest.fixture
def stage(stage_on_each_server):  # noqa: F811
    return stage_on_each_server


@pytest.fixture(autouse=True)
def key(remote):  # noqa: F811
    """MySQL's users have caching_sha2_password."""
    key = remote.mariadb.data / "public_key.pem"
    if key.exists():
        remote.configuration["database"]["server_public_key_file"] = str(key)


ANSWERS = {
    "claims": b"SET changed_at = IF(attempt = 0",
    "settles": b"LOCK IN SHARE MODE",
    "renews": b"UPDATE `outbox_shards` SET lease_until",
    "lives": b"INSERT INTO `outbox_instances`",
    "looks": b"GROUP BY state, shard, route, priority",
    "commits": b"COMMIT",
}


def two_daemons(stage):
    """The first one behind the proxy, each with half of the shards."""
    behind = stage.daemon("behind").start()
    second = stage.daemon("beside", database={"port": stage.mariadb.port}).start()
    for daemon in (behind, second):
        wait_until(lambda: daemon.metric("duebox_shards_held") == 4, 60, "each to hold half of the shards")
    return behind


def says_late(stage, daemon, after):
    wait_until(lambda: any(LATE in line["msg"] and line["level"] == "warn" for line in daemon.lines(after)),
               RECOVERY_S, "a line that names the late answer", detail=daemon.log_tail)


@pytest.mark.parametrize("which", ANSWERS)
def test_an_answer_that_never_ends_stops_nothing(remote, which):  # noqa: F811
    """It begins, and a byte comes now and then: nobody else may have the shards meanwhile, as the leases are renewed on
    another connection."""
    remote.http("h", concurrency=16)
    remote.consume_http()
    daemon = two_daemons(remote)
    mark = daemon.mark()
    remote.proxy.trickle_at(ANSWERS[which])
    remote.insert("h", count=100)
    assert remote.proxy.trickles.wait(RECOVERY_S), "it was never asked"
    remote.wait_empty(RECOVERY_S)
    says_late(remote, daemon, mark)
    remote.insert("h", count=20)
    remote.wait_empty(RECOVERY_S)
    remote.check(duplicates=DUPLICATES)


@pytest.mark.parametrize("which", ["claims", "settles", "commits"])
def test_an_answer_that_comes_too_late_is_judged_by_the_table(remote, which):  # noqa: F811
    """The server has committed; its answer comes a byte at a time, and would be whole after some seconds."""
    remote.http("h", concurrency=16)
    remote.consume_http()
    daemon = remote.start()
    mark = daemon.mark()
    remote.proxy.slow_at(ANSWERS[which], 1, 0.3)
    remote.insert("h", count=50)
    assert remote.proxy.slowed.wait(RECOVERY_S), "it was never asked"
    remote.wait_empty(RECOVERY_S)
    says_late(remote, daemon, mark)
    remote.check(duplicates=DUPLICATES)


def test_a_daemon_ends_though_an_answer_does_not(remote):  # noqa: F811
    remote.http("h")
    remote.consume_http()
    daemon = remote.start()
    remote.proxy.trickle_at(ANSWERS["looks"])
    assert remote.proxy.trickles.wait(RECOVERY_S), "it was never asked"
    daemon.stop(limit_s=RECOVERY_S)


def test_large_rows_may_come_slowly(remote):  # noqa: F811
    """Over a line on which they take longer than database.read_timeout, but come."""
    remote.http("h")
    remote.consume_http()
    remote.configuration["engine"]["max_payload"] = 4 << 20
    daemon = remote.start()
    mark = daemon.mark()
    remote.proxy.slow_at(b"payload", 16 << 10, 0.02)
    remote.insert("h", b'"' + b"x" * (3 << 20) + b'"')
    assert remote.proxy.slowed.wait(RECOVERY_S), "it was never asked"
    began = time.monotonic()
    remote.wait_empty(60)
    assert time.monotonic() - began > 3, "the line was not slow"
    assert not [line for line in daemon.lines(mark) if "in full" in line["msg"]]
    remote.check()
