"""Configuration of inference: bounds, classes and overrides."""

from __future__ import annotations

import msgspec
import pytest

from tickwire.errors import ConfigError
from tickwire.records import Instrument, SymbolTable
from tickwire_inference import InferenceConfig

SYMBOLS = SymbolTable(
    Instrument(venue="v", name=name, price_increment="0.1", quantity_increment="1") for name in ("A", "B", "C")
)


def convert(**table):
    return msgspec.convert(table, InferenceConfig)


def test_config_classes_give_ranks_and_budgets():
    """Overrides name a class, everybody else is in the last; a class without a budget has the service's."""
    config = convert(
        budget_us=700,
        priority_classes=[{"name": "fast", "budget_us": 50}, {"name": "normal"}],
        symbols={"v:B": {"priority": "fast"}},
    )
    assert config.ranks(SYMBOLS) == [1, 0, 1]
    assert [config.budget_of_ns(rank) for rank in (0, 1)] == [50_000, 700_000]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"engine": "abacus"}, r"\$\.engine"),
        ({"budget_us": 0}, r"\$\.budget_us"),
        ({"pace": 1}, "pace"),
        ({"priority_classes": []}, r"\$\.priority_classes"),
        ({"priority_classes": [{"name": "a"}, {"name": "a"}]}, "names must be different"),
        ({"symbols": {"v:A": {"priority": "vip"}}}, "priority must be one of normal, was 'vip'"),
        ({"rule_window_rows": 961}, r"\$\.rule_window_rows"),
    ],
)
def test_config_wrong_value_is_refused_with_its_path(table, text):
    """A value out of bounds, an unknown field or class is refused."""
    with pytest.raises(msgspec.ValidationError, match=text):
        convert(**table)


def test_config_override_of_an_unknown_symbol_is_refused():
    """An override for a symbol that the run does not have is a mistake, not a wish."""
    config = convert(symbols={"v:Z": {"priority": "normal"}})
    with pytest.raises(ConfigError, match="'v:Z' must be one of the run's symbols"):
        config.ranks(SYMBOLS)
