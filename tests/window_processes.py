"""A real writer of a windows store: `python tests/window_processes.py PREFIX SYMBOLS ROWS`.

Word k of a row is a function of its row_sequence, its last word is the `valid_from` of its run, so that a mixture of
two rows and a window over two runs show. Prints `ready` once attached and one JSON object at its end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from numba import njit

from tickwire.windows import WindowWriter
from tickwire.windows.kernels import invalidate, valid_from_of, write_row

PRIME = 0x9E3779B97F4A7C15
ROW_WORDS = 24
BURST = 64


@njit(nogil=True)
def write_burst(state, symbol, count, row):
    """Write `count` rows to one symbol."""
    valid_from = valid_from_of(state, symbol)
    for _ in range(count):
        sequence = row[ROW_WORDS]
        for k in range(ROW_WORDS - 1):
            row[k] = sequence * np.uint64(PRIME) + np.uint64(k)
        row[ROW_WORDS - 1] = valid_from
        row[ROW_WORDS] = write_row(state, symbol, row[:ROW_WORDS], True) + np.uint64(1)


def expected(newest: int, rows: int) -> np.ndarray:
    """Words 0 to 22 of the rows that end with `newest`."""
    sequences = np.arange(newest - rows + 1, newest + 1, dtype=np.uint64)[:, None]
    return sequences * np.uint64(PRIME) + np.arange(ROW_WORDS - 1, dtype=np.uint64)[None, :]


def write(prefix: str, symbols: int, rows: int) -> dict[str, list[int]]:
    """Write rows to each symbol in bursts, ending the run now and then."""
    random = np.random.default_rng(7)
    with WindowWriter.attach(prefix, symbols) as writer:
        scratch = np.zeros((symbols, ROW_WORDS + 1), dtype=np.uint64)
        for symbol in range(symbols):
            scratch[symbol, ROW_WORDS] = writer.head(symbol) + 1
            write_burst(writer.state, symbol, 1, scratch[symbol])
        print("ready", flush=True)
        while int(scratch[0, ROW_WORDS]) < rows:
            symbol = int(random.integers(symbols))
            write_burst(writer.state, symbol, int(random.integers(1, BURST)), scratch[symbol])
            if random.random() < 0.005:
                invalidate(writer.state, symbol)
        return {"heads": [writer.head(symbol) for symbol in range(symbols)]}


def start(prefix: str, symbols: int, rows: int) -> subprocess.Popen[str]:
    """Start a writer in a process of its own and wait until it is attached."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(Path(__file__)), prefix, str(symbols), str(rows)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if line != "ready\n":
        raise AssertionError(f"{line}{process.communicate()[1]}")
    return process


if __name__ == "__main__":
    print(json.dumps(write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
