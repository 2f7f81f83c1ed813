"""Changing tasks from the command line while no daemon runs: cancel, reschedule, retry, set,
result; one and many; what is refused, and the audit rows that are left."""

import concurrent.futures
import datetime
import json
import time

import pytest
from support.command_line import cli
from support.wait import wait_until

__all__ = ["cli"]

STATES = ("scheduled", "claimed", "awaiting", "held", "blocked")


def in_every_state(cli):
    """One living row in each state, by state."""
    ids = cli.add(count=len(STATES))
    for id_, state in zip(ids, STATES):
        cli.sql("UPDATE outbox SET state = %s, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, failures = 1"
                " WHERE id = %s", state, id_)
    return dict(zip(STATES, ids))


def refuse(cli, condition, table="outbox_history"):
    """A trigger of the operator's refuses such rows."""
    cli.sql(f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW BEGIN IF {condition} THEN"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not these'; END IF; END")


# -- what the server refuses --------------------------------------------------------------------

@pytest.mark.parametrize("daemon", [False, True])
def test_a_task_that_the_server_refuses_keeps_no_other(cli, daemon):
    if daemon:
        cli.daemon.start()
    refuse(cli, "NEW.task_key = 'keep'")
    kept, = cli.add(task_key="keep")
    free, = cli.add()
    done = cli.json("task", "cancel", kept, free, code=65)
    assert [task["outcome"] for task in done["tasks"]] == ["refused", "cancelled"]
    assert "not these" in done["tasks"][0]["detail"] and "not these" in done["refusal"]
    assert (done["matched"], done["changed"], done["refused"]) == (2, 1, 1)
    assert cli.ids() == [kept]
    others = cli.add(count=20)
    done = cli.json("task", "cancel", "--route", "crm.push", "--yes", code=65)
    assert (done["matched"], done["changed"], done["refused"]) == (21, 20, 1)
    assert "not these" in done["refusal"] and cli.ids() == [kept]
    assert len(cli.ids(f"id IN ({', '.join(map(str, others))}) AND state = 'cancelled'", "outbox_history")) == 20
    said = cli.run("task", "cancel", "--route", "crm.push", "--yes")
    assert said.returncode == 65 and "1 are refused by the server" in said.stdout and "not these" in said.stdout
    assert "cannot be reached" not in said.stderr and "did not answer" not in said.stderr
    cli.sql("DROP TRIGGER refuse")
    assert cli("task", "cancel", kept) == f"{kept}  cancelled\n"


def test_a_dead_task_that_the_server_refuses_keeps_no_other(cli):
    kept, = cli.dead(task_key="keep")
    free = cli.dead(count=9)
    refuse(cli, "NEW.task_key = 'keep'", "outbox")
    done = cli.json("dead", "retry", "--route", "crm.push", "--yes", code=65)
    assert (done["changed"], done["refused"]) == (9, 1) and sorted(cli.ids()) == free
    assert cli.ids(table="outbox_history") == [kept]


def test_one_refused_task_of_many_costs_few_transactions(cli):
    """And a command all of whose tasks are refused ends, and says so, instead of trying each of thousands."""
    cli.sql("INSERT INTO outbox (route, payload, task_key, delay_ms)"
            " SELECT 'crm.push', '{}', IF(seq = 217, 'keep', ''), 3600000 FROM seq_1_to_500")
    refuse(cli, "NEW.task_key = 'keep'")
    done = cli.json("task", "cancel", "--route", "crm.push", "--yes", code=65)
    assert (done["changed"], done["refused"]) == (499, 1)
    assert len(cli.audit()) < 25
    cli.sql("INSERT INTO outbox (route, payload, task_key, delay_ms)"
            " SELECT 'crm.push', '{}', 'keep', 3600000 FROM seq_1_to_3000")
    ended = cli.run("task", "cancel", "--route", "crm.push", "--yes", "-o", "json")
    done = json.loads(ended.stdout)
    assert (ended.returncode, done["matched"], done["changed"], done["refused"]) == (65, 3001, 0, 1000), ended
    assert "refused 1000 tasks one after the other, and 2001 others were not tried" in ended.stderr
    assert "not these" in ended.stderr


def test_an_audit_row_that_the_server_refuses_is_data(cli):
    """Not a configuration that starting again does not mend."""
    refuse(cli, "NEW.verb <> 'cancel'", "outbox_audit")
    id_, = cli.add()
    assert "the server refuses it" in cli.run("task", "set", id_, "--priority", "9").stdout
    assert "not these" in cli.fails(65, "route", "pause", "crm.push")
    assert cli.row(id_)["priority"] != 9
    assert cli("task", "cancel", id_) == f"{id_}  cancelled\n"


# -- cancel -----------------------------------------------------------------------------------

def test_cancel_moves_the_row_into_the_history(cli):
    id_, = cli.add(task_key="k", payload=b"\xff\0x", priority=9, message_id="m-1", headers='{"a":"b"}')
    before = cli.row(id_)
    assert cli("task", "cancel", id_, "--reason", "paid meanwhile") == f"{id_}  cancelled\n"
    assert cli.row(id_) is None
    after = cli.row(id_, "outbox_history")
    assert after["state"] == "cancelled"
    same = ("message_id", "route", "payload", "headers", "task_key", "due_at", "priority", "created_at", "shard")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert (after["keep_until"] - after["finished_at"]).days == 30
    entry, = cli.audit()
    assert (entry["verb"], entry["reason"], entry["filter"], entry["changed"]) == (
        "cancel", "paid meanwhile", str(id_), 1)
    assert entry["before"][0]["state"] == "scheduled" and entry["before"][0]["message_id"] == "m-1"
    assert "@" in entry["actor"]


def test_a_key_is_no_other_that_differs_by_blanks(cli):
    """The server ignores blanks at the end of texts that it compares: to cancel "17" took the task of "17 " with it."""
    ids = [cli.add(task_key=key)[0] for key in ("17", "17 ", "17  ", " 17")]
    ended = [cli.dead(task_key=key, error_class=key)[0] for key in ("17", "17 ")]
    assert [int(row["id"]) for row in cli.json("task", "list", "--key", "17 ")] == [ids[1]]
    assert cli("task", "cancel", "--key", "17", "--yes").startswith("1 of 1 tasks cancelled")
    assert cli.ids() == ids[1:]
    assert [int(row["id"]) for row in cli.json("dead", "list", "--key", "17 ")] == [ended[1]]
    assert [int(row["id"]) for row in cli.json("dead", "list", "--error", "17")] == [ended[0]]
    plan = cli.sql("EXPLAIN SELECT id FROM outbox WHERE task_key = '17' AND LENGTH(task_key) = 2")
    assert "ix_task_key" in str(plan)


def test_cancel_of_each_living_state(cli):
    ids = in_every_state(cli)
    done = cli.json("task", "cancel", *ids.values())
    assert [task["outcome"] for task in done["tasks"]] == ["cancelled"] * 5
    assert (done["matched"], done["changed"], done["in_flight"], done["maybe_sent"]) == (5, 5, 0, 2)
    assert cli.ids() == []


def test_no_verb_guesses_which_of_two_tasks_is_meant(cli):
    """A row id that is the message id of another task too changes neither, wherever the two are."""
    first, = cli.add(message_id="m-1")
    second, = cli.add(message_id=str(first))
    for words in (["cancel"], ["reschedule", "--delay", "1m"], ["set", "--priority", "9"], ["retry"],
                  ["result", "--attempt", "1", "--status", "done"]):
        assert "names two tasks" in cli.fails(65, "task", words[0], first, *words[1:]), words
    assert cli.ids() == [first, second] and cli.audit() == []
    assert cli("task", "cancel", f"id:{first}") == f"id:{first}  cancelled\n"
    assert "names two tasks" in cli.fails(65, "task", "cancel", first)  # the one in the history is meant, perhaps
    assert cli.ids() == [second]
    assert cli("task", "cancel", f"message_id:{first}") == f"message_id:{first}  cancelled\n"


def test_cancel_says_what_it_could_not_do(cli):
    ended, = cli.dead()
    living, = cli.add()
    done = cli.run("task", "cancel", "gone", ended, living)
    assert (done.returncode, done.stdout) == (
        65, f"gone  not found\n{ended}  has ended already: dead\n{living}  cancelled\n")
    assert cli.run("task", "cancel", "gone").returncode == 66
    assert cli.run("task", "cancel", living).stdout == f"{living}  has ended already: cancelled\n"


def test_bulk_needs_a_yes(cli):
    ids = cli.add(count=3)
    assert cli.fails(64, "task", "cancel", "--route", "crm.push") == (
        "duebox: 3 tasks would be cancelled (--route crm.push); give --yes to do it, or --dry-run\n")
    assert cli.fails(64, "task", "cancel", "--yes") == (
        "duebox: task cancel: which tasks? Give ids or filters; --state with a state stands for all in it\n")
    assert cli.fails(64, "task", "cancel", "--state", "done", "--yes") == (
        "duebox: task cancel: --state names a state in which a task cannot be cancelled\n")
    assert (cli.ids(), cli.audit()) == (ids, [])


@pytest.mark.parametrize("option", ["--due-before", "--created-before"])
@pytest.mark.parametrize("time", ["1970-01-01", "1970-01-01T00:00:00+02:00", "-30000d"])
def test_a_time_before_all_tasks_selects_none(cli, option, time):
    """A script whose last run was "never" says 1970: that is no condition which every task fulfils."""
    id_, = cli.add()
    assert cli("task", "cancel", option, time, "--yes") == "0 of 0 tasks cancelled\n"
    assert cli.ids() == [id_]
    assert cli("task", "cancel", option.replace("before", "after"), time, "--dry-run").startswith("1 tasks ")


def test_dry_run_changes_nothing(cli):
    ids = cli.add(count=3)
    assert cli("task", "cancel", "--route", "crm.push", "--dry-run") == "3 tasks would be cancelled (--route crm.push)\n"
    assert cli("task", "cancel", "--route", "crm.push", "--dry-run", "--limit", 2).startswith("2 tasks ")
    assert cli("task", "cancel", ids[0], "--dry-run") == f"{ids[0]}  is scheduled\n"
    found = cli.json("task", "cancel", "--route", "crm.push", "--dry-run")
    assert (found["dry_run"], found["matched"], found["changed"], found["audit_first"]) == (True, 3, 0, None)
    assert (cli.ids(), cli.audit()) == (ids, [])


def test_bulk_with_limit_and_audit(cli):
    ids = cli.add(count=5)
    others = cli.add("orders.cancel", count=2)
    said = cli("task", "cancel", "--route", "crm.push", "--limit", 3, "--reason", "why not", "--yes")
    assert said == "3 of 3 tasks cancelled (audit 1)\n"
    assert cli.ids() == ids[3:] + others
    entry, = cli.audit()
    assert (entry["filter"], entry["changed"], entry["reason"]) == ("--route crm.push", 3, "why not")
    assert [int(row["id"]) for row in entry["before"]] == ids[:3]
    done = cli.json("task", "cancel", "--state", "living", "--yes")
    assert (done["matched"], done["changed"], done["audit_first"], done["audit_last"]) == (4, 4, "2", "2")
    assert cli("task", "cancel", "--route", "crm.push", "--yes") == "0 of 0 tasks cancelled\n"


def test_the_audit_rows_of_a_step_that_met_a_collision(cli):
    """Its tasks are changed in smaller steps then: the first and the last row are those of all, not its first twice."""
    cli.dead(count=3)
    taken, = cli.dead(dedup_key="taken")
    cli.add(dedup_key="taken")
    done = cli.json("dead", "retry", "--route", "crm.push", "--yes", code=65)
    assert (done["changed"], done["conflict"], done["audit_first"], done["audit_last"]) == (3, 1, "1", "2")
    assert [row["changed"] for row in cli.audit()] == [2, 1] and cli.ids(table="outbox_history") == [taken]


def test_many_thousands_in_steps(cli):
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_1700")
    said = cli("task", "cancel", "--where", "id % 2 = 0", "--yes")
    assert said == "850 of 850 tasks cancelled (audit 1 to 2)\n"
    assert cli.ids("id % 2 = 0") == [] and len(cli.ids()) == 850
    assert sum(entry["changed"] for entry in cli.audit()) == 850


def test_the_pace_is_kept(cli):
    cli.add(count=20)
    started = time.monotonic()
    cli("task", "cancel", "--route", "crm.push", "--rate", "40/s", "--yes")
    assert time.monotonic() - started >= 0.5
    assert cli.ids() == []


def run_while_removed(cli, ids, *words):
    """The command's answer where these tasks end between the moment it finds them and that of their change."""
    with cli.stage.connect(autocommit=False) as connection, connection.cursor() as cursor, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        cursor.execute(f"DELETE FROM outbox WHERE id IN ({', '.join(map(str, ids))})")
        command = pool.submit(cli.run, "task", *words)
        wait_until(lambda: command.done() or cli.sql("SELECT 1 FROM information_schema.innodb_lock_waits"), 60,
                   "the command to wait for a row")
        connection.commit()
        return command.result()


CHANGES = [["cancel"], ["reschedule", "--at", "+2h"], ["set", "-p", "9"]]


@pytest.mark.parametrize("by", ["ids", "filter"])
@pytest.mark.parametrize("words", CHANGES)
def test_a_row_that_somebody_holds_is_passed_over(cli, words, by):
    """75, since it can be tried again; the others are changed all the same, and counted."""
    ids = cli.add(count=6)
    which = map(str, ids) if by == "ids" else ["--route", "crm.push", "--yes"]
    with cli.stage.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for id_ in (ids[1], ids[3]):
            cursor.execute("SELECT 1 FROM outbox WHERE id = %s FOR UPDATE", (id_,))
        done = cli.run("task", *words, *which)
        connection.rollback()
    assert done.returncode == 75, done
    if by == "ids":
        assert done.stdout.count("another transaction holds its row: not changed, try again") == 2
    else:
        assert done.stdout.startswith("4 of 6 tasks ") and "; 2 are held by another transaction" in done.stdout
    assert sum(entry["changed"] for entry in cli.audit()) == 4
    assert cli.run("task", *words, *map(str, [ids[1], ids[3]])).returncode == 0


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("words", CHANGES)
def test_success_says_that_all_that_matched_was_changed(cli, words, left):
    ids = cli.add(count=3)
    done = run_while_removed(cli, ids[left:], *words, "--route", "crm.push", "--yes")
    assert done.returncode == 65
    assert done.stdout.startswith(f"{left} of 3 tasks ") and f"; {3 - left} had moved on meanwhile" in done.stdout


@pytest.mark.parametrize("words", CHANGES)
def test_success_says_that_all_that_were_named_were_changed(cli, words):
    id_, other = cli.add(count=2)
    done = run_while_removed(cli, [id_], *words, id_, other)
    assert done.returncode == 65
    assert done.stdout.startswith(f"{id_}  has moved on, or was deleted, just now\n{other}  ")


# -- cancel and reschedule beside a daemon that does not answer ---------------------------------

@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--at", "now"]])
def test_a_held_shard_is_left_alone(cli, words):
    ids = cli.add(count=3)
    due = cli.row(ids[0])["due_at"]
    cli.hold()
    said = cli.fails(69, "task", *words, ids[0])
    assert said.startswith(f"duebox: task {ids[0]}: the daemon other on far-away holds its shard and cannot be reached; "
                           "nothing was changed: http://127.0.0.1:1/api/v1/tasks/")
    done = cli.run("task", *words, "--route", "crm.push", "--yes")
    assert done.returncode == 69 and done.stdout.startswith("0 of 3 tasks ")
    cli.hold(url="")
    assert cli.fails(69, "task", *words, ids[0]) == (
        f"duebox: task {ids[0]}: the daemon other on far-away holds its shard and has no HTTP listener; nothing was "
        "changed. Set admin.listen there, or stop it first\n")
    assert (cli.ids(), cli.row(ids[0])["due_at"], cli.audit()) == (ids, due, [])


def test_a_lease_that_ran_out_is_no_obstacle_but_its_owner_is_fenced(cli):
    later, = cli.add(delay_ms=3600_000)
    due, = cli.add(delay_ms=0)
    cli.hold(seconds=-1)
    epochs = dict(cli.sql("SELECT shard, epoch FROM outbox_shards"))
    assert cli("task", "cancel", later) == f"{later}  cancelled\n"
    assert cli.json("task", "cancel", due)["tasks"] == [
        {"id": str(due), "outcome": "cancelled", "maybe_sent": True}]
    after = cli.sql("SELECT shard, epoch, owner FROM outbox_shards WHERE shard < 63")
    touched = {cli.row(id_, "outbox_history")["shard"] for id_ in (later, due)}
    assert {shard for shard, epoch, _ in after if epoch > epochs[shard]} == touched
    assert {owner for _, _, owner in after} == {"other"}     # whoever takes over sees an unclean end


def test_retry_and_set_do_not_need_the_owner(cli):
    """Plain SQL may do the same at any time."""
    dead, = cli.dead()
    scheduled, = cli.add()
    cli.hold()
    assert cli("task", "retry", dead) == f"{dead}  retried\n"
    assert cli("task", "set", scheduled, "-p", 9) == f"{scheduled}  changed\n"


# -- reschedule, set ---------------------------------------------------------------------------

def test_reschedule(cli):
    id_, = cli.add()
    cli("task", "reschedule", id_, "--at", "2030-01-31T08:00:00Z")
    assert str(cli.row(id_)["due_at"]) == "2030-01-31 08:00:00"
    assert cli.audit()[0]["before"][0]["due_at"] != "2030-01-31 08:00:00.000000"
    now, = cli.sql("SELECT UTC_TIMESTAMP(6)")[0]
    cli("task", "reschedule", "--route", "crm.push", "--delay", "2h", "--yes")
    wait = cli.row(id_)["due_at"] - now
    assert datetime.timedelta(hours=2) <= wait < datetime.timedelta(hours=2, minutes=1)
    cli("task", "reschedule", id_, "--at", "now")
    assert cli.row(id_)["due_at"] - now < datetime.timedelta(minutes=1)


def test_reschedule_only_what_waits(cli):
    ids = in_every_state(cli)
    done = cli.json("task", "reschedule", *ids.values(), "--at", "now", code=75)
    assert [task["outcome"] for task in done["tasks"]] == ["rescheduled", "in_flight", "in_flight", "state", "state"]
    ended, = cli.dead()
    assert cli.run("task", "reschedule", ended, "--at", "now").returncode == 65


def test_set(cli):
    id_, other = cli.add(count=2)
    cli("task", "set", id_, "--priority", 1, "--max-attempts", 20, "--timeout", "90s", "--expires-at", "2031-01-01",
        "--target-host", "crm-2")
    row = cli.row(id_)
    assert [row["priority"], row["max_attempts"], row["timeout_ms"], str(row["expires_at"]), row["target_host"]] == [
        1, 20, 90000, "2031-01-01 00:00:00", "crm-2"]
    cli("task", "set", "--route", "crm.push", "--max-attempts", 0, "--timeout", "0s", "--expires-at", "never",
        "--target-host", "", "--yes")
    row = cli.row(id_)
    assert [row["max_attempts"], row["timeout_ms"], row["expires_at"], row["target_host"]] == [None, None, None, ""]
    assert cli.row(other)["priority"] == 5
    assert cli.audit()[1]["before"][0]["max_attempts"] == 20
    assert cli.fails(64, "task", "set", id_, "--timeout", "60d") == "duebox: --timeout: at most 49d\n"
    assert cli.fails(64, "task", "set", id_, "--priority", 0) == (
        'duebox: --priority: "0" is no whole number from 1 to 9\n')


def test_set_refuses_a_time_that_has_passed(cli):
    """As `task add` does: such a task would end as expired, which nobody asked for."""
    id_, = cli.add()
    for time_ in ("-1h", "now", "2020-01-01"):
        assert cli.fails(64, "task", "set", id_, "--expires-at", time_) == (
            "duebox: task set: --expires-at must be later than now; `duebox task cancel` ends tasks at once\n")
    assert cli.row(id_)["expires_at"] is None and cli.audit() == []
    cli("task", "set", id_, "--expires-at", "+1h")
    assert cli.row(id_)["expires_at"]


def test_no_task_is_left_that_would_never_be_sent(cli):
    """As `task add` refuses it. (`task reschedule --delay 2h` said rescheduled, and the tasks ended as expired.)"""
    id_, = cli.add()
    expires, = cli.add()
    cli("task", "set", expires, "--expires-at", "+1h")
    before = cli.row(expires)
    for words in (["reschedule", "--delay", "2h"], ["reschedule", "--at", str(before["expires_at"]) + "Z"],
                  ["set", "--expires-at", "2100-01-01"]):
        if words[0] == "set":
            cli.sql("UPDATE outbox SET due_at = '2100-01-01' WHERE id = %s", expires)
            before = cli.row(expires)
        assert cli.fails(65, "task", words[0], expires, *words[1:]) == ""
        dry = cli.json("task", *words, "--where", f"id = {expires}", "--dry-run")
        done = cli.json("task", *words, "--where", f"id >= {id_}", "--yes", code=65)
        assert (dry["expires"], done["matched"], done["changed"], done["expires"], done["state"]) == (1, 2, 1, 1, 0)
        text = cli.run("task", *words, "--where", f"id = {expires}", "--yes").stdout
        assert "1 would expire before they are due" in text
        assert cli.row(expires) == before
    cli("task", "reschedule", expires, "--delay", "30m")
    cli("task", "set", expires, "--expires-at", "+31m", "--priority", 9)


def test_a_host_comes_with_its_shard(cli):
    """Tasks bound to a host are in a shard of their own; one that is about to leave goes there by a daemon's hand."""
    id_, = cli.add(message_id="m-1")
    shard = cli.row(id_)["shard"]
    cli("task", "set", id_, "--target-host", "crm-2")
    assert (cli.row(id_)["target_host"], cli.row(id_)["shard"]) == ("crm-2", 63)
    assert len(cli.json("task", "list", "--route", "crm.push")) == 1
    cli("task", "set", id_, "--target-host", "crm-3")
    cli.hold(seconds=600)
    cli("task", "reschedule", id_, "--at", "+2h")       # nobody leases that shard
    cli("task", "set", id_, "--target-host", "")
    assert (cli.row(id_)["target_host"], cli.row(id_)["shard"]) == ("", shard)
    due, = cli.add(delay_ms=0)
    assert "a daemon takes it to its host" in cli("task", "set", due, "--target-host", "crm-2", "-p", 9)
    row = cli.row(due)
    assert (row["priority"], row["target_host"], row["move_to_host"]) == (9, "", "crm-2")
    assert cli.json("task", "show", due)["move_to_host"] == "crm-2"
    answer = cli.json("task", "set", due, "--target-host", "crm-3")
    assert (answer["changed"], answer["moves"], answer["tasks"][0]["moves"]) == (1, 1, True)
    assert cli.audit()[-1]["before"][0]["move_to_host"] == "crm-2"
    # Back to any: where it is, it may be sent from.
    assert cli("task", "set", due, "--target-host", "") == f"{due}  changed\n"
    assert [cli.row(due)[name] for name in ("target_host", "shard", "move_to_host")] == ["", row["shard"], None]


def test_a_chosen_shard_stays_with_any_host(cli):
    """`--target-host ''` of a task that is bound to none used to write the shard that its key computes to: a daemon that
    had it in memory did not find it again."""
    id_, = cli.add(shard=3, message_id="m-1")
    other, = cli.add(shard=4, message_id="m-2")
    for task in (id_, other):
        cli("task", "set", task, "--target-host", "")
    assert (cli.row(id_)["shard"], cli.row(other)["shard"]) == (3, 4)


def test_a_task_of_an_order_key_goes_to_its_host_in_its_turn(cli):
    """Daemons alone know what else of the key is under way: written directly, others of it overtook it."""
    first, second = cli.add(order_key="k"), cli.add(order_key="k", target_host="crm-1")
    line = cli("task", "set", "--route", "crm.push", "--target-host", "crm-2", "--yes")
    assert line.startswith("2 of 2 tasks changed; 2 are taken to their host by a daemon")
    assert [(cli.row(*id_)["target_host"], cli.row(*id_)["move_to_host"]) for id_ in (first, second)] == [
        ("", "crm-2"), ("crm-1", "crm-2")]
    cli("task", "set", *second, "--target-host", "crm-1")
    assert cli.row(*second)["move_to_host"] is None


def test_set_only_what_waits(cli):
    done = cli.json("task", "set", *in_every_state(cli).values(), "-p", 9, code=75)
    assert [task["outcome"] for task in done["tasks"]] == ["changed", "in_flight", "in_flight", "state", "state"]


# -- retry ---------------------------------------------------------------------------------------

def test_retry_brings_the_dead_back(cli):
    id_, = cli.dead(message_id="m-1", task_key="k", payload=b"\xff\0", headers='{"a":"b"}', priority=2)
    before = cli.row(id_, "outbox_history")
    assert cli("task", "retry", "m-1", "--reason", "bug 17 is fixed") == "m-1  retried\n"
    assert cli.row(id_, "outbox_history") is None
    row = cli.row(id_)
    same = ("message_id", "route", "payload", "headers", "task_key", "priority", "created_at", "shard", "attempt",
            "error_class", "last_error")
    assert {name: row[name] for name in same} == {name: before[name] for name in same}
    assert (row["state"], row["failures"], row["recoveries"], row["attempt"]) == ("scheduled", 0, 0, 3)
    assert row["due_at"] > before["finished_at"]
    entry, = cli.audit()
    assert (entry["verb"], entry["before"][0]["state"], entry["before"][0]["failures"]) == ("retry", "dead", 3)


def test_retry_of_expired_tasks_gives_them_time(cli):
    past, = cli.end(cli.add(expires_at="2020-01-01"), "expired")
    future, = cli.end(cli.add(expires_at="2040-01-01"), "cancelled")
    cli("task", "retry", past, future)
    assert cli.row(past)["expires_at"] is None
    assert str(cli.row(future)["expires_at"]) == "2040-01-01 00:00:00"


def test_retry_makes_no_second_copy_of_what_is_on_its_way(cli):
    """A task that is due has its next attempt now: moving its due time would have it sent once more (P4)."""
    due, = cli.add(due_at="2020-01-01")
    cli.sql("UPDATE outbox SET failures = 1 WHERE id = %s", due)
    assert "is due already" in cli.run("task", "retry", due).stdout
    assert str(cli.row(due)["due_at"]) == "2020-01-01 00:00:00"


def test_filters_of_retry_mean_the_dead(cli):
    dead = cli.dead(count=2)
    cancelled = cli.end(cli.add(), "cancelled")
    done = cli.end(cli.add(), "done")
    waiting, fresh = cli.add(count=2)
    cli.sql("UPDATE outbox SET failures = 2 WHERE id = %s", waiting)
    assert cli("task", "retry", "--route", "crm.push", "--yes") == "2 of 2 tasks retried (audit 1)\n"
    assert cli.ids() == sorted([*dead, waiting, fresh])
    due = cli.row(fresh)["due_at"]
    assert cli("task", "retry", "--state", "scheduled", "--route", "crm.push", "--yes").startswith("1 of 1 ")
    assert cli.row(waiting)["due_at"] < due and cli.row(fresh)["due_at"] == due
    assert cli.run("task", "retry", *done, fresh).stdout == (
        f"{done[0]}  has ended already: done\n{fresh}  its state does not allow it: scheduled\n")
    assert cli("task", "retry", "--state", "cancelled,expired", "--yes").startswith("1 of 1 ")
    assert cli.ids(table="outbox_history") == done
    assert cli.row(cancelled[0])["state"] == "scheduled"


def test_a_collision_stops_only_itself(cli):
    ids = [cli.dead(dedup_key=key)[0] for key in ("a", "b", "c")]
    cli.add(dedup_key="b")
    done = cli.json("task", "retry", "--error", "http.503", "--yes", code=65)
    assert (done["matched"], done["changed"], done["conflict"]) == (3, 2, 1)
    assert cli.ids(table="outbox_history") == [ids[1]]
    assert cli.run("task", "retry", ids[1]).stdout == (
        f"{ids[1]}  another living task has its message id or dedup key\n")
    assert sum(entry["changed"] for entry in cli.audit()) == 2


def test_two_at_once_retry_each_task_once(cli):
    ids = cli.dead(count=300)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: cli.run("task", "retry", "--route", "crm.push", "--yes", "-o", "json"), range(2)))
    said = [json.loads(done.stdout) for done in both]
    assert sum(done["changed"] for done in said) == 300
    for done, answer in zip(both, said):
        assert done.returncode == (0 if answer["changed"] == answer["matched"] else 65)
    assert (cli.ids(), cli.ids(table="outbox_history")) == (ids, [])


def test_a_living_task_with_the_message_id_of_a_dead_one_says_so(cli):
    dead, = cli.dead()
    taken = cli.row(dead, "outbox_history")["message_id"]
    cli.add(message_id=taken)
    assert cli.run("dead", "retry", taken).stdout == (
        f"{taken}  is a living task: scheduled (a dead one with the same id goes by its other one: id:N or message_id:M of `dead list`)\n")
    assert cli.run("dead", "retry", f"id:{dead}").stdout == (
        f"id:{dead}  another living task has its message id or dedup key\n")


def twin(cli, row_id, state, keep):
    """A row of the history with both ids of another, as whoever may INSERT can make one with SET insert_id."""
    columns = [column for column, in cli.sql(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name = 'outbox_history' AND column_name NOT IN ('route', 'state', 'keep_until')")]
    cli.sql(f"INSERT INTO outbox_history (route, state, keep_until, {', '.join(columns)})"
            f" SELECT 'orders.cancel', %s, keep_until + INTERVAL {keep} MINUTE, {', '.join(columns)}"
            " FROM outbox_history WHERE id = %s AND route = 'crm.push'", state, row_id)


@pytest.mark.parametrize("keep", [-1, 1])
def test_an_ended_task_with_both_ids_of_a_dead_one_is_no_obstacle(cli, keep):
    by_route, by_id = cli.dead(count=2)
    twin(cli, by_route, "done", keep)
    twin(cli, by_id, "done", keep)
    assert cli("dead", "retry", "--route", "crm.push", "--limit", 1, "--yes").startswith("1 of 1 tasks retried")
    assert cli("dead", "retry", f"id:{by_id}") == f"id:{by_id}  retried\n"
    assert [cli.row(id, "outbox")["route"] for id in (by_route, by_id)] == ["crm.push"] * 2
    assert cli.sql("SELECT DISTINCT route, state FROM outbox_history") == (("orders.cancel", "done"),)


def test_of_two_dead_ones_with_both_ids_one_comes_back_at_a_time(cli):
    dead, = cli.dead()
    twin(cli, dead, "dead", 1)
    done = cli.json("dead", "retry", "--error", "http.503", "--yes", code=65)
    assert (done["matched"], done["changed"], done["conflict"]) == (2, 1, 1)
    assert (cli.ids(), cli.ids(table="outbox_history")) == ([dead], [dead])


def test_more_rows_of_one_id_than_a_step_has_are_all_gone_through(cli):
    """Row ids are handed out again by a failover or TRUNCATE, and every page began behind the id of the one before."""
    id_, = cli.dead()
    columns = [column for column, in cli.sql(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name = 'outbox_history' AND column_name NOT IN ('message_id', 'keep_until')")]
    cli.sql(f"INSERT INTO outbox_history (message_id, keep_until, {', '.join(columns)})"
            f" SELECT CONCAT('again-', seq), keep_until + INTERVAL seq MINUTE, {', '.join(columns)}"
            " FROM outbox_history, seq_1_to_1200 WHERE id = %s", id_)
    done = cli.json("dead", "retry", "--route", "crm.push", "--dry-run")
    assert (done["matched"], done["not_found"]) == (1201, 0)
    done = cli.json("dead", "retry", "--route", "crm.push", "--yes")
    assert (done["matched"], done["changed"], done["conflict"], done["not_found"]) == (1201, 1201, 0, 0)
    assert cli.sql("SELECT COUNT(*) FROM outbox WHERE id = %s", id_) == ((1,),)


def test_a_row_id_that_is_taken_keeps_no_dead_task_from_coming_back(cli):
    """Whoever may INSERT may choose the id of a dead one. It comes back under another, and what is kept of its attempts
    follows, by which its results are told from those of an earlier task with its message id."""
    first, second, third = cli.dead(count=3, order_key="k")
    taken = cli.row(second, "outbox_history")["message_id"]
    for id_ in (first, second):
        cli.sql("INSERT INTO outbox_attempts (message_id, attempt, kind, outcome, task_id, route, due_at, finished_at)"
                " SELECT message_id, 1, 'result', 'dead', id, route, due_at, finished_at FROM outbox_history WHERE id = %s", id_)
    cli.add(id=second, message_id="stranger")
    said = cli("dead", "retry", first, taken, third)
    assert said == (f"{first}  retried\n{taken}  retried (its row has another id now: look for it by its message id)\n"
                    f"{third}  retried\n")
    now, = cli.ids(f"message_id = '{taken}'")
    assert cli.ids() == [first, second, third, now] and cli.ids(table="outbox_history") == []
    assert cli.sql("SELECT task_id FROM outbox_attempts ORDER BY seq") == ((first,), (now,))
    assert cli.row(second)["message_id"] == "stranger" and cli.row(now)["attempt"] == 3


@pytest.mark.parametrize("far", [2 ** 61, 2 ** 64 - 1])
def test_a_dead_task_with_a_far_id_comes_back_with_an_ordinary_one(cli, far):
    """With the last of all ids it would end the INSERTs of everybody once more."""
    dead, = cli.dead()
    cli.sql("UPDATE outbox_history SET id = %s", far)
    done = cli.json("dead", "retry", far)
    assert [(task["outcome"], task["other_id"]) for task in done["tasks"]] == [("retried", True)]
    now, = cli.ids()
    assert dead < now < 2 ** 61 and cli.add()[0] < 2 ** 61
    assert cli.audit()[0]["before"][0]["id"] in (far, str(far))


def test_dead_letters(cli):
    first, second = cli.dead(count=2)
    other, = cli.dead("orders.cancel", error_class="kafka.msg_size_too_large")
    cancelled, = cli.end(cli.add(), "cancelled")
    assert [int(row["id"]) for row in cli.json("dead", "list")] == [other, second, first]
    assert "come back" in cli("dead", "list", "--route", "crm.push")
    assert cli("dead", "retry", "--error", "http.503", "--yes", "--limit", 1).startswith("1 of 1 tasks retried")
    assert cli("dead", "retry", other) == f"{other}  retried\n"
    assert cli.fails(65, "dead", "retry", cancelled) == ""
    assert cli.fails(65, "dead", "retry", first) == ""           # it lives again
    assert cli.ids() == [first, other]
    assert cli.fails(64, "dead", "list", "--state", "done") == (
        "duebox: dead list: unknown option --state; see `duebox dead list --help`\n")


# -- a consumer's answer, given by hand -------------------------------------------------------------

@pytest.mark.parametrize("words, state", [
    (["--status", "done", "--result", '{"n": 12345678901234567890}'], None),
    (["--status", "fail", "--error-class", "x.y", "--error-message", "nö"], "dead"),
    (["--status", "retry", "--retry-in", "10m"], "scheduled")])
def test_result_without_a_daemon(cli, words, state):
    id_, = cli.add(message_id="m-1")
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 2, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    assert cli("task", "result", id_, "--attempt", 2, *words) == f"{id_}  applied\n"
    row = cli.row(id_) or cli.row(id_, "outbox_history")
    assert (row and row["state"]) == state
    if state == "dead":
        assert (row["error_class"], row["last_error"]) == ("x.y", "nö")
        assert cli("task", "result", id_, "--attempt", 2, *words) == (
            f"{id_}  this attempt has had its result; nothing was changed\n")
        for other in ("done", "retry"):
            assert cli.fails(65, "task", "result", id_, "--attempt", 2, "--status", other) == (
                f"duebox: task {id_}: this attempt has ended already, and otherwise than this result says; nothing was "
                "changed. `duebox task show` tells how\n")
            assert cli.row(id_, "outbox_history")["state"] == "dead"
        assert cli.fails(65, "task", "result", id_, "--attempt", 3, "--status", "done") == (
            f"duebox: task {id_}: it has ended; nothing was changed\n")
    if state == "scheduled":
        assert row["failures"] == 1


def test_a_wait_that_is_cut_is_told_of(cli):
    id_, = cli.add()
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    said = cli.remark("task", "result", id_, "--attempt", 1, "--status", "retry", "--retry-in", "60d")
    assert said == f"task {id_}: it waits no longer than its route allows: give_up, or 30d without\n"
    assert cli.sql("SELECT COUNT(*) FROM outbox WHERE next_at < UTC_TIMESTAMP() + INTERVAL 8 DAY") == ((1,),)


def test_a_result_whose_task_comes_to_something_else(cli):
    """It counts, and still is no success: the last attempt ends as dead, and a changed task is sent again."""
    def awaiting(**columns):
        id_, = cli.add(**columns)
        cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR,"
                " sent_digest = 1 WHERE id = %s", id_)
        return id_
    last = awaiting(max_attempts=1)
    said = cli.fails(65, "task", "result", last, "--attempt", 1, "--status", "retry")
    assert said.startswith(f"duebox: task {last}: the result counts, but the task came to something else: ")
    assert cli.row(last, "outbox_history")["state"] == "dead"
    changed = awaiting()
    cli.sql("UPDATE outbox SET claim_epoch = 1, payload = 'new'")
    said = cli.fails(65, "task", "result", changed, "--attempt", 1, "--status", "done")
    assert "the task came to something else" in said
    assert (cli.row(changed)["state"], cli.row(changed)["attempt"]) == ("scheduled", 1)


def test_a_result_of_an_attempt_that_failed_without_one(cli):
    """It waits for its next attempt: to say that it is to be tried again is no news, to give it up comes too late."""
    id_, = cli.add(message_id="m-1")
    cli.sql("UPDATE outbox SET attempt = 1, failures = 1, error_class = 'result.timeout'")
    words = ("task", "result", id_, "--attempt", 1, "--status")
    assert cli(*words, "retry") == f"{id_}  this attempt has had its result; nothing was changed\n"
    assert "otherwise than this result says; nothing was changed" in cli.fails(65, *words, "fail")
    assert cli.row(id_)["state"] == "scheduled"


@pytest.mark.parametrize("words, code, message", [
    (["gone", "--attempt", "1", "--status", "done"], 66,
     "task gone: not found, neither in the outbox nor in its history"),
    (["m-1", "--attempt", "0", "--status", "done"], 64, '--attempt: "0" is no whole number from 1 to 4294967295'),
    (["m-1", "--attempt", "1", "--status", "done", "--result", "{"], 65, None),
    (["m-1", "--attempt", "2", "--status", "retry", "--retry-in", "4000d"], 65,
     'the result record: "retry_in_ms" must be a whole number of milliseconds, from 0 to ten years'),
    (["m-1", "--attempt", "1", "--status", "retry"], 65,
     "task m-1: the task is in a later attempt; only a success of this one would count"),
    (["m-1", "--attempt", "3", "--status", "done"], 65,
     "task m-1: this attempt was never handed out; nothing was changed"),
])
def test_result_refused(cli, words, code, message):
    id_, = cli.add(message_id="m-1")
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 2, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    said = cli.fails(code, "task", "result", *words)
    assert said.startswith("duebox: ") and (message is None or said == f"duebox: {message}\n")
    assert cli.row(id_)["state"] == "awaiting"


@pytest.mark.parametrize("end, counts", [
    ("state = 'dead', error_class = 'result.timeout'", True),     # unchanged since: it would have been sent again
    ("state = 'dead', error_class = 'kafka.unavailable'", False), # given up while it waited to be sent again
    ("state = 'cancelled', error_class = 'result.timeout'", False)])
def test_a_late_success_ends_no_content_that_was_never_sent(cli, end, counts):
    """Its attempt got no answer, it was changed, it ended, and people bring it back: what the consumer says now of the
    attempt before is not about what is there (P1)."""
    id_, = cli.add(message_id="m-1")
    cli.sql("UPDATE outbox SET attempt = 1, changed_at = created_at")
    if not counts:
        cli.sql("UPDATE outbox SET payload = 'new'")
    cli("task", "cancel", id_)
    cli.sql(f"UPDATE outbox_history SET {end}")
    cli("task", "retry", id_)
    words = ("task", "result", "m-1", "--attempt", "1", "--status", "done")
    if counts:
        assert cli(*words) == "m-1  applied\n" and cli.row(id_) is None
    else:
        assert cli.fails(65, *words).startswith("duebox: task m-1: the task may have had another content")
        assert cli.row(id_)["payload"] == b"new"


def test_a_result_that_the_database_refuses_is_said_to_be_refused(cli):
    """Not that there is no such task: it is there, and waits for its answer still."""
    body = b'{"id":"m-1","attempt":1,"status":"fail"}'
    id_, = cli.add(message_id="m-1")
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    cli.sql("INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body) VALUES"
            " ('bus#1', 'results[0]@1', 'a test', UNHEX(SHA2(%s, 256)), %s, %s)", body, len(body), body)
    cli.sql("CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no thanks'")
    for words in (["task", "result", "m-1", "--attempt", "1", "--status", "fail"], ["quarantine", "replay", "1"]):
        said = cli.fails(65, *words)
        assert "no thanks" in said and "nothing was changed" in said and "no task" not in said
        assert said.startswith("duebox: task m-1: " if words[0] == "task" else "duebox: quarantine 1: ")
    assert cli.row(id_)["state"] == "awaiting" and len(cli.json("quarantine", "list")) == 1


# -- the quarantine -----------------------------------------------------------------------------

def test_the_quarantine_is_listed_shown_replayed_and_purged(cli):
    """What consumers answered and no task could take is in people's hands: it can be read, applied
    once its task is there, and forgotten."""
    assert "empty" in cli.run("quarantine", "list").stdout + cli.run("quarantine", "list").stderr
    bodies = [b'{"id":"m-1","attempt":1,"status":"done","result":5}', b"rubbish \xff", b'{"id":"m-9","attempt":1,"status":"done"}']
    for body in bodies:
        cli.sql("INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body) VALUES"
                " ('bus#1', 'results[0]@1', 'no task has this message id', UNHEX(SHA2(%s, 256)), %s, %s)",
                body, len(body), body)
    rows = cli.json("quarantine", "list")
    first, second, third = sorted(int(row["id"]) for row in rows)
    assert {row["source"] for row in rows} == {"bus#1"}
    cut = ("y" + 3000 * "ä").encode()
    cli.sql("INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body) VALUES"
            " ('bus#1', 'results[0]@1', 'test', UNHEX(SHA2(%s, 256)), %s, LEFT(%s, 4096))", cut, len(cut), cut)
    fourth = max(int(row["id"]) for row in cli.json("quarantine", "list"))
    assert cli.json("quarantine", "show", fourth)["body"] == "y" + 2047 * "ä"
    assert cli.json("quarantine", "purge", fourth)["purged"] == 1
    shown = cli.json("quarantine", "show", first)
    assert shown["body"] == bodies[0].decode() and shown["reason"] == "no task has this message id"
    assert cli.run("quarantine", "show", 4711).returncode == 66
    assert cli.run("quarantine", "show", "x").returncode == 64

    id_, = cli.add(message_id="m-1")
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
            " WHERE id = %s", id_)
    assert cli("quarantine", "replay", first) == f"{first}  applied\n"
    assert cli.row(id_) is None
    done = cli.run("quarantine", "replay", second, third)
    assert done.returncode != 0 and "first 4096 bytes" in done.stderr and "no task with this message id" in done.stderr
    assert {int(row["id"]) for row in cli.json("quarantine", "list")} == {second, third}
    for numbers in (fourth, second), (second, fourth):  # 65 is worse than 66
        assert cli.run("quarantine", "replay", *numbers).returncode == 65

    assert cli("quarantine", "purge", second) == "1 purged\n"
    assert cli.fails(66, "quarantine", "purge", second) == f"duebox: quarantine {second}: not found\n"
    assert cli.run("quarantine", "purge").returncode == 64
    assert cli.run("quarantine", "purge", "--created-before", "now").returncode == 64
    assert cli.json("quarantine", "purge", "--created-before", "+1h", "--yes", "--reason", "old")["purged"] == 1
    assert cli.json("quarantine", "list") == []
    assert [entry["verb"] for entry in cli.audit()] == ["purge"] * 4


def test_what_is_replayed_is_about_the_task_that_it_was_about(cli):
    """A callback is about the task of its URL. The answer to a call was dealt with then, and a member `id` in it, which
    nobody read, must not end another task now."""
    mine, other = cli.add(message_id="m-1") + cli.add(message_id="m-2")
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 1, published_at = UTC_TIMESTAMP(6),"
            " lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    kept = [("answer", "crm.push", b'{"id": "m-2", "attempt": 1, "status": "done",}'),
            ("callback", "/callback/m-1/1", b'{"id": "m-2", "status": "done"}'),
            ("callback", "/callback/m-1/1", b'{"status": "done"}'),
            ("bus#1", "orders for shop#3 for no id", b'{"status": "done", "attempt": 1}')]
    for source, origin, body in kept:
        cli.sql("INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body) VALUES"
                " (%s, %s, 'a test', UNHEX(SHA2(%s, 256)), %s, %s)", source, origin, body, len(body), body)
    answer, foreign, own, nobodys = (row for (row,) in cli.sql("SELECT id FROM outbox_quarantine ORDER BY id"))
    assert "nothing to replay" in cli.fails(65, "quarantine", "replay", answer)
    assert "those of the URL" in cli.fails(65, "quarantine", "replay", foreign)
    assert '"id" is missing' in cli.fails(65, "quarantine", "replay", nobodys)
    assert cli("quarantine", "replay", own) == f"{own}  applied\n"
    assert cli.row(mine) is None and cli.row(other)["state"] == "awaiting"
    cli.daemon.start()
    for number, word in ((answer, "nothing to replay"), (foreign, "those of the URL"), (nobodys, '"id" is missing')):
        status, said = cli.daemon.api("POST", f"/api/v1/quarantine/{number}/replay", {})
        assert status == 400 and said["code"] == "bad_record" and word in said["detail"], said
    assert cli.row(other)["state"] == "awaiting"


def test_the_quarantine_over_http(cli):
    """What the command line can, the API can: list, show, replay, purge; with the token, as problems, and audited."""
    cli.stage.route("asked", via="bus", topic="asked", result="expected", reply_to="answers")
    daemon = cli.daemon
    daemon.configure(cli.stage.configuration)
    [row] = cli.add("asked", message_id="quarantined-1")
    cli.sql("UPDATE outbox SET state = 'awaiting', attempt = 1, published_at = UTC_TIMESTAMP(6),"
            " lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE id = %s", row)
    good = '{"id": "quarantined-1", "attempt": 1, "status": "done"}'
    for number, body in enumerate((good, "x" + 300 * "ä", b"\xff\x00", good.replace("-1", "-2"), "x" * 5000)):
        data = body if isinstance(body, bytes) else body.encode()
        cli.sql("INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body) VALUES"
                " ('s', %s, 'test', REPEAT('a', 32), %s, LEFT(%s, 4096))", f"o{number}", len(data), data)
    daemon.start()

    def api(method, path, body=None, *, status=200, code=None, **options):
        got, answer = daemon.api(method, f"/api/v1/quarantine{path}", body, **options)
        assert got == status and (code is None or answer["code"] == code), (got, answer)
        return answer

    records = api("GET", "")["records"]
    first, junk, binary, orphan, large = sorted(record["id"] for record in records)
    assert len(records[0]["body"]) == 200
    assert api("GET", f"/{first}")["body"] == good
    assert api("GET", f"/{binary}")["body_base64"] == "/wA="
    listed, = [record for record in records if record["id"] == junk]
    assert listed["body"] == "x" + 99 * "ä"  # 200 bytes would cut the last one through
    for path in ("/0", "/x", "/-1", "/1e3", "/18446744073709551617", "/4711", "/%00"):
        api("GET", path, status=404, code="not_found")
        api("POST", f"{path}/purge", {}, status=404, code="not_found")
        api("POST", f"{path}/replay", {}, status=404, code="not_found")
    for verb in ("replay", "purge"):
        api("POST", f"/{first}/{verb}", {}, status=401, token=None)
        api("POST", f"/{first}/{verb}", {}, status=401, token="x" * 32)
        api("POST", f"/{first}/{verb}", {"reson": "x"}, status=400, code="bad_request")
        api("POST", f"/{first}/{verb}", {"actor": 7}, status=400, code="bad_request")
        api("GET", f"/{first}/{verb}", status=405)
    api("GET", "", status=401, token=None)
    api("POST", f"/{junk}/replay", {}, status=400, code="bad_record")
    api("POST", f"/{binary}/replay", {}, status=400, code="bad_record")
    api("POST", f"/{large}/replay", {}, status=400, code="bad_record")
    api("POST", f"/{orphan}/replay", {}, status=404, code="not_found")
    assert len(api("GET", "")["records"]) == 5  # what does not count stays, and nothing is added
    assert api("POST", f"/{first}/replay", {"actor": "ann", "reason": "mended"})["fate"] == "applied"
    assert api("POST", f"/{junk}/purge", {"actor": "ann"}) == {"id": str(junk), "purged": True}
    api("POST", f"/{first}/replay", {}, status=404)
    assert sorted(record["id"] for record in api("GET", "")["records"]) == [binary, orphan, large]
    audit = [(actor, reason) for actor, reason in cli.sql(
        "SELECT actor, reason FROM outbox_audit WHERE verb = 'purge' ORDER BY id")]
    assert audit == [("ann", "replayed: mended"), ("ann", "")]


def test_a_row_may_have_the_id_0(cli):
    """An application that may choose ids writes it where NO_AUTO_VALUE_ON_ZERO is set, as it is in every dump."""
    def insert():
        with cli.stage.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'")
            cursor.execute("INSERT INTO outbox (id, route, payload, delay_ms, task_key, message_id)"
                           " VALUES (0, 'crm.push', 'x', 600000, 'z', 'm-zero')")
    insert()
    assert cli.json("task", "show", "m-zero")["id"] == "0"
    cli("task", "set", "m-zero", "--priority", 9)
    cli("task", "set", "--key", "z", "--max-attempts", 7, "--yes")
    assert cli.sql("SELECT id, priority, max_attempts FROM outbox") == ((0, 9, 7),)
    cli("task", "cancel", "--key", "z", "--yes")
    assert cli.sql("SELECT id, state FROM outbox_history") == ((0, "cancelled"),)
    insert()
    cli("task", "cancel", "m-zero")
    assert cli.sql("SELECT COUNT(*) FROM outbox") == ((0,),)
    cli.sql("UPDATE outbox_history SET state = 'dead', attempt = 1")
    cli("dead", "retry", "m-zero")
    assert cli.stage.count("outbox") == 1
