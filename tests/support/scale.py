"""How large a programme runs: short in every run, long where time is given.

DUEBOX_TEST_LONG=1 (scripts/test --long) asks for the long ones; a variable of the
programme's own, such as DUEBOX_TEST_KILLS=1000, says the number itself.
"""

import os


def scaled(variable, ordinary, long):
    """The number that the environment asks for."""
    given = os.environ.get(variable)
    if given:
        return int(given)
    return long if os.environ.get("DUEBOX_TEST_LONG") else ordinary
