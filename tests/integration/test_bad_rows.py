"""Bad rows come to a clear and visible end, and nothing else is held up or lost."""

import json
import types

import pymysql
import pytest

from support.application import Application, Task, new_id
from support.daemon import Daemon
from support.ledger import Promise
from support.wait import wait_until

MAX_PAYLOAD = 64 * 1024


@pytest.fixture
def three(stage):
    """One route to each kind of destination, and a daemon."""
    stage.kafka("k")
    stage.amqp("a")
    stage.http("h")
    stage.configuration["engine"]["max_payload"] = "64KiB"
    stage.start()
    stage.consume_kafka("k")
    stage.consume_amqp("a")
    stage.consume_http()
    return stage


def insert_raw(stage, route, headers="{}", payload=b"bad"):
    """A row as a careless application writes it; returns its message id."""
    message_id = new_id()
    stage.execute("INSERT INTO outbox (route, payload, headers, message_id) VALUES (%s, %s, %s, %s)",
                  route, payload, headers, message_id)
    return message_id


def goes_on(stage, *routes):
    """Good rows after the bad ones arrive, and nothing else does."""
    for route in routes:
        stage.insert(route, b"good")
    stage.wait_empty(20, "state <> 'held'")
    stage.check()


def test_an_unknown_route_is_held_and_comes_back_with_it(three):
    daemon = three.daemons[0]
    held = three.insert("later", b"held", count=3)
    for message_id in held:
        row = three.wait_row(message_id, 20, state="held")
        assert row["attempt"] == 0
    assert "later" in daemon.wait_log("DUEBOX-ROUTE-UNKNOWN")["msg"]
    status = next(route for route in daemon.api("GET", "/api/v1/routes")[1]["routes"] if route["name"] == "later")
    assert status["known"] is False
    three.insert("k", b"good")
    three.wait_arrived(1, 20)
    daemon.configuration["routes"]["later"] = {**daemon.configuration["routes"]["k"]}
    assert daemon.reload(daemon.configuration)
    three.wait_empty(20)
    three.check()


def test_an_unknown_route_is_forgotten_with_its_rows(three):
    """The alert on routes that nobody knows used to go on until the daemon was restarted."""
    daemon = three.daemons[0]

    def shown():
        return [route["known"] for route in daemon.api("GET", "/api/v1/routes")[1]["routes"] if route["name"] == "kk"]

    three.wait_row(insert_raw(three, "kk", payload=b"bad"), 20, state="held")
    assert shown() == [False]
    assert 'route="kk",state="known"} 0' in daemon.api("GET", "/metrics")[1]
    # docs/OPERATIONS.md, Rows are held
    three.execute("UPDATE outbox SET route = 'missing', state = 'scheduled' WHERE route = 'kk' AND state = 'held'")
    wait_until(lambda: not shown(), 90, "route kk to be forgotten")
    assert "kk" not in daemon.api("GET", "/metrics")[1]
    three.wait_row(insert_raw(three, "kk", payload=b"again"), 20, state="held")
    assert shown() == [False]


def test_a_far_future_row_of_an_unknown_route_waits(three):
    """Only what is due is held: the route may well be there in time."""
    message_id = three.insert("later", b"", delay_ms=3_600_000)[0]
    three.insert("k", b"good")
    three.wait_arrived(1, 20)
    assert three.row(message_id)["state"] == "scheduled"


BAD_HEADERS = {
    "array": '["a"]', "text": '"a"', "number": "17", "no JSON": "a=b", "half": '{"a":"b"', "blank": " ",
    "null value": '{"a":null}', "object value": '{"a":{"b":"c"}}',
    "twice": '{"a":"1","a":"2"}', "empty name": '{"":"1"}', "trailing": '{"a":"1"} x',
    "carriage return": '{"a":"1\\r\\nX-Evil: 2"}', "line feed": '{"a":"1\\n2"}', "name with line feed": '{"a\\nb":"1"}',
    "lone surrogate": '{"a":"\\ud800"}', "raw control": '{"a":"\x01"}',
    "NUL": '{"a":"1\\u00002"}',
}


def test_headers_that_are_no_object_of_strings(three):
    bad = {name: insert_raw(three, "k", text) for name, text in BAD_HEADERS.items()}
    for name, message_id in bad.items():
        row = three.wait_row(message_id, 20, state="dead")
        assert (row["error_class"], row["payload"], row["headers"]) == ("row.headers", b"bad", BAD_HEADERS[name]), name
        assert len(row["last_error"]) > 10, name
        assert row["published_at"] is None, name
    goes_on(three, "k", "a", "h")


def test_a_control_character_in_a_header_value(three):
    """Kafka and AMQP carry it, HTTP cannot: there the task is dead, and not sent."""
    promises = [Promise(new_id(), route, b"bell", headers={"a": "1\a2"}) for route in ("k", "a")]
    promises.append(Promise(new_id(), "h", b"bell", copies=0, end="dead", headers={"a": "1\a2"}))
    with Application(three.connect(), three.ledger) as application:
        application.insert([Task(promise) for promise in promises])
    row = three.wait_row(promises[-1].message_id, 20, state="dead")
    assert row["error_class"].startswith("http.") and "header" in row["last_error"]
    goes_on(three, "k", "a", "h")


def test_an_application_cannot_speak_in_our_name(three):
    """Headers that duebox sets itself, and those that frame HTTP, are not taken from rows:
    the task arrives as if they were not there."""
    forged = {"duebox-id": "x", "duebox-attempt": "99", "duebox-route": "x", "duebox-reply-to": "x",
              "webhook-id": "x", "Content-Length": "1", "Host": "evil.example", "Transfer-Encoding": "chunked"}
    ids = {route: insert_raw(three, route, json.dumps(forged), b"forged") for route in ("k", "a", "h")}
    three.wait_empty(20)
    three.wait_arrived(3, 20)
    for arrival in three.ledger.arrivals:
        assert (arrival.message_id, arrival.attempt, arrival.body) == (ids[arrival.where], 1, b"forged")
        if arrival.where == "h":
            assert arrival.headers["host"].startswith("127.0.0.1:")


@pytest.mark.parametrize("route", ["k", "a", "h"])
def test_a_payload_over_the_limit(three, route):
    limit = three.insert(route, b"x" * MAX_PAYLOAD)
    over = three.insert(route, b"y" * (MAX_PAYLOAD + 1), copies=0, end="dead",
                        error_class="row.payload_too_large")[0]
    row = three.wait_row(over, 20, state="dead")
    assert str(MAX_PAYLOAD + 1) in row["last_error"] and "max_payload" in row["last_error"]
    assert len(limit) == 1
    goes_on(three, route)


@pytest.mark.parametrize("route", ["k", "a", "h"])
def test_binary_payloads_arrive_byte_by_byte(three, route):
    for body in (b"", b"\0", bytes(range(256)) * 8, b"\xff\xfe\0\0", b"'\";--\\", b"\r\n\r\n"):
        three.insert(route, body)
    three.wait_empty(20)
    three.check()


REFUSED = {
    "due in the year 9999": ("due_at", "'9999-12-31 23:59:59'"),
    "due in the year zero": ("due_at", "'0000-00-00 00:00:00'"),
    "delay of a thousand years": ("delay_ms", "31536000000000"),
    "negative delay": ("delay_ms", "-1"),
    "priority 77": ("priority", "77"),
    "priority 0": ("priority", "0"),
    "no route": ("route", "''"),
    "route NULL": ("route", "NULL"),
    "route with a blank": ("route", "'a b'"),
    "payload NULL": ("payload", "NULL"),
    "message id with a line feed": ("message_id", "'a\\nb'"),
    "state done": ("state", "'done'"),
    "shard 200": ("shard", "200"),
    "no attempts": ("max_attempts", "0"),
}


@pytest.mark.parametrize("sql_mode, column, value",
                         [("STRICT_TRANS_TABLES", *what) for what in REFUSED.values()]
                         + [("", *what) for what in REFUSED.values()],
                         ids=[f"{name}, strict" for name in REFUSED] + [f"{name}, lenient" for name in REFUSED])
def test_what_can_never_be_right_is_refused_at_insert(bare, sql_mode, column, value):
    columns = {"route": "'k'", "payload": "'x'", column: value}
    with bare.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = %s", (sql_mode,))
        with pytest.raises(pymysql.err.MySQLError):
            cursor.execute(f"INSERT INTO outbox ({', '.join(columns)}) VALUES ({', '.join(columns.values())})")
        cursor.execute("SELECT COUNT(*) FROM outbox")
        assert cursor.fetchone() == (0,)


@pytest.fixture(scope="module")
def bare(mariadb, tmp_path_factory):
    """A migrated table without a daemon: the server, with connect() to that database."""
    database = mariadb.create_database("bad_rows_refused")
    Daemon(tmp_path_factory.mktemp("bare"), {
        "database": {"socket": str(mariadb.socket), "user": "root", "name": database}}).migrate()
    return types.SimpleNamespace(connect=lambda: mariadb.connect(database))


def test_a_dedup_key_is_unique_among_living_rows(three):
    def insert(verb="INSERT"):
        return three.execute(f"{verb} INTO outbox (route, payload, dedup_key, delay_ms)"
                             " VALUES ('k', 'x', 'once', 3600000)")
    insert()
    with pytest.raises(pymysql.err.IntegrityError):
        insert()
    insert("INSERT IGNORE")
    assert three.count() == 1
    three.execute("DELETE FROM outbox")
    insert()
    assert three.count() == 1


def test_a_row_that_is_due_since_long_leaves_at_once(three):
    three.execute("INSERT INTO outbox (route, payload, message_id, due_at) VALUES ('k', 'old', 'old', '2001-01-01')")
    wait_until(lambda: "old" in three.ledger.arrived_ids(), 20, "the old row to arrive")


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_a_row_of_a_lenient_client_ends_by_itself(stage, claim):
    """A client without a strict sql_mode may have written zero dates and absurd counters before the table had CHECKs
    against them. Such a row ends dead with its reason, a claim of nobody with a broken lease is taken back, and all others
    arrive. (One of them used to stop the reading of every route.)"""
    stage.kafka("k", claim=claim)
    stage.consume_kafka("k")
    stage.daemon()
    good = stage.application()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for name, column, value in (("zero", "first_due_at", "'0000-00-00'"), ("absurd", "attempt", "4294967295"),
                                    ("lease", "lease_until", "'0000-00-00'")):
            state = "claimed" if name == "lease" else "scheduled"
            cursor.execute(f"INSERT INTO outbox (route, payload, message_id, shard, state, {column})"
                           f" VALUES ('k', '', '{name}', 1, '{state}', {value})")
    good.insert([Task(Promise(new_id(), "k", b"%d" % number)) for number in range(50)])
    stage.daemons[0].start()
    stage.wait_arrived(50, 20)
    for name in ("zero", "absurd"):
        wait_until(lambda name=name: stage.row(name)["state"] == "dead", 20, f"{name} to end",
                   detail=stage.living)
        assert stage.row(name)["error_class"] == "row.unreadable"
    wait_until(lambda: "lease" in stage.ledger.arrived_ids(), 20, "the claim of nobody to be sent", detail=stage.living)
    wait_until(lambda: stage.count() == 0, 20, "an empty outbox", detail=stage.living)


def test_bytes_that_are_no_ascii_end_their_row_alone(stage):
    """MariaDB lets a client with a lenient sql_mode write any bytes into an ASCII column, and CHECKs switched off let
    them stay. As text each came as '?': rows were sent under an id that was not theirs, and nothing could end them; those
    with such a route were neither held nor ended; the daemon was not ready any more, and their route stood still."""
    stage.http("h")
    stage.consume_http()
    stage.start()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for message_id in ("C3A9", "C3A90000", "FF41"):
            cursor.execute(f"INSERT INTO outbox (route, payload, message_id) VALUES ('h', '', x'{message_id}')")
        cursor.execute("INSERT INTO outbox (route, payload, message_id, order_key)"
                       " VALUES ('h', '', x'FFFE', 'k'), (x'68C3A9', '', 'odd-route', ''), (x'FF', '', x'FE', '')")
    good = stage.insert("h", b"good", count=20)
    stage.wait_arrived(20, 20)
    wait_until(lambda: stage.count() == 0, 20, "an empty outbox", detail=stage.living)
    ended = stage.execute("SELECT HEX(message_id), state, error_class FROM outbox_history WHERE state <> 'done'")
    ids = ["C3A9", "C3A90000", "FF41", "FFFE", b"odd-route".hex().upper(), "FE"]
    assert sorted(ended) == sorted((message_id, "dead", "row.unreadable") for message_id in ids)
    assert sorted(stage.ledger.arrived_ids()) == sorted(good)
    assert stage.daemons[0].api("GET", "/readyz")[0] == 200


def test_a_daemon_changes_no_task_of_a_shard_that_is_none(stage):
    """It looked for the lease of such a shard behind the end of its leases, and asked the table to be fenced by what it
    found there: all tasks that it was asked for in the same request were refused."""
    stage.http("h", history="1h")
    daemon = stage.start()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for shard in (64, 65, 100, 200, 255):
            cursor.execute("INSERT INTO outbox (route, payload, message_id, shard, delay_ms) VALUES ('h', '', %s, %s, 3600000)",
                           (f"odd-{shard}", shard))
        cursor.execute("INSERT INTO outbox (route, payload, message_id, state) VALUES ('h', '', 'odd-state', '')")
    (good,) = stage.insert("h", b"good", delay_ms=3600000, copies=0, end="cancelled")
    odd = ["odd-state", *[f"odd-{shard}" for shard in (64, 65, 100, 200, 255)]]
    for verb, more in (("cancel", {}), ("reschedule", {"delay_ms": 7200000})):
        for message_id in odd:
            status, answer = daemon.api("POST", f"/api/v1/tasks/{message_id}/{verb}", {"reason": "odd", **more})
            assert status == 409, (message_id, verb, status, answer)

    def outcomes():
        status, answer = daemon.api("POST", "/api/v1/tasks/cancel", {"reason": "odd", "ids": [*odd, good]})
        assert status == 200, answer
        return [task["outcome"] for task in answer["tasks"]]

    wait_until(lambda: outcomes() == ["state"] * len(odd) + ["done"], 20, "the good one to be cancelled",
               detail=stage.living)    # the daemon itself may hold its shard for a moment
    assert stage.count() == len(odd)


def test_a_route_that_is_none_gives_no_metric_its_name(stage):
    """Of a row with a bad message id as well the route was not judged: it became the name of a route in metrics, in the
    log and in the list of routes, whatever bytes it had."""
    stage.http("h", history="1h")
    daemon = stage.start()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for number, route in enumerate(("FF", "680A22", "6800", "2068", "78" * 65, "")):
            cursor.execute(f"INSERT INTO outbox (route, payload, message_id) VALUES (x'{route}', '', x'0{number + 1}')")
    wait_until(lambda: stage.count() == 0, 20, "an empty outbox", detail=stage.living)
    assert stage.count("outbox_history", "error_class = 'row.unreadable'") == 6
    named = {dict(labels).get("route", "h") for _, labels in daemon.metrics()}
    named |= {route["name"] for route in daemon.api("GET", "/api/v1/routes")[1]["routes"]}
    assert named <= {"h", "(unreadable routes)", "(empty)"}, named


def test_tasks_with_any_message_id_are_cancelled_beside_others(stage):
    """A NUL in a message id, which a client stores that has CHECKs switched off, was taken for its end: a daemon that was
    asked to cancel such a task found that its row was another one, and refused all that it was asked for with it."""
    stage.http("h", history="1h")
    daemon = stage.start()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for message_id in ("00", "6100", "610062", "C3A9", "20", "6120"):
            cursor.execute("INSERT INTO outbox (route, payload, message_id, shard, delay_ms)"
                           f" VALUES ('h', '', x'{message_id}', 1, 3600000)")
        cursor.execute("INSERT INTO outbox (route, payload, shard, delay_ms) VALUES ('h', 'good', 1, 3600000)")
    numbers = [row[0] for row in stage.execute("SELECT id FROM outbox")]
    for _ in range(2):      # living, then ended
        for number in numbers:
            assert json.loads(daemon.run("task", "show", f"id:{number}", "-o", "json").stdout), number
        daemon.run("task", "cancel", "--route", "h", "--yes")
        assert stage.count() == 0
    assert stage.execute("SELECT state, COUNT(*) FROM outbox_history GROUP BY state") == (("cancelled", 7),)


def test_an_alert_tells_of_a_row_with_any_bytes(stage):
    """The server refuses to make JSON of bytes that are no ASCII in a message id or a route: such a task died without the
    alert."""
    stage.http("h", history="1h")
    stage.http("alerts", history="1h")
    stage.consume_http()
    stage.configuration["alerts"] = {"dead": {"route": "alerts"}}
    stage.start()
    rows = (("FF", "68"), ("00", "68"), ("610A22", "68"), ("C3A9", "FF"), ("5C", "C3A922"), ("7E", "81"))
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', check_constraint_checks = 0")
        for message_id, route in rows:
            cursor.execute(f"INSERT INTO outbox (route, payload, message_id, task_key, priority)"
                           f" VALUES (x'{route}', '', x'{message_id}', '\u00fc\\0', 10)")
    wait_until(lambda: stage.count("outbox_history", "route = 'alerts' AND state = 'done'") == len(rows), 20, "the alerts",
               detail=stage.living)
    told = [json.loads(payload) for (payload,) in stage.execute("SELECT payload FROM outbox_history WHERE route = 'alerts'")]
    assert sorted((alert["message_id"], alert["route"]) for alert in told) == sorted(
        (bytes.fromhex(message_id).decode("latin1"), bytes.fromhex(route).decode("latin1")) for message_id, route in rows)


def test_a_routing_key_without_permission_costs_no_other_a_failure(stage):
    """RabbitMQ closes the channel over each such message: those beside it are delivered, with no failure counted, and
    the forbidden ones wait, alive."""
    broker, name = stage.rabbitmq, new_id()
    user, exchange = f"u-{name}", f"x-{name}"
    queue = stage.queue()
    broker.declare_exchange(exchange)
    broker.bind(queue, exchange, "#")
    broker.ctl("add_user", user, "secret-of-a-test")
    broker.ctl("set_permissions", user, "", ".*", ".*")
    broker.ctl("set_topic_permissions", user, exchange, "^good", ".*")
    stage.plugin("topics", module="amqp", url=broker.url.replace("guest:guest", f"{user}:secret-of-a-test"))
    stage.route("keyed", via="topics", exchange=exchange, routing_key="{task_key}", history="1h",
                retry={"levels": ["1s"]}, max_attempts=2)
    stage.start()
    for i in range(300):
        stage.execute("INSERT INTO outbox (route, payload, task_key) VALUES ('keyed', %s, %s)", f"{i}",
                      "bad" if i % 30 == 29 else f"good{i % 7}")
    wait_until(lambda: stage.count("outbox_history") >= 290, 60, "the good ones to be delivered")
    assert stage.execute("SELECT state, COUNT(*) FROM outbox_history GROUP BY state") == (("done", 290),)
    assert stage.execute("SELECT COUNT(*), MAX(failures) FROM outbox WHERE task_key = 'bad'") == ((10, 0),)
    assert stage.execute("SELECT MAX(failures) FROM outbox_history") == ((0,),)
