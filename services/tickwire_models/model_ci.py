"""`tickwire model ci`: quantise, judge, build and judge again whatever this machine can, from one list of targets.

It works on a copy of the registry, so that a run leaves the registry as it was; what passed is in the copy.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec
from msgspec import Meta

from tickwire.errors import ConfigError, EngineError, TickwireError
from tickwire.models import ModelFiles, ModelRegistry
from tickwire.models.engine_files import EngineFiles
from tickwire.models.engine_manifest import PRECISIONS, Machine, Precision
from tickwire.models.precisions import graph_of
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.machine import machine_for, machine_here
from tickwire_inference.engines.tensorrt_library import TensorRtLibrary, load_library
from tickwire_models.building import build, settings_for
from tickwire_models.calibration import draw
from tickwire_models.engine_cli import CACHE, config_option
from tickwire_models.forms import make_form
from tickwire_models.judging import Judge, describe, keep_verdict
from tickwire_models.registry_cli import models_option
from tickwire_models.sessions import rows_of_config
from tickwire_models.validation import Report

Outcome = Literal["passed", "refused", "built, not judged", "left out", "failed"]
_BAD = ("refused", "failed")


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of machine that engines are wanted for."""

    name: str
    library: Literal["tensorrt", "tensorrt_rtx"]
    compute_capability: Annotated[str, Meta(pattern=r"^\d+\.\d$")]
    precisions: tuple[Precision, ...] = PRECISIONS


class BuildList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`build.toml`."""

    models: Annotated[tuple[str, ...], Meta(min_length=1)]
    targets: tuple[Target, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report."""

    model: str
    precision: str
    where: str
    """`onnxruntime`, or the target's name."""
    outcome: Outcome
    detail: str


def read_build_list(path: Path) -> BuildList:
    """Read a list of targets.

    Raises:
        ConfigError: It cannot be read; names file and place.
    """
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), BuildList)
    except OSError as error:
        raise ConfigError(f"{path}: must be readable: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error


@click.command()
@click.option("--list", "list_file", type=click.Path(path_type=Path), default=Path("deploy/models/build.toml"))
@click.option(
    "--work", type=click.Path(path_type=Path, file_okay=False), default=Path("build/models"), show_default=True
)
@click.option("--windows", type=click.IntRange(min=1), default=192, show_default=True, help="Of the calibration set.")
@models_option
@config_option
def ci(list_file: Path, work: Path, windows: int, models: Path, config: Path) -> None:
    """Quantise, judge and build the models of build.toml; exits with 1 if a gate refuses or a build fails."""
    try:
        wanted = read_build_list(list_file)
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(models, work)
        steps: list[Step] = []
        for name in wanted.models:
            files = ModelRegistry(work).resolve(name)
            rows = rows_of_config(config, files.manifest.window_rows)
            make_form(files, "fp16", None, CACHE, click.echo)
            make_form(files, "int8", draw(rows, files.manifest.window_rows, n=windows), CACHE, click.echo)
            judge = Judge(files, rows)
            steps += [_step(files, precision, "onnxruntime", judge.graph(precision)) for precision in PRECISIONS]
            for target in wanted.targets:
                steps += _build_for(target, files, judge)
    except TickwireError as error:
        raise click.ClickException(str(error)) from error
    for step in steps:
        click.echo(
            f"{step.model} {step.precision} on {step.where}: {step.outcome}{f' ({step.detail})' if step.detail else ''}"
        )
    (work / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(steps), indent=2) + b"\n")
    click.echo(f"report: {work / 'report.json'}")
    if any(step.outcome in _BAD for step in steps):
        raise click.exceptions.Exit(1)


def _build_for(target: Target, files: ModelFiles, judge: Judge) -> list[Step]:
    def left_out(reason: str) -> list[Step]:
        return [
            Step(model=files.label, precision=precision, where=target.name, outcome="left out", detail=reason)
            for precision in target.precisions
        ]

    try:
        library = load_library(target.library)
    except EngineError as error:
        return left_out(str(error))
    cuda: CudaContext | None = None
    try:
        cuda = CudaContext()
    except EngineError as error:
        if not library.builds_for_others:
            return left_out(str(error))
    try:
        here = machine_here(library, cuda) if cuda is not None else None
        is_target = here is not None and here.compute_capability == target.compute_capability
        if not is_target and not library.builds_for_others:
            return left_out(f"this machine's GPU is not of compute capability {target.compute_capability}")
        machine = here if here is not None and is_target else machine_for(library, target.compute_capability)
        return [
            _build_one(target, files, judge, precision, library, machine, cuda if is_target else None)
            for precision in target.precisions
        ]
    finally:
        if cuda is not None:
            cuda.close()


def _build_one(
    target: Target,
    files: ModelFiles,
    judge: Judge,
    precision: Precision,
    library: TensorRtLibrary,
    machine: Machine,
    cuda: CudaContext | None,
) -> Step:
    try:
        graph = graph_of(files, precision)
        settings = settings_for(graph, target=target.compute_capability if library.builds_for_others else None)
        built = build(library, graph, files.manifest.window_rows, settings)
        manifest = describe(files, precision, graph, built, machine)
        store = EngineFiles(files.folder)
        store.write(manifest, built.plan, built.inspector)
        if cuda is None:
            detail = f"{len(built.plan)} bytes in {built.seconds:.1f} s; no such GPU here"
            return Step(
                model=files.label, precision=precision, where=target.name, outcome="built, not judged", detail=detail
            )
        report = judge.plan(library, cuda, manifest, built.plan)
        keep_verdict(store, manifest, built.plan, built.inspector, report)
        return _step(files, precision, target.name, report)
    except EngineError as error:
        return Step(model=files.label, precision=precision, where=target.name, outcome="failed", detail=str(error))


def _step(files: ModelFiles, precision: str, where: str, report: Report) -> Step:
    worst = max(report.buckets, key=lambda found: found.max_error)
    detail = f"max error {worst.max_error:.1e}" if report.passed else report.refusals[0].text()
    outcome: Outcome = "passed" if report.passed else "refused"
    return Step(model=files.label, precision=precision, where=where, outcome=outcome, detail=detail)
