"""The kernel modules of the windows store, for the compile pass before processes start."""

KERNEL_MODULES: tuple[str, ...] = ("tickwire.windows.kernels",)
