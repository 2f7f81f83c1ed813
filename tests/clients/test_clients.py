"""Real drivers and object-relational mappers, each with each role of sql/examples/grants.sql, in three time zones.

What is protected: an application that follows docs/CLIENTS.md gets its task done at the time that it asked for, wherever
it runs, and every role can do what its description says with every client. The code shown there is the code run here.

Every client is a program: `insert <key>` adds a task due in 30 minutes by delay_ms, one by due_at, and one with an
explicit NULL in due_at, and prints the ids that it got; `cancel <key>` deletes the first and moves the second.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clients import ALL, QUICK, Unavailable  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from integration.test_schema import install, run_for  # noqa: E402

CLIENTS = {**QUICK, **(ALL if os.environ.get("DUEBOX_TEST_CLIENTS") else {})}
ZONES = {"Asia/Shanghai": "+08:00", "America/New_York": "-05:00", "UTC": "+00:00"}
ROLES = ["app", "app_orm", "app_cancel"]
ALL_ROUTES = {"clients.delay", "clients.at", "clients.null"}


@pytest.fixture(scope="module")
def database(mariadb):
    name = mariadb.create_database("clients")
    with mariadb.connect(name) as connection:
        run_for(connection, name, "users")
        install(connection)
        run_for(connection, name, "grants")
    return name


@pytest.fixture(params=ZONES.items(), ids=ZONES.keys())
def zone(request, mariadb):
    """The zone of the client; the server's default is the same, as where one machine has both."""
    name, offset = request.param
    mariadb.execute("SET GLOBAL time_zone = %s", offset)
    yield name
    mariadb.execute("SET GLOBAL time_zone = 'SYSTEM'")


def rows(mariadb, database, key):
    found = mariadb.execute("SELECT route, id, TIMESTAMPDIFF(MICROSECOND, created_at, next_at) / 60e6 FROM outbox"
                            " WHERE task_key = %s", key, db=database)
    return {route: (row_id, float(minutes)) for route, row_id, minutes in found}


@pytest.mark.parametrize("client", CLIENTS)
def test_client(client, zone, mariadb, database):
    try:
        command, more = CLIENTS[client]()
    except Unavailable as missing:
        pytest.skip(f"{client}: {missing}")
    for role in ROLES:
        key = f"{client} {zone} {role}"
        env = {**os.environ, **{name: str(value) for name, value in more.items()}, "TZ": zone,
               "DUEBOX_CLIENT_HOST": "127.0.0.1", "DUEBOX_CLIENT_PORT": str(mariadb.port), "DUEBOX_CLIENT_USER": role,
               "DUEBOX_CLIENT_PASSWORD": "app-password", "DUEBOX_CLIENT_DATABASE": database}

        def run(verb, key=key, env=env):
            done = subprocess.run([*map(str, command), verb, key], env=env, capture_output=True, text=True, timeout=120,
                                  check=False)
            assert done.returncode == 0, f"{role} {verb}: {done.stdout}{done.stderr[-3000:]}"
            return [int(line) for line in done.stdout.split()]

        ids = run("insert")
        found = rows(mariadb, database, key)
        assert set(found) == ALL_ROUTES
        for route, (_, minutes) in found.items():
            assert 29 < minutes < 31, f"{role}: {route} is due {minutes} minutes after it was inserted"
        if ids:
            assert sorted(ids) == sorted(row_id for row_id, _ in found.values()), "not the ids that the rows have"
        if role == "app_cancel":
            assert run("cancel") == [1, 1]
            found = rows(mariadb, database, key)
            assert set(found) == ALL_ROUTES - {"clients.delay"} and 39 < found["clients.at"][1] < 41
