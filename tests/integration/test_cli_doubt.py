"""What a command cannot know it does not deny: a daemon has done it, or may still do it."""

import copy
import os
import subprocess

import pytest
import yaml

from support.daemon import preset_folder
from support.tcp_proxy import TcpProxy
from support.wait import wait_until

PASSWORD = "right"
LIMIT_S = 60


def far_command(stage, daemon, proxy, verb, *words):
    """`duebox task <verb> ..`, a quarter of a second away from the database."""
    user = f"user_{stage.database}"[:60]
    stage.mariadb.create_user(user, PASSWORD, [f"ALL ON `{stage.database}`.*"])
    configuration = copy.deepcopy(daemon.configuration)
    configuration["database"] = {"host": "127.0.0.1", "port": proxy.port, "user": user, "password": PASSWORD,
                                 "name": stage.database}
    file = daemon.folder / "command.yaml"
    file.write_text(yaml.safe_dump(configuration))
    file.chmod(0o600)
    proxy.delay(250)
    return subprocess.Popen([preset_folder() / "bin" / "duebox", "task", verb, *words, "-c", str(file)], text=True,
                            env={"DUEBOX_PLUGIN_PATH": str(preset_folder() / "plugins"), **os.environ},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_result_that_a_daemon_may_still_apply(stage):
    """The row is held, so the daemon does not know yet. The command used to say that nothing was changed, and to give the
    result again; then the daemon applied it."""
    stage.kafka("orders", result="expected", timeout="30m", history="1h")
    stage.configuration["results"] = [{"via": "bus", "topic": stage.topic(1), "group": stage.name}]
    daemon = stage.start()
    task, = stage.insert("orders", end="")
    wait_until(lambda: stage.count("outbox", "state = 'awaiting'") == 1, LIMIT_S, "the task to be sent")
    with stage.connect(autocommit=False) as locks, locks.cursor() as cursor:
        cursor.execute("SELECT id FROM outbox FOR UPDATE")
        said = daemon.run("task", "result", task, "--attempt", "1", "--status", "fail", check=False)
        assert said.returncode == 75
        assert "not known yet: its row is in use, and a daemon has this result too" in said.stderr
        assert "nothing was changed" not in said.stderr
    wait_until(lambda: stage.count("outbox_history", "state = 'dead'") == 1, LIMIT_S, "the daemon to apply it")


CHANGES = ["UPDATE outbox SET due_at = due_at + INTERVAL 1 HOUR", "UPDATE outbox SET priority = 7"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_result_of_a_changed_task_that_is_not_due(stage, change):
    """No result of it counts, so nobody waits for one: neither for a row that nobody uses, nor for the database."""
    stage.http("orders", result="expected", timeout="30m", history="1h")
    daemon = stage.start()
    task, = stage.insert("orders", end="", delay_ms=3600000)
    stage.execute(change)
    status, said = daemon.api("POST", "/api/v1/results", {"id": task, "attempt": 1, "status": "done"})
    assert (status, said["code"]) == (409, "unsent"), said
    for alive in (True, False):
        said = daemon.run("task", "result", task, "--attempt", "1", "--status", "done", check=False)
        assert said.returncode == 65 and "this attempt is not due yet, so no result of it counts" in said.stderr, said
        if alive:
            daemon.stop()
    assert stage.execute("SELECT state, attempt FROM outbox") == (("scheduled", 0),)


def test_a_result_of_a_task_that_waits_for_its_turn(stage):
    """It may be out, and who sent it would record that; the database answers, and nobody uses the row."""
    stage.http("orders", result="expected", timeout="30m", history="1h")
    daemon = stage.start()
    daemon.run("route", "pause", "orders")
    wait_until(lambda: daemon.api("GET", "/api/v1/routes")[1]["routes"][0]["paused"], LIMIT_S, "the daemon to know")
    task, = stage.insert("orders", end="")
    status, said = daemon.api("POST", "/api/v1/results", {"id": task, "attempt": 1, "status": "done"})
    assert (status, said["code"]) == (503, "unrecorded"), said
    said = daemon.run("task", "result", task, "--attempt", "1", "--status", "done", check=False)
    assert said.returncode == 75
    assert "not known yet: it is not recorded yet whether this attempt was handed out, and a daemon" in said.stderr


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("verb", ["cancel", "reschedule"])
def test_what_a_daemon_has_done_is_not_kept_back(stage, verb, back):
    """The command's own link to the database breaks before it has looked at the row. It used to end with 69, which says
    that nothing was changed, and not a word about the task."""
    stage.http("orders", history="1h")
    daemon = stage.start()
    task, = stage.insert("orders", delay_ms=3600000)
    words, done = (("cancel",), "SELECT 1 FROM outbox_history") if verb == "cancel" else (
        ("reschedule", "--delay", "5h"), "SELECT 1 FROM outbox WHERE due_at > UTC_TIMESTAMP() + INTERVAL 4 HOUR")
    with TcpProxy(stage.mariadb.port) as proxy, far_command(stage, daemon, proxy, words[0], task, *words[1:]) as command:
        wait_until(lambda: stage.execute(done), LIMIT_S, "the daemon to do it")
        proxy.drop()
        if back:
            proxy.restore()
        out, said = command.communicate(timeout=LIMIT_S)
    if back and command.returncode == 0:
        assert f"{task}  {'cancelled' if verb == 'cancel' else 'rescheduled'}" in out
    else:
        assert command.returncode == 69
        assert "says that it was done, and the row cannot be looked at" in said, said


def test_what_went_since_was_not_sent_before(stage):
    """Rescheduled to now, it is sent before the command looks at its row again. That is no copy from before."""
    stage.http("orders", history="1h")
    stage.consume_http()
    daemon = stage.start()
    task, = stage.insert("orders", delay_ms=3600000)
    with TcpProxy(stage.mariadb.port) as proxy, \
            far_command(stage, daemon, proxy, "reschedule", task, "--at", "now") as command:
        stage.wait_empty(LIMIT_S)
        assert command.poll() is None, "the daemon was not quicker"
        out, said = command.communicate(timeout=LIMIT_S)
    assert (command.returncode, out) == (0, f"{task}  rescheduled\n"), said


DONE = ("--attempt", "1", "--status", "done")
COMMANDS = [   # what is said of a task by a command, done by the daemon where one runs, and the tables it writes
    ("cancel", (), "DELETE", "outbox"), ("reschedule", ("--delay", "2h"), "UPDATE", "outbox"),
    ("set", ("--priority", "7"), "UPDATE", "outbox"), ("result", DONE, "DELETE", "outbox")]


@pytest.mark.parametrize("alive", [True, False], ids=["daemon", "no daemon"])
def test_a_missing_grant_ends_with_77(stage, alive):
    """Whoever does it: a script that tries 69 again would never end, since nobody gives the right by itself."""
    stage.http("orders", result="expected", timeout="30m", history="1h")
    daemon = stage.start()
    user = f"user_{stage.database}"[:60]
    tables = [name for (name,) in stage.execute("SHOW TABLES LIKE 'outbox%%'")]
    right = "SELECT, INSERT, UPDATE, DELETE"
    stage.mariadb.create_user(user, "se-cret", [f"{right} ON `{stage.database}`.`{table}`" for table in tables])
    daemon.stop()
    base = daemon.configuration
    daemon.configure({**base, "database": {**base["database"], "user": user, "password": "se-cret"}})
    daemon.start()
    task, = stage.insert("orders", end="", delay_ms=3600000)
    waiting, = stage.insert("orders", end="")
    stage.execute("UPDATE outbox SET state = 'awaiting', attempt = 1, claim_epoch = 1, changed_at = created_at,"
                  " lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE message_id = %s", waiting)
    if not alive:
        daemon.stop()
    for verb, words, what, table in COMMANDS:
        stage.execute(f"REVOKE {what} ON `{stage.database}`.`{table}` FROM '{user}'@'%'")
        said = daemon.run("task", verb, waiting if verb == "result" else task, *words, check=False)
        assert said.returncode == 77 and ("denied" in said.stderr or "lacks" in said.stderr), (verb, said)
        if verb in ("cancel", "reschedule") and alive:
            motive = {} if verb == "cancel" else {"delay_ms": 7200000}
            status, said = daemon.api("POST", f"/api/v1/tasks/{task}/{verb}", motive)
            assert (status, said["code"]) == (500, "rights"), said
        stage.execute(f"GRANT {what} ON `{stage.database}`.`{table}` TO '{user}'@'%'")
    assert stage.count("outbox", "state = 'scheduled'") == 1
