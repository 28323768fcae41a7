"""Logs never block and never raise: a bounded queue, drops that are counted and told, any value as JSON. Case A5."""

from __future__ import annotations

import json
import os
import threading

import numpy as np
import pytest
import structlog

from tickwire.runtime.log import LogWriter, configure, render_json


@pytest.fixture
def pipe():
    """A pipe's two ends, and what closes those that the test leaves open."""
    ends = list(os.pipe())
    yield ends
    for end in ends:
        if end is not None:
            os.close(end)


def read_until(fd: int, needle: bytes) -> list[str]:
    text = b""
    while needle not in text or not text.endswith(b"\n"):
        text += os.read(fd, 1 << 20)
    return text.decode().splitlines()


def test_log_full_queue_drops_counts_and_tells(pipe):
    """A5, I1, I2: nobody reads the pipe: logging goes on at once; what was dropped is counted and told, exactly."""
    writer = LogWriter(pipe[1], capacity=10)
    line = "x" * 60_000  # the pipe holds one of them
    for _ in range(200):
        writer.write(line)
    dropped = writer.dropped
    assert dropped >= 200 - 10 - 3, "the queue, the pipe and the line under way"
    assert not writer.flush(0.0)
    told = 0
    with os.fdopen(pipe[0]) as lines:
        pipe[0] = None
        while told < dropped:
            text = lines.readline()
            if text.startswith("{"):
                entry = json.loads(text)
                assert (entry["event"], entry["level"]) == ("log_dropped", "warning")
                told += entry["dropped_lines"]
        assert told == dropped


def test_log_lines_of_many_threads_are_all_written_before_flush_returns(pipe):
    """Each line is whole and written once; `flush` says True only when nothing is on its way."""
    writer = LogWriter(pipe[1])
    for turn in range(200):
        threads = [threading.Thread(target=writer.write, args=(f"{turn}-{i}",)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert writer.flush(60)
        found = os.read(pipe[0], 4096).decode().splitlines()
        assert sorted(found) == [f"{turn}-{i}" for i in range(3)]
    assert writer.dropped == 0


def test_log_sink_that_is_gone_does_not_stop_the_process(pipe):
    """A closed pipe loses lines and nothing else."""
    os.close(pipe[0])
    pipe[0] = None
    writer = LogWriter(pipe[1])
    writer.write("into the void")
    assert writer.flush(60)


def test_log_sink_that_does_not_block_gets_every_byte(pipe):
    """A descriptor in non-blocking mode that is full is tried again; no line is torn."""
    os.set_blocking(pipe[1], False)
    writer = LogWriter(pipe[1])
    writer.write("x" * 300_000)
    writer.write("end")
    assert read_until(pipe[0], b"end") == ["x" * 300_000, "end"]
    assert writer.flush(60)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_log_text_that_is_not_unicode_is_written_escaped(pipe, log_format):
    """A file name that is not UTF-8 is no reason to lose the line, or the thread that writes."""
    writer = configure(log_format, "info", fd=pipe[1], colours=False)
    structlog.get_logger().info("odd", path="a\udcff.gz")
    structlog.get_logger().info("next")
    assert writer.flush(60)
    first, second = os.read(pipe[0], 1 << 16).decode().splitlines()
    assert r"a\udcff.gz" in first.replace("\\\\", "\\")
    assert "next" in second
    structlog.reset_defaults()


def test_log_json_lines_obey_the_level_and_carry_tracebacks(pipe):
    """What is below the level is not written; bound values and exceptions are."""
    writer = configure("json", "info", fd=pipe[1])
    log = structlog.get_logger().bind(service="x")
    log.debug("not_written")
    log.info("strange", path=os, error=ValueError("v"))
    try:
        raise KeyError("k")
    except KeyError:
        log.exception("broken")
    assert writer.flush(60)
    first, second = (json.loads(line) for line in os.read(pipe[0], 1 << 16).decode().splitlines())
    assert (first["event"], first["level"], first["service"]) == ("strange", "info", "x")
    assert "module 'os'" in first["path"]
    assert first["error"] == "v"
    assert "KeyError: 'k'" in second["exception"]
    structlog.reset_defaults()


class Unprintable:
    def __str__(self) -> str:
        raise ZeroDivisionError


def test_render_json_any_value_is_one_line_of_json():
    """Numbers stay numbers, also numpy's; the rest is text; not even a cycle or a broken `__str__` raises."""
    cycle: list = []
    cycle.append(cycle)
    for value, expected in (
        (np.int64(-5), -5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (float("nan"), None),
        (2**70, 2**70),
        ({(1, 2): None}, {"(1, 2)": None}),
        ("two\nlines", "two\nlines"),
        (cycle, "[[...]]"),
        (Unprintable(), "<Unprintable: ZeroDivisionError>"),
    ):
        text = render_json({"event": "e", "value": value})
        assert "\n" not in text
        assert json.loads(text) == {"event": "e", "value": expected}
    assert json.loads(render_json({"event": object()}))["event"].startswith("<object")
