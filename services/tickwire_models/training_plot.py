"""One picture of a training: learning curve, confusion matrix, calibration. Stands beside the model as `training.png`.

P1  The same figures give the same bytes: no date, no version in the file.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire_models.labels import CLASS_NAMES
from tickwire_models.metrics import judge, reliability
from tickwire_models.training import LearningCurve

TRAINING_PLOT_FILE = "training.png"
_INCHES = (15.0, 4.6)
_DPI = 100


def training_plot(
    title: str, curve: LearningCurve, probabilities: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]
) -> bytes:
    """Return a PNG of 1500 x 460 pixels.

    Args:
        title: Model and what it was judged on.
        curve: Log-loss by epoch.
        probabilities: Of held-out rows, shape (n, 3).
        labels: Of the same rows, shape (n,).

    Raises:
        ValueError: There is nothing to judge, or a probability is not finite.
    """
    # Imported here, since it is slow to import; no window system is asked for.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figures = judge(probabilities, labels)
    figure = Figure(figsize=_INCHES, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title}: accuracy {figures['accuracy']}, log-loss {figures['log_loss']}, {len(labels)} rows")
    learning, confusion, calibration = figure.subplots(1, 3)
    _draw_learning(learning, curve)
    _draw_confusion(confusion, np.asarray(figures["confusion_true_by_predicted"]))
    _draw_calibration(calibration, probabilities, labels)
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _draw_learning(axes: Any, curve: LearningCurve) -> None:
    epochs = np.arange(1, len(curve.validation) + 1)
    axes.plot(epochs, curve.training, marker="o", label="training")
    axes.plot(epochs, curve.validation, marker="o", label="validation")
    axes.axvline(epochs[int(np.argmin(curve.validation))], linestyle=":", color="grey", label="kept")
    axes.set(title="learning curve", xlabel="epoch", ylabel="log-loss", xticks=epochs)
    axes.legend()


def _draw_confusion(axes: Any, counts: npt.NDArray[np.int64]) -> None:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        share = shares[row, column]
        axes.text(column, row, f"{count:,}\n{share:.0%}", ha="center", va="center", color="w" if share > 0.5 else "k")
    places = range(len(CLASS_NAMES))
    axes.set(title="confusion, share of each true class", xlabel="predicted", ylabel="true")
    axes.set_xticks(places, CLASS_NAMES)
    axes.set_yticks(places, CLASS_NAMES)


def _draw_calibration(axes: Any, probabilities: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> None:
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    for number, name in enumerate(CLASS_NAMES):
        bins = reliability(probabilities[:, number], labels == number)
        axes.plot(bins.predicted, bins.observed, marker="o", label=name)
    axes.set(title="calibration", xlabel="predicted probability", ylabel="observed share", xlim=(0, 1), ylim=(0, 1))
    axes.legend()
