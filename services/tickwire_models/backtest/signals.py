"""Signals as live gives them: the whole host in a closed-loop replay, in processes of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import msgspec
import numpy as np

from tickwire.errors import FeedError
from tickwire.models import ModelFiles
from tickwire.models.engine_manifest import Precision
from tickwire.models.precisions import graph_of
from tickwire.records import SIGNAL, RecordArray
from tickwire.ring import Consumer, Lapped, Start
from tickwire.ring.segment import list_segments
from tickwire.topology import SIGNALS
from tickwire_models.building import sha256
from tickwire_models.publishing import Publisher

_START_S = 60.0
_LOOK_S = 0.2


def one_model_registry(folder: Path, files: ModelFiles, precision: Precision) -> None:
    """Write a registry with one model whose graph is that of a precision: what inference runs is then that graph.

    Raises:
        EngineError: The model has no such precision.
    """
    graph = graph_of(files, precision)
    manifest = msgspec.structs.replace(files.manifest, onnx_sha256=sha256(graph), onnx_bytes=len(graph))
    Publisher(folder).publish(manifest, graph)


def replay(config: Path, files: ModelFiles, precision: Precision, seconds: float | None) -> RecordArray:
    """Return all signals of a closed-loop replay of a host's captures with one model; the same call gives the same.

    Args:
        config: The host's TOML.
        files: The model.
        precision: Which of its graphs.
        seconds: Capture time to replay; all of it if None.

    Raises:
        EngineError: The model has no such precision.
        FeedError: The host does not start or fails; its last words are in the text.
    """
    prefix = f"backtest-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        one_model_registry(Path(folder) / "models", files, precision)
        settings = [
            f'run.prefix = "{prefix}"',
            f'run.state_dir = "{folder}/state"',
            "run.closed_loop = true",
            'ingest.pace = "closed"',
            f'inference.models_dir = "{folder}/models"',
            f'inference.model = "{files.manifest.name}"',
            *([f"ingest.max_seconds = {seconds}"] if seconds is not None else []),
        ]
        command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(config)]
        for setting in settings:
            command += ["--set", setting]
        log = Path(folder) / "log"
        with log.open("wb") as out:
            host = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)  # noqa: S603 - our own command
            try:
                signals = _collect(prefix, host)
                code = host.wait()
            finally:
                host.kill()
                host.wait()
        if code != 0 or signals is None:
            words = log.read_text(errors="replace")[-2000:]
            raise FeedError(f"replay of {config}: the host must end with 0, ended with {code}; it said: {words}")
        return signals


def _collect(prefix: str, host: subprocess.Popen[bytes]) -> RecordArray | None:
    waited_s = 0.0
    while f"{prefix}.signals" not in list_segments(prefix):
        try:
            host.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            waited_s += _LOOK_S
            if waited_s < _START_S:
                continue
        return None
    taken = [np.zeros(0, SIGNAL)]
    with Consumer.attach(prefix, SIGNALS, name="backtest", start=Start.OLDEST) as consumer:
        while not consumer.stopped and host.poll() is None:
            consumer.wait(_LOOK_S)
            batch = consumer.poll(4096)
            if isinstance(batch, Lapped):
                raise FeedError(f"replay: signals were lost to this reader ({batch.lost}); this machine is too busy")
            taken.append(batch.copy())
    return np.concatenate(taken)
