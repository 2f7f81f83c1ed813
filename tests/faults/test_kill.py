"""Crashes under load.  kill -9 of a daemon, again and again; a daemon that slept longer
than its lease; crashes of the database and of the brokers.  Each time the ledger must
show that nothing was lost (P1), nothing came early (P3), that there is at most one more
copy per task in flight and fault (P4), and that a stale daemon changed nothing (P5).

DUEBOX_TEST_KILLS says how often; 10 by default, 100 with DUEBOX_TEST_LONG=1.
"""

import bisect
import random
import threading
import time
from collections import Counter

import pytest

from support.ledger import now_us
from support.load import Load
from support.scale import scaled
from support.servers.http_receiver import Answer
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

# What one daemon may have in flight at the moment of a fault.
CONCURRENCY = {"k": 500, "a": 500, "h": 16}
CREDIT = sum(CONCURRENCY.values())
ROUTES = ["k"] * 6 + ["a"] * 3 + ["h"]
QUIET_LIMIT_S = 90      # for the backlog to drain when all is well again


@pytest.fixture
def crowd(stage):
    """Kafka, AMQP and HTTP routes, their consumers, and a database that is migrated."""
    stage.kafka("k", concurrency=CONCURRENCY["k"])
    stage.amqp("a", concurrency=CONCURRENCY["a"])
    stage.http("h", concurrency=CONCURRENCY["h"], timeout="10s", retry={"backoff": "100ms", "max": "1s"})
    # The programme kills far more often than anybody's daemons crash: no row is poison here.
    stage.configuration["engine"] |= {"max_recoveries": 1000, "lease": "2s"}
    stage.daemon()
    stage.consume_kafka("k")
    stage.consume_amqp("a")
    stage.consume_http()
    return stage


def wait_busy(daemon):
    """Wait until the daemon has shards and settles tasks."""
    before = daemon.metric("duebox_settled_rows")
    wait_until(lambda: daemon.metric("duebox_settled_rows") > before, 60, f"{daemon.name} to settle tasks",
               detail=daemon.log_tail)


def extra_copies(ledger):
    """Arrival times of the copies beyond the first."""
    return [copy.at_us for copies in ledger.by_arrival().values() for copy in copies[1:]]


def print_duplicates(title, crowd, fault_times):
    ledger = crowd.ledger
    after = Counter(bisect.bisect(fault_times, at) for at in extra_copies(ledger))
    print(f"\n{title}: {len(fault_times)} faults, {len(ledger.committed)} committed, "
          f"{len(ledger.arrivals)} copies, {sum(after.values())} of them duplicates "
          f"(bound {len(fault_times) * CREDIT}); after each fault: "
          + " ".join(str(after[number + 1]) for number in range(len(fault_times))))
    # A lease that ran out because the machine stood still is a fault as well.
    lost = any(line["id"] == "DUEBOX-SHARD-LOST" for daemon in crowd.daemons for line in daemon.lines())
    assert after[0] == 0 or lost, "a duplicate before the first fault"


def test_kill9_again_and_again(crowd):
    kills = scaled("DUEBOX_TEST_KILLS", 10, 100)
    dice = random.Random(kills)
    crowd.daemon()
    times, in_flight = [], []
    for daemon in crowd.daemons:
        daemon.start()
    with Load(crowd, ROUTES) as load:
        load.wait_transactions(10)
        for _ in range(kills):
            victim = dice.choice(crowd.daemons)
            wait_busy(victim)
            threading.Event().wait(dice.random() * 0.3)     # at any moment of its work
            in_flight.append(int(victim.metric("duebox_inflight_tasks")))
            victim.kill9()
            times.append(now_us())
            victim.start()
    crowd.wait_empty(QUIET_LIMIT_S)
    crowd.check(duplicates=kills * CREDIT)
    print_duplicates("kill -9", crowd, times)
    print("in flight shortly before each:", *in_flight)


def test_a_task_in_flight_at_three_crashes_is_dead(stage):
    """Poison: the task that is in flight each time when the daemon crashes is put aside,
    visibly, and the others go on."""
    stage.http("h", timeout="4s")       # the daemon must be killed within this time
    stage.configuration["engine"]["lease"] = "1s"
    daemon = stage.daemon()
    stage.receiver.on("/h", lambda request: Answer(never=True) if request.body == b"poison" else Answer(200))
    poison = stage.insert("h", b"poison", copies=3, end="dead", error_class="claim.poison")[0]
    for attempt in (1, 2, 3):
        daemon.start()
        stage.receiver.wait_count(attempt, 20, "/h")
        daemon.kill9()
        assert stage.row(poison)["state"] == "claimed"
    daemon.start()
    row = stage.wait_row(poison, 20, state="dead")
    assert row["recoveries"] == 3
    good = stage.insert("h", b"good")[0]
    stage.receiver.wait_count(4, 10, "/h")
    wait_until(lambda: stage.row(good) is None, 10, "the good one to be done")


# -- nobody waits for the dead ----------------------------------------------------------


@pytest.mark.parametrize("bound", [False, True], ids=["leased", "bound to a host"])
def test_claims_of_a_killed_daemon_are_taken_back_at_once(stage, bound):
    """A claim in the table lasts as long as its holder, not as long as the call may take: after
    kill -9 the tasks of a route whose calls may take a day are at work again within seconds, in
    another daemon or in the same one started again."""
    stage.configuration["engine"] |= {"lease": "2s", "instance": "here"}
    stage.http("h", timeout="1d", concurrency=4, history="1h")
    daemon = stage.daemon("first")
    stage.consume_http()
    never = threading.Event()
    stage.receiver.on("/h", Answer(200, after=never))
    try:
        daemon.start()
        for message_id in ("m1", "m2", "m3"):
            stage.execute("INSERT INTO outbox (route, payload, message_id, target_host) VALUES ('h', 'x', %s, %s)",
                          message_id, "here" if bound else "")
        stage.receiver.wait_count(3, 30, "/h")
        daemon.kill9()
        stage.receiver.on("/h", Answer(200))
        second = stage.start("second", engine=stage.configuration["engine"])
        wait_until(lambda: stage.count() == 0, 60, "all tasks to be done again", detail=stage.living)
    finally:
        never.set()     # the receiver's threads wait for it
    rows = stage.execute("SELECT recoveries, state, claimed_by FROM outbox_history")
    assert [row[:2] for row in rows] == [(1, "done")] * 3
    assert all(row[2].startswith("here-") for row in rows)
    assert second.api("GET", "/api/v1/stats")[1]["instance"] == rows[0][2]      # as on the page and in its title


def test_order_survives_a_killed_daemon(stage):
    """Tasks of one order_key leave one after the other, also when the daemon that had claimed the
    first of them was killed: those that wait behind it do not overtake the claim that is taken back."""
    stage.configuration["engine"] |= {"lease": "2s", "instance": "here"}
    stage.http("h", timeout="60s", concurrency=8)
    came, never = [], threading.Event()
    stage.receiver.on("/h", Answer(200, after=never))
    daemon = stage.daemon("first").start()
    keys = [f"key-{number}" for number in range(8)]
    for number in range(4):
        for key in keys:
            stage.execute("INSERT INTO outbox (route, payload, order_key) VALUES ('h', %s, %s)", f"{key}/{number}", key)
    stage.receiver.wait_count(len(keys), 30, "/h")
    daemon.kill9()
    never.set()

    def answer(request):
        came.append(request.body.decode())
        return Answer(200)
    stage.receiver.on("/h", answer)
    stage.start("second", engine=stage.configuration["engine"])
    wait_until(lambda: stage.count() == 0, 60, "all tasks to be done", detail=stage.living)
    for key in keys:
        assert [body for body in came if body.startswith(f"{key}/")] == [f"{key}/{number}" for number in range(4)]


def test_a_frozen_daemon_stops_nobody(stage):
    """A daemon that stands still (SIGSTOP, lost power, a cut network) in the middle of a
    transaction holds locks on shards and rows.  The other daemon must keep its own leases all
    the while, get those shards soon after their leases ended, and finish the work."""
    stage.configuration["engine"]["lease"] = "3s"
    stage.kafka("k", concurrency=1000, history="1h")
    user = f"{stage.database[-20:]}_frozen"
    stage.mariadb.create_user(user, "pw", [f"ALL ON `{stage.database}`.*"])
    first, second = stage.daemon("first", database={"user": user, "password": "pw"}), stage.daemon("second")
    first.start()
    second.start()
    wait_until(lambda: second.metric("duebox_shards_held") == 4, 30, "the daemons to share", detail=second.log_tail)
    stage.execute("INSERT INTO outbox (route, payload) SELECT 'k', 'x' FROM seq_1_to_60000")
    wait_busy(first)

    def open_transactions():
        return stage.mariadb.execute(
            "SELECT COUNT(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p "
            f"ON p.ID = t.trx_mysql_thread_id WHERE p.USER = '{user}' AND p.COMMAND = 'Sleep'")[0][0]

    for _ in range(50):     # until it is caught where it hurts, or the work is done
        first.pause()
        if open_transactions() or stage.count() < 5000:
            break
        first.resume()
    else:                   # it never leaves a transaction open between two round trips
        first.pause()
    lost = second.metric("duebox_leases_lost")
    wait_until(lambda: second.metric("duebox_shards_held") == 8, 30, "the second daemon to hold all shards",
               detail=second.log_tail)
    assert second.metric("duebox_leases_lost") == lost
    stage.wait_empty(60)
    first.resume()


# What claims rows, in a round trip of its own.
CLAIMS = b"move_to_host IS NULL AND target_host IN"


def test_the_locks_of_a_dead_daemon_are_not_waited_for(stage):
    """A machine that loses power, or its network, in the middle of a transaction leaves locks on
    the server. Whoever takes over ends its sessions, long before the server would: here that has
    99 seconds for it. Without that the task would wait for the dead (P1 in time)."""
    stage.http("h", concurrency=4)
    stage.configuration["engine"]["lease"] = "2s"
    stage.consume_http()
    user = f"{stage.database[-20:]}_dead"
    stage.mariadb.create_user(user, "pw", [f"ALL ON `{stage.database}`.*"])
    with TcpProxy(stage.mariadb.port) as proxy:
        proxy.rewrite(b"timeout = 2 */", b"timeout =99 */")     # idle_transaction_timeout
        proxy.deafen_at(CLAIMS)
        dead = stage.daemon("dead")
        dead.configure({**dead.configuration, "database": {
            "host": "127.0.0.1", "port": proxy.port, "user": user, "password": "pw", "name": stage.database}})
        dead.start()
        [task] = stage.insert("h")
        assert proxy.deafened.wait(60), "it never claimed the task"

        def locked():
            return stage.mariadb.execute(
                "SELECT COUNT(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p "
                "ON p.ID = t.trx_mysql_thread_id WHERE p.USER = %s AND p.COMMAND = 'Sleep'", user)[0][0]
        # InnoDB shows the same picture again to whoever asks within a tenth of a second.
        wait_until(locked, 60, "its transaction to hold the row", poll_s=0.2)
        dead.pause()
        other = stage.start("other")
        stage.wait_arrived(1, 60)
        other.wait_log("DUEBOX-SESSIONS-ENDED", text=stage.execute("SELECT id FROM outbox_instances WHERE host = 'dead'")[0][0])
        dead.resume()
        stage.wait_empty(60)
        dead.wait_log("DUEBOX-SHARD-LOST")
        stage.check()
    assert stage.ledger.arrived_ids() == {task}


# -- fencing ------------------------------------------------------------------------------

# Who wrote which row under whose lease, noted by the database itself.
WITNESS = """
CREATE TABLE witness (
  seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, at DATETIME(6) NOT NULL,
  user VARCHAR(64) NOT NULL, owner VARCHAR(64) NULL, message_id VARCHAR(64) NOT NULL, verb VARCHAR(16) NOT NULL
) ENGINE = InnoDB"""
TRIGGER = """
CREATE TRIGGER witness_{name} {when} ON {table} FOR EACH ROW
INSERT INTO witness (at, user, owner, message_id, verb)
SELECT UTC_TIMESTAMP(6), SUBSTRING_INDEX(USER(), '@', 1), s.owner, {row}.message_id, '{name}'
FROM outbox_shards s WHERE s.shard = {row}.shard"""


def install_witness(stage):
    stage.execute(WITNESS)
    for name, when, table, row in (("update", "AFTER UPDATE", "outbox", "OLD"),
                                   ("delete", "AFTER DELETE", "outbox", "OLD"),
                                   ("history", "AFTER INSERT", "outbox_history", "NEW")):
        stage.execute(TRIGGER.format(name=name, when=when, table=table, row=row))


def instance_of(stage, daemon):
    """The id of the running instance of a daemon."""
    return stage.execute("SELECT id FROM outbox_instances WHERE host = %s AND pid = %s",
                         daemon.name, daemon.process.pid)[0][0]


def owners(stage):
    return {owner for owner, in stage.execute("SELECT DISTINCT owner FROM outbox_shards WHERE shard < 63")}


def test_a_daemon_that_slept_past_its_lease_changes_nothing(stage):
    """SIGSTOP with calls in flight, until another daemon has all shards and has done the
    work; then SIGCONT.  Its outcomes must be dropped: each write is noted by triggers
    together with the shard's owner at that moment, and none may be of a user that was
    not the owner."""
    stage.configuration["engine"]["lease"] = "3s"
    stage.http("h", concurrency=20, timeout="5s", history="1h", retry={"backoff": "100ms", "max": "100ms"})
    stage.kafka("k", history="1h")
    users = {}
    for name in ("first", "second"):
        users[name] = f"{stage.database[-20:]}_{name}"
        stage.mariadb.create_user(users[name], "pw", [f"ALL ON `{stage.database}`.*"])
        stage.daemon(name, database={"user": users[name], "password": "pw"})
    install_witness(stage)
    first, second = stage.daemons
    stage.consume_kafka("k")
    stage.consume_http()
    paused = threading.Event()
    stage.receiver.on("/h", Answer(200, after=paused))
    first.start()
    stage.insert("h", b"slow", count=20, kept=True)
    stage.insert("k", b"quick", count=200, delay_ms=6000, kept=True)    # due while it sleeps
    stage.receiver.wait_count(20, 20, "/h")
    user_of = {instance_of(stage, first): users["first"]}
    first.pause()
    paused.set()
    second.start()
    user_of[instance_of(stage, second)] = users["second"]
    wait_until(lambda: owners(stage) == {instance_of(stage, second)}, 30, "the second daemon to hold all shards",
               detail=stage.living)
    stage.wait_empty(60)
    mark = first.mark()
    first.resume()
    first.wait_log("DUEBOX-SHARD-LOST", after=mark)
    wait_until(lambda: first.metric("duebox_leases_lost") > 0, 10, "the first daemon to know")
    stage.insert("k", b"later", count=200, kept=True)       # and both work on
    stage.wait_empty(30)
    stage.check(duplicates=20)
    witnessed = stage.execute("SELECT user, owner, message_id, verb FROM witness WHERE user <> 'root'")
    stale = [write for write in witnessed if user_of.get(write[1]) != write[0]]
    assert len(witnessed) >= 420 and {write[0] for write in witnessed} == set(users.values())
    assert stale == []


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_lease_that_is_gone_in_the_table_costs_one_more_copy_at_most(stage, claim):
    """Somebody sets outbox_shards.owner to NULL while tasks are at their endpoint. Their outcomes are
    refused, so each may leave once more, and not again and again until the leases are renewed (P4)."""
    stage.configuration["engine"]["lease"] = "60s"
    stage.http("h", concurrency=50, claim=claim, timeout="60s")
    came, gate = Counter(), threading.Event()

    def answer(request):
        came[request.body] += 1
        return Answer(200, after=gate)
    stage.receiver.on("/h", answer)
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (route, payload) SELECT 'h', seq FROM seq_1_to_40")
    wait_until(lambda: len(came) == 40, 60, "all tasks to be at their endpoint", detail=daemon.log_tail)
    stage.execute("UPDATE outbox_shards SET owner = NULL, lease_until = NULL WHERE shard < 63")
    gate.set()
    wait_until(lambda: stage.count() == 0, 60, "all tasks to be done", detail=stage.living)
    assert max(came.values()) <= 2, came
    daemon.wait_log("DUEBOX-SHARD-LOST")


def test_shards_that_a_hand_has_freed_are_taken_over(stage):
    """One died, and somebody frees its shards with lease_until = NULL alone. A row with an owner and no end of a lease kept
    all shards from being read, while /readyz said that all was well."""
    stage.configuration["engine"]["lease"] = "3s"
    stage.http("h")
    stage.consume_http()
    first = stage.start()
    second = stage.start()
    wait_until(lambda: second.metric("duebox_shards_held") == 4, 60, "each to hold half of the shards")
    theirs = instance_of(stage, first)
    first.kill9()
    stage.execute("UPDATE outbox_shards SET lease_until = NULL WHERE owner = %s", theirs)
    stage.insert("h", count=40)
    stage.wait_empty(30)
    assert second.metric("duebox_shards_held") == 8
    assert "held by daemons" in second.run("doctor", check=False).stdout
    assert not [line for line in second.lines() if line["id"] == "DUEBOX-SHARD-TROUBLE"]
    stage.check()


# -- servers ------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["mariadb", "rabbitmq", "kafka"])
def test_kill9_of_a_server_under_load(crowd, server):
    """The server crashes and comes back while tasks are in flight."""
    victim = {"mariadb": crowd.mariadb, "rabbitmq": crowd.rabbitmq, "kafka": crowd.kafka_server}[server]
    if server == "kafka" and not victim.is_real:
        pytest.skip("needs a real Kafka broker: the mock's data is in memory")
    daemon = crowd.daemons[0].start()
    with Load(crowd, ROUTES) as load:
        load.wait_transactions(10)
        wait_busy(daemon)
        victim.kill9()
        killed = now_us()
        if server != "mariadb":         # the load goes on, and so do the other routes
            load.wait_transactions(5)
        victim.start()
        load.wait_transactions(5)
        wait_busy(daemon)
    crowd.wait_empty(QUIET_LIMIT_S)
    crowd.check(duplicates=CREDIT)
    print_duplicates(f"kill -9 of {server}", crowd, [killed])
