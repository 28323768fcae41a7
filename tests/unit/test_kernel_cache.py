"""The kernel cache: keyed by everything a kernel is compiled from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tickwire.errors import TickwireError
from tickwire.kernel import compile_kernels, is_compiled
from tickwire.kernel.cache import cache_folder, import_closure

RING = "tickwire.ring.kernels.producer"


def test_import_closure_holds_callees_and_constants():
    """I1: the modules whose change must recompile a kernel are in its closure, others are not."""
    closure = import_closure(RING)
    assert {RING, "tickwire.ring.layout", "tickwire.ring.words", "tickwire.ring.kernels.state"} <= closure
    assert not any(name.startswith("tickwire_") for name in closure)


def test_cache_folder_changed_constant_moves_it(tmp_path, monkeypatch):
    """I1: changing a constant in an imported module gives another folder, so stale code is never loaded."""
    package = tmp_path / "tickwire_ingest"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "numbers.py").write_text("LIMIT = 1\n")
    (package / "kernels.py").write_text("from tickwire_ingest.numbers import LIMIT\n")
    program = "from tickwire.kernel.cache import cache_folder; print(cache_folder('tickwire_ingest.kernels'))"

    def folder() -> str:
        environment = {"PYTHONPATH": f"{tmp_path}", "HOME": str(tmp_path), "PATH": ""}
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        ).stdout

    before = folder()
    assert folder() == before
    (package / "numbers.py").write_text("LIMIT = 2\n")
    assert folder() != before


def test_compile_kernels_fills_the_cache_once_and_tells_progress(tmp_path, monkeypatch):
    """Each module is told when it is done; afterwards all are in the cache and nothing is left to do."""
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(tmp_path))
    modules = ("tickwire.book.kernels", "tickwire.runtime.kernels")
    assert not any(map(is_compiled, modules))
    seen: list[tuple[int, int, str]] = []
    compile_kernels(modules, lambda done, total, name: seen.append((done, total, name)))
    assert [step[:2] for step in seen] == [(1, 2), (2, 2)]
    assert {step[2] for step in seen} == set(modules)
    assert all(map(is_compiled, modules))
    compile_kernels(modules, lambda *_: pytest.fail("there was nothing to do"))


def test_compile_kernels_names_a_missing_module(tmp_path, monkeypatch):
    """A wrong name is a clear error."""
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(tmp_path))
    with pytest.raises(TickwireError, match=r"'tickwire\.ring\.no_such'"):
        compile_kernels(("tickwire.ring.no_such",))


def test_compile_kernels_interrupted_leaves_no_process(tmp_path, monkeypatch):
    """What the progress callback raises ends the workers."""
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(tmp_path))

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_kernels(("tickwire.runtime.kernels", "tickwire.book.kernels"), stop)
    children = ["ps", "--ppid", str(os.getpid()), "-o", "args"]
    assert "tickwire.kernel" not in subprocess.run(children, capture_output=True, text=True).stdout


def test_kernel_unwritable_cache_compiles_in_memory(tmp_path):
    """I2: a cache folder that cannot be made is no error."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    program = (
        "from tickwire.kernel.cache import cache_for\n"
        "from tickwire.ring.words import monotonic_ns\n"
        f"assert cache_for({RING!r}) is None\n"
        "import tickwire.kernel.decorator as d\n"
        "from tickwire.ring.kernels.producer import beat\n"
        "print('compiled', beat.stats.cache_path)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"TICKWIRE_KERNEL_CACHE": str(blocked / "below"), "HOME": str(tmp_path), "PATH": ""},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("compiled")


def test_cache_folder_is_below_the_configured_root(tmp_path, monkeypatch):
    """The environment decides where machine code lies."""
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(tmp_path))
    assert cache_folder(RING).parent == Path(tmp_path)
