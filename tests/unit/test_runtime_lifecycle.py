"""The states of a service and the only ways between them."""

from __future__ import annotations

import itertools

import pytest

from tickwire.errors import TickwireError
from tickwire.runtime import ServiceState
from tickwire.runtime.lifecycle import TRANSITIONS, advance

WAYS = {
    ("STARTING", "READY"),
    ("STARTING", "DRAINING"),  # an os_signal while it starts
    ("READY", "DRAINING"),
    ("DRAINING", "STOPPED"),
    ("STARTING", "FAILED"),
    ("READY", "FAILED"),
    ("DRAINING", "FAILED"),
}


@pytest.mark.parametrize(("current", "following"), list(itertools.product(ServiceState, repeat=2)))
def test_advance_only_documented_transitions_exist(current, following):
    """The way from STARTING to STOPPED, FAILED from any state but the ends, and nothing else; ends are final."""
    if (current.name, following.name) in WAYS:
        assert advance(current, following) is following
    else:
        with pytest.raises(TickwireError, match=f"no way from {current.name} to {following.name}"):
            advance(current, following)


def test_every_state_has_its_row():
    """No state is forgotten in the table."""
    assert set(TRANSITIONS) == set(ServiceState)
