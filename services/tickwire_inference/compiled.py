"""The kernel modules of inference, for the compile pass before processes start."""

KERNEL_MODULES: tuple[str, ...] = (
    "tickwire_inference.kernels.queue",
    "tickwire_inference.kernels.decision",
    "tickwire_inference.kernels.flight",
    "tickwire_inference.kernels.windows",
    "tickwire_inference.kernels.slots",
    "tickwire_inference.kernels.answers",
    "tickwire_inference.kernels.repair",
    "tickwire_inference.kernels.rows",
    "tickwire_inference.kernels.batches",
    "tickwire_inference.kernels.loop",
)
