"""The ring's protocol, model-checked: the correct models have no error, each named mistake has one.

Needs Spin and a C compiler (Debian: `apt install spin gcc`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MODELS = Path(__file__).parent
missing = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"model checking needs {' and '.join(missing)}")

# Lossy: four slots, one crash of the producer. Lossless: two slots, one crash of either side, one eviction.
LOSSY = ("-DLOSSLESS=0", "-DCAP=4")
LOSSLESS = ("-DLOSSLESS=1", "-DCAP=2")


def errors_of(tmp_path: Path, model: str, *definitions: str) -> int:
    """Build the verifier, search the whole state space, return the number of errors."""
    source = tmp_path / model
    shutil.copy(MODELS / model, source)
    for command in (
        ["spin", "-a", *definitions, model],
        ["gcc", "-O2", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    found = subprocess.run(["./pan", "-m1000000"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "max search depth too small" not in found
    assert "pan: out of memory" not in found
    return int(re.search(r"errors: (\d+)", found)[1])


@pytest.mark.parametrize("definitions", [(*LOSSY, "-DN=8"), (*LOSSLESS, "-DN=5")], ids=["lossy", "lossless"])
def test_ring_protocol_has_no_error(tmp_path, definitions):
    """I1-I6: nothing torn, no sequence with two contents, loss exact, no loss while a consumer is waited for."""
    assert errors_of(tmp_path, "ring.pml", "-DWRONG=0", *definitions) == 0


@pytest.mark.parametrize("wrong", [1, 2, 3, 4, 5, 6, 7, 8, 15])
def test_ring_mistake_lossy_is_found(tmp_path, wrong):
    """Each mistake of ring.pml that needs no gate makes the check fail."""
    assert errors_of(tmp_path, "ring.pml", f"-DWRONG={wrong}", *LOSSY, "-DN=9") > 0


@pytest.mark.parametrize("wrong", [9, 10, 11, 12, 13, 14])
def test_ring_mistake_lossless_is_found(tmp_path, wrong):
    """Each mistake with gate, commit or eviction makes the check fail."""
    assert errors_of(tmp_path, "ring.pml", f"-DWRONG={wrong}", *LOSSLESS, "-DN=8") > 0


def test_parking_has_no_error(tmp_path):
    """I9: with two sleepers and no time limit, nobody sleeps while records wait."""
    assert errors_of(tmp_path, "park.pml", "-DWRONG=0") == 0


@pytest.mark.parametrize("wrong", [1, 2, 3, 4, 5, 6])
def test_parking_mistake_is_found(tmp_path, wrong):
    """Each mistake in the order of request, look, word and fence loses a wake-up."""
    assert errors_of(tmp_path, "park.pml", f"-DWRONG={wrong}") > 0
