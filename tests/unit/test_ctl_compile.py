"""`tickwire compile`: where machine code goes, and what is said when it cannot."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tickwire.kernel import cache_root
from tickwire_ctl import compile as command
from tickwire_ctl.cli import main

MODULES = ("tickwire.runtime.kernels", "tickwire.book.kernels")


@pytest.fixture(autouse=True)
def few_kernels(monkeypatch, tmp_path):
    """Two modules stand for all; the cache is this test's, and the environment is put back."""
    monkeypatch.setattr(command, "KERNEL_MODULES", MODULES)
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(tmp_path / "default"))


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.code")}


def test_compile_cache_option_fills_that_folder_once(tmp_path):
    """The folder named holds everything, progress goes to stderr, a second run has nothing to do."""
    folder = tmp_path / "image"
    first = CliRunner().invoke(main, ["compile", "--cache", str(folder)])
    assert first.exit_code == 0, first.output
    assert first.stdout == f"2 kernel modules are compiled in {folder}\n"
    assert "compiled 2 of 2 kernel modules" in first.stderr
    assert len(list(folder.glob("*/complete"))) == len(MODULES)
    assert not (tmp_path / "default").exists()
    files = files_of(folder)
    assert files
    second = CliRunner().invoke(main, ["compile", "--cache", str(folder)])
    assert (second.exit_code, second.stdout, second.stderr) == (0, first.stdout, "")
    assert files_of(folder) == files


def test_compile_unwritable_folder_is_an_error_that_names_it(tmp_path, monkeypatch):
    """Nothing is said to be compiled that is not."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(blocked / "below"))
    result = CliRunner().invoke(main, ["compile"])
    assert result.exit_code == 1
    assert str(cache_root()) in result.stderr
    assert "must be writable" in result.stderr
