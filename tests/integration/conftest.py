"""Every test here may ask for a `stage`, or a `remote` one; see tests/support/stage.py."""

from support.stage import remote, stage

__all__ = ["remote", "stage"]
