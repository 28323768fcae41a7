"""Strategies in C and C++: the generated header, compiled, on rings that other processes fill."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from signal_processes import SYMBOLS, signals_of
from tickwire.records import SIGNAL, SignalKind, slot_dtype
from tickwire.ring import Consumer, Lapped, Producer, RingMode, RingSpec, Start
from tickwire.ring.inspect import inspect_ring
from tickwire.ring.kernels.state import P_WAKES
from tickwire.ring.layout import PARK_REQUEST_AT
from tickwire.ring.segment import list_segments, unlink
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.topology import SIGNALS
from tickwire_ctl.c_header import HEADER, RECORDS, c_header
from tickwire_ctl.cli import main
from waiting import eventually

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests" / "c_strategy.c"
CONFIG = ROOT / "deploy" / "config" / "demo.toml"
COMPILERS = {
    "c11": ("gcc", "-std=c11", "-pedantic"),
    "c++17": ("g++", "-x", "c++", "-std=c++17"),
    "c++20": ("g++", "-x", "c++", "-std=c++20"),
}
WATCHDOG_S = 60.0
SHM = Path("/dev/shm")


def compiled(language: str, source: Path, out: Path, include: Path = HEADER.parent) -> Path:
    """Compile with every warning an error; skips when there is no compiler."""
    command, *options = COMPILERS[language]
    if shutil.which(command) is None:
        pytest.skip(f"no {command} here")
    warnings = ("-O2", "-Wall", "-Wextra", "-Werror")
    subprocess.run([command, *options, *warnings, "-I", include, source, "-o", out], check=True, timeout=WATCHDOG_S)
    return out


@pytest.fixture(scope="module", params=["c11", "c++20"])
def program(request, tmp_path_factory) -> Path:
    """The test's reader, once in C and once in C++."""
    return compiled(request.param, SOURCE, tmp_path_factory.mktemp("c") / "strategy")


class Reader:
    """A running `c_strategy`."""

    def __init__(self, program: Path, prefix: str, folder: Path, count: int, *options: str, name: str = "c") -> None:
        self.file = folder / f"{name}.bin"
        self.popen = subprocess.Popen(
            [program, prefix, name, self.file, str(count), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.symbols = self.popen.stdout.readline().strip()
        line = self.popen.stdout.readline()
        assert line == "ready\n", line + self.popen.communicate(timeout=WATCHDOG_S)[1]

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.communicate()

    def result(self, text: str | None = None) -> dict[str, int]:
        """What it printed at its end, after a line to a reader that holds."""
        out, err = self.popen.communicate(text, timeout=WATCHDOG_S)
        assert (self.popen.returncode, err) == (0, "")
        return json.loads(out)

    @property
    def records(self) -> np.ndarray:
        """All signals it received."""
        return np.fromfile(self.file, dtype=SIGNAL)


@pytest.fixture
def producer(prefix):
    """The router's end of a signals ring."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        yield producer


def refusal(program: Path, prefix: str, tmp_path: Path, name: str = "c") -> str:
    """The error with which the reader ends."""
    done = subprocess.run(
        [program, prefix, name, tmp_path / "none", "1"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_header_generated_again_is_the_committed_file(tmp_path):
    """`tickwire.h` is what its sources give; `--check` says so, and says no of another file."""
    assert c_header() == HEADER.read_text(), "run: tickwire header --out deploy/include/tickwire.h"
    assert CliRunner().invoke(main, ["header", "--check"]).exit_code == 0
    assert CliRunner().invoke(main, ["header"]).output == c_header()
    other = tmp_path / "a" / "tickwire.h"
    assert CliRunner().invoke(main, ["header", "--check", "--out", str(other)]).exit_code == 1
    assert CliRunner().invoke(main, ["header", "--out", str(other)]).exit_code == 0
    assert CliRunner().invoke(main, ["header", "--check", "--out", str(other)]).exit_code == 0


@pytest.mark.parametrize("language", COMPILERS)
def test_structs_of_all_records_have_the_dtypes_fields(language, tmp_path):
    """Name, offset and size of every field of every record are the Python ones; the shipped example compiles too."""
    lines = [
        f'printf("{record} {field} %zu %zu\\n", offsetof(tickwire_{record}, {field}), sizeof(x_{record}.{field}));'
        for record, dtype in RECORDS.items()
        for field in dtype.names
    ]
    variables = [f"static tickwire_{record} x_{record};" for record in RECORDS]
    source = tmp_path / "offsets.c"
    source.write_text("\n".join(('#include "tickwire.h"', *variables, "int main(void) {", *lines, "return 0; }")))
    out = subprocess.run(
        [compiled(language, source, tmp_path / "offsets")],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=True,
    ).stdout
    assert out.splitlines() == [
        f"{record} {field} {dtype.fields[field][1]} {dtype.fields[field][0].itemsize}"
        for record, dtype in RECORDS.items()
        for field in dtype.names
    ]
    compiled(language, ROOT / "examples" / "strategy.c", tmp_path / "example")


def test_header_after_other_headers_says_what_to_do(tmp_path):
    """Where libc's declarations are already hidden, the compiler's message is ours."""
    source = tmp_path / "late.c"
    source.write_text('#include <stdio.h>\n#include "tickwire.h"\nint main(void) { return 0; }\n')
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    command = ["gcc", "-I", HEADER.parent, source, "-o", tmp_path / "late"]
    strict = subprocess.run([*command, "-std=c11"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert "include it before any other header" in strict.stderr
    subprocess.run([*command, "-std=gnu11"], timeout=WATCHDOG_S, check=True)


def test_reader_signals_of_another_process_arrive_exactly(program, producer, prefix, tmp_path):
    """Every byte of every signal, in order; the symbol table's text; its entry shows name, lag and life."""
    with Reader(program, prefix, tmp_path, 1000, "hold", name="strat-é") as reader:
        assert reader.symbols == SYMBOLS.encode().decode()
        sent = signals_of(0, 1000)
        producer.publish(sent)
        (entry,) = inspect_ring(prefix, SIGNALS).consumers
        assert (entry.name, entry.lag, entry.alive, entry.observer) == ("strat-é", 1000, True, True)
        assert entry.pid == reader.popen.pid
        result = reader.result("\n")
    assert (result["received"], result["lost"], result["disorder"]) == (1000, 0, 0)
    got = reader.records
    assert got["sequence"].tolist() == list(range(1000))
    assert (got["publish_mono_ns"] > 0).all()
    for name in SIGNAL.names[2:]:
        assert (got[name] == sent[name]).all(), name
    (entry,) = inspect_ring(prefix, SIGNALS).consumers
    assert (entry.lag, entry.lost, entry.alive) == (0, 0, False)


def test_reader_sleeping_through_a_lap_loses_exactly_what_was_overwritten(program, producer, prefix, tmp_path):
    """I4: one lap, the exact number, then the newest three quarters of the ring; the entry shows the loss."""
    count = 2 * SIGNALS.capacity + 17
    with Reader(program, prefix, tmp_path, count, "hold") as reader:
        for first in range(0, count, 1000):
            producer.publish(signals_of(first, min(1000, count - first)))
        result = reader.result("\n")
    kept = SIGNALS.capacity // 4 * 3
    assert (result["received"], result["lost"], result["laps"]) == (kept, count - kept, 1)
    assert (result["counted_lost"], result["disorder"]) == (count - kept, 0)
    assert reader.records["prediction_sequence"].tolist() == list(range(count - kept, count))
    assert inspect_ring(prefix, SIGNALS).consumers[0].lost == count - kept


def test_reader_lapped_while_it_reads_accounts_for_every_signal(program, producer, prefix, tmp_path):
    """I2, I4: received + lost = published, whole records only, in order."""
    count = 12 * SIGNALS.capacity
    with Reader(program, prefix, tmp_path, count) as reader:
        for first in range(0, count, 4000):
            producer.publish(signals_of(first, min(4000, count - first)))
        result = reader.result()
    assert result["received"] + result["lost"] == count
    assert (result["counted_lost"], result["disorder"]) == (result["lost"], 0)
    got = reader.records
    assert (got["prediction_sequence"] == got["sequence"]).all()
    assert (got["receive_mono_ns"] == got["sequence"] + 1).all()
    assert (got["limit_price_units"] == np.where(got["sequence"] % 7 == 0, 0, got["sequence"])).all()


@pytest.mark.parametrize("language", ["c11", "c++20"])
def test_reader_parked_is_woken_by_each_publish(language, producer, prefix, tmp_path):
    """I9: with the bound on a sleep taken away, nothing but the producer's wake-up ends it."""
    rounds = 100
    bound = "#define TW_MAX_PARK_NS INT64_C(20000000)\n"
    assert bound in c_header()
    (tmp_path / "tickwire.h").write_text(c_header().replace(bound, bound.replace("20000000", "200000000000")))
    program = compiled(language, SOURCE, tmp_path / "strategy", tmp_path)
    control = SHM / f"{prefix}.signals.ctl"
    with Reader(program, prefix, tmp_path, rounds, "park") as reader:
        for number in range(rounds):
            eventually(
                lambda: control.read_bytes()[PARK_REQUEST_AT] == 1, WATCHDOG_S, "the reader's request to be woken"
            )
            producer.publish(signals_of(number, 1))
        assert reader.result()["received"] == rounds
    assert producer.state[P_WAKES] == rounds


def test_reader_of_a_replaced_ring_goes_over_to_the_new_one(program, prefix, tmp_path):
    """I7: the name means a new ring: all of it is read, nothing of the old one again; a stop word ends the reader."""
    publish_symbols(prefix, SYMBOLS)
    first = Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash)
    with Reader(program, prefix, tmp_path, 1000, "park") as reader:
        first.publish(signals_of(0, 3))
        eventually(lambda: inspect_ring(prefix, SIGNALS).consumers[0].lag == 0, WATCHDOG_S, "the first three read")
        first.close()
        for name in (f"{prefix}.signals", f"{prefix}.signals.ctl"):
            unlink(name)
        with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as second:
            second.publish(signals_of(100, 5))
            second.stop_consumers()
            result = reader.result()
    assert (result["stopped"], result["reattaches"], result["received"], result["disorder"]) == (1, 1, 8, 0)
    assert reader.records["prediction_sequence"].tolist() == [0, 1, 2, 100, 101, 102, 103, 104]


def test_reader_all_places_taken_reads_unregistered(program, producer, prefix, tmp_path):
    """A ring full of readers costs the seventeenth nothing but its line in the operators' table."""
    others = [Consumer.attach(prefix, SIGNALS, name=f"p{i}") for i in range(SIGNALS.max_consumers)]
    with Reader(program, prefix, tmp_path, 5) as reader:
        producer.publish(signals_of(0, 5))
        assert reader.result()["received"] == 5
    assert {c.name for c in inspect_ring(prefix, SIGNALS).consumers} == {c.name for c in others}
    for other in others:
        other.close()


def test_reader_symbol_table_of_another_ring_is_refused(program, prefix, tmp_path):
    """Names and increments come with the ring or not at all: none there, and a table that the ring is not made for."""
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=1):
        with Reader(program, prefix, tmp_path, 1, "hold") as reader:
            assert f"segment '{prefix}.symbols': must exist in /dev/shm" in reader.symbols
        publish_symbols(prefix, SYMBOLS)
        with Reader(program, prefix, tmp_path, 1, "hold") as reader:
            assert f"must hold the table that ring '{prefix}.signals' was made for" in reader.symbols


def test_reader_killed_leaves_its_place_to_the_next_of_its_name(program, producer, prefix, tmp_path):
    """The liveness lock dies with the process; a live namesake, in C or in Python, is refused."""
    for _ in range(2):
        with Reader(program, prefix, tmp_path, 5):
            text = refusal(program, prefix, tmp_path)
            assert "consumer 'c' must be attached once, pid" in text
    with Consumer.attach(prefix, SIGNALS, name="python"):
        assert "consumer 'python' must be attached once" in refusal(program, prefix, tmp_path, "python")
    assert [c.name for c in inspect_ring(prefix, SIGNALS).consumers] == ["c", "python"]


def _other_schema(prefix):
    words = [("words", "<u8", (30,))]
    spec = RingSpec(name="signals", mode=RingMode.LOSSY, capacity=SIGNALS.capacity, dtype=slot_dtype(256, words))
    Producer.attach(prefix, spec).close()


def _other_capacity(prefix):
    Producer.attach(prefix, RingSpec(name="signals", mode=RingMode.LOSSY, capacity=64, dtype=SIGNAL)).close()


def _file(content: bytes, mode: int = 0o640):
    def make(prefix):
        path = SHM / f"{prefix}.signals"
        path.write_bytes(content)
        path.chmod(mode)

    return make


def _link(prefix):
    (SHM / f"{prefix}.signals").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda prefix: None, "must exist in /dev/shm, does not; is Tickwire running with this prefix?"),
        (_other_schema, f"schema_hash must be {SIGNALS.schema_hash:#x}, is"),
        (_other_capacity, "capacity must be 0x10000, is 0x40; compile with the tickwire.h of the running release"),
        (_file(b""), "must not be empty; remove it if its creator is dead"),
        (_file(b"x" * 100), "must be at least 4096 bytes, is 100"),
        (_file(b"x" * 8192), "is no Tickwire ring (magic 0x7878787878787878)"),
        (_file(b"x" * 8192, 0o666), "must not be writable by others, has mode 666"),
        (_link, "must be allowed to read it: Too many levels of symbolic links"),
    ],
    ids=["absent", "schema", "capacity", "empty", "short", "foreign", "writable", "link"],
)
def test_reader_wrong_segment_is_refused_by_name(program, prefix, tmp_path, make, text):
    """Whatever is not the ring that the header describes: one line that names the segment, the rule and the finding."""
    make(prefix)
    found = refusal(program, prefix, tmp_path)
    assert text in found
    assert f"'{prefix}.signals'" in found


def test_reader_wrong_names_are_refused(program, tmp_path):
    """A prefix or a consumer name that breaks the rules never becomes a path."""
    assert "prefix: must match" in refusal(program, "../etc", tmp_path)
    assert "prefix: must match" in refusal(program, "a" * 33, tmp_path)
    assert "consumer name: must be 1 to 63 bytes" in refusal(program, "a", tmp_path, "n" * 64)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try another user")
def test_reader_of_another_user_is_refused_with_its_uid(program, producer, prefix, tmp_path):
    """Whoever is not in the ring's group may not even read it, and is told why."""
    public = Path("/tmp") / f"{prefix}.program"
    shutil.copy(program, public)
    try:
        done = subprocess.run(
            [public, prefix, "c", "/dev/null", "1"],
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=WATCHDOG_S,
            check=False,
        )
    finally:
        public.unlink()
    assert f"segment '{prefix}.signals': uid 65534 must be allowed to read it: Permission denied" in done.stderr


@pytest.mark.slow
def test_reader_of_a_running_pipeline_gets_what_python_gets(program, prefix, tmp_path):
    """All signals of a whole host's run, byte by byte those of a Python consumer; the run's end ends the reader."""
    command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(CONFIG)]
    for setting in (
        f'run.prefix = "{prefix}"',
        f"run.state_dir = '{tmp_path}'",
        "run.closed_loop = true",
        'ingest.pace = "closed"',
        "ingest.max_seconds = 5",
        'inference.engine = "rule"',
    ):
        command += ["--set", setting]
    log = tmp_path / "host.log"
    with log.open("wb") as stream:
        host = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        ring = f"{prefix}.signals"
        eventually(lambda: ring in list_segments(prefix) or host.poll() is not None, WATCHDOG_S, "the signals ring")
        taken = []
        with (
            Consumer.attach(prefix, SIGNALS, name="python", start=Start.OLDEST) as consumer,
            Reader(program, prefix, tmp_path, 10**9, "oldest") as reader,
        ):
            while not consumer.stopped:
                consumer.wait(0.2)
                batch = consumer.poll(4096)
                assert not isinstance(batch, Lapped)
                taken.append(batch.copy())
            result = reader.result()
        assert host.wait(timeout=WATCHDOG_S) == 0, log.read_text()
    finally:
        host.kill()
        host.wait()
    expected = np.concatenate(taken)
    assert (expected["kind"] == SignalKind.SIGNAL).sum() > 100
    assert (result["stopped"], result["lost"], result["disorder"]) == (1, 0, 0)
    assert reader.records.tobytes() == expected.tobytes()
