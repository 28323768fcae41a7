"""What a supervised process writes, and the reason that is found in it."""

from __future__ import annotations

import os

from tickwire_ctl.output import LAST_LINES, Output, reason_in

WATCHDOG_S = 30.0


def written(lines: list[bytes], sink: int) -> Output:
    """An `Output` whose child has written some lines and ended."""
    source, child = os.pipe()
    output = Output(os.fdopen(source, "rb"), sink)
    with os.fdopen(child, "wb") as stream:
        stream.writelines(lines)
    output.join(WATCHDOG_S)
    return output


def test_output_lines_are_handed_on_as_they_are_and_the_last_are_kept(tmp_path):
    """Every byte reaches the sink; the last lines are there for the message."""
    lines = [f"line {i}\n".encode() for i in range(1000)] + [b"\xff no end"]
    with (tmp_path / "sink").open("wb") as sink:
        output = written(lines, sink.fileno())
    assert (tmp_path / "sink").read_bytes() == b"".join(lines)
    assert output.last_lines == (*(f"line {i}" for i in range(1001 - LAST_LINES, 1000)), "\ufffd no end")


def test_output_sink_without_a_reader_still_takes_everything():
    """A closed sink does not stop the child: more than a pipe holds is read."""
    reader, sink = os.pipe()
    os.close(reader)
    output = written([b"x" * 999 + b"\n"] * 1000, sink)
    os.close(sink)
    assert len(output.last_lines) == LAST_LINES


def test_reason_newest_error_of_a_json_log_is_found():
    """The error that a log states, not the lines around it."""
    lines = ['{"event":"a","error":"old"}', '{"event":"service_failed","error":"no fuel"}', '{"event":"bye"}', "{cut"]
    assert reason_in(lines) == "no fuel"


def test_reason_lines_without_an_error_are_shown_as_they_are():
    """A traceback or text of another format is shown whole."""
    lines = ["Traceback (most recent call last):", '  File "x"', "KeyError: 1", "[1, 2]", '{"error": null}']
    assert reason_in(lines) == "\n".join(lines)
    assert reason_in([]) == ""
