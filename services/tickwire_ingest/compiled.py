"""The kernel modules of ingest, for the compile pass before processes start."""

from tickwire.book.compiled import KERNEL_MODULES as BOOK_MODULES
from tickwire.ring.compiled import KERNEL_MODULES as RING_MODULES

KERNEL_MODULES: tuple[str, ...] = (
    *RING_MODULES,
    *BOOK_MODULES,
    "tickwire.runtime.kernels",
    "tickwire_ingest.kernels.levels",
    "tickwire_ingest.kernels.checksum",
    "tickwire_ingest.kernels.events",
)
