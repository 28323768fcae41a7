"""`tickwire model list|show|publish|rollback|gc`: the registry from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tickwire.errors import EngineError, TickwireError
from tickwire.models import Manifest, ModelRegistry
from tickwire.models.engine_files import EngineFiles
from tickwire_models.graph_contract import check_graph
from tickwire_models.publishing import Publisher

models_option = click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("deploy/models"),
    show_default=True,
    help="The registry's folder.",
)


@click.command(name="list")
@models_option
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_models(models: Path, as_json: bool) -> None:
    """All models and versions; a version that inference would refuse says why."""
    found = []
    for name in (publisher := Publisher(models)).names():
        for version in publisher.versions(name):
            state = {publisher.current(name): "current", publisher.previous(name): "previous"}.get(version, "")
            fault, created = "", ""
            try:
                created = ModelRegistry(models).resolve(name, version).manifest.created
            except EngineError as error:
                fault = str(error)
            engines = len(EngineFiles(models / name / version).fingerprints())
            found.append(
                {"model": f"{name}@{version}", "state": state, "created": created, "engines": engines, "fault": fault}
            )
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    table = Table("model", "state", "created", "engines", "fault")
    for entry in found:
        table.add_row(*(str(value) for value in entry.values()))
    Console().print(table)


@click.command()
@click.argument("model")
@models_option
@click.option("--json", "as_json", is_flag=True, help="The whole manifest.")
def show(model: str, models: Path, as_json: bool) -> None:
    """What is known about MODEL (name or name@version), checked as inference checks it."""
    name, _, version = model.partition("@")
    try:
        files = ModelRegistry(models).resolve(name, version or None)
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    manifest, engines = files.manifest, EngineFiles(files.folder)
    if as_json:
        click.echo(manifest.encode().decode(), nl=False)
        return
    table = Table("what", "value", title=manifest.label)
    held_out = manifest.metrics.get("held_out", {})
    for what, value in (
        ("kind", manifest.kind),
        ("created", manifest.created),
        ("window", f"{manifest.window_rows} rows of {manifest.n_features} features"),
        ("horizon", f"{manifest.horizon_ms} ms"),
        ("graph", f"{manifest.onnx_bytes} bytes, opset {manifest.opset}, SHA-256 {manifest.onnx_sha256}"),
        ("features", manifest.feature_hash),
        ("normalisation", manifest.normalisation.hash),
        ("held out", ", ".join(f"{key} {held_out[key]}" for key in ("accuracy", "log_loss") if key in held_out)),
        ("trained on", ", ".join(source.name for source in manifest.training.data)),
        *((f"engine {entry}", _verdict(engines, entry)) for entry in engines.fingerprints()),
    ):
        table.add_row(what, str(value))
    Console().print(table)


@click.command()
@click.argument("onnx", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--manifest", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True)
@click.option("--number", is_flag=True, help="Give it the next free number as its version.")
@models_option
def publish(onnx: Path, manifest: Path, number: bool, models: Path) -> None:
    """Add the graph ONNX with its manifest to the registry and make it current; a crash leaves what was."""
    try:
        described = msgspec.json.decode(manifest.read_bytes(), type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{manifest}: must be a model's manifest: {error}") from error
    try:
        check_graph(onnx.read_bytes(), described.window_rows, str(onnx))
        click.echo(f"{Publisher(models).publish(described, onnx.read_bytes(), number=number).label} is current")
    except TickwireError as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.argument("name")
@click.option("--to", "version", help="The version; the one before the current one unless given.")
@models_option
def rollback(name: str, version: str | None, models: Path) -> None:
    """Make an earlier version of NAME current again."""
    try:
        click.echo(f"{name}@{Publisher(models).rollback(name, version)} is current")
    except TickwireError as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.argument("name")
@click.option("--keep", type=click.IntRange(min=1), default=5, show_default=True)
@models_option
def gc(name: str, keep: int, models: Path) -> None:
    """Remove old versions of NAME, never the current or the previous one, and what dead publishers left."""
    try:
        removed = Publisher(models).gc(name, keep)
    except TickwireError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"removed {', '.join(removed) or 'nothing'}")


def _verdict(engines: EngineFiles, fingerprint: str) -> str:
    try:
        manifest = engines.manifest(fingerprint)
        engines.plan(fingerprint, manifest)
    except EngineError as error:
        return str(error)
    verdict = "passed" if manifest.passed else "has NOT passed"
    return f"{manifest.precision}, {manifest.plan_bytes} bytes, {verdict} the gates"
