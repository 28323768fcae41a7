"""The progress line of the compile pass."""

from __future__ import annotations

import io

from tickwire_ctl.progress import CompileLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_compile_line_terminal_rewrites_one_line_and_clears_it():
    """On a terminal there is one line, gone at the end."""
    stream = Terminal()
    with CompileLine(stream) as line:
        line(1, 2, "a.b")
        line(2, 2, "a.c")
    text = stream.getvalue()
    assert "\n" not in text
    assert "compiled 2 of 2 kernel modules (once)  a.c" in text
    assert text.endswith("\r\x1b[2K")


def test_compile_line_file_gets_first_and_last_without_escapes():
    """In a file or pipe there are a few plain lines: the first, one now and then, the last."""
    stream = io.StringIO()
    with CompileLine(stream) as line:
        for done in range(1, 101):
            line(done, 100, f"module{done}")
    lines = stream.getvalue().splitlines()
    assert "\x1b" not in stream.getvalue()
    assert lines[0].startswith("compiled 1 of 100")
    assert lines[-1].startswith("compiled 100 of 100")
    assert len(lines) < 50


def test_compile_line_nothing_to_compile_shows_nothing():
    """With a full cache nobody is bothered."""
    stream = Terminal()
    with CompileLine(stream):
        pass
    assert stream.getvalue() == ""
