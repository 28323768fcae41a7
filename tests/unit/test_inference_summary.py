"""What inference logs once a second."""

from __future__ import annotations

from tickwire_inference.stats import EXPIRED, PREDICTIONS, private_stats
from tickwire_inference.summary import Summary


class Log:
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def info(self, event, **values):
        self.lines.append(("info", event, values))

    def warning(self, event, **values):
        self.lines.append(("warning", event, values))


def test_inference_summary_says_what_grew_and_warns_of_losses():
    """O9: one line while something happens, none otherwise; a loss is a warning of its own."""
    counters = private_stats(1).counters
    log = Log()
    summary = Summary(log, counters)
    summary.log()
    assert log.lines == []
    counters[PREDICTIONS] += 5
    counters[EXPIRED] += 2
    summary.log()
    assert log.lines == [
        ("info", "inference_summary", {"predictions": 5, "expired": 2}),
        ("warning", "requests_expired", {"expired": 2}),
    ]
    summary.log()
    assert len(log.lines) == 2
