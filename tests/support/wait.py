"""Waiting for a condition, never for time.

Every wait in the tests goes through wait_until(): it polls a condition, gives
up after a limit, and then says what it waited for and what it last saw.  The
pause between two polls only bounds the cost of polling; no result depends on
its length.

A limit ends a wait that is in vain; it is no statement about time.  What it
should be is known for a machine that has nothing else to do, so a wait lasts
PATIENCE times as long before it fails.  A test that is about time compares
clocks itself.
"""

import time

PATIENCE = 4


class WaitTimeout(AssertionError):
    """The condition did not come true within the limit."""


def wait_until(condition, limit_s, what, *, ignore=(), poll_s=0.01, detail=None):
    """Call `condition` until it returns something true, and return that.

    limit_s: seconds, times PATIENCE, after which WaitTimeout is raised.
    what:    what is waited for, as in "waited 5 s for <what>".
    ignore:  exception classes that mean "not yet"; any other one is raised.
    detail:  called when the wait is in vain; its text ends the message.
    """
    limit_s *= PATIENCE
    started = time.monotonic()
    while True:
        try:
            last = condition()
            if last:
                return last
        except ignore as error:
            last = error
        if time.monotonic() - started >= limit_s:
            message = f"waited {limit_s:g} s for {what}, in vain; last seen: {last!r}"
            raise WaitTimeout(f"{message}\n{detail()}" if detail else message)
        time.sleep(poll_s)
        poll_s = min(poll_s * 1.5, 0.1)
