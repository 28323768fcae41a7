"""Closed-loop replay: the same capture and configuration give the same signals, twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tickwire.records import SIGNAL, SignalKind
from tickwire.ring import Consumer, Lapped, Start
from tickwire.ring.segment import list_segments
from tickwire.topology import SIGNALS
from waiting import eventually

CONFIG = Path(__file__).parents[2] / "deploy" / "config" / "demo.toml"
NOT_COMPARED = {"publish_mono_ns", "reserved"} | {name for name in SIGNAL.names if name.endswith("_mono_ns")}
SECONDS = 6


def signals_of_a_run(prefix: str, tmp_path: Path, engine: str) -> np.ndarray:
    """All signals of one closed-loop run of the whole host, as records."""
    settings = (
        f'run.prefix = "{prefix}"',
        f"run.state_dir = '{tmp_path / prefix}'",
        "run.closed_loop = true",
        'ingest.pace = "closed"',
        f"ingest.max_seconds = {SECONDS}",
        f'inference.engine = "{engine}"',
    )
    command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(CONFIG)]
    for setting in settings:
        command += ["--set", setting]
    log = (tmp_path / f"{prefix}.log").open("wb")
    host = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        eventually(
            lambda: f"{prefix}.signals" in list_segments(prefix) or host.poll() is not None, 60, "the signals ring"
        )
        taken = []
        with Consumer.attach(prefix, SIGNALS, name="test", start=Start.OLDEST) as consumer:
            while not consumer.stopped:
                consumer.wait(0.2)
                batch = consumer.poll(4096)
                assert not isinstance(batch, Lapped)
                taken.append(batch.copy())
        assert host.wait(timeout=60) == 0, (tmp_path / f"{prefix}.log").read_text()
    finally:
        host.kill()
        host.wait()
        log.close()
    assert list_segments(prefix) == []
    return np.concatenate(taken)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rule", "onnxruntime"])
def test_closed_loop_twice_gives_the_same_signals(prefix, tmp_path, engine):
    """Every field but publish and monotonic stamps is equal, signal by signal."""
    first, second = (signals_of_a_run(f"{prefix[:20]}-{engine[:4]}{i}", tmp_path, engine) for i in (1, 2))
    assert (first["kind"] == SignalKind.SIGNAL).sum() > 100
    assert len(first) == len(second)
    for signals in (first, second):
        # How many answers came before the first tick depends on the order in which the processes start.
        signals["prediction_sequence"] -= signals["prediction_sequence"][0]
    for name in SIGNAL.names:
        if name not in NOT_COMPARED:
            assert (first[name] == second[name]).all(), name
