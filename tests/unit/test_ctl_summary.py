"""The summary of a run: every figure from the statistics it belongs to, and why a symbol gave no signal."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from signal_processes import SYMBOLS
from tickwire.records import Instrument, SymbolTable
from tickwire.runtime import Stats, StatsReader
from tickwire.runtime.kernels import record_duration
from tickwire_ctl.summary import STAGES, Summary, quantiles_us, summarise
from tickwire_ctl.summary_screen import show_summary
from tickwire_features.stats import FEATURES_STATS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_ingest.stats import INGEST_STATS
from tickwire_router.stats import ROUTER_STATS

SPECS = {"ingest": INGEST_STATS, "features": FEATURES_STATS, "inference": INFERENCE_STATS, "router": ROUTER_STATS}
WINDOW_ROWS = 500


class Run:
    """The four services' statistics, to be counted in."""

    def __init__(self, prefix: str, symbols: SymbolTable) -> None:
        self.symbols = symbols
        labels = tuple(instrument.label for instrument in symbols)
        self.stats = {name: Stats.create(prefix, name, spec, labels) for name, spec in SPECS.items()}
        self.readers = {name: StatsReader.attach(prefix, name) for name in SPECS}

    def count(self, service: str, **values: int) -> None:
        for name, value in values.items():
            self.stats[service].counters[SPECS[service].counter(name)] = value

    def count_symbol(self, service: str, symbol_id: int, **values: int) -> None:
        for name, value in values.items():
            self.stats[service].per_symbol[symbol_id, SPECS[service].symbol_column(name)] = value

    def time(self, histogram: str, *values_ns: int) -> None:
        for value in values_ns:
            record_duration(self.stats["router"].histograms[ROUTER_STATS.histogram(histogram)], value)

    def summary(self, *, seen: int = 0, lost: int = 0) -> Summary:
        return summarise(
            self.readers,
            self.symbols,
            seconds=2.00049,
            signals_seen=seen,
            signals_lost=lost,
            window_rows=WINDOW_ROWS,
        )

    def close(self) -> None:
        for end in (*self.readers.values(), *self.stats.values()):
            end.close()


@pytest.fixture
def run(prefix):
    made = Run(prefix, SYMBOLS)
    yield made
    made.close()


def test_summary_of_nothing_has_every_key_and_no_figure(run):
    """A run that did nothing is a summary of zeros, without a division by zero."""
    summary = msgspec.to_builtins(run.summary())
    assert set(summary) == {
        "seconds",
        "ticks",
        "rows",
        "batches",
        "batch_sizes",
        "flush_reasons",
        "signals",
        "signals_seen",
        "lost",
        "gaps",
        "expired",
        "failed",
        "conflated",
        "unreadable_lines",
        "stages_us",
        "tick_to_signal_us",
        "tick_to_signal_less_engine_us",
        "symbols",
    }
    assert summary["ticks"] == {"v": 0, "w": 0}
    assert summary["signals"] == {"HOLD": 0, "BUY": 0, "SELL": 0}
    assert summary["lost"] == {"ticks": 0, "rows": 0, "predictions": 0, "signals": 0}
    assert (summary["batch_sizes"], summary["flush_reasons"]) == ({}, {})
    assert set(summary["stages_us"]) == set(STAGES)
    assert summary["tick_to_signal_us"] == {"count": 0, "p50": 0, "p99": 0, "p99.9": 0, "max": 0}


def test_summary_each_figure_is_its_counters(run):
    """Distinct values: none is taken from a neighbour."""
    run.count("ingest", gaps=1, checksum_failures=2, corrupt_lines=4, unknown_lines=8)
    run.count("features", rows=11, lost_ticks=12)
    run.count("inference", batches=21, lost_rows=22, expired=23, conflated=24, batch_size_2=25, batch_size_16=26)
    run.count("inference", flush_deadline=27, flush_full=28)
    run.count("inference", failed_input=100, failed_output=200, failed_overrun=400, failed_engine=800)
    run.count("inference", failed_batches=5000)  # of these, not beside them
    run.count("router", signals_hold=31, signals_buy=32, signals_sell=33, lost_predictions=34, signals_withdrawn=35)
    summary = run.summary(seen=41, lost=42)
    assert summary.seconds == 2.0
    assert (summary.gaps, summary.unreadable_lines) == (3, 12)
    assert (summary.rows, summary.batches, summary.expired, summary.conflated) == (11, 21, 23, 24)
    assert summary.failed == 1500
    assert summary.batch_sizes == {"2": 25, "16": 26}
    assert summary.flush_reasons == {"full": 28, "deadline": 27}
    assert summary.signals == {"HOLD": 31, "BUY": 32, "SELL": 33}
    assert summary.lost == {"ticks": 12, "rows": 22, "predictions": 34, "signals": 42}
    assert summary.signals_seen == 41


def test_summary_ticks_are_added_up_by_venue(prefix):
    """Two symbols of one venue are one figure."""
    names = (("v", "A"), ("w", "B"), ("v", "C"))
    symbols = SymbolTable(
        Instrument(venue=venue, name=name, price_increment="1", quantity_increment="1") for venue, name in names
    )
    run = Run(prefix, symbols)
    for symbol_id, ticks in enumerate((1, 20, 300)):
        run.count_symbol("ingest", symbol_id, ticks=ticks)
    assert run.summary().ticks == {"v": 301, "w": 20}
    run.close()


def test_summary_stages_are_microseconds(run):
    """O7's unit: 20 us, 200 us and 2 ms come out as such, each at its stage."""
    run.time("receive_to_tick", 20_000)
    run.time("engine", 200_000)
    run.time("tick_to_signal", 20_000, 200_000, 2_000_000)
    summary = run.summary()
    assert summary.stages_us["receive_to_tick"]["max"] == 20.0
    assert summary.stages_us["engine"]["p50"] == pytest.approx(200.0, rel=0.05)
    assert summary.tick_to_signal_us["count"] == 3
    assert summary.tick_to_signal_us["p50"] == pytest.approx(200.0, rel=0.05)
    assert summary.tick_to_signal_us["max"] == 2000.0
    assert quantiles_us(run.readers["router"].histogram("tick_to_signal")) == summary.tick_to_signal_us


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ({}, "no tick"),
        ({"ticks": 5}, "no row"),
        ({"ticks": 5, "without": 3}, "no row: 3 events with a crossed or empty book"),
        ({"ticks": 5, "rows": 9, "window": 9}, "9 of 500 rows"),
        ({"ticks": 5, "rows": 900, "window": 500}, "no request yet"),
        ({"ticks": 5, "rows": 900, "window": 500, "requests": 7, "expired": 7}, "7 requests, 7 expired"),
        ({"ticks": 5, "rows": 900, "window": 500, "requests": 7, "hold": 1}, None),
        ({"ticks": 5, "rows": 900, "window": 3, "requests": 7, "sell": 1}, None),
    ],
)
def test_summary_says_why_a_symbol_gave_no_signal(run, counts, why):
    """The first thing that is missing along the tick's path, of this symbol and no other; None where one came."""
    run.count_symbol("ingest", 1, ticks=counts.get("ticks", 0))
    run.count_symbol(
        "features",
        1,
        rows=counts.get("rows", 0),
        window_rows=counts.get("window", 0),
        events_without_row=counts.get("without", 0),
    )
    run.count_symbol("inference", 1, requests=counts.get("requests", 0), expired=counts.get("expired", 0))
    run.count_symbol("router", 1, hold=counts.get("hold", 0), sell=counts.get("sell", 0))
    symbols = run.summary().symbols
    assert symbols["w:B/USD"]["why_no_signal"] == why
    assert symbols["v:A"]["why_no_signal"] == "no tick"
    assert symbols["w:B/USD"]["signals"] == {"buy": 0, "sell": counts.get("sell", 0), "hold": counts.get("hold", 0)}


def test_summary_is_plain_json(run):
    """The file of `--json` can be read back into the same figures."""
    run.count("features", rows=11)
    summary = run.summary()
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_summary_screen_shows_every_figure_in_its_row(run):
    """What a person reads: rings, stages and symbols by name, thousands separated."""
    run.count("features", rows=1_234_567, lost_ticks=77)
    run.count("inference", batches=9, batch_size_3=9, flush_idle=9)
    run.count_symbol("router", 0, buy=4)
    run.time("prediction_to_signal", 20_000)
    text = io.StringIO()
    show_summary(Console(file=text, width=120), run.summary())
    shown = text.getvalue()
    rows = {line.split("  ")[0].strip(" │┃"): line for line in shown.splitlines()}
    assert "1,234,567" in rows["rows"]
    assert "size: 3: 9" in rows["batches"]
    assert "idle 9" in rows["batches"]
    assert "ticks 77" in rows["lost records"]
    assert "20.0" in rows["prediction to signal"]
    assert rows["v:A"].count("4") == 1
    assert "no tick" in rows["w:B/USD"]
