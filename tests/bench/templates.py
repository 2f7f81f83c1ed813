"""Tables that are filled once and then copied as files, so that a round begins within a second.

A template is an outbox of a database of its own: filled without its secondary indexes, which are then built in one go,
and exported with FLUSH TABLES .. FOR EXPORT. install() imports the file into another database, where it takes the
place of the empty outbox. All sides of a comparison begin with the same file; nothing of it waits for purge.
"""

import re
import shutil

from .scenario import say

# Per INSERT and per transaction. All ids of one INSERT have one time, and are in no order beyond it; tasks of
# applications come in the order of their ids, a few at a time.
FILL_ROWS, COMMIT_ROWS = 50, 50_000
PARTS = ("ibd", "cfg")


class Templates:
    def __init__(self, bench, folder):
        self._bench = bench
        self._folder = folder
        self._made = {}

    def install(self, database, rows, *, payload, due, route="bench", priority=5):
        """Put `rows` rows into the outbox of `database`, numbered from 1.
        due: "past" (a millisecond apart, the last one due now) or "future" (from 30 days on)."""
        key = (rows, payload, due, route, priority)
        if key not in self._made:
            self._made[key] = self._make(f"template{len(self._made)}", *key)
        target = self._bench.mariadb.data / database
        execute = self._bench.mariadb.execute
        execute("ALTER TABLE outbox DISCARD TABLESPACE", db=database)
        for part in PARTS:
            shutil.copy(self._made[key].with_suffix(f".{part}"), target / f"outbox.{part}")
        execute("ALTER TABLE outbox IMPORT TABLESPACE", db=database)
        execute("ANALYZE TABLE outbox", db=database)
        self._warm(database)

    def fill_bare(self, database, rows, *, payload, due, route="bench", priority=5):
        """The same by SQL into the outbox itself, without a copy: for tables too large to have twice."""
        with self._bench.mariadb.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW CREATE TABLE outbox")
            keys = re.findall(r"^\s*((?:UNIQUE )?KEY `(\w+)` .*?),?$", cursor.fetchone()[1], re.M)
            cursor.execute("SET sql_log_bin = 0, check_constraint_checks = 0")
            cursor.execute("ALTER TABLE outbox " + ", ".join(f"DROP KEY `{name}`" for _, name in keys))
            connection.autocommit(False)
            for first in range(1, rows + 1, FILL_ROWS):
                last = min(first + FILL_ROWS - 1, rows)
                cursor.execute(insert(first, last, payload=payload, due=due_sql(due, rows), route=route, priority=priority))
                if last % COMMIT_ROWS == 0:
                    connection.commit()
            connection.commit()
            cursor.execute("ALTER TABLE outbox " + ", ".join(f"ADD {text}" for text, _ in keys))
            cursor.execute("ANALYZE TABLE outbox")

    def drop(self):
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, name, rows, payload, due, route, priority):
        say(f"  (filling a table of {rows:,} rows of {payload:,} bytes, once)")
        mariadb = self._bench.mariadb
        self._folder.mkdir(parents=True, exist_ok=True)
        mariadb.create_database(name)
        self._bench.migrate(name)
        self.fill_bare(name, rows, payload=payload, due=due, route=route, priority=priority)
        with mariadb.connect(name) as connection, connection.cursor() as cursor:
            cursor.execute("FLUSH TABLES outbox FOR EXPORT")
            for part in PARTS:
                shutil.copy(mariadb.data / name / f"outbox.{part}", self._folder / f"{name}.{part}")
            cursor.execute("UNLOCK TABLES")
        mariadb.execute(f"DROP DATABASE `{name}`")
        return self._folder / name

    def _warm(self, database):
        """Read it once: an import leaves the buffer pool cold."""
        for index, column in (("PRIMARY", "LENGTH(payload)"), ("ix_next", "next_at")):
            self._bench.mariadb.execute(f"SELECT MAX({column}) FROM outbox FORCE INDEX ({index}) WHERE id > 0", db=database)


def due_sql(due, rows):
    return {"past": f"UTC_TIMESTAMP(6) - INTERVAL ({rows} - seq) * 1000 MICROSECOND",
            "future": "UTC_TIMESTAMP(6) + INTERVAL 30 DAY + INTERVAL seq SECOND"}[due]


def insert(first, last, *, payload, due, route="bench", priority=5):
    """A statement that inserts the tasks of these numbers. due, route: SQL of the due time and a name, or an SQL
    expression in brackets."""
    route = route if route.startswith("(") else f"'{route}'"
    return ("INSERT INTO outbox (route, priority, task_key, payload, due_at)"
            f" SELECT {route}, {priority}, CONCAT('key-', seq), RPAD(CONCAT(seq, ' 0 '), {payload}, 'x'), {due}"
            f" FROM seq_{first}_to_{last}")
