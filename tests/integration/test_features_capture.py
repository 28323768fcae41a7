"""Rows of a real capture against the plain twin: what venues really send, quotes ahead of depth included."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from reference.features import reference_records
from tickwire.records import Instrument, RowKind, SymbolTable, TickKind
from tickwire_features.offline import rows_from_ticks
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.offline import read_ticks

CAPTURES = Path(__file__).parents[2] / "deploy" / "captures"
EVENTS = 900


@pytest.mark.parametrize(
    ("name", "kind"),
    [("usdm_btcusdt_20240808_first60s.gz", "binance_usdm"), ("spot_btcusdt_20240808_first60s.gz", "binance_spot")],
)
def test_rows_of_a_capture_equal_the_recompute(name, kind):
    """T2, V1, F5: each row of the capture's first events, and its best bid and ask."""
    symbols = SymbolTable(
        [Instrument(venue=kind, name="BTCUSDT", price_increment="0.01", quantity_increment="0.00000001")]
    )
    events = read_ticks([CaptureConfig(path=name, format=kind)], symbols, folder=CAPTURES)
    ticks = np.concatenate(list(islice(events, EVENTS)))
    assert {TickKind.DELTA, TickKind.QUOTE, TickKind.TRADE} <= set(ticks["kind"].tolist())
    records = np.concatenate(list(rows_from_ticks([ticks], 1)))
    twins = reference_records(ticks, 1)
    rows = records[records["kind"] == RowKind.ROW]
    assert len(rows) > EVENTS // 2
    assert records["kind"].tolist() == [twin.kind for twin in twins]
    assert records["bid_price_units"].tolist() == [twin.bid for twin in twins]
    assert records["ask_price_units"].tolist() == [twin.ask for twin in twins]
    expected = np.array([twin.features for twin in twins])
    np.testing.assert_allclose(records["features"], expected, rtol=5e-6, atol=5e-6)
