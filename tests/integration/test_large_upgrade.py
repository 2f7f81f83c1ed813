"""`duebox migrate` on a table that is full, beside an application that goes on inserting: nothing is lost, no INSERT
fails, and how long the longest of them waited is said. And on tasks in every state: each goes on as what it is.

DUEBOX_TEST_UPGRADE_ROWS says how many rows; 5,000 by default, a million with DUEBOX_TEST_LONG=1.
"""

import random
import threading
import time

from support.scale import scaled
from support.threads import in_threads
from support.wait import wait_until
from test_schema import SCHEMA, install

VERSION = 4             # from which it is migrated
LATEST = int(SCHEMA[-1].name[:4])
FORMS = ("(route, payload) VALUES ('r', 'new')", "(route, payload, delay_ms) VALUES ('r', 'new', 86400000)",
         "(route, payload, due_at) VALUES ('r', 'new', '2100-01-01')")
PAUSE_S = 0.005         # of an application between two INSERTs
LIMIT_S = 3600          # a million rows on a slow disk


def go_back(stage, daemon, version=VERSION):
    """The tables as they were at that version, which `duebox migrate` takes for its own."""
    daemon.run("migrate")
    applied = stage.execute("SELECT version, name, checksum, statements_done, applied_at FROM outbox_schema"
                            f" WHERE version <= {version}")
    tables = [name for (name,) in stage.execute("SHOW TABLES LIKE 'outbox%'")]
    stage.execute("DROP TABLE " + ", ".join(tables))
    with stage.connect() as connection:
        install(connection, [file for file in SCHEMA if int(file.name[:4]) <= version])
    for row in applied:
        stage.execute("INSERT INTO outbox_schema (version, name, checksum, statements_done, applied_at)"
                      " VALUES (%s, %s, %s, %s, %s)", *row)


def fill(stage, rows):
    for first in range(1, rows + 1, 100000):
        last = min(first + 99999, rows)
        stage.execute("INSERT INTO outbox (route, payload, task_key, due_at)"
                      f" SELECT CONCAT('r', seq MOD 7), RPAD(seq, 200, 'x'), seq MOD 1000, '2100-01-01'"
                      f" FROM seq_{first}_to_{last}")


def insert_all_the_time(stage, form, over, waits):
    """How long each INSERT took; one that fails ends the test."""
    with stage.connect(autocommit=True) as connection, connection.cursor() as cursor:
        while not over.is_set():
            began = time.monotonic()
            cursor.execute(f"INSERT INTO outbox {form}")
            waits.append(time.monotonic() - began)
            time.sleep(PAUSE_S * random.random())


def test_an_upgrade_beside_an_application(stage):
    rows = scaled("DUEBOX_TEST_UPGRADE_ROWS", 5000, 1_000_000)
    daemon = stage.daemon("one", migrate=False)
    go_back(stage, daemon)
    fill(stage, rows)
    over, waits, took = threading.Event(), [[] for _ in FORMS], []

    def migrate():
        try:
            began = time.monotonic()
            daemon.run("migrate", limit_s=LIMIT_S)
            took.append(time.monotonic() - began)
        finally:
            over.set()

    in_threads(migrate, *(lambda form=form, mine=mine: insert_all_the_time(stage, form, over, mine)
                          for form, mine in zip(FORMS, waits)))
    inserted = sum(map(len, waits))
    print(f"\n{rows} rows: migrated in {took[0]:.1f} s, beside {inserted} INSERTs of three forms;"
          f" the longest of each waited {', '.join(f'{max(mine, default=0):.1f} s' for mine in waits)}")
    assert all(waits), "an application never got to insert"
    assert stage.count() == rows + inserted
    assert stage.execute("SELECT MAX(version), SUM(applied_at IS NULL) FROM outbox_schema") == ((LATEST, 0),)
    kept = stage.execute("SELECT COUNT(*), SUM(SUBSTRING_INDEX(payload, 'x', 1)) FROM outbox WHERE LENGTH(payload) = 200")
    assert kept == ((rows, rows * (rows + 1) // 2),)


LATER = "'2100-01-01'"
PAST = "UTC_TIMESTAMP(6)"
OF_EVERY_STATE = {      # message id: state, attempt, max_attempts, lease_until
    "scheduled": ("scheduled", 0, "NULL", "NULL"),
    "tried": ("scheduled", 1, "NULL", "NULL"),
    "held": ("held", 0, "NULL", "NULL"),
    "blocked": ("blocked", 0, "NULL", "NULL"),
    "claimed": ("claimed", 1, "NULL", PAST),
    "unanswered": ("awaiting", 1, 1, PAST),
    "repeated": ("awaiting", 1, "NULL", PAST),
    "answered": ("awaiting", 1, 1, LATER),
    "changed": ("awaiting", 1, "NULL", LATER),
    "changed-unanswered": ("awaiting", 1, "NULL", LATER),
}


def test_tasks_in_flight_at_an_upgrade_have_not_changed(stage):
    """A migration is no change of a task: who awaits a result goes on to await it, and ends as if nothing had been. A
    change by SQL that comes after it counts as one."""
    stage.amqp("q", result="expected", history="1h", retry={"levels": ["10ms"], "jitter": 0})
    stage.configuration["results"] = [{"via": "rabbit", "queue": stage.queue()}]
    daemon = stage.daemon("one", migrate=False)
    go_back(stage, daemon)
    for message_id, (state, attempt, max_attempts, lease_until) in OF_EVERY_STATE.items():
        stage.execute("INSERT INTO outbox (message_id, route, payload, order_key, state, attempt, max_attempts, lease_until,"
                      f" published_at) VALUES (%s, 'q', 'as sent', %s, %s, {attempt}, {max_attempts}, {lease_until},"
                      f" IF({attempt}, UTC_TIMESTAMP(6), NULL))",
                      message_id, "o" if state == "blocked" else "", state)
    daemon.run("migrate")
    stage.execute("UPDATE outbox SET payload = 'changed' WHERE message_id LIKE 'changed%'")
    stage.execute(f"UPDATE outbox SET lease_until = {PAST} WHERE message_id = 'changed-unanswered'")
    daemon.start()
    stage.consume_amqp("q", answer=lambda arrival: {"status": "done"})
    for message_id in ("answered", "changed"):
        status, body = daemon.api("POST", "/api/v1/results", {"id": message_id, "attempt": 1, "status": "done"})
        assert status == 200, body
    wait_until(lambda: stage.count() == 0, 60, "all to be over", detail=stage.living)
    rows = stage.execute("SELECT message_id, state, attempt, failures, revision, error_class FROM outbox_history")
    assert {row[0]: row[1:] for row in rows} == {
        "scheduled": ("done", 1, 0, 0, None), "tried": ("done", 2, 0, 0, None), "held": ("done", 1, 0, 0, None),
        "blocked": ("done", 1, 0, 0, None), "claimed": ("done", 2, 0, 0, "claim.lost"),
        "unanswered": ("dead", 1, 1, 0, "result.timeout"),
        "repeated": ("done", 2, 1, 0, "result.timeout"), "answered": ("done", 1, 0, 0, None),
        "changed": ("done", 2, 0, 1, None), "changed-unanswered": ("done", 2, 0, 1, None)}
    sent = {arrival.message_id: (arrival.attempt, arrival.headers.get("duebox-revision")) for arrival in stage.ledger.arrivals}
    assert len(sent) == len(stage.ledger.arrivals) and sent == {
        "scheduled": (1, None), "tried": (2, None), "held": (1, None), "blocked": (1, None), "claimed": (2, None),
        "repeated": (2, None), "changed": (2, "1"), "changed-unanswered": (2, "1")}
