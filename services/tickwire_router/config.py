"""Configuration of the router: table `[router]` of the run's TOML."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tickwire.errors import ConfigError
from tickwire.records import Instrument, SymbolTable
from tickwire.ring import WaitStrategy

Probability = Annotated[float, Meta(gt=0, le=1)]
Increments = Annotated[int, Meta(ge=-1_000_000, le=1_000_000)]

_MAX_UNITS = 2**63 - 1


class SymbolRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different for one symbol; what is not given is the service's."""

    enter_probability: Probability | None = None
    exit_probability: Probability | None = None
    quantity: str | None = None
    limit_offset_increments: Increments | None = None


class RouterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings."""

    enter_probability: Probability = 0.5
    """From here on `up` is a BUY and `down` a SELL."""
    exit_probability: Probability = 0.4
    """A BUY or SELL goes on until its probability is below this."""
    quantity: str | None = None
    """Quantity of a BUY or SELL as decimal text, a multiple of the instrument's increment; None is one increment."""
    limit_offset_increments: Increments = 1
    """Price increments by which a BUY's limit is above the best ask and a SELL's below the best bid."""
    max_age_us: Annotated[int, Meta(ge=1, le=60_000_000)] = 200_000
    """A prediction whose tick was received longer ago is STALE; not in closed loop."""
    max_signals_per_s: Annotated[int, Meta(ge=1, le=1_000)] = 200
    """Most BUY and SELL signals of one symbol within any second of receive time; the rest is HOLD (RISK_LIMIT)."""
    wait_strategy: WaitStrategy = WaitStrategy.PARK
    """How the hot thread waits for predictions; `spin` only with a core of its own."""
    wait_for_predictions_s: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """How long the predictions ring may take to appear at the start."""
    order_adapter: Literal["none", "log"] = "none"
    """Where BUY and SELL go besides the signals ring."""
    symbols: dict[str, SymbolRule] = {}
    """Rules by `venue:name`."""

    def __post_init__(self) -> None:
        """Check the rule across fields."""
        if self.exit_probability > self.enter_probability:
            raise ValueError(
                f"exit_probability must be at most enter_probability {self.enter_probability}, "
                f"was {self.exit_probability}"
            )

    def rules(self, symbols: SymbolTable) -> tuple[Rule, ...]:
        """Return every symbol's rule, in the order of the ids.

        Raises:
            ConfigError: A rule names an unknown symbol, contradicts itself, or a quantity is not whole increments.
        """
        labels = {instrument.label for instrument in symbols}
        for label in self.symbols:
            if label not in labels:
                raise ConfigError(f"router.symbols: must name symbols of the run, {label!r} is none")
        return tuple(self._rule(instrument) for instrument in symbols)

    def _rule(self, instrument: Instrument) -> Rule:
        own = self.symbols.get(instrument.label, SymbolRule())
        enter = self.enter_probability if own.enter_probability is None else own.enter_probability
        leave = self.exit_probability if own.exit_probability is None else own.exit_probability
        offset = self.limit_offset_increments if own.limit_offset_increments is None else own.limit_offset_increments
        if leave > enter:
            raise ConfigError(
                f"router.symbols[{instrument.label!r}]: exit_probability must be at most enter_probability "
                f"{enter}, was {leave}"
            )
        return Rule(enter, leave, _quantity_units(instrument, own.quantity or self.quantity), offset)


@dataclass(frozen=True)
class Rule:
    """How one symbol's predictions are decoded."""

    enter_probability: float
    exit_probability: float
    quantity_units: int
    limit_offset_increments: int


def _quantity_units(instrument: Instrument, text: str | None) -> int:
    # Exact: fractions, since a division of decimals would round.
    if text is None:
        return 1
    try:
        quantity = Decimal(text)
    except InvalidOperation:
        quantity = Decimal("NaN")
    units = Fraction(quantity) / Fraction(Decimal(instrument.quantity_increment)) if quantity.is_finite() else None
    if units is None or units.denominator != 1 or not 0 < units <= _MAX_UNITS:
        raise ConfigError(
            f"router: quantity of {instrument.label!r} must be a positive multiple of {instrument.quantity_increment}, "
            f"was {text!r}"
        )
    return int(units)
