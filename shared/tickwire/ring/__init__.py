"""Lock-free rings in POSIX shared memory: one producer, up to 16 consumers, every loss counted. See README.md."""

from tickwire.ring.awaitable import AsyncConsumer
from tickwire.ring.consumer import Consumer, Lapped, Start, WaitStrategy
from tickwire.ring.producer import BackPressure, Producer
from tickwire.ring.spec import RingMode, RingSpec

__all__ = [
    "AsyncConsumer",
    "BackPressure",
    "Consumer",
    "Lapped",
    "Producer",
    "RingMode",
    "RingSpec",
    "Start",
    "WaitStrategy",
]
