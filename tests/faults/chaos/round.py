"""One round: start, trouble for some time, quiet, judgement."""

import time

from .judge import Judge
from .operators import operate
from .trouble import ALL, fired
from .world import LEASE_S, World

QUIET_LIMIT_S = 90
CALM_S = 2.2 * LEASE_S      # now and then nothing happens for so long: then nothing may stand still


def run_round(kafka, receiver, folder, seed, *, faults=ALL, seconds=30):
    """Each of the faults once in a random order, then at random until `seconds` are over; returns
    (counters, {name of fault: how often})."""
    with World(kafka, receiver, folder, seed) as world:
        dice = world.dice
        world.run_thread(world.load)
        world.run_thread(operate)
        order = dice.sample(faults, len(faults))
        deadline = time.monotonic() + seconds
        while order or time.monotonic() < deadline:
            fired(world, order.pop() if order else dice.choice(faults), dice)
            world.check_threads()
            world.pause(CALM_S if dice.random() < 0.1 else dice.random())
        world.pause(1)
        world.stop_threads()
        for daemon in world.daemons:
            daemon.wait_ready()
        world.wait_empty(QUIET_LIMIT_S)
        for daemon in world.daemons:
            daemon.stop()
        world.drain()
        counts = Judge(world).run()
        times = {}
        for fault in world.faults:
            times[fault.name] = times.get(fault.name, 0) + 1
        return counts, times
