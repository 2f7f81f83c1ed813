"""Tasks of one order_key: one after the other, whatever happens to the one before.

With `order: block`, the default, the others of a key wait while one is to be tried again, and are in state blocked
meanwhile; with `order: park` they go on.
"""

import itertools
import json
import random
import threading
import time

import pytest

from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 30
RETRY = {"levels": ["400ms"]}


def insert(stage, key, numbers, route="h"):
    """Tasks of one key, numbered by their payloads; returns the row ids."""
    with stage.connect() as connection, connection.cursor() as cursor:
        ids = []
        for number in numbers:
            cursor.execute("INSERT INTO outbox (route, payload, order_key) VALUES (%s, %s, %s)", (route, number, key))
            ids.append(cursor.lastrowid)
    return ids


def fail_first(stage, failing, times):
    """Answers 503 to the task `failing` the first `times` times; returns the list of payloads as they come in."""
    return fail_while(stage, failing, lambda came: came.count(failing) <= times)


def fail_while(stage, failing, condition):
    """Answers 503 to the task `failing` as long as condition(payloads that came in); returns that list, which grows."""
    came = []

    def answer(request):
        came.append(request.body.decode())
        return Answer(503 if came[-1] == failing and condition(came) else 200)
    stage.receiver.on("/h", answer)
    return came


def after_failures(came, failing, times):
    """What came after the task `failing`, which must have come first, and at least so often in a row."""
    count = next((i for i, body in enumerate(came) if body != failing), len(came))
    assert count >= times, came
    return came[count:]


def hold(stage, held):
    """The task `held` is answered when the event is set, the others at once: (payloads that came in, the event)."""
    came, event = [], threading.Event()

    def answer(request):
        came.append(request.body.decode())
        return Answer(200, after=event if came[-1] == held else None)
    stage.receiver.on("/h", answer)
    return came, event


def states(stage):
    return {int(payload): state for payload, state in stage.execute("SELECT CAST(payload AS CHAR), state FROM outbox")}


def test_others_wait_for_a_failed_one(stage):
    """Failures: the others of the key come after it and in order; another key goes on meanwhile."""
    stage.http("h", concurrency=20, retry=RETRY, max_attempts=1000)
    seen = threading.Event()
    came = fail_while(stage, "0", lambda came: came.count("0") <= 2 or not seen.is_set())
    stage.start()
    insert(stage, "k", range(10))
    insert(stage, "other", range(100, 110))
    wait_until(lambda: set(states(stage).items()) >= {(n, "blocked") for n in range(1, 10)}, LIMIT_S,
               "the others to be blocked", detail=lambda: str(states(stage)))
    wait_until(lambda: not any(n >= 100 for n in states(stage)), LIMIT_S, "the other key to go on")
    seen.set()
    stage.wait_empty(LIMIT_S)
    assert after_failures([n for n in came if int(n) < 100], "0", 3) == [str(n) for n in range(1, 10)]
    assert [n for n in came if int(n) >= 100] == [str(n) for n in range(100, 110)]


def test_others_go_on_where_the_route_says_park(stage):
    """The first one fails until the last one has come."""
    stage.http("h", concurrency=20, retry=RETRY, max_attempts=1000, order="park")
    came = fail_while(stage, "0", lambda came: "4" not in came)
    stage.start()
    insert(stage, "k", range(5))
    stage.wait_empty(LIMIT_S)
    assert (came[0], came[-1]) == ("0", "0")
    assert [body for body in came if body != "0"] == ["1", "2", "3", "4"]


def test_memory_claims_keep_the_order_too(stage):
    stage.http("h", concurrency=20, retry=RETRY, max_attempts=5, claim="memory")
    came = fail_first(stage, "3", 1)
    stage.start()
    insert(stage, "k", range(8))
    stage.wait_empty(LIMIT_S)
    assert came == ["0", "1", "2", "3", "3", "4", "5", "6", "7"]


def test_a_dead_one_holds_nobody_up(stage):
    stage.http("h", concurrency=20, retry=RETRY, max_attempts=2)
    came = fail_first(stage, "0", 99)
    stage.start()
    insert(stage, "k", range(4))
    stage.wait_empty(LIMIT_S)
    assert came == ["0", "0", "1", "2", "3"]
    assert stage.count("outbox_history", "state = 'dead'") == 1


def test_a_new_daemon_knows_who_waits_for_whom(stage):
    """kill -9 while a key is blocked: the next daemon keeps the others back as well, those that came later too."""
    stage.http("h", concurrency=20, retry={"levels": ["2s"]}, max_attempts=1000)
    restarted = threading.Event()
    came = fail_while(stage, "0", lambda _: not restarted.is_set())
    daemon = stage.start(engine={"lease": "1s"})
    insert(stage, "k", range(4))
    wait_until(lambda: list(states(stage).values()).count("blocked") == 3, LIMIT_S, "the others to be blocked")
    daemon.kill9()
    insert(stage, "k", range(4, 6))
    daemon.start()
    restarted.set()
    stage.wait_empty(LIMIT_S)
    assert after_failures(came, "0", 2) == ["1", "2", "3", "4", "5"]
    wait_until(lambda: stage.count("outbox_heads") <= 1, LIMIT_S, "no more heads than there were")


def test_people_may_remove_the_one_that_blocks(stage):
    """A plain DELETE of the failed row: the others go on within seconds."""
    stage.http("h", concurrency=20, retry={"levels": ["1h"]}, max_attempts=5)
    came = fail_first(stage, "0", 1)
    stage.start()
    [first, *_] = insert(stage, "k", range(4))
    wait_until(lambda: list(states(stage).values()).count("blocked") == 3, LIMIT_S, "the others to be blocked")
    stage.execute(f"DELETE FROM outbox WHERE id = {first}")
    stage.wait_empty(LIMIT_S)
    assert came == ["0", "1", "2", "3"]


def test_a_slow_key_hides_no_other(stage):
    """Many tasks of a key whose head takes long: another key behind them leaves at once."""
    stage.http("h", concurrency=4, timeout="30s")
    came, quick_came = hold(stage, "0")
    stage.start()
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO outbox (route, payload, order_key, shard)"
                       " SELECT 'h', seq, 'slow', 1 FROM seq_0_to_300")
        cursor.execute("INSERT INTO outbox (route, payload, order_key, shard) VALUES ('h', 1000, 'quick', 1)")
    wait_until(lambda: "1000" in came, LIMIT_S, "the other key")
    assert came == ["0", "1000"]
    quick_came.set()
    stage.wait_empty(60)
    assert came == ["0", "1000", *map(str, range(1, 301))]


def test_who_waits_is_not_read_again_and_again(stage):
    """Tasks of one key leave one after the other; what waits behind them is not read anew for each of them."""
    stage.http("h", concurrency=8, claim="memory")
    daemon = stage.start()
    read = daemon.metric("duebox_rows_read_total")
    stage.execute("INSERT INTO outbox (route, payload, order_key, shard) SELECT 'h', seq, 'k', 1 FROM seq_1_to_400")
    stage.wait_empty(60)
    assert [request.body.decode() for request in stage.receiver.requests] == [str(number) for number in range(1, 401)]
    assert daemon.metric("duebox_rows_read_total") - read < 10 * 400


def test_a_queue_that_people_empty_holds_nobody_up(stage):
    """Those that wait are known by their ids. Where very many of these are gone, who comes later does not wait for each."""
    stage.http("h", concurrency=8, claim="memory", timeout="5m")
    came, emptied = hold(stage, "1")
    daemon = stage.start()
    insert(stage, "k", [1])
    # It stands still by then, so that claims are recorded from now on: what is read for that counts as read, too.
    wait_until(lambda: daemon.metric("duebox_route_stalled_seconds", route="h") > 0, LIMIT_S, "the route to stand still")
    stage.execute("INSERT INTO outbox (route, payload, order_key) SELECT 'h', seq, 'k' FROM seq_2_to_2000")
    wait_until(lambda: daemon.metric("duebox_rows_read_total") >= 2000, LIMIT_S, "the queue to be known")
    stage.execute("DELETE FROM outbox WHERE payload <> '1'")
    insert(stage, "k", ["last"])
    emptied.set()
    stage.wait_empty(60)
    assert came == ["1", "last"]


def test_tasks_that_are_due_soon_keep_their_order(stage):
    """One in flight for longer than the next ones are away: these are read early, wait, and leave in their order."""
    stage.http("h", concurrency=8)
    came = []

    def answer(request):
        came.append(int(request.body))
        return Answer(200)
    stage.receiver.on("/h", answer)
    stage.start()
    with stage.connect() as connection, connection.cursor() as cursor:
        for key in range(4):
            cursor.execute("INSERT INTO outbox (route, payload, order_key, due_at) SELECT 'h', %s * 100 + seq,"
                           " CONCAT('k', %s), UTC_TIMESTAMP(6) + INTERVAL 1500000 + seq * 3000 MICROSECOND"
                           " FROM seq_0_to_40", (key, key))
    stage.wait_empty(LIMIT_S)
    for key in range(4):
        assert [n % 100 for n in came if n // 100 == key] == list(range(41))


def test_a_turn_goes_on_when_people_change_the_key_or_the_route(stage):
    """Waiting tasks that plain SQL moves to another key or route go their new way; those behind them are not stuck."""
    stage.http("h", concurrency=8)
    stage.http("other")
    came, moved = [], threading.Event()

    def answer(request):
        came.append((request.path, request.body.decode()))
        return Answer(200, after=moved if request.body == b"0" else None)
    stage.receiver.on("/h", answer)
    stage.receiver.on("/other", answer)
    stage.start()
    ids = insert(stage, "k", range(6))
    wait_until(lambda: came, LIMIT_S, "the first one to be called")
    stage.execute(f"UPDATE outbox SET order_key = '' WHERE id = {ids[1]}")
    stage.execute(f"UPDATE outbox SET route = 'other' WHERE id = {ids[2]}")
    stage.execute(f"UPDATE outbox SET order_key = 'x' WHERE id = {ids[3]}")
    moved.set()
    stage.wait_empty(LIMIT_S)
    assert sorted(came) == sorted([("/h", "0"), ("/h", "1"), ("/other", "2"), ("/h", "3"), ("/h", "4"), ("/h", "5")])
    assert [body for path, body in came if body in "045"] == ["0", "4", "5"]


def test_newer_tasks_do_not_overtake_the_blocked(stage):
    """While a key is blocked, and after, tasks that come later leave after the blocked ones."""
    stage.http("h", concurrency=20, retry={"levels": ["800ms"]}, max_attempts=1000)
    seen = threading.Event()
    came = fail_while(stage, "0", lambda _: not seen.is_set())
    stage.start()
    insert(stage, "k", range(20))
    wait_until(lambda: list(states(stage).values()).count("blocked") >= 10, LIMIT_S, "the others to be blocked")
    seen.set()
    number = 20
    while stage.count("outbox", "state = 'blocked'") and number < 400:
        insert(stage, "k", range(number, number + 2))
        number += 2
    stage.wait_empty(LIMIT_S * 2)
    assert after_failures(came, "0", 2) == [*map(str, range(1, number))]


def test_nobody_overtakes_those_that_come_back(stage):
    """Tasks of some keys keep coming while one in six fails twice: when its retry is over, those that it blocked come
    back from the table before those that are committed just then. One in forty used to be overtaken."""
    stage.http("h", concurrency=50, retry={"levels": ["100ms", "400ms"]}, max_attempts=1000)
    put, came, over = {}, [], time.monotonic() + 5

    def answer(request):
        body = request.body.decode()
        came.append(body)
        return Answer(503 if int(body.split(".")[1]) % 6 == 0 and came.count(body) < 3 else 200)

    def write(writer):
        chance = random.Random(writer)
        with stage.connect() as connection, connection.cursor() as cursor:
            for number in itertools.count():
                key = f"{writer}-{chance.randrange(6)}"
                cursor.execute("INSERT INTO outbox (route, payload, order_key) VALUES ('h', %s, %s)",
                               (f"{key}.{number}", key))
                put.setdefault(key, []).append(f"{key}.{number}")
                if over < time.monotonic():
                    return
                time.sleep(chance.random() * 0.05)
    stage.receiver.on("/h", answer)
    stage.start()
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stage.wait_empty(LIMIT_S * 2)
    first = list(dict.fromkeys(came))
    assert {key: [body for body in first if body.startswith(f"{key}.")] for key in put} == put


def overtaken(stage, rounds, open_s, queue=0, first=None, second=None):
    """Of `rounds` times 20 order keys, those of which the second task came first: the first one's transaction stays open
    for so long after its INSERT, the second is inserted when it is committed. Other tasks keep the cursor of reading at
    the present. `queue`: so many of another key wait for a call that takes as long as all of this. `first`, `second`:
    more columns of these, as SQL; among the others are some with the latter of each."""
    came, done = [], threading.Event()
    more = first or {}, second or {}

    def answer(request):
        came.append(request.body.decode())
        return Answer(200, after=done if came[-1] == "long" else None, delay_s=0.3 if came[-1] == "slow" else 0)

    def put(cursor, body, key, columns):
        names, values = "".join(f", {name}" for name in columns), "".join(f", {value}" for value in columns.values())
        cursor.execute(f"INSERT INTO outbox (route, payload, order_key{names}) VALUES ('h', %s, %s{values})", (body, key))

    def put_all(cursor, number, turn):
        for key in range(20):
            put(cursor, f"{number}-{key}.{turn + 1}", f"{number}-{key}", more[turn])

    def keep_busy():
        with stage.connect() as connection, connection.cursor() as cursor:
            for number in itertools.count():
                if done.is_set():
                    return
                put(cursor, "other", number % 97, more[1])
                for columns in more:
                    if columns and number % 5 == 0:
                        put(cursor, "slow", "", {**columns, "due_at": "UTC_TIMESTAMP(6)"})
                time.sleep(0.003)
    stage.receiver.on("/h", answer)
    stage.start()
    stage.execute("INSERT INTO outbox (route, payload, order_key)"
                  " SELECT 'h', 'long', 'long' FROM seq_1_to_20000 LIMIT %s", queue)
    others = threading.Thread(target=keep_busy)
    others.start()
    with stage.connect() as one, one.cursor() as former, stage.connect() as two, two.cursor() as latter:
        for number in range(rounds):
            one.begin()
            put_all(former, number, 0)
            time.sleep(open_s)
            one.commit()
            put_all(latter, number, 1)
            time.sleep(0.03)
    done.set()
    others.join()
    stage.execute("DELETE FROM outbox WHERE order_key = 'long' AND state = 'scheduled'")
    stage.wait_empty(LIMIT_S * 2)
    at = {body: place for place, body in enumerate(came)}
    keys = [f"{number}-{key}" for number in range(rounds) for key in range(20)]
    return [key for key in keys if at[f"{key}.1"] > at[f"{key}.2"]]


def test_who_committed_before_is_not_overtaken(stage):
    """One in twenty was, on a busy machine."""
    stage.http("h", concurrency=100)
    assert overtaken(stage, rounds=30, open_s=0.02) == []


def test_who_committed_before_is_not_overtaken_where_the_server_is_slow(remote):
    """A slow look behind the cursor was taken for one over many rows that cannot be purged, and went back a second."""
    remote.http("h", concurrency=100)
    remote.proxy.delay(20)
    assert overtaken(remote, rounds=6, open_s=1.5) == []


def test_who_committed_before_is_not_overtaken_beside_a_long_queue(stage):
    """Of what is behind the cursor, 4,096 positions were looked at: so many wait for another of their key here."""
    stage.http("h", concurrency=100)
    assert overtaken(stage, rounds=10, open_s=0.5, queue=20000) == []


def test_one_of_a_higher_priority_that_committed_before_is_not_overtaken(stage):
    """What is behind the cursor was asked of the priority alone that the next one has: one in fifty was overtaken."""
    stage.http("h", concurrency=200)
    assert overtaken(stage, rounds=20, open_s=0.2, first={"priority": 9}, second={"priority": 5}) == []


def test_a_bound_one_that_committed_before_is_not_overtaken(stage):
    """Of tasks bound to a host what was due more than ten seconds ago was not looked for: one in four was overtaken."""
    stage.http("h", concurrency=200)
    bound = {"target_host": "'duebox-1'"}
    long_ago = {**bound, "due_at": "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR"}
    assert overtaken(stage, rounds=20, open_s=0.2, first=long_ago, second=bound) == []


def test_held_tasks_are_not_overtaken(stage):
    """Tasks of three keys keep coming while reloads take the route out of the configuration and put it back: what was
    held comes back before what was inserted meanwhile. Two in a hundred used to be overtaken."""
    stage.http("other")
    stage.http("h", concurrency=20)
    came, done = [], threading.Event()

    def answer(request):
        came.append(request.body.decode())
        return Answer(200)

    def put():
        with stage.connect() as connection, connection.cursor() as cursor:
            for number in itertools.count():
                if done.is_set():
                    return
                cursor.execute("INSERT INTO outbox (route, payload, order_key) VALUES ('h', %s, %s)",
                               (f"{number % 3}.{number}", number % 3))
                time.sleep(0.01)
    stage.receiver.on("/h", answer)
    daemon = stage.start()
    whole = daemon.configuration
    application = threading.Thread(target=put)
    application.start()
    for _ in range(6):
        before = len(came)
        wait_until(lambda: len(came) > before + 20, LIMIT_S, "tasks to leave")
        assert daemon.reload({**whole, "routes": {"other": whole["routes"]["other"]}})
        wait_until(lambda: stage.count("outbox", "state = 'held'") > 20, LIMIT_S, "tasks to be held")
        assert daemon.reload(whole)
    done.set()
    application.join()
    stage.wait_empty(LIMIT_S * 2)
    for key in "012":
        numbers = [int(body[2:]) for body in came if body[0] == key]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("claim", ["memory", "recorded"])
def test_those_that_were_in_flight_in_a_crash_are_not_overtaken(stage, claim):
    """They leave in a small group that grows; while one of them waited for the others, the next of its key left: 23 of 60."""
    stage.http("h", concurrency=20, claim=claim)
    came = []

    def answer(request):
        came.append(request.body.decode())
        return Answer(200)
    stage.receiver.on("/h", answer)
    daemon = stage.daemon()
    with stage.connect() as connection, connection.cursor() as cursor:
        for number in range(120):
            cursor.execute("INSERT INTO outbox (route, payload, order_key) VALUES ('h', %s, %s)",
                           (f"{number % 60}.{number}", f"k{number % 60}"))
    stage.execute("UPDATE outbox SET recoveries = 1 ORDER BY id LIMIT 60")
    daemon.start()
    stage.wait_empty(LIMIT_S * 2)
    for key in range(60):
        assert [body for body in came if body.startswith(f"{key}.")] == [f"{key}.{key}", f"{key}.{key + 60}"]


def test_what_waits_behind_a_task_whose_route_is_gone_is_held(stage):
    """It used to stay blocked for ever when the head had been given another route by hand, and doctor knew nothing of it."""
    stage.http("other")
    stage.http("h", retry={"backoff": "60s", "max": "60s"}, max_attempts=5)
    stage.receiver.on("/h", lambda request: Answer(503 if request.body == b"0" else 200))
    daemon = stage.start()
    whole = daemon.configuration
    insert(stage, "k", range(4))
    wait_until(lambda: list(states(stage).values()).count("blocked") == 3, LIMIT_S, "all but one to be blocked", detail=lambda: str(states(stage)))
    assert daemon.reload({**whole, "routes": {"other": whole["routes"]["other"]}})
    wait_until(lambda: list(states(stage).values()).count("held") == 3, LIMIT_S, "those that are due to be held", detail=lambda: str(states(stage)))
    stage.execute("UPDATE outbox SET route = 'other' WHERE state = 'scheduled'")
    assert "h: 3 wait because no daemon has this route" in daemon.run("doctor", check=False).stdout
    assert daemon.reload(whole)
    stage.wait_empty(LIMIT_S, "route <> 'other'")


def test_a_head_that_left_blocks_nobody(stage):
    """It failed once and was then taken, with its result to come: the order is that of leaving."""
    stage.http("h", concurrency=20, retry=RETRY, max_attempts=5, result="expected", timeout="60s")
    came = []

    def answer(request):
        came.append(request.body.decode())
        return Answer(503 if came == ["0"] else 202)
    stage.receiver.on("/h", answer)
    stage.start()
    insert(stage, "k", range(6))
    wait_until(lambda: len(came) == 7, LIMIT_S, "all to leave", detail=lambda: str((came, states(stage))))
    assert came == ["0", "0", "1", "2", "3", "4", "5"]


def test_a_late_commit_keeps_the_order(stage):
    """Two tasks of a key appear behind the cursor, the later due one inserted first: the earlier due one goes first."""
    stage.http("h", concurrency=20, claim="memory", timeout="20s")
    came = []

    def answer(request):
        came.append(request.body.decode())
        return Answer(200, delay_s=3 if request.body == b"slow" else 0)
    stage.receiver.on("/h", answer)
    stage.start()
    with stage.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for body, ago in (("second", 10), ("first", 20)):
            cursor.execute("INSERT INTO outbox (route, payload, order_key, shard, due_at)"
                           " VALUES ('h', %s, 'k', 0, UTC_TIMESTAMP(6) - INTERVAL %s SECOND)", (body, ago))
        stage.execute("INSERT INTO outbox (route, payload, shard) VALUES ('h', 'slow', 0)")
        wait_until(lambda: came == ["slow"], LIMIT_S, "a later one to be out")
        connection.commit()
    stage.wait_empty(LIMIT_S)
    assert came == ["slow", "first", "second"]


def test_a_right_that_is_missing_holds_up_only_what_needs_it(stage):
    """Somebody takes a right on outbox_heads away from a running daemon. A failed task of an order_key waits to be
    recorded; everything else is settled, and /readyz says what is wrong. (It used to end the settling of every route.)"""
    stage.http("h", retry=RETRY, max_attempts=1000)
    stage.http("other")
    stage.daemon("migrates")
    user, heads = f"{stage.database[-20:]}_daemon", f"`{stage.database}`.`outbox_heads`"
    stage.mariadb.create_user(user, "pw", [f"SELECT, INSERT, UPDATE, DELETE ON `{stage.database}`.`{table}`"
                                           for (table,) in stage.execute("SHOW TABLES LIKE 'outbox%%'")])
    came = fail_first(stage, "0", 1)
    daemon = stage.start("works", database={**stage.configuration["database"], "user": user, "password": "pw"})
    stage.mariadb.execute(f"REVOKE INSERT ON {heads} FROM '{user}'@'%'")
    insert(stage, "k", range(3))
    wait_until(lambda: came, LIMIT_S, "the first one to be called")
    insert(stage, "", range(100, 150), route="other")
    stage.wait_empty(60, "route = 'other'")

    def told():
        status, body = daemon.api("GET", "/readyz")
        return status == 503 and "refuses the outcomes" in str(body)
    wait_until(told, 60, "/readyz to say so", detail=daemon.log_tail)
    assert came == ["0"] and "outbox_heads" in daemon.wait_log("DUEBOX-SETTLE-REFUSED")["msg"]
    stage.mariadb.execute(f"GRANT INSERT ON {heads} TO '{user}'@'%'")
    stage.wait_empty(60)
    assert came == ["0", "0", "1", "2"]


def test_a_key_changed_while_its_row_is_claimed(stage):
    """An operator may change the order_key of a scheduled row at any moment, also in the instant before the daemon
    claims it. The row is judged by the key that it has once it is claimed: all tasks arrive, once, and the daemon
    lives. (It used to end with SIGSEGV, or to wait for ever for keys that its rows no longer had.)"""
    stage.http("h", concurrency=50)
    stage.start()
    done = threading.Event()

    def rename(first):
        with stage.connect() as connection, connection.cursor() as cursor:
            for turn in itertools.count(first):
                if done.is_set():
                    return
                cursor.execute("UPDATE outbox SET order_key = %s WHERE state = 'scheduled' ORDER BY id DESC LIMIT 5",
                               (f"key {turn % 20}",))
    hand = threading.Thread(target=rename, args=(0,))
    hand.start()
    try:
        for burst in range(20):
            insert(stage, f"key {burst}", range(burst * 20, burst * 20 + 20))
        stage.receiver.wait_count(100, 60)
    finally:
        done.set()
        hand.join()
    stage.wait_empty(60)
    assert sorted(int(request.body) for request in stage.receiver.requests) == list(range(400))


MANY = 1500             # tasks of one key
ASKED = 500             # statements: far below one for each of them


def test_many_that_are_deleted_while_they_wait_hold_nobody_up(stage):
    """The daemon knows the ids of those that wait. When their turn has come they are asked for many
    at a time, not one by one: other keys of the route wait for that."""
    stage.http("h", claim="memory", retry=RETRY, timeout="2m")
    came, go = hold(stage, "first")
    daemon = stage.start()
    insert(stage, "k", ["first"])
    stage.execute("INSERT INTO outbox (route, payload, order_key) "
                  f"SELECT 'h', CONCAT('k', seq), 'k' FROM seq_1_to_{MANY}")
    wait_until(lambda: daemon.metric("duebox_rows_read") > MANY, LIMIT_S, "all of them to be known")
    stage.execute("DELETE FROM outbox WHERE payload LIKE 'k%'")
    asked = daemon.metric("duebox_statements")
    insert(stage, "k", ["next"])
    insert(stage, "m", ["other"])
    go.set()
    wait_until(lambda: stage.count() == 0, LIMIT_S, "the others to be done")
    assert sorted(came) == ["first", "next", "other"]
    assert daemon.metric("duebox_statements") - asked < ASKED


def test_the_higher_priority_goes_first_after_a_failure_too(stage):
    """What a failed task has blocked comes back of all priorities before the first of it goes: of 600 tasks a dozen
    used to leave before one of a higher priority."""
    stage.http("h", concurrency=200, retry={"levels": ["100ms"], "jitter": 0}, breaker=0, max_attempts=1000)
    chance, came = random.Random(1), []

    def answer(request):
        came.append(request.body.decode())
        return Answer(503 if int(came[-1].split(".")[1]) % 9 == 4 and came.count(came[-1]) == 1 else 200,
                      delay_s=random.random() * 0.05)
    stage.receiver.on("/h", answer)
    stage.start()
    tasks = [(key, number, chance.randint(1, 9)) for number in range(50) for key in range(12)]
    with stage.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO outbox (route, payload, order_key, priority, delay_ms) VALUES (%s, %s, %s, %s, %s)",
                           [("h", f"{key}.{number}", key, priority, 2000) for key, number, priority in tasks])
    stage.wait_empty(LIMIT_S * 2)
    first = list(dict.fromkeys(came))
    for key in range(12):
        assert ([body for body in first if body.startswith(f"{key}.")]
                == [f"{k}.{number}" for k, number, _ in sorted(tasks, key=lambda task: (-task[2], task[1])) if k == key])


def test_how_long_blocked_tasks_have_waited_is_told(stage):
    """They are due and nobody sends them: where the one before is tried again after hours, somebody is to know."""
    stage.http("h", retry={"levels": ["6h"]}, breaker=0)
    fail_while(stage, "0", lambda came: True)
    daemon = stage.start()
    insert(stage, "k", [0])
    wait_until(lambda: stage.execute("SELECT failures FROM outbox") == ((1,),), LIMIT_S, "the first to fail")
    stage.execute("INSERT INTO outbox (route, payload, order_key, due_at)"
                  " VALUES ('h', '1', 'k', UTC_TIMESTAMP(6) - INTERVAL 3 HOUR)")
    wait_until(lambda: 3 * 3600 <= daemon.metric("duebox_oldest_blocked_age_seconds", route="h") < 3 * 3600 + 600,
               LIMIT_S, "its age", detail=lambda: str(states(stage)))
    assert daemon.metric("duebox_oldest_due_age_seconds", route="h") == 0
    assert daemon.api("GET", "/api/v1/stats")[1]["routes"][0]["oldest_blocked_age_us"] >= 3 * 3600e6
    found = {line["check"]: line for line in map(json.loads, daemon.run("doctor", "-o", "jsonl").stdout.splitlines())}
    assert found["blocked tasks"]["level"] == "warn" and "108" in found["blocked tasks"]["text"]
    assert found["overdue"]["level"] == "ok"
    daemon.run("task", "cancel", "--route", "h", "--yes")
    wait_until(lambda: daemon.metric("duebox_oldest_blocked_age_seconds", route="h") == 0, LIMIT_S, "nothing to wait")


def test_a_row_with_the_ids_of_a_former_head_holds_nobody_up(stage):
    """A task whose target is gone is put off, without a failure, and others of its key wait for it until it is over.
    Whoever may INSERT and gave a later one its row id and message id (`SET insert_id`), due in the year 2199, held up
    the key until then."""
    stage.http("h", url=f"{stage.receiver.url}/h/{{task_key}}", history="1h", retry=RETRY)
    stage.receiver.on("/h/gone", Answer(410))
    one = stage.start("one")
    stage.execute("INSERT INTO outbox (route, payload, order_key, task_key, message_id, expires_at)"
                  " VALUES ('h', 'first', 'k', 'gone', 'm', UTC_TIMESTAMP(6) + INTERVAL 3 SECOND)")
    stage.wait_row("m", LIMIT_S, state="expired")
    (head, failures), = stage.execute("SELECT head_id, failures FROM outbox_heads")
    assert failures == 0
    one.stop()      # which knew that it was over
    stage.execute("INSERT INTO outbox (id, route, payload, order_key, message_id, due_at)"
                  " VALUES (%s, 'h', 'late', 'k', 'm', '2199-01-01')", head)
    stage.execute("INSERT INTO outbox (route, payload, order_key, task_key) VALUES ('h', 'next', 'k', 'there')")
    one.start()
    wait_until(lambda: [b"next"] == [request.body for request in stage.receiver.requests[1:]], LIMIT_S,
               "the next one to come", detail=stage.living)
