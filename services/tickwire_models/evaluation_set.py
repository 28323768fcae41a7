"""What engines are judged on: windows of recorded rows, and windows that no market has shown yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tickwire.errors import EngineError
from tickwire.models import Normalisation
from tickwire.records import N_FEATURES
from tickwire_models.dataset import Rows

EXTREME_NAMES = ("zeros", "10 sigma up", "10 sigma down", "10 sigma alternating", "raw price 1e5", "volume 1e7", "jump")


@dataclass(frozen=True)
class EvaluationSet:
    """Windows with names; the first `n_real` are real, the rest extreme."""

    windows: npt.NDArray[np.float32]
    """Shape (n, T, 48)."""
    names: tuple[str, ...]
    n_real: int

    def __post_init__(self) -> None:
        """Refuse a set that would pass anything.

        Raises:
            EngineError: It has no real windows, or one is not finite.
        """
        if self.n_real < 1:
            raise EngineError("evaluation set: must have real windows, has none")
        if not bool(np.isfinite(self.windows).all()):
            raise EngineError("evaluation set: must be finite, has a NaN or an infinity")


def draw(
    sessions: Sequence[Rows], window_rows: int, normalisation: Normalisation, *, n_real: int = 256, seed: int = 1
) -> EvaluationSet:
    """Draw real windows evenly from all sessions and add the extreme ones; the same seed draws the same.

    Raises:
        EngineError: No session has a whole window.
    """
    dice = np.random.default_rng(seed)
    places = [(s, int(i)) for s, rows in enumerate(sessions) for i in np.flatnonzero(rows.usable)]
    if not places:
        raise EngineError(f"evaluation set: the captures must hold {window_rows} rows in a row, do not")
    chosen = [places[i] for i in dice.permutation(len(places))[:n_real]]
    real = [sessions[s].features[i - window_rows + 1 : i + 1] for s, i in chosen]
    names = [f"{sessions[s].label} row {i}" for s, i in chosen]
    extreme = _extreme(window_rows, normalisation, real[0], dice)
    return EvaluationSet(
        windows=np.ascontiguousarray(np.stack([*real, *extreme]), np.float32),
        names=(*names, *EXTREME_NAMES),
        n_real=len(real),
    )


def _extreme(
    window_rows: int, normalisation: Normalisation, real: npt.NDArray[np.float32], dice: np.random.Generator
) -> list[npt.NDArray[np.float32]]:
    shape = (window_rows, N_FEATURES)
    centre, scale = np.asarray(normalisation.centre, np.float32), np.asarray(normalisation.scale, np.float32)
    up, down = np.broadcast_to(centre + 10 * scale, shape), np.broadcast_to(centre - 10 * scale, shape)
    signs = np.where(dice.random(shape) < 0.5, -1, 1).astype(np.float32)
    jump = real.copy()
    jump[window_rows // 2 :] += 10 * scale
    return [
        np.zeros(shape, np.float32),
        up.astype(np.float32),
        down.astype(np.float32),
        (centre + 10 * scale * signs).astype(np.float32),
        np.full(shape, 1e5, np.float32),
        np.full(shape, 1e7, np.float32),
        jump.astype(np.float32),
    ]
