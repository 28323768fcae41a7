"""Statistics in shared memory: one writer, readers from outside, restarts, foreign segments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tickwire.errors import RingLayoutError, RingNotFoundError
from tickwire.ring.segment import SHM_FOLDER
from tickwire.runtime import ServiceState, Stats, StatsReader, StatsSpec
from tickwire.runtime.kernels import record_duration
from tickwire.runtime.stats import DESCRIPTION_AT, DESCRIPTION_BYTES_AT, MAGIC, MAGIC_AT

SPEC = StatsSpec(
    counters={"a": "A", "b": "B"},
    gauges={"g": "G", "h": "H"},
    histograms={"t": "T", "u": "U"},
    per_symbol={"x": "X", "y": "Y", "z": "Z"},
)


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
    second = Stats.create(prefix, "router", StatsSpec(counters={"other": "another"}))
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
        "stats = Stats.create(sys.argv[1], 'x', StatsSpec(counters={'n': 'N'}))\n"
        "stats.counters[0] = 41\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.run([sys.executable, "-c", program, prefix], check=False)
    assert process.returncode == -9
    reader = StatsReader.attach(prefix, "x")
    assert reader.counter("n") == 41
    assert reader.state is ServiceState.STARTING
    reader.close()


def place(path: Path, content: bytes) -> None:
    """Put another segment in the place of one, as a restarted service does."""
    fresh = path.with_name(f"{path.name}.fresh")
    fresh.write_bytes(content)
    fresh.chmod(0o640)
    fresh.rename(path)


def described(text: bytes, size: int = 4096) -> bytes:
    """A segment whose header is right, with a description of any text."""
    words = np.zeros(DESCRIPTION_AT // 8, dtype="<u8")
    words[MAGIC_AT // 8], words[DESCRIPTION_BYTES_AT // 8] = MAGIC, len(text)
    return (words.tobytes() + text).ljust(size, b"\0")


BAD = {
    "empty": (b"", "must not be empty"),
    "tiny": (b"x", "holds no statistics"),
    "another_magic": (b"x" * 200, "holds no statistics"),
    "no_json": (described(b"no json"), "description cannot be read"),
    "no_text": (described(b'{"service":"\xff\xff"}'), "description cannot be read"),
    "other_json": (described(b'{"service":"x"}'), "description cannot be read"),
    "no_counters": (described(b""), "description cannot be read"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_attach_foreign_segment_is_a_clear_error(prefix, content, message):
    """Whatever stands under the name, the error names it and what is wrong; nothing of it is read as figures."""
    place(SHM_FOLDER / f"{prefix}.stats.router", content)
    with pytest.raises(RingLayoutError, match=rf"stats\.router'.*{message}"):
        StatsReader.attach(prefix, "router")


def test_attach_cut_off_segment_is_a_clear_error(prefix):
    """Cut within the description, within the values, or by one word."""
    path = SHM_FOLDER / f"{prefix}.stats.router"
    Stats.create(prefix, "router", SPEC).close()
    whole = path.read_bytes()
    for length in (DESCRIPTION_AT, 100, len(whole) // 2, len(whole) - 8):
        place(path, whole[:length])
        with pytest.raises(RingLayoutError, match="cut off"):
            StatsReader.attach(prefix, "router")


def test_attach_missing_segment_is_named(prefix):
    """A service that has not run with this prefix."""
    with pytest.raises(RingNotFoundError, match=r"stats\.router"):
        StatsReader.attach(prefix, "router")


def test_refresh_foreign_successor_leaves_the_old_figures(prefix):
    """I2: a new segment that cannot be read is an error; the reader keeps its figures until a good one comes."""
    path = SHM_FOLDER / f"{prefix}.stats.router"
    first = Stats.create(prefix, "router", SPEC)
    first.counters[0] = 7
    reader = StatsReader.attach(prefix, "router")
    place(path, b"x" * 200)
    with pytest.raises(RingLayoutError, match="holds no statistics"):
        reader.refresh()
    assert reader.counters() == {"a": 7, "b": 0}
    second = Stats.create(prefix, "router", SPEC)
    second.counters[1] = 3
    assert reader.refresh()
    assert reader.counters() == {"a": 0, "b": 3}
    assert reader.start_time_ns > 0
    for end in (first, second, reader):
        end.close()


def test_spec_indices_follow_the_order_of_names():
    """A kernel's constant and a reader's name mean the same word; an unknown name is refused."""
    assert [SPEC.counter(name) for name in SPEC.counters] == [0, 1]
    assert [SPEC.gauge(name) for name in SPEC.gauges] == [0, 1]
    assert [SPEC.histogram(name) for name in SPEC.histograms] == [0, 1]
    assert [SPEC.symbol_column(name) for name in SPEC.per_symbol] == [0, 1, 2]
    with pytest.raises(ValueError, match="not in tuple"):
        SPEC.counter("x")


def test_every_word_of_the_arrays_has_one_name(prefix):
    """I1: distinct values in every word come back under distinct names: no two arrays overlap."""
    stats = Stats.create(prefix, "router", SPEC, ("v:A", "v:B"))
    value = 0
    for array in stats.arrays:
        array.reshape(-1)[:] = np.arange(value, value + array.size)
        value += array.size
    reader = StatsReader.attach(prefix, "router")
    found = [*reader.counters().values(), *reader.gauges().values()]
    found += [int(word) for name in SPEC.histograms for word in reader.histogram(name).words]
    columns = [reader.per_symbol(name) for name in SPEC.per_symbol]
    found += np.stack(columns, axis=1).reshape(-1).tolist()
    assert found == list(range(value))
    stats.close()
    reader.close()
