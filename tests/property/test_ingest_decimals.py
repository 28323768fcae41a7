"""Decimal text to increments against `decimal.Decimal`, and level lists of any shape."""

from __future__ import annotations

import zlib
from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tickwire.book import new_book
from tickwire.book.kernels import apply_level
from tickwire.records import TICK, Instrument, Side, TickKind
from tickwire_ingest.desk import scale_of
from tickwire_ingest.kernels.checksum import book_checksum
from tickwire_ingest.kernels.decimals import MALFORMED, NOT_A_MULTIPLE, TOO_LARGE
from tickwire_ingest.kernels.levels import FULL, levels_to_ticks

INCREMENTS = st.sampled_from(["1", "10", "0.1", "0.01", "0.5", "0.25", "0.00000001", "0.000000001"])


def read(text: bytes, increment: str = "0.01", room: int = 16):
    """Ticks (or the reason) of a level list with the same increment for price and quantity."""
    instrument = Instrument(venue="v", name="n", price_increment=increment, quantity_increment=increment)
    ticks = np.zeros(room, dtype=TICK)
    newest = np.zeros(1, dtype=np.int64)
    n = levels_to_ticks(
        ticks, 0, np.frombuffer(text, np.uint8), 3, TickKind.DELTA, Side.BID, scale_of(instrument), newest
    )
    return (n, ticks[:n], int(newest[0])) if n >= 0 else (n, None, 0)


@settings(max_examples=500, deadline=None)
@given(st.decimals(min_value=Decimal("0.000000001"), max_value=Decimal(10) ** 12, places=9), INCREMENTS)
def test_decimal_text_is_exact_or_refused(value, increment):
    """A multiple of the increment gives exactly its number; anything finer or larger is refused by name."""
    text = f"{value:f}"
    n, ticks, _ = read(f'[["{text}","0"]]'.encode(), increment)
    units = value / Decimal(increment)
    digits = len(text.replace(".", "").lstrip("0"))
    if units == units.to_integral_value():
        if n >= 0:
            assert ticks["price_units"][0] == int(units)
        else:
            assert n == TOO_LARGE
            assert digits > 17
    else:
        assert n in (NOT_A_MULTIPLE, TOO_LARGE)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_level_list_any_bytes_end_in_levels_or_a_reason(text):
    """Fuzzed text never crashes, never reads past its end, never gives a level that is not there."""
    n, ticks, _ = read(text)
    assert n in (MALFORMED, NOT_A_MULTIPLE, TOO_LARGE, FULL) or len(ticks) == n


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_level_list_any_damage_is_noticed_or_harmless(data):
    """Cutting a good list anywhere is always noticed: no partial list passes as a whole one."""
    levels = data.draw(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)), min_size=1, max_size=5))
    text = "[" + ",".join(f'["{p / 100:.2f}","{q / 100:.2f}"]' for p, q in levels) + "]"
    n, ticks, _ = read(text.encode())
    assert n == len(levels)
    assert ticks["price_units"].tolist() == [p for p, _ in levels]
    assert ticks["quantity_units"].tolist() == [q for _, q in levels]
    assert set(ticks["symbol_id"].tolist()) == {3}
    cut = data.draw(st.integers(0, len(text) - 1))
    assert read(text[:cut].encode())[0] == MALFORMED


def test_level_list_forms_of_both_venues_are_read():
    """Empty lists, white space, Kraken's time and flag."""
    assert read(b"[]")[0] == 0
    assert read(b' [ [ "1.00" , "2.00" ] , ["3.00","0.00"] ] ')[1]["price_units"].tolist() == [100, 300]
    n, ticks, newest = read(b'[["1.00","2.00","1618678123.481570"],["1.50","0.00","1618678124.000001","r"]]')
    assert n == 2
    assert ticks["quantity_units"].tolist() == [200, 0]
    assert newest == 1_618_678_124_000_001_000


def test_level_list_bad_values_have_their_reason():
    """Negative quantities, zero prices, exponents, two points, missing quotes and too many levels."""
    for text in (
        b'[["1","-1"]]',
        b'[["0","1"]]',
        b'[["1e5","1"]]',
        b'[["1.2.3","1"]]',
        b"[[1,2]]",
        b'[["","1"]]',
        b"{}",
    ):
        assert read(text)[0] == MALFORMED, text
    assert read(b'[["1.001","1"]]')[0] == NOT_A_MULTIPLE
    assert read(b'[["99999999999999999999","1"]]')[0] == TOO_LARGE
    assert read(b'[["1","1"],["2","1"],["3","1"]]', room=2)[0] == FULL


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.integers(1, 10**12), st.integers(1, 10**14), max_size=14),
    st.dictionaries(st.integers(1, 10**12), st.integers(1, 10**14), max_size=14),
)
def test_kraken_checksum_any_book_equals_zlib_over_its_text(bids, asks):
    """B5: ten best asks, then bids, digits without leading zeros; a side with fewer levels gives fewer."""
    book = new_book(1, 32)
    for side, levels in ((Side.BID, bids), (Side.ASK, asks)):
        for price, quantity in levels.items():
            apply_level(book, 0, int(side), price, quantity)
    text = "".join(f"{p}{q}" for p, q in sorted(asks.items())[:10])
    text += "".join(f"{p}{q}" for p, q in sorted(bids.items(), reverse=True)[:10])
    assert book_checksum(book, 0) == zlib.crc32(text.encode())
