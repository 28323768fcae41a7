"""Real captures, and captures with damage, through the whole of ingest without rings."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tickwire.book.kernels import is_crossed
from tickwire.errors import FeedError
from tickwire.records import GapReason, Instrument, SymbolTable, TickFlag, TickKind
from tickwire.runtime.config import convert, read_document
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.desk import Desk
from tickwire_ingest.feeds import make_feed
from tickwire_ingest.merge import Source, check_sources, merge
from tickwire_ingest.offline import read_ticks
from tickwire_ingest.stats import INGEST_STATS

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "deploy" / "captures"
RECORDED = ROOT.parent / "shared" / "data"
USDM = CaptureConfig(path="usdm_btcusdt_20240808_first60s.gz", format="binance_usdm")
SPOT = CaptureConfig(path="spot_btcusdt_20240808_first60s.gz", format="binance_spot")
KRAKEN = CaptureConfig(path="KRAKEN.ws.50.0.gz", format="kraken")


def demo_symbols() -> SymbolTable:
    path = ROOT / "deploy" / "config" / "demo.toml"
    return SymbolTable(convert(path, "symbols", read_document(path)[0]["symbols"], list[Instrument]))


class Run:
    """One capture through one feed, everything kept."""

    def __init__(self, path: Path, config: CaptureConfig):
        self.ticks: list[np.ndarray] = []
        self.complaints: list[tuple[str, str]] = []
        self.desk = Desk(demo_symbols(), lambda ticks, n: self.ticks.append(ticks[:n].copy()))
        feed = make_feed(config, self.desk, path, lambda place, reason: self.complaints.append((place, reason)))
        self.crossed = 0
        for arrival in merge([Source(0, path, config)], "start"):
            feed.take(arrival.frame)
            self.crossed += sum(is_crossed(self.desk.book, i) for i, valid in enumerate(self.desk.valid) if valid)

    def count(self, name: str) -> int:
        return int(self.desk.counters[INGEST_STATS.counter(name)])

    def of_kind(self, kind: TickKind) -> np.ndarray:
        everything = np.concatenate(self.ticks)
        return everything[everything["kind"] == kind]


def rewrite(tmp_path: Path, source: CaptureConfig, change) -> Path:
    """A copy of a capture with its lines changed."""
    lines = gzip.decompress((CAPTURES / source.path).read_bytes()).splitlines(keepends=True)
    path = tmp_path / "capture.txt"
    path.write_bytes(b"".join(change(lines)))
    return path


@pytest.mark.parametrize(
    ("config", "deltas", "trades", "snapshots"),
    [(USDM, 1144, 2501, 1), (SPOT, 597, 1381, 1), (KRAKEN, 4269, 0, 10)],
    ids=["usdm", "spot", "kraken"],
)
def test_capture_every_message_is_read_and_no_book_crosses(config, deltas, trades, snapshots):
    """The counts of a decoding by hand: every depth message applied, every Kraken checksum right, nothing lost."""
    run = Run(CAPTURES / config.path, config)
    assert (run.count("deltas"), run.count("trades"), run.count("snapshots")) == (deltas, trades, snapshots)
    assert run.complaints == []
    assert run.count("gaps") == run.count("checksum_failures") == run.count("gap_ticks") == 0
    assert run.crossed == 0
    assert run.count("ticks") == sum(map(len, run.ticks))


@pytest.mark.parametrize(
    ("name", "kind", "deltas", "trades"),
    [
        ("usdm_btcusdt_20240808.gz", "binance_usdm", 6551, 21313),
        ("spot_btcusdt_20240808.gz", "binance_spot", 3451, 9757),
    ],
)
def test_whole_recording_matches_its_documented_counts(name, kind, deltas, trades):
    """The full recordings, where they are: at most the deltas before the snapshot are not applied."""
    path = RECORDED / "binance" / name
    if not path.is_file():
        pytest.skip(f"{path} is not beside this checkout")
    run = Run(path, CaptureConfig(path=name, format=kind))
    assert deltas - 12 <= run.count("deltas") + run.count("stale_deltas") <= deltas
    assert run.count("trades") == trades
    assert run.count("gaps") == 0
    assert run.complaints == []


def test_events_are_whole_and_end_once():
    """Each venue message becomes one event: one symbol, one sequence number, EVENT_END on the last tick only."""
    run = Run(CAPTURES / KRAKEN.path, KRAKEN)
    for number, event in enumerate(run.ticks, 1):
        assert set(event["event_sequence"].tolist()) == {number}
        assert len(set(event["symbol_id"].tolist())) == 1
        assert (event["flags"][:-1] == 0).all()
        assert event["flags"][-1] == TickFlag.EVENT_END


def test_trades_and_quotes_never_change_the_book():
    """Kind of B8: what is left of the book is the same with and without trades and quotes."""
    lines = gzip.decompress((CAPTURES / USDM.path).read_bytes()).splitlines(keepends=True)

    def book(keep) -> list[list[int]]:
        desk = Desk(demo_symbols(), lambda _ticks, _n: None)
        feed = make_feed(USDM, desk, Path("x"), lambda *_: None)
        from tickwire_ingest.frames import Frame

        for number, line in enumerate(lines, 1):
            if keep(line):
                stamp, _, payload = line.partition(b" ")
                feed.take(Frame(int(stamp), number, payload))
        n = desk.book.counts[0]
        return [desk.book.prices[0, s, : n[s]].tolist() + desk.book.quantities[0, s, : n[s]].tolist() for s in (0, 1)]

    assert book(lambda _line: True) == book(lambda line: b"@trade" not in line and b"bookTicker" not in line)


def test_trade_side_is_the_aggressors():
    """Binance's m says that the buyer was the maker: then a seller was aggressive."""
    run = Run(CAPTURES / SPOT.path, SPOT)
    lines = gzip.decompress((CAPTURES / SPOT.path).read_bytes()).splitlines()
    makers = [b'"m":true' in line for line in lines if b"@trade" in line]
    assert (run.of_kind(TickKind.TRADE)["side"] == np.where(makers, 2, 1)).all()


def test_missing_delta_is_a_gap_until_the_next_snapshot(tmp_path):
    """B1: one lost depth message: one gap, the book invalid, the rest dropped, trades and quotes go on."""

    def lose(lines):
        depth = [i for i, line in enumerate(lines) if b"@depth" in line]
        return lines[: depth[300]] + lines[depth[300] + 1 :]

    run = Run(rewrite(tmp_path, USDM, lose), USDM)
    gaps = run.of_kind(TickKind.GAP)
    assert gaps["status"].tolist() == [GapReason.SEQUENCE]
    assert run.count("gaps") == 1
    assert not run.desk.valid[0]
    after = np.concatenate(run.ticks)
    after = after[after["event_sequence"] > gaps["event_sequence"][0]]
    assert not np.isin(after["kind"], [TickKind.DELTA, TickKind.SNAPSHOT_LEVEL]).any()
    assert (after["kind"] == TickKind.TRADE).any()


def test_gap_is_healed_by_the_captures_next_snapshot(tmp_path):
    """B1: a snapshot that joins what was buffered makes the book valid again; one that is too old is refused."""
    lines = gzip.decompress((CAPTURES / SPOT.path).read_bytes()).splitlines(keepends=True)
    depth = [i for i, line in enumerate(lines) if b"@depth" in line]
    hole, later = depth[100], depth[110]
    first_u = int(lines[depth[108]].split(b'"U":')[1].split(b",")[0])
    stamp = lines[later].split(b" ")[0]
    old = next(line for line in lines if b"lastUpdateId" in line)
    too_old = stamp + b" " + old.split(b" ", 1)[1]
    fresh = stamp + b' {"lastUpdateId":%d,"bids":[["61830.00","1.0"]],"asks":[["61840.00","2.0"]]}\n' % (first_u + 1)
    changed = [*lines[:hole], *lines[hole + 1 : later], too_old, fresh, *lines[later:]]
    path = tmp_path / "capture.txt"
    path.write_bytes(b"".join(changed))
    run = Run(path, SPOT)
    assert (run.count("gaps"), run.count("stale_snapshots"), run.count("snapshots")) == (1, 1, 2)
    assert run.desk.valid[1]
    snapshot = run.of_kind(TickKind.SNAPSHOT_END)
    assert snapshot["venue_sequence"][-1] == first_u + 1
    deltas = run.of_kind(TickKind.DELTA)
    assert deltas["venue_sequence"][-1] > first_u


def test_kraken_flipped_digit_is_a_mismatch_and_only_its_pair_stops(tmp_path):
    """B5: one wrong digit: mismatch, the pair invalid until a snapshot, the nine others flow."""

    def flip(lines):
        i = next(i for i, line in enumerate(lines) if b'"c":"' in line and b"XMR/USD" in line)
        head, _, rest = lines[i].partition(b'"c":"')
        lines[i] = head + b'"c":"' + (b"1" if rest[:1] != b"1" else b"2") + rest[1:]
        return lines

    run = Run(rewrite(tmp_path, KRAKEN, flip), KRAKEN)
    assert run.count("checksum_failures") == 1
    assert run.of_kind(TickKind.GAP)["status"].tolist() == [GapReason.CHECKSUM]
    names = [instrument.name for instrument in run.desk.symbols]
    invalid = [names[i] for i, valid in enumerate(run.desk.valid) if not valid and i >= 2]
    assert invalid == ["XMR/USD"]
    assert "checksum of kraken:XMR/USD differs" in run.complaints[0][1]


def test_kraken_second_snapshot_replaces_the_whole_book(tmp_path):
    """B3's kind: levels of the book before a new snapshot do not live on as ghosts."""

    def again(lines):
        snapshot = next(line for line in lines if b'"as"' in line and b"SC/EUR" in line)
        small = snapshot[: snapshot.index(b"[")] + (
            b'[1920,{"as":[["0.050000","1.00000000","1618678133.0"]],"bs":[["0.040000","1.00000000","1618678133.0"]]},'
            b'"book-1000","SC/EUR"]\n'
        )
        return [*lines, small]

    run = Run(rewrite(tmp_path, KRAKEN, again), KRAKEN)
    sc = run.desk.symbols.id_of("kraken:SC/EUR")
    assert run.desk.book.counts[sc].tolist() == [1, 1]
    assert run.desk.book.prices[sc, :, 0].tolist() == [40_000, 50_000]


@pytest.mark.parametrize("config", [USDM, SPOT, KRAKEN], ids=["usdm", "spot", "kraken"])
def test_corrupt_line_is_named_and_the_stream_goes_on(tmp_path, config):
    """A damaged line is counted and named; it may have been depth, so the books wait for a snapshot."""

    def damage(lines):
        lines[200] = lines[200][:40] + b"\n"
        lines[300] = b"garbage without a stamp\n"
        return lines

    path = rewrite(tmp_path, config, damage)
    run = Run(path, config)
    assert run.count("corrupt_lines") == 2
    assert [place for place, _ in run.complaints[:2]] == [f"{path}:201", f"{path}:301"]
    assert set(run.of_kind(TickKind.GAP)["status"].tolist()) == {GapReason.CORRUPT}
    assert not any(run.desk.valid)
    if config is KRAKEN:  # nothing but books here, and their updates wait
        assert run.count("stale_deltas") + run.count("deltas") > 4200
    else:
        assert run.of_kind(TickKind.QUOTE)["event_sequence"].max() > 3000


def test_corrupt_trade_is_only_counted(tmp_path):
    """A trade that cannot be read costs no book."""

    def damage(lines):
        i = next(i for i, line in enumerate(lines) if i > 500 and b"@trade" in line)
        head, _, rest = lines[i].partition(b'"p":"')
        lines[i] = head + b'"p":"x' + rest
        return lines

    run = Run(rewrite(tmp_path, USDM, damage), USDM)
    assert run.count("corrupt_lines") == 1
    assert run.count("gap_ticks") == 0
    assert run.desk.valid[0]


def test_unknown_lines_and_symbols_are_counted_not_fatal(tmp_path):
    """A new event, a new channel, a pair that is not configured: counted and named, nothing else changes."""

    def add(lines):
        stamp = lines[400].split(b" ")[0]
        lines.insert(400, stamp + b' {"stream":"x","data":{"e":"newThing","s":"BTCUSDT"}}\n')
        lines.insert(401, stamp + b' {"stream":"x","data":{"e":"trade","s":"OTHER","p":"1","q":"1","t":1}}\n')
        lines.insert(402, stamp + b' {"something":1}\n')
        return lines

    run = Run(rewrite(tmp_path, USDM, add), USDM)
    assert (run.count("unknown_lines"), run.count("unknown_symbols")) == (2, 1)
    assert run.count("deltas") == 1144
    assert run.count("gap_ticks") == 0


def test_truncated_capture_ends_where_it_was_cut_and_says_so(tmp_path):
    """A gzip that was cut off: everything before the cut is used, the end is named."""
    whole = (CAPTURES / USDM.path).read_bytes()
    path = tmp_path / "cut.gz"
    path.write_bytes(whole[: len(whole) // 2])
    run = Run(path, USDM)
    assert run.count("deltas") > 300
    assert run.count("corrupt_lines") == 1
    assert "cut off or damaged" in run.complaints[0][1]


def test_missing_capture_is_one_error_that_names_it(tmp_path):
    """Nothing is sent before all files are there."""
    with pytest.raises(FeedError, match=r"no_such\.gz: must exist - at `\$\.ingest\.captures\[1\]\.path`"):
        check_sources([Source(0, CAPTURES / USDM.path, USDM), Source(1, tmp_path / "no_such.gz", SPOT)])


def test_merge_orders_captures_of_different_days_by_time_since_their_start():
    """Three captures of 2021 and 2024 flow as one stream; lines of one file keep their order."""
    sources = [Source(i, CAPTURES / config.path, config) for i, config in enumerate((USDM, SPOT, KRAKEN))]
    arrivals = list(merge(sources, "start"))
    dues = [arrival.due_ns for arrival in arrivals]
    assert dues == sorted(dues)
    for source in range(3):
        lines = [arrival.line for arrival in arrivals if arrival.source == source]
        assert lines == sorted(lines)
    assert {arrival.source for arrival in arrivals[:200]} == {0, 1, 2}


def test_offline_ticks_equal_the_feeds_own():
    """F5's first half: training reads exactly what ingest publishes."""
    offline = np.concatenate(list(read_ticks([KRAKEN], demo_symbols(), folder=CAPTURES)))
    live = np.concatenate(Run(CAPTURES / KRAKEN.path, KRAKEN).ticks)
    assert offline.tobytes() == live.tobytes()
