"""Configuration: one TOML file for all services of a host.

`[run]` and `[[symbols]]` are everybody's; `[ingest]`, `[features]`, `[inference]` and `[router]` belong to one service
each, whose struct stands beside its code. Whatever is unknown or out of bounds is refused, with file and path.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from tickwire.errors import ConfigError
from tickwire.records import Instrument, SymbolTable
from tickwire.ring.segment import PREFIX_PATTERN

ENDPOINT_PATTERN = r"^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$"
SERVICES = ("ingest", "features", "inference", "router")
_TOP_LEVEL = ("run", "symbols", *SERVICES)

T = TypeVar("T")


class RunTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[run]` table."""

    prefix: str = "tickwire"
    """Start of every segment's name; two instances on a host need two."""
    state_dir: str = "state"
    """Folder of what must survive a restart (kill switch, logs of `tickwire up`), relative to the TOML's folder."""
    closed_loop: bool = False
    """Deterministic replay: barriers, no expiry, event time instead of clocks."""
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    drain_timeout_s: Annotated[float, Meta(gt=0, le=300)] = 10.0
    cores: dict[Literal["ingest", "features", "inference", "router"], list[Annotated[int, Meta(ge=0)]]] = {}
    """Cores a service is pinned to; services without an entry are not pinned."""
    fifo_priority: dict[Literal["features", "inference", "router"], Annotated[int, Meta(ge=1, le=99)]] = {}
    """SCHED_FIFO priority of a service's hot threads; services without an entry are scheduled as everybody else."""
    lock_memory: bool | Literal["auto"] = "auto"
    """Keep all pages in RAM: false never, "auto" where it is permitted, true also warns where it is not."""

    follow_owner: bool = False
    """Need the owner of the segments (`tickwire anchor`) alive at the start, and fail when it has ended."""
    endpoints: dict[
        Literal["ingest", "features", "inference", "router"], Annotated[str, Meta(pattern=ENDPOINT_PATTERN)]
    ] = {}
    """`host:port` of a service's /livez, /readyz and /metrics; services without an entry have none."""
    data_fresh_s: Annotated[float, Meta(gt=0, le=86_400)] = 30.0
    """A service to which no data has come for so long is not ready."""

    def __post_init__(self) -> None:
        """Check the prefix."""
        if not PREFIX_PATTERN.fullmatch(self.prefix):
            raise ValueError(f"prefix must match {PREFIX_PATTERN.pattern}, was {self.prefix!r}")


@dataclass(frozen=True)
class RunConfig:
    """What all services of a run share, with where it was read."""

    path: Path
    """The TOML file."""
    hash: str
    """First 12 hex digits of the SHA-256 of its bytes and of the overrides."""
    table: RunTable
    symbols: SymbolTable

    @property
    def prefix(self) -> str:
        """Start of every segment's name."""
        return self.table.prefix

    @property
    def state_dir(self) -> Path:
        """Folder of what survives a restart."""
        return self.resolve(self.table.state_dir)

    @property
    def folder(self) -> Path:
        """The TOML's folder."""
        return self.path.parent

    @property
    def closed_loop(self) -> bool:
        """Whether this is a deterministic replay."""
        return self.table.closed_loop

    def resolve(self, path: str) -> Path:
        """Return a path of the configuration: absolute as it is, else relative to the TOML's folder."""
        return (self.folder / Path(path).expanduser()).resolve()


def load(path: Path, section: str, kind: type[T], *, overrides: Sequence[str] = ()) -> tuple[RunConfig, T]:
    """Read a configuration file and one service's part of it.

    Args:
        path: The TOML file.
        section: Top-level table of the service.
        kind: The service's msgspec struct.
        overrides: TOML assignments that take the place of the file's, such as `ingest.pace = "x4"`.

    Raises:
        ConfigError: Names the file and, where there is one, the place in it as `$.table.field`.
    """
    path = path.resolve()
    document, digest = read_document(path, overrides)
    return _run_config(path, document, digest), convert(path, section, document.get(section, {}), kind)


def load_run(path: Path, *, overrides: Sequence[str] = ()) -> RunConfig:
    """Read what all services share.

    Raises:
        ConfigError: As `load`.
    """
    path = path.resolve()
    return _run_config(path, *read_document(path, overrides))


def convert(path: Path, section: str, value: Any, kind: type[T]) -> T:
    """Convert a TOML value to a type.

    Raises:
        ConfigError: Names the file and the place.
    """
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        text = str(error)
        place = f"`$.{section}"
        text = text.replace("`$", place) if "`$" in text else f"{text} - at {place}`"
        raise ConfigError(f"{path}: {text}") from error


def read_document(path: Path, overrides: Sequence[str] = ()) -> tuple[dict[str, Any], str]:
    """Return the tables of a file, with overrides, and the hash of both.

    Raises:
        ConfigError: The file cannot be read, or it or an override is not TOML.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        document = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: must be TOML: {error}") from error
    for override in overrides:
        try:
            _merge(document, tomllib.loads(override))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f'override {override!r}: must be a TOML assignment, such as run.prefix = "a"') from error
        content += b"\0" + override.encode()
    return document, hashlib.sha256(content).hexdigest()[:12]


def _run_config(path: Path, document: dict[str, Any], digest: str) -> RunConfig:
    unknown = sorted(set(document) - set(_TOP_LEVEL))
    if unknown:
        raise ConfigError(
            f"{path}: unknown table at `$.{unknown[0]}`; there are {', '.join(f'`$.{name}`' for name in _TOP_LEVEL)}"
        )
    table = convert(path, "run", document.get("run", {}), RunTable)
    instruments = convert(path, "symbols", document.get("symbols", []), list[Instrument])
    try:
        symbols = SymbolTable(instruments)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error} - at `$.symbols`") from error
    return RunConfig(path, digest, table, symbols)


def _merge(target: dict[str, Any], source: dict[str, Any]) -> None:
    for key, value in source.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
