"""The breaker against the rules in its docstring, with a fake clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tickwire_inference.breaker import Breaker, BreakerState, Outcome, Permit

COOLDOWN = 1_000


def opened(threshold: int = 10) -> Breaker:
    breaker = Breaker(threshold, COOLDOWN)
    breaker.settle(breaker.permit(0), Outcome.FAULT, 0)
    assert breaker.state is BreakerState.OPEN
    return breaker


def test_breaker_ten_timeouts_in_a_row_open_it_nine_do_not():
    """Only an unbroken row counts; a good batch starts it anew."""
    breaker = Breaker(10, COOLDOWN)
    for _ in range(3):
        for _ in range(9):
            breaker.settle(breaker.permit(0), Outcome.TIMEOUT, 0)
        breaker.settle(breaker.permit(0), Outcome.GOOD, 0)
    assert breaker.state is BreakerState.CLOSED
    for _ in range(10):
        breaker.settle(breaker.permit(0), Outcome.TIMEOUT, 0)
    assert (breaker.state, breaker.opened) == (BreakerState.OPEN, 1)


def test_breaker_simultaneous_failures_then_one_probe_at_a_time():
    """I1, case A9: many failures at one moment; after the cool-down one of sixteen calls is a probe."""
    breaker = Breaker(5, COOLDOWN)
    permits = [breaker.permit(0) for _ in range(6)]
    for permit in permits:
        breaker.settle(permit, Outcome.TIMEOUT, 10)
    assert breaker.opened == 1
    assert {breaker.permit(10 + COOLDOWN - 1) for _ in range(16)} == {Permit.FALLBACK}
    asked = [breaker.permit(10 + COOLDOWN) for _ in range(16)]
    assert asked.count(Permit.PROBE) == 1
    assert asked.count(Permit.FALLBACK) == 15
    breaker.settle(Permit.PROBE, Outcome.GOOD, 20 + COOLDOWN)
    assert breaker.state is BreakerState.CLOSED


def test_breaker_failed_probe_restarts_the_cooldown():
    """A bad probe opens it again for a whole cool-down."""
    breaker = opened()
    assert breaker.permit(COOLDOWN) is Permit.PROBE
    breaker.settle(Permit.PROBE, Outcome.TIMEOUT, COOLDOWN + 5)
    assert breaker.permit(2 * COOLDOWN + 4) is Permit.FALLBACK
    assert breaker.permit(2 * COOLDOWN + 5) is Permit.PROBE


def test_breaker_lost_probe_does_not_keep_it_open():
    """I2: a permit that nobody settles costs one cool-down."""
    breaker = opened()
    assert breaker.permit(COOLDOWN) is Permit.PROBE
    assert breaker.permit(2 * COOLDOWN - 1) is Permit.FALLBACK
    assert breaker.permit(2 * COOLDOWN) is Permit.PROBE


def test_breaker_result_from_before_the_opening_changes_nothing():
    """I3: late results of the closed time neither close it nor lengthen the cool-down."""
    breaker = Breaker(1, COOLDOWN)
    early, other = breaker.permit(0), breaker.permit(0)
    breaker.settle(early, Outcome.TIMEOUT, 0)
    breaker.settle(other, Outcome.GOOD, 500)
    assert breaker.state is BreakerState.OPEN
    breaker.settle(other, Outcome.FAULT, 900)
    assert breaker.permit(COOLDOWN) is Permit.PROBE


@given(st.lists(st.tuples(st.sampled_from(["ask", "settle"]), st.sampled_from(list(Outcome)), st.integers(0, 700))))
def test_breaker_any_history_one_probe_and_never_stuck(history):
    """I1, I2: whatever happens, at most one probe is out within a cool-down, and one is always to be had later."""
    breaker, now, out, probes = Breaker(3, COOLDOWN), 0, [], []
    for action, outcome, step in history:
        now += step
        if action == "ask":
            permit = breaker.permit(now)
            if permit is Permit.PROBE:
                assert all(now - asked >= COOLDOWN or settled for asked, settled in probes)
                probes.append((now, False))
            if permit is not Permit.FALLBACK:
                out.append(permit)
        elif out:
            permit = out.pop()
            breaker.settle(permit, outcome, now)
            if permit is Permit.PROBE:
                probes[-1] = (probes[-1][0], True)
    assert breaker.permit(now + COOLDOWN) in (Permit.PRIMARY, Permit.PROBE)
