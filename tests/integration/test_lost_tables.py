"""Tables, columns and the record of migrations that somebody has dropped, or left out when he restored the others: what
doctor and every error name as the way out, `duebox migrate`, is one, or says what is."""

import re

import pytest
from support.command_line import cli
from support.wait import wait_until

__all__ = ["cli"]

LIMIT_S = 30
SIDE_TABLES = ("shards", "history", "attempts", "quarantine", "instances", "routes", "schedules", "audit", "heads")


def shape(cli, table):
    return re.sub(r"AUTO_INCREMENT=\d+ ", "", cli.stage.execute(f"SHOW CREATE TABLE {table}")[0][1])


@pytest.mark.parametrize("name", SIDE_TABLES)
def test_migrate_makes_a_lost_table_again(cli, name):
    table = f"outbox_{name}"
    before = shape(cli, table)
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) VALUES ('crm.push', 'x', 600000)")
    cli.sql(f"DROP TABLE {table}")
    status = cli.json("migrate", "status")
    assert (status["up_to_date"], status["to_repair"]) == (False, f"table {cli.stage.database}.{table} is not there")
    assert f"would make table {table}" in cli("migrate", "--dry-run")
    assert not cli.stage.execute(f"SHOW TABLES LIKE '{table}'")
    assert f"made table {table}, which was lost: it is empty" in cli("migrate")
    assert shape(cli, table) == before
    assert cli.json("migrate", "status")["up_to_date"]
    assert "is up to date" in cli("migrate")
    assert cli.stage.count("outbox") == 1


def test_shards_that_were_lost_are_taken_again(cli):
    """Daemons put the rows of the table back, after the time of a lease."""
    cli.sql("DROP TABLE outbox_shards")
    cli("migrate")
    cli.daemon.start(wait_ready=False)
    wait_until(lambda: cli.stage.execute("SELECT COUNT(*), SUM(owner <> '') FROM outbox_shards WHERE shard < 63") == ((8, 8),),
               LIMIT_S, "all shards to be taken")
    cli.daemon.wait_ready()
    cli.daemon.stop()


def test_a_lost_column_and_one_that_refuses_rows_are_named(cli):
    cli.sql("ALTER TABLE outbox_attempts DROP COLUMN result")
    for said in (cli.fails(78, "migrate"), cli.json("migrate", "status")["to_repair"]):
        assert "outbox_attempts lacks the column result" in said and "migrate --show-sql" in said
    assert "outbox_attempts lacks the column result" in doctor(cli, "columns")["text"]
    cli.sql("ALTER TABLE outbox_attempts ADD COLUMN result MEDIUMBLOB NULL")
    cli.sql("ALTER TABLE outbox_history ADD COLUMN tenant INT NOT NULL, ADD COLUMN note INT NOT NULL DEFAULT 0")
    for said in (cli.fails(78, "migrate"), cli.json("migrate", "status")["to_repair"]):
        assert "outbox_history has a column tenant" in said and "SET DEFAULT" in said
    assert "outbox_history has a column tenant" in doctor(cli, "columns")["text"]
    cli.sql("ALTER TABLE outbox_history ALTER COLUMN tenant SET DEFAULT 0")
    assert "is up to date" in cli("migrate")


def doctor(cli, check, code=78):
    return next(line for line in cli.jsonl("doctor", code=code) if line["check"] == check and line["level"] == "fail")


@pytest.mark.parametrize("name", ["history", "quarantine", "heads"])
def test_doctor_finds_a_lost_table(cli, name):
    """In every form of its output, and the checks that do not need the table are made."""
    cli.sql(f"DROP TABLE outbox_{name}")
    lines = cli.jsonl("doctor", code=78)
    failed = [line for line in lines if line["level"] == "fail"]
    assert [line["check"] for line in failed] == ["tables"]
    assert f"outbox_{name}" in failed[0]["text"] and "duebox migrate" in failed[0]["cure"]
    assert {"durability", "purge", "overdue", "order keys"} <= {line["check"] for line in lines}
    assert "1 failures" in cli.fails(78, "doctor")
    cli("migrate")
    assert all(line["level"] != "fail" for line in cli.jsonl("doctor"))


def test_migrate_begins_anew_where_its_own_record_is_lost(cli):
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) VALUES ('crm.push', 'x', 600000)")
    shapes = {name: shape(cli, f"outbox_{name}") for name in SIDE_TABLES}
    before = shape(cli, "outbox")
    shards = cli.json("migrate", "status")["shards"]
    cli.sql("DROP TABLE outbox_schema")
    status = cli.json("migrate", "status")
    assert (status["up_to_date"], status["shards"], status["to_repair"]) == (
        False, shards, f"table {cli.stage.database}.outbox_schema is not there")
    assert f"database {cli.stage.database} has no table outbox_schema; run" in cli.fails(78, "task", "list")
    assert "applying 0001 outbox" in cli("migrate")
    assert cli.json("migrate", "status")["up_to_date"]
    assert (shape(cli, "outbox"), {name: shape(cli, f"outbox_{name}") for name in SIDE_TABLES}) == (before, shapes)
    assert cli.stage.count("outbox") == 1
