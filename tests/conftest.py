"""Fixtures that every kind of test uses."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tickwire.ring.segment import list_segments, unlink


@pytest.fixture
def prefix() -> Iterator[str]:
    """A prefix of its own; whatever is left under it in /dev/shm afterwards is removed."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    for segment in list_segments(name):
        unlink(segment)
