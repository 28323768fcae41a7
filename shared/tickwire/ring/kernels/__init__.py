"""The ring's compiled kernels: what hot threads of the services call."""

from tickwire.ring.kernels.consumer import LAPPED, REATTACH, commit, commit_and_poll, poll
from tickwire.ring.kernels.producer import (
    BACK_PRESSURE,
    BATCH_TOO_LARGE,
    attaches,
    beat,
    publish,
    publish_all,
    recover,
)
from tickwire.ring.kernels.state import LAST_LOST
from tickwire.ring.kernels.waiting import OTHER, READY, STOPPED, TIMEOUT, wait, wait_or_word

__all__ = [
    "BACK_PRESSURE",
    "BATCH_TOO_LARGE",
    "LAPPED",
    "LAST_LOST",
    "OTHER",
    "READY",
    "REATTACH",
    "STOPPED",
    "TIMEOUT",
    "attaches",
    "beat",
    "commit",
    "commit_and_poll",
    "poll",
    "publish",
    "publish_all",
    "recover",
    "wait",
    "wait_or_word",
]
