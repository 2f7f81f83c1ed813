"""What was promised against what arrived and how it ended. Knows the contract, and nothing of how duebox keeps it.

A task is judged by its message id. What a transaction committed says the application's own table; what a failover lost
may have arrived or not; a change whose outcome nobody knows makes its task free of the rules that rest on it.
"""

from collections import Counter, defaultdict

from .trouble import ONLY_KAFKA
from .world import CREDIT, LEASE_S

STALL_US = 2 * LEASE_S * 1_000_000
SHOWN = 6


class Judge:
    def __init__(self, world):
        self.world = world
        self.book = world.book
        self.committed = world.committed()
        self.copies = defaultdict(list)
        for number, arrival in enumerate(self.book.arrivals):
            self.copies[arrival.message_id].append((number, arrival))
        self.changes = defaultdict(list)
        for change in world.changes:
            if change.sure is not False:
                self.changes[change.message_id].append(change)
        self.found = []
        self.counts = Counter()
        self.kept = defaultdict(list)       # message id -> [state] of outbox_history

    def say(self, kind, message_id, text):
        self.found.append((kind, message_id, text))

    def run(self):
        """Judges all; returns the counters. Raises AssertionError with what is wrong."""
        for message_id, state in self.world.execute("SELECT message_id, state FROM outbox_history"):
            self.kept[message_id].append(state)
        for message_id, due_us in self.committed.items():
            self.judge(self.book.tasks[message_id], due_us)
        self.judge_strangers()
        self.judge_order()
        self.judge_results()
        self.counts |= {"committed": len(self.committed), "arrived": len(self.book.arrivals),
                        "lost by failover": len(self.book.lost),
                        "changes": sum(change.sure is True for change in self.world.changes)}
        if self.counts["duplicates"] > len(self.world.faults) * CREDIT:
            self.say("duplicate", "*", f"{self.counts['duplicates']} copies too many")
        if self.found:
            raise AssertionError(self.report())
        return self.counts

    def report(self):
        kinds = Counter(kind for kind, _, _ in self.found)
        shown = Counter()
        lines = [f"{dict(self.counts)}; " + ", ".join(f"{count} {kind}" for kind, count in kinds.items())]
        for kind, message_id, text in self.found:
            shown[kind] += 1
            if shown[kind] <= SHOWN:
                lines.append(f"  {kind}: {message_id}: {text}")
        lines.append("faults: " + " ".join(f"{fault.name}[{fault.start_us}..{fault.end_us}]"
                                           for fault in self.world.faults))
        return "\n".join(lines)

    # -- one task ------------------------------------------------------------------------

    def judge(self, task, due_us):
        copies = [arrival for _, arrival in self.copies[task.message_id]]
        changes = self.changes[task.message_id]
        deletes = [change for change in changes if change.verb == "delete"]
        unknown = any(change.sure is None for change in changes)
        if not copies and not deletes:
            self.say("lost", task.message_id, f"route {task.route} wishes {task.wishes}, due {due_us}, never arrived; "
                     f"history {self.kept[task.message_id]}, changes {changes}")
        self.judge_times(task, due_us, copies, changes)
        self.judge_bodies(task, copies, changes, unknown)
        if copies and not changes:
            self.counts["duplicates"] += max(0, len(copies) - (2 if task.wishes == "again" else 1))
            self.judge_stall(task, due_us, copies[0])
        self.judge_end(task, copies, deletes, unknown)

    def judge_times(self, task, due_us, copies, changes):
        dues = [due_us] + [change.due_us for change in changes if change.verb == "due"]
        for copy in copies:
            if copy.at_us < max(min(dues), task.sent_us):
                self.say("early", task.message_id, f"arrived at {copy.at_us}, due {sorted(dues)}, COMMIT sent "
                         f"at {task.sent_us}")
        # A recorded claim leaves no gap: after the answer to a change of a scheduled row, the row is as it says.
        for change in changes if task.route == "h" else ():
            late = [copy for copy in copies if copy.at_us > change.after_us]
            if change.sure and change.verb == "delete" and late and not self.slept(change, late[0]):
                self.say("misreported", task.message_id, f"deleted at {change.after_us}, arrived at {late[0].at_us}")
            if change.sure and change.verb == "due" and change is changes[-1]:
                for copy in late:
                    if copy.at_us < change.due_us and not self.slept(change, copy):
                        self.say("misreported", task.message_id, f"moved to {change.due_us} at {change.after_us}, "
                                 f"arrived at {copy.at_us}")

    def slept(self, change, copy):
        """Whether a daemon was frozen around this: what it had given to its HTTP client leaves when it wakes."""
        return any(fault.name == "freeze_daemon" and fault.start_us < copy.at_us
                   and fault.end_us > change.before_us - STALL_US for fault in self.world.faults)

    def judge_bodies(self, task, copies, changes, unknown):
        bodies = [change for change in changes if change.verb == "body"]
        possible = {task.body} | {change.body for change in bodies}
        for copy in copies:
            if copy.body not in possible:
                self.say("body", task.message_id, f"{copy.body!r} was never written")
        sure = [change for change in bodies if change.sure]
        if sure and copies and not unknown and not any(change.verb == "delete" for change in changes):
            if not any(copy.body == sure[-1].body for copy in copies):
                self.say("change lost", task.message_id, f"{sure[-1]} was reported and never arrived: "
                         f"{[(copy.at_us, copy.body, copy.attempt) for copy in copies]} on {task.route}")

    def judge_stall(self, task, due_us, first):
        if task.route not in "kh":
            return
        start, waited = max(due_us, task.sent_us), first.at_us - max(due_us, task.sent_us)
        excused, at = 0, start
        for fault in self.world.faults:
            if task.route == "h" and fault.name in ONLY_KAFKA:
                continue
            begin, end = max(fault.start_us, at), min(fault.end_us + STALL_US, first.at_us)
            if end > begin:
                excused += end - begin
                at = end
        self.counts["longest stall ms"] = max(self.counts["longest stall ms"], (waited - excused) // 1000)
        if waited - excused > STALL_US:
            self.say("stall", task.message_id, f"on {task.route}, {waited / 1e6:.1f} s late, {excused / 1e6:.1f} s of "
                     "them excused by faults")

    def judge_end(self, task, copies, deletes, unknown):
        states = self.kept[task.message_id]
        sure = any(change.sure for change in deletes)
        if task.route not in "hr" or unknown or (deletes and not sure):
            wanted = None
        elif sure:
            wanted = []         # a person removed it; nothing of it is left
        else:
            wanted = ["dead" if task.wishes == "fail" else "done"]
        if wanted == ["done"] and states == [] and copies and self.refused(task, copies[-1]):
            self.counts["done, and its history refused by the server"] += 1
            return
        if len(states) > 1 or (wanted is not None and states != wanted):
            self.say("state", task.message_id, f"{states} instead of {wanted} on {task.route}, copies at "
                     f"{[copy.at_us for copy in copies]}, wishes {task.wishes}, {deletes}")

    def refused(self, task, copy):
        """Whether the server refused rows of the history when this was settled: they are done without it, and logged.
        What has a result is settled when that comes, which a consumer group without its daemons may hold up."""
        return any(fault.name == "refuse_writes" and copy.at_us < fault.end_us
                   and (task.route == "r" or fault.start_us - STALL_US < copy.at_us) for fault in self.world.faults)

    # -- all of them ---------------------------------------------------------------------

    def judge_strangers(self):
        known = self.committed.keys() | self.book.lost.keys()
        for message_id in self.copies.keys() - known:
            self.say("phantom", message_id, "it arrived, and was never committed")
        for message_id in self.kept.keys() - known:
            if message_id in self.book.tasks:
                self.say("phantom", message_id, "it is in the history, and was never committed")

    def judge_order(self):
        keys = defaultdict(list)
        for message_id, copies in self.copies.items():
            task = self.book.tasks.get(message_id)
            if task and task.key and task.key not in self.book.doubtful and message_id in self.committed:
                keys[task.key].append((copies[0][0], task))
        for key, firsts in keys.items():
            tasks = [task for _, task in sorted(firsts, key=lambda first: first[0])]
            for before, after in zip(tasks, tasks[1:]):
                if before.number > after.number:
                    self.say("order", key, f"{self.told(after)} came first after {self.told(before)}; all: "
                             f"{[task.number for task in tasks]}")

    def told(self, task):
        copies = [(copy.at_us, copy.attempt) for _, copy in self.copies[task.message_id]]
        return (f"number {task.number} ({task.message_id}, committed at {task.sent_us}, copies {copies}, changes "
                f"{self.changes[task.message_id]})")

    def judge_results(self):
        twice = self.world.execute("SELECT message_id, attempt, COUNT(*) FROM outbox_attempts WHERE kind = 'result'"
                                   " AND outcome <> 'progress' GROUP BY message_id, attempt HAVING COUNT(*) > 1")
        for message_id, attempt, count in twice:
            self.say("result", message_id, f"attempt {attempt} has {count} results")
