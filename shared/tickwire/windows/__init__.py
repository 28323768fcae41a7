"""The windows store: the newest 1,024 rows of every symbol in shared memory.

Rows on the ring are increments, the store is their snapshot: a reader that starts or was lapped copies what it needs
from here and then goes on with the ring behind `head`. Features writes the store first, then the ring.
"""

from tickwire.windows.kernels import INVALID, MAX_READ_ROWS, TOO_SHORT, TORN
from tickwire.windows.layout import window_bytes
from tickwire.windows.reader import WindowFault, WindowReader, WindowRows
from tickwire.windows.writer import WindowWriter

__all__ = [
    "INVALID",
    "MAX_READ_ROWS",
    "TOO_SHORT",
    "TORN",
    "WindowFault",
    "WindowReader",
    "WindowRows",
    "WindowWriter",
    "window_bytes",
]
