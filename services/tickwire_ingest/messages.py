"""Venue messages as msgspec structs. Numbers in quotes stay raw text for the decimal kernels."""

from __future__ import annotations

import msgspec
from msgspec import Raw, field

_NOTHING = Raw(b"")


class BinanceData(msgspec.Struct, gc=False):
    """`data` of a combined-stream message: depthUpdate, trade or bookTicker."""

    symbol: str = field(name="s")
    kind: str = field(name="e", default="bookTicker")
    """Spot's bookTicker has no `e`."""
    event_time_ms: int = field(name="E", default=0)
    first: int = field(name="U", default=0)
    last: int = field(name="u", default=0)
    previous: int = field(name="pu", default=0)
    bids: Raw = field(name="b", default=_NOTHING)
    """Levels of a depthUpdate, the price of a bookTicker."""
    asks: Raw = field(name="a", default=_NOTHING)
    bid_quantity: Raw = field(name="B", default=_NOTHING)
    ask_quantity: Raw = field(name="A", default=_NOTHING)
    trade_id: int = field(name="t", default=0)
    price: Raw = field(name="p", default=_NOTHING)
    quantity: Raw = field(name="q", default=_NOTHING)
    buyer_is_maker: bool = field(name="m", default=False)
    origin: str = field(name="X", default="MARKET")
    """Futures trades: MARKET, INSURANCE_FUND, ADL, NA."""


class BinanceMessage(msgspec.Struct, gc=False):
    """A line of a Binance capture: a stream's message, or a REST depth snapshot, which has no stream."""

    stream: str = ""
    data: BinanceData | None = None
    last_update_id: int | None = field(name="lastUpdateId", default=None)
    bids: Raw = _NOTHING
    asks: Raw = _NOTHING
    event_time_ms: int = field(name="E", default=0)


class KrakenBook(msgspec.Struct, gc=False):
    """The object inside a Kraken book message: a snapshot (`as`, `bs`) or one side's or both sides' update."""

    snapshot_asks: Raw = field(name="as", default=_NOTHING)
    snapshot_bids: Raw = field(name="bs", default=_NOTHING)
    asks: Raw = field(name="a", default=_NOTHING)
    bids: Raw = field(name="b", default=_NOTHING)
    checksum: str = field(name="c", default="")


class KrakenEvent(msgspec.Struct, gc=False):
    """Kraken's messages that are objects: heartbeat, systemStatus, subscriptionStatus."""

    event: str


decode_binance = msgspec.json.Decoder(BinanceMessage).decode
decode_kraken_array = msgspec.json.Decoder(list[Raw]).decode
decode_kraken_book = msgspec.json.Decoder(KrakenBook).decode
decode_kraken_event = msgspec.json.Decoder(KrakenEvent).decode
decode_text = msgspec.json.Decoder(str).decode
