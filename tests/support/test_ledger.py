"""The ledger itself, on planted violations: each must be reported, and nothing else."""

import dataclasses
import datetime

import pytest

from support.ledger import EPOCH, Arrival, Ledger, Promise, Row, to_us

DUE = 1_000_000_000


def ledger_of(promises=None):
    """Three messages that all went well: plain, kept with a result, retried once."""
    ledger = Ledger()
    ledger.promise(
        Promise("plain", "r", b"one", headers={"X-a": "1"}, sent_us=DUE - 100),
        Promise("kept", "r", b"t\0wo", kept=True, result='{"n":1}', sent_us=DUE - 100),
        Promise("again", "s", b"three", copies=2, end="dead", error_class="nope", wait_ms=10,
                sent_us=DUE - 100),
        Promise("undone", "r", b"rolled back"),
        Promise("stopped", "r", b"four", copies=0, end="cancelled", sent_us=DUE - 100))
    ledger.committed = {name: DUE for name in ("plain", "kept", "again", "stopped")}
    ledger.arrivals = [
        Arrival("plain", 1, b"one", DUE, "r", {"x-a": "1"}),
        Arrival("kept", 1, b"t\0wo", DUE + 5, "r"),
        Arrival("again", 1, b"three", DUE + 7, "s"),
        Arrival("again", 2, b"three", DUE + 10_007, "s")]
    ledger.rows = {
        "kept": [Row("kept", False, "r", "done", 1, b"t\0wo", None, '{"n":1}', DUE + 4)],
        "again": [Row("again", False, "s", "dead", 2, b"three", "nope", None, DUE + 10_000)],
        "stopped": [Row("stopped", False, "r", "cancelled", 0, b"four", None, None, None)]}
    return ledger


def kinds(ledger, **how):
    found, extra = ledger.violations(**how)
    return [(violation.kind, violation.message_id) for violation in found], extra


def alter(ledger, index, **fields):
    ledger.arrivals[index] = dataclasses.replace(ledger.arrivals[index], **fields)


def alter_row(ledger, message_id, **fields):
    ledger.rows[message_id] = [dataclasses.replace(ledger.rows[message_id][0], **fields)]


def test_nothing_is_reported_when_all_is_well():
    ledger = ledger_of()
    assert kinds(ledger) == ([], 0)
    assert ledger.check() == 0


def test_exactly_at_the_due_time_is_not_early():
    ledger = ledger_of()
    assert ledger.arrivals[0].at_us == ledger.committed["plain"]
    assert kinds(ledger) == ([], 0)


PLANTED = {
    "lost": (lambda l: l.arrivals.pop(0), [("lost", "plain")]),
    "one attempt lost": (lambda l: l.arrivals.pop(3), [("lost", "again")]),
    "only the second attempt": (lambda l: l.arrivals.pop(2),
                                [("lost", "again"), ("attempt", "again")]),
    "early": (lambda l: alter(l, 0, at_us=DUE - 1), [("early", "plain")]),
    "before commit": (lambda l: alter_promise(l, "plain", sent_us=DUE + 1), [("early", "plain")]),
    "retry too soon": (lambda l: alter(l, 3, at_us=DUE + 10_006), [("early", "again")]),
    "rolled back": (lambda l: l.arrive(Arrival("undone", 1, b"rolled back", DUE, "r")),
                    [("phantom", "undone")]),
    "unheard of": (lambda l: l.arrive(Arrival("alien", 1, b"", DUE, "r")), [("phantom", "alien")]),
    "committed unasked": (lambda l: l.committed.update(alien=DUE), [("phantom", "alien")]),
    "row of a rolled back one": (lambda l: l.rows.update(
        undone=[Row("undone", True, "r", "scheduled", 0, b"", None, None, None)]),
        [("phantom", "undone")]),
    "cancelled and fired": (lambda l: l.arrive(Arrival("stopped", 1, b"four", DUE, "r")),
                            [("phantom", "stopped")]),
    "wrong body": (lambda l: alter(l, 0, body=b"on"), [("body", "plain")]),
    "body changed in the row": (lambda l: alter_row(l, "kept", body=b"two"), [("body", "kept")]),
    "wrong header": (lambda l: alter(l, 0, headers={"x-a": "2"}), [("header", "plain")]),
    "header missing": (lambda l: alter(l, 0, headers={}), [("header", "plain")]),
    "wrong route": (lambda l: alter(l, 0, where="s"), [("route", "plain")]),
    "still alive": (lambda l: l.rows.update(
        plain=[Row("plain", True, "r", "scheduled", 1, b"one", None, None, None)]),
        [("state", "plain")]),
    "kept though it should be gone": (lambda l: l.rows.update(
        plain=[Row("plain", False, "r", "done", 1, b"one", None, None, DUE)]), [("state", "plain")]),
    "gone though it should be kept": (lambda l: l.rows.pop("kept"), [("state", "kept")]),
    "two final rows": (lambda l: l.rows["kept"].append(l.rows["kept"][0]), [("state", "kept")]),
    "wrong end": (lambda l: alter_row(l, "again", state="done"), [("state", "again")]),
    "wrong result": (lambda l: alter_row(l, "kept", result='{"n":2}'), [("result", "kept")]),
    "wrong error class": (lambda l: alter_row(l, "again", error_class="x"), [("result", "again")]),
    "wrong count": (lambda l: alter_row(l, "kept", attempt=2), [("attempt", "kept")]),
    "published before due": (lambda l: alter_row(l, "kept", published_us=DUE - 1), [("early", "kept")]),
    "done and never published": (lambda l: alter_row(l, "kept", published_us=None), [("early", "kept")]),
}


def alter_promise(ledger, message_id, **fields):
    ledger.promised[message_id] = dataclasses.replace(ledger.promised[message_id], **fields)


@pytest.mark.parametrize("plant, expected", PLANTED.values(), ids=PLANTED)
def test_a_planted_violation_is_reported(plant, expected):
    ledger = ledger_of()
    plant(ledger)
    assert kinds(ledger) == (expected, 0)
    with pytest.raises(AssertionError, match=expected[0][0]):
        ledger.check()


def test_a_duplicate_is_reported_where_there_was_no_fault():
    ledger = ledger_of()
    ledger.arrive(Arrival("plain", 1, b"one", DUE + 9, "r", {"x-a": "1"}))
    assert kinds(ledger) == ([("duplicate", "plain")], 1)
    with pytest.raises(AssertionError, match="duplicate"):
        ledger.check()


def test_duplicates_are_counted_against_the_bound_where_there_was_a_fault():
    ledger = ledger_of()
    for _ in range(3):
        ledger.arrive(Arrival("plain", 1, b"one", DUE + 9, "r", {"x-a": "1"}))
    assert kinds(ledger, exactly_once=False) == ([], 3)
    assert ledger.check(duplicates=3) == 3
    with pytest.raises(AssertionError, match="3 copies too many, 2 at most"):
        ledger.check(duplicates=2)


def test_a_duplicate_with_another_body_is_never_permitted():
    ledger = ledger_of()
    ledger.arrive(Arrival("plain", 2, b"onE", DUE + 9, "r", {"x-a": "1"}))
    with pytest.raises(AssertionError, match="body: plain"):
        ledger.check(duplicates=10)


def test_a_lost_one_is_not_made_up_for_by_a_duplicate_of_another():
    ledger = ledger_of()
    alter(ledger, 0, message_id="kept", body=b"t\0wo", headers={})
    found, extra = kinds(ledger, exactly_once=False)
    assert (found, extra) == ([("lost", "plain")], 1)


def test_the_report_counts_all_and_shows_some():
    ledger = ledger_of()
    for number in range(20):
        ledger.arrive(Arrival(f"alien{number}", 1, b"", DUE, "r"))
    with pytest.raises(AssertionError) as error:
        ledger.check()
    assert "20 phantom" in str(error.value)
    assert str(error.value).count("phantom: ") == 5


def test_times_of_the_database_lose_nothing():
    moment = datetime.datetime(2026, 3, 4, 5, 6, 7, 891234)
    assert EPOCH + datetime.timedelta(microseconds=to_us(moment)) == moment


class FakeCursor:
    """Answers the two questions of read_committed()."""

    def __init__(self, now):
        self.now = now

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def cursor(self):
        return self

    def execute(self, statement):
        self.answer = [(self.now,)] if "UTC_TIMESTAMP" in statement else \
            [("plain", EPOCH + datetime.timedelta(microseconds=DUE))]

    def fetchone(self):
        return self.answer[0]

    def fetchall(self):
        return self.answer


def test_a_database_with_another_clock_is_refused():
    with pytest.raises(AssertionError, match="clock is not ours"):
        Ledger().read_committed(FakeCursor(datetime.datetime.utcnow() + datetime.timedelta(hours=1)))
