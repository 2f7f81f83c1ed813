"""What a scenario is, and what a measurement may say."""

import dataclasses
import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FOLDER = TOP / "build" / "bench"
SIZES = ("quick", "default", "full")


class BenchError(RuntimeError):
    """A measurement that is void: something was lost, doubled, early or left, or did not happen in time."""


@dataclasses.dataclass(frozen=True)
class Goal:
    """A figure to reach. limit: the measured value is to be >= or <= it, as `sign` says."""
    what: str
    value: float
    sign: str
    limit: float
    unit: str = ""

    @property
    def met(self):
        return self.value >= self.limit if self.sign == ">=" else self.value <= self.limit

    def piece(self):
        return {**dataclasses.asdict(self), "met": self.met}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """run(bench, sizes) measures and returns what it found, as JSON holds it; goals(found) judges it; show(found, page)
    writes a section of the report. sizes, seconds: by the names in SIZES; seconds is how long it takes, about."""
    name: str
    title: str
    run: object
    sizes: dict
    seconds: dict
    show: object
    goals: object = lambda found: []


def say(text=""):
    print(text, flush=True)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def preset_folder():
    """The build whose programs are measured."""
    from support.daemon import preset_folder as folder
    return folder()


def tool(name):
    return preset_folder() / "tests" / name


def use_support():
    """Make tests/support importable, and the build that is asked for, or the release build, the one that is measured."""
    sys.path.insert(0, str(TOP / "tests"))
    os.environ.setdefault("DUEBOX_BUILD_DIR", str(TOP / "build" / "release"))
