"""`tickwire model quantise|build|validate`: precisions, plans, and the gates that judge them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, TextColumn
from rich.table import Table

from tickwire.errors import TickwireError
from tickwire.models import ModelFiles, ModelRegistry
from tickwire.models.engine_files import INSPECTOR_FILE, EngineFiles
from tickwire.models.engine_manifest import PRECISIONS, Precision
from tickwire.models.precisions import graph_of
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.machine import machine_here
from tickwire_inference.engines.tensorrt_library import TensorRtLibrary, load_library
from tickwire_models.building import build, settings_for
from tickwire_models.calibration import draw
from tickwire_models.forms import make_form
from tickwire_models.judging import Judge, describe, keep_verdict, target_machine
from tickwire_models.registry_cli import models_option
from tickwire_models.sessions import rows_of_config
from tickwire_models.validation import Report

CACHE = Path("~/.cache/tickwire/models").expanduser()
"""Where quantised graphs and timings are kept."""
_MADE = ("fp16", "int8")
config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("deploy/config/demo.toml"),
    show_default=True,
    help="Host configuration whose captures give the rows.",
)


def _reports(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except TickwireError as error:
            raise click.ClickException(str(error)) from error

    return run


def _resolve(models: Path, model: str) -> ModelFiles:
    name, _, version = model.partition("@")
    return ModelRegistry(models).resolve(name, version or None)


@click.command()
@click.argument("model")
@click.option("--precision", type=click.Choice([*_MADE, "all"]), default="all", show_default=True)
@click.option("--windows", type=click.IntRange(min=1), default=192, show_default=True, help="Of the calibration set.")
@click.option("--seed", type=int, default=1, show_default=True)
@models_option
@config_option
@_reports
def quantise(model: str, precision: str, windows: int, seed: int, models: Path, config: Path) -> None:
    """Make the FP16 and INT8 graphs of MODEL (name or name@version), INT8 calibrated on recorded regimes."""
    files = _resolve(models, model)
    wanted: tuple[Any, ...] = _MADE if precision == "all" else (precision,)
    calibration = None
    if "int8" in wanted:
        window_rows = files.manifest.window_rows
        calibration = draw(rows_of_config(config, window_rows), window_rows, n=windows, seed=seed)
        counts = ", ".join(f"{count} {regime}" for regime, count in calibration.regimes.items())
        click.echo(f"calibration set {calibration.hash[:12]}: {counts}")
    for entry in wanted:
        make_form(files, entry, calibration, CACHE, click.echo)


@click.command(name="build")
@click.argument("model")
@click.option("--precision", type=click.Choice([*PRECISIONS, "all"]), default="fp16", show_default=True)
@click.option(
    "--target", help="Compute capability, as 8.9, where TensorRT builds for other GPUs; else the GPU present."
)
@click.option("--workspace-mib", type=click.IntRange(min=16), default=1024, show_default=True)
@click.option("--level", type=click.IntRange(0, 5), default=3, show_default=True, help="Builder optimisation level.")
@click.option("--pad", multiple=True, metavar="BUCKET=SIZE", help="Run a bucket padded, where its own size is wrong.")
@models_option
@_reports
def build_command(
    model: str,
    precision: str,
    target: str | None,
    workspace_mib: int,
    level: int,
    pad: tuple[str, ...],
    models: Path,
) -> None:
    """Build the TensorRT plan of MODEL; it serves once `validate --on tensorrt` has passed it."""
    files, library = _resolve(models, model), load_library()
    machine = target_machine(library, target)
    run_sizes = {int(bucket): int(size) for bucket, _, size in (entry.partition("=") for entry in pad)}
    wanted: tuple[Any, ...] = PRECISIONS if precision == "all" else (precision,)
    for entry in wanted:
        graph = graph_of(files, entry)
        settings = settings_for(graph, workspace_mib=workspace_mib, level=level, target=target)
        with Progress(TextColumn("{task.description}"), *Progress.get_default_columns()[1:], transient=True) as bars:
            built = build(
                library,
                graph,
                files.manifest.window_rows,
                settings,
                run_sizes=run_sizes,
                timing_cache=CACHE / f"timing_{machine.library}{machine.library_version}_{machine.compute_capability}",
                progress=_show_on(bars),
            )
        manifest = describe(files, entry, graph, built, machine)
        place = EngineFiles(files.folder).write(manifest, built.plan, built.inspector)
        click.echo(f"{files.label} {entry}: {len(built.plan)} bytes in {built.seconds:.1f} s, {place}")


@click.command()
@click.argument("model")
@click.option("--precision", type=click.Choice([*PRECISIONS, "all"]), default="all", show_default=True)
@click.option("--on", type=click.Choice(["onnxruntime", "tensorrt"]), default="onnxruntime", show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the reports there.")
@models_option
@config_option
@_reports
def validate(model: str, precision: str, on: str, json_file: Path | None, models: Path, config: Path) -> None:
    """Judge MODEL by the gates: its graphs on ONNX Runtime, or its plans on the GPU present. 1 if refused."""
    files = _resolve(models, model)
    judge = Judge(files, rows_of_config(config, files.manifest.window_rows))
    wanted: tuple[Any, ...] = PRECISIONS if precision == "all" else (precision,)
    reports: dict[str, Report] = {}
    for entry in wanted:
        reports[entry] = judge.graph(entry) if on == "onnxruntime" else judge_plan(judge, files, entry)
        _print(files.label, entry, reports[entry])
    if json_file is not None:
        json_file.write_text(json.dumps({name: report.encoded() for name, report in reports.items()}, indent=2) + "\n")
    if not all(report.passed for report in reports.values()):
        raise click.exceptions.Exit(1)


def judge_plan(judge: Judge, files: ModelFiles, precision: Precision) -> Report:
    """Judge the plan of this machine and enter the verdict in its manifest.

    Raises:
        EngineError: There is no plan for this machine, or no GPU.
    """
    library: TensorRtLibrary = load_library()
    cuda, store = CudaContext(), EngineFiles(files.folder)
    try:
        here = machine_here(library, cuda)
        for fingerprint in store.fingerprints():
            manifest = store.manifest(fingerprint)
            if manifest.precision == precision and manifest.machine.difference(here) is None:
                plan = store.plan(fingerprint, manifest)
                report = judge.plan(library, cuda, manifest, plan)
                inspector = (files.folder / "engines" / fingerprint / INSPECTOR_FILE).read_text()
                keep_verdict(store, manifest, plan, inspector, report)
                return report
    finally:
        cuda.close()
    raise click.ClickException(f"{files.label}: must have a {precision} plan for this machine; tickwire model build")


def _show_on(bars: Progress) -> Callable[[str, int, int], None]:
    tasks: dict[str, Any] = {}

    def show(phase: str, done: int, total: int) -> None:
        if phase not in tasks:
            tasks[phase] = bars.add_task(phase, total=total or None)
        bars.update(tasks[phase], completed=done, visible=total > 0)

    return show


def _print(label: str, precision: str, report: Report) -> None:
    title = f"{label} {precision}: {'passed' if report.passed else 'REFUSED'}"
    table = Table("bucket", "rows", "max error", "extreme rows", "correlation", "KL", "agreement", title=title)
    for found in report.buckets:
        table.add_row(
            str(found.bucket),
            str(found.rows),
            f"{found.max_error:.2e}",
            f"{found.max_error_extreme:.2e}",
            f"{found.correlation:.6f}",
            f"{found.kl:.2e}",
            f"{found.agreement:.4f}",
        )
    Console().print(table)
    for refusal in report.refusals:
        click.echo(f"  refused: {refusal.text()}")
