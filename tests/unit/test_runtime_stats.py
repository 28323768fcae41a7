"""Statistics in shared memory: one writer, readers from outside, restarts, foreign segments."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tickwire.errors import RingLayoutError, RingNotFoundError
from tickwire.ring.segment import SHM_FOLDER
from tickwire.runtime import ServiceState, Stats, StatsReader, StatsSpec
from tickwire.runtime.kernels import record_duration

SPEC = StatsSpec(counters=("a", "b"), gauges=("g", "h"), histograms=("t", "u"), per_symbol=("x", "y", "z"))


def test_reader_sees_what_the_writer_counted(prefix):
    """Counters, gauges below zero, histograms and per-symbol values, each in its own place."""
    stats = Stats.create(prefix, "router", SPEC, ("v:A", "v:B"))
    stats.counters[SPEC.counter("b")] += 3
    stats.gauges[SPEC.gauge("h")] = np.int64(-5).view(np.uint64)
    record_duration(stats.histograms[SPEC.histogram("u")], 1500)
    stats.per_symbol[1, SPEC.symbol_column("z")] = 9
    reader = StatsReader.attach(prefix, "router")
    assert not reader.was_ready
    stats.set_state(ServiceState.READY)
    assert reader.was_ready
    assert reader.counters() == {"a": 0, "b": 3}
    assert reader.gauges() == {"g": 0, "h": -5}
    assert [reader.histogram(name).count for name in SPEC.histograms] == [0, 1]
    assert reader.histogram("u").max_ns == 1500
    assert reader.per_symbol("z").tolist() == [0, 9]
    assert (reader.service, reader.symbols, reader.state) == ("router", ("v:A", "v:B"), ServiceState.READY)
    beat = reader.heartbeat_ns
    stats.heartbeat()
    assert reader.heartbeat_ns > beat
    stats.close()
    assert reader.counter("b") == 3  # the segment outlives its writer's mapping
    reader.close()


def test_reader_sees_a_restart_and_goes_over(prefix):
    """I2: a new run starts from 0 in a new segment; the old figures stay readable until the reader goes over."""
    first = Stats.create(prefix, "router", SPEC)
    first.counters[0] = 7
    reader = StatsReader.attach(prefix, "router")
    assert not reader.refresh()
    second = Stats.create(prefix, "router", StatsSpec(counters=("other",)))
    second.counters[0] = 2
    assert reader.counter("a") == 7
    assert reader.refresh()
    assert reader.counters() == {"other": 2}
    for end in (first, second, reader):
        end.close()


def test_figures_of_a_process_that_was_killed_can_be_read(prefix):
    """Two processes: the last figures survive kill -9."""
    program = (
        "import os, signal, sys\n"
        "from tickwire.runtime import Stats, StatsSpec\n"
        "stats = Stats.create(sys.argv[1], 'x', StatsSpec(counters=('n',)))\n"
        "stats.counters[0] = 41\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.run([sys.executable, "-c", program, prefix], check=False)
    assert process.returncode == -9
    reader = StatsReader.attach(prefix, "x")
    assert reader.counter("n") == 41
    assert reader.state is ServiceState.STARTING
    reader.close()


def test_attach_missing_or_foreign_segment_is_a_clear_error(prefix):
    """None, zero bytes, another magic, a description that is cut off."""
    with pytest.raises(RingNotFoundError, match=r"stats\.router"):
        StatsReader.attach(prefix, "router")
    path = SHM_FOLDER / f"{prefix}.stats.router"
    path.write_bytes(b"x" * 200)
    path.chmod(0o640)
    with pytest.raises(RingLayoutError, match="holds no statistics"):
        StatsReader.attach(prefix, "router")
    Stats.create(prefix, "router", SPEC).close()
    whole = path.read_bytes()
    for length in (100, len(whole) - 8):
        path.write_bytes(whole[:length])
        with pytest.raises(RingLayoutError, match="cut off"):
            StatsReader.attach(prefix, "router")


def test_spec_repeated_name_is_refused():
    """A name means one value."""
    with pytest.raises(ValueError, match="names must be different"):
        StatsSpec(counters=("a", "a"))
