"""Statistics as Prometheus text. In the event loop of each service that has an endpoint.

I1  Text is made in pieces of some tens of microseconds, so that whoever serves them can yield in between: the engine's
    thread and the feed's need the interpreter too.
I2  Every sample of a histogram comes from one copy of its words; its count is the sum of its buckets.
I3  Labels are bounded: a symbol of the run's table, a state, or what a `CounterFamily` names.

Names are `tickwire_<service>_<noun>_<unit>`, see `metric_names`.
Source of the format: Prometheus, "Exposition formats".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tickwire.runtime.buckets import FIRST_BUCKET, OVERFLOW, SUM_NS, UNDERFLOW, bucket_edges_ns
from tickwire.runtime.stats import CounterFamily, StatsArrays, StatsSpec

BOUNDS_NS = (*(step * 10**decade // 10 for decade in range(3, 9) for step in (10, 15, 20, 30, 50, 70)), 10**9)
"""Upper bounds of the buckets of `/metrics`: 1 us to 1 s, six to a decade."""

# Bucket of `/metrics` for underflow, each log-linear bucket and overflow. One that a bound falls into counts as above
# the bound: a duration is never shown shorter than it was, at most 1/32 longer.
_UPPER_EDGES_NS = np.append(bucket_edges_ns(), np.iinfo(np.int64).max)
_PLACE = np.searchsorted(np.array(BOUNDS_NS), _UPPER_EDGES_NS, side="left")
_BUCKET_LABELS = (*(repr(bound / 1e9) for bound in BOUNDS_NS), "+Inf")
_MONO = "_mono_ns"
_PIECE_SYMBOLS = 64


class StatsMetrics:
    """The text of one statistics segment; labels are prepared once."""

    def __init__(self, service: str, spec: StatsSpec, symbols: tuple[str, ...]) -> None:
        """Prepare.

        Args:
            service: Its name, part of every metric's.
            spec: What it counts.
            symbols: Labels of the symbols.
        """
        self._service = service
        self._spec = spec
        self._starts = {
            name: [f'{symbol_metric(service, spec, name)}{{symbol="{escaped(symbol)}"}} ' for symbol in symbols]
            for name in spec.per_symbol
        }

    def pieces(self, arrays: StatsArrays, now_ns: int) -> Iterator[str]:
        """Yield the text in pieces (I1).

        Args:
            arrays: The words of `spec`; may change meanwhile.
            now_ns: Monotonic time.
        """
        yield self._counters(arrays.counters)
        yield self._gauges(arrays.gauges, now_ns)
        for (name, text), words in zip(self._spec.histograms.items(), arrays.histograms, strict=True):
            yield _histogram_text(histogram_metric(self._service, name), text, words.copy())
        for column, (name, text) in enumerate(self._spec.per_symbol.items()):
            yield from self._per_symbol(name, text, arrays.per_symbol[:, column].copy(), now_ns)

    def _counters(self, words: npt.NDArray[np.uint64]) -> str:
        lines = []
        values = dict(zip(self._spec.counters, words.tolist(), strict=True))
        for name, text in self._spec.counters.items():
            if family_of(self._spec, name) is None:
                metric = counter_metric(self._service, name)
                lines += [*head(metric, "counter", text), f"{metric} {values[name]}"]
        for family in self._spec.families:
            metric = counter_metric(self._service, family.name)
            lines += head(metric, "counter", family.help)
            for name, value in values.items():
                if name.startswith(family.prefix):
                    lines.append(f'{metric}{{{family.label}="{name.removeprefix(family.prefix)}"}} {value}')
        return _joined(lines)

    def _gauges(self, words: npt.NDArray[np.uint64], now_ns: int) -> str:
        lines = []
        for (name, text), value in zip(self._spec.gauges.items(), words.view(np.int64).tolist(), strict=True):
            metric = gauge_metric(self._service, name)
            lines += head(metric, "gauge", _gauge_help(name, text))
            if value != 0 or not name.endswith(_MONO):  # what has never happened has no age
                lines.append(f"{metric} {_gauge_value(name, value, now_ns)}")
        return _joined(lines)

    def _per_symbol(self, name: str, text: str, words: npt.NDArray[np.uint64], now_ns: int) -> Iterator[str]:
        metric = symbol_metric(self._service, self._spec, name)
        is_gauge = name in self._spec.symbol_gauges
        yield _joined(head(metric, "gauge" if is_gauge else "counter", _gauge_help(name, text)))
        starts = self._starts[name]
        for first in range(0, len(starts), _PIECE_SYMBOLS):
            symbols = slice(first, first + _PIECE_SYMBOLS)
            values = words[symbols].view(np.int64).tolist()
            if is_gauge and name.endswith("_ns"):
                pairs = zip(starts[symbols], values, strict=True)
                yield _joined([f"{start}{_gauge_value(name, value, now_ns)}" for start, value in pairs if value])
            else:
                yield _joined([f"{start}{value}" for start, value in zip(starts[symbols], values, strict=True)])


def metric_names(service: str, spec: StatsSpec) -> dict[str, str]:
    """Return every metric of a segment with its type: what dashboards and rules may name."""
    names = {counter_metric(service, n): "counter" for n in spec.counters if family_of(spec, n) is None}
    names |= {counter_metric(service, family.name): "counter" for family in spec.families}
    names |= {gauge_metric(service, name): "gauge" for name in spec.gauges}
    names |= {histogram_metric(service, name): "histogram" for name in spec.histograms}
    for name in spec.per_symbol:
        names[symbol_metric(service, spec, name)] = "gauge" if name in spec.symbol_gauges else "counter"
    return names


def counter_metric(service: str, name: str) -> str:
    """Return a counter's metric."""
    return f"tickwire_{service}_{name}_total"


def gauge_metric(service: str, name: str) -> str:
    """Return a gauge's metric: nanoseconds become seconds, moments of the monotonic clock ages."""
    if name.endswith(_MONO):
        name = name.removesuffix(_MONO) + "_age_seconds"
    elif name.endswith("_ns"):
        name = name.removesuffix("_ns") + "_seconds"
    return f"tickwire_{service}_{name}"


def histogram_metric(service: str, name: str) -> str:
    """Return a histogram's metric."""
    return f"tickwire_{service}_{name}_seconds"


def symbol_metric(service: str, spec: StatsSpec, name: str) -> str:
    """Return a per-symbol value's metric."""
    metric = gauge_metric if name in spec.symbol_gauges else counter_metric
    return metric(service, f"symbol_{name}")


def family_of(spec: StatsSpec, name: str) -> CounterFamily | None:
    """Return the family that a counter is of, if any."""
    return next((family for family in spec.families if name.startswith(family.prefix)), None)


def head(metric: str, kind: str, text: str) -> list[str]:
    """Return the lines that come before a metric's samples."""
    text = text[:1].upper() + text[1:]
    return [f"# HELP {metric} {text.replace(chr(92), chr(92) * 2)}.", f"# TYPE {metric} {kind}"]


def escaped(value: str) -> str:
    """Return a label's value as it stands between quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _histogram_text(metric: str, text: str, words: npt.NDArray[np.uint64]) -> str:
    # I2. `COUNT` may be a duration ahead of the buckets or behind them.
    counts = np.concatenate((words[UNDERFLOW : UNDERFLOW + 1], words[FIRST_BUCKET:], words[OVERFLOW : OVERFLOW + 1]))
    buckets = np.zeros(len(_BUCKET_LABELS), dtype=np.uint64)
    np.add.at(buckets, _PLACE, counts)
    cumulated = np.cumsum(buckets).tolist()
    lines = head(metric, "histogram", text)
    lines += [
        f'{metric}_bucket{{le="{label}"}} {count}' for label, count in zip(_BUCKET_LABELS, cumulated, strict=True)
    ]
    lines += [f"{metric}_sum {int(words[SUM_NS]) / 1e9!r}", f"{metric}_count {cumulated[-1]}"]
    return _joined(lines)


def _gauge_help(name: str, text: str) -> str:
    return f"time since: {text}" if name.endswith(_MONO) else text


def _gauge_value(name: str, value: int, now_ns: int) -> str:
    if name.endswith(_MONO):
        return repr(max(now_ns - value, 0) / 1e9)
    return repr(value / 1e9) if name.endswith("_ns") else str(value)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""
