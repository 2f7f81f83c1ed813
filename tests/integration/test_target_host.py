"""target_host: only the daemon of that name runs the task, whoever holds which shard."""

import collections
import json
import threading
import uuid

from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60


def insert(stage, host, count=1):
    """Rows bound to a host; returns their message ids."""
    ids = []
    with stage.connect() as connection, connection.cursor() as cursor:
        for _ in range(count):
            ids.append(str(uuid.uuid4()))   # reading it back would race with the end of the task
            cursor.execute("INSERT INTO outbox (route, payload, target_host, message_id) VALUES ('work', '{}', %s, %s)",
                           (host, ids[-1]))
    return ids


def test_each_host_runs_its_own(stage):
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    one = stage.start("one")
    two = stage.start("two")
    mine, theirs, nobodys = insert(stage, "one", 20), insert(stage, "two", 20), insert(stage, "three", 5)
    for message_id in mine + theirs:
        stage.wait_row(message_id, LIMIT_S, state="done")
    ran = dict(stage.execute("SELECT target_host, GROUP_CONCAT(DISTINCT claimed_by) FROM outbox_history"
                             " GROUP BY target_host"))
    assert set(ran) == {"one", "two"}
    assert ran["one"] != ran["two"] and "," not in ran["one"] + ran["two"]
    for daemon in (one, two):       # it counts after the commit
        wait_until(lambda daemon=daemon: daemon.metric("duebox_settled_rows") >= 20, LIMIT_S, "the counters to follow")
        assert daemon.metric("duebox_settled_rows") == 20
    # What is bound to a host that is not there waits, and is cancelled like any other.
    assert stage.count("outbox", "target_host = 'three' AND state = 'scheduled'") == 5
    assert one.api("POST", f"/api/v1/tasks/{nobodys[0]}/cancel", {})[0] == 200
    one.run("task", "cancel", *nobodys[1:], "--yes")
    assert stage.count("outbox_history", "target_host = 'three' AND state = 'cancelled'") == 5


def test_those_of_others_hold_up_nothing(stage):
    """A backlog for a host that is away costs neither our own tasks nor unbound ones."""
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    stage.start("one")
    stage.execute("INSERT INTO outbox (route, payload, target_host)"
                  " SELECT 'work', '{}', 'away' FROM seq_1_to_5000")
    for message_id in insert(stage, "one", 10) + insert(stage, "", 10):
        stage.wait_row(message_id, LIMIT_S, state="done")
    assert stage.count("outbox") == 5000


def bind(stage, host, condition):
    """What sql/examples/bind.sql does."""
    stage.execute(f"UPDATE outbox SET move_to_host = %s WHERE {condition} AND state = 'scheduled'", host)


def test_a_task_moves_from_a_host_that_is_away(stage):
    """Plain SQL with an application's grants asks for another host, or for any, before the task is due or after."""
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    stage.start("one")
    for_one, for_any, later = insert(stage, "away", 5), insert(stage, "away", 5), insert(stage, "away", 1)
    stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE message_id = %s", later[0])
    for ids, host in ((for_one + later, "one"), (for_any, "")):
        for message_id in ids:
            bind(stage, host, f"message_id = '{message_id}'")
    for message_id in for_one + for_any:
        stage.wait_row(message_id, LIMIT_S, state="done")
    wait_until(lambda: stage.count("outbox", "target_host = 'one' AND move_to_host IS NULL") == 1, LIMIT_S,
               "the last to be moved")
    assert stage.count("outbox", "state = 'scheduled' AND attempt = 0") == 1     # and it was not sent (P3)


def test_a_due_task_goes_to_the_host_that_a_command_names(stage):
    """Where its route is paused, and where no daemon runs: `task set` used to say that it was on its way out."""
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere", history="1h")
    one = stage.start("one")
    one.run("route", "pause", "work")
    wait_until(lambda: one.metric("duebox_route_state", route="work", state="paused") == 1, LIMIT_S, "the pause")
    [paused] = insert(stage, "")
    one.run("task", "set", paused, "--target-host", "two")
    one.stop()
    [alone] = insert(stage, "")
    one.run("task", "set", alone, "--target-host", "two")
    one.run("route", "resume", "work")
    one.start()
    wait_until(lambda: stage.count("outbox", "target_host = 'two' AND move_to_host IS NULL") == 2, LIMIT_S,
               "both to be moved", detail=stage.living)
    two = stage.start("two")
    for message_id in (paused, alone):
        stage.wait_row(message_id, LIMIT_S, state="done", target_host="two")
    wait_until(lambda: two.metric("duebox_settled_rows") >= 2, LIMIT_S, "the counters to follow")


def test_a_task_in_flight_stays_until_it_is_settled(stage):
    """By a change of shard and host in flight 100 of 100 tasks were sent twice: without a fault there is no duplicate
    (P4)."""
    gate = threading.Event()
    stage.http("h", concurrency=10, claim="memory", timeout="2m")
    stage.receiver.on("/h", Answer(200, after=gate))
    stage.start("one")
    stage.start("two")
    stage.execute("INSERT INTO outbox (route, payload) SELECT 'h', CONCAT('task', seq) FROM seq_1_to_20")
    wait_until(lambda: len(stage.receiver.requests) > 1, LIMIT_S, "some to be in flight")
    bind(stage, "two", "route = 'h'")
    gate.set()
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert sorted(stage.receiver.bodies()) == sorted(f"task{i}" for i in range(1, 21))


def test_tasks_of_one_key_move_in_their_order(stage):
    """The first is out: the others follow to the new host when their turn comes, and none overtakes it."""
    gate = threading.Event()
    stage.http("h", concurrency=10, claim="memory", timeout="2m")
    stage.receiver.on("/h", Answer(200, after=gate))
    stage.start("one")
    stage.start("two")
    stage.execute("INSERT INTO outbox (route, payload, order_key) SELECT 'h', CONCAT('task', seq), 'k' FROM seq_1_to_5")
    wait_until(lambda: stage.receiver.requests, LIMIT_S, "the first to be in flight")
    bind(stage, "two", "route = 'h'")
    gate.set()
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert stage.receiver.bodies() == [f"task{i}" for i in range(1, 6)]


def http_route(stage, **more):
    """A route to the receiver, whose first answer waits for the event that is returned; and what comes, as it comes."""
    come, gate = [], threading.Event()

    def answer(request):
        come.append(request.body.decode())
        return Answer(200, after=gate if come[-1] == "task1" else None)
    stage.http("h", concurrency=10, timeout="2m", **more)
    stage.receiver.on("/h", answer)
    return come, gate


def insert_key(stage, *rows):
    """Tasks of one order_key in one statement: (payload, host that it is to move to or None)."""
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO outbox (route, order_key, payload, move_to_host) VALUES "
                       + ", ".join(["('h', 'k', %s, %s)"] * len(rows)), [value for row in rows for value in row])


def test_those_that_stay_wait_for_one_that_has_moved(stage):
    """The first of a key goes to a host that is not there: the others, whether they stay or are to go there too, and one
    that is inserted later, used to overtake it. So after a kill of the daemon that knew."""
    come, gate = http_route(stage, claim="memory")
    gate.set()
    one = stage.start("one")
    insert_key(stage, ("task1", "two"), ("task2", "two"), ("task3", None), ("task4", "two"))
    wait_until(lambda: stage.count("outbox", "target_host = 'two'") == 1 and
               stage.count("outbox", "state = 'blocked'") == 3, LIMIT_S, "one to move and three to wait",
               detail=stage.living)
    one.kill9()
    stage.start("one")
    insert_key(stage, ("task5", None))
    wait_until(lambda: stage.count("outbox", "state = 'blocked'") == 4, LIMIT_S, "the new one to wait too",
               detail=stage.living)
    assert not come
    stage.start("two")
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert come == [f"task{i}" for i in range(1, 6)]


def test_one_that_is_to_move_waits_for_those_before_it(stage):
    """It is due with the others, and used to be read before them: it arrived while the first was still out."""
    come, gate = http_route(stage, claim="memory")
    stage.start("one")
    stage.start("two")
    insert_key(stage, ("task1", None), ("task2", None), ("task3", "two"), ("task4", None))
    wait_until(lambda: "task1" in come, LIMIT_S, "the first to come")
    stage.execute("INSERT INTO outbox (route, payload, move_to_host) VALUES ('h', 'other', 'two')")
    wait_until(lambda: "other" in come, LIMIT_S, "another one to move and to come")
    assert sorted(come) == ["other", "task1"]
    gate.set()
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert [body for body in come if body != "other"] == [f"task{i}" for i in range(1, 5)]


def test_one_that_is_asked_for_where_it_is_keeps_its_place(stage):
    """A host is away for a moment. Somebody asks for another shard, which means nothing for a bound task, or for the
    host that it is bound to: another daemon took that for a move, and the task was the head of its key."""
    come, gate = http_route(stage)
    gate.set()
    stage.start("one")
    stage.execute("INSERT INTO outbox (route, order_key, payload, target_host, move_to_shard, move_to_host)"
                  " VALUES ('h', 'k', 'task1', 'two', NULL, NULL), ('h', 'k', 'task2', 'two', 3, NULL),"
                  " ('h', 'k', 'task3', 'two', NULL, 'two'), ('h', 'k', 'task4', 'two', NULL, NULL)")
    stage.execute("INSERT INTO outbox (route, payload, target_host, move_to_host) VALUES ('h', 'other', 'two', 'one')")
    wait_until(lambda: "other" in come, LIMIT_S, "another one of that host to move and to come")
    assert stage.count("outbox_heads") == 0
    stage.start("two")
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert come == ["other", *(f"task{i}" for i in range(1, 5))]


def bound(stage, key, *bodies, host="one"):
    """Tasks of one order_key, or of none, that are bound to a host."""
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO outbox (route, order_key, target_host, payload) VALUES "
                       + ", ".join(["('h', %s, %s, %s)"] * len(bodies)),
                       [value for body in bodies for value in (key, host, body)])


def test_a_claim_of_a_daemon_that_was_killed_goes_before_the_others_of_its_key(stage):
    """Nobody leases the shard of bound tasks: the daemon that has the name next may read them while the claim of the
    killed one counts still, and used to send tasks 2 to 4 seconds before the first. Other keys, and tasks without one,
    do not wait for that."""
    come, _ = http_route(stage, retry={"levels": ["200ms"]})
    one = stage.start("one")
    bound(stage, "k", "task1", "task2", "task3", "task4")
    wait_until(lambda: "task1" in come, LIMIT_S, "the first to come")
    one.kill9()
    (dead,), = stage.execute("SELECT claimed_by FROM outbox WHERE state = 'claimed'")
    stage.execute("UPDATE outbox_instances SET alive_until = alive_until + INTERVAL 1 HOUR WHERE id = %s", dead)
    stage.receiver.on("/h", lambda request: come.append(request.body.decode()) or Answer(200))
    stage.daemon("one").start(wait_ready=False)     # by what the table says the other one lives, and has its share
    bound(stage, "other", "a", "b")
    bound(stage, "", "free")
    wait_until(lambda: stage.count() == 4, LIMIT_S, "those that have nobody to wait for", detail=stage.living)
    assert stage.count("outbox", "order_key = 'k'") == 4 and come.count("task1") == 1
    bound(stage, "k", "task5")
    stage.execute("UPDATE outbox_instances SET alive_until = UTC_TIMESTAMP(6) WHERE id = %s", dead)
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert [body for body in come if body.startswith("task")] == ["task1"] + [f"task{i}" for i in range(1, 6)]
    assert come.index("a") < come.index("b")


def test_what_flows_hides_no_bound_task_that_comes_late(stage):
    """Bound tasks of a route flow, one each 10 ms. What became visible behind them was looked for once, and no more
    after that had met a task that has to wait: the next one stood still for as long as others flowed (75 s and more),
    while the metric said that nothing waits."""
    come, gates = [], {f"first{n}": threading.Event() for n in range(4)}

    def answer(request):
        come.append(request.body.decode())
        return Answer(200, delay_s=0.3 if come[-1] == "flow" else 0, after=gates.get(come[-1]))
    stage.http("h", concurrency=200, timeout="2m")
    stage.receiver.on("/h", answer)
    one = stage.start("one")
    over = threading.Event()

    def flow():
        while not over.wait(0.01):
            bound(stage, "", "flow")

    def late(key, body):
        stage.execute("INSERT INTO outbox (route, order_key, target_host, payload, due_at)"
                      " VALUES ('h', %s, 'one', %s, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)", key, body)
    thread = threading.Thread(target=flow)
    thread.start()
    try:
        wait_until(lambda: come.count("flow") > 50, LIMIT_S, "some to flow")
        for n, (first, gate) in enumerate(gates.items()):
            bound(stage, f"k{n}", first)
            wait_until(lambda first=first: first in come, LIMIT_S, "the first of the key to come")
            late(f"k{n}", f"second{n}")
            late("", f"free{n}")
            wait_until(lambda n=n: f"free{n}" in come, LIMIT_S, "one that waits for nobody", detail=stage.living)
            assert f"second{n}" not in come
            wait_until(lambda: one.metric("duebox_oldest_due_age_seconds", route="h") > 3000, LIMIT_S,
                       "the one that waits to be shown")
            gate.set()
            wait_until(lambda n=n: f"second{n}" in come, LIMIT_S, "that one")
    finally:
        for gate in gates.values():
            gate.set()
        over.set()
        thread.join()


def claimers(stage):
    return {by for by, in stage.execute("SELECT DISTINCT claimed_by FROM outbox_history WHERE target_host = 'one'")}


def test_of_two_daemons_of_one_name_one_runs_what_is_bound_to_it(stage):
    """What one had blocked behind a failed task, or was to try again, the other did not know, and sent what was behind
    it: with a copied configuration the order of keys was lost (16 overtakings in 4,776 tasks). The other one stands by
    for the name, at work in its shards, and has it when the first is gone."""
    seen = collections.Counter()
    come = []

    def answer(request):
        body = request.body.decode()
        seen[body] += 1
        again = int(body.split("-")[1]) % 3 == 1 and seen[body] == 1
        if not again:
            come.append(body)
        return Answer(503 if again else 200)

    def run(first):
        names = [(f"k{n % 4}", f"{n % 4}-{first + n}") for n in range(80)]
        for at in range(0, len(names), 8):
            with stage.connect() as connection, connection.cursor() as cursor:
                cursor.executemany("INSERT INTO outbox (route, order_key, target_host, payload)"
                                   " VALUES ('h', %s, 'one', %s)", names[at:at + 8])
        wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
        for key in range(4):
            ran = [int(body.split("-")[1]) for body in come if body.startswith(f"{key}-")]
            assert ran == sorted(ran)
        run_by = claimers(stage)
        stage.execute("DELETE FROM outbox_history")
        return run_by
    stage.http("h", concurrency=20, breaker=0, retry={"levels": ["100ms"], "jitter": 0}, history="1h")
    stage.receiver.on("/h", answer)
    one = stage.start("one")
    two = stage.daemon("again", engine={"instance": "one"}).start()
    two.wait_log("DUEBOX-NAME-AWAITED", limit_s=LIMIT_S)
    first = run(0)
    assert len(first) == 1

    bound(stage, "", *(f"9-{n * 3}" for n in range(40)), host="")
    wait_until(lambda: stage.count() == 0 and two.metric("duebox_settled_rows") > 0, LIMIT_S, "both to work")
    one.kill9()
    two.wait_log("DUEBOX-NAME-TAKEN", limit_s=LIMIT_S)
    second = run(100)
    assert len(second) == 1 and second != first
    one.start()
    one.wait_log("DUEBOX-NAME-AWAITED", limit_s=LIMIT_S)
    two.stop()
    assert run(200) not in (first, second)


def test_one_that_stood_still_while_another_had_its_name_begins_anew(stage):
    """It was frozen for longer than its lease: what it knew of keys then is not true any more."""
    come = []

    def answer(request):
        body = request.body.decode()
        come.append(body)
        return Answer(503 if body == "head" and come.count("head") < 3 else 200)
    stage.http("h", concurrency=20, breaker=0, retry={"levels": ["1ms", "1h"], "jitter": 0}, history="1h")
    stage.receiver.on("/h", answer)
    one = stage.start("one")
    bound(stage, "k", "first")
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the first to go")
    one.pause()
    two = stage.daemon("again", engine={"instance": "one"}).start()
    two.wait_log("DUEBOX-NAME-TAKEN", limit_s=LIMIT_S)
    bound(stage, "k", "head")
    wait_until(lambda: come.count("head") == 2, LIMIT_S, "it to fail for an hour")
    wait_until(lambda: stage.count("outbox_heads") == 1, LIMIT_S, "the head to be known")
    two.stop()
    one.resume()
    bound(stage, "k", "behind")
    bound(stage, "", "free")
    wait_until(lambda: "free" in come, LIMIT_S, "the first one to be at work", detail=stage.living)
    wait_until(lambda: stage.count("outbox", "state = 'blocked'") == 1, LIMIT_S, "the other to wait")
    assert "behind" not in come
    stage.execute("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE state = 'scheduled'")
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert come[-2:] == ["head", "behind"]


def heads_whose_host_is_gone(stage, come):
    """A task that failed on a host which crashed then, one that has moved to a host that never was, and one behind each,
    which is bound to nobody. Returns the daemon that is left."""
    def answer(request):
        come.append(request.body.decode())
        return Answer(503 if come[-1] == "failed" else 200)
    stage.http("h", breaker=0, retry={"levels": ["200ms"]}, max_attempts=100000, give_up="1h", history="1h")
    stage.receiver.on("/h", answer)
    gone = stage.start("gone")
    bound(stage, "failed", "failed", host="gone")
    wait_until(lambda: stage.count("outbox", "failures > 0"), LIMIT_S, "the first to fail")
    gone.kill9()
    one = stage.start("one")
    stage.execute("INSERT INTO outbox (route, order_key, payload, move_to_host) VALUES ('h', 'moved', 'moved', 'never')")
    wait_until(lambda: stage.count("outbox", "target_host = 'never'"), LIMIT_S, "the other to move")
    stage.execute("INSERT INTO outbox (route, order_key, payload) VALUES ('h', 'failed', 'behind failed'),"
                  " ('h', 'moved', 'behind moved')")
    wait_until(lambda: stage.count("outbox", "state = 'blocked'") == 2, LIMIT_S, "both to be held up",
               detail=stage.living)
    return one


def test_a_head_whose_host_stays_away_is_given_up(stage):
    """Nobody but its host would end it: whoever may INSERT, and has a task fail there, held up its order_key for ever.
    One that holds up nobody waits for its host."""
    come = []
    stage.plugin("nowhere", module="null")
    stage.route("alerts", via="nowhere", history="1h")
    stage.configuration["alerts"] = {"dead": {"route": "alerts"}}
    one = heads_whose_host_is_gone(stage, come)
    bound(stage, "", "patient", host="gone")
    assert not {"behind failed", "behind moved"} & set(come)
    stage.execute("UPDATE outbox SET first_due_at = UTC_TIMESTAMP(6) - INTERVAL 2 HOUR WHERE state = 'scheduled'")
    wait_until(lambda: {"behind failed", "behind moved"} <= set(come), LIMIT_S, "those behind to come",
               detail=stage.living)
    for body, host in (("failed", "gone"), ("moved", "never")):
        (state, error_class, error), = stage.execute(
            "SELECT state, error_class, last_error FROM outbox_history WHERE payload = %s", body)
        assert (state, error_class) == ("dead", "host.silent")
        assert f"host {host} is not there" in error and "give_up (1h)" in error, error
    assert "error_class=host.silent" in one.wait_log("DUEBOX-TASK-DEAD", limit_s=LIMIT_S)["msg"]
    wait_until(lambda: stage.count("outbox_history", "route = 'alerts' AND state = 'done'") == 2, LIMIT_S, "the alerts")
    wait_until(lambda: one.metric("duebox_task_events", route="h", event="dead") == 2, LIMIT_S, "the counter to follow")
    assert stage.count("outbox", "state = 'scheduled' AND payload = 'patient'") == 1


def test_doctor_names_a_head_whose_host_is_not_there(stage):
    come = []
    one = heads_whose_host_is_gone(stage, come)

    def found():
        lines = map(json.loads, one.run("doctor", "-o", "jsonl", check=False).stdout.splitlines())
        return [line for line in lines if line["check"] == "hosts"]
    both = found()
    assert len(both) == 2, both
    for line, key, host in zip(both, ("failed", "moved"), ("gone", "never")):
        (row, message_id), = stage.execute("SELECT id, message_id FROM outbox WHERE payload = %s", key)
        assert line["level"] == "warn", line
        assert all(word in line["text"] for word in (message_id, f"order_key {key} ", f"host {host},")), line
        assert f"duebox task cancel id:{row}" in line["cure"] and "bind.sql" in line["cure"], line
        one.run("task", "cancel", f"id:{row}", "--yes")
    wait_until(lambda: {"behind failed", "behind moved"} <= set(come), LIMIT_S, "those behind to come",
               detail=stage.living)
    assert [line["level"] for line in found()] == ["ok"]


def test_a_daemon_leaves_the_keys_of_other_hosts_alone(stage):
    """Heads are known to every daemon, and one that met tasks of another host behind its cursor blocked them by what it
    knew, when that was over there: up to 27 of 720 were overtaken without any fault."""
    hosts, tasks, come = ("one", "two", "three"), 40, {}

    def answer(request):
        key, number = request.body.decode().split("-")
        numbers = come.setdefault(key, [])
        again = int(number) in numbers
        numbers.append(int(number))
        return Answer(200 if again or int(number) % 9 != 4 else 503, delay_s=int(number) * 7 % 10 / 100)
    stage.http("h", concurrency=200, breaker=0, retry={"levels": ["200ms"], "jitter": 0})
    stage.receiver.on("/h", answer)
    for host in hosts:
        stage.start(host)
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO outbox (route, order_key, target_host, payload) VALUES " + ", ".join(
            f"('h', 'k{k}', '{hosts[k % 3]}', 'k{k}-{n}')" for n in range(tasks) for k in range(12)))
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert {key: list(dict.fromkeys(numbers)) for key, numbers in come.items()} == {
        f"k{k}": list(range(tasks)) for k in range(12)}


def test_one_that_moved_and_failed_lets_go_where_the_route_parks(stage):
    """With `order: park` a failed task holds nobody up, wherever it failed."""
    come = []

    def answer(request):
        come.append(request.body.decode())
        return Answer(503 if come[-1] == "task1" and "task3" not in come else 200)
    stage.http("h", concurrency=10, order="park", retry={"levels": ["200ms"]}, max_attempts=1000)
    stage.receiver.on("/h", answer)
    stage.start("one")
    stage.start("two")
    insert_key(stage, ("task1", "two"), ("task2", None), ("task3", None))
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the table to be empty", detail=stage.living)
    assert come[0] == "task1" and come[-1] == "task1"
    assert [body for body in come if body != "task1"] == ["task2", "task3"]


def test_two_daemons_of_one_name_say_so(stage):
    """A copied configuration: nobody was told. One that is started anew under its own name is none."""
    stage.plugin("nowhere", module="null")
    stage.route("work", via="nowhere")

    def names(daemon):
        found = map(json.loads, daemon.run("doctor", "-o", "jsonl", check=False).stdout.splitlines())
        return [line["text"] for line in found if line["check"] == "names"]
    one = stage.start("one", engine={"instance": "same"})
    one.kill9()
    one.start()
    assert not names(one)
    two = stage.start("two", engine={"instance": "same"})
    said = two.wait_log("DUEBOX-NAME-TWICE", limit_s=LIMIT_S)["msg"]
    assert f"pid={one.process.pid} url=http://127.0.0.1:{one.port}" in said, said
    assert f"pid={two.process.pid}" in one.wait_log("DUEBOX-NAME-TWICE", limit_s=LIMIT_S)["msg"]
    found, = names(two)
    assert "two daemons have the name same" in found and f"process {two.process.pid} at" in found, found
    two.stop()
    one.wait_log("DUEBOX-NAME-ONCE", limit_s=LIMIT_S)
    assert not names(one)
