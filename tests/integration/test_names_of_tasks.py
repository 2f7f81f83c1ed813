"""What names a task: an application with INSERT only chooses message ids, and none of them leads the command for one
task to another. Names that mean two tasks are refused, on the command line and by the HTTP API."""

import json
import os
import subprocess

import pytest
from support.command_line import cli
from support.daemon import preset_folder

__all__ = ["cli"]

BINARY = preset_folder() / "bin" / "duebox"

HOUR_MS = 3600_000
VERBS = {"show": (), "cancel": (), "reschedule": ("--delay", "1m"), "set": ("--priority", "9"), "retry": (),
         "result": ("--attempt", "1", "--status", "done")}


def refused_by_all(cli, name):
    """What each verb says; nothing is changed."""
    before = cli.ids(), cli.ids(table="outbox_history"), cli.audit()
    said = [cli.fails(65, "task", verb, name, *words) for verb, words in VERBS.items()]
    said.append(cli.fails(65, "dead", "retry", name))
    assert (cli.ids(), cli.ids(table="outbox_history"), cli.audit()) == before
    return said


def test_a_row_id_that_is_a_message_id_too_is_refused(cli):
    """Lists give the message id "id:6", and whoever copied it into `task cancel` changed row 6, somebody else's."""
    victim, = cli.add(message_id="m-1")
    copy, = cli.add(message_id=f"id:{victim}")
    for said in refused_by_all(cli, f"id:{victim}"):
        assert f"row {victim} (message id m-1, scheduled)" in said
        assert f"the task with the message id id:{victim} (row {copy}, scheduled)" in said
        assert f"say message_id:m-1 or message_id:id:{victim}" in said
    assert cli.json("task", "show", "message_id:m-1")["id"] == str(victim)
    assert cli.json("task", "show", f"message_id:id:{victim}")["id"] == str(copy)
    assert [row["id"] for row in cli.json("task", "list", f"id:{victim}")] == [str(copy), str(victim)]
    assert cli("task", "cancel", f"message_id:id:{victim}") == f"message_id:id:{victim}  cancelled\n"
    assert cli.ids() == [victim]
    refused_by_all(cli, f"id:{victim}")  # the one in the history is meant, perhaps


def test_a_row_id_that_no_row_has_is_no_message_id(cli):
    """The row has left the history, perhaps: the task that is called so is not what was meant."""
    other, = cli.add(message_id="id:4711")
    for said in refused_by_all(cli, "id:4711"):
        assert f"the task with the message id id:4711 (row {other}, scheduled)" in said
        assert "say message_id:id:4711" in said
    itself, = cli.add(id=5000, message_id="id:5000")
    assert cli("task", "cancel", f"id:{itself}") == f"id:{itself}  cancelled\n"


def test_a_message_id_with_a_prefix_is_refused_where_it_names_two(cli):
    victim, = cli.add(message_id="order-17")
    copy, = cli.add(message_id="message_id:order-17")
    for said in refused_by_all(cli, "message_id:order-17"):
        assert f"say id:{victim} or message_id:message_id:order-17" in said
    assert cli("task", "cancel", "message_id:message_id:order-17").endswith("  cancelled\n")
    assert cli("task", "list", "order-17", "-o", "jsonl").count("\n") == 1
    assert cli.ids() == [victim] and copy in cli.ids(table="outbox_history")


def test_lists_show_names_that_commands_take(cli):
    """In text; JSON is for programs, and has what is in the table."""
    odd = ["id:1", "message_id:x", "-x", "--route=crm.push"]
    ids = [cli.add(message_id=name)[0] for name in ["m-1", *odd]]
    shown = [line.split()[-1] for line in cli("task", "list").splitlines()[1:]]
    assert shown == [*(f"message_id:{name}" for name in reversed(odd)), "m-1"]
    assert [row["message_id"] for row in cli.json("task", "list")] == [*reversed(odd), "m-1"]
    for id_, name in zip(ids[1:], odd):
        assert f"message_id:{name}\n" in cli("task", "show", f"message_id:{name}")
        assert cli.json("task", "show", f"message_id:{name}")["message_id"] == name
        assert cli("task", "cancel", shown[ids[::-1].index(id_)]).endswith("  cancelled\n")
    assert cli.ids() == ids[:1]
    assert "message_id:-y\n" in cli("task", "add", "crm.push", "--payload", "{}", "--message-id=-y")


@pytest.mark.parametrize("name", ["-x", "--route=crm.push", "--"])
def test_a_name_that_begins_with_a_dash(cli, name):
    cli.add()
    id_, = cli.add(message_id=name)

    def line(*words):
        return subprocess.run([BINARY, "-c", cli.daemon.path, *words, "--", name], capture_output=True, text=True,
                              env={**os.environ, "DUEBOX_PLUGIN_PATH": str(preset_folder() / "plugins")}, check=True)

    assert json.loads(line("task", "show", "-o", "json").stdout)["id"] == str(id_)
    assert line("task", "cancel", "--reason", "why").stdout == f"{name}  cancelled\n"
    assert cli.row(id_) is None and len(cli.ids()) == 1


def insert_unchecked(stage, **columns):
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        cursor.execute(f"INSERT INTO outbox (route, payload, delay_ms, {', '.join(columns)}) "
                       f"VALUES ('crm.push', '{{}}', {HOUR_MS}, {', '.join(['%s'] * len(columns))})",
                       tuple(columns.values()))
        return cursor.lastrowid


@pytest.mark.parametrize("nothing", ["", "  "])
def test_a_task_without_a_message_id_is_no_other(cli, nothing):
    """A client may switch the CHECK off. What is no message id was compared as if it were an empty one."""
    victim, = cli.add(message_id="m-1")
    empty = insert_unchecked(cli.stage, message_id=nothing)
    assert cli.json("task", "show", f"id:{victim}")["id"] == str(victim)
    assert "not found" in cli.fails(66, "task", "show", "no such task")
    assert "not found" in cli.fails(66, "task", "show", "message_id:")
    assert cli("task", "cancel", f"id:{victim}") == f"id:{victim}  cancelled\n"
    assert cli.ids() == [empty]


def test_blanks_make_no_other_message_id(cli):
    """The server ignores blanks at the end of texts that it compares: whoever meant the task that has ended got the one
    that lives."""
    victim, = cli.dead(message_id="m-1")
    insert_unchecked(cli.stage, message_id="m-1 ")
    assert cli.json("task", "show", "m-1")["id"] == str(victim)
    assert cli("dead", "retry", "m-1", "--dry-run") == "m-1  is dead\n"


def test_blanks_at_the_ends_of_keys_are_shown(cli):
    """A key that differs from another by them only looked like it in tables."""
    id_, = cli.add(task_key=" 17 ", order_key="a  ")
    assert cli("task", "list").splitlines()[1].split()[7] == r"\x2017\x20"
    assert r"\x2017\x20" + "\n" in cli("task", "show", id_) and r"a \x20" + "\n" in cli("task", "show", id_)
    assert cli.json("task", "show", id_)["task_key"] == " 17 "


# -- a daemon ---------------------------------------------------------------------------------

@pytest.fixture
def running(stage):
    stage.http("crm.push", timeout="60s")
    stage.start()
    return stage


def inserted(running, message_id):
    running.execute("INSERT INTO outbox (route, payload, delay_ms, message_id) VALUES ('crm.push', '{}', %s, %s)",
                    HOUR_MS, message_id)
    return running.row(message_id)["id"]


def ask(running, name, verb="cancel", **body):
    return running.daemons[0].api("POST", f"/api/v1/tasks/{name}/{verb}", body)


def test_the_api_refuses_names_of_two_tasks(running):
    victim = inserted(running, "m-1")
    for name in (f"id:{victim}", str(victim)):
        inserted(running, name)
        for verb, body in (("cancel", {}), ("reschedule", {"delay_ms": 7200_000})):
            status, problem = ask(running, name, verb, **body)
            assert (status, problem["code"]) == (409, "ambiguous"), problem
            assert "message_id:" in problem["detail"]
            status, told = running.daemons[0].api("POST", f"/api/v1/tasks/{verb}", {"ids": [name], **body})
            assert (status, told["tasks"]) == (200, [{"id": name, "outcome": "ambiguous"}])
    inserted(running, "id:4711")
    assert ask(running, "id:4711")[0] == 409
    assert running.count("outbox_audit") == 0
    for name in ("m-1", f"id:{victim}", str(victim), "id:4711"):
        assert ask(running, f"message_id:{name}")[0] == 200
        assert running.row(name)["state"] == "cancelled"


def test_no_message_id_keeps_a_command_from_its_task(running):
    """What the command line asks a daemon for is exact, whatever else is called so."""
    daemon = running.daemons[0]
    ids = {name: inserted(running, name) for name in ("m-1", "m-2", "message_id:m-1", "-x")}
    inserted(running, f"id:{ids['m-1']}")
    for name, word in (("m-1", "m-1"), ("m-2", f"id:{ids['m-2']}"), ("-x", "message_id:-x")):
        assert daemon.run("task", "reschedule", word, "--delay", "2h").stdout == f"{word}  rescheduled\n"
        told = json.loads(daemon.run("task", "cancel", word, "-o", "json").stdout)
        assert [task["outcome"] for task in told["tasks"]] == ["cancelled"]
        assert running.row(name)["state"] == "cancelled"
    assert running.row("message_id:m-1")["state"] == "scheduled"


def test_a_daemon_takes_no_task_without_a_message_id_for_another(running):
    victim = inserted(running, "m-1")
    with running.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        cursor.execute("INSERT INTO outbox (route, payload, delay_ms, message_id) VALUES ('crm.push', '{}', %s, '')",
                       (HOUR_MS,))
    assert ask(running, f"id:{victim}")[0] == 200
    assert running.row("m-1")["state"] == "cancelled"
    assert ask(running, "message_id:")[0] == 404
    assert running.count() == 1
