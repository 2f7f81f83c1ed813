"""Stopping, reloading, sharing: what happens around the work of a daemon."""

import contextlib
import errno
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from support.daemon import preset_folder
from support.servers.http_receiver import Answer
from support.wait import wait_until


def routes_of(daemon):
    return {route["name"]: route for route in daemon.api("GET", "/api/v1/routes")[1]["routes"]}


def shards_held(daemon):
    return int(daemon.metric("duebox_shards_held"))


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# -- start --------------------------------------------------------------------------------


def test_no_connection_takes_the_number_of_a_closed_standard_stream(stage):
    """Log lines would go into it: into the database's connection, or into a partner's."""
    stage.http("h")
    stage.program = ["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', preset_folder() / "bin" / "duebox"]
    daemon = stage.start()
    stage.consume_http()
    stage.insert("h", count=3)
    stage.receiver.wait_count(3, 20)
    streams = Path(f"/proc/{daemon.process.pid}/fd")
    assert [(streams / number).readlink() for number in "012"] == [Path("/dev/null")] * 3


def test_a_small_limit_on_stacks_is_no_limit_for_threads(stage):
    """Threads used to take ulimit -s as the size of their stacks, and died of it."""
    stage.program = ["prlimit", f"--stack={256 * 1024}", preset_folder() / "bin" / "duebox"]
    stage.http("h")
    stage.consume_http()
    stage.start()
    stage.insert("h", count=20)
    stage.wait_empty(60)
    stage.check()


# -- signals ------------------------------------------------------------------------------


def test_a_log_file_at_its_limit_stops_nothing(stage):
    """A limit on the size of files (ulimit -f, LimitFSIZE=) is like a full disk: lines are dropped, tasks are not."""
    limit = 1024
    stage.program = ["prlimit", f"--fsize={limit}", preset_folder() / "bin" / "duebox"]
    stage.http("h")
    stage.consume_http()
    daemon = stage.start()
    stage.insert("h", count=20)
    stage.wait_empty(60)
    assert daemon.log.stat().st_size == limit
    assert daemon.alive()
    stage.check()


def test_sigterm_lets_calls_in_flight_end(stage):
    """The calls end and are settled, nothing new is begun, and nothing is sent again."""
    stage.http("h", concurrency=10)
    daemon = stage.start()
    stage.consume_http()
    end = threading.Event()
    stage.receiver.on("/h", Answer(200, after=end))
    stage.insert("h", b"in flight", count=10)
    stage.receiver.wait_count(10, 20)
    waiting = stage.insert("h", b"waits", count=20)
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("DUEBOX-DRAINING")
    wait_until(lambda: daemon.api("GET", "/readyz")[0] == 503, 10, "the daemon to say that it is stopping")
    end.set()
    assert daemon.wait_end(20) == 0
    assert stage.count() == 20 and len(stage.receiver.requests) == 10
    assert {stage.row(message_id)["attempt"] for message_id in waiting} == {0}
    stage.receiver.on("/h", 200)
    daemon.start()
    stage.wait_empty(20)
    stage.check()


def test_a_second_sigterm_ends_at_once(stage):
    stage.http("h", timeout="20s")
    daemon = stage.start()
    stage.consume_http()
    stage.receiver.on("/h", Answer(never=True))
    message_id = stage.insert("h", b"hangs", copies=2)[0]
    stage.receiver.wait_count(1, 20)
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("DUEBOX-DRAINING")
    assert stage.row(message_id)["state"] == "claimed"
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("DUEBOX-HURRY")
    assert daemon.wait_end(10) == 0
    stage.receiver.on("/h", 200)
    daemon.start()                      # and nothing is lost
    stage.wait_empty(40)
    stage.check(duplicates=1)


def test_a_second_sigterm_ends_it_whatever_the_database_does(remote):
    """A statement whose answer never ends, though something comes of it now and then, keeps the engine from stopping."""
    remote.http("h")
    remote.configuration["database"]["read_timeout"] = "10m"    # else it ends by itself
    daemon = remote.start()
    remote.consume_http()
    remote.proxy.trickle_at(b"GROUP BY state, shard, route, priority")     # the scheduler asks what is due
    assert remote.proxy.trickles.wait(60), "it never asked"
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("DUEBOX-DRAINING")
    # The listener is closed when it has drained, before the engine is stopped.
    wait_until(lambda: not is_listening(daemon.port), 60, "the listener to be closed")
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("DUEBOX-HURRY")
    assert daemon.wait_end(60) == 0
    daemon.wait_log("DUEBOX-CUT-OFF")
    mark = daemon.mark()
    daemon.start()                      # nothing is lost: its own lease ends by itself
    remote.insert("h", count=3)
    remote.wait_empty(60)
    daemon.wait_log("DUEBOX-SHARD-ACQUIRED", after=mark)
    remote.check()


class Supervisor:
    """A notify socket whose owner reads when it is told to."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.path = str(path)

    def fill(self):
        """Until it takes no more (net.unix.max_dgram_qlen)."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, contextlib.suppress(BlockingIOError):
            sender.setblocking(False)
            while True:
                sender.sendto(b"FILLER=1", self.path)

    def read_until(self, state):
        self.socket.settimeout(60)
        while self.socket.recv(100) != state:
            pass


def test_a_supervisor_that_reads_nothing_stops_nothing(stage, tmp_path, monkeypatch):
    """The main thread used to wait for it for ever, and took no signals, while /healthz said that all was well."""
    supervisor = Supervisor(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", supervisor.path)
    supervisor.fill()
    stage.http("h")
    stage.consume_http()
    daemon = stage.start()
    daemon.reload()
    supervisor.read_until(b"READY=1")           # which could not be sent when it was so
    supervisor.read_until(b"WATCHDOG=1")
    supervisor.fill()
    stage.receiver.on("/h", Answer(never=True))
    stage.insert("h", copies=2)
    stage.receiver.wait_count(1, 20)
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("DUEBOX-DRAINING")
    supervisor.read_until(b"STOPPING=1")
    supervisor.fill()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_end(20) == 0
    supervisor.socket.close()


def test_a_reload_while_the_daemon_starts_waits(stage, tmp_path, monkeypatch):
    """A SIGHUP that came before the daemon had got around to blocking it ended the process: whoever renews certificates
    and reloads all daemons must not stop one that was just started."""
    stage.http("h")
    pipes = [tmp_path / name / "LC_CTYPE" for name in ("C.UTF-8", "C.utf8")]     # the C library tries both
    for pipe in pipes:
        pipe.parent.mkdir()
        os.mkfifo(pipe)

    def let_through(pipe):
        """True once the program waited at this pipe; it goes on."""
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            assert error.errno == errno.ENXIO and daemon.alive(), daemon.exit_status
            return False
        return True

    daemon = stage.daemon()
    with monkeypatch.context() as patch:
        patch.setenv("LOCPATH", str(tmp_path))
        daemon.start(wait_ready=False)
    wait_until(lambda: let_through(pipes[0]), 60, "the program to begin")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: let_through(pipes[1]), 60, "the program to go on")
    daemon.wait_ready()
    daemon.wait_log("DUEBOX-RELOADED", limit_s=60)


def test_the_drain_has_an_end(stage):
    """What takes longer than drain_timeout is given up, and sent again later. That is nobody's
    failure: deploys use up no attempts."""
    stage.http("h", timeout="60s", max_attempts=1)
    stage.configuration["engine"]["drain_timeout"] = "1s"
    daemon = stage.start()
    stage.receiver.on("/h", Answer(never=True))
    stage.insert("h", b"hangs", end="")
    stage.receiver.wait_count(1, 20)
    assert 0.9 <= daemon.stop() < 45        # and not as long as the call may take
    (row,) = stage.execute("SELECT state, attempt, failures, error_class FROM outbox")
    assert row == ("scheduled", 1, 0, "daemon.stopped")


def test_leases_are_given_back_at_the_end(stage):
    """The next daemon need not wait for a lease to run out."""
    stage.http("h")
    stage.configuration["engine"]["lease"] = "60s"
    stage.start("first").stop()
    assert stage.count("outbox_shards", "owner IS NOT NULL OR unclean") == 0
    started = time.monotonic()
    second = stage.start("second")
    assert time.monotonic() - started < 45      # and not a lease
    stage.insert("h", count=5, end="")
    stage.receiver.wait_count(5, 10)
    assert second.metric("duebox_shards_taken") == 0


def test_a_daemon_that_cannot_start_takes_nothing(stage):
    """What fails at the start fails before the daemon takes its place: a second `duebox run`
    whose admin port is taken must neither register nor take a shard from the one that works."""
    stage.http("h")
    first = stage.start("first")
    stage.execute("CREATE TABLE seen (id VARCHAR(64) PRIMARY KEY, text VARCHAR(255))")
    stage.execute("CREATE TRIGGER seen_instance AFTER INSERT ON outbox_instances FOR EACH ROW "
                  "INSERT IGNORE INTO seen VALUES (NEW.id, NEW.host)")
    stage.execute("CREATE TRIGGER seen_shard AFTER UPDATE ON outbox_shards FOR EACH ROW "
                  "INSERT IGNORE INTO seen VALUES (CONCAT(NEW.shard, '.', NEW.epoch), IFNULL(NEW.owner, ''))")
    owners = stage.execute("SELECT shard, owner, epoch FROM outbox_shards WHERE shard < 63 ORDER BY shard")
    second = stage.daemon("second", admin={"listen": f"127.0.0.1:{first.port}"})
    second.start(wait_ready=False)
    assert second.wait_end() == 69
    assert str(first.port) in second.wait_log("DUEBOX-ADMIN")["msg"]
    second._expected_end = True
    assert stage.execute("SELECT shard, owner, epoch FROM outbox_shards WHERE shard < 63 ORDER BY shard") == owners
    assert not stage.execute("SELECT text FROM seen WHERE text = 'second'")
    stage.daemons.remove(second)
    assert all(line["id"] != "DUEBOX-SHARD-ACQUIRED" for line in second.lines())


def test_a_daemon_that_holds_nothing_yet_says_that_the_database_answers(stage):
    """It is started anew after a crash: its shards, and its name, are those of the dead one until that one's leases end. It
    was not ready, for a database that answers well."""
    stage.configuration["engine"]["lease"] = "10m"
    stage.http("h")
    stage.start("one").kill9()
    stage.start("one")      # and waits until it is ready
    assert stage.execute("SELECT COUNT(DISTINCT owner) FROM outbox_shards WHERE shard < 63") == ((1,),)


def test_a_shard_whose_row_was_deleted_is_read_again(stage):
    """A careless DELETE, or a restore of some rows: the tasks of those shards used to wait for ever, while /readyz and
    doctor said that all was well. doctor names the shards while no daemon runs, one that runs puts the rows back, and is
    not ready before it has them."""
    stage.http("h")
    stage.configuration["engine"]["lease"] = "2s"
    daemon = stage.start()
    stage.execute("DELETE FROM outbox_shards WHERE shard IN (3, 7, 63)")
    stage.insert("h", count=64, end="")
    stage.receiver.wait_count(64, 60)
    assert {line["msg"].split()[0] for line in daemon.lines() if line["id"] == "DUEBOX-SHARD-REMADE"} == {
        "shard=3", "shard=7", "shard=63"}
    wait_until(lambda: daemon.api("GET", "/readyz")[0] == 200, 60, "the daemon to be ready again", detail=daemon.log_tail)
    assert daemon.metric("duebox_shards_held") == 8 and daemon.metric("duebox_shards_unowned") == 0
    assert stage.execute("SELECT shard, epoch FROM outbox_shards WHERE shard = 63") == ((63, 1),)
    daemon.stop()
    stage.execute("TRUNCATE outbox_shards")
    found = json.loads(daemon.run("doctor", "-o", "json", check=False).stdout)
    texts = [line["text"] for line in found if line["check"] == "shards" and line["level"] == "fail"]
    assert len(texts) == 1 and "0,1,2,3,4,5,6,7 and 63" in texts[0]


# -- reload -------------------------------------------------------------------------------


def test_reload_adds_changes_and_removes_routes(stage):
    stage.kafka("changed", history="1h")
    stage.kafka("removed")
    stage.kafka("same")
    added = stage.topic()
    daemon = stage.start()
    first = stage.consume_kafka("changed", "removed", "same")
    for route in ("changed", "removed", "same"):
        stage.insert(route, b"before", count=5, kept=route == "changed")
    stage.wait_empty(20)
    routes = stage.configuration["routes"]
    routes["added"] = {"via": "bus", "topic": added}
    routes["changed"] = {**routes["changed"], "topic": added, "history": "0"}
    removed = routes.pop("removed")
    assert daemon.reload({**daemon.configuration, "routes": routes})
    stage.consume_kafka("added")
    assert set(routes_of(daemon)) >= {"added", "changed", "same"}
    for route in ("added", "changed", "same"):
        stage.insert(route, b"after", count=5)
    held = stage.insert("removed", b"after", count=5)
    for message_id in held:
        stage.wait_row(message_id, 20, state="held")
    stage.wait_empty(20, "state <> 'held'")
    assert daemon.reload({**daemon.configuration, "routes": {**routes, "removed": removed}})
    stage.wait_empty(20)
    stage.check()
    after = [record for record in first.records if record["value"] == b"after"]
    assert {record["topic"] for record in after} == {stage.destination("same"), removed["topic"]}


def test_a_reload_uses_a_plugin_that_had_no_route(stage):
    """A route that a reload adds over an idle plugin instance is served, and a higher concurrency is used: a reload that
    is accepted keeps its word."""
    gate = threading.Event()
    stage.receiver.on("/late", Answer(200, after=gate))
    stage.plugin("hooks", module="http", allow_private=True)
    stage.plugin("idle", module="http", allow_private=True)
    stage.http("first")
    daemon = stage.start()
    stage.consume_http()
    late = {"via": "idle", "url": f"{stage.receiver.url}/late", "concurrency": 2}
    routes = stage.configuration["routes"]
    assert daemon.reload({**daemon.configuration, "routes": {**routes, "late": late},
                          "engine": {**daemon.configuration["engine"], "settle_delay": "1ms", "hang": "5m"}})
    stage.insert("late", count=40)
    try:
        wait_until(lambda: routes_of(daemon)["late"]["inflight"] == 2, 60, "two calls at once", detail=daemon.log_tail)
        assert daemon.reload({**daemon.configuration, "routes": {**routes, "late": {**late, "concurrency": 30}}})
        wait_until(lambda: routes_of(daemon)["late"]["inflight"] == 30, 60, "thirty calls at once",
                   detail=daemon.log_tail)
    finally:
        gate.set()
    stage.wait_empty(60)
    assert not daemon.reload({**daemon.configuration, "routes": {**routes, "late": {**late, "concurrency": 5000}}})
    assert "restart" in daemon.wait_log("DUEBOX-RELOAD-REFUSED")["msg"]
    stage.check()


def test_a_reload_changes_when_outcomes_are_written(stage):
    """engine.settle_delay and settle_rows are live: what is done after a reload that makes them larger is written later."""
    stage.http("h", claim="memory")
    daemon = stage.start()
    stage.consume_http()
    engine = daemon.configuration["engine"]
    assert daemon.reload({**daemon.configuration, "engine": {**engine, "settle_delay": "5s", "settle_rows": 100000}})

    def stays(number):
        stage.insert("h")
        stage.receiver.wait_count(number, 60, "/h")
        (until,) = stage.execute("SELECT CAST(UTC_TIMESTAMP(6) + INTERVAL 1 SECOND AS CHAR)")[0]
        wait_until(lambda: stage.execute(f"SELECT UTC_TIMESTAMP(6) > '{until}'") == ((1,),), 60, "a second to pass")
        return stage.count() > 0
    assert any(stays(number) for number in range(1, 6))     # a machine may stand still for that long, but not always
    assert daemon.reload({**daemon.configuration, "engine": engine})
    stage.wait_empty(60)
    stage.check()


BROKEN = {
    "unknown key": ("concurrency:", "concurency:", "concurency"),
    "wrong type": ("concurrency: 7", "concurrency: many", "concurrency"),
    "unknown plugin": ("via: hooks", "via: hoks", "hoks"),
    "no YAML": ("routes:", "routes: [", "duebox.yaml"),
    "plugin option": ("allow_private: true", "allow_private: true\n    user_agent: x", "restart"),
    "other database": ("name: ", "name: another_", "restart"),
}


@pytest.mark.parametrize("old, new, word", BROKEN.values(), ids=BROKEN)
def test_a_reload_of_a_broken_file_changes_nothing_and_says_so(stage, old, new, word):
    stage.http("h", concurrency=7)
    daemon = stage.start()
    stage.consume_http()
    text = daemon.path.read_text()
    assert old in text
    daemon.configure(text.replace(old, new, 1))
    mark = daemon.mark()
    assert not daemon.reload()
    line = daemon.wait_log("DUEBOX-RELOAD-REFUSED", after=mark)
    assert word in line["msg"] and "nothing was changed" in line["msg"]
    if word != "restart":
        assert "duebox.yaml:" in line["msg"]
    assert daemon.metric("duebox_reloads_refused") == 1
    stage.insert("h", count=5)
    stage.wait_empty(20)
    daemon.configure(text)
    assert daemon.reload()
    stage.check()


def test_reload_under_load_loses_nothing(stage):
    """Limits and destinations change many times while tasks are in flight."""
    topics = [stage.topic(), stage.topic()]
    stage.kafka("k", topic=topics[0])
    stage.http("h", concurrency=5)
    stage.kafka("other", topic=topics[1])
    daemon = stage.start()
    stage.consume_kafka("k", "other")
    stage.consume_http()
    for delay_ms in range(0, 4000, 20):
        stage.insert("k", b"k", delay_ms=delay_ms, count=5)
        stage.insert("h", b"h", delay_ms=delay_ms)
    for number in range(10):
        routes = {**daemon.configuration["routes"],
                  "k": {"via": "bus", "topic": topics[number % 2], "concurrency": 10 + number},
                  "h": {**daemon.configuration["routes"]["h"], "concurrency": 1 + number}}
        assert daemon.reload({**daemon.configuration, "routes": routes})
    stage.wait_empty(40)
    stage.check()


def test_reload_by_api_and_by_command(stage):
    stage.http("h")
    daemon = stage.start()
    mark = daemon.mark()
    assert daemon.api("POST", "/api/v1/reload", {})[0] == 200
    daemon.wait_log("DUEBOX-RELOADED", after=mark)
    mark = daemon.mark()
    daemon.run("reload")
    daemon.wait_log("DUEBOX-RELOADED", after=mark)
    assert daemon.metric("duebox_reloads") == 2


# -- several daemons ----------------------------------------------------------------------


def test_two_daemons_share_and_hand_over(stage):
    """A second daemon takes its half without a copy too many, a third of the load later the
    first leaves, and the second goes on alone."""
    stage.kafka("k")
    stage.amqp("a")
    stage.http("h")
    first = stage.start("first")
    stage.consume_kafka("k")
    stage.consume_amqp("a")
    stage.consume_http()
    shards = shards_held(first)
    assert shards == stage.count("outbox_shards", "shard < 63")
    for delay_ms in range(0, 9000, 25):
        for route in ("k", "a", "h"):
            stage.insert(route, delay_ms=delay_ms, count=3)
    second = stage.start("second")
    wait_until(lambda: shards_held(first) == shards_held(second) == shards / 2, 20, "the daemons to share",
               detail=second.log_tail)
    for daemon in (first, second):
        before = daemon.metric("duebox_settled_rows")

        def works(daemon=daemon, before=before):
            stage.insert("k", count=10)
            return daemon.metric("duebox_settled_rows") > before
        wait_until(works, 20, f"{daemon.name} to work")
    first.stop()
    wait_until(lambda: shards_held(second) == shards, 20, "the second daemon to have all", detail=second.log_tail)
    stage.wait_empty(40)
    stage.check()


def test_a_daemon_that_ends_keeps_no_shards_beside_those_of_its_calls(stage):
    """Its last call is slow: what waits in the other shards, of whichever route, goes by the second daemon meanwhile.
    (It waited for as long as engine.drain_timeout.)"""
    stage.http("slow", timeout="300s")
    stage.http("quick")
    stage.configuration["engine"]["drain_timeout"] = "10m"
    first = stage.start("first")
    answered = threading.Event()
    stage.receiver.on("/slow", Answer(200, after=answered))
    stage.consume_http()
    shards = shards_held(first)
    [slow] = stage.insert("slow")
    stage.receiver.wait_count(1, 20)
    second = stage.start("second")
    its_shard = stage.row(slow)["shard"]
    first.signal(signal.SIGTERM)
    first.wait_log("DUEBOX-DRAINING")
    stage.insert("quick", count=20 * shards)
    try:
        stage.wait_empty(60, f"route = 'quick' AND shard <> {its_shard}")
        assert shards_held(second) == shards - 1 and first.alive()
    finally:
        answered.set()
    assert first.wait_end(60) == 0
    stage.wait_empty(60)
    stage.check()


def test_three_daemons_come_and_go(stage):
    stage.kafka("k")
    stage.daemon("first").start()
    stage.consume_kafka("k")
    for delay_ms in range(0, 8000, 20):
        stage.insert("k", delay_ms=delay_ms, count=5)
    second, third = stage.start("second"), stage.start("third")
    wait_until(lambda: all(shards_held(daemon) >= 2 for daemon in stage.daemons), 20, "three to share")
    second.stop()
    second.start()
    third.stop()
    wait_until(lambda: shards_held(stage.daemons[0]) == shards_held(second) == 4, 20, "two to share")
    stage.wait_empty(40)
    stage.check()


def test_only_its_host_runs_a_targeted_task(stage):
    stage.http("h", history="1h")
    first, second = stage.start("first"), stage.start("second")
    wait_until(lambda: shards_held(first) == shards_held(second), 20, "the daemons to share")
    stage.execute("INSERT INTO outbox (route, payload, target_host) VALUES "
                  + ", ".join(["('h', 'for the second', 'second')"] * 40))
    wait_until(lambda: stage.count("outbox_history", "state = 'done'") == 40, 20, "the targeted tasks to be done",
               detail=stage.living)
    hosts = stage.execute("SELECT DISTINCT i.host FROM outbox_history h JOIN outbox_instances i ON i.id = h.claimed_by")
    assert hosts == (("second",),)


def test_a_route_that_was_paused_before_the_start_sends_nothing(stage):
    """What people have set is read before any row is."""
    stage.http("h")
    stage.http("other")
    stage.consume_http()
    daemon = stage.start()
    daemon.run("route", "pause", "h")
    daemon.stop()
    waiting = stage.insert("h", count=20, end="")
    stage.insert("other", count=20)
    daemon.start()
    stage.wait_empty(30, "route = 'other'")
    assert stage.count("outbox", "route = 'h' AND attempt = 0") == len(waiting)
    assert not stage.ledger.arrived_ids() & set(waiting)


def test_a_reload_that_drops_a_route_sends_nothing_twice(stage):
    """A call is out, its claim in memory, when its route goes: the answer counts, and nothing is sent when it is back."""
    stage.http("h", claim="memory", timeout="20s")
    stage.http("other")
    end = threading.Event()
    stage.receiver.on("/h", Answer(200, after=end))
    stage.consume_http()
    daemon = stage.start()
    stage.insert("h")
    stage.wait_arrived(1, 30)
    routes = dict(stage.configuration["routes"])
    without = {name: route for name, route in routes.items() if name != "h"}
    assert daemon.reload({**daemon.configuration, "routes": without})
    end.set()
    stage.wait_empty(30)
    assert daemon.reload({**daemon.configuration, "routes": routes})
    stage.insert("h")
    stage.wait_empty(30)
    stage.check()


def test_strangers_leave_descriptors_to_the_routes(stage):
    """Whoever reaches a listener can open connections to it, and no route lacks a descriptor for that (P8)."""
    stage.program = ["prlimit", "--nofile=64:200", str(preset_folder() / "bin" / "duebox")]
    stage.http("work", history="1h")
    daemon = stage.start("one")
    assert daemon.metric("process_max_fds") == 200      # the soft limit was raised
    daemon.wait_log("HTTP-FILES-FEW")
    with contextlib.ExitStack() as strangers:
        for _ in range(250):
            stranger = strangers.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
            stranger.sendall(b"GET /healthz HT")
        for number in range(5):
            stage.execute("INSERT INTO outbox (route, payload, message_id) VALUES ('work', '{}', %s)", f"m{number}")
            open_files = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
            assert open_files < 150
            assert stage.wait_row(f"m{number}", 60, state="done")["failures"] == 0


def test_endpoints_that_do_not_answer_leave_descriptors_to_the_daemon(stage):
    """Their calls take what files there are for connections, and no more: the listeners and other routes go on (P8)."""
    stage.program = ["prlimit", "--nofile=128:128", str(preset_folder() / "bin" / "duebox")]
    end = threading.Event()
    stage.http("good")
    for number in range(4):
        stage.receiver.on(f"/dead{number}", Answer(200, after=end))
        stage.http(f"dead{number}", timeout="60s")
    daemon = stage.start()
    daemon.wait_log("HTTP-FILES-FEW")
    stage.execute("INSERT INTO outbox (route, payload) VALUES " + ", ".join(
        f"('dead{number}', '{{}}')" for number in range(4) for _ in range(40)))
    daemon.wait_log("DUEBOX-ROUTE-SUSPENDED", text="no file is left for a connection")
    assert len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir())) <= 100
    assert daemon.api("GET", "/healthz", limit_s=20)[0] == 200
    assert daemon.metric("process_max_fds") == 128
    end.set()
    stage.consume_http()
    stage.insert("good")
    stage.wait_empty(60)
