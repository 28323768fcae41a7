"""One round of the ring's stress: real processes on one ring, signals at random moments, what must hold afterwards.

The processes are forked from the one that has the loops compiled, so that a restart costs milliseconds. The parent
never stays attached to the ring: liveness locks would be inherited.

I1  Nothing torn, nothing out of order, for any incarnation of any reader.
I2  For each incarnation: start + received + lost = position. A reader that lived through, or a lossless one that was
    restarted any number of times, accounts for every sequence from the first to the last one published.
I3  A lossless reader is restarted between the last position known to be committed and the last one reported.
I4  A lossless ring loses nothing unless somebody was evicted.
I5  A restarted producer goes on where a reader may already have been, never behind what it last reported.
"""

from __future__ import annotations

import faulthandler
import itertools
import mmap
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import stress_loops as loops
from ring_processes import spec_of
from tickwire.ring import Consumer, Producer, RingSpec, WaitStrategy
from tickwire.ring.segment import list_segments, unlink
from waiting import eventually

PROCESS_TIMEOUT_S = 60
ROUND_TIMEOUT_S = 180
PATIENT_STALL_MS = 50_000
SHORT_STALL_MS = 20
FAILED = 3
_MAX_READ = 64


@dataclass(frozen=True)
class Plan:
    """What a round does; all of it follows from the run's seed."""

    mode: str
    slot_bytes: int
    capacity: int
    first_sequence: int
    readers: int
    evicts: bool
    restarts: int
    seed: int
    edge: int = 0
    """The round goes on until the producer has published so far."""
    end_sequence: int = 2**64 - 1
    """The producer publishes nothing from here on."""

    @property
    def text(self) -> str:
        """One line."""
        return (
            f"{self.mode:8} slot {self.slot_bytes:3} capacity {self.capacity:4} first {self.first_sequence:#x} "
            f"readers {self.readers}{' evicting' if self.evicts else ''}"
        )


@dataclass
class Member:
    """The producer (name '') or one reader, over all its incarnations."""

    name: str
    area: np.ndarray
    pid: int = 0
    incarnations: list[dict[str, int]] = field(default_factory=list)

    def last(self) -> dict[str, int] | None:
        """The incarnation's last report, None before its first."""
        count = int(self.area[loops.COUNT_AT])
        if count == 0:
            return None
        base = loops.REPORTS_AT + (count & 1) * loops.REPORT_WORDS
        words = [int(word) for word in self.area[base : base + loops.REPORT_WORDS]]
        return dict(
            zip(("position", "committed", "received", "lost", "torn", "disorder", "laps", "start"), words, strict=True)
        )

    def last_position(self) -> int:
        """Position of the last report, 0 before the first."""
        found = self.last()
        return found["position"] if found is not None else 0

    def repeated(self) -> int:
        """Records that came again to a restarted lossless reader, since they had been read and not committed."""
        lives = self.incarnations
        return sum(before["position"] - after["start"] for before, after in itertools.pairwise(lives))


class Round:
    """One ring and its processes."""

    def __init__(self, prefix: str, plan: Plan) -> None:
        """Map the shared memory of the round; `run` does the rest."""
        self.prefix = prefix
        self.plan = plan
        self.spec: RingSpec = spec_of(plan.mode, plan.capacity, plan.slot_bytes, plan.first_sequence)
        self.dice = random.Random(plan.seed)
        memory = mmap.mmap(-1, 8 * (loops.RUN_WORDS + loops.AREA_WORDS * (plan.readers + 1)))
        words = np.frombuffer(memory, dtype=np.uint64)
        self.words = words[: loops.RUN_WORDS]
        areas = words[loops.RUN_WORDS :].reshape(plan.readers + 1, loops.AREA_WORDS)
        self.producer = Member("", areas[0])
        self.readers = [Member(f"reader-{i}", areas[i + 1]) for i in range(plan.readers)]
        self.violations: list[str] = []
        self.restarts = self.stops = self.evictions = 0

    def run(self) -> dict[str, Any]:
        """Run the round and return its figures."""
        begin = time.monotonic()
        watch(ROUND_TIMEOUT_S)
        members = [self.producer, *self.readers]
        try:
            Producer.attach(self.prefix, self.spec).close()
            for member in (*self.readers, self.producer):
                self._start(member)
                eventually(lambda m=member: m.last() is not None or self._died(m), what=f"attach of {member.name!r}")
            if self.plan.evicts:
                self._force_eviction()
            while self.restarts < self.plan.restarts:
                time.sleep(self.dice.uniform(0.0, 0.02))  # a random moment of the loops, not a synchronisation
                self._disturb(self.dice.choice(members))
            self._finish()
        finally:
            for member in members:
                if member.pid:
                    os.kill(member.pid, signal.SIGKILL)
                    os.waitpid(member.pid, 0)
            for name in list_segments(self.prefix):
                unlink(name)
            signal.alarm(0)
        return self._figures(time.monotonic() - begin)

    def _start(self, member: Member) -> None:
        member.area[:] = 0
        role = self._produce if member is self.producer else self._consume
        member.pid = _fork(lambda: role(member))

    def _produce(self, member: Member) -> None:
        plan = self.plan
        stall_ms = SHORT_STALL_MS if plan.evicts else PATIENT_STALL_MS
        with Producer.attach(self.prefix, self.spec, stall_timeout_ms=stall_ms) as producer:
            values = np.zeros(loops.REPORT_WORDS, dtype=np.uint64)
            values[[loops.POSITION, loops.START]] = producer.next_sequence
            loops.report(member.area, values)
            batch = np.zeros((min(32, self.spec.max_batch), plan.slot_bytes // 8), dtype=np.uint64)
            seed, gap_ns = np.uint64(self.dice.getrandbits(63)), self.dice.choice((0, 0, 20_000))
            loops.produce(producer.state, batch, self.words, member.area, np.uint64(plan.end_sequence), seed, gap_ns)

    def _consume(self, member: Member) -> None:
        strategy = self.dice.choice((WaitStrategy.PARK, WaitStrategy.SPIN_PARK))
        with Consumer.attach(self.prefix, self.spec, name=member.name, wait=strategy) as consumer:
            batch = np.zeros((self.dice.randint(1, _MAX_READ), self.plan.slot_bytes // 8), dtype=np.uint64)
            loops.consume(consumer.state, batch, self.words, member.area)

    def _disturb(self, member: Member) -> None:
        survives = len(self.readers) > 1 and member is self.readers[-1]
        if survives or self.dice.random() < 0.5:
            os.kill(member.pid, signal.SIGSTOP)
            time.sleep(self.dice.uniform(0.0, 0.03 if self.plan.evicts else 0.01))
            self.stops += 1
            if survives or self.dice.random() < 0.7:
                os.kill(member.pid, signal.SIGCONT)
        if survives:  # of several readers one accounts for the whole round in one life
            return
        os.kill(member.pid, signal.SIGKILL)
        self._reap(member, signal.SIGKILL)
        self._start(member)
        self.restarts += 1

    def _force_eviction(self) -> None:
        # A reader that stays stopped must cost the producer its stall timeout and no more.
        reader = self.readers[0]
        os.kill(reader.pid, signal.SIGSTOP)
        self.stops += 1
        eventually(lambda: (self.producer.last() or {}).get("lost", 0) > 0, what=f"eviction of {reader.name}")
        os.kill(reader.pid, signal.SIGCONT)
        eventually(lambda: (reader.last() or {}).get("laps", 0) > 0, what=f"lap of the evicted {reader.name}")

    def _finish(self) -> None:
        eventually(lambda: self.producer.last() is not None or self._died(self.producer), what="the producer's attach")
        goal = max(self.plan.edge, self.producer.last_position() + 1)
        eventually(
            lambda: self.producer.last_position() >= min(goal, self.plan.end_sequence) or self._died(self.producer),
            what=f"publishing up to {goal}",
        )
        self.words[loops.STOP] = 1
        self._reap(self.producer, 0)
        end = self.producer.incarnations[-1]["position"] if self.producer.incarnations else 0
        self.words[loops.END] = end
        self.words[loops.DONE] = 1
        for reader in self.readers:
            self._reap(reader, 0)
        self._check(end)

    def _died(self, member: Member) -> bool:
        return os.waitid(os.P_PID, member.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    # A process that hangs is ended by its own watchdog, which prints where it was.
    def _reap(self, member: Member, expected_signal: int) -> None:
        _, status = os.waitpid(member.pid, 0)
        member.pid = 0
        if os.waitstatus_to_exitcode(status) != -expected_signal:
            self._violated(f"{member.name or 'producer'} ended with status {os.waitstatus_to_exitcode(status)}")
        found = member.last()
        if found is not None:
            member.incarnations.append(found)

    def _check(self, end: int) -> None:
        previous = self.plan.first_sequence
        for found in self.producer.incarnations:
            if found["start"] < previous:
                self._violated(f"I5 producer restarted at {found['start']}, had reported {previous}")
            previous = found["position"]
            self.evictions += found["lost"]
        for reader in self.readers:
            self.check_reader(reader, end)

    def check_reader(self, reader: Member, end: int) -> None:
        """Note what a reader's incarnations violate, when `end` is the sequence behind the last record (I1 to I4)."""
        lives = reader.incarnations
        lossless = self.plan.mode == "lossless"
        if not lives or lives[0]["start"] != self.plan.first_sequence or lives[-1]["position"] != end:
            self._violated(f"I2 {reader.name} did not read from the first to the last record ({end}): {lives[-1:]}")
            return
        for found in lives:
            if found["torn"] or found["disorder"]:
                self._violated(f"I1 {reader.name}: {found}")
            if found["start"] + found["received"] + found["lost"] != found["position"]:
                self._violated(f"I2 {reader.name}: {found}")
            if lossless and found["lost"] and not self.plan.evicts:
                self._violated(f"I4 {reader.name}: {found}")
        for before, after in itertools.pairwise(lives):
            if lossless and not before["committed"] <= after["start"] <= before["position"]:
                self._violated(f"I3 {reader.name}: {before} was followed by {after}")
        total = sum(found["received"] + found["lost"] for found in lives)
        if (lossless or len(lives) == 1) and total - reader.repeated() != end - self.plan.first_sequence:
            self._violated(f"I2 {reader.name}: received + lost = {total}, repeated {reader.repeated()}, end {end}")

    def _violated(self, text: str) -> None:
        self.violations.append(f"{self.plan.text}: {text}")

    def _figures(self, seconds: float) -> dict[str, Any]:
        lives = [found for reader in self.readers for found in reader.incarnations]
        end = self.producer.incarnations[-1]["position"] if self.producer.incarnations else self.plan.first_sequence
        return {
            "plan": self.plan.text,
            "mode": self.plan.mode,
            "published": end - self.plan.first_sequence,
            **{name: sum(f[name] for f in lives) for name in ("received", "lost", "torn", "disorder", "laps")},
            "repeated": sum(reader.repeated() for reader in self.readers) if self.plan.mode == "lossless" else 0,
            "lived_through": sum(len(reader.incarnations) == 1 for reader in self.readers),
            "restarts": self.restarts,
            "died_attaching": self.restarts - sum(len(m.incarnations) - 1 for m in (self.producer, *self.readers)),
            "stops": self.stops,
            "evictions": self.evictions,
            "back_pressure": sum(found["received"] for found in self.producer.incarnations),
            "violations": self.violations,
            "seconds": round(seconds, 3),
        }


def watch(timeout_s: int) -> None:
    """End this process after `timeout_s` seconds with its stack on stderr, wherever it is; again to start anew.

    By a signal and not by a thread, since a thread would not survive the fork.
    """
    faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
    signal.alarm(timeout_s)


def _fork(role: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = FAILED
    try:
        watch(PROCESS_TIMEOUT_S)
        role()
        status = 0
    except BaseException:  # noqa: BLE001 - the child must not return into the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
