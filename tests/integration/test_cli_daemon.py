"""The command line beside running daemons: cancel and reschedule are certain or refused,
results and reloads reach the daemon, doctor sees it."""

import gzip
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading

import pytest
import yaml
from support.command_line import CommandLine
from support.servers.http_receiver import Answer, HttpReceiver
from support.wait import wait_until

LIMIT_S = 30
HOUR_MS = 3600_000


def line(stage, *words, code=0):
    done = stage.daemons[0].run(*words, check=False)
    assert done.returncode == code, f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done


@pytest.fixture
def running(stage):
    """A daemon with a route that waits and one that calls the receiver."""
    stage.configuration["engine"]["drain_timeout"] = "1s"
    stage.http("hook", history="1h", timeout="60s")
    stage.http("later", result="expected", timeout="60s")
    stage.start()
    return stage


def test_cancel_and_reschedule_by_the_owner(running):
    daemon = running.daemons[0]
    first, second = running.insert("hook", delay_ms=HOUR_MS, count=2)
    assert line(running, "task", "cancel", first, "--reason", "paid").stdout == f"{first}  cancelled\n"
    assert running.row(first)["state"] == "cancelled"
    assert daemon.metric("duebox_task_events", route="hook", event="cancel") == 1
    actor, verb, reason = running.execute("SELECT actor, verb, reason FROM outbox_audit")[0]
    assert ("@" in actor, verb, reason) == (True, "cancel", "paid")
    assert line(running, "task", "cancel", first, code=65).stdout == f"{first}  has ended already: cancelled\n"
    assert line(running, "task", "reschedule", second, "--at", "now").stdout == f"{second}  rescheduled\n"
    running.receiver.wait_count(1, LIMIT_S, "/hook")
    running.wait_row(second, LIMIT_S, state="done")
    assert daemon.metric("duebox_task_events", route="hook", event="claim") == 1   # calls of hooks are claimed in the table


@pytest.mark.parametrize("by", ["ids", "filter"])
@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--at", "+2h"]])
def test_a_row_that_somebody_holds_is_passed_over(running, words, by):
    """75, since it can be tried again, and the database answers well; the others are changed all the same."""
    ids = running.insert("hook", delay_ms=HOUR_MS, count=4)
    which = ids if by == "ids" else ["--route", "hook", "--yes"]
    with running.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM outbox WHERE id = %s FOR UPDATE", (running.row(ids[1])["id"],))
        status, problem = running.daemons[0].api("POST", f"/api/v1/tasks/{ids[1]}/cancel", {})
        assert (status, problem["code"], problem["title"]) == (503, "locked", "Another transaction holds the row")
        done = line(running, "task", *words, *which, code=75)
        connection.rollback()
    if by == "ids":
        assert f"{ids[1]}  another transaction holds its row: not changed, try again" in done.stdout
    else:
        assert done.stdout.startswith("3 of 4 tasks ") and "; 1 are held by another transaction" in done.stdout
    assert running.execute("SELECT SUM(changed) FROM outbox_audit") == ((3,),)
    line(running, "task", *words, ids[1])


def inserted(running, message_id):
    """The row id of a new task with this message id, due in an hour."""
    running.execute("INSERT INTO outbox (route, payload, delay_ms, message_id) VALUES (%s, '{}', %s, %s)",
                    "hook", HOUR_MS, message_id)
    return running.row(message_id)["id"]


def test_any_message_id_reaches_the_owner(running):
    """A message id is the application's: neither a path nor the row id of another task may be made of it."""
    for message_id in (".", "..", "a/../b", "id:1", "message_id:x"):
        id_ = inserted(running, message_id)
        assert line(running, "task", "cancel", f"id:{id_}").stdout == f"id:{id_}  cancelled\n"
        assert running.row(message_id)["state"] == "cancelled"
    first = inserted(running, "m-1")
    inserted(running, str(first))
    assert "names two tasks" in line(running, "task", "cancel", first, code=65).stderr
    assert line(running, "task", "cancel", f"message_id:{first}").stdout == f"message_id:{first}  cancelled\n"
    assert running.row("m-1")["state"] == "scheduled"
    assert running.row(str(first))["state"] == "cancelled"


def test_a_time_that_no_task_can_have_is_the_callers_mistake(running):
    id_, = running.insert("hook", delay_ms=HOUR_MS)
    before = running.row(id_)
    for words, said in (
            (["reschedule", id_, "--delay", "100000d"], "task reschedule: a due time"),
            (["reschedule", id_, "--at", "1999-12-31T23:59:59Z"], "task reschedule: a due time"),
            (["set", id_, "--expires-at", "1970-01-01"], "task set: expires_at"),
            (["set", id_, "--expires-at", "2200-01-01"], "task set: expires_at"),
            (["add", "hook", "--payload", "x", "--at", "1970-01-01"], "task add: a due time"),
            (["add", "hook", "--payload", "x", "--expires-at", "1970-01-01"], "task add: expires_at")):
        assert line(running, "task", *words, code=65).stderr == f"duebox: {said} is from 2000 to 2199\n"
    for due_at in ("1970-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "2200-01-01T00:00:00Z"):
        status, body = running.daemons[0].api("POST", f"/api/v1/tasks/{id_}/reschedule", {"due_at": due_at})
        assert (status, body["detail"]) == (400, "a due time is from 2000 to 2199")
    assert running.row(id_) == before and running.count() == 1


def test_both_ways_of_cancelling_leave_the_same(running):
    """Whether a daemon runs or not, a cancelled task leaves the same in the history and in the audit."""
    first, second = running.insert("hook", delay_ms=HOUR_MS, count=2)
    line(running, "task", "cancel", first, "--reason", "why")
    running.daemons[0].stop()
    line(running, "task", "cancel", second, "--reason", "why")
    rows = running.execute("SELECT filter, reason, verb, changed, before_image FROM outbox_audit ORDER BY id")
    assert [row[:4] for row in rows] == [(first, "why", "cancel", 1), (second, "why", "cancel", 1)]
    images = [json.loads(row[4])[0] for row in rows]
    assert [(name, type(value)) for name, value in images[0].items()] == [
        (name, type(value)) for name, value in images[1].items()]
    assert [image["message_id"] for image in images] == [first, second]
    assert [running.row(message_id)["claimed_by"] for message_id in (first, second)] == [None, None]


def test_bulk_by_the_owner(running):
    ids = running.insert("hook", delay_ms=HOUR_MS, count=40)
    kept = running.insert("later", delay_ms=HOUR_MS, count=1)
    said = line(running, "task", "cancel", "--route", "hook", "--yes", "--reason", "season is over").stdout
    assert re.fullmatch(r"40 of 40 tasks cancelled \(audit \d+\)\n", said)
    assert all(running.row(id_)["state"] == "cancelled" for id_ in ids)
    assert running.row(kept[0])["state"] == "scheduled"
    whole = running.execute("SELECT verb, reason, filter FROM outbox_audit ORDER BY id DESC LIMIT 1")[0]
    assert whole == ("cancel", "season is over", "--route hook (40 by daemons, in rows of their own)")
    # They are asked for together: those of a shard leave one row, but where somebody held the shard just then. One by one
    # a hundred thousand took most of an hour.
    assert running.count("outbox_audit") < 30
    # Whoever adds the audit up gets the tasks that were changed, each once.
    assert running.execute("SELECT SUM(changed) FROM outbox_audit")[0][0] == 40


@pytest.mark.parametrize("verb", ["cancel", "reschedule"])
def test_ids_are_asked_for_together(running, verb):
    """One request for each id took a hundred times as long. What is said of each is as if it were named alone."""
    ids = running.insert("hook", delay_ms=HOUR_MS, count=120)
    ended, = running.insert("hook", delay_ms=HOUR_MS, count=1)
    line(running, "task", "cancel", ended)
    before = running.count("outbox_audit")
    words = ["task", verb, *ids[:60], "no-such-task", ended, *ids[60:], f"message_id:{ids[3]}"]
    words += ["--delay", "2h"] if verb == "reschedule" else []
    done = line(running, *words, code=65)
    past = "cancelled" if verb == "cancel" else "rescheduled"
    assert done.stdout.splitlines() == [
        *(f"{id_}  {past}" for id_ in ids[:60]), "no-such-task  not found", f"{ended}  has ended already: cancelled",
        *(f"{id_}  {past}" for id_ in ids[60:]), f"message_id:{ids[3]}  {past}"]
    assert running.count("outbox_audit") - before < 60
    assert running.execute("SELECT SUM(changed) FROM outbox_audit WHERE verb = %s", verb)[0][0] == 120 + (verb == "cancel")
    told = json.loads(line(running, "task", "cancel", *ids[:20], "no-such-task", "-o", "json",
                           code=65 if verb == "cancel" else 66).stdout)
    assert [task["id"] for task in told["tasks"]] == [*ids[:20], "no-such-task"]
    assert (told["changed"], told["state"], told["not_found"]) == ((0, 20, 1) if verb == "cancel" else (20, 0, 1))


def test_of_ids_that_are_asked_for_together_a_locked_one_stays(running):
    ids = running.insert("hook", delay_ms=HOUR_MS, count=60)
    with running.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM outbox WHERE message_id = %s FOR UPDATE", (ids[30],))
        done = line(running, "task", "cancel", *ids, code=75)
    assert done.stdout.splitlines() == [
        f"{id_}  {'another transaction holds its row: not changed, try again' if id_ == ids[30] else 'cancelled'}"
        for id_ in ids]


def test_what_is_named_before_an_id_of_two_tasks_is_changed(running):
    """Nobody guesses which of them is meant, and the command ends there."""
    row = running.execute("SELECT COALESCE(MAX(id), 0) + 1000 FROM outbox")[0][0]
    running.execute("INSERT INTO outbox (id, message_id, route, payload, delay_ms) VALUES (%s, 'first', 'hook', '', 3600000),"
                    " (%s, %s, 'hook', '', 3600000)", row, row + 1, str(row))
    ids = running.insert("hook", delay_ms=HOUR_MS, count=3)
    done = line(running, "task", "cancel", ids[0], ids[1], row, ids[2], code=65)
    assert done.stdout == f"{ids[0]}  cancelled\n{ids[1]}  cancelled\n" and "names two tasks" in done.stderr
    assert running.row(ids[2])["state"] == "scheduled"


def test_a_locked_row_keeps_none_of_those_that_are_asked_for_with_it(running):
    ids = running.insert("hook", delay_ms=HOUR_MS, count=60)
    with running.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM outbox WHERE message_id = %s FOR UPDATE", (ids[30],))
        told = json.loads(line(running, "task", "cancel", "--route", "hook", "--yes", "-o", "json", code=75).stdout)
    assert (told["changed"], told["locked"]) == (59, 1)
    assert running.row(ids[30])["state"] == "scheduled" and running.count() == 1


def test_the_audit_rows_of_what_daemons_did(running):
    """One that is asked for alone has one of the daemon's; the command names those that it wrote, which is one for the whole by filters."""
    ids = running.insert("hook", delay_ms=HOUR_MS, count=3)
    told = json.loads(line(running, "task", "cancel", ids[0], "-o", "json").stdout)
    assert (told["changed"], told["audit_first"], told["audit_last"]) == (1, None, None)
    assert running.count("outbox_audit") == 1
    told = json.loads(line(running, "task", "cancel", "--route", "hook", "--yes", "-o", "json").stdout)
    whole, = running.execute("SELECT id FROM outbox_audit WHERE changed = 0")
    assert (told["changed"], told["audit_first"], told["audit_last"]) == (2, str(whole[0]), str(whole[0]))


@pytest.mark.parametrize("known", [True, False], ids=["by-its-message-id", "not-at-all"])
def test_a_daemon_of_a_version_before_knows_no_prefix(pretender, known):
    """It says that there is no such task; the row says something else."""
    pretend(pretender, pretender.receiver.url)
    missing = Answer(404, body=json.dumps({"type": "urn:duebox:problem:not_found", "title": "", "status": 404,
                                           "code": "not_found", "detail": "no living task has this id"}).encode())
    path, carried_out, told = "/api/v1/tasks", threading.Event(), []
    pretender.receiver.on("/api", missing)
    if known:
        pretender.receiver.on(f"{path}/{pretender.id}/cancel", Answer(
            200, body=b'{"id": "1", "state": "cancelled"}', after=carried_out))
    row = pretender.row(pretender.id)["id"]
    thread = threading.Thread(target=lambda: told.append(
        pretender.daemons[0].run("task", "cancel", pretender.id, check=False)))
    thread.start()
    try:
        pretender.receiver.wait_count(1, LIMIT_S, f"{path}/{pretender.id}/cancel")
        if known:
            CommandLine(pretender).end([row], "cancelled")
    finally:
        carried_out.set()
        thread.join()
    if known:
        assert told[0].stdout.startswith(f"{pretender.id}  cancelled")
    else:
        assert (told[0].returncode, told[0].stdout) == (69, "")
        assert f"task {row}: the daemon x at {pretender.receiver.url} does not know it" in told[0].stderr


def test_what_is_on_its_way_is_not_cancelled(running):
    running.receiver.on("/hook", Answer(never=True))
    id_, = running.insert("hook")
    running.receiver.wait_count(1, LIMIT_S, "/hook")
    done = line(running, "task", "cancel", id_, code=75)
    assert done.stdout == f"{id_}  on its way out: too late, or try again when the attempt is over\n"
    assert line(running, "task", "reschedule", id_, "--at", "+1h", code=75).stdout.startswith(f"{id_}  on its way out")
    assert running.row(id_)["state"] in ("scheduled", "claimed")


def test_a_wait_for_a_result_can_be_cancelled_and_answered(running):
    running.receiver.on("/later", Answer(202))
    first, second, third = running.insert("later", count=3)
    for id_ in (first, second, third):
        running.wait_row(id_, LIMIT_S, state="awaiting")
    assert line(running, "task", "cancel", first).stdout == f"{first}  cancelled (it was sent, and its result was awaited)\n"
    cut = line(running, "task", "result", third, "--attempt", 1, "--status", "retry", "--retry-in", "60d")
    assert cut.stderr == f"task {third}: it waits no longer than its route allows: give_up, or 30d without\n"
    late = line(running, "task", "reschedule", second, "--at", "+1h", code=75)
    assert late.stdout == (
        f"{second}  was sent, and awaits its result: too late, or try again when the attempt is over\n")
    words = ["task", "result", second, "--attempt", 1, "--status", "fail", "--error-class", "x.y"]
    assert line(running, *words).stdout == f"{second}  applied\n"
    assert running.daemons[0].metric("duebox_results", fate="applied") == 2
    assert running.row(second)["error_class"] == "x.y"
    again = line(running, "task", "result", second, "--attempt", 2, "--status", "done", code=65)
    assert again.stderr == f"duebox: task {second}: the task has ended; nothing was changed\n"
    assert line(running, *words).stdout == f"{second}  this attempt has had its result; nothing was changed\n"
    for other in ("done", "retry"):
        said = line(running, "task", "result", second, "--attempt", 1, "--status", other, code=65).stderr
        assert said.startswith(f"duebox: task {second}: this attempt has ended already, and otherwise than this result says")
        assert running.row(second)["state"] == "dead"


def test_two_daemons_each_answer_for_their_shards(running):
    running.start()
    wait_until(lambda: len(running.execute("SELECT owner FROM outbox_shards WHERE owner IS NOT NULL GROUP BY owner"
                                           " HAVING COUNT(*) >= 3")) == 2, LIMIT_S, "both daemons to hold their part")
    ids = running.insert("hook", delay_ms=HOUR_MS, count=30)
    assert line(running, "task", "cancel", *ids).stdout.count("cancelled") == 30

    def asked():
        return [sum("/cancel" in entry["msg"] for entry in daemon.lines()) for daemon in running.daemons]
    # A request, of which there is one for the tasks of a shard, is logged when its answer has been sent.
    wait_until(lambda: min(asked()) > 0, LIMIT_S, "both to be asked", detail=lambda: str(asked()))


def test_a_daemon_that_is_stuck_gives_no_answer(running):
    """No answer is no success; when the lease has run out the row may be taken directly."""
    id_, = running.insert("hook", delay_ms=HOUR_MS)
    daemon = running.daemons[0]
    daemon.pause()
    try:
        wait_until(lambda: not running.execute(     # what it had sent may still run
            "SELECT id FROM information_schema.PROCESSLIST WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            " AND COMMAND NOT IN ('Sleep', 'Binlog Dump')"), LIMIT_S, "its statements to end")
        running.execute("UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
        done = line(running, "task", "cancel", id_, code=69)
        assert "did not answer" in done.stderr and "is not known" in done.stderr
        assert (done.stdout, running.row(id_)["state"]) == ("", "scheduled")
        running.execute("UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6)")
        assert line(running, "task", "cancel", id_).stdout == f"{id_}  cancelled\n"
    finally:
        daemon.resume()
    assert running.row(id_)["state"] == "cancelled"


def test_a_wrong_token(running):
    id_, = running.insert("hook", delay_ms=HOUR_MS)
    daemon = running.daemons[0]
    daemon.configure({**daemon.configuration, "admin": {"token": "another-token-0123456789abcdef"}})
    done = line(running, "task", "cancel", id_, code=77)
    assert "nothing was changed. admin.token_file must hold the daemon's token" in done.stderr
    assert running.row(id_)["state"] == "scheduled"
    assert "admin.token_file must hold" in line(running, "reload", code=77).stderr


def pretend(stage, url):
    """Another daemon seems to hold all shards, and to be reached there."""
    stage.execute("INSERT INTO outbox_instances (id, kind, host, url, version, routes, pid, alive_until) "
                  "VALUES ('x', 'daemon', 'elsewhere', %s, '0', '', 1, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)", url)
    stage.execute("UPDATE outbox_shards SET owner = 'x', lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")


@pytest.fixture
def pretender(running):
    """The daemon has stopped, and its task is in an hour; url answers as if it were done."""
    running.id, = running.insert("hook", delay_ms=HOUR_MS)
    running.daemons[0].stop()
    running.receiver.on("/api", Answer(200, body=b'{"id": "1", "state": "cancelled"}'))
    return running


@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--delay", "2h"]])
def test_an_answer_counts_when_the_row_shows_it(pretender, words):
    """Whatever answers at the address in the table: nothing is called done that is not."""
    pretend(pretender, pretender.receiver.url)
    done = line(pretender, "task", words[0], pretender.id, *words[1:], code=69)
    assert "says that it was done, but the row is as it was" in done.stderr
    assert "cancelled" not in done.stdout and "rescheduled" not in done.stdout
    assert pretender.row(pretender.id)["state"] == "scheduled"


STRANGERS = {
    "page": Answer(200, body=b"<html>welcome</html>"), "object": Answer(200, body=b"{}"),
    "unlike": Answer(200, body=b'{"ready": 1, "reloaded": "yes", "routes": {}, "state": 2, "fate": null}'),
    "brackets": Answer(200, body=b"[" * 1_000_000), "created": Answer(201, body=b'{"reloaded": true, "state": "x"}'),
    "missing": Answer(404, body=b'{"detail": "no such page"}'),
    "moved": Answer(307, headers={"Location": "https://elsewhere.example/login"})}


@pytest.mark.parametrize("kind", STRANGERS)
def test_only_a_daemon_is_believed(pretender, kind):
    """Any web server may answer at admin.url: nothing is called done because of what it says."""
    url = pretender.receiver.url
    for path in ("/readyz", "/api"):
        pretender.receiver.on(path, STRANGERS[kind])
    pretend(pretender, url)
    daemon = pretender.daemons[0]
    daemon.configure({**daemon.configuration, "admin": {"url": url}})
    words = [f"{url}: that is no daemon of duebox: it answers with HTTP status {STRANGERS[kind].status}", "admin.url must"]
    words += ["a redirect (which is not followed) to https://elsewhere.example/login"] if kind == "moved" else []
    cancel = line(pretender, "task", "cancel", pretender.id, code=69)
    said = [line(pretender, "reload", code=69).stderr, line(pretender, "route", "list").stderr, cancel.stderr,
            daemon.run("doctor", check=False).stdout]
    assert not [text for text in said if not all(word in " ".join(text.split()) for word in words)], said
    assert "is not known" in cancel.stderr and pretender.row(pretender.id)["state"] == "scheduled"
    result = ["task", "result", pretender.id, "--attempt", 1, "--status", "done"]
    assert "applied" not in line(pretender, *result, code=65).stdout        # judged by the table


HEAVY = {
    "a Transfer-Encoding other than chunked": lambda body: Answer(
        200, body=gzip.compress(body), headers={"Transfer-Encoding": "gzip"}),
    "more than 64 KiB of headers": lambda body: Answer(200, body=body, headers={f"X-{i}": "x" * 1000 for i in range(70)}),
    "more than 16 MiB": lambda body: Answer(200, body=body + b" " * (16 << 20))}


@pytest.mark.parametrize("kind", HEAVY)
def test_an_answer_that_costs_much_is_refused(pretender, kind):
    """libcurl undoes codings that nobody asked for, and looks at no time-out meanwhile; headers it takes without end."""
    for path in ("/readyz", "/api"):
        pretender.receiver.on(path, HEAVY[kind](b'{"ready": true, "reloaded": true, "routes": [], "plugins": []}'))
    daemon = pretender.daemons[0]
    daemon.configure({**daemon.configuration, "admin": {"url": pretender.receiver.url}})
    said = [line(pretender, "reload", code=69).stderr, line(pretender, "route", "list").stderr,
            daemon.run("doctor", check=False).stdout]
    assert not [text for text in said if f"the answer has {kind}" not in " ".join(text.split())], said


@pytest.mark.parametrize("echo", [
    lambda token: Answer(401, body=json.dumps({
        "type": "urn:duebox:problem:unauthorized", "code": "unauthorized", "detail": f"you sent Bearer {token}"}).encode()),
    lambda token: Answer(200, body=json.dumps({
        "id": "1", "state": token, "ready": True, "reloaded": True, "routes": [
            {"name": "hook", "suspended": True, "trouble": token, "targets": [{token: token, "reason": token}]}],
        "plugins": [{"name": token, "role": "sink", "text": f"{token[:20]}\n{token[20:]}"}]}).encode()),
    lambda token: Answer(302, headers={"Location": f"https://elsewhere.example/?token={token}"})])
def test_the_token_is_not_repeated(pretender, echo):
    """What answers there may say what it was sent, and people paste the output of doctor into tickets."""
    token = "0123456789abcdef" * 4
    for path in ("/readyz", "/api"):
        pretender.receiver.on(path, echo(token))
    pretend(pretender, pretender.receiver.url)
    daemon = pretender.daemons[0]
    daemon.configure({**daemon.configuration, "admin": {"url": pretender.receiver.url, "token": token}})
    for words in (["reload"], ["route", "list"], ["route", "list", "-o", "json"], ["doctor"], ["doctor", "-o", "json"],
                  ["task", "cancel", pretender.id], ["task", "result", pretender.id, "--attempt", 1, "--status", "done"]):
        done = daemon.run(*words, check=False)
        assert "0123456789abcdef" not in done.stdout + done.stderr, (words, done)
    assert any(f"Bearer {token}" == request.headers.get("authorization") for request in pretender.receiver.requests)

LISTENS = """import os, socket, sys
way, address = sys.argv[1:3]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if family == socket.AF_INET6:
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
listener.bind((address, int(sys.argv[3])))
listener.listen()
print("listens", flush=True)
while True:
    client, _ = listener.accept()
    if way == "hides":
        listener.close()
    heard = client.recv(65536)
    print("asked " + ("with the token" if b"Bearer" in heard else heard[:3].decode()), flush=True)
    client.close()
    if way == "hides":
        break
"""


@pytest.mark.parametrize("way, address", [("stays", "127.0.0.1"), ("stays", "0.0.0.0"), ("stays", "::"),
                                          ("hides", "127.0.0.1")])
def test_the_token_is_not_sent_to_a_listener_of_another_user(stage, way, address):
    """The daemon is down, and any user may listen on its port: its own user is told from a stranger by the owner of the
    token's file."""
    if os.geteuid() != 0:
        pytest.skip("only root can listen as another user")
    stage.http("hook")
    daemon = stage.daemon()
    token = daemon.folder / "admin.token"
    token.write_text("a-token-of-the-operator-123456\n")
    token.chmod(0o600)
    daemon.configure(yaml.safe_dump({**daemon.configuration, "admin": {"listen": f"127.0.0.1:{daemon.port}",
                                                                       "token_file": "admin.token"}}))

    def ask():
        with subprocess.Popen([sys.executable, "-c", LISTENS, way, address, str(daemon.port)], user=65534, group=65534,
                              extra_groups=[], stdout=subprocess.PIPE, text=True, cwd="/") as listener:
            assert listener.stdout.readline() == "listens\n"
            said = daemon.run("reload", check=False)
            listener.terminate()
            return listener.stdout.read(), said.stdout + said.stderr

    heard, said = ask()
    assert "with the token" not in heard, heard
    assert "a process of another user (uid 65534) listens there" in said, said
    os.chown(token, 65534, 65534)
    heard, said = ask()
    assert "with the token" in heard and "another user" not in said, (heard, said)


def test_the_token_goes_to_no_other_machine_readable(pretender):
    """An address in a table is no reason to send a secret by plain http."""
    pretend(pretender, f"http://0.0.0.0:{pretender.receiver.port}")
    said = line(pretender, "task", "cancel", pretender.id, code=78).stderr
    assert "another machine and not https" in said and "admin.allow_plaintext" in said
    assert not pretender.receiver.requests
    assert pretender.row(pretender.id)["state"] == "scheduled"


@pytest.fixture
def behind_tls(stage, tmp_path):
    """A daemon that is reached at a proxy, whose certificate no authority of the system has signed."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "own.pem", "-subj", "/CN=proxy", "-days", "2",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "own.pem", tmp_path / "key.pem")
    with HttpReceiver(tls=tls) as proxy:
        stage.configuration["admin"] = {"url": f"https://localhost:{proxy.port}"}
        stage.http("hook", history="1h")
        stage.start()

        def forward(request):
            status, answer = stage.daemons[0].api(request.method, request.path, request.body or None)
            return Answer(status, json.dumps(answer).encode())
        proxy.on("/", forward)
        yield proxy


def test_commands_trust_the_authority_of_their_configuration(behind_tls, stage, tmp_path):
    """A daemon behind a proxy of the house's own authority is reached with admin.ca_file, and the token
    is never shown to a stranger; what could not be asked has changed nothing."""
    daemon = stage.daemons[0]
    task, = stage.insert("hook", delay_ms=HOUR_MS)
    said = line(stage, "task", "cancel", task, code=69).stderr
    assert "certificate" in said and "admin.ca_file" in said
    for file, why in (("none.pem", "none.pem"), ("key.pem", "key.pem")):
        daemon.configure({**daemon.configuration, "admin": {**daemon.configuration["admin"],
                                                            "ca_file": str(tmp_path / file)}})
        assert why in line(stage, "task", "cancel", task, code=69).stderr
    assert not behind_tls.requests
    assert stage.row(task)["state"] == "scheduled"
    shutil.copy(tmp_path / "own.pem", daemon.folder)  # like other files, beside the configuration
    daemon.configure({**daemon.configuration, "admin": {**daemon.configuration["admin"], "ca_file": "own.pem"}})
    assert line(stage, "task", "cancel", task).stdout == f"{task}  cancelled\n"
    assert stage.row(task)["state"] == "cancelled"
    assert behind_tls.requests


def test_no_keys_of_connections_are_written(stage, tmp_path, monkeypatch):
    """A variable that somebody left in the environment does not make passwords and payloads readable."""
    keys = tmp_path / "keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    stage.http("hook")
    daemon = stage.start()
    daemon.configure({**daemon.configuration, "admin": {"url": f"https://localhost:{stage.receiver.port}"}})
    assert "no daemon answers" in line(stage, "reload", code=69).stderr
    assert not keys.exists()


def test_reload(running):
    daemon = running.daemons[0]
    running.insert("fresh", delay_ms=HOUR_MS)
    routes = {**daemon.configuration["routes"], "fresh": {"via": "hooks", "url": f"{running.receiver.url}/fresh"}}
    daemon.configure({**daemon.configuration, "routes": routes})
    mark = daemon.mark()
    assert line(running, "reload").stderr == "reloaded\n"
    assert json.loads(line(running, "reload", "-o", "json").stdout)["reloaded"] is True
    daemon.wait_log("DUEBOX-RELOADED", after=mark, limit_s=LIMIT_S)
    daemon.configure({**daemon.configuration, "engine": {**daemon.configuration["engine"], "instance": "other"},
                      "database": {**daemon.configuration["database"], "table": "other"}})
    refused = line(running, "reload", code=78).stderr
    assert "refuses: nothing was changed: " in refused
    daemon.configure(running.configuration)
    daemon.stop()
    assert line(running, "reload", code=69).stderr.startswith("duebox: no daemon answers: ")


def test_pause_reaches_the_daemon(running):
    line(running, "route", "pause", "hook", "--reason", "their maintenance")
    stats = "/api/v1/routes"
    daemon = running.daemons[0]

    def paused():
        routes = daemon.api("GET", stats)[1]
        return [route["paused"] for route in routes["routes"] if route["name"] == "hook"]
    wait_until(lambda: paused() == [True], LIMIT_S, "the daemon to see the pause")
    id_, = running.insert("hook")
    line(running, "route", "resume", "hook")
    running.receiver.wait_count(1, LIMIT_S, "/hook")
    running.wait_row(id_, LIMIT_S, state="done")


def state_of(stage, route):
    """STATE as `duebox route list` shows it, and what it says beside the table."""
    done = line(stage, "route", "list")
    return re.search(rf"^{route} +\S+ +(\S+(?: \S+)*?)  ", done.stdout, re.MULTILINE)[1], done.stderr


def test_route_list_says_what_the_daemon_has_suspended(stage):
    stage.http("hook")
    stage.route("down", via="hooks", url="http://127.0.0.1:1/down")
    daemon = stage.start()
    assert state_of(stage, "down") == ("ok", "")
    stage.insert("down", end="")
    wait_until(lambda: state_of(stage, "down") == ("suspended", ""), LIMIT_S, "the route to be listed as suspended")
    # A probe that found nobody there is no hand-over: it says nothing about how late tasks leave.
    assert daemon.metric("duebox_lateness_seconds_count", route="down") == 0
    row = {route["route"]: route for route in json.loads(line(stage, "route", "list", "-o", "json").stdout)}
    api = {route["name"]: route for route in daemon.api("GET", "/api/v1/routes")[1]["routes"]}
    assert (row["hook"]["suspended"], row["down"]["suspended"]) == (False, True)
    assert row["down"]["reason"] == api["down"]["reason"] != ""
    assert re.search(r"^state +suspended\nreason +\S", line(stage, "route", "show", "down").stdout, re.MULTILINE)
    fresh = {"via": "hooks", "url": f"{stage.receiver.url}/fresh"}
    daemon.configure({**daemon.configuration, "routes": {**daemon.configuration["routes"], "fresh": fresh}})
    assert state_of(stage, "fresh") == ("not loaded", "")
    assert state_of(stage, "hook") == ("ok", "")
    daemon.stop()
    line(stage, "route", "pause", "hook")
    assert state_of(stage, "hook")[0] == "paused"
    state, remark = state_of(stage, "down")
    assert (state, remark.split(": ")[0]) == ("?", "which routes are suspended is not known")
    row = {route["route"]: route for route in json.loads(line(stage, "route", "list", "-o", "json").stdout)}
    assert row["down"]["suspended"] is None


def test_doctor_tells_what_the_daemon_cannot_reach(stage):
    def said():
        done = line(stage, "doctor", "-o", "jsonl")
        found = [json.loads(text) for text in done.stdout.splitlines()]
        return [(one["level"], one["text"]) for one in found if one["check"] == "destinations"]
    stage.http("hook")
    stage.route("down", via="hooks", url="http://127.0.0.1:1/down")
    daemon = stage.start()
    assert said() == [("ok", "the daemon has met none that is down")]
    stage.insert("down", end="")
    wait_until(lambda: said()[0][0] == "warn", LIMIT_S, "the doctor to speak of the route")
    reason = next(route["reason"] for route in daemon.api("GET", "/api/v1/routes")[1]["routes"] if route["name"] == "down")
    assert reason and ("warn", f"route down is suspended: {reason}") in said()    # its plugin may be down too by now
    daemon.stop()
    assert said() == []
    stage.plugin("away", module="amqp", url="amqp://127.0.0.1:1/%2f")
    stage.route("queue", via="away", routing_key="q")
    daemon.configure(stage.configuration)
    daemon.start()
    wait_until(lambda: any(text.startswith("plugin away (sink) is down: ") for _, text in said()), LIMIT_S,
               "the doctor to speak of the plugin")


def test_doctor_beside_a_daemon(running):
    text = line(running, "doctor").stdout
    assert re.search(r"^ok +shards +8 of 8 are held", text, re.MULTILINE)
    assert re.search(r"^ok +admin +http://127\.0\.0\.1:\d+: ready$", text, re.MULTILINE)


def test_a_result_that_another_outbox_took_is_not_said_to_be_applied(stage):
    """The row of the instance is that of a copied database: the daemon there works on the original."""
    stage.http("h")
    daemon = stage.daemon()
    id_, = stage.insert("h", end="")
    stage.execute("UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    stage.receiver.on("/api/v1/results", Answer(200, body=b'{"fate": "applied", "differs": false, "capped": false}'))
    stage.execute("INSERT INTO outbox_instances (id, kind, host, url, version, routes, pid, alive_until) VALUES"
                  " ('x', 'daemon', 'elsewhere', %s, '0', '', 1, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)",
                  stage.receiver.url)
    done = daemon.run("task", "result", id_, "--attempt", "1", "--status", "done", check=False)
    assert (done.returncode, done.stdout) == (os.EX_UNAVAILABLE, "")
    assert "the row is as it was: that daemon works on another database" in done.stderr
    assert stage.row(id_)["state"] == "awaiting"


def test_a_daemon_whose_address_leads_to_another(running):
    """As where two machines keep the default of admin.listen: trying again helps nobody."""
    first = running.daemons[0]
    second = running.start(admin={"url": f"http://127.0.0.1:{first.port}"})
    wait_until(lambda: len(running.execute("SELECT owner FROM outbox_shards WHERE owner IS NOT NULL GROUP BY owner"
                                           " HAVING COUNT(*) = 4")) == 2, LIMIT_S, "both daemons to hold their part")
    mine, theirs = [running.execute(
        "SELECT MIN(s.shard), MIN(i.id), MIN(i.host) FROM outbox_shards s JOIN outbox_instances i ON i.id = s.owner"
        " WHERE i.pid = %s", daemon.process.pid)[0] for daemon in (first, second)]
    ids = []
    for shard, *_ in (mine, theirs):
        running.execute("INSERT INTO outbox (route, payload, delay_ms, message_id, shard) VALUES ('hook', '{}', %s, %s, %s)",
                        HOUR_MS, f"in-{shard}", shard)
        ids.append(f"in-{shard}")
    assert line(running, "task", "cancel", ids[0]).stdout == f"{ids[0]}  cancelled\n"
    done = line(running, "task", "cancel", ids[1], code=69)
    assert done.stderr.startswith(
        f"duebox: task {running.row(ids[1])['id']}: the daemon {theirs[1]} on {theirs[2]} holds its shard, and at its address"
        f" http://127.0.0.1:{first.port} another daemon of this outbox answers; nothing was changed"), done
    assert "leads each machine to itself: where the daemon runs on another one, give the command there" in done.stderr
    assert running.row(ids[1])["state"] == "scheduled"
    found = [json.loads(text) for text in line(running, "doctor", "-o", "jsonl").stdout.splitlines()]
    assert [(one["level"], one["text"].split(",")[:2]) for one in found if one["check"] == "addresses"] == [
        ("warn", [mine[2], f" {theirs[2]} have the address http://127.0.0.1:{first.port}"])]


def test_a_daemon_that_was_started_anew(running):
    """Its shards are still those of the one that died, and it has no lease yet: whoever cancels waits until that is over."""
    id_, = running.insert("hook", delay_ms=HOUR_MS)
    daemon = running.daemons[0]
    daemon.kill9()
    running.execute("UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 6 SECOND WHERE shard < 63")
    mark = daemon.mark()
    daemon.start(wait_ready=False)
    daemon.wait_log("DUEBOX-ADMIN-LISTEN", after=mark)
    assert line(running, "task", "cancel", id_).stdout == f"{id_}  cancelled\n"
