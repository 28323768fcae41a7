"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from tickwire.runtime.config import load_run
from tickwire_ctl.interrupt import Interrupt

PROJECT = Path(__file__).parents[2]
DEFAULT_CONFIG = PROJECT / "deploy" / "config" / "tickwire.toml"
DEMO_CONFIG = PROJECT / "deploy" / "config" / "demo.toml"

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TICKWIRE_CONFIG",
    default=DEFAULT_CONFIG,
    show_default="deploy/config/tickwire.toml",
    help="The host's TOML file.",
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A TOML assignment that takes the place of the file's, such as 'ingest.pace=\"x4\"'.",
)
pass_interrupt = click.make_pass_decorator(Interrupt, ensure=True)
"""Hands the process's `Interrupt` to a command as its first argument."""
prefix_option = click.option("--prefix", help="The run's prefix; by default the configuration's.")


def prefix_of(prefix: str | None, config: Path) -> str:
    """Return the given prefix or the configuration's.

    Raises:
        ConfigError: There is neither.
    """
    return prefix if prefix is not None else load_run(config).prefix
