"""Configuration of inference: table `[inference]` of the run's TOML."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tickwire.errors import ConfigError
from tickwire.models import MAX_MODEL_WINDOW_ROWS
from tickwire.records import SymbolTable
from tickwire.ring import WaitStrategy

BudgetUs = Annotated[int, Meta(ge=1, le=60_000_000)]


class PriorityClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of symbols that go together when more than one batch waits."""

    name: Annotated[str, Meta(min_length=1)]
    budget_us: BudgetUs | None = None
    """Time from a row's publication to its deadline; the service's `budget_us` unless given."""


class SymbolOverride(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different for one symbol."""

    priority: str
    """Name of its priority class."""


class InferenceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings, with the defaults of a host without a GPU."""

    engine: Literal["onnxruntime", "rule"] = "onnxruntime"
    fallback_models: tuple[str, ...] = ()
    """Models that serve on ONNX Runtime while the engine's breaker is open, best first; as `name` or `name@version`."""
    fallback_rule: bool = False
    """Whether the rule serves behind them."""
    breaker_timeouts: Annotated[int, Meta(ge=1, le=1_000)] = 10
    """Batches in a row that are finished after their latest deadline and open the breaker; a fault opens it at once."""
    breaker_cooldown_ms: Annotated[int, Meta(ge=1, le=3_600_000)] = 5_000
    """Time from its opening to the first probe."""
    engine_missing: Literal["refuse", "degrade"] = "refuse"
    """What to do when the engine cannot be loaded at the start: end with the reason, or let the fallbacks serve."""
    model: str = "transformer"
    version: str | None = None
    """Version of the model; what the registry calls `current` unless given."""
    models_dir: str = "../models"
    """The registry's folder, relative to the TOML's."""
    budget_us: BudgetUs = 100_000
    """Time from a row's publication to its deadline."""
    priority_classes: Annotated[tuple[PriorityClass, ...], Meta(min_length=1, max_length=8)] = (
        PriorityClass(name="normal"),
    )
    """Best first; symbols without an override belong to the last."""
    ageing_us: Annotated[int, Meta(ge=0, le=60_000_000)] = 20_000
    """A request is overtaken by one of the next better class only if that was queued less than this after it."""
    symbols: dict[str, SymbolOverride] = {}
    """By `venue:name`."""
    stall_timeout_ms: Annotated[int, Meta(ge=1, le=60_000)] = 100
    """How long a router that does not read may hold predictions back before it is evicted; 10 s in closed loop."""
    rule_window_rows: Annotated[int, Meta(ge=1, le=MAX_MODEL_WINDOW_ROWS)] = 500
    """Rows that a symbol must have before the rule engine serves it."""
    rule_gain: float = 2.0
    wait_strategy: WaitStrategy = WaitStrategy.PARK
    """How both threads wait: `park` for shared cores, `spin_park` or `spin` only with a core for each."""
    wait_for_rows_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """How long to wait at the start for features to create the rows ring and the windows store."""

    def __post_init__(self) -> None:
        """Check that class names are different and known."""
        names = [entry.name for entry in self.priority_classes]
        if len(set(names)) != len(names):
            raise ValueError(f"priority_classes: names must be different, were {', '.join(names)}")
        if self.engine_missing == "degrade" and not (self.fallback_models or self.fallback_rule):
            raise ValueError("engine_missing: 'degrade' must have fallback_models or fallback_rule, has neither")
        for label, override in self.symbols.items():
            if override.priority not in names:
                raise ValueError(
                    f"symbols.{label}: priority must be one of {', '.join(names)}, was {override.priority!r}"
                )

    def ranks(self, table: SymbolTable) -> list[int]:
        """Return the rank of each symbol's class, 0 for the best.

        Raises:
            ConfigError: An override names a symbol that the run does not have.
        """
        names = [entry.name for entry in self.priority_classes]
        ranks = [len(names) - 1] * len(table)
        for label, override in self.symbols.items():
            symbol_id = table.id_of(label)
            if symbol_id is None:
                raise ConfigError(f"inference.symbols: {label!r} must be one of the run's symbols, is not")
            ranks[symbol_id] = names.index(override.priority)
        return ranks

    def budget_of_ns(self, rank: int) -> int:
        """Return the budget of a class in nanoseconds."""
        return (self.priority_classes[rank].budget_us or self.budget_us) * 1000
