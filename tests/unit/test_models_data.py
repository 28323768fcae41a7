"""Labels, splits and windows: nothing leaks, nothing is invented. Case F7."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickwire.records import N_FEATURES, ROW, RowKind
from tickwire_models.dataset import rows_of, to_rows, to_samples, train_rows, windows_of
from tickwire_models.labels import DOWN, FLAT, UP, choose_threshold, classify, moves_of
from tickwire_models.metrics import judge
from tickwire_models.normalisation import fit
from tickwire_models.split import NONE, TEST, TRAIN, VALIDATION, SplitRule, assign_parts

MS = 1_000_000
HORIZON = 500 * MS
T = 20


def rows_at(times_ms, mids, run=None):
    """ROW records of one symbol with features that name their row."""
    records = np.zeros(len(times_ms), dtype=ROW)
    records["kind"] = RowKind.ROW
    records["trading"] = 1
    records["row_sequence"] = np.arange(1, len(times_ms) + 1)
    records["valid_from"] = 1 if run is None else run
    records["receive_time_ns"] = np.asarray(times_ms) * MS
    records["bid_price_units"] = np.asarray(mids) * 2 - 1
    records["ask_price_units"] = np.asarray(mids) * 2 + 1
    records["features"] = np.arange(len(times_ms), dtype=np.float32)[:, None] + np.arange(N_FEATURES) / 100
    return records


def test_moves_on_a_ramp_have_its_sign():
    """F7: a rising mid is UP, a falling one DOWN, a constant one FLAT."""
    times = np.arange(0, 5000, 10) * MS
    run = np.ones(len(times), dtype=np.int64)
    up = moves_of(times, 1000.0 + np.arange(len(times)), run, HORIZON)
    down = moves_of(times, 1000.0 - np.arange(len(times)) / 10, run, HORIZON)
    flat = moves_of(times, np.full(len(times), 7.0), run, HORIZON)
    assert (classify(up.value[up.known], 1e-9) == UP).all()
    assert (classify(down.value[down.known], 1e-9) == DOWN).all()
    assert (classify(flat.value[flat.known], 0.0) == FLAT).all()


def test_moves_tail_and_broken_runs_have_no_label():
    """F7: rows whose horizon is not seen whole - at the end, before a gap or halt - are missing, not class 0."""
    times = np.arange(0, 4000, 100) * MS
    run = np.where(np.arange(40) < 20, 1, 21)
    moves = moves_of(times, np.linspace(100, 200, 40), run, HORIZON)
    assert moves.known.tolist() == [i < 15 or 20 <= i < 35 for i in range(40)]
    assert (moves.value[~moves.known] == 0).all()


def test_moves_use_the_last_mid_at_or_before_the_horizon():
    """L3: what happens a moment behind the horizon does not count."""
    times = np.array([0, 400, 500, 501]) * MS
    moves = moves_of(times, np.array([100.0, 110.0, 120.0, 999.0]), np.ones(4, np.int64), HORIZON)
    assert moves.value[0] == pytest.approx(0.2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sample_does_not_depend_on_anything_behind_its_horizon(seed):
    """No leakage: changing every row behind a sample's horizon changes neither its window nor its label."""
    dice = np.random.default_rng(seed)
    n = 120
    times = np.cumsum(dice.integers(1, 60, n))
    mids = 1000 + np.cumsum(dice.integers(-3, 4, n))
    rule = SplitRule(train=0.9, validation=0.05)
    before = to_samples(to_rows("a", rows_at(times, mids), T), T, HORIZON, rule)
    if not len(before.newest):
        return
    pick = dice.integers(0, len(before.newest))
    newest = before.newest[pick]
    later = times > times[newest] + 500
    changed = rows_at(times, np.where(later, mids + 77, mids))
    changed["features"][later] = -1
    after = to_samples(to_rows("a", changed, T), T, HORIZON, rule)
    assert after.newest[pick] == newest
    assert after.moves[pick] == before.moves[pick]
    where = np.array([newest])
    assert (windows_of(after.rows, where, T) == windows_of(before.rows, where, T)).all()


def test_windows_end_with_their_row_and_hold_the_rows_before_in_order():
    """A window is the T rows up to its newest one, oldest first."""
    rows = to_rows("a", rows_at(np.arange(50) * 10, np.full(50, 9)), T)
    windows = windows_of(rows, np.array([T - 1, 49]), T)
    assert windows.shape == (2, T, N_FEATURES)
    assert windows[0, :, 0].tolist() == list(range(T))
    assert windows[1, :, 0].tolist() == list(range(50 - T, 50))


def test_samples_need_a_whole_window_of_one_run_in_continuous_trading():
    """Windows never reach across a gap, and rows of a halt are no samples."""
    records = rows_at(np.arange(200) * 10, np.full(200, 9), run=np.where(np.arange(200) < 100, 1, 101))
    records["trading"][60:70] = 0
    samples = to_samples(to_rows("a", records, T), T, HORIZON, SplitRule())
    # Each run of 100 rows ends 990 ms after its start: labels reach 50 rows ahead.
    assert samples.newest.tolist() == list(range(T - 1, 50)) + list(range(100 + T - 1, 150))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_split_parts_share_neither_rows_nor_labels(seed):
    """F7: train, purge and embargo, validation, test: in time, and disjoint including windows and horizons."""
    dice = np.random.default_rng(seed)
    newest = np.sort(dice.integers(0, 100_000, 400)) * MS
    start, end = newest - dice.integers(100, 3000) * MS, newest + HORIZON
    rule = SplitRule(train=0.6, validation=0.2, embargo_ns=int(dice.integers(0, 1000)) * MS)
    parts = assign_parts(start, end, 0, 100_000 * MS, rule)
    for earlier, later in ((TRAIN, VALIDATION), (VALIDATION, TEST), (TRAIN, TEST)):
        if (parts == earlier).any() and (parts == later).any():
            assert end[parts == earlier].max() + rule.embargo_ns <= start[parts == later].min()
    assert (parts == NONE).any()


def test_split_purges_the_horizon_and_the_window_at_each_border():
    """F7: the last 500 ms before a border are in no part, nor is what looks back over it or into the embargo."""
    times = np.arange(0, 100_000, 10)
    rule = SplitRule(train=0.6, validation=0.2, embargo_ns=500 * MS)
    samples = to_samples(to_rows("a", rows_at(times, np.full(len(times), 9)), T), T, HORIZON, rule)
    newest_ms = times[samples.newest]
    last_ms, window_ms = int(times[-1]), (T - 1) * 10
    first, second = int(last_ms * 0.6), int(last_ms * 0.8)
    ends = {TRAIN: (window_ms, first - 500), VALIDATION: (first + 500 + window_ms, second - 500)}
    ends[TEST] = (second + 500 + window_ms, last_ms - 500)
    for part, (lowest, highest) in ends.items():
        assert newest_ms[samples.part == part].min() in range(lowest, lowest + 20)
        assert newest_ms[samples.part == part].max() in range(highest - 20, highest + 1)
    assert set(newest_ms[samples.part == NONE] // 1000) == {59, 60, 79, 80}


def test_sessions_that_follow_one_another_share_no_label():
    """F7: the end of a session has no label although the next session's rows would give one; no window spans both."""
    times = np.arange(0, 2000, 10)
    parts = [rows_at(times, np.full(200, 100)), rows_at(times + 2000, np.full(200, 150))]
    whole = np.concatenate(parts)
    whole["row_sequence"] = np.arange(1, 401)
    whole["valid_from"] = np.where(np.arange(400) < 200, 1, 201)
    samples = to_samples(to_rows("a", whole, T), T, HORIZON, SplitRule())
    assert (samples.moves == 0).all()  # the jump between the sessions is nobody's label
    assert samples.newest.tolist() == list(range(T - 1, 150)) + list(range(200 + T - 1, 350))
    windows = windows_of(samples.rows, samples.newest, T)
    assert all(len(set(samples.rows.run[i - T + 1 : i + 1])) == 1 for i in samples.newest)
    assert len(windows) == len(samples.newest)


def test_normalisation_is_fitted_on_training_rows_only():
    """Validation and test rows leave no trace in centre and scale; constant columns stay finite."""
    records = rows_at(np.arange(2000) * 10, 1000 + np.arange(2000) % 7)
    records["features"][:, 3] = 5.0
    rule = SplitRule(train=0.5, validation=0.2)
    base = fit(train_rows([to_samples(to_rows("a", records, T), T, HORIZON, rule)]))
    records["features"][1100:] = 1e6
    again = fit(train_rows([to_samples(to_rows("a", records, T), T, HORIZON, rule)]))
    assert base == again
    assert base.fault() is None
    assert base.scale[3] == 1.0


def test_rows_of_keeps_only_rows_of_a_run():
    """Invalidations, barriers and rows replaced by zeros are no training data."""
    records = rows_at([0, 10, 20, 30], [1, 1, 1, 1])
    records["kind"][1] = RowKind.INVALIDATED
    records["valid_from"][2] = 4
    assert rows_of(records)["row_sequence"].tolist() == [1, 4]


def test_threshold_lower_third_is_flat():
    """The threshold is chosen from the moves given, and needs some."""
    assert choose_threshold(np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0])) == pytest.approx(1.0)
    assert choose_threshold(np.zeros(5)) == 0.0
    with pytest.raises(ValueError, match="at least one labelled training row"):
        choose_threshold(np.zeros(0))


def test_judge_counts_and_refuses_nothing_to_judge():
    """Known probabilities give known figures; an empty set or a NaN is an error, never a pass."""
    probabilities = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1]], np.float32)
    found = judge(probabilities, np.array([0, 1, 2]))
    assert found["accuracy"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["log_loss"] == pytest.approx(-(2 * np.log(0.8) + np.log(0.1)) / 3, abs=1e-4)
    assert found["confusion_true_by_predicted"] == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="at least one"):
        judge(probabilities[:0], np.zeros(0, np.int64))
    with pytest.raises(ValueError, match="finite"):
        judge(np.full((1, 3), np.nan, np.float32), np.array([0]))
