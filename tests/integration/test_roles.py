"""What each documented role must not be able to do to others, on both servers, with exactly the rights of grants.sql."""

import json
import subprocess
import sys
import urllib.error
from pathlib import Path

import pymysql
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from integration.test_bad_results import call_back  # noqa: E402
from integration.test_schema import install, run_for  # noqa: E402
from support.daemon import preset_folder  # noqa: E402
from support.servers.http_receiver import Answer  # noqa: E402
from support.wait import wait_until  # noqa: E402

DENIED = (1044, 1142, 1143, 1227)
LAST = 2 ** 64 - 1

#: What only the daemon writes, as columns of an INSERT.
ENGINE = [("state", "'held'"), ("attempt", 7), ("failures", 1), ("recoveries", 1), ("claimed_by", "'d'"),
          ("lease_until", "UTC_TIMESTAMP(6)"), ("first_due_at", "UTC_TIMESTAMP(6)"), ("published_at", "UTC_TIMESTAMP(6)"),
          ("finished_at", "UTC_TIMESTAMP(6)"), ("error_class", "'e'"), ("last_error", "'e'"), ("progress", 1),
          ("checkpoint", "'c'"), ("created_at", "UTC_TIMESTAMP(6)"), ("changed_at", "UTC_TIMESTAMP(6)"), ("revision", 1),
          ("sent_digest", 1), ("answer_to", 1), ("claim_epoch", 1), ("move_to_shard", 1), ("move_to_host", "'h'")]
NOBODY = [*[f"INSERT INTO outbox (route, payload, {column}) VALUES ('r', 'x', {value})" for column, value in ENGINE],
          *[f"UPDATE outbox SET {assignment}" for assignment in
            (f"id = {LAST}", "message_id = 'm'", "state = 'held'", "shard = 3", "target_host = 'h'", "attempt = 0",
             "lease_until = NULL", "claim_epoch = 9", "payload = 'y'", "route = 'other'", "changed_at = '2030-01-01'")],
          "INSERT INTO outbox (route, payload, message_id) VALUES ('r', 'x', 'm') ON DUPLICATE KEY UPDATE payload = 'y'",
          "TRUNCATE TABLE outbox", "DROP TABLE outbox", "ALTER TABLE outbox AUTO_INCREMENT = 5", "LOCK TABLES outbox WRITE",
          "CREATE INDEX ix ON outbox (priority)", "UPDATE outbox_shards SET owner = NULL", "DELETE FROM outbox_heads",
          "INSERT INTO outbox_routes (route) VALUES ('r')", "DELETE FROM outbox_history", "SELECT * FROM outbox_history",
          "SELECT * FROM outbox_quarantine", "SELECT * FROM outbox_audit", "SELECT * FROM outbox_attempts",
          "SELECT url FROM outbox_instances", "UPDATE outbox_schema SET checksum = ''"]
CHANGES_OTHERS = ["DELETE FROM outbox", "UPDATE outbox SET due_at = '2199-01-01'", "UPDATE outbox SET priority = 1",
                  "REPLACE INTO outbox (route, payload, message_id) VALUES ('r', 'x', 'm')"]
ROLES = {"app": [*NOBODY, *CHANGES_OTHERS, "SELECT payload FROM outbox",
                 f"INSERT INTO outbox (id, route, payload) VALUES ({LAST}, 'r', 'x')"],
         "app_orm": [*NOBODY, *CHANGES_OTHERS, "SELECT state FROM outbox"],
         "app_cancel": NOBODY}


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def login(request):
    """login(user) is a cursor of one of the users, on a fresh outbox of one server."""
    server = request.getfixturevalue(request.param)
    name = server.create_database("roles")
    with server.connect(name) as connection:
        run_for(connection, name, "users")
        install(connection)
        run_for(connection, name, "grants")
    connections = []

    def connect(user):
        password = {} if user == "root" else {"password": "app-password"}
        connections.append(server.connect(name, user=user, **password))
        return connections[-1].cursor()
    yield connect
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_cannot_reach_beyond_its_part(login, role):
    """Whoever holds the password of an application writes nothing that only duebox writes, changes no task that its role
    has no business with, and sees nothing of the other tables."""
    app = login(role)
    for statement in ROLES[role]:
        with pytest.raises(pymysql.err.MySQLError) as error:
            app.execute(statement)
        assert error.value.args[0] in DENIED, (statement, error.value)


@pytest.mark.parametrize("role", ["app_orm", "app_cancel"])
@pytest.mark.parametrize("value", ["NULL", "0", "DEFAULT"])
def test_a_mapper_may_name_the_id_without_choosing_one(login, role, value):
    """Object-relational mappers that write every column get the next id, as without the column."""
    app = login(role)
    app.execute(f"INSERT INTO outbox (id, route, payload) VALUES ({value}, 'r', 'x')")
    first = app.lastrowid
    app.execute("INSERT INTO outbox (route, payload) VALUES ('r', 'x')")
    assert 0 < first < app.lastrowid < 2 ** 62


@pytest.mark.parametrize("task", ["later", "awaiting", "bound", "down"])
def test_an_application_cannot_end_the_inserts_of_others(stage, task):
    """Whichever row id an application chooses, INSERTs of others go on after seconds by themselves, whatever becomes of its
    task. (One row with an id at the end of numbers used to end all INSERTs of everybody until somebody altered the table;
    then, as long as its task was due, or awaited a result.)"""
    stage.http("k")
    stage.http("slow", result="expected", timeout="30d", history="1h")
    stage.http("down", url="http://127.0.0.1:1/x")
    stage.consume_http()
    stage.receiver.on("/slow", Answer(202))
    daemon = stage.start()
    with stage.connect() as root:
        run_for(root, stage.database, "users")
        run_for(root, stage.database, "grants")
    columns, values = {"later": ("route, delay_ms", "'k', 9000000"), "awaiting": ("route", "'slow'"),
                       "bound": ("route, target_host, due_at", "'k', 'nowhere', '2001-01-01'"),
                       "down": ("route", "'down'")}[task]
    with stage.connect(user="app", password="app-password") as connection, connection.cursor() as app:
        app.execute(f"SET insert_id = {LAST - 1}")
        app.execute(f"INSERT INTO outbox (payload, {columns}) VALUES ('far', {values})")
    if task == "awaiting":
        wait_until(lambda: stage.count(where="state = 'awaiting'") == 1, 30, "it to be sent", detail=stage.living)

    def inserts():
        try:
            stage.insert("k")
        except pymysql.err.OperationalError as error:
            assert error.args[0] == 1467, error
            return False
        return True
    wait_until(inserts, 60, "an INSERT to work again", detail=stage.living)
    assert stage.count(where=f"id >= {2 ** 62}") == 0
    stage.wait_empty(60, where="payload <> 'far'")
    said = [line["id"] for line in daemon.lines() if line["id"].startswith("DUEBOX-ROW-IDS")]
    assert said[-1] == "DUEBOX-ROW-IDS-RESET", said
    assert ("DUEBOX-ROW-IDS-FAR" in said) == (task == "down"), said
    if task == "awaiting":
        url = stage.receiver.wait_count(1, 60, "/slow")[0].headers["duebox-callback"]
        assert call_back(url, {"status": "done"})["fate"] == "applied"
        stage.wait_empty(60)


def test_a_callback_of_one_route_ends_no_task_of_another(stage):
    """Whatever ids it has. (An application that may only INSERT chose the row id and the message id of somebody else's
    task for one on a route of its own, and kept the URL.)"""
    for route in "mine", "bank":
        stage.http(route, result="expected", timeout="60s")
        stage.receiver.on(f"/{route}", Answer(202))
    stage.consume_http()
    stage.start()
    with stage.connect() as root:
        run_for(root, stage.database, "users")
        run_for(root, stage.database, "grants")

    def sent(route, **login):
        with stage.connect(**login) as connection, connection.cursor() as cursor:
            cursor.execute("SET insert_id = 100")
            cursor.execute("INSERT INTO outbox (route, payload, message_id) VALUES (%s, 'x', 'pay-17')", (route,))
        wait_until(lambda: stage.count(where="id = 100 AND state = 'awaiting'") == 1, 30, "it to be sent", detail=stage.living)
        return stage.receiver.wait_count(1, 60, f"/{route}")[0].headers["duebox-callback"]

    mine = sent("mine", user="app", password="app-password")
    assert call_back(mine, {"status": "done"})["fate"] == "applied"
    stage.wait_empty(60)
    bank = sent("bank")
    with pytest.raises(urllib.error.HTTPError) as refused:
        call_back(mine, {"status": "done"})
    assert (refused.value.code, json.load(refused.value)["code"]) == (409, "late")
    assert stage.count(where="state = 'awaiting'") == 1
    assert call_back(bank, {"status": "done"})["fate"] == "applied"
    stage.wait_empty(60)


@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_the_doctor_sees_foreign_checks_with_the_rights_of_the_daemon(request, tmp_path, kind):
    """information_schema shows that user none on MariaDB: the doctor was silent in every installation by the book."""
    server = request.getfixturevalue(kind)
    name = server.create_database("doctor_checks")

    def duebox(*words, **login):
        page = tmp_path / "duebox.yaml"
        page.write_text(json.dumps({"database": {"socket": str(server.socket), "name": name, **login}, "plugins": {},
                                    "routes": {}, "admin": {"listen": "off"}}))
        page.chmod(0o600)
        return subprocess.run([preset_folder() / "bin" / "duebox", "-c", page, *words], capture_output=True, text=True,
                              check=False)

    def checks():
        done = duebox("doctor", "-o", "jsonl", user="duebox", password="duebox-password")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return [(line["level"], line["text"]) for line in found if line["check"] == "checks"] or done

    assert duebox("migrate", user="root").returncode == 0
    with server.connect(name) as root, root.cursor() as cursor:
        for example in ("users", "grants"):
            run_for(root, name, example)
        assert checks() == [("ok", "the tables have no CHECK but duebox's own")]
        cursor.execute("ALTER TABLE outbox ADD CONSTRAINT outbox_mine CHECK (task_key <> 'x')")
        cursor.execute("ALTER TABLE outbox_history ADD CONSTRAINT CHECK (LENGTH(payload) > 1)")
        cursor.execute("ALTER TABLE outbox_history ADD COLUMN extra INT CHECK (extra > 0)")
    said = checks()
    assert {level for level, _ in said} == {"warn"} and len(said) == 3, said
    assert "CHECK outbox_mine of outbox " in said[0][1] and all(" of outbox_history " in text for _, text in said[1:])
