"""Lists of quoted decimals, as venues send them, straight from JSON text to ticks.

[["61800.20","2.507"],["61799.90","0.010"]]                     Binance
[["56218.30000","0.15000000","1618678117.243818","r"], ...]     Kraken, with the time of the level's last change
"""

from __future__ import annotations

from numba import from_dtype, int64, types, uint8

from tickwire.kernel import inlined, kernel
from tickwire.records import TICK, TickKind
from tickwire_ingest.kernels.decimals import MALFORMED, parse_decimal

TICK_ARRAY = from_dtype(TICK)[::1]
TEXT = types.Array(uint8, 1, "C", readonly=True)

FULL = -4
"""More levels than the tick buffer holds."""

# Columns of an instrument's scale, int64 (4,).
PRICE_DECIMALS, PRICE_MULTIPLE, QUANTITY_DECIMALS, QUANTITY_MULTIPLE = 0, 1, 2, 3

_QUOTE, _COMMA, _OPEN, _CLOSE, _SPACE = 34, 44, 91, 93, 32
_NANOSECOND_DECIMALS = 9
_QUOTE_KIND = int(TickKind.QUOTE)


@inlined
def skip_space(text, i):
    """Return the index of the next character that is not white space."""
    while i < len(text) and text[i] <= _SPACE:
        i += 1
    return i


@inlined
def quoted(text, i):
    """Return the bounds of the quoted text that starts at `i` and the index behind it; (-1, -1, i) if there is none."""
    i = skip_space(text, i)
    if i >= len(text) or text[i] != _QUOTE:
        return -1, -1, i
    start = i + 1
    end = start
    while end < len(text) and text[end] != _QUOTE:
        end += 1
    if end == len(text):
        return -1, -1, i
    return start, end, end + 1


@kernel(int64(TICK_ARRAY, int64, TEXT, int64, int64, int64, int64[::1], int64[::1]))
def levels_to_ticks(ticks, n, text, symbol, kind, side, scale, newest_ns):
    """Append one tick a level to `ticks[n:]`.

    Args:
        ticks: Tick buffer.
        n: Ticks in it.
        text: A JSON array of arrays of quoted text: price, quantity, optionally time in seconds and a flag.
        symbol: `symbol_id`.
        kind: `TickKind` of the ticks.
        side: `Side` of the ticks.
        scale: The instrument's increments, see the columns above.
        newest_ns: Shape (1,); raised to the newest time in the list.

    Returns:
        Ticks in the buffer, or a negative reason (`FULL`, or of `parse_decimal`).
    """
    i = skip_space(text, 0)
    if i >= len(text) or text[i] != _OPEN:
        return int64(MALFORMED)
    i = skip_space(text, i + 1)
    if i < len(text) and text[i] == _CLOSE:
        return n
    while True:
        if i >= len(text) or text[i] != _OPEN:
            return int64(MALFORMED)
        if n == len(ticks):
            return int64(FULL)
        start, end, i = quoted(text, i + 1)
        if start < 0:
            return int64(MALFORMED)
        reason, price = parse_decimal(text, start, end, scale[PRICE_DECIMALS], scale[PRICE_MULTIPLE])
        if reason < 0:
            return reason
        i = skip_space(text, i)
        if i >= len(text) or text[i] != _COMMA:
            return int64(MALFORMED)
        start, end, i = quoted(text, i + 1)
        if start < 0:
            return int64(MALFORMED)
        reason, quantity = parse_decimal(text, start, end, scale[QUANTITY_DECIMALS], scale[QUANTITY_MULTIPLE])
        if reason < 0:
            return reason
        if price <= 0 or quantity < 0:
            return int64(MALFORMED)
        i = skip_space(text, i)
        if i < len(text) and text[i] == _COMMA:
            start, end, i = quoted(text, i + 1)
            reason, time_ns = parse_decimal(text, start, end, _NANOSECOND_DECIMALS, 1)
            if start < 0 or reason < 0:
                return int64(MALFORMED)
            newest_ns[0] = max(newest_ns[0], time_ns)
            while i < len(text) and text[i] != _CLOSE:
                i += 1
        if i >= len(text) or text[i] != _CLOSE:
            return int64(MALFORMED)
        tick = ticks[n]
        tick.symbol_id = symbol
        tick.kind = kind
        tick.side = side
        tick.status = 0
        tick.price_units = price
        tick.quantity_units = quantity
        tick.ask_price_units = 0
        tick.ask_quantity_units = 0
        n += 1
        i = skip_space(text, i + 1)
        if i < len(text) and text[i] == _CLOSE:
            return n
        if i >= len(text) or text[i] != _COMMA:
            return int64(MALFORMED)
        i = skip_space(text, i + 1)


@kernel(int64(TICK_ARRAY, int64, TEXT, int64, int64[::1]))
def quote_to_tick(ticks, n, text, kind, scale):
    """Fill prices and quantities of `ticks[n]` from quoted decimals in a row.

    Args:
        ticks: Tick buffer.
        n: Index of the tick.
        text: `"price""quantity"` and, for a quote, `"ask price""ask quantity"` behind them.
        kind: TRADE (2 numbers) or QUOTE (4 numbers).
        scale: The instrument's increments.

    Returns:
        0, or a negative reason.
    """
    tick = ticks[n]
    i = 0
    for k in range(4 if kind == _QUOTE_KIND else 2):
        start, end, i = quoted(text, i)
        if start < 0:
            return int64(MALFORMED)
        column = PRICE_DECIMALS if k % 2 == 0 else QUANTITY_DECIMALS
        reason, units = parse_decimal(text, start, end, scale[column], scale[column + 1])
        if reason < 0:
            return reason
        if units < 0:
            return int64(MALFORMED)
        if k == 0:
            tick.price_units = units
        elif k == 1:
            tick.quantity_units = units
        elif k == 2:
            tick.ask_price_units = units
        else:
            tick.ask_quantity_units = units
    return int64(0)
