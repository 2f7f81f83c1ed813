"""target_host: only the daemon of that name runs the task, whoever holds which shard."""

from support.wait import wait_until

LIMIT_S = 30


def insert(stage, host, count=1):
    """Rows bound to a host; returns their message ids."""
    ids = []
    with stage.connect() as connection, connection.cursor() as cursor:
        for _ in range(count):
            cursor.execute("INSERT INTO outbox (route, payload, target_host) VALUES ('work', '{}', %s)", (host,))
            cursor.execute("SELECT message_id FROM outbox WHERE id = %s", (cursor.lastrowid,))
            ids.append(cursor.fetchone()[0])
    return ids


def test_each_host_runs_its_own(stage):
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    one = stage.start("one")
    two = stage.start("two")
    mine, theirs, nobodys = insert(stage, "one", 20), insert(stage, "two", 20), insert(stage, "three", 5)
    for message_id in mine + theirs:
        stage.wait_row(message_id, LIMIT_S, state="done")
    ran = dict(stage.execute("SELECT target_host, GROUP_CONCAT(DISTINCT claimed_by) FROM outbox_history"
                             " GROUP BY target_host"))
    assert set(ran) == {"one", "two"}
    assert ran["one"] != ran["two"] and "," not in ran["one"] + ran["two"]
    for daemon in (one, two):       # it counts after the commit
        wait_until(lambda daemon=daemon: daemon.metric("duebox_settled_rows") >= 20, LIMIT_S, "the counters to follow")
        assert daemon.metric("duebox_settled_rows") == 20
    # What is bound to a host that is not there waits, and is cancelled like any other.
    assert stage.count("outbox", "target_host = 'three' AND state = 'scheduled'") == 5
    assert one.api("POST", f"/api/v1/tasks/{nobodys[0]}/cancel", {})[0] == 200
    one.run("task", "cancel", *nobodys[1:], "--yes")
    assert stage.count("outbox_history", "target_host = 'three' AND state = 'cancelled'") == 5


def test_those_of_others_hold_up_nothing(stage):
    """A backlog for a host that is away costs neither our own tasks nor unbound ones."""
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    stage.start("one")
    stage.execute("INSERT INTO outbox (route, payload, target_host)"
                  " SELECT 'work', '{}', 'away' FROM seq_1_to_5000")
    for message_id in insert(stage, "one", 10) + insert(stage, "", 10):
        stage.wait_row(message_id, LIMIT_S, state="done")
    assert stage.count("outbox") == 5000
