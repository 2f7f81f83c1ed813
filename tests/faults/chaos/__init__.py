"""The chaos programme: two daemons, four routes, an application, consumers and operators, while servers, daemons,
connections, locks and rights fail at random; and a judge that knows nothing of duebox but its contract.

world.py    what runs: a primary with a lagging replica, the broker, the receiver, the daemons, the load
operators.py people's UPDATE and DELETE at any moment
trouble.py  the faults, one class of moment each
judge.py    what was promised against what arrived and how it ended
run         rounds of it from the command line, with counters that add up over several runs
"""
