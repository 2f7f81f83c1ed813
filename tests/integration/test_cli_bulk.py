"""Commands that change many tasks as people give them: the question on a terminal, Ctrl-C in the middle, a task that is
named twice, and in which order they go."""

import json
import os
import pty
import signal
import subprocess
import threading

import pytest
from support.command_line import cli
from support.wait import wait_until

__all__ = ["cli"]


def start(cli, *words, **options):
    """The command as a process of its own, which a terminal's signals reach: whoever runs the tests with nohup, or in the
    background, has some of them ignored, and so would the command."""
    daemon = cli.daemon
    sent = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    options.setdefault("preexec_fn", lambda: [signal.signal(one, signal.SIG_DFL) for one in sent])
    return subprocess.Popen([*daemon._words(), *map(str, words), "-c", str(daemon.path)], env=daemon._env(), text=True,
                            stderr=subprocess.PIPE, **options)


def answer_on_a_terminal(cli, answer, *words):
    """What the command says and its status, with a terminal as its standard input."""
    ours, theirs = pty.openpty()
    try:
        process = start(cli, *words, stdin=theirs, stdout=subprocess.PIPE)
        os.write(ours, answer.encode())
        said, asked = process.communicate(timeout=60)
        return said, asked, process.returncode
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("answer, yes", [("y", True), ("Y", True), ("yes", True), ("Yes", True), ("YES", True),
                                         ("yikes, no", False), ("yess", False), ("ye", False), ("y n", False), ("", False),
                                         ("n", False)])
def test_only_yes_is_yes(cli, answer, yes):
    cli.add(count=2)
    said, asked, code = answer_on_a_terminal(cli, answer + "\n", "task", "cancel", "--route", "crm.push")
    assert "Go on? [y/N]" in asked
    assert (code, len(cli.ids())) == ((0, 0) if yes else (75, 2)), (said, asked)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_signal_ends_a_bulk_command_between_two_steps(cli, sent, form):
    """It says how many it has changed, and ends by the signal, as a shell that runs it in a loop must see."""
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_100")
    process = start(cli, "task", "cancel", "--route", "crm.push", "--rate", "20/s", "--yes", "-o", form,
                    stdout=subprocess.PIPE)
    wait_until(lambda: len(cli.ids()) < 100, 60, "the first step")
    process.send_signal(sent)
    said, error = process.communicate(timeout=60)
    left = len(cli.ids())
    assert process.returncode == -sent, (said, error)
    assert 0 < left < 100
    changed = json.loads(said)["changed"] if form == "json" else int(said.split(" of 100 tasks cancelled")[0])
    assert changed == 100 - left
    assert "signal" in error, error
    assert sum(entry["changed"] for entry in cli.audit()) == changed


def test_a_signal_that_is_ignored_stays_so(cli):
    """As nohup has it."""
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_20")
    process = start(cli, "task", "cancel", "--route", "crm.push", "--rate", "20/s", "--yes", stdout=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until(lambda: len(cli.ids()) < 20, 60, "the first step")
    process.send_signal(signal.SIGHUP)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, cli.ids()) == (0, []), said


def test_a_task_that_both_its_ids_name_is_one(cli):
    row, other = cli.add(count=2)
    message_id = cli.row(row)["message_id"]
    done = cli.json("task", "cancel", row, message_id, other)
    assert (done["matched"], done["changed"]) == (2, 2)
    assert [task["outcome"] for task in done["tasks"]] == ["cancelled"] * 3
    assert cli.ids() == [] and sum(entry["changed"] for entry in cli.audit()) == 2
    assert cli.fails(65, "task", "cancel", message_id, row) == ""       # it has ended already: for both


@pytest.mark.parametrize("words", [("cancel",), ("reschedule", "--delay", "2h")])
def test_what_is_due_last_goes_first(cli, words):
    """Those that were inserted first are mostly due first, and leave while the command is at it. From them on, it was behind
    the daemon all the way."""
    ids = cli.add(count=12)
    process = start(cli, "task", *words, "--route", "crm.push", "--rate", "10/s", "--yes", stdout=subprocess.PIPE)
    reader = threading.Thread(target=process.communicate)
    reader.start()
    untouched = "delay_ms = 3600000 AND due_at = created_at + INTERVAL 1 HOUR" if words[0] != "cancel" else "TRUE"
    seen = set()

    def over():
        seen.add(tuple(cli.ids(untouched)))
        return process.poll() is not None

    wait_until(over, 60, "the end of the command")
    reader.join()
    assert len(seen) > 2
    for left in seen:
        assert list(left) == ids[:len(left)], left
