"""Rows larger than engine.max_payload: they end dead with all that they hold, and nobody writes them before that.

What a transaction changes of a row goes to the binlog as a whole, before and after: a row of 40 MB that was claimed
before it was refused kept all routes waiting for seconds. (How long: tests/bench/large_rows.py.)
"""

import contextlib

import pytest

from support.wait import wait_until

LIMIT_S = 60
MAX_PAYLOAD = 64 * 1024
LARGE = 3 * 1024 * 1024

WITNESS = """CREATE TRIGGER witness BEFORE UPDATE ON outbox FOR EACH ROW
IF LENGTH(OLD.payload) > 1024 * 1024 THEN
  INSERT INTO written (id, state) VALUES (OLD.id, NEW.state);
END IF"""


@pytest.fixture
def playground(stage):
    stage.configuration["engine"]["max_payload"] = f"{MAX_PAYLOAD // 1024}KiB"
    stage.http("recorded", claim="recorded")
    stage.http("memory", claim="memory")
    stage.http("good")
    stage.consume_http()
    stage.daemon()          # makes the tables
    stage.execute("CREATE TABLE written (id BIGINT UNSIGNED, state VARCHAR(16))")
    stage.execute(WITNESS)
    return stage


def insert_large(stage, route, count=1):
    """Returns their message ids."""
    return stage.insert(route, b"x" * LARGE, count=count, copies=0, end="dead", error_class="row.payload_too_large")


@pytest.mark.parametrize("route", ["recorded", "memory"])
def test_they_are_written_once_and_kept_whole(playground, route):
    playground.daemons[0].start()
    for message_id in insert_large(playground, route, 3):
        row = playground.wait_row(message_id, LIMIT_S, state="dead")
        assert len(row["payload"]) == LARGE and row["attempt"] == 0
        assert str(LARGE) in row["last_error"]
    playground.insert("good")
    playground.wait_empty(LIMIT_S)
    playground.check()
    assert playground.execute("SELECT * FROM written") == ()


def test_one_that_cannot_be_copied_yet_stops_nothing(playground):
    """Somebody holds the history. Leases are renewed, and others are sent, for as long as that lasts."""
    daemon = playground.daemons[0].start()
    connection = playground.connect(autocommit=False)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM outbox_history FOR UPDATE")      # and with it the place of every other row
        [large] = insert_large(playground, "recorded")
        daemon.wait_log("DUEBOX-SETTLE-LOCKED", limit_s=LIMIT_S)

        def leases():
            return playground.execute("SELECT shard, lease_until FROM outbox_shards WHERE shard < 63 ORDER BY shard")

        for _ in range(3):
            before = leases()
            ids = playground.insert("good", count=20)
            listed = ", ".join(f"'{message_id}'" for message_id in ids)
            playground.wait_empty(LIMIT_S, f"message_id IN ({listed})")
            wait_until(lambda: all(now[1] > then[1] for now, then in zip(leases(), before)), LIMIT_S,
                       "all leases to be renewed")
        assert playground.row(large)["state"] == "scheduled"
        connection.rollback()
    playground.wait_row(large, LIMIT_S, state="dead")
    playground.check()


def test_rows_are_read_whatever_the_packet_of_the_server(stage):
    """max_allowed_packet bounds what is sent to the server: a payload that is there is read, and sent."""
    stage.configuration["engine"]["max_payload"] = "8MiB"
    for claim in ("recorded", "memory"):
        stage.http(claim, claim=claim)
    stage.consume_http()
    daemon = stage.daemon()
    for size in (1, LARGE):
        for route in ("recorded", "memory"):
            stage.insert(route, b"x" * size)
    try:
        stage.mariadb.execute("SET GLOBAL max_allowed_packet = 1048576")
        daemon.start()
        stage.wait_empty(LIMIT_S)
    finally:
        stage.mariadb.execute("SET GLOBAL max_allowed_packet = 67108864")
    stage.check()
