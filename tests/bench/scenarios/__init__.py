"""All scenarios, in the order in which they run and stand in the report."""

from . import arrival, backlog, crowds, drains, herd, idle, isolation, lateness, purge, slow

ALL = [*drains.SCENARIOS, *lateness.SCENARIOS, *arrival.SCENARIOS, *idle.SCENARIOS, *herd.SCENARIOS,
       *isolation.SCENARIOS, *backlog.SCENARIOS, *purge.SCENARIOS, *slow.SCENARIOS, *crowds.SCENARIOS]
