"""A message over which RabbitMQ ends the connection that all routes of an instance share.

What is known to do so is refused before it is sent; so a proxy makes one of it on the way: a routing key of a direct
reply that is none (541 INTERNAL_ERROR).
"""

import collections
import contextlib
import re
import time

import pytest

from support.tcp_proxy import TcpProxy
from support.wait import wait_until

KEY = "poison-poison-poison-pois"
POISON = "amq.rabbitmq.reply-to.x.1"
LIMIT_S = 60
ROWS = 6
NEIGHBOURS = 2000


@pytest.fixture
def proxied(stage):
    with TcpProxy(stage.rabbitmq.port) as proxy:
        proxy.rewrite(KEY.encode(), POISON.encode())
        stage.plugin("rabbit", module="amqp", url=f"amqp://guest:guest@127.0.0.1:{proxy.port}/%2f")
        stage.amqp("good", history="1h")
        stage.amqp("open", routing_key="{task_key}", retry={"levels": ["1s"], "jitter": 0}, history="1h")
        yield stage


def insert(stage, route, keys):
    with contextlib.closing(stage.connect()) as connection:
        connection.cursor().executemany(
            "INSERT INTO outbox (route, payload, task_key, max_attempts) VALUES (%s, '{}', %s, 1000)",
            [(route, key) for key in keys])
        connection.commit()


def logged(daemon, name):
    return [line for line in daemon.lines() if line["id"] == name]


def test_it_is_found_and_the_others_go_on(proxied):
    """It ends the connection of the others once, however many of it there are; each is dead, with the reason."""
    stage, queue = proxied, proxied.queue()
    daemon = stage.start()
    for i in range(NEIGHBOURS // 20):
        insert(stage, "good", [""] * 20)
        insert(stage, "open", [queue])
        if i >= 20 and i % 10 == 0 and i < 20 + 10 * ROWS:
            insert(stage, "open", [KEY])
        time.sleep(0.02)
    wait_until(lambda: not stage.execute("SELECT 1 FROM outbox WHERE state <> 'dead' LIMIT 1"), LIMIT_S, "all to be over",
               detail=daemon.log_tail)
    dead = stage.execute("SELECT task_key, error_class, last_error FROM outbox_history WHERE state = 'dead'")
    assert len(dead) == ROWS
    for key, error_class, text in dead:
        assert (key, error_class) == (KEY, "amqp.connection_closed") and "541" in text, dead
    assert len(logged(daemon, "AMQP-CULPRIT")) == ROWS
    assert 1 <= len(logged(daemon, "AMQP-DOWN")) <= 2, logged(daemon, "AMQP-DOWN")
    for name, count in (("good", NEIGHBOURS), ("open", NEIGHBOURS // 20)):
        [done] = stage.execute("SELECT COUNT(*), MAX(failures) FROM outbox_history WHERE route = %s AND state = 'done'",
                               name)
        assert done == (count, 0)
    suspects = sum(int(re.search(r"(\d+) messages were", line["msg"])[1]) for line in logged(daemon, "AMQP-APART"))
    copies = collections.Counter(message["properties"].message_id for message in stage.rabbitmq.get_all(stage.destination("good")))
    assert len(copies) == NEIGHBOURS
    assert copies.total() - NEIGHBOURS <= suspects


def test_a_restart_of_the_broker_blames_nobody(proxied):
    stage = proxied
    daemon = stage.start()
    insert(stage, "good", [""] * 500)
    wait_until(lambda: stage.execute("SELECT COUNT(*) FROM outbox_history")[0][0] > 20, LIMIT_S, "the first to be done")
    insert(stage, "good", [""] * 500)
    stage.rabbitmq.close_connections()
    wait_until(lambda: not stage.execute("SELECT 1 FROM outbox LIMIT 1"), LIMIT_S, "all to be over",
               detail=daemon.log_tail)
    assert not logged(daemon, "AMQP-APART") and not logged(daemon, "AMQP-CULPRIT")
    assert logged(daemon, "AMQP-DOWN")
