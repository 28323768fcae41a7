"""Kernels load from a cache that nobody may write: a read-only install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tickwire.kernel.cache import cache_folder

MODULE = "tickwire.runtime.kernels"
# Modes count for root, too, in what it executes without CAP_DAC_OVERRIDE (1) and CAP_DAC_READ_SEARCH (2).
WITHOUT_RIGHTS = """
import ctypes, os, sys
drop = 24  # PR_CAPBSET_DROP
if os.geteuid() == 0 and any(ctypes.CDLL(None).prctl(drop, right, 0, 0, 0) != 0 for right in (1, 2)):
    sys.exit("skip")
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
LOAD = f"""
import os
from tickwire.kernel import compile_kernels, is_compiled
from tickwire.kernel.cache import cache_folder, can_store
compile_kernels(({MODULE!r},), lambda *_: print("compiled"))
from tickwire.runtime.kernels import record_duration
import numpy as np
histogram = np.zeros(2000, dtype=np.uint64)
record_duration(histogram, 100)
stats = record_duration.stats
print(can_store({MODULE!r}), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), int(histogram[0]))
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache with the module, and with the modules that importing it imports."""
    folder = tmp_path_factory.mktemp("filled")
    environment = {**os.environ, "TICKWIRE_KERNEL_CACHE": str(folder)}
    subprocess.run([sys.executable, "-m", "tickwire.kernel", MODULE], check=True, env=environment, capture_output=True)
    return folder


@pytest.fixture
def cache(filled, tmp_path, monkeypatch):
    """A cache of this test's, in a place that it was not filled in; writable again when the test is over."""
    place = tmp_path / "kernels"
    shutil.copytree(filled, place)
    monkeypatch.setenv("TICKWIRE_KERNEL_CACHE", str(place))
    yield place
    for folder in place.iterdir():
        folder.chmod(0o755)
    place.chmod(0o755)


def make_read_only(root):
    for path in root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    root.chmod(0o555)


def loaded() -> list[str]:
    result = subprocess.run([sys.executable, "-c", WITHOUT_RIGHTS, LOAD], capture_output=True, text=True, check=False)
    if result.stderr.strip() == "skip":
        pytest.skip("this root may not give up its rights, so that no folder is read-only to it")
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def listing(root):
    return sorted((str(path), path.stat().st_mtime_ns) for path in root.rglob("*"))


def test_kernel_read_only_cache_is_loaded(cache):
    """I2: nothing is compiled, everything is a hit, nothing is written."""
    make_read_only(cache)
    before = listing(cache)
    assert loaded() == ["False 1 0 1"]
    assert listing(cache) == before


def test_kernel_read_only_cache_without_a_file_compiles_it_in_memory(cache):
    """I2: what is missing in a read-only cache costs time and is no error."""
    (code,) = cache_folder(MODULE).glob("record_duration-*")
    code.unlink()
    make_read_only(cache)
    assert loaded() == ["False 0 1 1"]


def test_kernel_unreadable_file_is_compiled_anew(cache):
    """I2 of the machine code: a file without the right to read it is as good as none."""
    (code,) = cache_folder(MODULE).glob("record_duration-*")
    code.chmod(0)
    assert loaded() == ["True 0 1 1"]
    assert oct(code.stat().st_mode)[-3:] != "000", "the compiled code has taken its place"


def test_kernel_cache_of_another_processor_is_not_loaded(cache, monkeypatch):
    """I1: machine code of one processor never runs on another; a cache of both serves both."""
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    make_read_only(cache)
    assert loaded() == ["False 0 1 1"]
