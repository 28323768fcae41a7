"""Binance's synchronisation rules as pure state machines. Case B1."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tickwire_ingest.binance_sync import MAX_BUFFERED, DeltaIds, DepthSync, Verdict


def feed(sync: DepthSync[int], *deltas: tuple[int, ...]) -> list[Verdict]:
    return [sync.on_delta(DeltaIds(d[0], d[1], d[2] if len(d) > 2 else 0), i) for i, d in enumerate(deltas)]


def join(sync: DepthSync[int], last_update_id: int) -> list[Verdict] | None:
    """Apply a snapshot and judge what was buffered, as the feed does."""
    waiting = sync.on_snapshot(last_update_id)
    return None if waiting is None else [sync.on_delta(ids, message) for ids, message in waiting]


def test_spot_snapshot_joins_the_straddling_delta_and_a_hole_is_a_gap():
    """B1, first run: the 1st delta is dropped, the 2nd straddles, the 3rd continues, the 4th is a gap."""
    sync: DepthSync[int] = DepthSync(futures=False)
    assert feed(sync, (90, 99), (95, 103), (104, 106)) == [Verdict.BUFFER] * 3
    assert join(sync, 100) == [Verdict.APPLY, Verdict.APPLY]
    assert sync.last == 106
    assert feed(sync, (108, 110)) == [Verdict.GAP]
    assert sync.last is None
    assert join(sync, 109) == [Verdict.APPLY]  # the delta behind the hole was kept for the next snapshot


def test_spot_snapshot_older_than_the_buffer_is_refused():
    """B1, second run: a snapshot that misses updates before the first delta is never applied."""
    sync: DepthSync[int] = DepthSync(futures=False)
    feed(sync, (90, 99), (100, 103))
    assert join(sync, 80) is None
    assert sync.last is None
    assert join(sync, 95) == [Verdict.APPLY, Verdict.APPLY]


def test_futures_deltas_continue_by_pu_alone():
    """B1, third run: ids may jump as long as pu is the previous u; U = u + 1 proves nothing."""
    sync: DepthSync[int] = DepthSync(futures=True)
    feed(sync, (90, 99, 80), (95, 103, 99), (110, 120, 103))
    assert join(sync, 100) == [Verdict.APPLY, Verdict.APPLY]
    assert feed(sync, (121, 130, 119)) == [Verdict.GAP]


def test_spot_first_delta_behind_a_snapshot_without_buffer_must_straddle():
    """A snapshot that comes before any delta is held to the same rule by the first one."""
    sync: DepthSync[int] = DepthSync(futures=False)
    assert join(sync, 100) == []
    assert feed(sync, (80, 100)) == [Verdict.STALE]
    assert feed(sync, (102, 110)) == [Verdict.GAP]
    sync = DepthSync(futures=False)
    join(sync, 100)
    assert feed(sync, (99, 105), (106, 107)) == [Verdict.APPLY, Verdict.APPLY]


def test_futures_delta_that_ends_at_the_snapshot_is_applied():
    """Futures drop u < lastUpdateId, spot u <= lastUpdateId."""
    futures: DepthSync[int] = DepthSync(futures=True)
    join(futures, 100)
    assert feed(futures, (95, 100, 90)) == [Verdict.APPLY]
    spot: DepthSync[int] = DepthSync(futures=False)
    join(spot, 100)
    assert feed(spot, (95, 100)) == [Verdict.STALE]


def test_buffer_without_a_snapshot_is_bounded():
    """I3: a venue that never answers costs a bounded memory."""
    sync: DepthSync[int] = DepthSync(futures=False)
    feed(sync, *((i, i) for i in range(MAX_BUFFERED + 10)))
    assert len(sync.buffer) == MAX_BUFFERED


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_loss_or_reordering_never_applies_across_a_hole(data):
    """I2: whatever is lost, doubled or swapped, the applied deltas are an unbroken chain from a snapshot."""
    futures = data.draw(st.booleans())
    ends = sorted(data.draw(st.sets(st.integers(101, 400), min_size=3, max_size=30)))
    deltas = [DeltaIds(a + 1, b, a) for a, b in zip([100, *ends], ends, strict=False)]
    stream = data.draw(st.permutations(deltas)) if data.draw(st.booleans()) else list(deltas)
    stream = [delta for delta in stream if data.draw(st.integers(0, 9)) > 0]
    sync: DepthSync[DeltaIds] = DepthSync(futures=futures)
    applied: list[DeltaIds] = []
    complete_to: int | None = None
    for delta in stream:
        if data.draw(st.integers(0, 5)) == 0:
            snapshot = data.draw(st.integers(100, 400))
            if sync.last is None:
                waiting = sync.on_snapshot(snapshot)
                if waiting is not None:
                    complete_to, applied = snapshot, []
                    for ids, message in waiting:
                        if sync.on_delta(ids, message) is Verdict.APPLY:
                            applied.append(ids)
        if sync.on_delta(delta, delta) is Verdict.APPLY:
            applied.append(delta)
        if sync.last is None:
            complete_to, applied = None, []
        elif applied:
            assert complete_to is not None
            assert applied[0].first <= complete_to + 1
            assert applied[0].last >= complete_to
            for before, after in itertools.pairwise(applied):
                assert after.previous == before.last
