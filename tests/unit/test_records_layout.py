"""Record layouts and the symbol table."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickwire.errors import ConfigError
from tickwire.records import PREDICTION, ROW, SIGNAL, TICK, Instrument, SymbolTable, as_words, schema_hash, slot_dtype
from tickwire.topology import RINGS

RECORDS = {"tick": TICK, "row": ROW, "prediction": PREDICTION, "signal": SIGNAL}
BTC = Instrument(venue="binance_spot", name="BTCUSDT", price_increment="0.01", quantity_increment="0.00001")
ADA = Instrument(venue="kraken", name="ADA/XBT", price_increment="0.000000001", quantity_increment="0.00000001")


def leaves(dtype: np.dtype) -> list[tuple[str, np.dtype, int]]:
    return [(name, field[0].base, int(np.prod(field[0].shape))) for name, field in dtype.fields.items()]


@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS.keys())
@given(seed=st.integers(0, 2**32 - 1))
def test_record_distinct_values_survive_as_words(dtype, seed):
    """Every field keeps its own value through the word view that kernels copy: no field overlaps another."""
    random = np.random.default_rng(seed)
    record = np.zeros(1, dtype=dtype)
    written = {}
    for name, base, count in leaves(dtype):
        if base.kind == "S":
            value = random.integers(1, 128, base.itemsize, dtype=np.uint8).tobytes()
        elif base.kind == "f":
            value = random.standard_normal(count).astype(base)
        else:
            value = random.integers(np.iinfo(base).min, np.iinfo(base).max, count, dtype=base, endpoint=True)
        record[name][0] = value if count > 1 else (value if base.kind == "S" else value[0])
        written[name] = value
    copy = np.zeros(1, dtype=dtype)
    as_words(copy)[:] = as_words(record)
    for name, value in written.items():
        assert np.array_equal(np.ravel(copy[name][0]), np.ravel(value)), name


@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS.keys())
def test_record_every_field_is_aligned_and_in_place(dtype):
    """8-byte words are 8-byte aligned, the ring's words come first, nothing is padded in secret."""
    assert dtype.names[:2] == ("sequence", "publish_mono_ns")
    assert dtype.itemsize % 64 == 0
    end = 0
    for name, field in dtype.fields.items():
        assert field[1] == end, name
        assert field[1] % min(field[0].base.itemsize, 8) == 0 or field[0].base.kind == "S", name
        end = field[1] + field[0].itemsize
    assert end == dtype.itemsize


def test_schema_hash_any_difference_changes_it():
    """Name, type, order, extra text: each is part of the hash."""
    base = slot_dtype(64, [("a", "<u8"), ("b", "<i8")])
    others = [
        slot_dtype(64, [("a", "<u8"), ("c", "<i8")]),
        slot_dtype(64, [("a", "<u8"), ("b", "<u8")]),
        slot_dtype(64, [("b", "<i8"), ("a", "<u8")]),
        slot_dtype(128, [("a", "<u8"), ("b", "<i8")]),
    ]
    hashes = {schema_hash(dtype) for dtype in [base, *others]} | {schema_hash(base, "x")}
    assert len(hashes) == 6


def test_slot_dtype_misaligned_or_too_large_is_refused():
    """A layout that would tear or overflow never comes to be."""
    with pytest.raises(ValueError, match="aligned"):
        slot_dtype(64, [("a", "<u4"), ("b", "<u8")])
    with pytest.raises(ValueError, match="multiple of 64"):
        slot_dtype(64, [("a", "<u8", (7,))])
    with pytest.raises(ValueError, match="multiple of 64"):
        slot_dtype(100, [("a", "<u8")])


def test_topology_rings_fit_the_layout():
    """The four rings have the sizes of the design and differ in their schema."""
    assert {spec.name: (spec.slot_bytes, spec.capacity) for spec in RINGS} == {
        "ticks": (128, 65_536),
        "rows": (320, 8_192),
        "predictions": (256, 8_192),
        "signals": (256, 65_536),
    }
    assert len({spec.schema_hash for spec in RINGS}) == 4


def test_symbol_table_round_trip_keeps_ids_and_hash():
    """What one process writes another reads: same ids, same increments, same hash."""
    table = SymbolTable([BTC, ADA])
    again = SymbolTable.decode(table.encode())
    assert list(again) == list(table)
    assert again.hash == table.hash
    assert again.id_of("kraken:ADA/XBT") == 1
    assert again.id_of("kraken:XBT/USD") is None
    assert again[0].price(6_183_763) == Decimal("61837.63")
    assert again[1].quantity(5) == Decimal("0.00000005")


def test_symbol_table_order_is_part_of_the_hash():
    """Ids are positions: another order is another table."""
    assert SymbolTable([BTC, ADA]).hash != SymbolTable([ADA, BTC]).hash


def test_symbol_table_empty_or_repeated_is_refused():
    """No symbols and the same symbol twice are configuration errors that say so."""
    with pytest.raises(ConfigError, match="must be 1 to"):
        SymbolTable([])
    with pytest.raises(ConfigError, match="'kraken:ADA/XBT' is given twice"):
        SymbolTable([ADA, BTC, ADA])
    with pytest.raises(ConfigError, match="symbol table"):
        SymbolTable.decode(b"[{}]")


@pytest.mark.parametrize("increment", ["0", "-1", "NaN", "Infinity", "abc", ""])
def test_instrument_bad_increment_is_refused(increment):
    """An increment is a positive decimal."""
    with pytest.raises(ValueError, match="price_increment must be a positive decimal"):
        Instrument(venue="v", name="n", price_increment=increment, quantity_increment="1")
