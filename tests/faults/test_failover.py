"""A primary that dies, and a replica that takes its place behind the same address.

Semi-synchronous: every task that was committed arrives (P1), whichever server has it now. Asynchronous: the last commits
are lost with the database that had them, and their ids are handed out again. What is promised then is that such tasks
cost no others: each one that the new primary has arrives, under an id that a lost one had before too, nothing arrives that
nobody committed, and copies are those whose settling was lost.

Behind `scripts/test --engines`.
"""

import contextlib
import os
import threading

import pymysql
import pytest

from support.application import Application, Task, new_id
from support.failover import FailoverPair
from support.ledger import Promise
from support.stage import Stage
from support.wait import wait_until

LIMIT_S = 120
FAILOVERS = 3
IN_FLIGHT = 64

if "DUEBOX_TEST_ENGINES" not in os.environ:
    pytest.skip("scripts/test --engines", allow_module_level=True)


@pytest.fixture(params=[False, True], ids=["asynchronous", "semi-synchronous"])
def pair(request):
    with FailoverPair(semi_sync=request.param) as it:
        it.semi_sync = request.param
        it.primary.create_user("app", "secret", "ALL ON *.*")
        yield it


@pytest.fixture
def mariadb(pair):
    return pair.primary


@pytest.fixture
def stage(request, pair, tmp_path):
    with Stage(request, tmp_path) as it:
        it.configuration["database"] = {"host": "127.0.0.1", "port": pair.port, "user": "app", "password": "secret",
                                        "name": it.database}
        it.configuration["engine"] |= {"lease": "3s", "max_recoveries": 1000}
        yield it


class Load:
    """Inserts task after task, one a transaction, through the address that moves; an insert that fails is not repeated."""

    def __init__(self, stage, port):
        self._stage = stage
        self._how = {"host": "127.0.0.1", "port": port, "user": "app", "password": "secret", "database": stage.database,
                     "read_timeout": LIMIT_S}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.committed = 0

    def _run(self):
        while not self._stopping.is_set():
            with contextlib.suppress(pymysql.err.MySQLError), \
                    Application(pymysql.connect(**self._how), self._stage.ledger) as application:
                while not self._stopping.is_set():
                    application.insert([Task(Promise(new_id(), "h", b"{}"), delay_ms=self.committed % 3 * 200)])
                    self.committed += 1

    def wait_more(self, count):
        wanted = self.committed + count
        wait_until(lambda: self.committed >= wanted, LIMIT_S, f"{count} more tasks to be committed")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()


def committed(server, stage):
    return {message_id for message_id, in server.execute("SELECT message_id FROM ledger", db=stage.database)}


def test_a_ledger_with_failovers(stage, pair):
    arrivals, lost, copies = stage.ledger.arrivals, set(), 0
    stage.http("h", concurrency=IN_FLIGHT, retry={"backoff": "100ms", "max": "1s"})
    stage.consume_http()
    daemon = stage.start()
    with Load(stage, pair.port) as load:
        for _ in range(FAILOVERS):
            load.wait_more(200)
            pair.wait_replicated()
            before = len(arrivals)
            if not pair.semi_sync:
                pair.stop_receiving()
                load.wait_more(100)
                wait_until(lambda seen=before: len(arrivals) > seen + 50, LIMIT_S, "tasks that will be lost to arrive")
            had = pair.fail_over(lambda old: committed(old, stage))
            stage.mariadb = pair.primary
            lost |= had - committed(pair.primary, stage)
            copies += IN_FLIGHT + len(arrivals) - before
        load.wait_more(200)
    stage.wait_empty(LIMIT_S)
    wait_until(lambda: daemon.metric("duebox_db_server_changes") >= FAILOVERS, LIMIT_S, "each failover to be noticed")
    stage.stop_and_drain()
    # A lost task may have been sent before: it was committed, and by its failover nobody knows of it.
    gone = [one.message_id for one in arrivals if one.message_id in lost]
    stage.ledger.arrivals[:] = [one for one in arrivals if one.message_id not in lost]
    extra = stage.compare(duplicates=IN_FLIGHT * FAILOVERS if pair.semi_sync else copies)
    print(f"{load.committed} committed, {len(lost)} lost with the old primaries, {len(gone)} of them sent, {extra} copies")
    assert len(gone) == len(set(gone))
    assert (not lost) if pair.semi_sync else lost
