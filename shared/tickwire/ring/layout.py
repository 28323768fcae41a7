"""The bytes of a ring: two segments, little-endian, every shared word with one writer.

    <prefix>.<ring>            0640, written by the producer alone, mapped read-only by everybody else
    +--------+---------------------------------------------------------------+
    | 0x0000 | u64 magic, stored last                                        |
    | 0x0008 | u32 version            u32 header_bytes                       |
    | 0x0010 | u64 capacity (a power of two)                                 |
    | 0x0018 | u32 slot_bytes         u32 payload_bytes                      |
    | 0x0020 | u32 mode               u32 max_consumers                      |
    | 0x0028 | u64 data_offset  schema_hash  symbol_table_hash  generation   |
    | 0x0048 | u64 first_sequence                                            |
    | 0x0080 | u64 published                           (alone on 128 bytes)  |
    | 0x0100 | u32 producer pid       u32 epoch        u64 heartbeat_ns      |
    | 0x0180 | u32 futex word         u32 stop                               |
    | 0x0200 | u32 EVICTED flag of consumer i at + 128 i                     |
    | 0x1000 | slots: u64 stamp | u64 publish_mono_ns (the batch's) | payload  |
    +--------+---------------------------------------------------------------+

    <prefix>.<ring>.ctl        0660, each entry written by its consumer
    +--------+---------------------------------------------------------------+
    | 0x0000 | u64 magic              u64 generation (the data segment's)    |
    | 0x0100 | liveness lock of the producer (one byte, an OFD lock)         |
    | 0x0108 | lock held while an entry is taken or given back               |
    | 0x0180 | u32 park_request (consumers store 1, the producer swaps in 0) |
    | 0x0200 | consumer i at + 128 i: u64 cursor, u64 lost, u64 name_hash,   |
    |        | u32 state, u32 pid, u32 attaches; lock byte at + 0x30;        |
    |        | name (UTF-8) at + 0x40                                        |
    +--------+---------------------------------------------------------------+

A stamp is 0 while its slot is written, else the record's sequence + 1. Cache lines are 64 bytes and prefetched in
pairs, hence the 128-byte spacing of words with different writers.
"""

from __future__ import annotations

MAGIC = int.from_bytes(b"TWRING01", "little")
CONTROL_MAGIC = int.from_bytes(b"TWCTRL01", "little")
LAYOUT_VERSION = 1

HEADER_BYTES = 0x1000
MAX_CONSUMERS = 16
MIN_SLOT_BYTES = 64
MAX_SLOT_BYTES = 512

# Data segment, by offset.
MAGIC_AT = 0x000
VERSION_AT = 0x008
HEADER_BYTES_AT = 0x00C
CAPACITY_AT = 0x010
SLOT_BYTES_AT = 0x018
PAYLOAD_BYTES_AT = 0x01C
MODE_AT = 0x020
MAX_CONSUMERS_AT = 0x024
DATA_OFFSET_AT = 0x028
SCHEMA_HASH_AT = 0x030
SYMBOL_TABLE_HASH_AT = 0x038
GENERATION_AT = 0x040
FIRST_SEQUENCE_AT = 0x048
PUBLISHED_AT = 0x080  # writer: producer
PRODUCER_PID_AT = 0x100  # writer: producer
EPOCH_AT = 0x104  # writer: producer, +1 at each attach
HEARTBEAT_AT = 0x108  # writer: producer
FUTEX_AT = 0x180  # writer: producer, +1 at each wake-up
STOP_AT = 0x184  # writer: producer, or the owner of the segments while no producer lives
EVICTED_AT = 0x200  # writer: producer

# Control segment, by offset.
CONTROL_BYTES = 0x1000
CONTROL_GENERATION_AT = 0x008
PRODUCER_LOCK_AT = 0x100
ENTRY_LOCK_AT = 0x108
PARK_REQUEST_AT = 0x180
ENTRIES_AT = 0x200
ENTRY_BYTES = 128
CURSOR = 0x00  # writer: the consumer
LOST = 0x08  # writer: the consumer
NAME_HASH = 0x10
STATE = 0x18
PID = 0x1C
ATTACHES = 0x20  # writer: the consumer, +1 at each attach and at each return after an eviction
LIVENESS_LOCK = 0x30
NAME = 0x40
NAME_BYTES = 63

# Values of an entry's state.
FREE = 0
ACTIVE = 1
"""A lossless consumer: its cursor holds the producer back, alive or dead, until it is evicted."""
REJOINING = 2
"""Was evicted and reads again; holds the producer back once that clears the EVICTED flag."""
OBSERVER = 3
"""A lossy consumer: never holds the producer back; its cursor is information."""
