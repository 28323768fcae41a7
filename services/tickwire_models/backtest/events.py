"""Captures as hftbacktest's events, through the live parser.

Source of the layout and flags: hftbacktest 2.4, `hftbacktest.types.event_dtype` and its documentation, "Data".
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tickwire.records import Instrument, RecordArray, TickKind
from tickwire.records.tick import Side

EVENT = np.dtype(
    [
        ("ev", "<u8"),
        ("exch_ts", "<i8"),
        ("local_ts", "<i8"),
        ("px", "<f8"),
        ("qty", "<f8"),
        ("order_id", "<u8"),
        ("ival", "<i8"),
        ("fval", "<f8"),
    ],
    align=True,
)
EXCH_EVENT = 1 << 31
LOCAL_EVENT = 1 << 30
BUY_EVENT = 1 << 29
SELL_EVENT = 1 << 28
DEPTH_EVENT = 1
TRADE_EVENT = 2
DEPTH_CLEAR_EVENT = 3
DEPTH_SNAPSHOT_EVENT = 4
_SEEN_BY_BOTH = EXCH_EVENT | LOCAL_EVENT
_KINDS = {
    int(TickKind.DELTA): DEPTH_EVENT,
    int(TickKind.TRADE): TRADE_EVENT,
    int(TickKind.SNAPSHOT_LEVEL): DEPTH_SNAPSHOT_EVENT,
    int(TickKind.SNAPSHOT_BEGIN): DEPTH_CLEAR_EVENT,
}


def to_events(chunks: Iterable[RecordArray], instrument: Instrument, symbol_id: int) -> npt.NDArray[np.void]:
    """Return one symbol's ticks as events, in order of receive time.

    `local_ts` is the receive time; `exch_ts` the venue's, made to run forwards. A venue's clock may be seconds ahead
    (one capture's is 1.27 s): it is set back until no event is received before it happened, so that feed latencies
    are what they are beyond the shortest one. Quotes are left out: the book comes from levels.
    """
    ticks = np.concatenate([chunk[chunk["symbol_id"] == symbol_id] for chunk in chunks])
    ticks = ticks[np.isin(ticks["kind"], list(_KINDS))]
    events = np.zeros(len(ticks), EVENT)
    side = np.where(ticks["side"] == Side.BID, BUY_EVENT, np.where(ticks["side"] == Side.ASK, SELL_EVENT, 0))
    kinds = np.zeros(256, np.int64)
    for kind, event in _KINDS.items():
        kinds[kind] = event
    events["ev"] = kinds[ticks["kind"]] | side | _SEEN_BY_BOTH
    local_ns = np.maximum.accumulate(ticks["receive_time_ns"])
    venue_ns = np.where(ticks["venue_time_ns"] > 0, ticks["venue_time_ns"], local_ns)
    events["local_ts"] = local_ns
    lead_ns = max(int((venue_ns - local_ns).max(initial=0)), 0)
    events["exch_ts"] = np.maximum.accumulate(np.minimum(venue_ns - lead_ns, local_ns))
    events["px"] = ticks["price_units"] * float(instrument.price_increment)
    events["qty"] = ticks["quantity_units"] * float(instrument.quantity_increment)
    return events
