"""Servers that are down, refuse us, or lack what we need: the daemon stays up, says what
is wrong and what to do, keeps the routes going that can go, and recovers by itself."""

import contextlib
import os
import re
import signal
import socket
import time
from datetime import datetime, timedelta

import pytest

from support.servers.http_receiver import Answer, HttpReceiver
from support.stage import REMOTE_PASSWORD as PASSWORD
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

RECOVERY_S = 40
DUPLICATES = 200        # copies that a cut connection may cause: what is in flight at most


def not_ready(daemon, limit_s=20):
    """Wait until /readyz says no; returns why.  The process lives and /healthz is well."""
    def answer():
        try:
            status, body = daemon.api("GET", "/readyz")
        except OSError:
            return None
        return body if status == 503 else None
    body = wait_until(answer, limit_s, "/readyz to say 503", detail=daemon.log_tail)
    assert daemon.alive() and daemon.api("GET", "/healthz")[0] == 200
    return body["detail"]


def recovers(stage, route, count=50):
    """Ready again by itself, and tasks arrive."""
    stage.daemons[0].wait_ready(RECOVERY_S)
    stage.insert(route, b"after", count=count)
    stage.wait_empty(RECOVERY_S)


def behind(stage, proxy, lease):
    """A daemon that reaches the database through the proxy and that may wait long for it."""
    stage.configuration["engine"]["lease"] = lease
    user = f"{stage.database[-20:]}_silent"
    stage.mariadb.create_user(user, PASSWORD, [f"ALL ON `{stage.database}`.*"])
    daemon = stage.daemon("cut")
    daemon.configure({**daemon.configuration, "database": {
        "host": "127.0.0.1", "port": proxy.port, "user": user, "password": PASSWORD, "name": stage.database,
        "connect_timeout": "120s", "read_timeout": "120s"}})
    return daemon


def leases_run(stage, past):
    """Wait until every lease runs beyond that time; none ends meanwhile."""
    def renewed():
        [[until, now]] = stage.execute("SELECT MIN(lease_until), UTC_TIMESTAMP(6) FROM outbox_shards WHERE shard < 63")
        assert until > now, "the leases have ended"
        return until > past
    wait_until(renewed, 120, f"the leases to be renewed beyond {past}", detail=stage.daemons[0].log_tail)


def test_a_connection_that_falls_silent_as_it_is_made_costs_no_lease(stage):
    """Leases are had while the session that is to renew them is still being opened."""
    with TcpProxy(stage.mariadb.port) as proxy:
        daemon = behind(stage, proxy, "12s")
        proxy.deafen_at(b"duebox_purpose\x06leases")
        daemon.start()
        wait_until(lambda: daemon.metric("duebox_shards_held") == 8, 60, "the daemon to hold all shards")
        [[first]] = stage.execute("SELECT MAX(lease_until) FROM outbox_shards WHERE shard < 63")
        leases_run(stage, first)
        assert proxy.deafened.is_set()
        assert daemon.metric("duebox_leases_lost") == 0
        proxy.drop()
        proxy.restore()


def test_connections_that_fell_silent_cost_no_lease(stage):
    """A firewall that forgets connections: what was open gets no answer any more, what is new works.
    Leases are renewed on a new connection in time, though database.read_timeout is far longer."""
    with TcpProxy(stage.mariadb.port) as proxy:
        daemon = behind(stage, proxy, "30s")
        daemon.start()
        wait_until(lambda: daemon.metric("duebox_shards_held") == 8, 60, "the daemon to hold all shards")
        proxy.deafen()
        [[deafened]] = stage.execute("SELECT UTC_TIMESTAMP(6)")
        owners = stage.execute("SELECT shard, owner, epoch FROM outbox_shards WHERE shard < 63")
        leases_run(stage, deafened + timedelta(seconds=40))
        assert stage.execute("SELECT shard, owner, epoch FROM outbox_shards WHERE shard < 63") == owners
        assert daemon.metric("duebox_leases_lost") == 0
        proxy.drop()        # so that it need not wait for the rest of its connections to end
        proxy.restore()


# -- the database ---------------------------------------------------------------------


def test_database_down_at_start(remote):
    remote.http("h")
    daemon = remote.daemon()
    remote.consume_http()
    remote.proxy.drop()
    daemon.start(wait_ready=False)
    daemon.wait_log("DUEBOX-DB-TROUBLE", "DUEBOX-LEASE-TROUBLE", text=str(remote.proxy.port))
    assert "database" in not_ready(daemon)
    remote.insert("h", b"before", count=50)
    remote.proxy.restore()
    recovers(remote, "h")
    remote.check()


@pytest.mark.parametrize("verb", ["drop", "reset", "blackhole"])
def test_database_down_in_the_middle(remote, verb):
    """For longer than the lease: what is in flight then may be sent again, nothing is lost."""
    remote.kafka("k", concurrency=100)
    remote.http("h", concurrency=20, timeout="2s", retry={"backoff": "200ms", "max": "1s"})
    daemon = remote.daemon().start()
    remote.consume_kafka("k")
    remote.consume_http()
    for delay_ms in range(0, 6000, 100):
        remote.insert("k", b"kafka", delay_ms=delay_ms, count=5)
        remote.insert("h", b"http", delay_ms=delay_ms)
    remote.wait_arrived(20, 20)
    getattr(remote.proxy, verb)()
    if verb != "reset":         # which only cuts what is open
        not_ready(daemon)
    remote.proxy.restore()
    recovers(remote, "k")
    remote.check(duplicates=DUPLICATES)


def test_database_refuses_the_password(remote):
    remote.http("h")
    daemon = remote.daemon()
    remote.consume_http()
    remote.mariadb.execute(f"ALTER USER '{remote.user}'@'%' IDENTIFIED BY 'changed'")
    remote.insert("h", b"before", count=5)
    daemon.start(wait_ready=False)
    line = daemon.wait_log("DUEBOX-DB-REFUSED", "DUEBOX-LEASE-TROUBLE", text=remote.user)
    assert "password" in line["msg"]
    not_ready(daemon)
    remote.mariadb.execute(f"ALTER USER '{remote.user}'@'%' IDENTIFIED BY '{PASSWORD}'")
    recovers(remote, "h")
    remote.check()


def test_the_same_trouble_is_logged_seldom(remote):
    """Each thread says it at once, then after ten seconds and more, with how often it came meanwhile."""
    remote.http("h")
    daemon = remote.daemon()
    remote.mariadb.execute(f"ALTER USER '{remote.user}'@'%' IDENTIFIED BY 'changed'")
    daemon.start(wait_ready=False)
    again = r" \((\d+) more times since this was said last\)"
    daemon.wait_log("DUEBOX-DB-REFUSED", text="more times since")
    said = {}
    for line in daemon.lines():
        if "password" in line["msg"]:
            said.setdefault((line["id"], re.sub(again, "", line["msg"])), []).append(datetime.fromisoformat(line["time"]))
    assert len(said) >= 4, said         # scheduler, settler, results and keeper; the binlog's once
    for text, times in said.items():
        assert all(later - earlier > timedelta(seconds=9) for earlier, later in zip(times, times[1:])), (text, times)
    assert all(int(count) > 0 for line in daemon.lines() for count in re.findall(again, line["msg"]))
    remote.mariadb.execute(f"ALTER USER '{remote.user}'@'%' IDENTIFIED BY '{PASSWORD}'")
    recovers(remote, "h")


def test_missing_tables(remote):
    remote.http("h")
    daemon = remote.daemon(migrate=False).start(wait_ready=False)
    assert "duebox migrate" in daemon.wait_log("DUEBOX-DB-REFUSED", "DUEBOX-LEASE-TROUBLE")["msg"]
    not_ready(daemon)
    remote.migrate(daemon)
    remote.consume_http()
    recovers(remote, "h")
    remote.check()


def test_a_right_that_comes_back(remote):
    """Where rights are given for the whole database the server fixes them when a session begins. (The daemon asked again
    on the sessions that were refused, for ever, until it was restarted.)"""
    remote.http("h")
    daemon = remote.daemon().start()
    remote.consume_http()
    whose = f"ON `{remote.database}`.*", f"'{remote.user}'@'%'"
    remote.mariadb.execute("REVOKE UPDATE {} FROM {}".format(*whose))
    remote.proxy.reset()        # as a failover does
    wait_until(lambda: "leases" in not_ready(daemon, 60), 60, "/readyz to name the leases", detail=daemon.log_tail)
    remote.mariadb.execute("GRANT UPDATE {} TO {}".format(*whose))
    recovers(remote, "h", count=5)
    remote.check()


def test_a_table_that_vanishes_and_comes_back(remote):
    remote.http("h", history="1h")
    daemon = remote.daemon().start()
    remote.consume_http()
    remote.insert("h", b"before", kept=True)
    remote.wait_empty(20)
    mark = daemon.mark()
    remote.execute("RENAME TABLE outbox TO away")
    daemon.wait_log("DUEBOX-DB-REFUSED", after=mark)
    not_ready(daemon)
    remote.execute("RENAME TABLE away TO outbox")
    daemon.wait_ready(RECOVERY_S)
    remote.insert("h", b"after", count=5, kept=True)
    remote.wait_empty(RECOVERY_S)
    remote.check()


def test_a_read_only_database(remote):
    """As when it is demoted to a replica: every publish would be repeated, so none is made."""
    remote.kafka("k", concurrency=100)
    daemon = remote.daemon().start()
    remote.consume_kafka("k")
    remote.insert("k", b"before", count=100)
    remote.wait_empty(20)
    remote.mariadb.set_read_only(True)
    try:
        remote.insert("k", b"meanwhile", count=300)     # root may still write
        not_ready(daemon)
        wait_until(lambda: any("read-only" in line["msg"] or "read_only" in line["msg"] for line in daemon.lines()), 20,
                   "the log to say why", detail=daemon.log_tail)
    finally:
        remote.mariadb.set_read_only(False)
    recovers(remote, "k")
    remote.check(duplicates=100)


def test_trouble_with_housekeeping_is_called_that(stage):
    """What the server refuses of housekeeping is said in these words, and nobody who reads the log fears for the leases.
    (It was logged as "leases cannot be kept up".)"""
    stage.http("h")
    daemon = stage.daemon()
    stage.consume_http()
    stage.execute("INSERT INTO outbox_audit (at, actor, verb, filter, changed) VALUES ('2020-01-01', 'ann', 'cancel', '', 1)")
    stage.execute("CREATE TRIGGER refuse BEFORE DELETE ON outbox_audit FOR EACH ROW"
                  " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no thanks'")
    daemon.start()
    assert "no thanks" in daemon.wait_log("DUEBOX-HOUSEKEEPING-TROUBLE", limit_s=60)["msg"]
    assert not {line["id"] for line in daemon.lines()} & {"DUEBOX-LEASE-TROUBLE", "DUEBOX-SHARD-TROUBLE"}
    stage.insert("h", count=5)
    stage.wait_empty(60)


def test_leases_that_cannot_be_renewed(remote):
    """Reading works, and yet nothing may be sent: readiness turns false and says why."""
    remote.http("h")
    daemon = remote.daemon().start()
    remote.consume_http()
    remote.execute("RENAME TABLE outbox_shards TO away")
    wait_until(lambda: "leases" in not_ready(daemon, 60), 60, "/readyz to name the leases", detail=daemon.log_tail)
    assert daemon.metric("duebox_problems") >= 1 and daemon.metric("duebox_ready") == 0
    assert "leases" in daemon.run("doctor", check=False).stdout
    remote.execute("RENAME TABLE away TO outbox_shards")
    recovers(remote, "h", count=5)
    remote.check()


def says_that_nothing_is_read(daemon):
    wait_until(lambda: "reading due tasks from it, has failed" in not_ready(daemon, 60), 60, "/readyz to say so",
               detail=daemon.log_tail)
    assert daemon.metric("duebox_db_up") == 0 and daemon.metric("duebox_ready") == 0
    assert daemon.api("GET", "/api/v1/stats")[1]["database"]["up"] is False
    assert daemon.metric("duebox_oldest_due_age_seconds", route="h") > 20


def test_a_table_that_cannot_be_polled(stage):
    """No due task is found, and all else goes on: the leases are renewed, and the server answers each poll, with an error.
    (/readyz and all metrics said that all was well.)"""
    stage.http("h")
    daemon = stage.start()
    stage.consume_http()
    stage.insert("h", delay_ms=3000)
    wait_until(lambda: daemon.metric("duebox_next_due_timestamp_seconds", route="h") > 0, 20, "the task to be seen")
    with contextlib.closing(stage.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES outbox WRITE")
        says_that_nothing_is_read(daemon)
        cursor.execute("UNLOCK TABLES")
    recovers(stage, "h", count=5)
    assert daemon.metric("duebox_db_up") == 1
    stage.check()


def test_due_tasks_that_cannot_be_read(remote):
    """Each poll finds them, for it needs the index alone, and each read fails. (The database was up again after each poll,
    and so was /readyz.)"""
    remote.http("h")
    daemon = remote.daemon()
    user, table = f"'{remote.user}'@'%'", f"`{remote.database}`.outbox"
    for (name,) in remote.execute("SHOW TABLES"):
        remote.mariadb.execute(f"GRANT ALL ON `{remote.database}`.`{name}` TO {user}")
    remote.mariadb.execute(f"REVOKE ALL ON `{remote.database}`.* FROM {user}")
    daemon.start()
    remote.consume_http()
    columns = remote.execute("SELECT GROUP_CONCAT(column_name) FROM information_schema.columns WHERE table_schema = "
                             "DATABASE() AND table_name = 'outbox' AND column_name <> 'payload'")[0][0]
    remote.mariadb.execute(f"REVOKE SELECT ON {table} FROM {user}")
    remote.mariadb.execute(f"GRANT SELECT ({columns}) ON {table} TO {user}")
    remote.insert("h")
    says_that_nothing_is_read(daemon)
    remote.mariadb.execute(f"GRANT SELECT ON {table} TO {user}")
    recovers(remote, "h", count=5)
    remote.check()


# -- brokers and hooks ------------------------------------------------------------------


def suspended(daemon, route, limit_s=40):
    """Wait until the API shows the route as suspended; returns the reason."""
    def reason():
        routes = daemon.api("GET", "/api/v1/routes")[1]["routes"]
        return next((one["reason"] for one in routes if one["name"] == route and one["suspended"]), None)
    return wait_until(reason, limit_s, f"route {route} to be suspended", detail=daemon.log_tail)


def others_go_on(stage, route="other"):
    """The routes of other destinations work meanwhile."""
    before = len(stage.ledger.arrivals)
    stage.insert(route, b"other", count=20)
    wait_until(lambda: len(stage.ledger.arrivals) >= before + 20, 20, f"20 tasks of route {route}")


@pytest.fixture
def other(stage):
    """A route to the HTTP receiver that must not suffer."""
    stage.http("other")
    stage.consume_http()
    return stage


def test_amqp_down_at_start_and_in_the_middle(other):
    with TcpProxy(other.rabbitmq.port) as proxy:
        other.plugin("rabbit", module="amqp", url=f"amqp://guest:guest@127.0.0.1:{proxy.port}/%2f")
        other.amqp("a", concurrency=100)
        proxy.drop()
        daemon = other.start()
        other.consume_amqp("a")
        other.insert("a", b"at start", count=100)
        assert str(proxy.port) in suspended(daemon, "a")
        others_go_on(other)
        proxy.restore()
        other.wait_arrived(120, RECOVERY_S)
        other.wait_empty(RECOVERY_S)
        other.compare()
        other.insert("a", b"in the middle", count=300, delay_ms=300)
        proxy.drop()
        suspended(daemon, "a")
        others_go_on(other)
        proxy.restore()
        other.wait_empty(RECOVERY_S)
        other.check(duplicates=100)


def test_amqp_refuses_the_password(other):
    rabbitmq = other.rabbitmq
    rabbitmq.ctl("add_user", other.name, "changed")
    rabbitmq.ctl("set_permissions", other.name, ".*", ".*", ".*")
    other.plugin("rabbit", module="amqp", url=f"amqp://{other.name}@127.0.0.1:{rabbitmq.port}/%2f", password=PASSWORD)
    other.amqp("a")
    daemon = other.start()
    other.consume_amqp("a")
    other.insert("a", b"a", count=10)
    assert "403" in suspended(daemon, "a") or "refused" in suspended(daemon, "a").lower()
    assert PASSWORD not in daemon.log.read_text()
    others_go_on(other)
    rabbitmq.ctl("change_password", other.name, PASSWORD)
    other.wait_empty(RECOVERY_S)
    other.check()


def test_a_missing_queue(other):
    """The broker returns what it cannot route; that is no success, and no end either."""
    queue = f"{other.name}-later"
    other.amqp("a", routing_key=queue, retry={"backoff": "200ms", "max": "1s"}, max_attempts=1000)
    daemon = other.start()
    message_id = other.insert("a", b"a", end="", copies=1)[0]
    wait_until(lambda: other.attempts(message_id) or suspended(daemon, "a"), 20, "the missing queue to be seen")
    wait_until(lambda: queue in " ".join([str(other.row(message_id)["last_error"]),
                                          *(line["msg"] for line in daemon.lines())]), 20, "its name to be told")
    others_go_on(other)
    other.rabbitmq.declare_queue(queue)
    other.wait_empty(RECOVERY_S)
    assert [message["properties"].message_id for message in other.rabbitmq.get_all(queue)] == [message_id]


def test_a_missing_topic(other):
    topic = f"{other.name}-later"
    other.kafka("k", topic=topic, retry={"backoff": "200ms", "max": "1s"}, max_attempts=1000)
    daemon = other.start()
    other.insert("k", b"k", count=10)
    assert topic in suspended(daemon, "k")
    others_go_on(other)
    other.kafka_server.create_topic(topic)
    other.consume_kafka("k")
    other.wait_empty(RECOVERY_S)
    other.check()


def test_kafka_down_at_start(other, real_kafka):
    other.kafka("k")
    daemon = other.daemon()
    real_kafka.stop()
    try:
        daemon.start()
        other.insert("k", b"k", count=100)
        suspended(daemon, "k")
        others_go_on(other)
    finally:
        real_kafka.start()
    other.consume_kafka("k")
    other.wait_empty(RECOVERY_S)
    other.check()


def test_an_http_receiver_that_is_down(stage):
    """Connection refused burns no attempt."""
    with HttpReceiver() as good:
        stage.http("h")
        stage.route("other", via="hooks", url=f"{good.url}/other")
        daemon = stage.daemon()
        stage.consume_http()
        stage.receiver.stop()
        daemon.start()
        ids = stage.insert("h", b"h", count=100, end="")
        suspended(daemon, "h")
        stage.insert("other", b"other", count=20, end="")
        good.wait_count(20, 20)
        assert {stage.row(message_id)["failures"] for message_id in ids} == {0}
        stage.receiver.start()
        stage.wait_empty(RECOVERY_S)
        assert len(stage.receiver.requests) == 100


# -- what ends the daemon, with its exit code --------------------------------------------


def ends_with(daemon, status, *words):
    daemon.start(wait_ready=False)
    assert daemon.wait_end(20) == status
    log = daemon.log.read_text()
    assert all(word in log for word in words), log
    daemon.process = None       # this end was wanted


def test_a_broken_configuration_is_78(stage):
    stage.http("h")
    daemon = stage.daemon()
    daemon.configure(daemon.path.read_text().replace("via: hooks", "vai: hooks"))
    ends_with(daemon, os.EX_CONFIG, "duebox.yaml:", "via")


def test_a_taken_port_is_69(stage):
    stage.http("h")
    daemon = stage.daemon()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", daemon.port))
        taken.listen()
        ends_with(daemon, os.EX_UNAVAILABLE, str(daemon.port))


def test_sigterm_while_everything_is_down(remote):
    """A daemon that never reached its database ends in good time all the same."""
    remote.http("h")
    daemon = remote.daemon()
    remote.proxy.drop()
    daemon.start(wait_ready=False)
    daemon.wait_log("DUEBOX-STARTED")
    started = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_end(30) == 0
    assert time.monotonic() - started < 30


def test_what_a_server_does_to_character_sets_does_not_matter(stage):
    """init_connect with SET NAMES, a classic line of my.cnf: texts used to be changed on their way out, and an outcome
    that held one could never be written."""
    stage.http("h", history="1h")
    stage.receiver.on("/h", Answer(200, '{"status": "fail", "error": {"message": "é😀"}}'.encode(),
                                   {"Content-Type": "application/json"}))
    stage.mariadb.create_user("unprivileged", "secret", [f"ALL ON `{stage.database}`.*"])
    stage.mariadb.execute("SET GLOBAL init_connect = 'SET NAMES latin1'")
    try:
        stage.start(database={**stage.configuration["database"], "user": "unprivileged", "password": "secret"})
        stage.execute("INSERT INTO outbox (route, payload, headers) VALUES ('h', '', %s)", '{"x": "é😀"}')
        stage.wait_empty(60)
    finally:
        stage.mariadb.execute("SET GLOBAL init_connect = ''")
    [request] = stage.receiver.requests
    assert request.headers["x"].encode("latin1").decode() == "é😀"
    assert stage.execute("SELECT state, last_error FROM outbox_history") == (("dead", "é😀"),)


def test_a_session_that_begins_inside_a_transaction(stage):
    """init_connect that starts one, or a proxy that hands over a used connection: nothing was sent, and all was ready."""
    stage.http("h")
    stage.consume_http()
    stage.mariadb.create_user("unprivileged", "secret", [f"ALL ON `{stage.database}`.*"])
    stage.mariadb.execute("SET GLOBAL init_connect = 'START TRANSACTION', GLOBAL completion_type = 'CHAIN'")
    try:
        stage.start(database={**stage.configuration["database"], "user": "unprivileged", "password": "secret"})
        stage.insert("h", count=3)
        stage.wait_empty(60)
    finally:
        stage.mariadb.execute("SET GLOBAL init_connect = '', GLOBAL completion_type = DEFAULT")
    stage.check()


@pytest.mark.parametrize("algorithm", ["INSTANT", "COPY"])
def test_the_way_a_server_alters_tables_does_not_matter(stage, algorithm):
    """alter_algorithm is a setting for people's ALTERs. No partition was ever made or dropped with another than DEFAULT."""
    if not stage.execute("SHOW GLOBAL VARIABLES LIKE 'alter_algorithm'"):
        pytest.skip("this server has no alter_algorithm")
    stage.http("h", history="1h")
    stage.mariadb.execute(f"SET GLOBAL alter_algorithm = '{algorithm}'")
    try:
        stage.start()
        wait_until(lambda: stage.execute("SELECT COUNT(*) > 1 FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = DATABASE()"
                                         " AND TABLE_NAME = 'outbox_history'") == ((1,),), 60, "partitions of the history")
    finally:
        stage.mariadb.execute("SET GLOBAL alter_algorithm = 'DEFAULT'")
