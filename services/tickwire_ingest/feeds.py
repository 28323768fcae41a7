"""Which feed reads which format."""

from __future__ import annotations

from pathlib import Path

from tickwire_ingest.binance import BinanceFeed
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.desk import Desk
from tickwire_ingest.feed import Complaint, Feed
from tickwire_ingest.kraken import KrakenFeed


def make_feed(config: CaptureConfig, desk: Desk, path: Path, complain: Complaint) -> Feed:
    """Return the feed of a capture's format."""
    if config.format == "kraken":
        return KrakenFeed(desk, path, complain, depth=config.depth)
    return BinanceFeed(desk, path, complain, futures=config.format == "binance_usdm")
