"""The windows store between real processes. W-numbers are those of `tickwire.windows.kernels`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tickwire.errors import ProducerAttachedError
from tickwire.windows import MAX_READ_ROWS, WindowFault, WindowReader, WindowRows, WindowWriter
from window_processes import expected, start

SYMBOLS = 2


@pytest.mark.parametrize("rows", [500, MAX_READ_ROWS])
def test_reader_free_running_writer_sees_no_mixed_row(prefix, rows):
    """W1, W2: each window is whole rows in order, all of one run, or one of the named outcomes."""
    writer = start(prefix, SYMBOLS, 3_000_000)
    outcomes: dict[str, int] = {"whole": 0, **{fault.name: 0 for fault in WindowFault}}
    with WindowReader.attach(prefix) as reader:
        while writer.poll() is None:
            for symbol in range(SYMBOLS):
                window = reader.read(symbol, rows)
                if isinstance(window, WindowFault):
                    outcomes[window.name] += 1
                    continue
                outcomes["whole"] += 1
                words = window.features.view(np.uint64)
                assert (words[:, :-1] == expected(window.newest, rows)).all()
                runs = set(words[:, -1].tolist())
                assert len(runs) == 1
                assert runs.pop() <= window.newest - rows + 1
        out, err = writer.communicate()
        assert err == ""
        assert [reader.head(symbol) for symbol in range(SYMBOLS)] == json.loads(out)["heads"]
    assert outcomes["whole"] > 0, outcomes


def test_writer_killed_next_one_goes_on_behind_head_with_empty_runs(prefix):
    """W3: rows survive a kill -9, numbers go on, and no window reaches over the restart."""
    process = start(prefix, SYMBOLS, 2**62)
    with WindowReader.attach(prefix) as reader:
        while reader.head(0) < 5_000:
            assert process.poll() is None
        with pytest.raises(ProducerAttachedError, match=f"pid {process.pid} is alive"):
            WindowWriter.attach(prefix, SYMBOLS)
        process.kill()
        process.communicate()
        heads = [reader.head(symbol) for symbol in range(SYMBOLS)]
        with WindowWriter.attach(prefix, SYMBOLS) as writer:
            assert [writer.head(symbol) for symbol in range(SYMBOLS)] == heads
            assert [reader.valid_from(symbol) for symbol in range(SYMBOLS)] == [head + 1 for head in heads]
            assert reader.read(0, 1) is WindowFault.TOO_SHORT
            assert writer.write(0, np.full(48, 3.0, dtype=np.float32)) == heads[0] + 1
            window = reader.read(0, 1)
            assert isinstance(window, WindowRows)
            assert window.newest == heads[0] + 1
            assert (window.features == 3.0).all()
            assert reader.read(0, 2) is WindowFault.TOO_SHORT
