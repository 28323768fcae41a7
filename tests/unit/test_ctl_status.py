"""What `tickwire status` says of the kill switch and of the rings."""

from __future__ import annotations

import contextlib
import json

import pytest
from click.testing import CliRunner

from tickwire.records import Instrument, SymbolTable
from tickwire.ring import Consumer, Producer
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.runtime import ServiceState, Stats, StatsSpec
from tickwire.topology import PREDICTIONS, SIGNALS
from tickwire_ctl.host import ORDER
from tickwire_ctl.status import status
from tickwire_features.stats import FEATURES_STATS
from tickwire_router import ROUTER_STATS

SYMBOLS = SymbolTable(
    Instrument(venue="v", name=name, price_increment="1", quantity_increment="1") for name in ("A", "B")
)
LABELS = tuple(instrument.label for instrument in SYMBOLS)
SPECS = {"features": FEATURES_STATS, "router": ROUTER_STATS}


@pytest.fixture
def services(prefix):
    """Statistics of all four services."""
    with contextlib.ExitStack() as stack:
        made = {}
        for service in ORDER:
            own = Stats.create(prefix, service, SPECS.get(service, StatsSpec()), LABELS)
            own.set_state(ServiceState.READY)
            made[service] = stack.enter_context(contextlib.closing(own))
        publish_symbols(prefix, SYMBOLS)
        yield made


def shown(prefix: str, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(status, ["--prefix", prefix, *options])
    return result.exit_code, result.output


def seen(prefix: str) -> dict:
    return json.loads(shown(prefix, "--json")[1])


def test_status_shows_what_the_router_obeys(services, prefix):
    """A kill is seen in the status: which symbols, everything, or a file that cannot be read."""
    router = services["router"]
    assert seen(prefix)["kill"] == ""
    router.per_symbol[1, ROUTER_STATS.symbol_column("killed")] = 1
    assert seen(prefix)["kill"] == "v:B"
    assert "killed, no BUY and no SELL: v:B\n" in shown(prefix)[1]
    router.gauges[ROUTER_STATS.gauge("killed_everything")] = 1
    assert seen(prefix)["kill"] == "everything"
    router.gauges.view("int64")[ROUTER_STATS.gauge("kill_generation")] = -1
    assert seen(prefix)["kill"] == "everything: the kill file cannot be read"


def test_status_rings_show_live_consumers_and_dead_ones_that_count(services, prefix):
    """A lossless consumer that died is shown, it holds the ring back; a reader that has left is not."""
    with Producer.attach(prefix, SIGNALS), Producer.attach(prefix, PREDICTIONS):
        for spec in (SIGNALS, PREDICTIONS):
            Consumer.attach(prefix, spec, name="gone").close()
        with Consumer.attach(prefix, SIGNALS, name="there"):
            rings = seen(prefix)["rings"]
    assert [(c["name"], c["alive"]) for c in rings["signals"]["consumers"]] == [("there", True)]
    assert [(c["name"], c["alive"]) for c in rings["predictions"]["consumers"]] == [("gone", False)]
