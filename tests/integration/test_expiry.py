"""expires_at ends what nobody would look at again: tasks of a route that nobody knows, and tasks bound to a host that is
not there."""

from support.wait import wait_until

LIMIT_S = 40            # a pass every ten seconds
IDLE = "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"


def insert(stage, message_id, *, route="work", host="", expires="NULL", due="UTC_TIMESTAMP(6)"):
    stage.execute("INSERT INTO outbox (route, payload, message_id, target_host, due_at, expires_at)"
                  f" VALUES ('{route}', '{{}}', '{message_id}', '{host}', {due}, {expires})")


def expiring_stage(stage):
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")


def test_held_and_bound_tasks_expire(stage):
    expiring_stage(stage)
    daemon = stage.start("one")
    soon = "UTC_TIMESTAMP(6) + INTERVAL 8 SECOND"      # all are held by then
    insert(stage, "held", route="nobodys", expires=soon)
    insert(stage, "bound", host="away", expires=soon)
    insert(stage, "held-on", route="nobodys", expires=IDLE)
    insert(stage, "held-for-ever", route="nobodys")
    insert(stage, "bound-on", host="away", expires=IDLE)
    wait_until(lambda: stage.count(where="state = 'held'") == 3, LIMIT_S, "the rows of the unknown route to be held")
    for message_id in ("held", "bound"):
        row = stage.wait_row(message_id, LIMIT_S, state="expired")
        assert row["finished_at"] >= row["expires_at"] and row["attempt"] == 0
    assert stage.row("held-on")["state"] == stage.row("held-for-ever")["state"] == "held"
    assert stage.row("bound-on")["state"] == "scheduled"
    count = {"name": "duebox_task_events", "route": "nobodys", "event": "expire"}     # it counts after the commit
    wait_until(lambda: daemon.metric(**count) >= 1, LIMIT_S, "the counter to follow")
    assert daemon.metric(**count) == 1


def test_many_are_walked_over_page_by_page(stage):
    """Those that expire are found behind many that do not, by two daemons at once, each once."""
    expiring_stage(stage)
    stage.daemon("one")
    stage.execute("INSERT INTO outbox (route, payload, state, expires_at) SELECT 'nobodys', '{}', 'held',"
                  " IF(seq % 10 = 0, UTC_TIMESTAMP(6), NULL) FROM seq_1_to_30000")
    stage.execute("INSERT INTO outbox (route, payload, target_host, expires_at) SELECT 'work', '{}', 'away',"
                  " IF(seq % 10 = 0, UTC_TIMESTAMP(6), NULL) FROM seq_1_to_5000")
    stage.daemons[0].start()
    stage.start("two")
    wait_until(lambda: stage.count("outbox_history", "state = 'expired'") == 3500, LIMIT_S, "all 3500 to expire",
               detail=stage.living)
    assert stage.count() == 27000 + 4500
    assert stage.execute("SELECT COUNT(DISTINCT id) FROM outbox_history") == ((3500,),)


def test_rows_of_very_many_names_expire_within_a_minute(stage):
    """An application may write any number of names that nobody knows: many of them are ended in one step. A step for each
    used to end some fifty in ten seconds."""
    expiring_stage(stage)
    daemon = stage.daemon("one")
    stage.execute("INSERT INTO outbox (route, payload, state, expires_at) SELECT CONCAT('nobodys.', seq), '{}', 'held',"
                  " IF(seq % 10 = 0, NULL, UTC_TIMESTAMP(6)) FROM seq_1_to_2000")
    daemon.start()
    wait_until(lambda: stage.count("outbox_history", "state = 'expired'") == 1800, 60, "all 1800 to expire",
               detail=stage.living)
    assert stage.count(where="state = 'held'") == 200
