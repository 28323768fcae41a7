"""The router's compiled kernels: decoding, the kill switch's effect, statistics, the loop."""
