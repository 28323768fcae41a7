"""SCHED_FIFO for hot threads: nothing of ordinary priority takes their core from them.

Only hot threads have it; the event loop, the log writer and the engine's own workers are scheduled as before.
"""

from __future__ import annotations

import errno
import os
import resource

from tickwire.errors import ConfigError
from tickwire.ring import WaitStrategy
from tickwire.runtime.config import RunConfig


def check_fifo(run: RunConfig, service: str, wait_strategy: WaitStrategy | None) -> None:
    """Refuse a real-time thread that would take a core from everybody and never give it back.

    Args:
        run: What all services of the run share.
        service: Name of the service.
        wait_strategy: How its hot threads wait, None if it has none.

    Raises:
        ConfigError: It spins and has no cores of its own.
    """
    table = run.table
    if service not in table.fifo_priority or wait_strategy is not WaitStrategy.SPIN or service in table.cores:
        return
    raise ConfigError(
        f"{run.path}: fifo_priority of {service}: must not stand without cores of its own while"
        f" wait_strategy is spin, which never gives a core back - at `$.run.fifo_priority.{service}`;"
        f" set `$.run.cores.{service}` or another wait_strategy"
    )


def schedule_fifo(priority: int) -> str | None:
    """Put the calling thread, and no thread that it starts, under SCHED_FIFO.

    Args:
        priority: 1 to 99, above every thread of a lower one.

    Returns:
        None, or the reason why it is not permitted.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError as error:
        limit, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
        return (
            f"sched_setscheduler: {errno.errorcode.get(error.errno or 0, error.errno)}, {error.strerror};"
            f" RLIMIT_RTPRIO must be {priority} or more (or CAP_SYS_NICE held), was {limit}"
        )
    return None
