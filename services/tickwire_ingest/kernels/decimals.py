"""Decimal text to integer increments, exactly: never through a float."""

from __future__ import annotations

from numba import int64

from tickwire.kernel import inlined

MALFORMED = -1
"""Not a decimal number (an exponent is not one either)."""
NOT_A_MULTIPLE = -2
"""Finer than the instrument's increment."""
TOO_LARGE = -3
"""Does not fit in 63 bits of increments."""

_LIMIT = 922_337_203_685_477_579  # (2^63 - 1) // 10 - 1: one more digit never overflows
_MINUS, _DOT, _ZERO, _NINE = 45, 46, 48, 57


@inlined
def parse_decimal(text, start, end, decimals, multiple):
    """Convert `text[start:end]` (uint8) to units of `multiple * 10 ** -decimals`.

    Returns:
        (0, units), or (`MALFORMED`, `NOT_A_MULTIPLE` or `TOO_LARGE`, 0).
    """
    i = start
    negative = i < end and text[i] == _MINUS
    if negative:
        i += 1
    value = int64(0)
    digits = 0
    places = -1  # decimals seen, -1 before the point
    while i < end:
        character = int64(text[i])
        i += 1
        if character == _DOT:
            if places >= 0:
                return int64(MALFORMED), int64(0)
            places = 0
            continue
        if character < _ZERO or character > _NINE:
            return int64(MALFORMED), int64(0)
        digits += 1
        if places >= 0:
            if places == decimals:
                if character != _ZERO:
                    return int64(NOT_A_MULTIPLE), int64(0)
                continue
            places += 1
        if value > _LIMIT:
            return int64(TOO_LARGE), int64(0)
        value = value * 10 + (character - _ZERO)
    if digits == 0:
        return int64(MALFORMED), int64(0)
    for _ in range(max(places, 0), decimals):
        if value > _LIMIT:
            return int64(TOO_LARGE), int64(0)
        value *= 10
    if value % multiple != 0:
        return int64(NOT_A_MULTIPLE), int64(0)
    units = value // multiple
    return int64(0), -units if negative else units
