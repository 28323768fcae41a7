"""The manifest of a model: what it was trained on, what it expects and what it is, as `manifest.json` beside the ONNX.

`tickwire_models` writes manifests, `ModelRegistry` reads them; no model runs whose manifest does not match.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from tickwire.records.features import FEATURE_NAMES, feature_hash
from tickwire.records.row import N_FEATURES

MANIFEST_FORMAT = 1
"""Version of the manifest's own layout."""

MAX_MODEL_WINDOW_ROWS = 960
"""Longest window T of a model: the windows store keeps 1,024 rows and the oldest may be overwritten during a copy."""

MAX_LABEL_BYTES = 39
"""Longest `name@version`: a prediction carries it in 40 bytes, zero-terminated."""

OUTPUTS = ("down", "flat", "up")
"""What the three probabilities of every model mean, in order."""

ModelName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,23}$")]
ModelVersion = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,13}$")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class Normalisation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first FP32 nodes of the graph: `min(max((x - centre) / scale, -clip), clip)`, one pair a feature."""

    centre: tuple[float, ...]
    scale: tuple[float, ...]
    clip: float
    hash: Sha256
    """What `normalisation_hash` gives for the three fields above."""

    @classmethod
    def of(cls, centre: Sequence[float], scale: Sequence[float], clip: float) -> Normalisation:
        """Return the values as float32 numbers, with their hash."""
        exact_centre = tuple(float(value) for value in np.asarray(centre, np.float32))
        exact_scale = tuple(float(value) for value in np.asarray(scale, np.float32))
        exact_clip = float(np.float32(clip))
        digest = normalisation_hash(exact_centre, exact_scale, exact_clip)
        return cls(centre=exact_centre, scale=exact_scale, clip=exact_clip, hash=digest)

    def fault(self) -> str | None:
        """Return what is wrong with the values, None if nothing is."""
        if len(self.centre) != N_FEATURES or len(self.scale) != N_FEATURES:
            return f"must have {N_FEATURES} centres and scales, has {len(self.centre)} and {len(self.scale)}"
        if not all(map(math.isfinite, (*self.centre, *self.scale, self.clip))):
            return "must be finite, has a NaN or an infinity"
        if min(self.scale) <= 0 or self.clip <= 0:
            return f"must have positive scales and clip, the least are {min(self.scale)} and {self.clip}"
        found = normalisation_hash(self.centre, self.scale, self.clip)
        if found != self.hash:
            return f"must hash to {self.hash}, the values hash to {found}"
        return None


class DataSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One capture (or other file) that the model was trained on."""

    name: str
    sha256: Sha256
    rows: Annotated[int, Meta(ge=0)]


class Training(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the model came to be, enough to make it again."""

    seed: int
    data: tuple[DataSource, ...]
    split: dict[str, Any]
    """Share or borders of train, validation and test rows, and the embargo between them."""
    epochs: int
    settings: dict[str, Any] = {}
    """Further settings: learning rate, batch size, library versions."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is known about one version of a model."""

    format: int = MANIFEST_FORMAT
    name: ModelName
    version: ModelVersion
    kind: str
    """Architecture: `transformer`, `lstm`, ..."""
    created: str
    """ISO 8601 date."""
    feature_names: tuple[str, ...]
    feature_hash: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    """What `feature_hash_text` gave when the model was trained: names, formulas, units and order."""
    window_rows: Annotated[int, Meta(ge=1)]
    """T: rows of one input window."""
    n_features: Annotated[int, Meta(ge=1)]
    outputs: tuple[str, ...] = OUTPUTS
    horizon_ms: Annotated[int, Meta(gt=0)]
    """How far ahead of the newest row the mid is predicted, in receive time."""
    label_threshold: Annotated[float, Meta(ge=0)]
    """Relative move of the mid from which on a label is down or up."""
    onnx_sha256: Sha256
    onnx_bytes: Annotated[int, Meta(gt=0)]
    opset: Annotated[int, Meta(ge=1)]
    normalisation: Normalisation
    training: Training
    metrics: dict[str, Any]
    gates: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """`name@version`, as it stands in every prediction of this model."""
        return f"{self.name}@{self.version}"

    def encode(self) -> bytes:
        """Return the text of `manifest.json`."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def input_fault(self) -> str | None:
        """Return why this build's rows are not what the model was trained on, None if they are."""
        if self.n_features != N_FEATURES:
            return f"n_features must be {N_FEATURES}, is {self.n_features}"
        if self.window_rows > MAX_MODEL_WINDOW_ROWS:
            return f"window_rows must be at most {MAX_MODEL_WINDOW_ROWS}, is {self.window_rows}"
        if self.feature_names != FEATURE_NAMES:
            return f"feature_names must be this build's features in this order, {_first_difference(self.feature_names)}"
        if self.feature_hash != feature_hash_text():
            return f"feature_hash must be {feature_hash_text()} (names, formulas and units), is {self.feature_hash}"
        if self.outputs != OUTPUTS:
            return f"outputs must be {', '.join(OUTPUTS)}, are {', '.join(self.outputs)}"
        return None


def feature_hash_text() -> str:
    """Return this build's feature hash as it stands in manifests: 16 hexadecimal digits."""
    return f"{feature_hash():016x}"


def normalisation_hash(centre: Sequence[float], scale: Sequence[float], clip: float) -> str:
    """Return the SHA-256 over centre, scale and clip as little-endian float32 numbers."""
    digest = hashlib.sha256()
    for values in (centre, scale, [clip]):
        digest.update(np.asarray(values, "<f4").tobytes())
    return digest.hexdigest()


def _first_difference(names: tuple[str, ...]) -> str:
    if len(names) != len(FEATURE_NAMES):
        return f"has {len(names)} names instead of {len(FEATURE_NAMES)}"
    place = next(i for i, (found, expected) in enumerate(zip(names, FEATURE_NAMES, strict=True)) if found != expected)
    return f"feature {place} is {names[place]!r} instead of {FEATURE_NAMES[place]!r}"
