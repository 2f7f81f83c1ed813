"""docs/BENCHMARKS.md and its charts, from the pieces that scenarios left in build/bench."""

import json

from . import charts
from .machine import SETTINGS
from .scenario import FOLDER, TOP

CAUSES = TOP / "tests" / "bench" / "causes.json"     # {goal: why it is missed}, written by people
HEAD = """\
# Benchmarks

Written by `tests/bench/run`, which measures all of this again: `scripts/build release --tests`, then `tests/bench/run`
(about half an hour on an idle machine of 2 cores; `--list` shows the scenarios, `--only` picks some, `--quick` runs
them small, `--full` large).

All figures of one scenario are from one run on one machine and are meant as ratios. The **raw loop** is the least
that could be done: a cursor SELECT, the client library, a batched DELETE of what was confirmed, with no leases, fences,
routes, retries, limits or metrics. Raw loop and daemon take turns, each on a fresh copy of the same table.
**Lateness** is measured against the moment that was intended before the load began, in a log-linear histogram of 1.6 %
resolution, so a stall cannot hide the tasks behind it. **Every scenario compares the ledger**: each task arrived once,
none before its due time, and nothing that was due is left in the table; otherwise there is no figure.
"""


class Page:
    """A section of the report."""

    def __init__(self, name, folder):
        self.lines = []
        self._name = name
        self._folder = folder
        self._charts = 0

    def text(self, text):
        self.lines += ["", text]

    def table(self, head, rows):
        self.lines += ["", f"| {' | '.join(map(str, head))} |", "|---" + "|---:" * (len(head) - 1) + "|"]
        self.lines += [f"| {' | '.join(map(str, row))} |" for row in rows]

    def bars(self, values, unit):
        self._chart(charts.bars(values, unit), unit)

    def curves(self, series):
        self._chart(charts.curves(series), "lateness")

    def lines_chart(self, series, x_name, y_name):
        self._chart(charts.lines(series, x_name, y_name), y_name)

    def _chart(self, svg, what):
        self._charts += 1
        name = f"{self._name}-{self._charts}.svg"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / name).write_text(svg)
        self.lines += ["", f"![{what}](bench/{name})"]


def pieces(scenarios):
    """[(scenario, piece)] of what was measured, in order."""
    found = []
    for scenario in scenarios:
        path = FOLDER / f"{scenario.name}.json"
        if path.exists():
            found.append((scenario, json.loads(path.read_text())))
    return found


def write(scenarios, target):
    """Write `target`/BENCHMARKS.md and `target`/bench/*.svg; returns the goals that were missed."""
    measured = pieces(scenarios)
    if not measured:
        raise SystemExit("bench: nothing was measured yet; build/bench holds no piece")
    folder = target / "bench"
    for old in folder.glob("*.svg"):
        old.unlink()
    peers = _peers()
    goals = [(scenario, goal) for scenario, piece in measured for goal in piece.get("goals", [])]
    goals += [(None, goal) for goal in peers["goals"]] if peers else []
    lines = [HEAD, *_goal_table(goals), *_machine(measured)]
    for scenario, piece in measured:
        lines += _section(scenario, piece, folder)
    if peers:
        lines += peers["lines"]
    target.mkdir(parents=True, exist_ok=True)
    (target / "BENCHMARKS.md").write_text("\n".join(lines).rstrip() + "\n")
    return [goal for _, goal in goals if not goal["met"]]


def _goal_table(goals):
    causes = json.loads(CAUSES.read_text()) if CAUSES.exists() else {}
    lines = ["## Goals", "", "| Goal | wanted | measured | | cause |", "|---|---:|---:|---|---|"]
    for scenario, goal in goals:
        unit = f" {goal['unit']}" if goal["unit"] else ""
        name = f"[{goal['what']}](#{_anchor(scenario.title)})" if scenario else goal["what"]
        lines.append(f"| {name} | {goal['sign']} {goal['limit']:g}{unit} | {goal['value']:g}{unit} |"
                     f" {'met' if goal['met'] else '**missed**'} | {'' if goal['met'] else causes.get(goal['what'], '')} |")
    return lines


def _anchor(title):
    return "".join(c if c.isalnum() else "-" if c in " -" else "" for c in title.lower())


def _machine(measured):
    machine = measured[0][1]["machine"]
    return ["", "## Machine, versions, settings", "", "| | |", "|---|---|", *[f"| {name} | {text} |" for name, text in machine.items()],
            "", SETTINGS]


def _section(scenario, piece, folder):
    lines = ["", f"## {scenario.title}", "",
             f"`{scenario.name}`, {piece['mode']} size, {piece['at']}, {piece['seconds']:.0f} s; load average before"
             f" {piece['load_before'][0]:.1f}, after {piece['load_after'][0]:.1f}"
             + (f"; commit {piece['commit']}" if piece["commit"] else "") + "."]
    if "error" in piece:
        return [*lines, "", f"**Not measured**: {piece['error']}"]
    page = Page(scenario.name, folder)
    try:
        scenario.show(piece["found"], page)
    except KeyError as missing:
        return [*lines, "", f"**The piece is of another version of this program** (it has no {missing}); measure it again."]
    return lines + page.lines


# -- peers ------------------------------------------------------------------------------


def _peers():
    """What tests/bench/peers/run left in build/bench/peers.json, or None. Ratios are to duebox in that same run."""
    path = FOLDER / "peers.json"
    if not path.exists():
        return None
    listed = json.loads(path.read_text())
    own = next((one["tasks_per_s"] for one in listed if one["peer"] == "duebox"), None)
    lines = ["", "## Peers", "", "No-op handlers, no broker, one MariaDB, one run; duebox with a plugin without a destination."
             " Lateness at 100 a second. Measured by `tests/bench/peers/run`.", "",
             "| | tasks/s | duebox, times that | lateness p50 ms | p99 | max | early | statements/task | lost | twice |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for peer in sorted(listed, key=lambda one: -one["tasks_per_s"]):
        late = peer["lateness_ms"] or {}
        cells = [f"{peer['tasks_per_s']:,}", f"{own / peer['tasks_per_s']:.1f}" if own else "",
                 *[str(late.get(rank, "")) for rank in ("p50", "p99", "max", "early")],
                 "" if peer["statements_per_task"] is None else str(peer["statements_per_task"]),
                 *[str(peer["correct"][what]) for what in ("lost", "duplicates")]]
        lines.append(f"| {peer['peer']} {peer['version']} | {' | '.join(cells)} |")
    lines += ["", *[f"- {peer['peer']}: {peer['settings']}. {peer['note']}".rstrip() for peer in listed]]
    fastest = max((peer["tasks_per_s"] for peer in listed if peer["peer"] != "duebox"), default=0)
    goals = [{"what": "drain, times the fastest peer", "value": round(own / fastest, 1), "sign": ">=", "limit": 10, "unit": "",
              "met": own >= 10 * fastest}] if own and fastest else []
    return {"lines": lines, "goals": goals}
