"""`tickwire up`: all processes of this host, supervised, until it is stopped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import structlog

from tickwire.runtime.log import configure
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.host import Host
from tickwire_ctl.interrupt import Interrupt
from tickwire_ctl.options import config_option, pass_interrupt, set_option
from tickwire_ctl.progress import CompileLine

_LOOK_EVERY_S = 0.1


@click.command()
@config_option
@set_option
@pass_interrupt
@reports_errors
def up(interrupt: Interrupt, config: Path, overrides: tuple[str, ...]) -> None:
    """Run ingest, features, inference and router on this host until Ctrl-C, SIGTERM or `tickwire down`.

    A process that dies is restarted after a back-off; one that keeps dying, or cannot start, ends the run with the
    reason. A second Ctrl-C ends the processes without draining.
    """

    def event(name: str, values: dict[str, Any]) -> None:
        (log.warning if name == "process_died" else log.info)(name, **values)

    with Host(config, overrides, log_dir=None, event=event, hurried=interrupt.hurried) as host:
        writer = configure(host.run.table.log_format, host.run.table.log_level)
        log = structlog.get_logger().bind(service="up", instance=host.run.prefix)
        try:
            log.info("config_loaded", path=str(host.run.path), hash=host.run.hash)
            try:
                with interrupt.immediate(), CompileLine(sys.stderr) as line:
                    host.compile(line)
            except KeyboardInterrupt:
                return
            host.start()
            while not interrupt.wait(_LOOK_EVERY_S) and not host.finished:
                host.watch()
            host.stop()
        finally:
            writer.flush()
