"""Counting by symbol in the statistics segment; the scheduler thread is its only writer."""

from __future__ import annotations

from tickwire.kernel import inlined
from tickwire.runtime.kernels import bump, set_gauge
from tickwire_inference.stats import N_SYMBOL_COLUMNS


@inlined
def count_symbol(per_symbol, symbol, column):
    """Add 1 to one of a symbol's values."""
    bump(per_symbol, symbol * N_SYMBOL_COLUMNS + column, 1)


@inlined
def set_symbol(per_symbol, symbol, column, value):
    """Set one of a symbol's values."""
    set_gauge(per_symbol, symbol * N_SYMBOL_COLUMNS + column, value)
