"""The windows store's rules one by one, in one process. W-numbers are those of `tickwire.windows.kernels`."""

from __future__ import annotations

import stat

import numpy as np
import pytest
from numba import njit, uint64

from tickwire.errors import ProducerAttachedError, RingLayoutError, RingNotFoundError
from tickwire.records import WINDOW_ROWS
from tickwire.ring.segment import SHM_FOLDER, Segment, list_segments
from tickwire.windows import MAX_READ_ROWS, WindowFault, WindowReader, WindowRows, WindowWriter, layout, window_bytes
from tickwire.windows.kernels import read_run, row_address, symbol_address


def row(value: float) -> np.ndarray:
    return value + np.arange(48, dtype=np.float32) / np.float32(64)


def write(writer: WindowWriter, symbol: int, count: int) -> None:
    for _ in range(count):
        writer.write(symbol, row(writer.head(symbol) + 1))


def read(reader: WindowReader, symbol: int, rows: int) -> WindowRows:
    window = reader.read(symbol, rows)
    assert isinstance(window, WindowRows), window
    return window


@pytest.mark.parametrize("rows", [1, 500, MAX_READ_ROWS])
def test_read_written_rows_come_back_oldest_first(prefix, rows):
    """W2: the newest rows of a run, of this symbol, in order, around the end of the store."""
    with WindowWriter.attach(prefix, 3) as writer, WindowReader.attach(prefix) as reader:
        write(writer, 0, 5)
        write(writer, 1, WINDOW_ROWS + 10)
        window = read(reader, 1, rows)
        assert window.newest == WINDOW_ROWS + 10
        expected = np.arange(window.newest - rows + 1, window.newest + 1, dtype=np.float32)
        assert (window.features == expected[:, None] + row(0)[None, :]).all()
        assert reader.head(2) == 0


def test_read_short_run_is_too_short(prefix):
    """W2: a window never reaches before the run's start."""
    with WindowWriter.attach(prefix, 1) as writer, WindowReader.attach(prefix) as reader:
        assert reader.read(0, 1) is WindowFault.TOO_SHORT
        write(writer, 0, 10)
        assert read(reader, 0, 10).newest == 10
        assert reader.read(0, 11) is WindowFault.TOO_SHORT
        assert writer.invalidate(0) == 11
        assert reader.read(0, 1) is WindowFault.TOO_SHORT
        write(writer, 0, 2)
        assert read(reader, 0, 2).features[:, 0].tolist() == [11.0, 12.0]
        assert reader.read(0, 3) is WindowFault.TOO_SHORT


def test_write_unusable_row_starts_the_run_behind_it(prefix):
    """W3: a row that must not be used has a number and belongs to no run."""
    with WindowWriter.attach(prefix, 1) as writer, WindowReader.attach(prefix) as reader:
        write(writer, 0, 3)
        assert writer.write(0, np.zeros(48, dtype=np.float32), usable=False) == 4
        assert (reader.head(0), reader.valid_from(0)) == (4, 5)
        write(writer, 0, 1)
        assert read(reader, 0, 1).newest == 5
        assert reader.read(0, 2) is WindowFault.TOO_SHORT


def test_read_run_any_length_copies_what_the_run_has(prefix):
    """W2: a reader that starts takes the run as it is, with the numbers that it goes on from."""
    with WindowWriter.attach(prefix, 1) as writer, WindowReader.attach(prefix) as reader:
        out = np.zeros((MAX_READ_ROWS, layout.ROW_WORDS), dtype=np.uint64)
        span = np.zeros(2, dtype=np.uint64)
        assert read_run(reader.state, 0, MAX_READ_ROWS, out, span) == 0
        write(writer, 0, 4)
        writer.invalidate(0)
        write(writer, 0, 3)
        assert read_run(reader.state, 0, MAX_READ_ROWS, out, span) == 3
        assert span.tolist() == [7, 5]
        assert out[:3].view(np.float32)[:, 0].tolist() == [5.0, 6.0, 7.0]
        assert read_run(reader.state, 0, 2, out, span) == 2
        assert out[:2].view(np.float32)[:, 0].tolist() == [6.0, 7.0]


@njit
def _third_row(state):
    return row_address(symbol_address(state, 0), uint64(3))


def test_read_half_written_row_is_torn(prefix):
    """W1, W2: a row whose stamp is not its own is never handed out."""
    with WindowWriter.attach(prefix, 1) as writer, WindowReader.attach(prefix) as reader:
        write(writer, 0, 5)
        segment = Segment.open(f"{prefix}.windows", writable=True)
        stamp = int(_third_row(writer.state)) + layout.STAMP
        segment.array(np.uint64, stamp - int(writer.state[0]), 1)[0] = 0
        assert reader.read(0, 3) is WindowFault.TORN
        assert read(reader, 0, 2).newest == 5
        segment.close()


def test_read_out_of_range_is_refused(prefix):
    """A caller's mistake is a ValueError, never a read beyond the store."""
    with WindowWriter.attach(prefix, 2), WindowReader.attach(prefix) as reader:
        for symbol, rows in ((2, 1), (-1, 1), (0, 0), (0, MAX_READ_ROWS + 1)):
            with pytest.raises(ValueError, match="symbol must be below 2"):
                reader.read(symbol, rows)


def test_attach_second_writer_is_refused_until_the_first_closes(prefix):
    """One writer a store; the lock goes with its holder, the rows stay."""
    writer = WindowWriter.attach(prefix, 1)
    write(writer, 0, 2)
    with pytest.raises(ProducerAttachedError, match="must have one writer"):
        WindowWriter.attach(prefix, 1)
    writer.close()
    with WindowWriter.attach(prefix, 1) as second:
        assert (second.head(0), second.valid_from(0)) == (2, 3)


def test_attach_other_store_is_refused_naming_the_field(prefix):
    """Another symbol table, number of symbols or feature table is an error with its finding."""
    WindowWriter.attach(prefix, 2, symbol_table_hash=5).close()
    with pytest.raises(RingLayoutError, match=r"symbol table hash must be 0x6, is 0x5"):
        WindowWriter.attach(prefix, 2, symbol_table_hash=6)
    with pytest.raises(RingLayoutError, match=r"symbol table hash must be 0x7, is 0x5"):
        WindowReader.attach(prefix, symbol_table_hash=7)
    with pytest.raises(RingLayoutError, match="n_symbols must be 3, is 2"):
        WindowWriter.attach(prefix, 3, symbol_table_hash=5)
    segment = Segment.open(f"{prefix}.windows", writable=True)
    segment.array(np.uint64, layout.FEATURE_HASH_AT, 1)[0] = 9
    segment.close()
    with pytest.raises(RingLayoutError, match="feature_hash must be"):
        WindowReader.attach(prefix)


def test_attach_missing_store_says_what_to_start(prefix):
    """A reader without a store gets one clear error after its time-out."""
    with pytest.raises(RingNotFoundError, match="is features running with this prefix"):
        WindowReader.attach(prefix, timeout_s=0.0)


def test_segment_survives_its_users_with_its_mode(prefix):
    """Closing removes nothing; the group may read, others nothing."""
    WindowWriter.attach(prefix, 2).close()
    assert list_segments(prefix) == [f"{prefix}.windows"]
    status = (SHM_FOLDER / f"{prefix}.windows").stat()
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert status.st_size == window_bytes(2)
