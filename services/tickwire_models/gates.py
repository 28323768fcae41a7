"""The accuracy gates: what an engine may differ by from ONNX Runtime in FP32. Configuration of the model's manifest.

`gates` of a manifest maps a precision to the fields of `Gates` that are to differ from the defaults below:
`{"fp16": {"max_error": 0.002}}`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tickwire.errors import EngineError
from tickwire.models.engine_manifest import Precision


class Gates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for one precision."""

    max_error: Annotated[float, Meta(gt=0, le=1)]
    """Largest difference of one probability on real rows."""
    max_error_extreme: Annotated[float, Meta(gt=0, le=1)]
    """The same on rows that no market has shown."""
    min_correlation: Annotated[float, Meta(ge=-1, le=1)] = 0.98
    """Pearson's, over all probabilities of real rows."""
    max_kl: Annotated[float, Meta(gt=0)] = 0.01
    """Mean Kullback-Leibler divergence of the engine's from the reference's distribution, in nats, real rows."""
    min_agreement: Annotated[float, Meta(ge=0, le=1)] = 0.98
    """Share of real rows with the same most likely class."""


DEFAULTS: dict[Precision, Gates] = {
    "fp32": Gates(max_error=1e-3, max_error_extreme=5e-3, min_agreement=0.995),
    "fp16": Gates(max_error=5e-3, max_error_extreme=5e-2),
    "int8": Gates(max_error=0.1, max_error_extreme=0.5, min_agreement=0.93),
}
"""INT8: correlation and divergence judge it; single rows may be off by several calibrated steps."""


def gates_for(manifest_gates: dict[str, Any], precision: Precision, label: str) -> Gates:
    """Return a model's gates for a precision.

    Args:
        manifest_gates: `gates` of its manifest.
        precision: Which.
        label: `name@version`, for the error text.

    Raises:
        EngineError: A gate is unknown or out of bounds; names its place.
    """
    unknown = sorted(set(manifest_gates) - set(DEFAULTS))
    if unknown:
        raise EngineError(f"model {label}: gates must be of fp32, fp16 or int8, there are some of {', '.join(unknown)}")
    changed = manifest_gates.get(precision, {})
    try:
        return msgspec.convert({**msgspec.to_builtins(DEFAULTS[precision]), **changed}, Gates)
    except (msgspec.ValidationError, TypeError) as error:
        raise EngineError(f"model {label}: gates.{precision} of its manifest: {error}") from error
