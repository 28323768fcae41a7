"""`tickwire anchor`: owns the segments of a host whose services others start and watch, such as containers."""

from __future__ import annotations

from pathlib import Path

import click
import structlog

from tickwire.runtime.config import load_run
from tickwire.runtime.log import configure
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.interrupt import Interrupt
from tickwire_ctl.options import config_option, pass_interrupt, set_option
from tickwire_ctl.segments import PrefixOwner

_LOOK_EVERY_S = 1.0


@click.command()
@config_option
@set_option
@pass_interrupt
@reports_errors
def anchor(interrupt: Interrupt, config: Path, overrides: tuple[str, ...]) -> None:
    """Create the segments and keep them until Ctrl-C or SIGTERM, then remove them; start no service.

    Services with run.follow_owner start only beside it and end after it.
    """
    run = load_run(config, overrides=overrides)
    writer = configure(run.table.log_format, run.table.log_level)
    log = structlog.get_logger().bind(service="anchor", instance=run.prefix)
    try:
        owner = PrefixOwner(run.prefix)
        try:
            if owner.removed_stale:
                log.info("stale_segments_removed", segments=owner.removed_stale)
            owner.create(run.symbols)
            log.info("segments_created", config=str(run.path), hash=run.hash, symbols=len(run.symbols))
            while not interrupt.wait(_LOOK_EVERY_S):
                pass
        finally:
            owner.release()
            log.info("segments_removed")
    finally:
        writer.flush()
