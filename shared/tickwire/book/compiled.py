"""The kernel modules of the books, for the compile pass before processes start."""

KERNEL_MODULES: tuple[str, ...] = ("tickwire.book.kernels",)
