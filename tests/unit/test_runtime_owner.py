"""Following the owner of a prefix: a start without one, its end, the time that its successor gets. Case O1."""

from __future__ import annotations

import asyncio

import pytest

from tickwire.errors import TickwireError
from tickwire.runtime import owner as owner_module
from tickwire.runtime.owner import OwnerWatch
from tickwire_ctl.segments import PrefixOwner


def test_watch_without_a_segment_names_the_remedy(prefix):
    """No owner's segment in this /dev/shm: the error says what to start and what to share."""
    with pytest.raises(TickwireError, match=r"there is none; start `tickwire anchor`.*ipc: service:shm"):
        OwnerWatch(prefix)


def test_watch_of_a_dead_owners_segment_is_refused(prefix):
    """The name alone is not enough: its holder's lock is."""
    owner = PrefixOwner(prefix)
    owner._segment.close()  # as the kernel does when a process dies
    with pytest.raises(TickwireError, match="its owner alive"):
        OwnerWatch(prefix)


async def test_watch_tells_of_the_owners_end_and_not_before(prefix):
    """While the owner lives nothing is told; its release is."""
    owner = PrefixOwner(prefix)
    watch = OwnerWatch(prefix)
    ended = asyncio.ensure_future(watch.ended())
    done, _ = await asyncio.wait({ended}, timeout=0.6)
    assert not done
    owner.release()
    assert "has ended" in str(await asyncio.wait_for(ended, 30))
    watch.close()


async def test_watch_of_a_replaced_owner_is_not_alive(prefix):
    """A successor has a segment of its own: whoever watches the old one must go, however early the new one came."""
    first = PrefixOwner(prefix)
    watch = OwnerWatch(prefix)
    first.release()
    second = PrefixOwner(prefix)
    assert not watch.alive
    watch.close()
    second.release()


async def test_successor_gets_time_only_after_a_dead_owner(prefix, monkeypatch):
    """A service that failed beside a live owner ends at once; after a dead one it waits, unless it is hurried."""
    monkeypatch.setattr(owner_module, "OWNER_BACK_S", 3600.0)
    owner = PrefixOwner(prefix)
    watch = OwnerWatch(prefix)
    hurried = asyncio.Event()
    await asyncio.wait_for(watch.time_to_return(hurried), 30)
    owner.release()
    waiting = asyncio.ensure_future(watch.time_to_return(hurried))
    done, _ = await asyncio.wait({waiting}, timeout=0.6)
    assert not done
    hurried.set()
    await asyncio.wait_for(waiting, 30)
    watch.close()
