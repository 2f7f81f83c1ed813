"""What cancel, reschedule and set say of a task that has left, or may have: the same of one that is named and of those
that a filter matches, by the command line and by the API, beside a daemon that sends, one that holds, a paused route, and
without any.  Nothing is called cancelled as if it had never left; nothing that a filter matches is passed over."""

import json
import threading

import pytest
from support.command_line import cli
from support.servers.http_receiver import Answer
from support.wait import wait_until

__all__ = ["cli"]

LIMIT_S = 60
LATER = "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
SENT = {"attempt": "1", "published_at": "created_at"}
CLAIM = {"state": "'claimed'", "attempt": "1", "lease_until": LATER}
OWNED = {"claim_epoch": "(SELECT epoch FROM outbox_shards s WHERE s.shard = outbox.shard)",
         "claimed_by": "(SELECT owner FROM outbox_shards s WHERE s.shard = outbox.shard)"}

# What a row is, and what cancel, reschedule and set make of it; whether those that do it say that it may have been sent.
TASKS = {
    "fresh": ({}, ("done", "done", "done"), False),
    "failed": ({"attempt": "1", "failures": "1", "error_class": "'http.500'"}, ("done", "done", "done"), True),
    "unknown": ({**SENT, "error_class": "'http.timeout'", "failures": "1"}, ("done", "done", "done"), True),
    "held": ({"route": "'nobodys'", "state": "'held'"}, ("done", "state", "state"), False),
    "blocked": ({"state": "'blocked'"}, ("done", "state", "state"), False),
    "failed-held": ({"route": "'nobodys'", "state": "'held'", "attempt": "1"}, ("done", "state", "state"), True),
    "awaiting": ({**SENT, "state": "'awaiting'", "lease_until": LATER}, ("done", "in_flight", "in_flight"), True),
    "claimed": ({**CLAIM, **OWNED}, ("in_flight", "in_flight", "in_flight"), None),
    "lost": ({**CLAIM, "claim_epoch": "0", "claimed_by": "'gone'"}, ("done", "in_flight", "in_flight"), True),
    "bound": ({"target_host": "'far'", "shard": "DEFAULT"}, ("done", "done", "done"), False),
    "bound-claimed": ({**CLAIM, "target_host": "'far'", "shard": "DEFAULT", "claim_epoch": "1", "claimed_by": "'lives'"},
                      ("in_flight", "in_flight", "in_flight"), None),
    "bound-lost": ({**CLAIM, "target_host": "'far'", "shard": "DEFAULT", "claim_epoch": "1", "claimed_by": "'died'"},
                   ("done", "in_flight", "in_flight"), True),
}
VERBS = {"cancel": ["cancel"], "reschedule": ["reschedule", "--at", "+2h"], "set": ["set", "--max-attempts", "7"]}
CODES = {"done": 0, "in_flight": 75, "state": 65}
# Without a daemon nobody has a claim; one that sends takes back, or brings back, what these rows stand for.
PLACES = {"none": {"claimed"}, "holds": set(), "sends": {"blocked", "lost", "bound-lost"},
          "paused": {"blocked", "lost", "bound-lost"}}


def settle_in(cli, place):
    # Of a kind that gets no share of the shards.
    cli.sql(f"INSERT INTO outbox_instances (id, kind, host, alive_until) VALUES ('lives', 'application', 'far', {LATER}),"
            " ('died', 'application', 'far', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)")
    if place == "none":
        return
    if place == "paused":
        cli("route", "pause", "crm.push")
    cli.daemon.start(*["--hold"] * (place == "holds"), wait_ready=False)
    wait_until(lambda: not cli.sql("SELECT 1 FROM outbox_shards WHERE owner IS NULL AND shard < 63"), LIMIT_S,
               "all shards to be held", detail=cli.daemon.log_tail)


def make(cli, kind):
    """A task of that kind, whose key is its kind."""
    id_, = cli.add(task_key=kind)
    columns = TASKS[kind][0]
    if columns:
        cli.sql(f"UPDATE outbox SET {', '.join(f'{name} = {value}' for name, value in columns.items())} WHERE id = %s", id_)
    return id_


def read(done, *, dry_run=False):
    """Outcome and doubt that the command's JSON says of one task."""
    told = json.loads(done.stdout)
    assert told["matched"] == 1, told
    refused = [name for name in ("not_found", "state", "expires", "in_flight", "conflict") if told[name]]
    assert (told["changed"] == 0) == (dry_run or bool(refused)), told
    return refused[0] if refused else "done", bool(told["maybe_sent"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("verb", VERBS)
def test_named_or_matched_a_task_is_told_of_alike(cli, place, verb):
    settle_in(cli, place)
    at = list(VERBS).index(verb)
    for kind, (_, outcomes, doubt) in TASKS.items():
        if kind in PLACES[place]:
            continue
        outcome = outcomes[at]
        doubt = bool(doubt) and outcome == "done" and verb != "set"
        make(cli, kind)
        words = ["task", *VERBS[verb], "--key", kind, "-o", "json"]
        foreseen = cli.run(*words, "--dry-run")
        assert (kind, foreseen.returncode, *read(foreseen, dry_run=True)) == (kind, 0, outcome, doubt)
        matched = cli.run(*words, "--yes")
        assert (kind, matched.returncode, *read(matched)) == (kind, CODES[outcome], outcome, doubt)
        id_ = make(cli, kind)
        foreseen = cli.run("task", *VERBS[verb], id_, "-o", "json", "--dry-run")
        assert (kind, foreseen.returncode, *read(foreseen, dry_run=True)) == (kind, 0, outcome, doubt)
        named = cli.run("task", *VERBS[verb], id_, "-o", "json")
        assert (kind, named.returncode, *read(named)) == (kind, CODES[outcome], outcome, doubt)
        if place == "none" or verb == "set":
            continue
        id_ = make(cli, kind)
        body = {"delay_ms": 7200_000} if verb == "reschedule" else {}
        status, told = cli.daemon.api("POST", f"/api/v1/tasks/id:{id_}/{verb}", body)
        if outcome == "done":
            assert (kind, status, told["maybe_sent"]) == (kind, 200, doubt)
        else:
            assert (kind, status, told["code"]) == (kind, 409, outcome)


def test_the_words(cli):
    """By filter as many words as by id."""
    for kind in ("fresh", "failed", "awaiting", "bound-claimed"):
        make(cli, kind)
    settle_in(cli, "none")
    assert cli("task", "cancel", "--route", "crm.push", "--dry-run") == (
        "3 of 4 tasks would be cancelled (--route crm.push); 1 were on their way out; 2 may have been sent before\n")
    said = cli.run("task", "reschedule", "--route", "crm.push", "--at", "+2h", "--yes")
    assert (said.returncode, said.stdout) == (
        75, "2 of 4 tasks rescheduled; 2 were on their way out or awaited their result; 1 may have been sent before"
            " (audit 1)\n")
    assert cli("task", "set", "--route", "crm.push", "--max-attempts", "7", "--state", "scheduled", "--yes") == (
        "2 of 2 tasks changed (audit 2)\n")
    said = cli.run("task", "cancel", "--route", "crm.push", "--yes")
    assert (said.returncode, said.stdout) == (
        75, "3 of 4 tasks cancelled; 1 were on their way out; 2 may have been sent before (audit 3)\n")
    assert [row["maybe_sent"] for row in cli.audit()[-1]["before"]] == [0, 1, 1]
    failed, awaiting, lost = make(cli, "failed"), make(cli, "awaiting"), make(cli, "lost")
    assert cli("task", "cancel", failed, awaiting, lost, "--dry-run") == (
        f"{failed}  is scheduled (it may have been sent before)\n"
        f"{awaiting}  is awaiting (it was sent, and its result was awaited)\n"
        f"{lost}  is claimed (it may have been sent before)\n")
    said = cli.run("task", "reschedule", failed, awaiting, lost, "--at", "+2h").stdout
    assert said == (f"{failed}  rescheduled (it may have been sent before)\n"
                    f"{awaiting}  was sent, and awaits its result: too late, or try again when the attempt is over\n"
                    f"{lost}  claimed by a daemon that is gone: try again when another one has taken it back\n")
    assert cli("task", "cancel", failed, awaiting, lost) == (
        f"{failed}  cancelled (it may have been sent before)\n"
        f"{awaiting}  cancelled (it was sent, and its result was awaited)\n"
        f"{lost}  cancelled (it may have been sent before)\n")


def test_who_has_claimed_it_before_the_crash_can_settle_it_no_more(cli):
    """Cancelled without a daemon, though the one that had it may only be slow: its shard is fenced off."""
    id_ = make(cli, "fresh")
    cli.hold(seconds=-1)
    cli.sql(f"UPDATE outbox SET {', '.join(f'{name} = {value}' for name, value in {**CLAIM, **OWNED}.items())}")
    shard = cli.row(id_)["shard"]
    before, = cli.sql("SELECT epoch FROM outbox_shards WHERE shard = %s", shard)
    assert cli("task", "cancel", id_) == f"{id_}  cancelled (it may have been sent before)\n"
    assert cli.sql("SELECT epoch FROM outbox_shards WHERE shard = %s", shard)[0] > before


@pytest.mark.parametrize("words", [["cancel"], ["reschedule", "--at", "+2h"]], ids=lambda words: words[0])
def test_a_task_that_another_operator_moves_to_a_held_shard_is_not_taken_from_it(cli, words):
    """Found among the bound ones, it is in the shard of a living daemon when its row is locked: that one has to be asked."""
    id_, = cli.add(target_host="far")
    cli.hold()
    with cli.stage.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE outbox SET target_host = '', shard = 1 WHERE id = %s", (id_,))
        done = {}
        thread = threading.Thread(target=lambda: done.update(run=cli.run("task", *words, id_)))
        thread.start()
        wait_until(lambda: done or cli.sql("SELECT 1 FROM information_schema.innodb_lock_waits"), LIMIT_S,
                   "the command to wait for the row")
        connection.commit()
        thread.join()
    assert done["run"].returncode == 69 and "holds its shard and cannot be reached" in done["run"].stderr
    assert cli.row(id_)["state"] == "scheduled"


# -- what really has left ---------------------------------------------------------------------------

@pytest.fixture
def sender(stage):
    stage.http("work", claim="recorded", timeout="60s", retry={"levels": ["1h"]})
    stage.http("plain", claim="memory", timeout="60s", retry={"levels": ["1h"]})
    stage.http("once", claim="memory", timeout="60s", max_attempts=1, retry={"levels": ["1h"]})
    stage.http("later", result="expected", timeout="60s")
    stage.http("nowhere", claim="memory", url="http://127.0.0.1:1/")
    stage.start()
    return stage


def run(stage, *words, code=0):
    done = stage.daemons[0].run(*words, check=False)
    assert done.returncode == code, f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_filter_that_matches_a_running_call_says_so(sender):
    """The only one of its key is with the endpoint: nothing is cancelled, and that is no success."""
    sender.receiver.on("/work", Answer(never=True))
    add = "INSERT INTO outbox (route, payload, task_key, delay_ms, message_id) VALUES ('work', '{}', 'order-17', %s, %s)"
    sender.execute(add, 0, "out")
    sender.wait_row("out", LIMIT_S, state="claimed")
    words = ["task", "cancel", "--route", "work", "--key", "order-17", "--yes"]
    assert run(sender, *words, code=75) == "0 of 1 tasks cancelled; 1 were on their way out\n"
    again = ["task", "reschedule", "--key", "order-17", "--delay", "1h", "--yes"]
    assert run(sender, *again, code=75) == "0 of 1 tasks rescheduled; 1 were on their way out or awaited their result\n"
    sender.execute(add, 3600_000, "waits")
    assert run(sender, *words, code=75).startswith("1 of 2 tasks cancelled; 1 were on their way out (audit ")


@pytest.mark.parametrize("route", ["work", "plain"])
@pytest.mark.parametrize("alive", [True, False], ids=["daemon", "none"])
def test_a_task_that_waits_for_its_retry_may_have_been_sent(sender, route, alive):
    sender.receiver.on(f"/{route}", Answer(500))
    by_line, by_filter = sender.insert(route, count=2, end="")
    for id_ in (by_line, by_filter):
        sender.wait_row(id_, LIMIT_S, state="scheduled", failures=1)
    if alive:
        by_api, = sender.insert(route, end="")
        sender.wait_row(by_api, LIMIT_S, state="scheduled", failures=1)
        assert sender.daemons[0].api("POST", f"/api/v1/tasks/{by_api}/cancel", {}) == (
            200, {"id": by_api, "state": "cancelled", "maybe_sent": True})
    else:
        sender.daemons[0].stop()
    assert run(sender, "task", "cancel", by_line) == f"{by_line}  cancelled (it may have been sent before)\n"
    assert run(sender, "task", "cancel", "--route", route, "--yes").startswith(
        "1 of 1 tasks cancelled; 1 may have been sent before (audit ")


def test_a_task_that_awaits_its_result_was_sent(sender):
    sender.receiver.on("/later", Answer(202))
    first, second, third, fourth = sender.insert("later", count=4, end="")
    for id_ in (first, second, third, fourth):
        sender.wait_row(id_, LIMIT_S, state="awaiting")
    told = f"{first}  cancelled (it was sent, and its result was awaited)\n"
    assert run(sender, "task", "cancel", first) == told
    assert sender.daemons[0].api("POST", f"/api/v1/tasks/{second}/cancel", {}) == (
        200, {"id": second, "state": "cancelled", "maybe_sent": True})
    told = json.loads(run(sender, "task", "cancel", third, "-o", "json"))
    assert (told["maybe_sent"], told["tasks"]) == (1, [{"id": third, "outcome": "cancelled", "maybe_sent": True}])
    assert run(sender, "task", "cancel", "--route", "later", "--yes").startswith(
        "1 of 1 tasks cancelled; 1 may have been sent before (audit ")
    # Each that the daemon did has its doubt in its own audit row.
    images = sender.execute("SELECT before_image FROM outbox_audit WHERE before_image IS NOT NULL ORDER BY id")
    assert [row["maybe_sent"] for image, in images for row in json.loads(image)] == [1, 1, 1, 1]


def test_a_task_that_was_not_taken_was_not_sent(sender):
    """Nobody listens where it is to go: no attempt is counted, and the answer stays sure."""
    daemon = sender.daemons[0]
    id_, = sender.insert("nowhere", end="")
    daemon.wait_log("DUEBOX-ROUTE-SUSPENDED", limit_s=LIMIT_S)
    daemon.run("route", "pause", "nowhere")
    wait_until(lambda: daemon.run("task", "cancel", id_, check=False).stdout == f"{id_}  cancelled\n", LIMIT_S,
               "no probe to be out")
    assert sender.row(id_)["attempt"] == 0


def test_a_limit_that_is_set_while_an_attempt_runs_counts(sender):
    """It was said to be changed, and the limit before decided: dead of one that had been raised, sent again in spite of
    one that had been lowered."""
    for path in ("/once", "/plain"):
        sender.receiver.on(path, Answer(500, delay_s=3))
    raised, = sender.insert("once", end="")
    lowered, = sender.insert("plain", end="")
    wait_until(lambda: len(sender.receiver.requests) == 2, LIMIT_S, "both to be out")
    assert run(sender, "task", "set", raised, "--max-attempts", "20") == f"{raised}  changed\n"
    assert run(sender, "task", "set", lowered, "--max-attempts", "1") == f"{lowered}  changed\n"
    sender.wait_row(raised, LIMIT_S, state="scheduled", failures=1)
    wait_until(lambda: sender.execute("SELECT state, failures FROM outbox_history") == (("dead", 1),), LIMIT_S,
               "the other one to be dead of its only attempt")
    assert len(sender.receiver.requests) == 2
