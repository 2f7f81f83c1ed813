"""Commands of one outbox that meet the daemon of another: its database is the original of theirs, or it listens at the
address that their configuration names.  That daemon changes nothing, and they say so."""

import os
import re

import pytest
from support.daemon import Daemon

HOUR_MS = 3600_000
NAMED = "works on another outbox"


@pytest.fixture
def copy(stage):
    """A database that was copied while the daemon of the original ran, and commands on it that have the same token."""
    stage.http("hook", history="1h")
    stage.http("later", result="expected", timeout="60s")
    original = stage.start()
    name = stage.mariadb.create_database(f"{stage.name}-copy")
    commands = Daemon(stage.folder / "copy", {**original.configuration, "database": {
        **stage.configuration["database"], "name": name}, "admin": {"url": f"http://127.0.0.1:{original.port}"}})
    commands.migrate()
    commands.original, commands.name = original, name

    def task(id_, **columns):
        """The same task in both databases."""
        columns = {"id": id_, "message_id": f"task-{id_}", "route": "hook", "payload": "{}", "delay_ms": HOUR_MS, **columns}
        for database in (stage.database, name):
            stage.execute(f"INSERT INTO `{database}`.outbox ({', '.join(columns)})"
                          f" VALUES ({', '.join(['%s'] * len(columns))})", *columns.values())
        stage.execute(f"DELETE FROM `{name}`.outbox_instances")
        stage.execute(f"INSERT INTO `{name}`.outbox_instances SELECT * FROM outbox_instances WHERE kind = 'daemon'")
        stage.execute(f"REPLACE INTO `{name}`.outbox_shards SELECT * FROM outbox_shards")
        stage.execute(f"UPDATE `{name}`.outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE shard < 63")
        return f"task-{id_}"

    def states(message_id):
        """What the original has of it, and what the copy."""
        return [([state for state, in stage.execute(
            f"SELECT state FROM `{database}`.outbox WHERE message_id = %s UNION ALL"
            f" SELECT state FROM `{database}`.outbox_history WHERE message_id = %s", message_id, message_id)] or [None])[0]
            for database in (stage.database, name)]
    commands.task, commands.states = task, states
    return commands


@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--delay", "2h"]], ids=lambda words: words[0])
def test_a_task_of_the_original_stays_as_it_is(copy, stage, words):
    id_ = copy.task(7)
    due = stage.row(id_)["next_at"]
    done = copy.run("task", words[0], id_, *words[1:], check=False)
    assert (done.returncode, done.stdout) == (os.EX_UNAVAILABLE, ""), done
    assert f"nothing was changed: http://127.0.0.1:{copy.original.port}: the daemon there {NAMED}" in done.stderr
    assert copy.states(id_) == ["scheduled", "scheduled"] and stage.row(id_)["next_at"] == due
    assert stage.count("outbox_audit") == 0
    # Nobody renews its leases: when they are over, the rows are there to be changed.
    stage.execute(f"UPDATE `{copy.name}`.outbox_shards SET lease_until = UTC_TIMESTAMP(6)")
    copy.run("task", words[0], id_, *words[1:])
    assert copy.states(id_) == ["scheduled", "cancelled" if words[0] == "cancel" else "scheduled"]
    assert stage.row(id_)["next_at"] == due


def test_a_result_counts_in_the_outbox_of_the_command(copy):
    id_ = copy.task(8, route="later", state="awaiting", attempt=1, lease_until="2100-01-01")
    assert copy.run("task", "result", id_, "--attempt", 1, "--status", "done").stdout == f"{id_}  applied\n"
    assert copy.states(id_) == ["awaiting", None]


def test_another_outbox_is_not_reloaded(copy):
    mark = copy.original.mark()
    done = copy.run("reload", check=False)
    assert done.returncode == os.EX_UNAVAILABLE and NAMED in done.stderr
    assert copy.original.run("reload").stderr == "reloaded\n"
    copy.original.wait_log("DUEBOX-RELOADED", after=mark)
    assert sum(line["id"] == "DUEBOX-RELOADED" for line in copy.original.lines(mark)) == 1


def test_what_another_outbox_says_is_not_shown_as_ones_own(copy):
    said = copy.run("route", "list")
    assert NAMED in said.stderr and re.search(r"^hook +hooks +\? ", said.stdout, re.MULTILINE)
    said = " ".join(copy.run("doctor", check=False).stdout.split())
    assert NAMED in said and ": ready" not in said and "the daemon has met none that is down" not in said


def test_commands_leave_nothing_behind(copy, stage):
    id_ = copy.task(9)
    copy.original.run("task", "cancel", id_)
    copy.original.run("route", "list")
    copy.run("task", "cancel", id_, check=False)
    for database in (stage.database, copy.name):
        assert stage.execute(f"SELECT COUNT(*) FROM `{database}`.outbox_instances WHERE kind <> 'daemon'") == ((0,),)


def test_a_request_that_names_no_outbox_is_for_whoever_gets_it(copy, stage):
    first, second = copy.task(10), copy.task(11)
    assert copy.original.api("POST", f"/api/v1/tasks/{first}/cancel", {})[0] == 200
    status, body = copy.original.api("POST", f"/api/v1/tasks/{second}/cancel", {}, headers={"Duebox-Outbox": "command-1"})
    assert (status, body["code"]) == (421, "outbox")
    instance = stage.execute("SELECT id FROM outbox_instances WHERE host <> ''")[0][0]      # which every copy has
    for name in (instance, "command-" + "0" * 200, "command-\xe9", "command'\\"):
        assert copy.original.api("GET", "/api/v1/routes", headers={"Duebox-Outbox": name})[0] == 421
    assert copy.states(second) == ["scheduled", "scheduled"]


def test_a_reload_needs_no_database(remote):
    """Neither that of the daemon nor that of the command: nobody knows then whose daemon answers, and that is said."""
    remote.http("hook")
    daemon = remote.start()
    words = ["reload"]
    assert daemon.run(*words).stderr == "reloaded\n"
    socket = {**daemon.configuration, "database": {"socket": str(remote.mariadb.socket), "user": "root",
                                                    "name": remote.database}}
    here = Daemon(remote.folder / "here", {**socket, "admin": {"url": f"http://127.0.0.1:{daemon.port}"}})
    assert here.run(*words).stderr == "reloaded\n"
    remote.proxy.drop()
    for commands in (daemon, here):
        said = commands.run(*words).stderr.splitlines()
        assert "works on this outbox was not checked: " in said[0] and said[1:] == ["reloaded"]
