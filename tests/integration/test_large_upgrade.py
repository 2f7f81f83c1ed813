"""`duebox migrate` on a table that is full, beside an application that goes on inserting: nothing is lost, no INSERT
fails, and how long the longest of them waited is said.

DUEBOX_TEST_UPGRADE_ROWS says how many rows; 5,000 by default, a million with DUEBOX_TEST_LONG=1.
"""

import random
import threading
import time

from support.scale import scaled
from support.threads import in_threads
from test_schema import SCHEMA, install

VERSION = 4             # from which it is migrated
FORMS = ("(route, payload) VALUES ('r', 'new')", "(route, payload, delay_ms) VALUES ('r', 'new', 86400000)",
         "(route, payload, due_at) VALUES ('r', 'new', '2100-01-01')")
PAUSE_S = 0.005         # of an application between two INSERTs
LIMIT_S = 3600          # a million rows on a slow disk


def go_back(stage, daemon):
    """The tables as they were at that version, which `duebox migrate` takes for its own."""
    daemon.run("migrate")
    applied = stage.execute("SELECT version, name, checksum, statements_done, applied_at FROM outbox_schema"
                            f" WHERE version <= {VERSION}")
    tables = [name for (name,) in stage.execute("SHOW TABLES LIKE 'outbox%'")]
    stage.execute("DROP TABLE " + ", ".join(tables))
    with stage.connect() as connection:
        install(connection, [file for file in SCHEMA if int(file.name[:4]) <= VERSION])
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
    assert stage.execute("SELECT MAX(version), SUM(applied_at IS NULL) FROM outbox_schema") == ((5, 0),)
    kept = stage.execute("SELECT COUNT(*), SUM(SUBSTRING_INDEX(payload, 'x', 1)) FROM outbox WHERE LENGTH(payload) = 200")
    assert kept == ((rows, rows * (rows + 1) // 2),)
