"""`tickwire model ...`: the group, and training. PyTorch is imported only when training runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tickwire.errors import ConfigError, TickwireError
from tickwire_models.lazy_group import LazyGroup

NAMES = ("transformer", "lstm")


_PLACES = {
    "list": "tickwire_models.registry_cli:list_models",
    "show": "tickwire_models.registry_cli:show",
    "publish": "tickwire_models.registry_cli:publish",
    "rollback": "tickwire_models.registry_cli:rollback",
    "gc": "tickwire_models.registry_cli:gc",
    "quantise": "tickwire_models.engine_cli:quantise",
    "build": "tickwire_models.engine_cli:build_command",
    "validate": "tickwire_models.engine_cli:validate",
    "backtest": "tickwire_models.backtest_cli:backtest",
    "ci": "tickwire_models.model_ci:ci",
}


@click.group(name="model", cls=LazyGroup, places=_PLACES, context_settings={"help_option_names": ["-h", "--help"]})
def model_group() -> None:
    """Train, publish, quantise, build and judge models."""


@model_group.command()
@click.option("--name", type=click.Choice([*NAMES, "all"]), default="all", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("deploy/models"), show_default=True)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path("../shared/data/binance"),
    show_default=True,
    help="Folder of the training captures.",
)
@click.option("--seed", type=int, default=7, show_default=True)
@click.option("--epochs", type=click.IntRange(min=1), help="Default: 4.")
def train(name: str, out: Path, data: Path, seed: int, epochs: int | None) -> None:
    """Train on recorded captures, judge on held-out time, export to ONNX, publish."""
    try:
        import matplotlib  # noqa: F401 - only to say what is missing before minutes are spent on data
        import torch  # noqa: F401 - the same
    except ImportError as error:
        raise ConfigError(f"training needs {error.name}: pip install 'tickwire[train]'") from error
    from tickwire_models.recipe import load_samples, make_model
    from tickwire_models.split import SplitRule
    from tickwire_models.training import TrainingSettings

    rule = SplitRule()
    settings = TrainingSettings(seed=seed) if epochs is None else TrainingSettings(seed=seed, epochs=epochs)
    try:
        samples = load_samples(data, click.echo, rule)
        for kind in NAMES if name == "all" else (name,):
            with click.progressbar(length=1, label=kind) as bar:
                manifest = make_model(kind, samples, data, out, settings, rule, _progress_on(bar, kind))
            held_out = manifest.metrics["held_out"]
            click.echo(
                f"{manifest.label}: accuracy {held_out['accuracy']}, log-loss {held_out['log_loss']} "
                f"(prior {manifest.metrics['baseline_prior']['log_loss']}, "
                f"logistic {manifest.metrics['baseline_logistic_newest_row']['log_loss']}) on {held_out['rows']} rows"
            )
    except TickwireError as error:
        raise click.ClickException(str(error)) from error


def _progress_on(bar: Any, kind: str) -> Callable[[int, int, float], None]:
    def progress(done: int, total: int, loss: float) -> None:
        bar.length = total
        bar.label = f"{kind} loss {loss:.3f}"
        bar.update(done - bar.pos)

    return progress
