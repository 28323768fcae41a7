"""The symbol table: which instrument a `symbol_id` is, and its increments.

Increments are decimal text; a price of `price_units` is exactly `price_units * price_increment`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation

import msgspec

from tickwire.errors import ConfigError

MAX_SYMBOLS = 4096


class Instrument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tradable symbol of one venue. Its place in the configuration is its `symbol_id`."""

    venue: str
    name: str
    """The venue's own spelling, as it stands in its messages (`BTCUSDT`, `XBT/USD`)."""
    price_increment: str
    quantity_increment: str

    def __post_init__(self) -> None:
        """Check the increments and the lengths of the names."""
        for field, value in (
            ("price_increment", self.price_increment),
            ("quantity_increment", self.quantity_increment),
        ):
            try:
                increment = Decimal(value)
            except InvalidOperation:
                increment = Decimal("NaN")
            if not increment.is_finite() or increment <= 0:
                raise ValueError(f"instrument {self.label!r}: {field} must be a positive decimal, was {value!r}")
        if not self.venue or not self.name or len(self.label.encode()) > 63:
            raise ValueError(f"instrument {self.label!r}: venue and name must be given and fit in 63 bytes together")

    @property
    def label(self) -> str:
        """`venue:name`, how people see a symbol."""
        return f"{self.venue}:{self.name}"

    def price(self, units: int) -> Decimal:
        """Return a price of so many increments as a decimal."""
        return Decimal(self.price_increment) * units

    def quantity(self, units: int) -> Decimal:
        """Return a quantity of so many increments as a decimal."""
        return Decimal(self.quantity_increment) * units


class SymbolTable:
    """All instruments of a run, numbered from 0 in the order of the configuration."""

    def __init__(self, instruments: Iterable[Instrument]) -> None:
        """Number the instruments.

        Raises:
            ConfigError: None or too many instruments, or the same one twice.
        """
        self._instruments = tuple(instruments)
        if not 0 < len(self._instruments) <= MAX_SYMBOLS:
            raise ConfigError(f"symbols: must be 1 to {MAX_SYMBOLS}, were {len(self._instruments)}")
        self._ids = {instrument.label: i for i, instrument in enumerate(self._instruments)}
        if len(self._ids) != len(self._instruments):
            labels = [instrument.label for instrument in self._instruments]
            twice = next(label for label in labels if labels.count(label) > 1)
            raise ConfigError(f"symbols: must be different, {twice!r} is given twice")

    def __len__(self) -> int:
        """Return the number of symbols."""
        return len(self._instruments)

    def __iter__(self) -> Iterator[Instrument]:
        """Iterate in the order of the ids."""
        return iter(self._instruments)

    def __getitem__(self, symbol_id: int) -> Instrument:
        """Return the instrument of an id."""
        return self._instruments[symbol_id]

    def id_of(self, label: str) -> int | None:
        """Return the id of `venue:name`, None if there is no such symbol."""
        return self._ids.get(label)

    def encode(self) -> bytes:
        """Return the table as canonical JSON, as it stands in the shared segment."""
        return msgspec.json.encode(self._instruments)

    @classmethod
    def decode(cls, text: bytes) -> SymbolTable:
        """Read what `encode` wrote.

        Raises:
            ConfigError: The text is not a symbol table.
        """
        try:
            return cls(msgspec.json.decode(text, type=list[Instrument]))
        except msgspec.MsgspecError as error:
            raise ConfigError(f"symbol table: must be JSON as written by SymbolTable.encode: {error}") from error

    @property
    def hash(self) -> int:
        """The 64-bit hash of the encoded table; stands in the header of every ring."""
        return int.from_bytes(hashlib.sha256(self.encode()).digest()[:8], "little")
