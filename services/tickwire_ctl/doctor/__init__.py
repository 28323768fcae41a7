"""Examination of a host."""

from tickwire_ctl.doctor.command import doctor

__all__ = ["doctor"]
