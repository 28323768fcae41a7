"""Rules of the router's configuration."""

from __future__ import annotations

import msgspec
import pytest

from tickwire.errors import ConfigError
from tickwire.records import Instrument, SymbolTable
from tickwire_router.config import RouterConfig, Rule

TABLE = SymbolTable(
    [
        Instrument(venue="v", name="A", price_increment="0.01", quantity_increment="0.001"),
        Instrument(venue="v", name="B", price_increment="0.5", quantity_increment="0.3"),
    ]
)


def config_of(**table):
    return msgspec.convert(table, RouterConfig)


def test_rules_symbol_override_takes_the_place_of_the_default():
    """What a symbol's own rule gives counts, the rest is the service's; quantities become exact increments."""
    config = config_of(
        quantity="0.9", symbols={"v:B": {"enter_probability": 0.8, "limit_offset_increments": -2, "quantity": "1.2"}}
    )
    assert config.rules(TABLE) == (Rule(0.5, 0.4, 900, 1), Rule(0.8, 0.4, 4, -2))


def test_rules_no_quantity_is_one_increment():
    """Without a quantity each order is the smallest there is."""
    assert [rule.quantity_units for rule in config_of().rules(TABLE)] == [1, 1]


@pytest.mark.parametrize("quantity", ["0.0005", "0", "-1", "NaN", "Infinity", "one", "1e30"])
def test_rules_quantity_that_is_not_whole_increments_is_refused(quantity):
    """A quantity is never rounded: it is a positive multiple of the increment or an error that names the symbol."""
    with pytest.raises(ConfigError, match=r"quantity of 'v:A' must be a positive multiple of 0\.001, was"):
        config_of(symbols={"v:A": {"quantity": quantity}}).rules(TABLE)


def test_rules_unknown_symbol_is_refused():
    """A rule for a symbol that the run does not have is an error that names it."""
    with pytest.raises(ConfigError, match="'v:C' is none"):
        config_of(symbols={"v:C": {}}).rules(TABLE)


def test_rules_exit_above_enter_is_refused():
    """Hysteresis needs exit <= enter, also when only one of them is the symbol's own."""
    with pytest.raises(msgspec.ValidationError, match="exit_probability must be at most enter_probability"):
        config_of(enter_probability=0.3)
    with pytest.raises(ConfigError, match=r"router\.symbols\['v:A'\]: exit_probability must be at most"):
        config_of(symbols={"v:A": {"enter_probability": 0.3}}).rules(TABLE)
