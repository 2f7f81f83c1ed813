"""Names of tables that differ in case alone: two outboxes of one database where the server tells them apart
(lower_case_table_names = 0), and one outbox by two spellings where it does not."""

import json
import os

import pytest
from support.daemon import Daemon
from support.servers.mariadb import MariaDB
from support.stage import Stage

# These differ from one moment, and one configuration, to the next.
CHANGING = {"clock", "round trip", "purge", "transactions", "overdue", "admin"}


def findings(daemon):
    """What doctor says of the tables."""
    done = daemon.run("doctor", "-o", "jsonl", check=False)
    assert done.returncode in (0, os.EX_CONFIG), done.stderr
    return [line for line in map(json.loads, done.stdout.splitlines()) if line["check"] not in CHANGING]


def beside(stage, table, **database):
    """Commands on another outbox of the database."""
    return Daemon(stage.folder / f"{table}-{len(database)}", {**stage.configuration, "database": {
        **stage.configuration["database"], "table": table, **database}})


@pytest.fixture
def small(stage):
    stage.plugin("bus", module="kafka", brokers="127.0.0.1:1")
    stage.route("orders", via="bus", topic="orders")
    return beside(stage, "outbox").migrate()


BROKEN = {
    "an index": ("ALTER TABLE `Outbox` DROP INDEX ix_task_key", "indexes", "table Outbox lacks the index ix_task_key"),
    "another index": ("ALTER TABLE `Outbox_history` DROP INDEX ix_task_key, ADD INDEX ix_task_key (route)", "indexes",
                      "the index ix_task_key of table Outbox_history is (route)"),
    "a trigger": ("CREATE TRIGGER waits BEFORE INSERT ON `Outbox_history` FOR EACH ROW DO SLEEP(0)", "triggers",
                  "trigger waits runs BEFORE INSERT on Outbox_history"),
    "a foreign key": ("CREATE TABLE reference (id BIGINT UNSIGNED, FOREIGN KEY (id) REFERENCES `Outbox` (id))", "foreign keys",
                      "of reference references Outbox"),
    "a column": ("ALTER TABLE `Outbox` MODIFY payload MEDIUMBLOB NOT NULL", "columns", "the column payload of table Outbox"),
    "a partition": ("ALTER TABLE `Outbox_history` DROP PARTITION p_later", "partitions", "Outbox_history takes nothing beyond"),
    "a check": ("ALTER TABLE `Outbox` ADD CONSTRAINT theirs CHECK (priority > 0)", "checks", "CHECK theirs of Outbox"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_another_outbox_has_is_not_said_of_this_one(small, stage, broken):
    other = beside(stage, "Outbox").migrate()
    for table in ("outbox_history", "Outbox_history"):
        stage.execute(f"ALTER TABLE `{table}` REORGANIZE PARTITION p_later INTO"
                      " (PARTITION p20990101 VALUES LESS THAN ('2099-01-01'), PARTITION p_later VALUES LESS THAN (MAXVALUE))")
    before = findings(small)
    assert not [line for line in before if line["level"] == "fail"], before
    statement, check, said = BROKEN[broken]
    stage.execute(statement)
    assert findings(small) == before
    assert [line for line in findings(other) if line["check"] == check and said in line["text"]]


def test_rights_on_another_outbox_are_none_on_this_one(small, stage):
    other = beside(stage, "Outbox").migrate()
    user = f"user_{stage.database}"[:60]
    stage.mariadb.create_user(user, "right", [f"SELECT, INSERT, UPDATE, DELETE ON `{stage.database}`.*",
                                              f"ALTER ON `{stage.database}`.`Outbox`",
                                              *(f"ALTER, CREATE, DROP ON `{stage.database}`.`Outbox_{name}`"
                                                for name in ("history", "attempts"))])
    login = {"host": "127.0.0.1", "port": stage.mariadb.port, "user": user, "password": "right"}
    stage.configuration["database"].pop("socket")
    for table, level in (("outbox", "warn"), ("Outbox", "ok")):
        found, = [line for line in findings(beside(stage, table, **login)) if line["check"] == "rights to keep house"]
        assert found["level"] == level, found


@pytest.fixture(scope="module")
def caseless():
    with MariaDB(extra_args=["--lower-case-table-names=1"]) as server:
        yield server


def test_one_outbox_has_two_spellings(caseless, request, tmp_path):
    with Stage(request, tmp_path, caseless) as stage:
        stage.plugin("bus", module="kafka", brokers="127.0.0.1:1")
        stage.route("orders", via="bus", topic="orders")
        for made, other in (("outbox", "OutBox"), ("Second", "second")):
            beside(stage, made).migrate()
            assert "is up to date" in beside(stage, other).run("migrate").stdout
            said = [[(line["level"], line["check"], line["text"].lower(), line["cure"].lower()) for line in findings(daemon)]
                    for daemon in (beside(stage, made), beside(stage, other))]
            assert said[0] == said[1]
            assert not [line for line in said[1] if line[0] == "fail" or line[1] == "checks" and line[0] == "warn"]
            stage.execute(f"ALTER TABLE `{made}` DROP INDEX ix_task_key")
            assert [line for line in findings(beside(stage, other)) if "lacks the index ix_task_key" in line["text"]]
