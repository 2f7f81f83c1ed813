"""Every test here may ask for a `stage`; see tests/support/stage.py."""

from support.stage import stage

__all__ = ["stage"]
