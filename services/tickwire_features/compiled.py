"""The kernel modules of features, for the compile pass before processes start."""

KERNEL_MODULES: tuple[str, ...] = (
    "tickwire_features.kernels.run",
    "tickwire_features.kernels.row",
    "tickwire_features.kernels.view",
    "tickwire_features.kernels.records",
    "tickwire_features.kernels.ticks",
    "tickwire_features.kernels.loop",
)
