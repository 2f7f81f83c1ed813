"""The harness itself: servers start, break and recover as tests rely on.

What is promised in tests/support/servers/README.md is proved here against the
real servers, and against the stand-in for Kafka.
"""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pika.exceptions
import pymysql
import pytest

from support.servers import REPOSITORY, ServerError
from support.servers.http_receiver import Answer
from support.servers.kafka import KafkaMock, fetch_jars
from support.servers.kafka_client import KafkaError
from support.servers.mariadb import MariaDB
from support.servers.ports import claim, free_port
from support.servers.process import Process
from support.servers.rabbitmq import RabbitMQ
from support.tcp_proxy import CHUNK, TcpProxy
from support.wait import WaitTimeout, wait_until

TESTS = REPOSITORY / "tests"


def python(code, **how):
    """Start another Python with `code`, which can import support."""
    return subprocess.Popen([sys.executable, "-c", code], cwd=TESTS,
                            stdout=subprocess.PIPE, text=True, **how)


# -- waiting --------------------------------------------------------------------


def test_wait_says_what_it_waited_for_and_saw():
    with pytest.raises(WaitTimeout, match="(?s)0.2 s for the moon.*last seen: 0.*details"):
        wait_until(lambda: 0, 0.05, "the moon", detail=lambda: "details")


def test_wait_ignores_only_what_it_is_told_to():
    answers = iter([KeyError("a"), KeyError("b")])

    def condition():
        for error in answers:
            raise error
        return "there"

    assert wait_until(condition, 5, "an answer", ignore=KeyError) == "there"
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0, 5, "an answer", ignore=KeyError)


# -- ports ------------------------------------------------------------------------


def test_a_port_is_reserved_before_anything_listens_on_it():
    port = free_port()
    other = python(f"from support.servers.ports import claim; print(claim({port}))")
    assert other.communicate()[0].strip() == "False"
    assert claim(port)


def test_a_port_in_use_is_not_claimed():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert not claim(taken.getsockname()[1])


# -- processes ----------------------------------------------------------------------


SPAWN = """
import time
from support.servers.process import Process
from support.servers.rabbitmq import RabbitMQ
child = Process.spawn(["sleep", "600"], log="/dev/null", background={background})
print(child.pid, child.started, flush=True)
time.sleep(600)
"""


def spawn_in_another_python(background):
    parent = python(SPAWN.format(background=background))
    pid, started = map(int, parent.stdout.readline().split())
    child = Process.attach({"pid": pid, "started": started})
    assert child.alive()
    return parent, child


def test_a_foreground_process_dies_with_a_killed_python():
    parent, child = spawn_in_another_python(background=False)
    parent.kill()
    parent.wait()
    child.wait(10)


def test_a_background_process_outlives_python():
    parent, child = spawn_in_another_python(background=True)
    parent.kill()
    parent.wait()
    assert child.alive()
    child.stop(10)
    assert not child.alive()


def test_a_process_outlives_the_thread_that_started_it(tmp_path):
    started = []
    thread = threading.Thread(target=lambda: started.append(
        Process.spawn(["sleep", "600"], log=tmp_path / "log")))
    thread.start()
    thread.join()
    assert started[0].alive()
    started[0].pause()
    started[0].stop(10)         # also when it was paused
    assert not started[0].alive()


def test_a_stranger_with_our_pid_is_never_signalled():
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        ours = Process.attach({"pid": stranger.pid, "started": 1})
        assert not ours.alive()
        ours.kill9()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_paused_process_has_stopped_with_all_its_threads(tmp_path):
    busy = [python("print('up', flush=True)\nwhile True: pass", start_new_session=True) for _ in range(6)]
    for other in busy:
        other.stdout.readline()
    threads = ("import threading, time\n"
               "def work():\n"
               "    while True: time.sleep(0.0005)\n"
               "for _ in range(30): threading.Thread(target=work, daemon=True).start()\n"
               "open('up', 'w').close()\n"
               "work()\n")
    process = Process.spawn([sys.executable, "-c", threads], log=tmp_path / "log", cwd=tmp_path)
    try:
        wait_until((tmp_path / "up").exists, 30, "the process to have its threads")

        def states():
            return [stat.read_text().rpartition(")")[2].split()[0]
                    for stat in (Path("/proc") / str(process.pid) / "task").glob("*/stat")]

        for _ in range(50):
            process.pause()
            assert states() == ["T"] * 31
            process.resume()
            wait_until(lambda: "T" not in states(), 30, "every thread to go on")
    finally:
        for other in busy:
            other.kill()
            other.communicate()
        process.kill9()


# -- MariaDB ------------------------------------------------------------------------


def test_mariadb_that_cannot_start_shows_its_log(tmp_path):
    with pytest.raises(ServerError, match="(?s)ended by itself.*no-such-option"):
        MariaDB(tmp_path, extra_args=["--no-such-option"]).start()


def test_mariadb_is_as_durable_and_reachable_as_promised(mariadb):
    assert mariadb.execute(
        "SELECT @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@log_bin, @@binlog_format,"
        " @@performance_schema, @@skip_name_resolve") == ((1, 1, 1, "ROW", 0, 1),)
    with pytest.raises(pymysql.err.OperationalError):
        mariadb.connect(host="127.0.0.1")       # root is on the socket only


def test_mariadb_keeps_what_it_committed_when_killed(mariadb):
    name = mariadb.create_database("harness_crash")
    port = mariadb.port
    mariadb.execute("CREATE TABLE t (a INT PRIMARY KEY)", db=name)
    mariadb.execute("INSERT INTO t VALUES (%s)", 1, db=name)
    mariadb.kill9()
    assert not mariadb.alive()
    mariadb.start()
    assert mariadb.port == port
    assert mariadb.execute("SELECT a FROM t", db=name) == ((1,),)


def test_mariadb_user_has_just_its_grants(mariadb):
    name = mariadb.create_database("harness_user")
    mariadb.create_user("harness", "it's 100%", [f"ALL ON {name}.*"])
    connection = mariadb.connect(name, host="127.0.0.1", user="harness", password="it's 100%")
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT)")
        with pytest.raises(pymysql.err.OperationalError):
            cursor.execute("SELECT * FROM mysql.global_priv")
        mariadb.set_read_only(True)
        try:
            with pytest.raises(pymysql.err.OperationalError, match="read-only"):
                cursor.execute("INSERT INTO t VALUES (1)")
        finally:
            mariadb.set_read_only(False)
        cursor.execute("INSERT INTO t VALUES (1)")


def test_mariadb_paused_does_not_answer(mariadb):
    connection = mariadb.connect()
    connection._read_timeout = 0.2      # not for the handshake, which takes what it takes
    mariadb.pause()
    try:
        with pytest.raises(pymysql.err.OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        mariadb.resume()
    mariadb.wait_ready(10)


# -- RabbitMQ -----------------------------------------------------------------------


def test_rabbitmq_round_trip(rabbitmq):
    rabbitmq.declare_exchange("harness")
    queue = rabbitmq.declare_queue("harness.round")
    rabbitmq.bind(queue, "harness", "a.#")
    rabbitmq.publish("harness", "a.b", "one", headers={"x": 1}, message_id="m1")
    rabbitmq.publish("", queue, b"two")
    assert rabbitmq.queue_depth(queue) == 2
    first = rabbitmq.get(queue)
    assert (first["body"], first["headers"], first["routing_key"]) == (b"one", {"x": 1}, "a.b")
    assert first["properties"].message_id == "m1"
    assert [message["body"] for message in rabbitmq.get_all(queue)] == [b"two"]
    assert rabbitmq.get_all(queue) == []
    with pytest.raises(pika.exceptions.UnroutableError):
        rabbitmq.publish("harness", "nobody.listens", "lost")


def test_rabbitmq_keeps_confirmed_messages_when_killed(rabbitmq):
    queue = rabbitmq.declare_queue("harness.crash")
    rabbitmq.publish("", queue, "kept")
    rabbitmq.kill9()
    rabbitmq.start()
    assert rabbitmq.get(queue)["body"] == b"kept"


def test_rabbitmq_memory_alarm_blocks_publishers(rabbitmq):
    queue = rabbitmq.declare_queue("harness.alarm")
    rabbitmq.set_memory_alarm(True)
    try:
        with rabbitmq.connect(blocked_connection_timeout=0.2) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            with pytest.raises(pika.exceptions.ConnectionBlockedTimeout):
                channel.basic_publish("", queue, b"waits")
    finally:
        rabbitmq.set_memory_alarm(False)
    rabbitmq.publish("", queue, "passes")


def test_rabbitmq_shares_nothing(rabbitmq):
    assert rabbitmq.epmd_port != 4369
    assert (rabbitmq.folder / "home" / ".erlang.cookie").exists()
    assert rabbitmq.node in rabbitmq.ctl("cluster_status")


# -- Kafka --------------------------------------------------------------------------


def round_trip(kafka, topic):
    kafka.create_topic(topic, 3)
    kafka.produce(topic, "k", "v\0\xff", {"a": "1"})
    kafka.produce(topic, None, None, [("h", b""), ("h", None), ("h", b"\0")])
    records = {record["key"]: record for record in kafka.consume_all(topic)}
    assert set(records) == {b"k", None}
    assert records[b"k"]["value"] == "v\0\xff".encode()
    assert records[b"k"]["headers"] == [("a", b"1")]
    assert records[None]["value"] is None
    assert records[None]["headers"] == [("h", b""), ("h", None), ("h", b"\0")]
    assert abs(records[b"k"]["timestamp"] / 1000 - time.time()) < 60


def test_kafka_round_trip(kafka):
    round_trip(kafka, "harness-round")


def test_kafka_has_no_topic_that_was_not_created(real_kafka):
    assert real_kafka.client.partitions("harness-never") == 0
    real_kafka.create_topic("harness-made", 1, {"retention.ms": "1000000"})
    with pytest.raises(KafkaError, match="already exists"):
        real_kafka.create_topic("harness-made", 1)
    real_kafka.delete_topic("harness-made")
    wait_until(lambda: "harness-made" not in real_kafka.client.topics(), 10, "the topic to go")


def test_kafka_tail_goes_on_over_a_crash(real_kafka):
    topic = real_kafka.create_topic("harness-tail", 4)
    with real_kafka.tail(topic) as tail:
        real_kafka.produce_many(topic, ((str(i), "x" * 100) for i in range(20000)))
        tail.wait_count(20000, 30)
        real_kafka.kill9()
        real_kafka.start()
        before = time.time()
        real_kafka.produce(topic, "last", "after the crash")
        last = tail.wait_count(20001, 30)[-1]
        assert before <= last["arrived"] <= time.time()
    assert len({(record["partition"], record["offset"]) for record in tail.records}) == 20001
    assert len(real_kafka.consume_all(topic)) == 20001


def test_kafka_tail_from_the_end_misses_nothing(kafka):
    topic = kafka.create_topic("harness-end", 4)
    kafka.produce(topic, "before", "b")
    with kafka.tail(topic, from_beginning=False) as tail:
        kafka.produce_many(topic, ((str(i), "x") for i in range(100)))
        tail.wait_count(100, 30)
        assert b"before" not in {record["key"] for record in tail.records}


def test_kafka_mock_stands_in(tmp_path):
    with KafkaMock(tmp_path) as mock:
        assert not mock.is_real
        round_trip(mock, "harness-round")


def test_an_altered_jar_is_refused(real_kafka, tmp_path, monkeypatch):
    altered = tmp_path / fetch_jars().name
    shutil.copytree(fetch_jars(), altered, copy_function=os.symlink)
    (altered / "jopt-simple-5.0.4.jar").unlink()
    (altered / "jopt-simple-5.0.4.jar").write_bytes(b"not it")
    monkeypatch.setenv("DUEBOX_CACHE", str(tmp_path))
    with pytest.raises(ServerError, match="jopt-simple-5.0.4.jar"):
        fetch_jars()


# -- HTTP receiver --------------------------------------------------------------------


def ask(receiver, path="/", body=b"", connection=None, **headers):
    connection = connection or http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=60)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_receiver_records_requests(http_receiver):
    connection = http.client.HTTPConnection("127.0.0.1", http_receiver.port)
    before = time.time()
    assert ask(http_receiver, "/a?b=1", b"\0body", connection, **{"X-Id": "7"}) == (200, b"")
    assert ask(http_receiver, "/c", iter([b"in ", b"chunks"]), connection) == (200, b"")
    first, second = http_receiver.wait_count(2, 5)
    assert (first.method, first.path, first.body, first.headers["x-id"]) == (
        "POST", "/a?b=1", b"\0body", "7")
    assert second.body == b"in chunks"
    assert first.connection == second.connection == 1       # kept alive
    assert before <= first.arrived <= second.arrived <= time.time()


def test_receiver_answers_by_the_nearest_rule(http_receiver):
    http_receiver.on("/a", Answer(503, b"busy", {"Retry-After": "2"}))
    http_receiver.on("/a/b", 404, times=1)
    http_receiver.on("/f", lambda request: Answer(201, request.body.upper()))
    http_receiver.on("/moved", Answer.redirect("/a"))
    assert ask(http_receiver, "/a/b") == (404, b"")
    assert ask(http_receiver, "/a/b") == (503, b"busy")
    assert ask(http_receiver, "/f", b"x") == (201, b"X")
    assert ask(http_receiver, "/moved")[0] == 307
    assert ask(http_receiver, "/other") == (200, b"")
    assert len(http_receiver.wait_count(2, 5, "/a")) == 2


def test_receiver_misbehaves_on_request(http_receiver):
    http_receiver.on("/hang-up", Answer(hang_up=True))
    http_receiver.on("/reset", Answer(reset=True))
    http_receiver.on("/late", Answer(delay_s=0.2))
    http_receiver.on("/drip", Answer(body=b"slow", drip_s=0.02))
    http_receiver.on("/never", Answer(never=True))
    http_receiver.on("/endless", Answer(endless=True))
    with pytest.raises(http.client.RemoteDisconnected):
        ask(http_receiver, "/hang-up")
    with pytest.raises(ConnectionResetError):
        ask(http_receiver, "/reset")
    started = time.monotonic()
    assert ask(http_receiver, "/late") == (200, b"")
    assert ask(http_receiver, "/drip") == (200, b"slow")
    assert time.monotonic() - started >= 0.28
    with pytest.raises(TimeoutError):
        ask(http_receiver, "/never", connection=http.client.HTTPConnection(
            "127.0.0.1", http_receiver.port, timeout=0.2))
    endless = http.client.HTTPConnection("127.0.0.1", http_receiver.port, timeout=60)
    endless.request("GET", "/endless")
    assert len(endless.getresponse().read(1 << 20)) == 1 << 20
    endless.close()


def test_receiver_stopped_refuses_and_returns(http_receiver):
    assert ask(http_receiver)[0] == 200
    http_receiver.stop()
    with pytest.raises(ConnectionRefusedError):
        ask(http_receiver)
    http_receiver.start()
    assert ask(http_receiver)[0] == 200


SEND = """
import socket, sys
request = b"POST /hook HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 200\\r\\n\\r\\n" + b"x" * 200
peer = socket.create_connection(("127.0.0.1", {port}))
for _ in range({count}):
    peer.sendall(request)
    assert peer.recv(4096).startswith(b"HTTP/1.1 200")
"""


def test_receiver_is_fast_enough_for_a_bench(http_receiver):
    """By the processor time that it takes, which is here nearly all of this process."""
    started = time.process_time()
    senders = [python(SEND.format(port=http_receiver.port, count=3000)) for _ in range(3)]
    assert [sender.wait() for sender in senders] == [0, 0, 0]
    assert len(http_receiver.requests) == 9000
    assert 9000 / (time.process_time() - started) > 3000


# -- TCP proxy ------------------------------------------------------------------------


@pytest.fixture
def proxied(http_receiver):
    with TcpProxy(http_receiver.port) as proxy:
        yield proxy


def through(proxy):
    return http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)


def test_proxy_passes_on_and_drops(http_receiver, proxied):
    connection = through(proxied)
    assert ask(http_receiver, "/", b"x" * 1_000_000, connection)[0] == 200
    assert len(http_receiver.requests[0].body) == 1_000_000
    assert proxied.connections == 1
    proxied.drop()
    with pytest.raises(OSError):
        ask(http_receiver, connection=connection)
    with pytest.raises(ConnectionRefusedError):
        ask(http_receiver, connection=through(proxied))
    proxied.restore()
    assert ask(http_receiver, connection=through(proxied))[0] == 200


def test_proxy_resets_what_is_open_and_serves_what_is_new(http_receiver, proxied):
    with socket.create_connection(("127.0.0.1", proxied.port)) as peer:
        wait_until(lambda: proxied.connections == 1, 5, "the proxy to reach the receiver")
        proxied.reset()
        with pytest.raises(ConnectionResetError):
            peer.recv(1)
    assert ask(http_receiver, connection=through(proxied))[0] == 200


def test_proxy_black_hole_holds_back_until_restored(http_receiver, proxied):
    connection = through(proxied)
    assert ask(http_receiver, connection=connection)[0] == 200
    proxied.blackhole()
    connection.request("POST", "/held")
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.sock.recv(1, socket.MSG_PEEK)
    assert len(http_receiver.requests) == 1
    proxied.restore()
    http_receiver.wait_count(1, 5, "/held")


def test_proxy_delays_each_direction(http_receiver, proxied):
    size = 20_000_000
    proxied.delay(100)
    started = time.monotonic()
    ask(http_receiver, body=b"x" * size, connection=through(proxied))
    # Late, but not once per chunk: a chunk is the most that is read at once.
    assert 0.2 <= time.monotonic() - started < 0.1 * size / CHUNK / 2


# -- scripts ----------------------------------------------------------------------------


def servers(verb, folder, *words):
    return subprocess.run([REPOSITORY / "scripts" / "servers", verb, "--dir", folder, *words],
                          stdout=subprocess.PIPE, text=True, check=False)


def test_script_starts_finds_and_stops_servers(tmp_path):
    try:
        env = servers("up", tmp_path, "mariadb")
        assert env.returncode == 0
        assert (tmp_path / "env").read_text() == env.stdout
        variables = dict(line.split("=", 1) for line in env.stdout.splitlines())
        assert servers("status", tmp_path, "mariadb").returncode == 0
        assert servers("status", tmp_path).returncode == 1      # the others do not run
        found = MariaDB(tmp_path / "mariadb").attach()
        assert variables["DUEBOX_TEST_MARIADB_PORT"] == str(found.port)
        assert found.execute("SELECT 1") == ((1,),)
        assert servers("up", tmp_path, "mariadb").stdout == env.stdout
        found.process.signal(signal.SIGKILL)                    # a crash, noticed and repaired
        found.process.wait(10)
        assert servers("status", tmp_path, "mariadb").returncode == 1
        assert servers("up", tmp_path, "mariadb").stdout == env.stdout
    finally:
        servers("down", tmp_path)
    assert servers("status", tmp_path, "mariadb").returncode == 1
    assert not MariaDB(tmp_path / "mariadb").attach().alive()


def test_script_creates_what_duebox_never_creates(tmp_path):
    """A newcomer who follows the README needs no other tool to get a queue or a topic on the private servers."""
    try:
        assert servers("topic", tmp_path, "orders-cancel").returncode == 1      # no Kafka there
        assert servers("up", tmp_path, "rabbitmq").returncode == 0
        assert servers("queue", tmp_path, "invoices", "results").stdout == "invoices\nresults\n"
        assert RabbitMQ(tmp_path / "rabbitmq").attach().queue_depth("results") == 0
    finally:
        servers("down", tmp_path)


def test_script_lists_packages_with_their_reason():
    listed = subprocess.run([REPOSITORY / "scripts" / "packages", "list"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    assert all(len(line.split()) == 2 for line in listed.splitlines())
