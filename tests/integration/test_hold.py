"""`duebox run --hold`, after a restore: it is there and shows what would be sent, and no task moves until it is started
without."""

import json

import pytest
from support.wait import wait_until

LIMIT_S = 60
PAST = "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR"
TABLES = ("outbox", "outbox_history", "outbox_quarantine", "outbox_attempts")


def insert(stage, message_id, **columns):
    columns = {"route": "'work'", "payload": "'{}'", "message_id": f"'{message_id}'", "due_at": PAST, **columns}
    stage.execute(f"INSERT INTO outbox ({', '.join(columns)}) VALUES ({', '.join(columns.values())})")


def tables(stage):
    return [sorted(stage.execute(f"SELECT * FROM {table}"), key=str) for table in TABLES]


def shown(daemon):
    """The routes of which the daemon has found due tasks."""
    _, body = daemon.api("GET", "/api/v1/routes")
    return {route["name"] for route in body["routes"] if route["oldest_due_age_us"] or not route["known"]}


def test_nothing_moves_until_it_runs_without_hold(stage):
    stage.plugin("nowhere", module="null")
    for route in ("work", "late"):
        stage.route(route, via="nowhere", history="1h")
    daemon = stage.daemon("one")
    insert(stage, "due")
    insert(stage, "unwanted")
    insert(stage, "over", expires_at=PAST)
    insert(stage, "strange", route="'nobodys'")
    # As a restored copy has them: claimed by a daemon of the past, and with an answer that is overdue.
    insert(stage, "claimed")
    insert(stage, "awaiting")
    stage.execute("UPDATE outbox SET state = 'claimed', attempt = 1, claimed_by = 'gone',"
                  f" claim_epoch = 0, lease_until = {PAST} WHERE message_id = 'claimed'")
    stage.execute("UPDATE outbox SET state = 'awaiting', attempt = 1, published_at = due_at,"
                  f" lease_until = {PAST} WHERE message_id = 'awaiting'")
    before = tables(stage)
    daemon.start("--hold", wait_ready=False).wait_log("DUEBOX-HELD", limit_s=LIMIT_S)
    wait_until(lambda: {"work", "nobodys"} <= shown(daemon), LIMIT_S, "the due tasks to be shown", detail=daemon.log_tail)
    status, body = daemon.api("GET", "/readyz")
    assert status == 503 and any(problem.startswith("held: ") for problem in body["problems"]), body
    assert tables(stage) == before
    # What it finds at its second look is as safe.
    insert(stage, "more", route="'late'")
    wait_until(lambda: "late" in shown(daemon), LIMIT_S, "the new task to be shown", detail=daemon.log_tail)
    assert stage.row("more")["state"] == "scheduled"
    found = json.loads(daemon.run("doctor", "-o", "json", check=False).stdout)
    said = {one["text"] for one in found if one["check"] == "to be sent"}
    assert any(text.startswith("work: 3 due, the oldest since ") and text.endswith("1 claimed, 1 awaiting a result")
               for text in said), said
    assert any(text.startswith("late: 1 due") for text in said)
    # People decide meanwhile. A reload does not end it.
    daemon.run("task", "cancel", "unwanted", "--yes")
    daemon.reload()
    wait_until(lambda: stage.row("unwanted")["state"] == "cancelled", LIMIT_S, "the task to be cancelled")
    assert stage.count(where="state = 'scheduled'") == 4
    daemon.stop()
    daemon.start()
    for message_id in ("due", "more"):
        stage.wait_row(message_id, LIMIT_S, state="done")
    stage.wait_row("over", LIMIT_S, state="expired")
    stage.wait_row("strange", LIMIT_S, state="held")
    for message_id in ("claimed", "awaiting"):
        wait_until(lambda wanted=message_id: stage.row(wanted)["state"] not in ("claimed", "awaiting"), LIMIT_S,
                   f"{message_id} to be taken back", detail=daemon.log_tail)
    assert stage.row("unwanted")["attempt"] == 0


@pytest.mark.parametrize("held", [True, False], ids=["held-daemons", "no-daemon"])
def test_what_was_due_in_the_copy_is_cancelled_whatever_its_state(stage, held):
    """Step 3 after a restore: what was claimed when the backup was made is nobody's any more, and would be sent again."""
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    daemon = stage.daemon("one")
    for message_id in ("due", "claimed", "awaiting"):
        insert(stage, message_id)
    insert(stage, "later", due_at="UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    stage.execute("UPDATE outbox_shards SET owner = 'original', unclean = TRUE, epoch = 100, lease_until = " + PAST +
                  " WHERE shard < 63")
    stage.execute("UPDATE outbox SET state = 'claimed', attempt = 1, claimed_by = 'original', claim_epoch = 100,"
                  " lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE message_id = 'claimed'")
    stage.execute(f"UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = {PAST} WHERE message_id = 'awaiting'")
    if held:
        daemon.start("--hold", wait_ready=False).wait_log("DUEBOX-HELD", limit_s=LIMIT_S)
        wait_until(lambda: not stage.execute("SELECT 1 FROM outbox_shards WHERE owner = 'original'"), LIMIT_S,
                   "it to hold all shards", detail=daemon.log_tail)
    words = ("task", "cancel", "--due-before", "now")
    assert daemon.run(*words, "--dry-run").stdout == (
        "3 tasks would be cancelled (--due-before now); 3 may have been sent before\n")
    assert daemon.run(*words, "--yes").stdout.startswith("3 of 3 tasks cancelled; 3 may have been sent before (audit ")
    if held:
        daemon.stop()
    daemon.start()
    stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE message_id = 'later'")
    stage.wait_row("later", LIMIT_S, state="done")
    assert {stage.row(message_id)["state"] for message_id in ("due", "claimed", "awaiting")} == {"cancelled"}


def test_doctor_counts_no_further_than_it_must(stage):
    """A backlog of millions is not counted to its end by somebody who asks what is wrong; every route of it is named."""
    stage.http("big")
    daemon = stage.daemon()
    stage.execute("INSERT INTO outbox (route, payload, due_at) SELECT IF(seq <= 10100, 'big', 'small'), '', '2020-01-01'"
                  " + INTERVAL seq SECOND FROM seq_1_to_10103")
    found = json.loads(daemon.run("doctor", "-o", "json", check=False).stdout)
    said = {one["text"] for one in found if one["check"] == "to be sent"}
    assert said == {"big: at least 10000 due, the oldest since 2020-01-01 00:00:01, 0 claimed, 0 awaiting a result",
                    "small: 3 due, the oldest since 2020-01-01 02:48:21, 0 claimed, 0 awaiting a result"}


def test_the_result_of_a_sending_that_the_copy_does_not_know_counts(stage):
    """After a restore the table does not know what was sent since the backup. Its result comes all the same, and settles
    the task at once, while nothing moves: nobody is going to record that sending, which a result otherwise waits for."""
    results = stage.queue()
    stage.amqp("work", reply_to=results, result="expected", timeout="10m", history="1h")
    stage.configuration["results"] = [{"via": "rabbit", "queue": results}]
    daemon = stage.daemon("one")
    insert(stage, "sent")
    daemon.start("--hold", wait_ready=False).wait_log("DUEBOX-HELD", limit_s=LIMIT_S)
    stage.rabbitmq.publish("", results, json.dumps({"id": "sent", "attempt": 1, "status": "done"}).encode())
    stage.wait_row("sent", LIMIT_S, state="done", attempt=1)
