"""Finding, adding and showing: every verb that changes no task, on a real database, in
text and JSON, with good and bad input."""

import itertools
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import ESCAPE, cli
from support.daemon import preset_folder
from support.wait import wait_until

__all__ = ["cli"]

TOP = Path(__file__).resolve().parents[2]

BINARY = preset_folder() / "bin" / "duebox"
LATEST = max(int(path.name[:4]) for path in (TOP / "sql" / "schema").glob("*.sql"))
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def plain(*words, **environment):
    """Without a configuration in reach."""
    env = {name: value for name, value in os.environ.items() if name != "DUEBOX_CONFIG"}
    return subprocess.run([BINARY, *words], env={**env, **environment}, cwd="/", stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


# -- help, completion, version: no configuration needed --------------------------------------

def nouns():
    lines = plain("--help").stdout.split("Commands\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in lines.splitlines()]


def commands():
    for noun in nouns():
        text = plain("help", noun).stdout
        verbs = re.search(r"^Verbs\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
        if verbs:
            yield from ((noun, line.split()[1]) for line in verbs[1].splitlines())
        else:
            yield (noun,)


def test_every_help_has_an_example():
    seen = list(commands())
    assert len(seen) > 20
    for words in seen:
        for line in ((*words, "--help"), ("help", *words), (*words, "-h")):
            done = plain(*line)
            assert (done.returncode, done.stderr) == (0, "")
            assert f"duebox {' '.join(words)}" in done.stdout.split("Examples\n")[1]
            assert max(map(len, done.stdout.splitlines())) <= 120


def test_the_examples_of_the_help_are_no_wrong_usage():
    """Without a configuration each ends with 78, or is done, as what needs none is."""
    seen = 0
    for words in commands():
        for example in re.findall(r"duebox .*", plain(*words, "--help").stdout.split("Examples\n")[1]):
            line = shlex.shlex(example, posix=True, punctuation_chars="|>&()")
            line.whitespace_split = True
            done = plain(*itertools.takewhile(lambda word: word[0] not in "|>&()", list(line)[1:]))
            assert done.returncode in (0, 78), (example, done.returncode, done.stderr)
            seen += 1
    assert seen > 40


def test_without_a_command():
    done = plain()
    assert (done.returncode, done.stdout) == (64, "")
    assert "Usage: duebox" in done.stderr
    assert plain("task").returncode == 64
    assert plain("help").stdout == plain("--help").stdout


def test_completion_knows_every_command(tmp_path):
    script = tmp_path / "duebox.bash"
    script.write_text(plain("completion", "bash").stdout)

    def complete(*words):
        line = " ".join(f"'{word}'" for word in ("duebox", *words))
        return subprocess.run(
            ["bash", "-c", f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _duebox;"
             " printf '%s\\n' \"${COMPREPLY[@]}\""], capture_output=True, text=True, check=True).stdout.split()

    assert set(nouns()) <= set(complete(""))
    assert complete("ta") == ["task"]
    assert {"list", "cancel", "retry"} <= set(complete("task", ""))
    assert complete("task", "list", "--due-b") == ["--due-before"]
    assert complete("-o", "json", "task", "list", "--state", "dea") == ["dead"]
    assert complete("task", "list", "--output", "js") == ["json", "jsonl"]
    assert "--yes" not in complete("task", "list", "--")
    assert "--show-sql" in complete("migrate", "--")


def test_version():
    header = (TOP / "include/duebox/plugin.h").read_text()
    abi = ".".join(re.search(rf"DUEBOX_ABI_{part} (\d+)u", header).group(1) for part in ("MAJOR", "MINOR"))
    assert json.loads(plain("version", "-o", "json").stdout)["plugin_abi"] == abi
    assert plain("version").stdout.startswith("duebox ")


@pytest.mark.parametrize("words, code, message", [
    (["-o", "xml", "version"], 64, '--output: "xml" is none of text, json, jsonl'),
    (["--color", "blue", "version"], 64, '--color: "blue" is none of auto, always, never'),
    (["completion", "fish"], 64, 'completion: no script for "fish"; there is one for bash'),
    (["task", "list"], 78, "no configuration file: give one with --config FILE, set DUEBOX_CONFIG, or write "
                           "./duebox.yaml or /etc/duebox/duebox.yaml"),
    (["task", "list", "--limit", "few"], 64, f'--limit: "few" is no whole number from 0 to {2**63 - 1}'),
    (["check", "-c", "/nowhere/duebox.yaml"], 78, None),
    (["task", "cancel", "1", "--route", "x"], 64,
     "give ids or filters, not both: an id names its task whatever a filter says"),
    (["task", "reschedule", "1"], 64, "task reschedule: when? Give either --at TIME or --delay DURATION"),
    (["task", "set", "1"], 64,
     "task set: what? Give --priority, --max-attempts, --timeout, --expires-at or --target-host"),
    (["task", "result", "1"], 64,
     "task result: --attempt and --status are needed; `duebox task show 1` has the attempt"),
    (["task", "result", "1", "--attempt", "1", "--status", "well"], 64,
     '--status: "well" is none of done, retry, fail'),
    (["task", "add", "r", "--expires-at", "-1h", "--delay", "1h"], 64,
     "task add: --expires-at must be later than the task is due, or it would never be sent"),
    (["task", "add", "r", "--expires-at", "2030-01-01", "--at", "2030-01-01"], 64,
     "task add: --expires-at must be later than the task is due, or it would never be sent"),
    (["task", "add", "r", "--timeout", "50d"], 64, "--timeout: at most 49d"),
    (["task", "set", "1", "--expires-at", "now"], 64,
     "task set: --expires-at must be later than now; `duebox task cancel` ends tasks at once"),
    (["dead", "retry"], 64, "dead retry: which tasks? Give ids or filters"),
    (["plugin", "info", "./nothere.so"], 66, "plugin info: ./nothere.so: No such file or directory"),
    (["task", "cancel", "1", "2", "--limit", "1"], 64, "give ids or --limit, not both: --limit is for filters"),
    (["task", "list", "--due-before", "now", "--due-after", "+1h"], 64,
     "--due-before must be later than --due-after: no task is between them"),
    (["dead", "retry", "--created-after", "2026-01-02", "--created-before", "2026-01-02", "--yes"], 64,
     "--created-before must be later than --created-after: no task is between them"),
    (["task", "result", "1", "--attempt", "1", "--status", "fail", "--retry-in", "1s"], 64,
     "task result: --retry-in goes with --status retry only"),
    (["task", "result", "1", "--attempt", "1", "--status", "done", "--error-class", "x"], 64,
     "task result: --error-class and --error-message go with --status retry or fail"),
    (["task", "add", "r", "--priority", "10"], 64, '--priority: "10" is no whole number from 1 to 9'),
    (["task", "add", "r", "--delay", "soon"], 64, None),
    (["quarantine", "purge", "17", "x"], 64,
     '"x" is no number of a quarantined record; `duebox quarantine list` has them'),
    (["quarantine", "purge", "17", "--created-before", "now", "--yes"], 64,
     "quarantine purge: give numbers, or --created-before TIME"),
    (["migrate", "status", "--dry-run"], 64,
     "migrate status: it changes nothing, and takes neither --dry-run nor --show-sql nor --shards"),
    (["migrate", "now"], 64,
     'migrate: "now" is not known; there is `duebox migrate` and `duebox migrate status`'),
])
def test_wrong_lines(words, code, message):
    done = plain(*words)
    assert (done.returncode, done.stdout) == (code, "")
    if message:
        assert done.stderr == f"duebox: {message}\n"


@pytest.mark.parametrize("words", (["version"], ["migrate", "--show-sql"], ["help"], ["task", "--help"],
                                   ["task", "list", "-h"]), ids=" ".join)
def test_a_full_standard_output_is_an_error(words, tmp_path):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([BINARY, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 74
    assert done.stderr == "duebox: standard output: No space left on device; what was printed is incomplete\n"


def test_a_closed_pipe_is_no_error(cli):
    """`| head -1`: whoever has seen enough has no trouble to be told of."""
    cli.add(count=300)
    for words in (["task", "list"], ["task", "list", "-o", "jsonl"], ["task", "list", "-o", "json"], ["route", "list"],
                  ["plugin", "info", "kafka"], ["config", "show"], ["doctor"], ["migrate", "--show-sql"], ["version"]):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as closed:
            done = cli.daemon.run(*words, check=False, stdout=closed)
        assert done.returncode in ((0, 78) if words == ["doctor"] else (0,)), (words, done)
        assert "standard output" not in done.stderr, (words, done.stderr)


# -- configuration and database ---------------------------------------------------------------

def test_check_and_config_show(cli):
    text = cli("check", "--connect")
    assert re.search(r"^result +ok$", text, re.MULTILINE)
    found = cli.json("check")
    assert (found["routes"], found["plugins"], found["connected"]) == (2, 1, None)
    shown = cli.json("config", "show")
    assert shown["routes"]["crm.push"]["via"] == "bus"
    secret = cli.daemon.configuration["admin"]["token"]
    assert secret not in cli("config", "show") + json.dumps(shown)
    cli.daemon.configure({**cli.daemon.configuration, "routes": {"x": {"via": "buss", "topic": "x"}}})
    message = cli.fails(78, "check")
    assert re.search(r"duebox\.yaml:\d+:\d+: .*buss", message)
    assert cli.fails(78, "task", "list") == message
    cli.daemon.configure({**cli.daemon.configuration, "engine": {"lease": "long", "leese": "2s"},
                          "routes": {"x": {"via": "buss", "topic": "x"}, "y": {"via": "bus", "topik": "y"}}})
    found = cli.fails(78, "check").splitlines()
    assert [re.fullmatch(r"duebox: .*duebox\.yaml:\d+:\d+: ([a-z.]+): .*", line)[1] for line in found] == [
        "engine.leese", "engine.lease", "routes.x.via", "routes.y.topik", "routes.y"]
    assert cli.fails(78, "task", "list").splitlines() == found[:1]


def test_a_database_that_is_not_there(cli, tmp_path):
    database = {"socket": str(tmp_path / "none.sock"), "user": "root", "name": "shop"}
    cli.daemon.configure({**cli.daemon.configuration, "database": database})
    for words in (["task", "list"], ["task", "show", "1"], ["route", "list"], ["check", "--connect"],
                  ["migrate"], ["task", "add", "crm.push", "--payload", "x"]):
        message = cli.fails(69, *words)
        assert "none.sock" in message and "check database.host, port and socket" in message


def test_rights_and_schema(cli):
    cli.stage.mariadb.create_user("nobody_cli", "secret", "USAGE ON *.*")
    base = cli.daemon.configuration
    wrong = {**base["database"], "user": "nobody_cli", "password": "secret"}
    cli.daemon.configure({**base, "database": wrong})
    assert "Access denied" in cli.fails(77, "task", "list")
    cli.daemon.configure({**base, "database": {**base["database"], "table": "other"}})
    assert cli.fails(78, "task", "list") == (
        f"duebox: database {cli.stage.database} has no table other; run `duebox migrate`\n")


def test_migrate_names_the_keys_of_its_own_user(cli):
    """It logs in as database.migrate_user: the daemon's user and rights are not what must be mended."""
    database = {**cli.daemon.configuration["database"], "user": "migrator", "password": "wrong"}

    def migrate(**more):
        cli.daemon.configure({**cli.daemon.configuration, "database": {**database, **more}})
        return cli.fails(77, "migrate", "status") + cli.fails(77, "migrate")
    assert migrate().count("; check database.user and its password\n") == 2
    assert migrate(migrate_user="migrator", migrate_password="wrong", user="x").count(
        "; check database.migrate_user and its password\n") == 2
    cli.sql("DROP TABLE IF EXISTS outbox_schema")
    cli.stage.mariadb.create_user("migrator", "right", [f"SELECT ON `{cli.stage.database}`.*"])
    for keys in ({"password": "right"}, {"migrate_user": "migrator", "migrate_password": "right"}):
        cli.daemon.configure({**cli.daemon.configuration, "database": {**database, **keys}})
        said = cli.fails(77, "migrate")
        assert "database.migrate_user" in said and "sql/examples/users.sql" in said and "daemon's" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of others")
def test_only_migrate_needs_the_password_of_its_user():
    """The daemon's user need not be able to read what may drop all tables. (It had to, though it never logs in as that.)"""
    folder = Path("/tmp") / f"duebox-migrators-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        (folder / "migrate.secret").write_text("secret\n")
        (folder / "migrate.secret").chmod(0o600)
        page = folder / "duebox.yaml"
        page.write_text(json.dumps({"database": {"host": "127.0.0.1", "user": "u", "name": "n", "migrate_user": "m",
                                                 "migrate_password_file": "migrate.secret"},
                                    "plugins": {}, "routes": {}, "admin": {"listen": "off"}}))
        for words, code, said in (("check", 0, ""), ("migrate", 78, "migrate.secret cannot be read: Permission denied")):
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                   preset_folder() / "bin" / "duebox", "-c", page, words],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == code and said in done.stderr, done
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_migrate(cli):
    cli.daemon.configure({**cli.daemon.configuration,
                          "database": {**cli.daemon.configuration["database"], "table": "second"}})
    assert cli.json("migrate", "status") == {"version": 0, "latest": LATEST, "shards": 0, "up_to_date": False}
    assert "would apply 0001 outbox (4 shards)" in cli("migrate", "--dry-run", "--shards", 4)
    assert cli.json("migrate", "status")["version"] == 0
    assert f"applying {LATEST:04}" in cli("migrate", "--shards", 4)
    assert "is up to date" in cli("migrate")
    assert cli.json("migrate") == {"version": LATEST, "latest": LATEST, "shards": 4, "up_to_date": True}
    assert "CREATE TABLE IF NOT EXISTS `second`" in cli("migrate", "--show-sql")
    assert "CREATE TABLE IF NOT EXISTS `outbox`" in plain("migrate", "--show-sql").stdout
    assert cli.fails(64, "migrate", "--shards", 65) == 'duebox: --shards: "65" is no whole number from 1 to 63\n'


def test_the_status_tells_what_migrate_would_repair(cli):
    cli.sql("ALTER TABLE outbox_routes CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    status = cli.json("migrate", "status")
    assert (status["version"], status["up_to_date"]) == (LATEST, False)
    assert status["to_repair"].startswith("column route of table ")
    assert "to repair   column route of table " in cli("migrate", "status")
    assert "repairing the collations" in cli("migrate")
    assert cli.json("migrate", "status") == {"version": LATEST, "latest": LATEST, "shards": 8, "up_to_date": True}


# -- task result ------------------------------------------------------------------------------


def test_a_result_of_an_attempt_that_nobody_records(cli):
    """It is due, and a daemon may have it out from memory. Where no daemon lives there is nothing to wait for."""
    id_, = cli.add(delay_ms=0)
    words = ["task", "result", id_, "--attempt", 1, "--status", "retry"]
    said = cli.fails(65, *words)
    assert said.startswith(f"duebox: task {id_}: this attempt is not recorded as handed out, and no daemon has the task"), said
    cli.hold()
    said = cli.fails(75, *words)
    assert said.startswith(f"duebox: task {id_}: this attempt is not recorded as handed out yet"), said
    with cli.stage.connect(autocommit=False) as locks, locks.cursor() as cursor:
        cursor.execute("SELECT id FROM outbox WHERE id = %s FOR UPDATE", (id_,))
        assert "its row is in use" in cli.fails(75, *words)
    assert cli.row(id_)["state"] == "scheduled"


# -- task add ---------------------------------------------------------------------------------

def test_add_takes_everything(cli, tmp_path):
    body = bytes(range(256))
    (tmp_path / "body").write_bytes(body)
    added = cli.json("task", "add", "crm.push", "-f", tmp_path / "body", "--at", "2030-01-31T09:00:00+01:00",
                     "--key", "k", "-H", "a=1", "-H", "b=x=y", "-p", 9, "--dedup-key", "d", "--order-key", "o",
                     "--message-id", "m-1", "--max-attempts", 7, "--timeout", "90s", "--expires-at",
                     "2031-01-01", "--target-host", "here")
    row = cli.row(added["id"])
    assert added["message_id"] == "m-1"
    assert row["payload"] == body
    assert json.loads(row["headers"]) == {"a": "1", "b": "x=y"}
    assert str(row["due_at"]) == "2030-01-31 08:00:00"
    assert str(row["expires_at"]) == "2031-01-01 00:00:00"
    assert [row[name] for name in ("route", "task_key", "priority", "dedup_key", "order_key", "max_attempts",
                                   "timeout_ms", "target_host", "state")] == [
        "crm.push", "k", 9, "d", "o", 7, 90000, "here", "scheduled"]


def test_add_defaults_and_delay(cli):
    text = cli("task", "add", "crm.push", "--payload", "{}")
    id_, message_id = (line.split()[-1] for line in text.splitlines())
    row = cli.row(id_)
    assert row["message_id"] == message_id
    assert row["due_at"] == row["created_at"]
    later = cli.row(cli.json("task", "add", "crm.push", "--payload", "{}", "--delay", "30m")["id"])
    assert (later["due_at"] - later["created_at"]).total_seconds() == 1800
    relative = cli.row(cli.json("task", "add", "crm.push", "--payload", "{}", "--at", "+30m")["id"])
    assert 1740 < (relative["due_at"] - relative["created_at"]).total_seconds() <= 1800


def test_add_from_standard_input(cli):
    command = [BINARY, "-c", cli.daemon.path, "task", "add", "crm.push", "-o", "json"]
    done = subprocess.run(command, input=b"a\0b\n", capture_output=True, check=True,
                          env={**os.environ, "DUEBOX_PLUGIN_PATH": str(preset_folder() / "plugins")})
    assert cli.row(json.loads(done.stdout)["id"])["payload"] == b"a\0b\n"


def test_add_warns_of_an_unknown_route(cli):
    assert cli.remark("task", "add", "nowhere", "--payload", "x") == (
        f"route nowhere is not in {cli.daemon.path}: the task is held until a daemon's configuration has it\n")
    assert cli.remark("task", "add", "nowhere", "--payload", "x", "-q") == ""


@pytest.mark.parametrize("words, code, message", [
    (["--payload-file", "/nowhere"], 66, "/nowhere: No such file or directory"),
    (["--payload", "x", "-H", "novalue"], 64, '--header: "novalue" is not NAME=VALUE'),
    (["--payload", "x", "-H", "duebox-x=1"], 64,
     "--header: duebox-x: names that begin with duebox- are duebox's own, and an application's are left out"),
    (["--payload", "x", "-H", "Duebox-Id=1"], 64, None),
    (["--payload", "x", "-H", "a=1", "-H", "a=2"], 64, "--header: a is given twice"),
    (["--payload", "x", "-H", "a=b\nc: d"], 65, '--header: header "a": the value holds a line break'),
    (["--payload", "x", *(word for i in range(65) for word in ("-H", f"h{i}=1"))], 65,
     "--header: more than 64 headers"),
    (["--payload", "x", "-H", "a=" + 16384 * "x"], 65, None),
    (["--payload", "x", "--delay", "soon"], 64, None),
    (["--payload", "x", "--at", "2026-02-30"], 64,
     '--at: "2026-02-30" is no time; write 2026-01-31T08:00:00Z (UTC unless it says otherwise), now, +30m or -2h'),
    (["--payload", "x", "--dedup-key", "twice"], 65,
     "task add: a living task has this dedup key or message id already: inserting the task: Duplicate entry 'twice' "
     "for key 'ux_dedup_key' (error 1062)"),
    (["--payload", "x", "--at", "2500-01-01"], 65, None),
    (["--payload", "x", "--delay", "1h", "--expires-at", "+1m"], 64,
     "task add: --expires-at must be later than the task is due, or it would never be sent"),
    (["--payload", "x", "--at", "2030-01-02", "--expires-at", "2030-01-02"], 64, None),
    (["--payload", "x", "--expires-at", "-1s"], 64, None),
    (["--payload", "x", "--at", "now", "--expires-at", "now"], 64, None),
    (["--payload", "x", "--at", "+1h", "--expires-at", "+1h"], 64, None),
    *[(["--payload", "x", *words], 65, f"task add: {what}: {limit}") for words, what, limit in (
        (["--message-id", "no blanks"], "the table refuses a value", "a message id has 1 to 64 visible ASCII characters"),
        (["--message-id", "m" * 66], "a value is too long for its column",
         "a message id has 1 to 64 visible ASCII characters"),
        (["--delay", "4000d"], "the table refuses a value", "a delay is at most ten years (3650d)"),
        (["--dedup-key", "d" * 256], "the table refuses a value", "a dedup key has 1 to 255 characters"),
        (["--order-key", "o" * 300], "a value is too long for its column", "an order key has at most 255 characters"),
        (["--key", "k" * 256], "the table refuses a value", "a key has at most 255 characters"),
        (["--target-host", "h" * 65], "the table refuses a value",
         "the name of a host has at most 64 characters, and no blank at its end"))],
    (["--payload", "x" * 2000], 65, None),
])
def test_add_refuses(cli, words, code, message):
    cli.daemon.configure({**cli.daemon.configuration, "engine": {"max_payload": 1024}})
    cli.add(dedup_key="twice")
    said = cli.fails(code, "task", "add", "crm.push", *words)
    assert said.startswith("duebox: ") and (message is None or said == f"duebox: {message}\n")
    assert len(cli.ids()) == 1


# -- task list, task show -----------------------------------------------------------------------

def test_list_in_three_formats(cli):
    first, = cli.add("orders.cancel", task_key="order 17", priority=7, message_id="m-1")
    second, = cli.add(message_id="m-2")
    lines = cli("task", "list").splitlines()
    assert lines[0].split() == ["ID", "STATE", "ROUTE", "DUE", "TRIED", "PRIO", "KEY", "ERROR", "MESSAGE"]
    assert [line.split()[0] for line in lines[1:]] == [str(second), str(first)]
    assert re.fullmatch(rf" *{first} scheduled orders\.cancel \S+ \S+ +0 +7 order 17 - +m-1", lines[2])
    rows = cli.json("task", "list")
    assert rows == cli.jsonl("task", "list")
    assert [row["id"] for row in rows] == [str(second), str(first)]
    assert rows[1]["task_key"] == "order 17" and TIME.fullmatch(rows[1]["due_at"])
    assert cli.remark("task", "list", "--route", "none") == "no such task\n"
    assert cli.json("task", "list", "--route", "none") == []


def test_an_id_that_names_no_task_is_told_of(cli):
    first, = cli.add(message_id="m-1")
    ended, = cli.dead(message_id="m-2")
    missing = "duebox: task {}: not found, neither in the outbox nor in its history\n".format
    assert cli.fails(66, "task", "list", "nobody") == missing("nobody")
    done = cli.run("task", "list", "m-1", "4711", "id:99", ended, "message_id:m-2", "-o", "json")
    assert (done.returncode, done.stderr) == (66, missing("4711") + missing("id:99"))
    assert [row["id"] for row in json.loads(done.stdout)] == [str(ended), str(first)]      # the newest first
    assert len(cli.json("task", "list", first, "message_id:m-2")) == 2
    assert cli.fails(66, "dead", "list", first, ended) == f"duebox: task {first}: not found among the dead ones\n"
    assert cli.remark("task", "list", first, ended, "--limit", 1) == "the newest 1 are shown; --limit 0 shows all\n"
    for limit in (1, 2, 3):
        assert missing("4711") in cli.fails(66, "task", "list", first, "4711", ended, "--limit", limit)
    assert cli.remark("task", "list", "--route", "caf\u00e9") == "no such task\n"  # no name that a route can have
    many = cli.add(count=101)
    assert len(cli.json("task", "list", *many)) == 101


def test_zero_is_what_the_route_says(cli):
    """As `task set` has it."""
    added = cli.json("task", "add", "crm.push", "--payload", "{}", "--max-attempts", 0, "--timeout", "0s")
    row = cli.row(int(added["id"]))
    assert (row["max_attempts"], row["timeout_ms"]) == (None, None)


def test_the_newest_are_shown_whatever_their_state(cli):
    ended = cli.dead(count=3)
    living = cli.add(count=3)
    last, = cli.dead()
    rows = cli.json("task", "list", "--state", "all", "--limit", 2)
    assert [(int(row["id"]), row["state"]) for row in rows] == [(last, "dead"), (living[2], "scheduled")]
    everything = [int(row["id"]) for row in cli.json("task", "list", "--state", "all", "--limit", 0)]
    assert everything == [last, *reversed(living), *reversed(ended)]
    assert cli.remark("task", "list", "--state", "all", "--limit", 6) == "the newest 6 are shown; --limit 0 shows all\n"
    assert cli.remark("task", "list", "--state", "all", "--limit", 7) == ""     # there are no others
    assert len(cli.json("task", "list", "--state", "all", "--limit", 8)) == 7
    assert cli.remark("task", "list", "--limit", 3) == ""


def test_filters(cli):
    a, = cli.add("orders.cancel", task_key="a'b", priority=9, delay_ms=0)
    b, = cli.add("crm.push", task_key="b", delay_ms=7200_000)
    c, d = cli.dead(count=2)
    e, = cli.end(cli.add(), "cancelled", error_class=None)

    def found(*words):
        return sorted(int(row["id"]) for row in cli.json("task", "list", *words))

    assert found() == [a, b]
    assert found("--state", "all") == [a, b, c, d, e]
    assert found("--state", "dead,cancelled") == [c, d, e]
    assert found("--state", "final", "--route", "crm.push") == [c, d, e]
    assert found("--key", "a'b") == [a]
    assert found("--error", "http.503", "--state", "dead") == [c, d]
    assert found("--priority", 9) == [a]
    assert found("--due-before", "+1h") == [a]
    assert found("--due-after", "+1h") == [b]
    assert found("--created-before", "-1h") == []
    assert found("--created-after", "-1h") == [a, b]
    assert found("--where", "task_key IN ('b', 'c') -- comment") == [b]
    assert found("--state", "dead", "--where", "finished_at > UTC_TIMESTAMP() - INTERVAL 1 HOUR") == [c, d]
    assert found("--limit", 1) == [b]
    assert found(str(a), str(d)) == [a, d]


@pytest.mark.parametrize("condition", [
    "nonsense = 1", "1) UNION SELECT 1 -- ", "1); DELETE FROM outbox; -- ", "(", "1) OR (1=1", "1 /*) */ ) OR (1 = 1",
    "')' = ')') OR (1 = 1", "1 LIMIT 1", "1 ORDER BY id", "1 UNION SELECT 1", "1 /*! ) OR (1 */", "1 /*", "1 /*!", "'",
    "1 INTO OUTFILE '/nowhere/x'", "? = 1", "1; SELECT 1",
    "route = 'a' COLLATE nowhere", "MATCH (task_key) AGAINST ('a')", "task_key REGEXP '('", "CONVERT(1 USING nothing)"])
def test_a_raw_condition_is_one_condition(cli, condition):
    """It holds together with the other filters, whatever brackets, quotes and comments it has."""
    cli.add()
    said = cli.fails(64, "task", "list", "--where", condition)
    assert said.startswith("duebox: --where: listing tasks: ")
    said = cli.fails(64, "task", "cancel", "--route", "of.nobody", "--where", condition, "--yes")
    assert said.startswith("duebox: --where: ")
    assert len(cli.ids()) == 1


@pytest.mark.parametrize("condition", ["1 OR 1", "1 OR 1 -- all", "1 # )", "1 OR ')' = '(' /* ( */", "TRUE\n"])
def test_a_raw_condition_narrows_the_other_filters(cli, condition):
    cli.add()
    assert len(cli.jsonl("task", "list", "--where", condition)) == 1
    assert not cli.jsonl("task", "list", "--route", "of.nobody", "--where", condition)


def test_long_lists_are_paged_without_gaps(cli):
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_3700")
    cli.end(cli.ids("id % 3 = 0"))
    rows = [int(row["id"]) for row in cli.jsonl("task", "list", "--state", "all", "--limit", 0)]
    living, ended = cli.ids(), cli.ids(table="outbox_history")
    assert rows == sorted(living + ended, reverse=True)
    newest = [int(row["id"]) for row in cli.jsonl("task", "list", "--state", "all", "--limit", 1500)]
    assert newest == rows[:1500]
    assert len(rows) == 3700
    assert len(cli("task", "list", "--limit", 0).splitlines()) == 1 + len(living)
    assert cli.remark("task", "list") == "the newest 100 are shown; --limit 0 shows all\n"


def test_show(cli):
    id_, = cli.add("orders.cancel", payload='{"order": "漢字"}', headers='{"a":"b"}', message_id="m-1")
    text = cli("task", "show", id_)
    assert re.search(r'^payload +\{"order": "漢字"\}$', text, re.MULTILINE)
    assert text == cli("task", "show", "m-1")
    found = cli.json("task", "show", id_)
    assert (found["id"], found["headers"], found["attempts"]) == (str(id_), '{"a":"b"}', [])
    assert cli.fails(66, "task", "show", "m-2") == (
        "duebox: task m-2: not found, neither in the outbox nor in its history\n")


def test_show_attempts_and_lateness(cli):
    id_, = cli.dead(message_id="m-1")
    cli.sql("UPDATE outbox_history SET due_at = '2026-01-01 00:00:00', published_at = '2026-01-01 00:00:01.5'")
    for attempt in (1, 2, 3):
        cli.sql("INSERT INTO outbox_attempts (message_id, attempt, kind, outcome, task_id, route, due_at, finished_at,"
                " error_class, error) VALUES ('m-1', %s, 'failure', 'retry', %s, 'crm.push', UTC_TIMESTAMP(6),"
                " UTC_TIMESTAMP(6), 'http.503', 'come\nback')", attempt, id_)
    text = cli("task", "show", id_)
    assert re.search(r"^lateness +1\.5 s$", text, re.MULTILINE)
    assert text.count("come\\nback") == 3
    found = cli.json("task", "show", id_)
    assert found["lateness_ms"] == 1500.0
    assert [row["attempt"] for row in found["attempts"]] == [1, 2, 3]


def test_show_cuts_payloads_for_people_only(cli):
    long, = cli.add(payload="ä" * 2000)
    raw, = cli.add(payload=b"\xff\x00" * 2000)
    assert "--full shows all" in cli.remark("task", "show", long)
    assert "ä" * 1024 in cli("task", "show", long) and "ä" * 1025 not in cli("task", "show", long)
    assert "ä" * 2000 in cli("task", "show", long, "--full")
    assert "hex:ff00ff00" in cli("task", "show", raw)
    assert cli.json("task", "show", raw)["payload_base64"] == "/wD/AP8A" * 666 + "/wD/AA=="


def test_a_value_that_the_table_refuses_is_the_callers_mistake(cli):
    """65, not 78: the configuration is all right. And nothing is said of a task that there is not."""
    said = cli.fails(65, "task", "add", "bad route", "--payload", "{}")
    assert "is held" not in said and "the table refuses a value" in said
    id_, = cli.add()
    for host in "x ", "x" * 65:
        said = cli.fails(65, "task", "set", id_, "--target-host", host)
        assert "the name of a host has at most 64 characters, and no blank at its end" in said


def test_digits_that_name_two_tasks_are_refused(cli):
    """Digits are the row id of one task and the message id of another: nobody guesses which is meant."""
    first, = cli.add(message_id="m-1")
    second, = cli.add(message_id=str(first))
    said = cli.fails(65, "task", "show", first)
    assert f"row {first} (message id m-1, scheduled)" in said and f"(row {second}, scheduled)" in said
    assert f"say id:{first} or message_id:{first}" in said
    assert cli.json("task", "show", f"id:{first}")["id"] == str(first)
    assert cli.json("task", "show", f"message_id:{first}")["id"] == str(second)
    assert cli.json("task", "show", second)["id"] == str(second)


def test_a_message_id_that_was_used_often_names_the_newest_task(cli):
    """An application may use a message id again when its task has ended, every night for years."""
    for _ in range(40):
        last, = cli.end(cli.add(message_id="nightly"), "done")
    assert cli.json("task", "show", "nightly")["id"] == str(last)
    last, = cli.dead(message_id="nightly")
    assert cli("dead", "retry", "nightly") == "nightly  retried\n"
    assert cli.json("task", "show", "nightly")["id"] == str(last) and cli.ids() == [last]


def test_a_dead_task_is_not_hidden_by_what_ended_later_with_its_message_id(cli):
    """`dead retry` means a dead one: the application has used its message id again, and that task is done."""
    first, dead = cli.dead(message_id="nightly") + cli.dead(message_id="nightly")
    for state in ["done"] * 20 + ["cancelled"]:
        last, = cli.end(cli.add(message_id="nightly"), state)
    assert cli.json("task", "show", "nightly")["id"] == str(last)
    assert cli("dead", "retry", "--dry-run", "nightly") == "nightly  is dead\n"
    assert cli("dead", "retry", "nightly") == "nightly  retried\n"
    assert cli.ids() == [dead] and first in cli.ids(table="outbox_history")
    assert cli.json("task", "show", "nightly")["id"] == str(dead)
    # The other verb that retries may change the one that was cancelled last.
    cli.end([dead], "cancelled")
    assert cli("task", "retry", "nightly") == "nightly  retried\n"
    assert cli.ids() == [last]


def test_foreign_text_does_not_reach_the_terminal(cli):
    nasty = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f"
    ids = cli.add(task_key=nasty, payload=nasty, headers=json.dumps({"a": nasty}), order_key=nasty, count=2)
    cli.end(ids[:1], last_error=nasty + "\nsecond line", error_class=nasty)
    for words in (["task", "list", "--state", "all"], ["dead", "list"], ["task", "show", ids[0]],
                  ["task", "show", ids[1], "-o", "json"], ["task", "list", "-o", "jsonl"], ["task", "cancel", nasty]):
        done = cli.run(*words)
        output = done.stdout + done.stderr
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output), repr(output)
        assert "\u202e" not in output


def test_colour(cli):
    cli.add()
    assert ESCAPE not in cli("task", "list")
    assert f"{ESCAPE}[34mscheduled" in cli("task", "list", "--color", "always")
    command = [BINARY, "-c", cli.daemon.path, "task", "list"]
    env = {**os.environ, "DUEBOX_PLUGIN_PATH": str(preset_folder() / "plugins"), "CLICOLOR_FORCE": "1"}
    env.pop("NO_COLOR", None)

    def output(**more):
        return subprocess.run(command, env={**env, **more}, capture_output=True, text=True, check=True).stdout

    assert ESCAPE in output()
    assert ESCAPE not in output(NO_COLOR="1")
    assert ESCAPE not in output(CLICOLOR_FORCE="0")


def test_a_terminal_is_asked(cli):
    """At a terminal the number of tasks is said and a yes is needed."""
    ids = cli.add(count=3)
    env = {**os.environ, "DUEBOX_PLUGIN_PATH": str(preset_folder() / "plugins")}

    def answer(word):
        parent, child = pty.openpty()
        with subprocess.Popen([BINARY, "-c", cli.daemon.path, "task", "cancel", "--route", "crm.push"], env=env,
                              stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            os.write(parent, f"{word}\n".encode())
            output, errors = process.communicate(timeout=240)
        os.close(parent)
        os.close(child)
        return process.returncode, output, errors

    code, output, errors = answer("n")
    assert (code, output) == (75, "")
    assert errors == ("3 tasks will be cancelled (--route crm.push). Go on? [y/N] duebox: nothing was changed\n")
    assert cli.ids() == ids
    code, output, errors = answer("y")
    assert (code, output) == (0, "3 of 3 tasks cancelled (audit 1)\n")
    assert cli.ids() == []


# -- routes and plugins -------------------------------------------------------------------------

def test_routes(cli):
    cli.add("orders.cancel", count=3)
    cli.add("nowhere", count=2)
    cli.sql("UPDATE outbox SET state = 'held' WHERE route = 'nowhere' LIMIT 1")
    cli.dead("orders.cancel", count=2)
    rows = {row["route"]: row for row in cli.json("route", "list")}
    assert list(rows) == ["crm.push", "nowhere", "orders.cancel"] or set(rows) == {
        "crm.push", "nowhere", "orders.cancel"}
    orders = rows["orders.cancel"]
    assert (orders["scheduled"], orders["dead"], orders["via"], orders["configured"]) == (3, 2, "bus", True)
    assert (rows["nowhere"]["scheduled"], rows["nowhere"]["held"], rows["nowhere"]["configured"]) == (1, 1, False)
    assert rows["crm.push"]["scheduled"] == 0
    assert re.search(r"^nowhere +- +unknown +1 ", cli("route", "list"), re.MULTILINE)
    assert cli.json("route", "show", "crm.push")["concurrency"] == 32
    assert cli.fails(66, "route", "show", "nada") == (
        "duebox: route nada: not found: it is not configured and has no tasks\n")


def test_route_counts_are_capped(cli):
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_10001")
    assert re.search(r"^crm\.push .* 10000\+ ", cli("route", "list"), re.MULTILINE)
    row = cli.json("route", "show", "crm.push")
    assert (row["scheduled"], row["capped"]) == (10000, True)


def test_many_names_are_counted_together(cli):
    """Whoever may INSERT makes up as many as they like: so many that they are not asked for one by one."""
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT CONCAT('r', seq MOD 3000), '{}', 3600000"
            " FROM seq_1_to_6000")
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) SELECT 'crm.push', '{}', 3600000 FROM seq_1_to_10001")
    cli.sql("UPDATE outbox SET state = 'held' WHERE route = 'r7' LIMIT 1")
    before = {name: int(value) for name, value in cli.sql("SHOW GLOBAL STATUS LIKE 'Questions'")}
    rows = {row["route"]: row for row in cli.json("route", "list")}
    after = {name: int(value) for name, value in cli.sql("SHOW GLOBAL STATUS LIKE 'Questions'")}
    assert after["Questions"] - before["Questions"] < 1000
    assert len(rows) >= 3001
    assert (rows["r7"]["scheduled"], rows["r7"]["held"], rows["r8"]["scheduled"]) == (1, 1, 2)
    assert (rows["crm.push"]["scheduled"], rows["crm.push"]["capped"]) == (10000, True)


def test_pause_and_resume(cli):
    assert cli("route", "pause", "crm.push", "--reason", "their maintenance") == (
        "crm.push paused; daemons see it within a second\n")
    assert cli.sql("SELECT route, paused, reason FROM outbox_routes") == (("crm.push", 1, "their maintenance"),)
    shown = cli.json("route", "show", "crm.push")
    assert (shown["paused"], shown["reason"]) == (True, "their maintenance")
    assert re.search(r"^crm\.push +bus +paused ", cli("route", "list"), re.MULTILINE)
    cli("route", "pause", "crm.push")  # which wiped by whom and why it was
    assert cli.json("route", "show", "crm.push") == shown
    assert cli.json("route", "resume", "crm.push") == {"route": "crm.push", "paused": False}
    before = {"paused": 1, "reason": "their maintenance"}
    assert [(row["verb"], row["reason"], row["before"]) for row in cli.audit()] == [
        ("pause", "their maintenance", None), ("pause", "", before), ("resume", "", before)]
    cli("route", "pause", "crm.push")
    cli("route", "pause", "crm.push", "--reason", "until 08:00")
    assert cli.json("route", "show", "crm.push")["reason"] == "until 08:00"
    assert "@" in cli.audit()[0]["actor"]


def test_pause_of_no_route(cli):
    """A slip of the pen must not look as if it had worked; a route that is known to the table alone is one."""
    known = "configured are crm.push, orders.cancel; add it under routes:, or take one of these"
    for verb in ("pause", "resume"):
        assert cli.fails(66, "route", verb, "nada") == (
            f"duebox: route nada is not in {cli.daemon.path} and has no tasks: {known}\n")
    assert "; did you mean orders.cancel?\n" in cli.fails(66, "route", "pause", "order.cancel")
    assert cli.sql("SELECT * FROM outbox_routes") == () and cli.audit() == []
    cli.add("gone")
    assert cli.remark("route", "pause", "gone") == f"route gone is not in {cli.daemon.path}\n"
    cli.sql("DELETE FROM outbox")
    assert "has no tasks" in cli.fails(66, "route", "pause", "gone")
    cli("route", "resume", "gone")
    assert cli.sql("SELECT route, paused FROM outbox_routes") == (("gone", 0),)
    routes = {f"r{i:03}": {"via": "bus", "topic": "crm"} for i in range(100)}
    cli.daemon.configure({**cli.daemon.configuration, "routes": routes})
    assert "r018, r019 and 80 more; " in cli.fails(66, "route", "pause", "nada")


def test_the_configuration_is_one_line_of_jsonl(cli):
    shown = cli.jsonl("config", "show")
    assert shown == [cli.json("config", "show")] and "crm.push" in shown[0]["routes"]


def test_migrate_makes_nothing_where_a_character_set_lacks_what_it_writes(cli):
    """It broke off in the middle of the second table, without a cure."""
    name = cli.stage.mariadb.create_database("swe7")
    cli.sql(f"ALTER DATABASE `{name}` CHARACTER SET swe7")
    cli.daemon.configure({**cli.daemon.configuration, "database": {**cli.daemon.configuration["database"], "name": name}})
    for words in (["migrate", "--dry-run"], ["migrate"]):
        said = cli.fails(78, *words)
        assert "swe7" in said and f"ALTER DATABASE `{name}` CHARACTER SET utf8mb4" in said
    assert cli.sql(f"SHOW TABLES FROM `{name}`") == ()
    cli.sql(f"ALTER DATABASE `{name}` CHARACTER SET utf8mb4")
    cli("migrate")
    cli.sql(f"ALTER DATABASE `{name}` CHARACTER SET swe7")      # who has the tables may change that
    assert "is up to date" in cli("migrate")


@pytest.mark.parametrize("mode", ["ORACLE", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT", "MSSQL", "HIGH_NOT_PRECEDENCE",
                                  "EMPTY_STRING_IS_NULL", ""])
def test_printed_statements_mean_the_same_in_every_sql_mode(cli, mode):
    """Whoever runs them by hand may have another than duebox, and then functions and texts are others: in ORACLE the defaults
    of the table were concatenated by its own function, and an empty text may be no text at all."""
    name = cli.stage.mariadb.create_database(f"{cli.stage.name}-printed")
    script = cli("migrate", "--show-sql") + "SELECT @@SESSION.sql_mode;\n"
    client = ["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--user=root", f"--socket={cli.stage.mariadb.socket}"]
    before = subprocess.run([*client, "--execute", f"SET SESSION sql_mode = '{mode}'; SELECT @@SESSION.sql_mode"],
                            capture_output=True, text=True, check=True).stdout
    done = subprocess.run([*client, f"--init-command=SET SESSION sql_mode = '{mode}'", name], input=script,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", before)
    for table, in cli.sql("SHOW TABLES LIKE 'outbox%%'"):
        assert cli.sql(f"SHOW CREATE TABLE `{name}`.`{table}`") == cli.sql(f"SHOW CREATE TABLE `{table}`")
    for table, columns in (("outbox_schema", "version, name, checksum"), ("outbox_shards", "shard, epoch, owner")):
        rows = f"SELECT {columns} FROM `{{}}`.{table} ORDER BY 1"
        assert cli.sql(rows.format(name)) == cli.sql(rows.format(cli.stage.database))


def test_printed_statements_commit_what_they_note(cli):
    """Without autocommit, as in many a program for people, the last migration was not recorded, and came again."""
    name = cli.stage.mariadb.create_database(f"{cli.stage.name}-uncommitted")
    client = ["mariadb", "--no-defaults", "--user=root", f"--socket={cli.stage.mariadb.socket}",
              "--init-command=SET autocommit = 0", name]
    subprocess.run(client, input=cli("migrate", "--show-sql"), text=True, check=True)
    recorded = "SELECT version, applied_at IS NULL FROM `{}`.outbox_schema ORDER BY 1"
    assert cli.sql(recorded.format(name)) == cli.sql(recorded.format(cli.stage.database))


def test_plugins(cli):
    rows = {row["module"]: row for row in cli.json("plugin", "list")}
    assert {"kafka", "amqp", "http"} <= set(rows)
    assert rows["kafka"]["used_by"] == ["bus"] and rows["kafka"]["roles"] == ["sink", "source"]
    options = {(row["place"], row["option"]): row for row in cli.jsonl("plugin", "info", "kafka")}
    assert options["routes", "topic"]["required"]
    assert "MEANING" in cli("plugin", "info", "http")
    assert 'no plugin module "nada"' in cli.fails(66, "plugin", "info", "nada")


def test_a_module_that_is_refused_is_no_missing_one(cli, tmp_path):
    """66 said that it is not there, to a script that would then install it once more."""
    theirs = tmp_path / "theirs.so"
    shutil.copy(preset_folder() / "plugins" / "http.so", theirs)
    theirs.chmod(0o666)
    text = tmp_path / "text.so"
    text.write_text("no module")
    assert "may be written by others" in cli.fails(78, "plugin", "info", theirs)
    assert "cannot be loaded" in cli.fails(78, "plugin", "info", text)
    assert "is not a regular file" in cli.fails(78, "plugin", "info", f"{tmp_path}/")
    assert "ABI is 2.10, wanted 1.x" in cli.fails(78, "plugin", "info", preset_folder() / "tests" / "plugins" / "bad_major.so")
    for name in (tmp_path / "nothere.so", theirs / "below.so", "nada"):
        cli.fails(66, "plugin", "info", name)


def test_tables_are_cut_for_a_width_only(cli, monkeypatch):
    """A script that reads a table finds every value whole; a person's table fits the width."""
    key = "order-" + "0123456789" * 12
    cli.add("orders.cancel", task_key=key)
    assert key in cli("task", "list")
    for columns in ("80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        for words in (("task", "list"), ("plugin", "info", "http"), ("plugin", "list")):
            lines = cli(*words).splitlines()
            assert max(map(len, lines)) <= int(columns), "\n".join(lines)


def test_version_is_an_option_too(cli):
    assert cli("--version") == cli("version")


# -- doctor -----------------------------------------------------------------------------------

def test_doctor_finds_and_cures(cli):
    lines = cli.jsonl("doctor")
    level = {line["check"]: line["level"] for line in lines}
    assert level["server"] == level["rights"] == level["clock"] == level["binlog"] == level["read_only"] == "ok"
    assert level["least privilege"] == level["shards"] == level["admin"] == "warn"
    assert all(line["cure"] for line in lines if line["level"] != "ok")
    text = cli("doctor")
    assert re.search(r"^warn  shards +0 of 8 are held by daemons\n +-> start a daemon: duebox run$", text, re.MULTILINE)


def test_doctor_finds_a_shard_that_no_daemon_can_take(cli):
    cli.sql("UPDATE outbox_shards SET epoch = 18446744073709551615 WHERE shard = 3")
    found = [line for line in cli.jsonl("doctor", code=78) if line["check"] == "shards"]
    assert found[0]["level"] == "fail" and "no daemon can take 3:" in found[0]["text"], found


def test_doctor_misses_rights(cli):
    database = cli.stage.database
    cli.stage.mariadb.create_user("half_cli", "secret", [
        f"SELECT, INSERT, UPDATE, DELETE ON `{database}`.outbox", f"SELECT ON `{database}`.outbox_schema",
        *(f"SELECT ON `{database}`.outbox_{table}" for table in (
            "history", "attempts", "shards", "heads", "instances", "quarantine", "routes", "audit", "schedules"))])
    base = cli.daemon.configuration
    cli.daemon.configure({**base, "database": {**base["database"], "user": "half_cli", "password": "secret"}})
    rights = next(line for line in cli.jsonl("doctor", code=77) if line["check"] == "rights")
    assert rights["level"] == "fail"
    assert re.search(rf"GRANT INSERT[A-Z, ]* ON `{database}`.`outbox_history` TO 'half_cli'", rights["cure"])
    assert f"`{database}`.`outbox` " not in rights["cure"]
    cli.add(message_id="m-1")
    assert "user half_cli lacks rights" in cli.fails(77, "task", "result", "m-1", "--attempt", 1, "--status", "done")


def test_every_right_that_a_statement_needs_is_asked_for(cli):
    """A right that an upgrade or an operator forgot is reported with the GRANT that gives it, by doctor and at the
    start, before a task is taken. One that is found missing later would stop the settling of every route."""
    database, user = cli.stage.database, "all_but_one"
    tables = [name for (name,) in cli.sql("SHOW TABLES LIKE 'outbox%%'")]
    everything = [f"SELECT, INSERT, UPDATE, DELETE ON `{database}`.`{table}`" for table in tables]
    cli.stage.mariadb.create_user(user, "secret", everything)
    base = cli.daemon.configuration
    cli.daemon.configure({**base, "database": {**base["database"], "user": user, "password": "secret"}})

    def doctor(code):
        return next(line for line in cli.jsonl("doctor", code=code) if line["check"] == "rights")

    assert doctor(0)["level"] == "ok"
    cli.sql(f"REVOKE DELETE ON `{database}`.`outbox_heads` FROM '{user}'@'%'")
    grant = doctor(77)["cure"]
    assert grant == f"GRANT DELETE ON `{database}`.`outbox_heads` TO '{user}'@'%'"
    id = cli.add(delay_ms=0)[0]
    cli.daemon.start(wait_ready=False)
    wait_until(lambda: grant in cli.daemon.log_tail(), 60, "the daemon to say what it lacks", detail=cli.daemon.log_tail)
    assert cli.sql("SELECT COUNT(*) FROM outbox_shards WHERE owner IS NOT NULL") == ((0,),)
    assert cli.sql("SELECT state, attempt FROM outbox WHERE id = %s", id) == (("scheduled", 0),)
    cli.sql(grant)
    cli.daemon.wait_ready(60)


def test_doctor_asks_each_broker_itself(cli, rabbitmq, kafka):
    """A broker that is away or refuses the password is found before a task is lost in waiting, without a daemon."""
    good = rabbitmq.url
    bad = re.sub(r"//[^@]*@", "//duebox:wrong@", good)
    assert bad != good
    for name, plugin in (("good", {"module": "amqp", "url": good}), ("bad", {"module": "amqp", "url": bad}),
                         ("live", {"module": "kafka", "brokers": kafka.bootstrap})):
        cli.stage.plugin(name, **plugin)
    cli.daemon.configure(cli.stage.configuration)
    said = {line["text"].split()[1]: line for line in cli.jsonl("doctor") if line["check"] == "connection"}
    assert said["good"]["level"] == said["live"]["level"] == "ok", said
    assert said["bad"]["level"] == "warn" and "login failed" in said["bad"]["text"], said
    assert said["bus"]["level"] == "warn" and said["bus"]["cure"], said


def test_doctor_compares_the_sizes_of_messages(cli, kafka):
    """A payload that duebox lets through and its topic does not is a dead task: said before there is one."""
    narrow, wide = cli.stage.topic(1), cli.stage.topic(1)
    kafka.create_topic(f"{wide}.wide", partitions=1, config={"max.message.bytes": str(9 << 20)})
    cli.stage.plugin("live", module="kafka", brokers=kafka.bootstrap)
    cli.stage.plugin("held", module="kafka", brokers=kafka.bootstrap, rdkafka={"message.max.bytes": 2000000})
    cli.stage.route("narrow", via="live", topic=narrow)
    cli.stage.route("wide", via="live", topic=f"{wide}.wide")
    cli.stage.route("held", via="held", topic=f"{wide}.wide")

    def said(max_payload):
        cli.daemon.configure({**cli.stage.configuration, "engine": {"max_payload": max_payload}})
        lines = [line for line in cli.jsonl("doctor") if line["check"] == "target"]
        return {line["text"].split(":")[0]: line for line in lines if "engine.max_payload" in line["text"]}

    assert not said("1MiB")
    found = said("4MiB")
    assert set(found) == {"route narrow", "route held"}, found
    assert f"topic {narrow} takes messages of 1048588 bytes, and engine.max_payload is 4194304" in (
        found["route narrow"]["text"])
    assert "max.message.bytes of the topic" in found["route narrow"]["cure"]
    assert "message.max.bytes under rdkafka is 2000000" in found["route held"]["text"]
    assert {line["level"] for line in found.values()} == {"warn"}


def test_doctor_sees_what_was_added_to_the_tables(cli):
    """A trigger or foreign key that somebody added works in each of the daemon's transactions: doctor names it, as far
    as its user may see it. So it does with an order_key whose tasks somebody has put into several shards, where they are
    not in order when several daemons run."""
    def found():
        return {line["check"]: (line["level"], line["text"]) for line in cli.jsonl("doctor")
                if line["check"] in ("triggers", "foreign keys", "order keys", "checks")}

    assert {check: level for check, (level, _) in found().items()} == {
        "triggers": "ok", "order keys": "ok", "checks": "ok"}
    cli.sql("CREATE TRIGGER slow BEFORE DELETE ON outbox FOR EACH ROW SET @slow = SLEEP(0)")
    cli.sql("CREATE TABLE note (id BIGINT UNSIGNED NOT NULL, CONSTRAINT of_task FOREIGN KEY (id) REFERENCES outbox (id))")
    cli.sql("INSERT INTO outbox (route, payload, order_key, shard) VALUES ('h', '', 'k', 1), ('h', '', 'k', 2),"
            " ('h', '', 'one', 1), ('h', '', 'one', 1)")
    cli.sql("ALTER TABLE outbox_history ADD CONSTRAINT no_small_ones CHECK (LENGTH(payload) > 10)")
    said = found()
    assert {level for level, _ in said.values()} == {"warn"} and len(said) == 4
    assert "CHECK no_small_ones of outbox_history" in said["checks"][1] and "write over it" in said["checks"][1]
    assert "trigger slow runs BEFORE DELETE on outbox" in said["triggers"][1]
    assert "no column that sql/README.md, Users, leaves" in next(
        line["cure"] for line in cli.jsonl("doctor") if line["check"] == "triggers")
    assert "of_task of note references outbox" in said["foreign keys"][1]
    assert "tasks of order_key k are in 2 shards" in said["order keys"][1]
    cli.sql("DROP TABLE note")
    cli.sql("DROP TRIGGER slow")
    cli.sql("ALTER TABLE outbox_history DROP CONSTRAINT no_small_ones")


def test_doctor_sees_what_no_partition_takes(cli):
    """It used to praise partitions up to a day beyond which nothing went in."""
    def partitions():
        return {line["text"].split()[0]: (line["level"], line["text"], line["cure"]) for line in cli.jsonl("doctor")
                if line["check"] == "partitions"}

    cli.sql("ALTER TABLE outbox_history PARTITION BY RANGE COLUMNS (keep_until)"
            " (PARTITION p VALUES LESS THAN ('2150-01-01'))")
    level, text, cure = partitions()["outbox_history"]
    assert level == "warn" and "takes nothing beyond 2150-01-01" in text and "ADD PARTITION" in cure
    cli.sql("ALTER TABLE outbox_history ADD PARTITION (PARTITION p_later VALUES LESS THAN (MAXVALUE))")
    assert partitions()["outbox_history"][0] == "ok"
    cli.sql("ALTER TABLE outbox_history REMOVE PARTITIONING")
    assert "takes nothing" not in partitions()["outbox_history"][1]
    cli.sql("ALTER TABLE outbox_history PARTITION BY RANGE COLUMNS (keep_until)"
            " (PARTITION p_later VALUES LESS THAN (MAXVALUE))")


def test_doctor_misses_each_index_that_somebody_dropped(cli):
    """Tools call an index unused that is for a rare case, or for a day with a backlog."""
    def missed():
        done = cli.run("doctor", "-o", "jsonl")
        lines = [line for line in map(json.loads, done.stdout.splitlines()) if line["check"] == "indexes"]
        return done.returncode, {line["text"].partition(":")[0] for line in lines}, {line["level"] for line in lines}

    def drop(indexes):
        for table, name in indexes:
            cli.sql(f"ALTER TABLE {table} DROP INDEX {name}")
        return {f"table {table} lacks the index {name}" for table, name in indexes}

    made = set(cli.sql("SELECT table_name, index_name FROM information_schema.statistics"
                       " WHERE table_schema = DATABASE() AND index_name <> 'PRIMARY'"))
    quick = {(table, name) for table, name in made if name.startswith("ix_")} - {
        ("outbox", "ix_next"), ("outbox_heads", "ix_order_key"), ("outbox_history", "ix_state_finished")}
    assert missed() == (0, {"all are there"}, {"ok"})
    slow = drop(quick)
    assert missed() == (0, slow, {"warn"})
    stopped = drop(made - quick)
    assert missed() == (78, slow | stopped, {"warn", "fail"})


@pytest.mark.parametrize("change, check, level, told", [
    ("DROP INDEX ux_message_id, ADD INDEX ux_message_id (message_id)", "indexes", "fail",
     "the index ux_message_id of table outbox is (message_id) instead of (unique message_id)"),
    ("DROP INDEX ix_next, ADD INDEX ix_next (state)", "indexes", "fail", "the index ix_next of table outbox is (state)"),
    ("DROP INDEX ix_task_key, ADD INDEX ix_task_key (task_key(3))", "indexes", "warn", "(task_key(3)) instead of (task_key)"),
    ("ALTER INDEX ix_task_key IGNORED", "indexes", "warn", "(task_key, ignored) instead of"),
    ("DROP CONSTRAINT outbox_priority", "checks", "warn", "table outbox lacks the CHECK outbox_priority"),
    ("DROP CONSTRAINT outbox_due_at_default", "checks", "warn", "table outbox lacks the CHECK outbox_due_at_default"),
    ("ALTER due_at DROP DEFAULT", "columns", "fail", "the column due_at of table outbox has no default"),
    ("ALTER message_id DROP DEFAULT", "columns", "fail", "the column message_id of table outbox has no default"),
    ("MODIFY changed_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", "columns", "fail", "has no ON UPDATE"),
    ("MODIFY expires_at DATETIME NULL", "columns", "fail", "the column expires_at of table outbox has no microseconds"),
    ("MODIFY payload MEDIUMBLOB NOT NULL", "columns", "fail", "is no LONGBLOB")])
def test_doctor_compares_what_things_are_and_not_their_names(cli, change, check, level, told):
    def found():
        lines = map(json.loads, cli.run("doctor", "-o", "jsonl").stdout.splitlines())
        return [(line["level"], line["text"]) for line in lines if line["check"] == check]

    assert [level for level, _ in found()] == ["ok"]
    cli.sql(f"ALTER TABLE outbox {change}")
    (said, text), = found()
    assert said == level and told in text, text


def test_doctor_lists_held_tasks(cli):
    """Tasks whose route nobody has wait for ever: doctor names the route."""
    cli.add("no.such.route", count=3)
    cli.sql("UPDATE outbox SET state = 'held'")
    held = [line for line in cli.jsonl("doctor") if line["check"] == "held tasks"]
    assert [(line["level"], line["text"].split(" wait")[0]) for line in held] == [("warn", "no.such.route: 3")]


def test_doctor_without_a_database(cli, tmp_path):
    cli.daemon.configure({**cli.daemon.configuration, "database": {
        "socket": str(tmp_path / "none"), "user": "root", "name": "shop"}})
    done = cli.run("doctor")
    assert done.returncode == 69
    assert re.search(r"^fail  database +.*none", done.stdout, re.MULTILINE)


def test_doctor_sees_trouble(cli):
    cli.sql("INSERT INTO outbox (route, payload, due_at) VALUES ('crm.push', '', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)")
    cli.sql("INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body)"
            " VALUES ('x', 'y', 'z', REPEAT('a', 32), 0, '')")
    mariadb = cli.stage.mariadb
    try:
        mariadb.execute("SET GLOBAL sync_binlog = 0")
        mariadb.execute("SET GLOBAL max_allowed_packet = 1048576")
        found = {line["check"]: line for line in cli.jsonl("doctor")}
    finally:
        mariadb.execute("SET GLOBAL sync_binlog = 1")
        mariadb.execute("SET GLOBAL max_allowed_packet = 67108864")
    assert found["overdue"]["level"] == "warn" and "36" in found["overdue"]["text"]
    assert found["quarantine"]["level"] == "warn"
    assert found["durability"]["level"] == "warn"
    assert found["max_allowed_packet"]["level"] == "warn"


@pytest.mark.parametrize("packet, payload, level", [
    (65536, "1KiB", "fail"), (1048576, "1KiB", "ok"), (1048576, "1MiB", "warn"), (2097152, "1MiB", "warn"),
    (4194304, "1MiB", "ok")])
def test_doctor_judges_the_packet_by_what_is_sent_to_the_server(cli, packet, payload, level):
    """The daemon sends its statements, applications send payloads; what is read is bounded by no packet."""
    cli.daemon.configure({**cli.daemon.configuration, "engine": {"max_payload": payload}})
    mariadb = cli.stage.mariadb
    try:
        mariadb.execute(f"SET GLOBAL max_allowed_packet = {packet}")
        found = {line["check"]: line for line in cli.jsonl("doctor", code=78 if level == "fail" else 0)}
    finally:
        mariadb.execute("SET GLOBAL max_allowed_packet = 67108864")
    assert found["max_allowed_packet"]["level"] == level, found["max_allowed_packet"]


def test_doctor_says_how_a_prepared_transaction_ends(cli):
    """It has no connection that could be killed, and its locks stay until somebody ends it by its name."""
    server, user = cli.stage.mariadb, "prepared"
    server.create_user(user, "right", [f"ALL ON `{cli.stage.database}`.*", "PROCESS ON *.*"])
    cli.stage.configuration["database"].update(user=user, password="right")
    cli.daemon.configure(cli.stage.configuration)

    def found():
        return next(line for line in cli.jsonl("doctor") if line["check"] == "transactions")
    with cli.stage.connect() as connection, connection.cursor() as cursor:
        for statement in ("XA START 'left'", "INSERT INTO outbox (route, payload) VALUES ('crm.push', '')",
                          "XA END 'left'", "XA PREPARE 'left'"):
            cursor.execute(statement)
    try:
        assert found()["level"] == "ok"
        server.execute("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 100'")    # not for root
        said = found()
        assert said["level"] == "warn" and said["text"].startswith("connection 0 has had a transaction open for 1"), said
        assert "Connection 0 is none" in said["cure"] and "XA RECOVER lists it, XA ROLLBACK ends it" in said["cure"]
    finally:
        server.execute("SET GLOBAL init_connect = ''")
        cli.sql("XA ROLLBACK 'left'")
    assert found()["level"] == "ok"


def test_doctor_suspects_local_times_in_due_at(cli, monkeypatch):
    """A driver that writes local times shifts due_at by whole hours and nothing fails: the doctor must notice."""
    def found():
        return next((line["level"], line["text"]) for line in cli.jsonl("doctor") if line["check"] == "due times")
    cli.sql("INSERT INTO outbox (route, payload, delay_ms) VALUES ('crm.push', '', 8 * 3600000), ('crm.push', '', 0)")
    cli.sql("INSERT INTO outbox (route, payload, due_at) VALUES ('crm.push', '', UTC_TIMESTAMP(6) + INTERVAL 510 MINUTE)")
    monkeypatch.setenv("TZ", "UTC")
    assert found()[0] == "ok"
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    assert found() == ("warn", "1 of 1 due_at of the last hour are 8 h ahead, as this machine's zone is (crm.push): local times?")
    monkeypatch.setenv("TZ", "America/New_York")
    assert found()[0] == "ok"
    cli.sql("INSERT INTO outbox (route, payload, due_at) VALUES ('crm.pull', '', UTC_TIMESTAMP(6) - INTERVAL 270 MINUTE)")
    assert found() == ("warn", "1 of 1 due_at of the last hour were past at the insert (crm.pull): local times?")


def test_doctor_counts_what_died_within_a_day(cli):
    def dead():
        return [(line["level"], line["text"]) for line in cli.jsonl("doctor") if line["check"] == "dead tasks"]
    assert dead() == [("ok", "none within a day")]
    old, = cli.dead("orders.cancel")
    cli.sql("UPDATE outbox_history SET finished_at = UTC_TIMESTAMP(6) - INTERVAL 25 HOUR WHERE id = %s", old)
    assert dead() == [("ok", "none within a day")]
    cli.dead("crm.push", count=2, error_class="http.503")
    cli.sql("UPDATE outbox_history SET finished_at = finished_at - INTERVAL 1 MINUTE WHERE route = 'crm.push'")
    cli.dead("crm.push", error_class="http.400")
    cli.dead("orders.cancel", error_class=None)
    # The class is whole on a server that cuts what is concatenated over rows.
    usual = cli.sql("SELECT @@GLOBAL.group_concat_max_len")[0][0]
    cli.sql("SET GLOBAL group_concat_max_len = 4")
    try:
        (one, crm), (two, orders) = dead()
    finally:
        cli.sql("SET GLOBAL group_concat_max_len = %s", usual)
    assert one == two == "warn"
    assert re.fullmatch(r"crm\.push: 3 ended dead within a day, the last at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: http\.400", crm)
    assert re.fullmatch(r"orders\.cancel: 1 ended dead within a day, the last at [-0-9]+ [:0-9]+", orders)
    assert re.search(r"^ +-> duebox dead list --route crm\.push; when it is mended: duebox dead retry --route crm\.push$",
                     cli("doctor"), re.MULTILINE)
    # Whoever may insert a task names its route; people copy the command.
    cli.dead("$(touch${IFS}/tmp/x)'")
    assert r"--route '$(touch${IFS}/tmp/x)'\'''; when it is mended" in cli("doctor")


def test_listing_does_not_wait_for_locks(cli):
    """Reading is never held up by a transaction of somebody else."""
    id_, = cli.add()
    with cli.stage.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM outbox FOR UPDATE")
        assert cli.json("task", "show", id_)["id"] == str(id_)
        assert len(cli.json("task", "list")) == 1
