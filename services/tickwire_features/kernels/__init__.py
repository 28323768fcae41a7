"""The compiled kernels of features: live, in replay and for training alike."""
