"""`tickwire kill` and `tickwire unkill`: stop and resume trading, of everything or of one symbol."""

from __future__ import annotations

import getpass
import os
import time
from pathlib import Path

import click

from tickwire.errors import ConfigError, RingNotFoundError
from tickwire.runtime import RunConfig, ServiceState, StatsReader
from tickwire.runtime.config import load_run
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.options import config_option, set_option
from tickwire_router.kill_switch import kill as kill_file
from tickwire_router.kill_switch import unkill as unkill_file

_CONFIRM_S = 2.0
_LOOK_EVERY_S = 0.01


@click.command()
@click.argument("symbols", nargs=-1)
@click.option("--why", default="", help="Kept with the switch.")
@config_option
@set_option
@reports_errors
def kill(symbols: tuple[str, ...], why: str, config: Path, overrides: tuple[str, ...]) -> None:
    """Stop BUY and SELL of SYMBOLS (venue:name), or of everything. Survives restarts."""
    run = load_run(config, overrides=overrides)
    _check(run, symbols)
    state = kill_file(run.state_dir, symbols or None, who=user(), why=why)
    _confirm(run, state.generation, f"killed {', '.join(symbols) or 'everything'}")


@click.command()
@click.argument("symbols", nargs=-1)
@click.option("--why", default="", help="Kept with the switch.")
@config_option
@set_option
@reports_errors
def unkill(symbols: tuple[str, ...], why: str, config: Path, overrides: tuple[str, ...]) -> None:
    """Lift the kill of SYMBOLS, or the global one (symbols killed by name stay killed)."""
    run = load_run(config, overrides=overrides)
    _check(run, symbols)
    state = unkill_file(run.state_dir, symbols or None, who=user(), why=why)
    _confirm(run, state.generation, f"lifted the kill of {', '.join(symbols) or 'everything'}")


def user() -> str:
    """Return who runs this command, for records of who asked for what."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid need not have a name
        return f"uid {os.getuid()}"


def _check(run: RunConfig, symbols: tuple[str, ...]) -> None:
    known = [instrument.label for instrument in run.symbols]
    for label in symbols:
        if label not in known:
            raise ConfigError(f"symbol {label!r}: must be one of the run's, which are {', '.join(known)}")


def _confirm(run: RunConfig, generation: int, what: str) -> None:
    # The router says which generation its signals obey.
    started_s = time.monotonic()
    try:
        reader = StatsReader.attach(run.prefix, "router")
    except RingNotFoundError:
        click.echo(f"{what}; no router runs with prefix {run.prefix!r}: it will hold from its next start")
        return
    try:
        while reader.gauge("kill_generation") < generation:
            if time.monotonic() - started_s > _CONFIRM_S or reader.state is not ServiceState.READY:
                click.echo(f"{what}; the router has NOT confirmed: it is {reader.state.name}", err=True)
                raise click.exceptions.Exit(1)
            time.sleep(_LOOK_EVERY_S)
    finally:
        reader.close()
    click.echo(f"{what}; confirmed by the router after {1e3 * (time.monotonic() - started_s):.0f} ms")
