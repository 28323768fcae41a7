"""From an ONNX graph to a TensorRT plan: one optimisation profile a bucket, precision as the graph says.

A failed build says whether memory ran out or which node TensorRT does not support.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from tickwire.errors import EngineError
from tickwire.models.engine_manifest import BucketRun
from tickwire.records import N_FEATURES
from tickwire_inference.engines.plan import INPUT, OUTPUT
from tickwire_inference.engines.tensorrt_library import BuildSettings, Progress, TensorRtLibrary
from tickwire_inference.layouts import BUCKETS

_OUT_OF_MEMORY = ("out of memory", "outofmemory", "insufficient workspace", "insufficient memory", "could not allocate")
_UNSUPPORTED = ("could not find any implementation", "unsupported", "no importer registered", "not supported")


@dataclass(frozen=True)
class BuiltEngine:
    """What a build gave."""

    plan: bytes
    inspector: str
    """The engine inspector's description of every layer, JSON."""
    buckets: tuple[BucketRun, ...]
    settings: BuildSettings
    seconds: float
    messages: tuple[str, ...]
    """Warnings of TensorRT."""


def settings_for(
    graph: bytes, *, workspace_mib: int = 1024, level: int = 3, target: str | None = None
) -> BuildSettings:
    """Return the settings for a graph: which reduced precisions it asks for is read from it."""
    model = onnx.load_from_string(graph)
    half = any(item.data_type == onnx.TensorProto.FLOAT16 for item in model.graph.initializer) or any(
        attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT16
        for node in model.graph.node
        if node.op_type == "Cast"
        for attribute in node.attribute
    )
    quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    return BuildSettings(fp16=half, int8=quantised, workspace_mib=workspace_mib, level=level, target=target)


def build(
    library: TensorRtLibrary,
    graph: bytes,
    window_rows: int,
    settings: BuildSettings,
    *,
    run_sizes: Mapping[int, int] | None = None,
    shortest_window_rows: int | None = None,
    timing_cache: Path | None = None,
    progress: Progress | None = None,
) -> BuiltEngine:
    """Build a plan.

    Args:
        library: TensorRT.
        graph: ONNX, input `rows` float32 (batch, T, 48), output `probabilities` float32 (batch, 3).
        window_rows: T that live batches have.
        settings: See `settings_for`.
        run_sizes: Buckets that run padded: bucket to the batch size that really runs, itself a bucket. They have no
            profile of their own.
        shortest_window_rows: Every profile takes windows from this length up to T, where the graph leaves T open.
        timing_cache: File with the timings of earlier builds, where the library keeps any; read and written anew.
        progress: Told what the builder does, where the library can tell.

    Raises:
        EngineError: The graph is not what it should be, TensorRT does not support a node, or memory ran out.
    """
    started_s = time.monotonic()
    library.begin()
    builder = library.builder()
    network = library.network(builder)
    _parse(library, network, graph, window_rows, shortest_window_rows)
    config = library.configure(builder, settings, progress)
    runs = _add_profiles(builder, config, window_rows, shortest_window_rows, run_sizes or {})
    if not library.has_timing_cache:
        timing_cache = None
    cache = _start_cache(config, timing_cache)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise _failure(library)
    if timing_cache is not None and cache is not None:
        timing_cache.parent.mkdir(parents=True, exist_ok=True)
        timing_cache.write_bytes(bytes(config.get_timing_cache().serialize()))
    messages = tuple(library.messages)
    content = bytes(plan)
    return BuiltEngine(content, _inspect(library, content), runs, settings, time.monotonic() - started_s, messages)


def sha256(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _parse(library: TensorRtLibrary, network: Any, graph: bytes, window_rows: int, shortest: int | None) -> None:
    parser = library.module.OnnxParser(network, library.logger)
    if not parser.parse(graph):
        faults = [parser.get_error(i) for i in range(parser.num_errors)]
        raise EngineError("graph: TensorRT must parse it, does not: " + "; ".join(map(_fault_text, faults)))
    found = {network.get_input(i).name: tuple(network.get_input(i).shape) for i in range(network.num_inputs)}
    shape = found.get(INPUT)
    if set(found) != {INPUT} or shape is None or len(shape) != 3 or shape[2] != N_FEATURES:
        raise EngineError(f"graph: must have one input {INPUT!r} (batch, T, {N_FEATURES}), has {found}")
    if shape[0] != -1:
        raise EngineError(f"graph: the batch of {INPUT!r} must be open, is fixed to {shape[0]}; export it dynamic")
    if shape[1] not in (-1, window_rows):
        raise EngineError(f"graph: windows must have {window_rows} rows, have {shape[1]}")
    if shortest is not None and shape[1] != -1:
        raise EngineError(f"graph: windows have {shape[1]} rows; for others the graph must leave their number open")
    outputs = [network.get_output(i).name for i in range(network.num_outputs)]
    if outputs != [OUTPUT]:
        raise EngineError(f"graph: must have one output {OUTPUT!r}, has {', '.join(outputs)}")


def _fault_text(fault: Any) -> str:
    node = fault.node_name() if hasattr(fault, "node_name") else f"node {fault.node()}"
    operator = f" ({fault.node_operator()})" if hasattr(fault, "node_operator") else ""
    return f"{node}{operator}: {fault.desc()}"


def _add_profiles(
    builder: Any, config: Any, window_rows: int, shortest: int | None, run_sizes: Mapping[int, int]
) -> tuple[BucketRun, ...]:
    profiles: dict[int, int] = {}
    for bucket in BUCKETS:
        if run_sizes.get(bucket, bucket) != bucket:
            continue
        profile = builder.create_optimization_profile()
        longest = (bucket, window_rows, N_FEATURES)
        profile.set_shape(INPUT, (bucket, shortest or window_rows, N_FEATURES), longest, longest)
        profiles[bucket] = config.add_optimization_profile(profile)
    runs = []
    for bucket in BUCKETS:
        run_size = run_sizes.get(bucket, bucket)
        if run_size < bucket or run_size not in profiles:
            raise EngineError(f"bucket {bucket}: must run as a larger bucket with a profile, was to run as {run_size}")
        runs.append(BucketRun(bucket=bucket, profile=profiles[run_size], run_size=run_size))
    return tuple(runs)


def _start_cache(config: Any, path: Path | None) -> Any:
    if path is None:
        return None
    known = path.read_bytes() if path.is_file() else b""
    cache = config.create_timing_cache(known) or config.create_timing_cache(b"")
    if cache is not None and not config.set_timing_cache(cache, ignore_mismatch=False):
        cache = config.create_timing_cache(b"")  # of another GPU or version: start anew
        config.set_timing_cache(cache, ignore_mismatch=False)
    return cache


def _inspect(library: TensorRtLibrary, plan: bytes) -> str:
    try:
        engine = library.deserialise(plan)
    except EngineError:
        return "{}"  # built for another GPU: only that one can look inside
    information = library.module.LayerInformationFormat.JSON
    return str(engine.create_engine_inspector().get_engine_information(information))


def _failure(library: TensorRtLibrary) -> EngineError:
    said = library.said()
    lower = " ".join(library.messages).lower()
    if any(text in lower for text in _OUT_OF_MEMORY):
        return EngineError(f"build: memory ran out: {said}; allow a larger workspace or free the GPU")
    if any(text in lower for text in _UNSUPPORTED):
        return EngineError(f"build: the graph has a layer that {library.name} {library.version} lacks: {said}")
    return EngineError(f"build: {library.name} {library.version} gave no plan: {said}")
