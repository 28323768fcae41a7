"""The kernel modules of the router, for the compile pass before processes start."""

KERNEL_MODULES: tuple[str, ...] = (
    "tickwire_router.kernels.decode",
    "tickwire_router.kernels.outbox",
    "tickwire_router.kernels.withdrawal",
    "tickwire_router.kernels.restore",
    "tickwire_router.kernels.loop",
)
