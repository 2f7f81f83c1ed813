"""A destination that stands still is given no more: what it was not given yet stays in the table, where plain SQL and
expires_at count."""

from support.wait import wait_until

LIMIT_S = 30


def insert(stage, message_id, due="UTC_TIMESTAMP(6)", expires="NULL", route="work"):
    stage.execute(f"INSERT INTO outbox (route, payload, message_id, due_at, expires_at)"
                  f" VALUES ('{route}', '{message_id}', '{message_id}', {due}, {expires})")


def wait_past(stage, seconds):
    (until,) = stage.execute(f"SELECT CAST(UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND AS CHAR)")[0]
    wait_until(lambda: stage.execute(f"SELECT UTC_TIMESTAMP(6) > '{until}'") == ((1,),), seconds + LIMIT_S, "that time")


def bodies(stage):
    return sorted(record["value"] for record in stage.kafka_records())


def test_sql_counts_while_the_broker_stands_still(stage):
    """Tasks that come due while Kafka is frozen are not handed over: a DELETE, an UPDATE and expires_at count for as
    long as that lasts. (They used to go into the client's queue, and arrived seconds later although they were deleted,
    changed or over.)"""
    stage.kafka("work", history="1h")
    consumer = stage.consume_kafka("work")
    daemon = stage.start()
    insert(stage, "warm")
    wait_until(lambda: consumer.records, LIMIT_S, "the first task")
    stage.kafka_server.pause()
    try:
        insert(stage, "given")
        wait_until(lambda: daemon.metric("duebox_inflight_tasks", route="work") == 1, LIMIT_S, "one to be handed over")
        wait_past(stage, 1)
        for message_id in ("deleted", "changed", "kept"):
            insert(stage, message_id)
        insert(stage, "expired", expires="UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND")
        wait_past(stage, 1)
        assert stage.row("deleted")["state"] == "scheduled"
        stage.execute("DELETE FROM outbox WHERE message_id = 'deleted'")
        stage.execute("UPDATE outbox SET payload = 'new' WHERE message_id = 'changed'")
        stage.wait_row("expired", LIMIT_S, state="expired")
    finally:
        stage.kafka_server.resume()
    stage.wait_empty(LIMIT_S)
    stage.stop_and_drain()
    assert bodies(stage) == [b"given", b"kept", b"new", b"warm"]


def test_what_expires_at_its_due_time_is_never_sent(stage):
    """expires_at is judged at the hand-over, not when the row is read some milliseconds before. (Two thirds of such
    tasks used to be sent.)"""
    stage.kafka("work", history="1h")
    stage.consume_kafka("work")
    stage.start()
    stage.execute("INSERT INTO outbox (route, payload, message_id, due_at, expires_at) SELECT 'work', '', seq,"
                  " @at := UTC_TIMESTAMP(6) + INTERVAL 1000000 + seq * 5000 MICROSECOND, @at FROM seq_1_to_200")
    stage.wait_empty(LIMIT_S)
    stage.stop_and_drain()
    assert stage.execute("SELECT state, COUNT(*) FROM outbox_history GROUP BY state") == (("expired", 200),)
    assert bodies(stage) == []


def test_rows_of_a_paused_route_expire(stage):
    """expires_at does not depend on whether the route is open: rows of a paused one end at their time, on the row, and
    the others stay."""
    stage.kafka("work", history="1h")
    daemon = stage.start()
    daemon.run("route", "pause", "work", "--reason", "test")
    daemon.wait_log("DUEBOX-ROUTE-PAUSED")
    stage.execute("INSERT INTO outbox (route, payload, message_id, expires_at) SELECT 'work', '', seq,"
                  " IF(seq % 10 = 0, UTC_TIMESTAMP(6) + INTERVAL 1 SECOND, NULL) FROM seq_1_to_3000")
    wait_until(lambda: stage.count("outbox_history", "state = 'expired'") == 300, LIMIT_S, "300 to expire",
               detail=stage.living)
    assert stage.count() == 2700
