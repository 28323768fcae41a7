"""`tickwire demo`: the whole pipeline on real market data, in one command."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from tickwire.client import Lapped, SignalReader
from tickwire.errors import RingNotFoundError
from tickwire.runtime import StatsReader
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.host import ORDER, Host
from tickwire_ctl.interrupt import Interrupt
from tickwire_ctl.options import DEMO_CONFIG, pass_interrupt, set_option
from tickwire_ctl.progress import CompileLine
from tickwire_ctl.stream import SignalStream
from tickwire_ctl.summary import Summary, summarise
from tickwire_ctl.summary_screen import show_summary, wide_console

DEFAULT_SECONDS = 30.0
_SLICE_S = 0.1
_QUIET_S = 0.5
_SETTLE_S = 10.0


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Capture time to replay.",
)
@click.option("--pace", default="realtime", show_default=True, help="realtime, xN (such as x4) or max.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the summary as one JSON object."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEMO_CONFIG,
    show_default="deploy/config/demo.toml",
    help="The host's TOML file.",
)
@set_option
@pass_interrupt
@reports_errors
def demo(
    interrupt: Interrupt, seconds: float, pace: str, json_file: Path | None, config: Path, overrides: tuple[str, ...]
) -> None:
    """Replay real captures through all four processes and watch the signals stream by.

    Ends with the capture, after --seconds, or with Ctrl-C, and prints one summary. Each instance has its own prefix.
    """
    console = wide_console()
    if json_file is not None and not json_file.resolve().parent.is_dir():
        raise ValueError(f"--json {json_file}: its folder must exist")
    prefix = f"demo-{os.getpid()}"
    state_dir = Path(tempfile.mkdtemp(prefix=f"tickwire-{prefix}-"))
    own = (
        f'run.prefix = "{prefix}"',
        f"run.state_dir = '{state_dir}'",
        f'ingest.pace = "{pace}"',
        f"ingest.max_seconds = {seconds}",
        *overrides,
    )
    console.print(f"tickwire demo: prefix {prefix}, logs in {state_dir}")
    try:
        summary = _run(config, own, state_dir, interrupt, console)
    finally:
        with suppress(OSError):  # it holds logs
            state_dir.rmdir()
    if summary is None:
        console.print("interrupted before the first tick; nothing to sum up")
        return
    show_summary(console, summary)
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")


def _run(
    config: Path, overrides: Sequence[str], state_dir: Path, interrupt: Interrupt, console: Console
) -> Summary | None:
    def event(name: str, values: dict[str, Any]) -> None:
        if name in ("process_died", "process_restarted"):
            console.print(f"{name}: {values['process']}", style="yellow")

    with Host(config, overrides, log_dir=state_dir, event=event, hurried=interrupt.hurried) as host:
        try:
            with interrupt.immediate(), CompileLine(sys.stderr) as line:
                host.compile(line)
        except KeyboardInterrupt:
            return None
        host.start()
        started_s = time.monotonic()
        with SignalReader(host.run.prefix, name="demo") as reader:
            stream = SignalStream(lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True))
            while not interrupt.requested and not host.finished:
                _take(reader, stream)
                host.watch()
            if host.finished:
                _settle(host.run.prefix, reader, stream, interrupt)
            readers = _attach(host.run.prefix)
            if readers is None:
                return None
            try:
                return summarise(
                    readers,
                    host.run.symbols,
                    seconds=time.monotonic() - started_s,
                    signals_seen=stream.seen,
                    signals_lost=reader.lost,
                    window_rows=readers["inference"].gauge("window_rows"),
                )
            finally:
                for stats in readers.values():
                    stats.close()


def _take(reader: SignalReader, stream: SignalStream) -> None:
    if not reader.wait(_SLICE_S):
        return
    batch = reader.poll()
    if not isinstance(batch, Lapped):
        stream.show(batch, time.monotonic())


def _settle(prefix: str, reader: SignalReader, stream: SignalStream, interrupt: Interrupt) -> None:
    # The last ticks are still under way: wait until nothing moves any more.
    deadline_s = time.monotonic() + _SETTLE_S
    before: list[int] = []
    quiet_since_s = time.monotonic()
    while time.monotonic() < deadline_s and not interrupt.requested:
        _take(reader, stream)
        now = _progress(prefix)
        if now != before:
            before = now
            quiet_since_s = time.monotonic()
        elif time.monotonic() - quiet_since_s > _QUIET_S:
            return


def _progress(prefix: str) -> list[int]:
    readers = _attach(prefix)
    if readers is None:
        return []
    try:
        return [sum(readers[name].counters().values()) for name in ("features", "inference", "router")]
    finally:
        for stats in readers.values():
            stats.close()


def _attach(prefix: str) -> dict[str, StatsReader] | None:
    readers: dict[str, StatsReader] = {}
    try:
        for service in ORDER:
            readers[service] = StatsReader.attach(prefix, service)
    except RingNotFoundError:
        for stats in readers.values():
            stats.close()
        return None
    return readers
