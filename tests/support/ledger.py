"""An independent ledger: what an application committed against what arrived.

The ledger knows nothing of duebox but its table and its contract.  It keeps three
books and compares them:

promised   what the application wanted of each message: route, body, how often it is
           to arrive, how it is to end.  Whether it was committed, and for when, says
           the database itself: each transaction writes its rows also into a table of the
           application's own (`ledger`), so the truth is the application's COMMIT and
           not what a test believes, even where the server died in the middle of one.
arrived    one Arrival per copy that a destination got, with the local time.
ended      outbox, outbox_history and outbox_attempts when all is over.

Times are microseconds since 1970.  "Never early" is judged with a tolerance of zero:
test and database read the same clock of the same machine, which read_committed()
verifies.
"""

import dataclasses
import datetime
import threading
import time
from collections import Counter, defaultdict

TABLE = """
CREATE TABLE IF NOT EXISTS ledger (
  message_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  due_at     DATETIME(6) NOT NULL
) ENGINE = InnoDB"""
# Two statements, the first of which is a consistent read: INSERT .. SELECT would lock
# outbox rows, and an application that only inserts does not.
READ_DUE = "SELECT message_id, due_at FROM outbox WHERE message_id IN %s"
COPY = "INSERT INTO ledger (message_id, due_at) VALUES (%s, %s)"

EPOCH = datetime.datetime(1970, 1, 1)
SHOWN = 5               # violations of a kind that an error message spells out


@dataclasses.dataclass(slots=True)
class Promise:
    """What the application wants of one message."""
    message_id: str
    route: str
    body: bytes
    copies: int = 1             # how often it is to arrive when nothing fails: 1 + asked retries
    end: str = "done"           # final state; "" = whatever it is
    kept: bool = False          # the row is in outbox_history when done
    result: object = None       # what outbox_history.result says, parsed; None = not judged
    error_class: str = None     # outbox_history.error_class; None = not judged
    headers: dict = dataclasses.field(default_factory=dict)     # these arrive as they are
    wait_ms: int = 0            # least time between two attempts that the consumer asked for
    sent_us: int = 0            # local time right before COMMIT was sent: nothing arrives earlier


@dataclasses.dataclass(slots=True)
class Arrival:
    """One copy at a destination."""
    message_id: str
    attempt: int
    body: bytes
    at_us: int
    where: str                  # the route that the message itself names
    headers: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Row:
    """A row as it is in the end; `alive` rows are in outbox, others in outbox_history."""
    message_id: str
    alive: bool
    route: str
    state: str
    attempt: int
    body: bytes
    error_class: str
    result: str
    published_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    kind: str       # lost, phantom, early, duplicate, body, header, route, state, result, attempt
    message_id: str
    text: str

    def __str__(self):
        return f"{self.kind}: {self.message_id}: {self.text}"


def now_us():
    """Local wall clock; an arrival must be stamped with this."""
    return time.time_ns() // 1000


def to_us(moment):
    """A DATETIME(6) in UTC, as pymysql gives it, in microseconds; None stays None, and so does a date that is none (a text)."""
    return (moment - EPOCH) // datetime.timedelta(microseconds=1) if isinstance(moment, datetime.datetime) else None


class Ledger:
    def __init__(self):
        self.promised = {}          # message id -> Promise
        self.arrivals = []          # only grows; list.append is atomic
        self.committed = {}         # message id -> due time, by the database
        self.rows = {}              # message id -> [Row]; more than one is a violation
        self.attempts = defaultdict(list)   # message id -> [(attempt, kind, outcome)]
        self._lock = threading.Lock()

    # -- book 1: promised ---------------------------------------------------------

    def promise(self, *promises):
        """Note promises before their COMMIT is sent; a rolled back one stays here and
        must then never arrive."""
        stamp = now_us()
        with self._lock:
            for promise in promises:
                promise.sent_us = promise.sent_us or stamp
                self.promised[promise.message_id] = promise

    def read_committed(self, connection):
        """Ask the database what was committed.  All load must have ended."""
        with connection.cursor() as cursor:
            before = now_us()
            cursor.execute("SELECT UTC_TIMESTAMP(6)")
            database = to_us(cursor.fetchone()[0])
            after = now_us()
            if not before - 1 <= database <= after + 1:
                raise AssertionError(f"the database's clock is not ours: it said {database} between "
                                     f"{before} and {after}; early arrivals cannot be judged")
            cursor.execute("SELECT message_id, due_at FROM ledger")
            self.committed = {message_id: to_us(due) for message_id, due in cursor.fetchall()}

    # -- book 2: arrived ----------------------------------------------------------

    def arrive(self, arrival):
        """Note one copy; any thread."""
        self.arrivals.append(arrival)

    def arrived_ids(self):
        return {arrival.message_id for arrival in list(self.arrivals)}

    # -- book 3: ended ------------------------------------------------------------

    def read_rows(self, connection):
        """Read how everything ended from outbox, outbox_history and outbox_attempts."""
        self.rows, self.attempts = {}, defaultdict(list)
        for alive, table, result in ((True, "outbox", "NULL"), (False, "outbox_history", "result")):
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT message_id, route, state, attempt, payload, error_class,"
                               f" {result}, published_at FROM {table}")
                for message_id, *columns, published in cursor.fetchall():
                    self.rows.setdefault(message_id, []).append(
                        Row(message_id, alive, *columns, to_us(published)))
        with connection.cursor() as cursor:
            cursor.execute("SELECT message_id, attempt, kind, outcome FROM outbox_attempts ORDER BY seq")
            for message_id, *columns in cursor.fetchall():
                self.attempts[message_id].append(tuple(columns))

    # -- the comparison -----------------------------------------------------------

    def violations(self, *, exactly_once=True):
        """All violations, and the number of copies beyond the promised ones.

        exactly_once: no fault happened, so that number must be 0 and attempts count
        up one by one.  Otherwise the caller judges the number."""
        return _Comparison(self, exactly_once).run()

    def check(self, *, duplicates=0):
        """Fail with all violations by kind; duplicates: how many copies too many the
        faults of this test permit.  Returns how many there were."""
        found, extra = self.violations(exactly_once=duplicates == 0)
        if extra > duplicates:
            found.append(Violation("duplicate", "*", f"{extra} copies too many, {duplicates} at most"))
        if found:
            raise AssertionError(report(found, self))
        return extra

    def by_arrival(self):
        """message id -> its arrivals in order of time"""
        copies = defaultdict(list)
        for arrival in sorted(self.arrivals, key=lambda one: one.at_us):
            copies[arrival.message_id].append(arrival)
        return copies


def report(violations, ledger):
    counts = Counter(violation.kind for violation in violations)
    shown = Counter()
    lines = [f"{len(ledger.committed)} messages committed, {len(ledger.arrivals)} copies arrived; "
             + ", ".join(f"{count} {kind}" for kind, count in counts.most_common())]
    for violation in violations:
        shown[violation.kind] += 1
        if shown[violation.kind] <= SHOWN:
            lines.append(f"  {violation}")
    return "\n".join(lines)


class _Comparison:
    """One comparison of the three books."""

    def __init__(self, ledger, exactly_once):
        self.ledger = ledger
        self.exactly_once = exactly_once
        self.found = []
        self.extra = 0

    def run(self):
        copies = self.ledger.by_arrival()
        for message_id, due_us in self.ledger.committed.items():
            promise = self.ledger.promised.get(message_id)
            if promise is None:
                self.say("phantom", message_id, "it is committed, and nobody promised it")
                continue
            self.judge_copies(promise, due_us, copies.get(message_id, ()))
            self.judge_rows(promise, self.ledger.rows.get(message_id, ()))
        for message_id in copies.keys() - self.ledger.committed.keys():
            self.say("phantom", message_id, "it arrived, and its transaction was not committed")
        for message_id in self.ledger.rows.keys() - self.ledger.committed.keys():
            if message_id in self.ledger.promised:
                self.say("phantom", message_id, "it has a row, and its transaction was not committed")
        return self.found, self.extra

    def say(self, kind, message_id, text):
        self.found.append(Violation(kind, message_id, text))

    def judge_copies(self, promise, due_us, copies):
        if len(copies) < promise.copies:
            self.say("lost", promise.message_id,
                     f"on {promise.route}, {len(copies)} of {promise.copies} copies arrived; "
                     f"its row is {self.ends(promise)}")
        self.judge_numbers(promise, copies)
        for copy in copies:
            early_us = max(due_us, promise.sent_us) - copy.at_us
            if early_us > 0:
                self.say("early", promise.message_id,
                         f"attempt {copy.attempt} on {promise.route} came {early_us} us before "
                         + ("its due time" if copy.at_us < due_us else "its COMMIT was sent"))
            self.judge_content(promise, copy)

    def judge_numbers(self, promise, copies):
        """How many there are, and how they are numbered."""
        if promise.copies == 0 and copies:
            self.say("phantom", promise.message_id, f"{len(copies)} copies of what must not arrive")
        else:
            self.extra += max(0, len(copies) - promise.copies)
        numbers = [copy.attempt for copy in copies]
        if self.exactly_once:
            if len(copies) > promise.copies > 0:
                self.say("duplicate", promise.message_id, f"on {promise.route}, attempts {numbers} "
                         f"where {promise.copies} were wanted")
            elif numbers != list(range(1, len(numbers) + 1)):
                self.say("attempt", promise.message_id, f"attempts came as {numbers}")
        for first, second in zip(copies, copies[1:]):
            waited_us = second.at_us - first.at_us
            if second.attempt > first.attempt and waited_us < promise.wait_ms * 1000:
                self.say("early", promise.message_id, f"attempt {second.attempt} came {waited_us} us "
                         f"after the one that asked for {promise.wait_ms} ms")

    def judge_content(self, promise, copy):
        if copy.where != promise.route:
            self.say("route", promise.message_id, f"it was for {promise.route} and went to {copy.where}")
        if copy.body != promise.body:
            self.say("body", promise.message_id, f"{_short(promise.body)} became {_short(copy.body)}")
        for name, value in promise.headers.items():
            if copy.headers.get(name.lower()) != value:
                self.say("header", promise.message_id,
                         f"{name}: {value!r} became {copy.headers.get(name.lower())!r}")

    def ends(self, promise):
        rows = self.ledger.rows.get(promise.message_id)
        return " and ".join(f"{row.state}{' (alive)' if row.alive else ''}" for row in rows) \
            if rows else "gone"

    def judge_rows(self, promise, rows):
        if not promise.end:
            return
        gone = promise.end == "done" and not promise.kept
        if (len(rows) != (0 if gone else 1)) or (rows and (rows[0].alive or rows[0].state != promise.end)):
            self.say("state", promise.message_id, f"on {promise.route}, its row is {self.ends(promise)} "
                     f"instead of {promise.end}{' and gone' if gone else ''}")
            return
        for row in rows:
            self.judge_row(promise, row)

    def judge_row(self, promise, row):
        due_us = self.ledger.committed[promise.message_id]
        if row.body != promise.body:
            self.say("body", promise.message_id, f"its row has {_short(row.body)}, not {_short(promise.body)}")
        if promise.result is not None and row.result != promise.result:
            self.say("result", promise.message_id, f"its row has {row.result!r}, not {promise.result!r}")
        if promise.error_class is not None and row.error_class != promise.error_class:
            self.say("result", promise.message_id,
                     f"its error class is {row.error_class!r}, not {promise.error_class!r}")
        if self.exactly_once and promise.copies and row.attempt != promise.copies:
            self.say("attempt", promise.message_id,
                     f"its row counts {row.attempt} attempts, {promise.copies} were wanted")
        if row.state == "done" and (row.published_us is None or row.published_us < due_us):
            self.say("early", promise.message_id,
                     f"its row of {row.route} counts {row.attempt} attempts and says it was "
                     f"published at {row.published_us}, due was {due_us}")


def _short(body):
    return repr(body) if body is None or len(body) <= 40 else f"{body[:30]!r}... ({len(body)} bytes)"
