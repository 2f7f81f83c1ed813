"""A plugin that hangs, ends its thread or kills the process: noticed, replaced, and the row at fault found.

The plugin is the scripted one of tests/abi/null_sink.c.
"""

import time

from support.wait import wait_until

LIMIT_S = 60


def null_stage(stage, *, timeout="1s", **options):
    stage.plugin("nowhere", module="null", **options)
    stage.route("work", via="nowhere", history="1h", timeout=timeout, retry={"levels": ["50ms"]}, max_attempts=5)


def insert(stage, body, count=1):
    """Rows that the null plugin takes; returns their message ids."""
    with stage.connect() as connection, connection.cursor() as cursor:
        ids = []
        cursor.execute("START TRANSACTION")     # a task that is done is in the table no more
        for _ in range(count):
            cursor.execute("INSERT INTO outbox (route, payload) VALUES ('work', %s)", (body,))
            cursor.execute("SELECT message_id FROM outbox WHERE id = %s", (cursor.lastrowid,))
            ids.append(cursor.fetchone()[0])
        cursor.execute("COMMIT")
    return ids


def test_a_plugin_that_hangs_is_replaced(stage, tmp_path):
    """What it held counts as possibly sent; everything else goes on through a new instance."""
    go_on = tmp_path / "go-on"
    null_stage(stage, timeout="60s", hang_until=str(go_on))
    daemon = stage.start(engine={"hang": "4s"})
    [hung] = insert(stage, b"hang")
    daemon.wait_log("DUEBOX-DRIVER-REPLACED", limit_s=LIMIT_S)
    go_on.touch()       # the next attempt comes back, and so does the abandoned thread
    stage.wait_row(hung, LIMIT_S, state="done", failures=1)
    assert [what[3] for what in stage.attempts(hung)] == ["plugin.hang"]
    others = insert(stage, b"{}", 50)
    for message_id in others:
        stage.wait_row(message_id, LIMIT_S, state="done")
    assert daemon.metric("duebox_drivers_replaced") == 1
    stage.wait_empty(LIMIT_S)


def test_a_daemon_that_stood_still_replaces_no_plugin(stage):
    """Its plugins were silent while the whole process was stopped, which says nothing of them."""
    null_stage(stage)
    daemon = stage.start(engine={"hang": "1s", "lease": "1s"})

    def alive_until():
        return stage.execute("SELECT alive_until FROM outbox_instances WHERE host <> ''")[0][0]
    daemon.pause()
    stopped = alive_until()
    time.sleep(4)       # longer than what counts as a hang
    daemon.resume()
    for _ in range(4):  # beats; what watches the plugins runs between them
        before = alive_until()
        wait_until(lambda: alive_until() > max(before, stopped), LIMIT_S, "the daemon to go on")
    assert not [line for line in daemon.lines() if line["id"] == "DUEBOX-DRIVER-COMING"]
    [done] = insert(stage, b"{}")
    stage.wait_row(done, LIMIT_S, state="done")


def test_a_reload_changes_how_long_a_plugin_may_hang(stage, tmp_path):
    """engine.hang is live: a reload that is accepted keeps its word."""
    go_on = tmp_path / "go-on"
    null_stage(stage, timeout="60s", hang_until=str(go_on))
    daemon = stage.start(engine={"hang": "1h"})
    [hung] = insert(stage, b"hang")
    try:
        wait_until(lambda: daemon.metric("duebox_inflight_tasks") == 1, LIMIT_S, "the plugin to hang")
        assert daemon.reload({**daemon.configuration, "engine": {**daemon.configuration["engine"], "hang": "2s"}})
        daemon.wait_log("DUEBOX-DRIVER-REPLACED", limit_s=LIMIT_S)
    finally:
        go_on.touch()
    stage.wait_row(hung, LIMIT_S, state="done", failures=1)


def test_a_task_that_a_plugin_forgets_is_tried_again(stage):
    """Each attempt ends as possibly sent after twice its time-out; others go on, and at last the row is dead."""
    null_stage(stage)
    daemon = stage.start(engine={"hang": "2s"})
    [forgotten] = insert(stage, b"forget")
    stage.execute("UPDATE outbox SET max_attempts = 2")
    others = insert(stage, b"{}", 20)
    for message_id in others:
        stage.wait_row(message_id, LIMIT_S, state="done")
    row = stage.wait_row(forgotten, LIMIT_S, state="dead")
    assert (row["failures"], row["error_class"]) == (2, "plugin.forgot")
    assert daemon.metric("duebox_drivers_replaced") == 0
    daemon.wait_log("DUEBOX-PLUGIN-FORGOT", limit_s=LIMIT_S)
    stage.wait_empty(LIMIT_S)


def test_a_plugin_whose_destination_is_away_has_forgotten_nothing(stage, tmp_path):
    """As RabbitMQ with an alarm, which confirms when that is over: a task that waits for it costs no failure and no
    copy. From when on the destination is there again the plugin is to answer."""
    away = tmp_path / "away"
    null_stage(stage, away_while=str(away))
    stage.plugin("elsewhere", module="null")
    stage.route("other", via="elsewhere", timeout="1s", retry={"levels": ["1h"]})
    daemon = stage.start(engine={"hang": "1s"})
    away.touch()
    wait_until(lambda: daemon.metric("duebox_plugin_up", plugin="nowhere") == 0, LIMIT_S, "the plugin to say so")
    [waits] = insert(stage, b"forget")
    wait_until(lambda: daemon.metric("duebox_plugin_inflight_tasks", plugin="nowhere") == 1, LIMIT_S, "it to have one")
    stage.execute("INSERT INTO outbox (route, payload, message_id) VALUES ('other', 'forget', 'forgotten')")
    stage.wait_row("forgotten", LIMIT_S, failures=1, error_class="plugin.forgot")     # it was given later
    assert stage.row(waits)["failures"] == 0
    away.unlink()
    stage.wait_row(waits, LIMIT_S, failures=1, error_class="plugin.forgot")


def test_a_new_instance_that_takes_its_time_costs_no_lease(stage, tmp_path):
    """create() of the new instance blocks (a name that does not resolve, say) for longer than a lease: leases are
    renewed meanwhile, other plugins go on, and when it is there it takes over."""
    go_on, waits = tmp_path / "go-on", tmp_path / "create-waits"
    null_stage(stage, hang_until=str(go_on), create_waits=str(waits))
    stage.plugin("elsewhere", module="null")
    stage.route("other", via="elsewhere")
    daemon = stage.start(engine={"lease": "1s", "hang": "8s"})
    epochs = stage.execute("SELECT shard, epoch FROM outbox_shards WHERE shard < 63 ORDER BY shard")
    waits.touch()
    [hung] = insert(stage, b"hang")
    daemon.wait_log("DUEBOX-DRIVER-COMING", limit_s=LIMIT_S)
    held_until = "SELECT MIN(lease_until) FROM outbox_shards WHERE shard < 63"
    enough = f"SELECT ({held_until}) > %s + INTERVAL 3 SECOND"      # three leases
    before = stage.execute(held_until)[0][0]

    def renewed():
        stage.execute("INSERT INTO outbox (route, payload) VALUES ('other', '{}')")
        stage.wait_empty(LIMIT_S, "route = 'other'")
        return stage.execute(enough, before)[0][0]
    wait_until(renewed, LIMIT_S, "the leases to be renewed", detail=daemon.log_tail)
    assert daemon.metric("duebox_leases_lost") == 0
    assert stage.execute("SELECT shard, epoch FROM outbox_shards WHERE shard < 63 ORDER BY shard") == epochs
    assert daemon.metric("duebox_drivers_replaced") == 0
    waits.unlink()
    go_on.touch()
    daemon.wait_log("DUEBOX-DRIVER-REPLACED", limit_s=LIMIT_S)
    stage.wait_row(hung, LIMIT_S, state="done")
    stage.wait_empty(LIMIT_S)


def test_an_instance_that_cannot_be_made_stops_the_start(stage):
    """With the error that the plugin gave, and no harm to what was made before."""
    null_stage(stage)
    stage.plugin("broken", module="null", create_fails="as the test asked for")
    daemon = stage.daemon()
    daemon.start(wait_ready=False)
    assert daemon.wait_end(LIMIT_S) != 0
    assert "plugin instance broken cannot be made: as the test asked for" in daemon.log_tail()
    stage.daemons.remove(daemon)        # its status was judged here


def test_a_row_that_kills_the_process_is_found(stage):
    """Three crashes with the row in flight make it dead as poison; its neighbours are done."""
    null_stage(stage)
    daemon = stage.start(engine={"lease": "2s"})
    [poison] = insert(stage, b"crash")
    innocent = insert(stage, b"{}", 40)
    crashes = 0
    while (stage.row(poison) or {}).get("state") != "dead":
        wait_until(lambda: not daemon.alive() or (stage.row(poison) or {}).get("state") == "dead", LIMIT_S,
                   "the daemon to crash or the poison row to be dead", detail=daemon.log_tail)
        if not daemon.alive():
            crashes += 1
            assert crashes <= 6, "the row kills the process again and again"
            daemon.start(wait_ready=False)
    assert stage.row(poison)["error_class"] == "claim.poison"
    for message_id in innocent:
        assert stage.wait_row(message_id, LIMIT_S, state="done")
    # The first crash may find the claim in memory only; three recoveries follow.
    assert 3 <= crashes <= 4


def test_doctor_ends_though_a_plugin_does_not(stage, tmp_path):
    """create() that never returns: doctor says so of that plugin, and says the rest too."""
    waits = tmp_path / "create-waits"
    waits.touch()
    null_stage(stage, create_waits=str(waits))
    stage.plugin("elsewhere", module="null")
    stage.route("other", via="elsewhere")
    done = stage.daemon().run("doctor", check=False)
    said = done.stdout
    assert "plugin nowhere hangs when an instance of it is started" in said
    assert "plugin elsewhere reaches its destination" in said
    assert done.returncode == 0, done.stderr
