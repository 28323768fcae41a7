"""Indices of the words that a producer or a consumer keeps for itself, in process-local memory.

A kernel gets such a state as `uint64[::1]`. Only the thread that runs the kernel writes it, except where stated.
"""

from __future__ import annotations

# Producer.
P_DATA = 0  # address of the data segment
P_CONTROL = 1  # address of the control segment
P_CAPACITY = 2
P_SLOT_BYTES = 3
P_LOSSLESS = 4  # 1 or 0
P_MAX_CONSUMERS = 5
P_NEXT = 6  # next sequence to publish
P_GATE = 7  # lowest cursor seen at the last look at the consumers
P_STALL_SINCE = 8  # monotonic ns of the first refused claim since the last one that was granted, 0 = none
P_STALL_TIMEOUT = 9  # ns
P_BACK_PRESSURE = 10  # refused claims
P_EVICTIONS = 11
P_WAKES = 12
P_WORDS = 16

# Consumer.
C_DATA = 0
C_CONTROL = 1
C_CAPACITY = 2
C_SLOT_BYTES = 3
C_LOSSLESS = 4
C_ENTRY = 5  # address of the consumer's entry in the control segment, 0 = none (an unregistered lossy consumer)
C_INDEX = 6
C_CURSOR = 7  # next sequence to read
C_LOST = 8  # records lost since attach
C_LAST_LOST = 9  # records lost by the lap reported last
C_LAPS = 10
C_SPIN_NS = 11  # how long `wait` spins before it parks; SPIN_FOREVER never parks
C_REATTACH = 12  # 1 = leave the kernel and re-attach; written by the thread that compares generations
C_PARKS = 13
C_WORDS = 16

SPIN_FOREVER = 2**63 - 1

LAST_LOST = C_LAST_LOST
"""Where a kernel finds the loss of the lap that `poll` has just reported."""
