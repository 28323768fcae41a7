"""`tickwire model activate`: let a running inference serve another model, between two batches."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import click

from tickwire.errors import ConfigError
from tickwire.runtime import ServiceState, StatsReader
from tickwire.runtime.config import load_run
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.kill import user
from tickwire_ctl.options import config_option, set_option
from tickwire_inference.activation import REQUEST_FILE, ActivationRequest, read_answer, write_file

_LOOK_EVERY_S = 0.05


@click.command()
@click.argument("model")
@click.option("--timeout-s", type=click.FloatRange(min=0.1), default=60.0, show_default=True)
@config_option
@set_option
@reports_errors
def activate(model: str, timeout_s: float, config: Path, overrides: tuple[str, ...]) -> None:
    """Serve MODEL (name or name@version) from the next batch on.

    It is loaded, checked and warmed beside the running model; no request is lost. Until the next start only: `publish`
    and `rollback` say what inference starts with.
    """
    run = load_run(config, overrides=overrides)
    reader = StatsReader.attach(run.prefix, "inference")
    try:
        if reader.state is not ServiceState.READY:
            raise ConfigError(f"inference of prefix {run.prefix!r}: must be READY, is {reader.state.name}")
    finally:
        reader.close()
    name, _, version = model.partition("@")
    request = ActivationRequest(id=uuid.uuid4().hex, model=name, version=version or None, who=user())
    try:
        write_file(run.state_dir / REQUEST_FILE, request)
    except OSError as error:
        raise ConfigError(f"{run.state_dir / REQUEST_FILE}: must be writable: {error.strerror}") from error
    until_s = time.monotonic() + timeout_s
    while (answer := read_answer(run.state_dir, request.id)) is None:
        if time.monotonic() > until_s:
            raise ConfigError(f"model {model}: inference must answer within {timeout_s:g} s, did not; look at its log")
        time.sleep(_LOOK_EVERY_S)
    if not answer.activated:
        click.echo(f"{model} was refused, {answer.serving or 'the fallback'} serves on: {answer.reason}", err=True)
        raise click.exceptions.Exit(1)
    click.echo(f"{answer.serving} serves; loaded, warmed and swapped in {answer.took_ms} ms")
