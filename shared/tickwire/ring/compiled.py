"""The kernel modules of the ring, for the compile pass before processes start."""

KERNEL_MODULES: tuple[str, ...] = (
    "tickwire.ring.kernels.producer",
    "tickwire.ring.kernels.consumer",
    "tickwire.ring.kernels.waiting",
)
