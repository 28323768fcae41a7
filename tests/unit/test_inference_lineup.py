"""Fallback, breaker and hot swap in the running scheduler and engine thread, with engines that tests control."""

from __future__ import annotations

import pytest

from inference_rig import Rig as InferenceRig
from inference_rig import StubEngine
from tickwire.errors import EngineError
from tickwire.records import PredictionKind
from tickwire_inference.breaker import Breaker, BreakerState
from tickwire_inference.lineup import Lineup


class Named(StubEngine):
    """A stub with a label of its own."""

    def __init__(self, label: str, window_rows: int = 4) -> None:
        super().__init__(window_rows)
        self.label = label


def warm_rows(rig: InferenceRig, n_rows: int) -> None:
    for _ in range(n_rows):
        rig.publish(rig.row(0))


def test_engine_fault_is_served_by_the_fallback_and_opens_the_breaker(prefix):
    """The batch on which the primary raises is not lost: the fallback answers it, and all later ones, by name."""
    primary, fallback = Named("first@1"), Named("second@1")
    primary.fails = lambda _size: True
    with InferenceRig(prefix, 1, primary, fallbacks=(fallback,)) as rig:
        warm_rows(rig, 4)
        for _ in range(3):
            (answer,) = rig.answers(1)
            assert (PredictionKind(answer["kind"]), answer["model"]) == (PredictionKind.PREDICTION, b"second@1")
            rig.publish(rig.row(0))
        rig.answers(1)
        assert rig.lineup.breaker.state is BreakerState.OPEN
        assert len(primary.sizes) == 1
        assert rig.count("fallback_batches") == 4
        assert rig.count("failed_engine") == 0


def test_all_engines_fail_then_the_batch_fails_and_the_loop_lives(prefix):
    """Only when the last of the line-up has failed is the request answered FAILED."""
    primary, fallback = Named("first@1"), Named("second@1")
    primary.fails = fallback.fails = lambda _size: True
    with InferenceRig(prefix, 1, primary, fallbacks=(fallback,)) as rig:
        warm_rows(rig, 4)
        assert PredictionKind(rig.answers(1)[0]["kind"]) is PredictionKind.FAILED
        fallback.fails = lambda _size: False
        rig.publish(rig.row(0))
        assert PredictionKind(rig.answers(1)[0]["kind"]) is PredictionKind.PREDICTION


def test_offered_engine_serves_from_the_next_batch_and_none_is_lost(prefix):
    """Case Q7: every request is answered, by the model its label names; the replaced engine is handed back once."""
    first, second = Named("model@1"), Named("model@2")
    with InferenceRig(prefix, 1, first) as rig:
        warm_rows(rig, 4)
        assert rig.answers(1)[0]["model"] == b"model@1"
        first.hold()
        rig.publish(rig.row(0))
        assert first.running.wait(30.0)
        rig.lineup.offer(second)
        first.release()
        assert rig.answers(1)[0]["model"] == b"model@1"  # the batch that ran when the model was offered
        assert rig.lineup.wait_taken(30.0)
        rig.publish(rig.row(0))
        assert rig.answers(1)[0]["model"] == b"model@2"
        assert rig.lineup.take_replaced() is first
        assert rig.lineup.take_replaced() is None


def test_offered_engine_of_another_window_is_refused():
    """Requests that wait have the rows of the running model: another T is refused with its reason."""
    lineup = Lineup(Named("model@1"), (), Breaker(10, 1))
    with pytest.raises(EngineError, match=r"model@2: must need windows of 4 rows .* needs 8"):
        lineup.offer(Named("model@2", 8))
    with pytest.raises(EngineError, match="must need at most the 4 rows"):
        Lineup(Named("model@1"), (Named("long@1", 8),), Breaker(10, 1))
    with pytest.raises(EngineError, match="must have an engine"):
        Lineup(None, (), Breaker(10, 1))


def test_missing_primary_the_fallback_serves_degraded(prefix):
    """Without its configured engine the line-up says that it is degraded, and serves."""
    lineup = Lineup(None, (Named("second@1"),), Breaker(10, 1))
    assert lineup.degraded
    assert [engine.label for engine, _ in lineup.choose(0)] == ["second@1"]
