"""What a model has to beat: the training part's class shares, and a logistic regression on the newest row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tickwire.models import Normalisation

_STEPS = 300


def prior(train_labels: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.float32]:
    """Return the training part's class shares for each of n rows, shape (n, 3)."""
    shares = np.bincount(train_labels, minlength=3) / len(train_labels)
    return np.tile(shares.astype(np.float32), (n, 1))


def logistic(
    train: npt.NDArray[np.float32],
    train_labels: npt.NDArray[np.int64],
    test: npt.NDArray[np.float32],
    normalisation: Normalisation,
    seed: int,
) -> npt.NDArray[np.float32]:
    """Fit a multinomial logistic regression on newest rows (n, F) and return its test probabilities (m, 3)."""
    torch.manual_seed(seed)
    centre, scale = torch.tensor(normalisation.centre), torch.tensor(normalisation.scale)

    def prepare(rows: npt.NDArray[np.float32]) -> torch.Tensor:
        scaled = (torch.from_numpy(rows) - centre) / scale
        return scaled.clamp(-normalisation.clip, normalisation.clip)

    x, y = prepare(train), torch.from_numpy(train_labels)
    layer = nn.Linear(x.shape[1], 3)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02, weight_decay=1e-4)
    for _ in range(_STEPS):
        optimiser.zero_grad()
        nn.functional.cross_entropy(layer(x), y).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        out: npt.NDArray[np.float32] = torch.softmax(layer(prepare(test)), -1).numpy()
    return out
