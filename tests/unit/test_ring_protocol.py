"""The ring's rules one by one, in one process. I-numbers are those of ring/README.md."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from ring_processes import fill, spec_of, torn
from tickwire.errors import (
    ConsumerAttachedError,
    ProducerAttachedError,
    RingError,
    RingLayoutError,
    RingNotFoundError,
)
from tickwire.records import as_words
from tickwire.ring import BackPressure, Consumer, Lapped, Producer, RingMode, RingSpec, Start, layout
from tickwire.ring.segment import SHM_FOLDER, Segment, list_segments, unlink

LOSSLESS = spec_of("lossless", 16, 64)
LOSSY = spec_of("lossy", 16, 64)


def send(producer: Producer, count: int) -> int | BackPressure:
    records = np.zeros(count, dtype=producer.spec.dtype)
    fill(records, producer.next_sequence)
    return producer.publish(records)


def read_all(consumer: Consumer) -> list[int]:
    records = consumer.poll()
    assert not isinstance(records, Lapped)
    assert torn(records) == 0
    return [int(sequence) for sequence in records["sequence"]]


def u64(segment: Segment, offset: int) -> np.ndarray:
    return segment.array(np.uint64, offset, 1)


def test_poll_records_arrive_in_order_with_sequence_and_stamp(prefix):
    """I1, I2: what is published is what is read, in order, with its sequence and publish time."""
    with Producer.attach(prefix, LOSSLESS) as producer, Consumer.attach(prefix, LOSSLESS, name="a") as consumer:
        assert send(producer, 5) == 5
        records = consumer.poll(3)
        assert list(records["sequence"]) == [0, 1, 2]
        assert (records["publish_mono_ns"] > 0).all()
        assert read_all(consumer) == [3, 4]
        assert read_all(consumer) == []


@pytest.mark.parametrize("spec", [LOSSLESS, LOSSY], ids=["lossless", "lossy"])
def test_batch_above_half_capacity_is_refused(prefix, spec):
    """I3: a batch is at most capacity / 2."""
    with Producer.attach(prefix, spec) as producer:
        assert send(producer, 8) == 8
        with pytest.raises(ValueError, match="at most 8 records, was 9"):
            send(producer, 9)


def test_lossless_full_ring_reports_back_pressure_until_commit(prefix):
    """I5: nothing uncommitted is overwritten; the producer is told by value."""
    with Producer.attach(prefix, LOSSLESS) as producer, Consumer.attach(prefix, LOSSLESS, name="a") as consumer:
        assert send(producer, 8) == 8
        assert send(producer, 8) == 8
        assert send(producer, 1) == BackPressure(1)
        assert consumer.poll(4)["sequence"].tolist() == [0, 1, 2, 3]
        assert isinstance(send(producer, 1), BackPressure)  # polled, not yet committed
        consumer.commit()
        assert send(producer, 4) == 4
        assert read_all(consumer) == list(range(4, 20))


def test_lossless_without_consumers_never_blocks(prefix):
    """I5: only consumers hold the producer back."""
    with Producer.attach(prefix, LOSSLESS) as producer:
        for _ in range(10):
            assert send(producer, 8) == 8


def test_lossless_stalled_consumer_is_evicted_then_rejoins(prefix):
    """I5: a consumer is evicted only after the stall timeout, resumes with exact loss, and is waited for again."""
    with (
        Producer.attach(prefix, LOSSLESS, stall_timeout_ms=0) as producer,
        Consumer.attach(prefix, LOSSLESS, name="a") as consumer,
    ):
        attaches = producer.consumer_attaches
        for _ in range(4):
            assert send(producer, 8) == 8
        assert producer.evictions == 1
        lapped = consumer.poll()
        assert lapped == Lapped(lost=20, resumed_at=20)  # newest 32, three quarters of 16 back
        assert producer.consumer_attaches == attaches + 1
        assert read_all(consumer) == list(range(20, 32))
        consumer.commit()
        producer.state[9] = 60_000_000_000  # P_STALL_TIMEOUT: from here on nobody is evicted
        assert send(producer, 8) == 8
        assert send(producer, 8) == 8
        assert isinstance(send(producer, 8), BackPressure)
        assert read_all(consumer) == list(range(32, 48))
        assert consumer.lost == 20


def test_lossless_short_stall_evicts_nobody(prefix):
    """I5: before the timeout there is back-pressure and nothing else."""
    with (
        Producer.attach(prefix, LOSSLESS, stall_timeout_ms=60_000) as producer,
        Consumer.attach(prefix, LOSSLESS, name="a"),
    ):
        send(producer, 8)
        send(producer, 8)
        for _ in range(100):
            assert isinstance(send(producer, 1), BackPressure)
        assert producer.evictions == 0
        assert producer.back_pressure == 100


def test_lossless_slowest_of_two_consumers_counts(prefix):
    """I5: the lowest cursor gates."""
    with (
        Producer.attach(prefix, LOSSLESS) as producer,
        Consumer.attach(prefix, LOSSLESS, name="fast") as fast,
        Consumer.attach(prefix, LOSSLESS, name="slow") as slow,
    ):
        send(producer, 8)
        send(producer, 8)
        assert read_all(fast) == list(range(16))
        fast.commit()
        assert isinstance(send(producer, 1), BackPressure)
        slow.poll(1)
        slow.commit()
        assert send(producer, 1) == 1


@pytest.mark.parametrize("published", [17, 24, 40, 161])
def test_lossy_lap_counts_exactly_and_jumps_as_documented(prefix, published):
    """I4: the cursor goes to max(c + 1, newest - 3/4 capacity); lost is the difference, counted once."""
    with Producer.attach(prefix, LOSSY) as producer, Consumer.attach(prefix, LOSSY, name="a") as consumer:
        for _ in range(published):
            send(producer, 1)
        resumed = max(1, published - 12)
        assert consumer.poll() == Lapped(resumed, resumed)
        received = read_all(consumer)
        assert received == list(range(resumed, published))
        assert consumer.lost + len(received) == published


def test_lossy_reader_behind_but_not_overwritten_loses_nothing(prefix):
    """I4: exactly one ring behind is not a lap."""
    with Producer.attach(prefix, LOSSY) as producer, Consumer.attach(prefix, LOSSY, name="a") as consumer:
        for _ in range(16):
            send(producer, 1)
        assert read_all(consumer) == list(range(16))
        assert consumer.lost == 0


def test_poll_slot_being_written_is_waited_for_or_lapped(prefix):
    """I2: a zero stamp at the head means wait; behind `published` it means lapped."""
    with Producer.attach(prefix, LOSSY) as producer, Consumer.attach(prefix, LOSSY, name="a") as consumer:
        send(producer, 4)
        data = Segment.open(f"{prefix}.stress", writable=True)
        u64(data, layout.HEADER_BYTES + 4 * 64)[0] = 0
        assert read_all(consumer) == [0, 1, 2, 3]
        assert read_all(consumer) == []
        for _ in range(15):
            send(producer, 1)  # sequences 4 to 18: slots of 0, 1 and 2 hold 16, 17 and 18
        u64(data, layout.HEADER_BYTES + 4 * 64)[0] = 0  # as if 20 were being written over 4
        assert consumer.poll() == Lapped(3, 7)
        data.close()


def test_restart_producer_goes_on_behind_the_last_whole_record(prefix):
    """I6: records stamped but not yet published survive the crash; the half-written one is written again."""
    with Producer.attach(prefix, LOSSLESS) as producer:
        consumer = Consumer.attach(prefix, LOSSLESS, name="a")
        send(producer, 6)
    data = Segment.open(f"{prefix}.stress", writable=True)
    u64(data, layout.PUBLISHED_AT)[0] = 3  # died inside the batch: 3, 4, 5 are stamped, `published` is not stored
    u64(data, layout.HEADER_BYTES + 5 * 64)[0] = 0  # and 5 was being written
    data.close()
    with Producer.attach(prefix, LOSSLESS) as again:
        assert again.next_sequence == 5
        assert send(again, 3) == 3
        assert read_all(consumer) == list(range(8))
    consumer.close()


def test_restart_named_lossless_consumer_resumes_at_its_cursor(prefix):
    """I6: what was polled but not committed comes again, nothing is skipped."""
    with Producer.attach(prefix, LOSSLESS) as producer:
        first = Consumer.attach(prefix, LOSSLESS, name="a")
        send(producer, 8)
        first.poll(5)
        first.commit()
        first.poll(2)
        # As after a kill: the entry holds the committed cursor 5, the lock is gone.
        first._release()
        with Consumer.attach(prefix, LOSSLESS, name="a") as second:
            assert read_all(second) == [5, 6, 7]
        assert producer.consumer_attaches == 2


def test_producer_second_live_one_is_refused_and_named(prefix):
    """I8: one producer, by a lock that the kernel frees."""
    first = Producer.attach(prefix, LOSSLESS)
    with pytest.raises(ProducerAttachedError, match=f"pid {os.getpid()} is alive"):
        Producer.attach(prefix, LOSSLESS)
    first.close()
    Producer.attach(prefix, LOSSLESS).close()


def test_consumer_second_live_one_of_a_name_is_refused(prefix):
    """One live process a name; the name is free again after a close."""
    with Producer.attach(prefix, LOSSLESS):
        first = Consumer.attach(prefix, LOSSLESS, name="a")
        with pytest.raises(ConsumerAttachedError, match="'a'"):
            Consumer.attach(prefix, LOSSLESS, name="a")
        first.close()
        Consumer.attach(prefix, LOSSLESS, name="a").close()


def test_consumers_all_places_taken_says_so_and_lossy_reads_unregistered(prefix):
    """Lossless: a clear error at the limit. Lossy: a reader beyond the limit still reads."""
    two = RingSpec(name="stress", mode=RingMode.LOSSLESS, capacity=16, dtype=LOSSLESS.dtype, max_consumers=2)
    with Producer.attach(prefix, two), Consumer.attach(prefix, two, name="a"), Consumer.attach(prefix, two, name="b"):
        with pytest.raises(RingError, match="all 2 consumers are taken, 'c'"):
            Consumer.attach(prefix, two, name="c")
    for name in list_segments(prefix):
        unlink(name)
    one = RingSpec(name="stress", mode=RingMode.LOSSY, capacity=16, dtype=LOSSY.dtype, max_consumers=1)
    with Producer.attach(prefix, one) as producer, Consumer.attach(prefix, one, name="a"):
        with Consumer.attach(prefix, one, name="b") as unregistered:
            send(producer, 3)
            assert read_all(unregistered) == [0, 1, 2]


def test_consumer_cursor_beyond_published_is_not_trusted(prefix):
    """The control segment is writable by the group: a wild cursor neither blocks nor frees anything."""
    with Producer.attach(prefix, LOSSLESS) as producer, Consumer.attach(prefix, LOSSLESS, name="a"):
        control = Segment.open(f"{prefix}.stress.ctl", writable=True)
        u64(control, layout.ENTRIES_AT + layout.CURSOR)[0] = 2**63
        for _ in range(8):
            assert send(producer, 8) == 8
        control.close()


def test_replaced_ring_is_reattached_and_old_records_are_dropped(prefix):
    """I7: after the segments were made anew the consumer reads the new ones only."""
    old = Producer.attach(prefix, LOSSY)
    consumer = Consumer.attach(prefix, LOSSY, name="a")
    send(old, 3)
    assert not consumer.check_generation()
    for name in list_segments(prefix):
        unlink(name)
    assert not consumer.check_generation()  # gone, not yet replaced: nothing to go to
    with Producer.attach(prefix, LOSSY) as new:
        send(new, 2)
        assert consumer.check_generation()
        assert read_all(consumer) == []
        assert consumer.reattaches == 1
        assert read_all(consumer) == [0, 1]
    old.close()
    consumer.close()


def test_attach_missing_ring_says_so_after_the_timeout(prefix):
    """An absent ring is a clear error, not an endless wait."""
    with pytest.raises(RingNotFoundError, match=r"must exist, did not appear within 0 s; is its producer"):
        Consumer.attach(prefix, LOSSY, name="a", timeout_s=0)


@pytest.mark.parametrize(
    ("offset", "value", "text"),
    [
        (layout.MAGIC_AT, 1, "is no Tickwire ring"),
        (layout.VERSION_AT, 9, "version must be 1"),
        (layout.CAPACITY_AT, 32, "capacity must be 16"),
        (layout.SCHEMA_HASH_AT, 5, "schema_hash must be"),
    ],
)
def test_attach_foreign_header_names_what_differs(prefix, offset, value, text):
    """A wrong layout is refused before a single record is read."""
    Producer.attach(prefix, LOSSY).close()
    data = Segment.open(f"{prefix}.stress", writable=True)
    u64(data, offset)[0] = value
    data.close()
    with pytest.raises(RingLayoutError, match=text):
        Consumer.attach(prefix, LOSSY, name="a")
    with pytest.raises(RingLayoutError, match=text):
        Producer.attach(prefix, LOSSY)


def test_attach_zero_byte_and_tiny_segments_are_refused(prefix):
    """Half-made segments of a foreign program are errors, never crashes."""
    path = SHM_FOLDER / f"{prefix}.stress"
    for content, text in ((b"", "must not be empty"), (b"x" * 100, "must be at least 4096 bytes")):
        path.write_bytes(content)
        path.chmod(0o640)
        (SHM_FOLDER / f"{prefix}.stress.ctl").write_bytes(b"x")
        (SHM_FOLDER / f"{prefix}.stress.ctl").chmod(0o660)
        with pytest.raises(RingLayoutError, match=text):
            Consumer.attach(prefix, LOSSY, name="a")


def test_attach_other_symbol_table_is_refused(prefix):
    """Both ends must number the symbols alike."""
    Producer.attach(prefix, LOSSY, symbol_table_hash=7).close()
    with pytest.raises(RingLayoutError, match="symbol table hash must be 0x8, is 0x7"):
        Consumer.attach(prefix, LOSSY, name="a", symbol_table_hash=8)
    with pytest.raises(RingLayoutError, match="symbol table hash"):
        Producer.attach(prefix, LOSSY, symbol_table_hash=8)


def test_segments_have_documented_modes_whatever_the_umask(prefix):
    """Data 0640, control 0660: a strategy's uid cannot write the data segment; a world-writable one is refused."""
    old = os.umask(0o777)
    try:
        Producer.attach(prefix, LOSSY).close()
    finally:
        os.umask(old)
    data, control = SHM_FOLDER / f"{prefix}.stress", SHM_FOLDER / f"{prefix}.stress.ctl"
    assert stat.S_IMODE(data.stat().st_mode) == 0o640
    assert stat.S_IMODE(control.stat().st_mode) == 0o660
    data.chmod(0o646)
    with pytest.raises(RingError, match="must not be writable by others"):
        Consumer.attach(prefix, LOSSY, name="a")


def test_create_full_shared_memory_is_an_error_that_says_how_much(prefix):
    """A ring that does not fit fails when it is made, and leaves nothing behind."""
    huge = spec_of("lossy", 2**40, 64)
    with pytest.raises(RingError, match=r"needs \d+ bytes in /dev/shm, \d+ are free"):
        Producer.attach(prefix, huge)
    assert [name for name in list_segments(prefix) if not name.endswith(".ctl")] == []


def test_close_removes_nothing(prefix):
    """I8: detaching leaves the segments to their owner."""
    Producer.attach(prefix, LOSSY).close()
    Consumer.attach(prefix, LOSSY, name="a").close()
    assert list_segments(prefix) == [f"{prefix}.stress", f"{prefix}.stress.ctl"]


@pytest.mark.parametrize("first", [2**31 - 5, 2**32 - 5, 2**63 - 100])
@pytest.mark.parametrize("mode", ["lossless", "lossy"])
def test_sequences_across_power_of_two_edges_are_delivered(prefix, first, mode):
    """Sequences around 2^31, 2^32 and just below 2^63 behave as any other."""
    spec = spec_of(mode, 16, 64, first)
    with (
        Producer.attach(prefix, spec) as producer,
        Consumer.attach(prefix, spec, name="a", start=Start.OLDEST) as consumer,
    ):
        received: list[int] = []
        for _ in range(10):
            assert send(producer, 7) == 7
            received += read_all(consumer)
        assert received == list(range(first, first + 70))


@pytest.mark.parametrize("capacity", [0, 1, 3, 1000])
def test_spec_bad_capacity_is_refused(capacity):
    """Capacity is a power of two of at least 2."""
    with pytest.raises(ValueError, match="capacity must be a power of two"):
        spec_of("lossy", capacity, 64)


def test_spec_bad_slot_is_refused():
    """Slots are multiples of 64 bytes, 64 to 512."""
    with pytest.raises(ValueError, match="slot must be a multiple of 64"):
        spec_of("lossy", 16, 576)


@pytest.mark.parametrize("prefix_text", ["", "UPPER", "a/b", "x" * 33, "a.b"])
def test_prefix_bad_text_is_refused(prefix_text):
    """A prefix is [a-z0-9_-]{1,32}."""
    with pytest.raises(ValueError, match="prefix: must match"):
        Producer.attach(prefix_text, LOSSY)


def test_publish_other_dtype_is_refused(prefix):
    """Records of another layout are the caller's mistake."""
    with Producer.attach(prefix, LOSSY) as producer, pytest.raises(ValueError, match="must have the ring's dtype"):
        producer.publish(np.zeros(1, dtype=spec_of("lossy", 16, 128).dtype))


def test_wait_bounds_and_stop_are_obeyed(prefix):
    """Every wait is bounded and sees a stop request, of the process and of the segment."""
    with Producer.attach(prefix, LOSSY) as producer, Consumer.attach(prefix, LOSSY, name="a") as consumer:
        assert not consumer.wait(0.0)
        assert not consumer.wait(0.001)
        send(producer, 1)
        assert consumer.wait(3600.0)
        producer.stop_consumers()
        assert consumer.wait(3600.0)  # what is published comes before the stop
        assert read_all(consumer) == [0]
        assert not consumer.wait(3600.0)
        assert consumer.stopped
    with Producer.attach(prefix, LOSSY), Consumer.attach(prefix, LOSSY, name="a") as consumer:
        assert not consumer.stopped  # a new producer clears it
        consumer.interrupt()
        assert not consumer.wait(3600.0)


def test_closed_ends_refuse_further_use(prefix):
    """A kernel on a closed segment would be a SIGSEGV: the caller is told instead."""
    producer = Producer.attach(prefix, LOSSY)
    consumer = Consumer.attach(prefix, LOSSY, name="a")
    producer.close()
    consumer.close()
    consumer.close()
    with pytest.raises(ValueError, match="the producer is closed"):
        send(producer, 1)
    for use in (consumer.poll, consumer.commit, lambda: consumer.wait(0)):
        with pytest.raises(ValueError, match="consumer 'a' is closed"):
            use()


def test_words_view_needs_contiguous_records():
    """Kernels copy words of contiguous records only."""
    with pytest.raises(ValueError, match="C-contiguous"):
        as_words(np.zeros(4, dtype=LOSSY.dtype)[::2])
