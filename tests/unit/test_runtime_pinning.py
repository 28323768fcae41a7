"""Pinning within the set of cores that the process was given. Case O5."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tickwire.errors import ConfigError
from tickwire.runtime.pinning import pin

FILE = Path("/etc/host.toml")


@pytest.fixture
def allowed():
    """The cores of this process, restored afterwards."""
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize("extra", [[4096], [7000, 4096]])
def test_pin_core_outside_the_allowed_set_is_refused_with_the_set(allowed, extra):
    """O5: the message has file, cores, the allowed set and the place in the file; nothing is changed."""
    first = min(allowed)
    with pytest.raises(ConfigError) as caught:
        pin("router", [first, *extra], FILE)
    text = str(caught.value)
    assert f"were {sorted([first, *extra])} - at `$.run.cores.router`" in text
    assert text.startswith("/etc/host.toml: cores must be among the allowed ")
    assert os.sched_getaffinity(0) == allowed


def test_pin_allowed_set_is_what_is_left_not_what_the_machine_has(allowed):
    """O5: within a smaller set, another core of the machine is refused and the message has the smaller set."""
    if len(allowed) < 2:
        pytest.skip("needs two cores")
    first, second = sorted(allowed)[:2]
    os.sched_setaffinity(0, {first})
    with pytest.raises(ConfigError, match=rf"among the allowed {first}, were \[{second}\]"):
        pin("ingest", [second], FILE)
    assert os.sched_getaffinity(0) == {first}


def test_pin_no_core_is_refused(allowed):
    """An empty list would leave nothing to run on."""
    with pytest.raises(ConfigError, match=r"were \[\] - at `\$\.run\.cores\.features`; remove the entry"):
        pin("features", [], FILE)
    assert os.sched_getaffinity(0) == allowed


def test_pin_allowed_cores_are_taken(allowed):
    """The process runs on these cores only; a core that is given twice is one."""
    pin("router", [min(allowed), min(allowed)], FILE)
    assert os.sched_getaffinity(0) == {min(allowed)}
