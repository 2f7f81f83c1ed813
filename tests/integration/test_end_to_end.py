"""Ten thousand rows by plain SQL, over every kind of route, with two daemons on one
database and no fault: each committed row arrives once, never early, unchanged, and ends
as it should; nothing that was rolled back arrives (P1, P2, P3, P4, P7)."""

import json
import random
import threading

from support.application import Task, new_id
from support.ledger import Promise
from support.threads import in_threads

ROWS = {"k.plain": 3000, "k.kept": 1500, "k.result": 1500, "a.plain": 1500, "a.result": 1000,
        "h.plain": 700, "h.later": 400, "h.json": 400}
ANSWERED = ("k.result", "a.result", "h.later", "h.json")
KEPT = ("k.kept", *ANSWERED)
PLANS = ["done"] * 8 + ["retry", "fail"]
RETRY_IN_MS = 400
MAX_DELAY_MS = 20_000
ROLLED_BACK = 300
INSERTERS = 4
END_LIMIT_S = 60
ODD_BODIES = [b"", b"\0", bytes(range(256)), b"\xff\xfe{", "naïve ☃".encode(), b"x" * 100_000]


def answer(arrival):
    """The consumer of all routes with results; what it does is written in the headers."""
    plan, number = arrival.headers["x-plan"], int(arrival.headers["x-number"])
    if plan == "fail":
        return {"status": "fail", "error": {"class": "test.fail", "message": "never again"}}
    if plan == "retry" and arrival.attempt == 1:
        return {"status": "retry", "retry_in_ms": RETRY_IN_MS,
                "error": {"class": "test.busy", "message": "come back"}}
    return {"status": "done", "result": {"number": number}}


def promise(route, number, dice):
    plan = dice.choice(PLANS) if route in ANSWERED else "done"
    body = dice.choice(ODD_BODIES) if dice.random() < 0.05 else dice.randbytes(dice.randrange(400))
    wanted = Promise(new_id(), route, body, kept=route in KEPT,
                     headers={"x-plan": plan, "x-number": str(number), "Traceparent": f"00-{number:032x}-1-01"})
    if plan == "retry":
        wanted.copies, wanted.wait_ms = 2, RETRY_IN_MS
    if plan == "fail":
        wanted.end, wanted.error_class = "dead", "test.fail"
    elif route in ANSWERED:
        wanted.result = json.dumps({"number": number})
    return wanted


def tasks(dice):
    routes = [route for route, count in ROWS.items() for _ in range(count)]
    dice.shuffle(routes)
    return [Task(promise(route, number, dice),
                 delay_ms=0 if dice.random() < 0.3 else dice.randrange(MAX_DELAY_MS),
                 by_due_at=dice.random() < 0.5, priority=dice.randrange(1, 10),
                 task_key=f"key {number % 100}")
            for number, route in enumerate(routes)]


def transactions(work, dice):
    """Cuts into transactions of 1 to 200 rows."""
    cut = []
    while work:
        size = dice.choice([1, 1, 2, 10, 50, 200])
        cut.append(work[:size])
        work = work[size:]
    return cut


def configure(stage):
    stage.kafka("k.plain")
    stage.kafka("k.kept", history="1h", key="{task_key}")
    stage.kafka("k.result", history="1h", result="expected", timeout="5m")
    stage.amqp("a.plain")
    stage.amqp("a.result", history="1h", result="expected", timeout="5m")
    stage.http("h.plain", timeout="5m")
    stage.http("h.later", history="1h", result="expected", timeout="5m")
    stage.http("h.json", history="1h", timeout="5m")
    stage.configuration["results"] = [{"via": "bus", "topic": stage.topic(), "group": stage.name},
                                      {"via": "rabbit", "queue": stage.queue()}]


def insert_all(application, cut):
    for some in cut:
        application.insert(some)


def insert_late(stage, cut, dice):
    """Transactions that stay open for seconds: their rows may be due long before anybody
    can see them, and their ids are lower than those of rows that were long since sent."""
    open_ones = [(stage.application(), some) for some in cut]
    for application, some in open_ones:
        application.begin(some)
    dice.shuffle(open_ones)
    for application, some in open_ones:
        threading.Event().wait(0.25)        # spreads the commits; no result rests on it
        application.commit(some)


def roll_back(application, dice):
    for start in range(0, ROLLED_BACK, 50):
        some = [Task(promise(dice.choice(list(ROWS)), start + i, dice)) for i in range(50)]
        application.begin(some)
        application.roll_back(some)


def print_lateness(ledger):
    """Of what was committed before it was due, at the consumer."""
    print(f"\n{len(ledger.committed)} committed, {len(ledger.arrivals)} copies arrived")
    for route in ROWS:
        late = sorted(copy.at_us - ledger.committed[copy.message_id] for copy in ledger.arrivals
                      if copy.where == route and copy.attempt == 1
                      and ledger.promised[copy.message_id].sent_us < ledger.committed[copy.message_id])
        print(f"{route:9} {len(late):5} scheduled ahead: p50 {late[len(late) // 2] / 1000:8.1f} ms,"
              f" p99 {late[len(late) * 99 // 100] / 1000:8.1f} ms late at the consumer")


def test_ten_thousand_rows(stage):
    dice = random.Random(20_260_101)
    configure(stage)
    stage.daemon()
    stage.consume_kafka("k.plain", "k.kept")
    stage.consume_kafka("k.result", answer=answer)
    stage.consume_amqp("a.plain")
    stage.consume_amqp("a.result", answer=answer)
    http = stage.consume_http()
    http.json("/h.json", answer)
    http.callback("/h.later", answer)
    stage.daemon()
    for daemon in stage.daemons:
        daemon.start()

    cut = transactions(tasks(dice), dice)
    late, cut = [some for some in cut if len(some) == 10][:12], \
        [some for some in cut if len(some) != 10] + [some for some in cut if len(some) == 10][12:]
    in_threads(*(lambda part=cut[i::INSERTERS]: insert_all(stage.application(), part) for i in range(INSERTERS)),
               lambda: insert_late(stage, late, dice),
               lambda: roll_back(stage.application(), random.Random(7)))
    stage.wait_empty(MAX_DELAY_MS / 1000 + END_LIMIT_S)
    stage.check()
    assert len(stage.ledger.committed) == sum(ROWS.values())
    assert http.refused == []
    print_lateness(stage.ledger)


def test_the_shortest_insert(stage):
    """INSERT INTO outbox (route, payload): everything else has a default, and the
    application learns the message id from the database."""
    stage.kafka("orders.cancel")
    stage.start()
    stage.consume_kafka("orders.cancel")
    with stage.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO outbox (route, payload) VALUES ('orders.cancel', '{\"order\":17}')"
                       " RETURNING message_id")
        message_id = cursor.fetchone()[0]
        cursor.execute("INSERT INTO ledger SELECT message_id, due_at FROM outbox")
        stage.ledger.promise(Promise(message_id, "orders.cancel", b'{"order":17}'))
        connection.commit()
    stage.wait_empty(10)
    stage.check()
