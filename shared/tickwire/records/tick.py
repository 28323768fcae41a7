"""Ticks: one normalised market-data event each, from ingest to features.

Prices and quantities are int64 multiples of the instrument's increments. A tick that carries none leaves them 0.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from tickwire.records.layout import slot_dtype


class TickKind(IntEnum):
    """What a tick says."""

    SNAPSHOT_BEGIN = 1
    """A complete book follows; levels of the old one are void."""
    SNAPSHOT_LEVEL = 2
    SNAPSHOT_END = 3
    """The book is complete and valid from here on; `venue_sequence` is the snapshot's."""
    DELTA = 4
    """One level's new quantity, 0 removes the level."""
    QUOTE = 5
    """Best bid (`price_units`, `quantity_units`) and best ask (`ask_*`); `venue_sequence` is its update id."""
    ORDER_ADD = 6
    ORDER_MODIFY = 7
    """New price and remaining quantity of order `order_id`."""
    ORDER_CANCEL = 8
    """`quantity_units` is what remains; 0 removes the order."""
    TRADE = 9
    """A print; `side` is the aggressor's (BID = buyer). Never changes depth."""
    STATUS = 10
    """Trading status, see `TradingStatus` in `status`."""
    GAP = 11
    """Events are missing (or the state is not trusted): the symbol's book is invalid until the next SNAPSHOT_END."""
    BARRIER = 12
    """Closed-loop replay: `barrier_id` is to be forwarded after all earlier work. No symbol."""
    HEARTBEAT = 13
    """The feed is alive. No symbol."""


class TickFlag(IntFlag):
    """Bits of `flags`."""

    EVENT_END = 1
    """Last tick of one venue message: the book is consistent here."""


class Side(IntEnum):
    """Side of the book; for a trade the aggressor's."""

    NONE = 0
    BID = 1
    ASK = 2


class TradingStatus(IntEnum):
    """Value of `status` in a STATUS tick."""

    UNKNOWN = 0
    TRADING = 1
    HALTED = 2
    AUCTION = 3
    CLOSED = 4


class GapReason(IntEnum):
    """Value of `status` in a GAP tick: why the book is not to be trusted."""

    START = 1
    """Ingest (re)started: nothing is known yet."""
    SEQUENCE = 2
    """The venue's sequence broke."""
    CHECKSUM = 3
    """The venue's checksum does not match."""
    CORRUPT = 4
    """A message could not be read."""
    RESYNC = 5
    """A consumer attached anew or was evicted; a snapshot follows at once."""
    DROPPED = 6
    """Ingest had to drop events because features was slow."""
    DISCONNECTED = 7
    LAP = 8
    """A capture's replay starts over."""


TICK = slot_dtype(
    128,
    [
        ("symbol_id", "<u4"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("side", "u1"),
        ("status", "u1"),
        ("venue_sequence", "<u8"),  # the exchange's number: update id, trade id
        ("price_units", "<i8"),
        ("quantity_units", "<i8"),
        ("ask_price_units", "<i8"),
        ("ask_quantity_units", "<i8"),
        ("order_id", "<u8"),
        ("barrier_id", "<u8"),
        ("event_sequence", "<u8"),  # number of the venue message in this run of ingest, from 1
        ("venue_time_ns", "<i8"),  # 0 where the venue sends none
        ("receive_time_ns", "<i8"),  # wall clock at the socket, the capture's own in replay
        ("receive_mono_ns", "<i8"),  # monotonic at the socket, time of emission in replay
    ],
)
"""dtype of one tick, 128 bytes."""
