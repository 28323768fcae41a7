"""The states of a service and the only ways between them."""

from __future__ import annotations

from enum import IntEnum

from tickwire.errors import TickwireError


class ServiceState(IntEnum):
    """Where a service stands."""

    STARTING = 1
    """Attaches, loads, compiles, warms up."""
    READY = 2
    """Does its work."""
    DRAINING = 3
    """Takes nothing new, finishes what it has."""
    STOPPED = 4
    FAILED = 5


TRANSITIONS: dict[ServiceState, frozenset[ServiceState]] = {
    ServiceState.STARTING: frozenset({ServiceState.READY, ServiceState.DRAINING, ServiceState.FAILED}),
    ServiceState.READY: frozenset({ServiceState.DRAINING, ServiceState.FAILED}),
    ServiceState.DRAINING: frozenset({ServiceState.STOPPED, ServiceState.FAILED}),
    ServiceState.STOPPED: frozenset(),
    ServiceState.FAILED: frozenset(),
}


def advance(current: ServiceState, following: ServiceState) -> ServiceState:
    """Return the following state.

    Raises:
        TickwireError: There is no such transition.
    """
    if following not in TRANSITIONS[current]:
        raise TickwireError(f"service state: no way from {current.name} to {following.name}")
    return following
