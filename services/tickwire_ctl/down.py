"""`tickwire down`: stop a running `tickwire up` and wait for its end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import click

from tickwire.errors import TickwireError
from tickwire.ring.segment import SHM_FOLDER, list_segments, segment_name
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.options import config_option, prefix_of, prefix_option
from tickwire_ctl.segments import PrefixOwner, live_segments, owner_pid

_LOOK_EVERY_S = 0.05


@click.command()
@config_option
@prefix_option
@click.option("--timeout-s", type=click.FloatRange(min=0), default=60.0, show_default=True)
@reports_errors
def down(config: Path, prefix: str | None, timeout_s: float) -> None:
    """Stop the run of a prefix; remove what a dead run left behind."""
    prefix = prefix_of(prefix, config)
    deadline_s = time.monotonic() + timeout_s
    pid = owner_pid(prefix)
    if pid is None:
        _remove_stale(prefix, deadline_s)
        return
    if not _owns(pid, prefix) and owner_pid(prefix) == pid:
        raise TickwireError(
            f"prefix {prefix!r}: `tickwire up` with pid {pid} must be of this PID namespace and user, is not; "
            "end it where it runs"
        )
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while owner_pid(prefix) is not None:
        if time.monotonic() > deadline_s:
            raise TickwireError(
                f"prefix {prefix!r}: `tickwire up` with pid {pid} must end within {timeout_s:g} s, did not"
            )
        time.sleep(_LOOK_EVERY_S)
    click.echo(f"stopped {prefix!r} (pid {pid})")


def _owns(pid: int, prefix: str) -> bool:
    # Whether that process here has the owner's segment open: a pid of another container means somebody else here.
    owner = SHM_FOLDER / segment_name(prefix, "owner")
    with contextlib.suppress(OSError):
        return any(link.readlink() == owner for link in Path(f"/proc/{pid}/fd").iterdir())
    return False


def _remove_stale(prefix: str, deadline_s: float) -> None:
    if not list_segments(prefix):
        click.echo(f"nothing runs with prefix {prefix!r}")
        return
    # Services whose `tickwire up` was killed drain for a while.
    while live_segments(prefix) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_EVERY_S)
    owner = PrefixOwner(prefix)
    owner.release()
    click.echo(f"removed {len(owner.removed_stale)} segments of a dead run with prefix {prefix!r}")
