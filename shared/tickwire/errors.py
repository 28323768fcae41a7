"""Every exception that Tickwire raises on purpose. Outcomes of the hot path are values, never exceptions.

The text of an error says subject, rule, finding and, where there is one, the remedy:
`ring 'md.ticks': capacity must be a power of two, was 1000`.
"""


class TickwireError(Exception):
    """Base of all errors below."""


class ConfigError(TickwireError):
    """A configuration, an instrument or a file named by one is wrong."""


class RingError(TickwireError):
    """A ring or another shared segment cannot be used."""


class RingNotFoundError(RingError):
    """The segment does not exist."""


class RingLayoutError(RingError):
    """The segment exists but is not what this process expects."""


class ProducerAttachedError(RingError):
    """Another live process is the segment's producer."""


class ConsumerAttachedError(RingError):
    """Another live process uses this consumer name."""


class FeedError(TickwireError):
    """A capture or a venue connection cannot be used."""


class EngineError(TickwireError):
    """A model or an inference engine cannot be used."""
