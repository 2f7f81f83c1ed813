"""What a daemon has handed to its plugin, and the plugin has not sent, when the daemon loses its lease.

Whoever holds the shard next may cancel it or put it off, on the word of the table alone: so none of it may leave after
that, though the destination goes on in time. What of it had begun to leave is with the kernel or the network.
"""

import contextlib

import pytest

from support.tcp_proxy import TcpProxy
from support.wait import wait_until

LEASE = "2s"
PASSWORD = "right"
LIMIT_S = 60
SHARDS = 8
COUNT = 40
LARGE = b"x" * 200_000      # so that the kernel takes few of them
SMALL = b"{}"
# How many may have begun to leave: of AMQP the one that tries the exchange, of Kafka what the requests hold that the
# kernel takes before the broker reads, some of a megabyte each.
BEGUN = {"kafka": COUNT // 4, "amqp": 1}
OWNED = ("SELECT COUNT(*) FROM outbox_shards WHERE owner LIKE 'second%%' AND shard < 63"
         " AND lease_until > UTC_TIMESTAMP(6)")
VERBS = {"cancel": (("cancel",), "SELECT message_id FROM outbox_history WHERE state = 'cancelled'"),
         "reschedule": (("reschedule", "--at", "+1h"),
                        "SELECT message_id FROM outbox WHERE due_at > UTC_TIMESTAMP(6) + INTERVAL 50 MINUTE")}


class Stranded:
    """A daemon whose plugin has tasks that the broker does not take."""

    def __init__(self, stage, proxy, sink):
        self.stage, self.proxy = stage, proxy
        stage.configuration["engine"]["lease"] = LEASE
        if sink == "kafka":
            self.server = stage.kafka_server
            stage.kafka("stranded", topic=stage.topic(1), claim="recorded", history="1h")
            stage.consume_kafka("stranded")
        else:
            self.server = stage.rabbitmq
            stage.amqp("stranded", claim="recorded", history="1h")
        self.daemon = stage.daemon("first")
        configuration = dict(self.daemon.configuration)
        user = f"user_{stage.database}"[:60]
        stage.mariadb.create_user(user, PASSWORD, [f"ALL ON `{stage.database}`.*"])
        configuration["database"] = {"host": "127.0.0.1", "port": proxy.port, "user": user, "password": PASSWORD,
                                     "name": stage.database, "connect_timeout": "2s", "read_timeout": "2s"}
        self.daemon.configure(configuration)
        self.daemon.start()
        if sink == "kafka":
            stage.insert("stranded", count=5, kept=True)
            stage.wait_empty(LIMIT_S)
        else:
            wait_until(lambda: self.daemon.metric("duebox_plugin_up") == 1, LIMIT_S, "the plugin to be connected")
        self.server.pause()
        self.ids = stage.insert("stranded", LARGE if sink == "kafka" else SMALL, count=COUNT, kept=True)
        self.wait_in_flight(lambda count: count == COUNT)

    def wait_in_flight(self, enough):
        wait_until(lambda: enough(self.daemon.metric("duebox_inflight_tasks", route="stranded")), LIMIT_S,
                   "the first daemon's tasks in flight", detail=self.daemon.log_tail)

    def arrived(self):
        return self.stage.ledger.arrived_ids()


@pytest.fixture
def stranded(stage):
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(TcpProxy(stage.mariadb.port))

        def make(sink):
            it = Stranded(stage, proxy, sink)
            stack.callback(it.server.resume)
            return it
        yield make


def take_over(stage):
    second = stage.daemon("second")
    second.start(wait_ready=False)
    wait_until(lambda: stage.execute(OWNED)[0][0] == SHARDS, LIMIT_S, "the second daemon to hold all shards",
               detail=second.log_tail)
    return second


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("lost", ["cut", "frozen"])
@pytest.mark.parametrize("sink", ["kafka", "amqp"])
def test_what_is_taken_back_from_a_former_holder_does_not_leave(stage, stranded, sink, lost, verb):
    it = stranded(sink)
    if lost == "cut":
        it.proxy.blackhole()
    else:
        it.daemon.pause()
    second = take_over(stage)
    words, question = VERBS[verb]
    second.run("task", *words, *it.ids, "--yes", "--reason", "test", "-o", "json", check=False)
    taken = {row[0] for row in stage.execute(question)} & set(it.ids)
    assert len(taken) > COUNT // 2
    assert not taken & it.arrived()
    if lost == "frozen":
        it.daemon.resume()
        it.daemon.wait_log("DUEBOX-RECALLED")
    it.server.resume()
    it.proxy.restore()
    it.wait_in_flight(lambda count: count == 0)
    marker = stage.insert("stranded")
    if sink == "amqp":
        stage.consume_amqp("stranded")
    wait_until(lambda: set(marker) <= it.arrived(), LIMIT_S, "the marker to arrive", detail=stage.living)
    stage.stop_and_drain()
    late = taken & it.arrived()
    print(f"\n{verb}, {lost}, {sink}: {len(taken)} taken back, {len(late)} of them arrived")
    assert len(late) <= BEGUN[sink]
    it.daemon.wait_log("DUEBOX-RECALLED")


def test_what_is_recalled_goes_again_when_the_lease_is_certain(stage, stranded):
    """Nobody takes the shards, and the database is back: nothing is lost, no attempt has failed of what had not begun to
    leave, and the route is well."""
    it = stranded("kafka")
    it.proxy.blackhole()
    it.daemon.wait_log("DUEBOX-RECALLED")
    it.proxy.restore()
    it.server.resume()
    stage.wait_empty(LIMIT_S)
    failed = stage.execute("SELECT error_class, COUNT(*) FROM outbox_attempts GROUP BY error_class")
    assert stage.count("outbox_history", "failures > 0") <= BEGUN["kafka"], failed
    print(f"\nattempts: {failed}")
    assert not [line for line in it.daemon.lines() if line["id"] in ("DUEBOX-ROUTE-SUSPENDED", "KAFKA-FATAL")]
    stage.check(duplicates=BEGUN["kafka"])
