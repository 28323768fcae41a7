"""The live view of a run."""

from tickwire_ctl.top.command import top

__all__ = ["top"]
