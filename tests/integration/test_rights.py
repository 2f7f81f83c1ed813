"""The rights that sql/examples/grants.sql gives the daemon, each by itself: doctor asks for it, and names the GRANT that an
upgrade or an operator forgot. What no statement needs is not given."""

import json
import re
from pathlib import Path

GRANTS = Path(__file__).resolve().parents[2] / "sql" / "examples" / "grants.sql"


def of_the_daemon():
    """(right, table) of each GRANT to the user duebox."""
    for rights, table in re.findall(r"^GRANT ([A-Z, ]+) ON `shop`\.`(outbox\w*)` TO 'duebox'@'%';$", GRANTS.read_text(), re.MULTILINE):
        yield from ((right, table) for right in rights.split(", "))


def test_doctor_asks_for_each_right_that_is_granted(stage):
    stage.http("h")
    stage.daemon()
    rights, user = list(of_the_daemon()), f"user_{stage.database}"[:60]
    assert len(rights) > 40
    stage.mariadb.create_user(user, "right", [f"{right} ON `{stage.database}`.`{table}`" for right, table in rights])
    stage.configuration["database"] = {"host": "127.0.0.1", "port": stage.mariadb.port, "user": user,
                                       "password": "right", "name": stage.database}
    daemon = stage.daemon(migrate=False)

    def found():
        lines = map(json.loads, daemon.run("doctor", "-o", "jsonl", check=False).stdout.splitlines())
        return [line for line in lines if line["level"] != "ok" and (line["check"] == "database" or "right" in line["check"])]

    assert found() == []
    unasked = set()
    for right, table in rights:
        stage.execute(f"REVOKE {right} ON `{stage.database}`.`{table}` FROM '{user}'@'%'")
        asked = f"GRANT {right} ON `{stage.database}`.`{table}` TO '{user}'@'%'"
        said = found()
        if not said:
            unasked.add((right, table))
        elif said[0]["check"] == "database":        # nobody can be told more without it
            assert f"{right} command denied" in said[0]["text"] and f"`{table}`" in said[0]["text"]
        else:
            assert any(asked in line["cure"] for line in said), (asked, said)
        stage.execute(asked)
    assert unasked == set()


def test_rights_that_come_by_a_role_are_rights(stage):
    """Teams give them so. Doctor asked for those that the user had not been given directly, while the daemon used them."""
    stage.http("h")
    stage.daemon()
    user, role = f"user_{stage.database}"[:60], f"role_{stage.database}"[:60]
    stage.execute(f"CREATE ROLE `{role}`")
    for right, table in of_the_daemon():
        stage.execute(f"GRANT {right} ON `{stage.database}`.`{table}` TO `{role}`")
    stage.execute(f"GRANT REPLICATION SLAVE ON *.* TO `{role}`")
    stage.mariadb.create_user(user, "right", [])
    stage.execute(f"GRANT `{role}` TO '{user}'@'%'")
    stage.execute(f"SET DEFAULT ROLE `{role}` FOR '{user}'@'%'")
    stage.configuration["database"] = {"host": "127.0.0.1", "port": stage.mariadb.port, "user": user,
                                       "password": "right", "name": stage.database}
    daemon = stage.daemon(migrate=False)

    def doctor():
        lines = map(json.loads, daemon.run("doctor", "-o", "jsonl", check=False).stdout.splitlines())
        return {line["check"]: line for line in lines}

    said = doctor()
    for check in ("rights", "rights to keep house", "least privilege", "wake-up"):
        assert said[check]["level"] == "ok", said[check]
    assert said["wake-up"]["text"] == "by the server's binlog"
    stage.execute(f"REVOKE DROP ON `{stage.database}`.outbox_history FROM `{role}`")
    assert f"GRANT DROP ON `{stage.database}`.`outbox_history` TO" in doctor()["rights to keep house"]["cure"]
