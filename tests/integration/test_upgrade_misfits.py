"""`duebox migrate` on a table with rows that its new rules refuse, and commands beside rows whose time is in no calendar."""

import json

import pytest

from test_large_upgrade import LATEST, go_back

#: How MariaDB comes: strict, but a month or a day may be zero.
AS_INSTALLED = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"


def insert(stage, columns, values, *, sql_mode=AS_INSTALLED, checks=1):
    with stage.connect(init_command=f"SET sql_mode = '{sql_mode}', check_constraint_checks = {checks}") as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO outbox ({columns}) VALUES {values}")


def select_of(text):
    """The statement that a message ends with."""
    assert "SELECT * FROM" in text, text
    return text[text.index("SELECT * FROM"):].strip()


def test_a_migration_names_the_rows_that_its_rule_refuses(stage):
    """Clients that met MariaDB's default sql_mode have left times in no calendar. The migration says which rows, by which
    rule, and how to find all of them; when they are corrected it goes through."""
    daemon = stage.daemon("one", migrate=False)
    go_back(stage, daemon, 7)
    insert(stage, "id, route, payload, due_at", "(3, 'r', 'x', '08:00:00'), (5, 'r', 'good', '2030-02-28'),"
                                                "(8, 'r', 'x', '2030-00-10'), (9, 'r', 'x', '2030-01-00')")
    insert(stage, "id, route, payload, due_at, expires_at", "(12, 'r', 'x', NULL, '2099-00-00')")
    before = stage.execute("SELECT id, CAST(due_at AS CHAR), CAST(expires_at AS CHAR) FROM outbox ORDER BY id")
    done = daemon.run("migrate", check=False)
    assert done.returncode == 65, done.stderr
    for words in ("outbox_due_at", "table outbox", "3 rows", "3, 8, 9", "UPDATE", "DELETE", "run `duebox migrate` again"):
        assert words in done.stderr, done.stderr
    assert {row[0] for row in stage.execute(select_of(done.stderr).replace("*", "id", 1).replace("%", "%%"))} == {3, 8, 9}
    assert stage.execute("SELECT id, CAST(due_at AS CHAR), CAST(expires_at AS CHAR) FROM outbox ORDER BY id") == before
    assert stage.execute("SELECT MAX(version) FROM outbox_schema") == ((7,),), "daemons of the version before are refused"
    stage.execute("UPDATE outbox SET due_at = '2031-01-01' WHERE id IN (3, 8, 9)")
    done = daemon.run("migrate", check=False)
    assert done.returncode == 65 and "outbox_expires_at" in done.stderr and "with id 12:" in done.stderr, done.stderr
    stage.execute("DELETE FROM outbox WHERE id = 12")
    daemon.run("migrate")
    assert stage.execute("SELECT MAX(version), SUM(applied_at IS NULL) FROM outbox_schema") == ((LATEST, 0),)
    assert stage.count() == 4


@pytest.mark.parametrize("columns, values, rule", [
    ("route, payload", "('a b', 'x')", "outbox_route"),
    ("route, payload, dedup_key", "('r', 'x', '')", "outbox_dedup_key"),
    ("route, payload, target_host, shard", "('r', 'x', 'h', 3)", "outbox_target_host"),
    ("route, payload, priority", "('r', 'x', 10)", "outbox_priority")])
def test_a_migration_names_rows_that_got_past_older_rules(stage, columns, values, rule):
    """From the first schemas on: rows of clients that had switched the CHECKs off. Not each rule is given anew; of one that
    is not, the server says the name and duebox finds the rows all the same."""
    daemon = stage.daemon("one", migrate=False)
    go_back(stage, daemon)
    insert(stage, columns, values, sql_mode="", checks=0)
    done = daemon.run("migrate", check=False)
    assert done.returncode == 65 and rule in done.stderr and "with id 1:" in done.stderr, done.stderr
    assert len(stage.execute(select_of(done.stderr).replace("%", "%%"))) == 1
    stage.execute("DELETE FROM outbox")
    daemon.run("migrate")


def test_commands_show_the_time_that_is_written(stage):
    """A row that got past the CHECKs: its due time used to be shown as the time of its insert, and `task set` said that it
    had changed when it expires."""
    stage.http("h", history="1h")
    daemon = stage.daemon()
    insert(stage, "message_id, route, payload, due_at", "('m', 'h', 'x', '2030-00-10')", checks=0)
    listed, = json.loads(daemon.run("task", "list", "-o", "json").stdout)
    shown = json.loads(daemon.run("task", "show", "m", "-o", "json").stdout)
    assert listed["due_at"].startswith("2030-00-10") and shown["due_at"].startswith("2030-00-10"), (listed, shown)
    assert "2030-00-10" in daemon.run("task", "list").stdout
    done = daemon.run("task", "set", "m", "--expires-at", "+1h", check=False)
    assert done.returncode == 65 and "does not allow" in done.stdout + done.stderr, (done.stdout, done.stderr)
    assert daemon.run("task", "reschedule", "m", "--delay", "1h", check=False).returncode == 0
    assert stage.execute("SELECT due_at > UTC_TIMESTAMP() FROM outbox") == ((1,),)


@pytest.mark.parametrize("name, value, usual", [("alter_algorithm", "'INSTANT'", "'DEFAULT'"), ("sql_if_exists", 1, 0)])
def test_a_global_variable_does_not_change_what_a_migration_says(stage, name, value, usual):
    """The first stopped an upgrade half way; with the second a table that was up to date was refused."""
    daemon = stage.daemon("one", migrate=False)
    go_back(stage, daemon)
    insert(stage, "route, payload", "('r', 'x')")
    if not stage.execute(f"SHOW GLOBAL VARIABLES LIKE '{name}'"):
        pytest.skip(f"this server has no {name}")
    stage.execute(f"SET GLOBAL {name} = {value}")
    try:
        done = [daemon.run("migrate", check=False) for _ in range(2)]
    finally:
        stage.execute(f"SET GLOBAL {name} = {usual}")
    assert [run.returncode for run in done] == [0, 0], [run.stderr for run in done]
    assert stage.execute("SELECT MAX(version), SUM(applied_at IS NULL) FROM outbox_schema") == ((LATEST, 0),)


def test_a_limit_on_statements_does_not_interrupt_a_migration(stage):
    """It is meant for people's queries. A table of some size could never be upgraded, and writes waited at each attempt."""
    daemon = stage.daemon("one", migrate=False)
    go_back(stage, daemon)
    insert(stage, "route, payload", ", ".join(["('r', 'x')"] * 100))
    stage.execute("SET GLOBAL max_statement_time = 0.0005")
    try:
        done = daemon.run("migrate", check=False)
    finally:
        stage.execute("SET GLOBAL max_statement_time = 0")
    assert done.returncode == 0, done.stderr
    assert stage.execute("SELECT MAX(version), SUM(applied_at IS NULL) FROM outbox_schema") == ((LATEST, 0),)
