"""Price-level books against a dictionary."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tickwire.book import new_book
from tickwire.book.kernels import CHANGED, DROPPED, UNCHANGED, apply_level, clear, is_crossed, trim
from tickwire.records import Side

LEVELS = st.tuples(st.sampled_from([Side.BID, Side.ASK]), st.integers(1, 40), st.integers(0, 5))


def levels_of(book, symbol, side):
    n = book.counts[symbol, side - 1]
    return list(
        zip(book.prices[symbol, side - 1, :n].tolist(), book.quantities[symbol, side - 1, :n].tolist(), strict=True)
    )


def sorted_levels(model, side):
    """The model's levels as the book keeps them: the best one last (I1)."""
    return sorted(model[side].items(), reverse=side == Side.ASK)


@settings(max_examples=200, deadline=None)
@given(st.lists(LEVELS, max_size=120))
def test_apply_level_any_sequence_equals_a_dictionary(changes):
    """I1, I2: after any changes both sides hold exactly the model's levels, sorted; the other symbol is untouched."""
    book = new_book(2, 64)
    model = {Side.BID: {}, Side.ASK: {}}
    for side, price, quantity in changes:
        before = model[side].get(price, 0)
        result = apply_level(book, 1, int(side), price, quantity)
        assert result == (UNCHANGED if before == quantity else CHANGED)
        if quantity:
            model[side][price] = quantity
        else:
            model[side].pop(price, None)
        for each in (Side.BID, Side.ASK):
            assert levels_of(book, 1, each) == sorted_levels(model, each)
    assert levels_of(book, 0, Side.BID) == []
    bids, asks = model[Side.BID], model[Side.ASK]
    assert is_crossed(book, 1) == bool(bids and asks and max(bids) >= min(asks))


@settings(max_examples=200, deadline=None)
@given(st.lists(LEVELS, max_size=120), st.integers(1, 8))
def test_full_side_gives_up_its_farthest_level(changes, capacity):
    """I3: a full side holds the best levels of what it was given while nothing is removed."""
    book = new_book(1, capacity)
    seen = {Side.BID: {}, Side.ASK: {}}
    for side, price, quantity in changes:
        result = apply_level(book, 0, int(side), price, quantity + 1)
        known = price in seen[side]
        seen[side][price] = quantity + 1
        best = sorted_levels(seen, side)[-capacity:]
        assert (result == DROPPED) == (not known and len(seen[side]) > capacity)
        seen[side] = dict(best)
        assert levels_of(book, 0, side) == best


@settings(max_examples=100, deadline=None)
@given(st.lists(LEVELS, max_size=80), st.integers(1, 20))
def test_trim_keeps_the_best_levels(changes, depth):
    """Trimming leaves the best `depth` levels of each side; clearing leaves none."""
    book = new_book(1, 64)
    for side, price, quantity in changes:
        apply_level(book, 0, int(side), price, quantity)
    before = {side: levels_of(book, 0, side) for side in (Side.BID, Side.ASK)}
    trim(book, 0, depth)
    for side, levels in before.items():
        assert levels_of(book, 0, side) == levels[-depth:]
    clear(book, 0)
    assert levels_of(book, 0, Side.BID) == levels_of(book, 0, Side.ASK) == []
