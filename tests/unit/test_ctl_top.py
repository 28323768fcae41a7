"""`tickwire top` driven by Textual's pilot, on statistics and rings that the tests make."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from textual.widgets import DataTable

from tickwire.records import Instrument, SymbolTable
from tickwire.ring import Consumer, Producer
from tickwire.runtime import ServiceState, Stats
from tickwire.runtime.kernels import record_duration
from tickwire.topology import SIGNALS
from tickwire_ctl.top.app import TopApp
from tickwire_ctl.top.look import Looker
from tickwire_features.stats import FEATURES_STATS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_ingest.stats import INGEST_STATS
from tickwire_router import ROUTER_STATS

SYMBOLS = SymbolTable(
    Instrument(venue="v", name=name, price_increment="1", quantity_increment="1") for name in ("A", "B")
)
LABELS = tuple(instrument.label for instrument in SYMBOLS)
SPECS = {
    "ingest": INGEST_STATS,
    "features": FEATURES_STATS,
    "inference": INFERENCE_STATS,
    "router": ROUTER_STATS,
}
NEVER_S = 3600.0  # the tests look themselves


@pytest.fixture
def services(prefix):
    """Statistics of all four services, READY."""
    with contextlib.ExitStack() as stack:
        made = {}
        for service, spec in SPECS.items():
            made[service] = stack.enter_context(contextlib.closing(Stats.create(prefix, service, spec, LABELS)))
            made[service].set_state(ServiceState.READY)
        yield made


def shown(app: TopApp, table: str) -> dict[str, list[str]]:
    widget = app.query_one(f"#{table}", DataTable)
    rows = [widget.get_row_at(row) for row in range(widget.row_count)]
    return {str(name): [str(value) for value in values] for name, *values in rows}


async def test_top_absent_run_shows_four_absent_services(prefix):
    """Nothing runs: nothing fails, and that is what is shown; q ends it."""
    app = TopApp(prefix, NEVER_S)
    async with app.run_test() as pilot:
        services = shown(app, "services")
        assert {name: values[0] for name, values in services.items()} == dict.fromkeys(SPECS, "ABSENT")
        assert shown(app, "rings") == {}
        await pilot.press("q")
    assert app.return_code == 0


async def test_top_shows_what_the_services_counted(services, prefix):
    """States, stages, batches, books and kills stand where they belong; a second look changes what changed."""
    app = TopApp(prefix, NEVER_S)
    router, inference, features = services["router"], services["inference"], services["features"]
    async with app.run_test(size=(160, 60)) as pilot:
        assert shown(app, "stages")["engine"] == ["-", "-", "-", "0"]
        for value in (1_000, 2_000, 2_000_000):
            record_duration(router.histograms[ROUTER_STATS.histogram("engine")], value)
        inference.gauges[INFERENCE_STATS.gauge("engine_alive")] = 1
        inference.gauges[INFERENCE_STATS.gauge("window_rows")] = 64
        inference.counters[INFERENCE_STATS.counter("batches")] += np.uint64(4)
        inference.counters[INFERENCE_STATS.counter("predictions")] += np.uint64(10)
        inference.counters[INFERENCE_STATS.counter("flush_full")] += np.uint64(3)
        inference.counters[INFERENCE_STATS.counter("flush_deadline")] += np.uint64(1)
        inference.counters[INFERENCE_STATS.counter("expired")] += np.uint64(1234)
        features.per_symbol[1, FEATURES_STATS.symbol_column("book_valid")] = 1
        features.per_symbol[1, FEATURES_STATS.symbol_column("window_rows")] = 77
        router.per_symbol[0, ROUTER_STATS.symbol_column("killed")] = 1
        app.look()
        await pilot.pause()
        p50_us, p99_us, max_us, count = shown(app, "stages")["engine"]
        assert float(p50_us) == pytest.approx(2.0, rel=0.04)
        assert (float(p99_us.replace(",", "")), max_us, count) == (2000.0, "2,000.0", "3")
        found = shown(app, "inference")
        assert found["engine"] == ["serves"]
        assert found["mean batch"] == ["2.5"]
        assert found["closed by"] == ["FULL 75%, DEADLINE 25%"]
        assert found["expired"] == ["1,234"]
        symbols = shown(app, "symbols")
        assert (symbols["v:A"][0], symbols["v:A"][-1]) == ("invalid", "killed")
        assert (symbols["v:B"][0], symbols["v:B"][1], symbols["v:B"][-1]) == ("valid", "77", "")
        assert shown(app, "services")["router"][0] == "READY"


async def test_top_shows_rings_with_rate_and_loss(services, prefix):
    """A ring's consumers with lag and lost; p holds the picture."""
    app = TopApp(prefix, NEVER_S)
    with Producer.attach(prefix, SIGNALS) as producer, Consumer.attach(prefix, SIGNALS, name="strategy"):
        async with app.run_test(size=(160, 60)) as pilot:
            ring = shown(app, "rings")["signals"]
            assert ring[0] == "lossy"
            assert ring[3:] == ["alive", "strategy (lag 0, lost 0)"]
            producer.publish(np.zeros(5, dtype=SIGNALS.dtype))
            await pilot.press("p")
            app.look()
            assert shown(app, "rings")["signals"][4] == "strategy (lag 0, lost 0)"
            await pilot.press("p")
            app.look()
            assert shown(app, "rings")["signals"][4] == "strategy (lag 5, lost 0)"


def test_look_restarted_service_is_never_below_zero(services, prefix):
    """I2: counters that begin again at 0 give no negative rate; quantiles are of the new process alone."""
    looker = Looker(prefix)
    counter = ROUTER_STATS.counter("predictions")
    services["router"].counters[counter] = 1000
    record_duration(services["router"].histograms[ROUTER_STATS.histogram("engine")], 5_000)
    looker.refresh()
    with contextlib.closing(Stats.create(prefix, "router", ROUTER_STATS, LABELS)) as fresh:
        fresh.counters[counter] = 3
        looker.refresh()
        look = looker.services["router"]
        assert (look.total("predictions"), look.rate("predictions"), look.grown("predictions")) == (3, 0.0, 0)
        fresh.counters[counter] = 7
        looker.refresh()
        assert look.grown("predictions") == 4
        assert look.rate("predictions") > 0
        assert look.durations("engine").count == 0
    looker.close()


def test_look_span_forgets_what_is_long_ago(services, prefix):
    """I1: quantiles are of the last looks, so that a bad minute an hour ago is not shown as now."""
    looker = Looker(prefix)
    words = services["router"].histograms[ROUTER_STATS.histogram("engine")]
    record_duration(words, 900_000_000)
    for _ in range(12):
        looker.refresh()
    record_duration(words, 1_000)
    looker.refresh()
    found = looker.services["router"].durations("engine")
    assert found.count == 1
    assert found.p99_ns == pytest.approx(1_000, rel=0.04)
    assert found.max_ns == pytest.approx(1_000, rel=0.04)
    looker.close()
