"""`tickwire top`: a live view of a run."""

from __future__ import annotations

from pathlib import Path

import click

from tickwire_ctl.errors import reports_errors
from tickwire_ctl.options import config_option, prefix_of, prefix_option


@click.command()
@config_option
@prefix_option
@click.option("--interval-s", type=click.FloatRange(min=0.1), default=0.5, show_default=True, help="Between two looks.")
@reports_errors
def top(config: Path, prefix: str | None, interval_s: float) -> None:
    """Watch services, rings, stages, inference and symbols live; q ends it."""
    from tickwire_ctl.top.app import TopApp  # Textual takes a quarter of a second to import

    TopApp(prefix_of(prefix, config), interval_s).run()
