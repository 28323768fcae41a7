"""Training, deterministic by seed: the epoch with the best validation log-loss is kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tickwire.models import Normalisation
from tickwire_models.architecture import NETWORKS, WINDOW_ROWS, Network, Normalise
from tickwire_models.dataset import Samples, windows_of
from tickwire_models.labels import classify

Progress = Callable[[int, int, float], None]
"""Told (batches done, batches in all, running loss)."""

_EVALUATION_BATCH = 256


@dataclass(frozen=True)
class TrainingSettings:
    """What decides the weights, beside the data."""

    seed: int = 7
    epochs: int = 4
    batch: int = 128
    samples_per_epoch: int = 16_000
    validation_samples: int = 8_000
    learning_rate: float = 3e-4
    weight_decay: float = 0.1
    threads: int = 2


@dataclass(frozen=True)
class LearningCurve:
    """Log-loss by epoch."""

    training: list[float]
    """Mean over the epoch's batches, each before its step."""
    validation: list[float]
    """After the epoch."""


@dataclass(frozen=True)
class Picked:
    """Samples of several sessions under one number each."""

    samples: list[Samples]
    session: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.labels)

    def subset(self, chosen: npt.NDArray[np.int64]) -> Picked:
        """Return some of them."""
        return Picked(self.samples, self.session[chosen], self.position[chosen], self.labels[chosen])

    def windows(self) -> npt.NDArray[np.float32]:
        """Return their windows, shape (n, T, F)."""
        out = np.empty((len(self), WINDOW_ROWS, self.samples[0].rows.features.shape[1]), dtype=np.float32)
        for number, samples in enumerate(self.samples):
            mine = np.flatnonzero(self.session == number)
            if len(mine):
                out[mine] = windows_of(samples.rows, samples.newest[self.position[mine]], WINDOW_ROWS)
        return out

    def newest_rows(self) -> npt.NDArray[np.float32]:
        """Return the newest row of each, shape (n, F)."""
        return np.stack(
            [
                self.samples[s].rows.features[self.samples[s].newest[p]]
                for s, p in zip(self.session, self.position, strict=True)
            ]
        )


def pick(samples: list[Samples], part: int, threshold: float) -> Picked:
    """Return all samples of one part, with labels."""
    session = [np.full(int((s.part == part).sum()), number) for number, s in enumerate(samples)]
    position = [np.flatnonzero(s.part == part) for s in samples]
    labels = [classify(s.moves[s.part == part], threshold) for s in samples]
    return Picked(samples, np.concatenate(session), np.concatenate(position), np.concatenate(labels))


def make_network(kind: str, normalisation: Normalisation, seed: int) -> Network:
    """Return an untrained network, the same for the same seed."""
    torch.manual_seed(seed)
    centre = np.array(normalisation.centre, dtype=np.float32)
    scale = np.array(normalisation.scale, dtype=np.float32)
    return NETWORKS[kind](Normalise(centre, scale, normalisation.clip))


def train(
    network: Network, picked: Picked, validation: Picked, settings: TrainingSettings, progress: Progress
) -> tuple[Network, LearningCurve]:
    """Train a network in place; return its best state and the log-loss of each epoch."""
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(settings.seed)
    dice = np.random.default_rng(settings.seed)
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    batches = min(settings.samples_per_epoch, len(picked)) // settings.batch
    if not batches:
        raise ValueError(f"training: needs at least one batch of {settings.batch} samples, got {len(picked)} samples")
    total = batches * settings.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.learning_rate * 2, total_steps=total)
    if len(validation) > settings.validation_samples:
        validation = validation.subset(np.sort(dice.permutation(len(validation))[: settings.validation_samples]))
    curve = LearningCurve([], [])
    best: tuple[float, dict[str, torch.Tensor]] | None = None
    running = 0.0
    for epoch in range(settings.epochs):
        network.train()
        losses = []
        order = dice.permutation(len(picked))[: batches * settings.batch]
        for number in range(batches):
            chosen = picked.subset(order[number * settings.batch : (number + 1) * settings.batch])
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(
                network.logits(torch.from_numpy(chosen.windows())), torch.from_numpy(chosen.labels)
            )
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            losses.append(float(loss.detach()))
            running = 0.98 * running + 0.02 * losses[-1] if running else losses[-1]
            progress(epoch * batches + number + 1, total, running)
        probabilities = predict(network, validation)
        likelihood = probabilities[np.arange(len(validation)), validation.labels]
        curve.training.append(float(np.mean(losses)))
        curve.validation.append(float(-np.log(np.maximum(likelihood, 1e-7)).mean()))
        if best is None or curve.validation[-1] < best[0]:
            best = (curve.validation[-1], copy.deepcopy(network.state_dict()))
    assert best is not None
    network.load_state_dict(best[1])
    return network.eval(), curve


def predict(network: Network, picked: Picked) -> npt.NDArray[np.float32]:
    """Return the network's probabilities, shape (n, 3)."""
    network.eval()
    parts = []
    with torch.no_grad():
        for first in range(0, len(picked), _EVALUATION_BATCH):
            chosen = picked.subset(np.arange(first, min(first + _EVALUATION_BATCH, len(picked))))
            parts.append(network(torch.from_numpy(chosen.windows())).numpy())
    return np.concatenate(parts)
