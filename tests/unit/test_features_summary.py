"""What features logs once a second."""

from __future__ import annotations

import pytest

from tickwire.errors import ConfigError
from tickwire.ring import WaitStrategy
from tickwire.runtime import Stats, load
from tickwire_features.config import FeaturesConfig
from tickwire_features.stats import FEATURES_STATS, LOST_TICKS, ROWS, TICKS
from tickwire_features.summary import Summary

SYMBOLS = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'


class Log:
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def info(self, event, **values):
        self.lines.append(("info", event, values))

    def warning(self, event, **values):
        self.lines.append(("warning", event, values))


def test_summary_says_what_grew_and_warns_of_losses(prefix):
    """One line while something happens, none otherwise; a loss is a warning of its own, once for each growth."""
    stats = Stats.create(prefix, "features", FEATURES_STATS, ("v:A",))
    log = Log()
    summary = Summary(log, stats)
    summary.log()
    assert log.lines == []
    stats.counters[TICKS] += 5
    stats.counters[ROWS] += 2
    summary.log()
    assert log.lines == [("info", "features_summary", {"ticks": 5, "rows": 2})]
    stats.counters[LOST_TICKS] += 7
    summary.log()
    assert log.lines[1:] == [
        ("info", "features_summary", {"lost_ticks": 7}),
        ("warning", "ring_lapped", {"lost_ticks": 7}),
    ]
    summary.log()
    assert len(log.lines) == 3
    stats.close()


def test_config_defaults_park_and_bounds_are_checked(tmp_path):
    """Two shared cores are the default; what is out of bounds is refused with file and path."""
    path = tmp_path / "tickwire.toml"
    path.write_text(SYMBOLS)
    assert load(path, "features", FeaturesConfig)[1].wait_strategy is WaitStrategy.PARK
    path.write_text('[features]\nwait_strategy = "spin"\nbatch_ticks = 2048\n' + SYMBOLS)
    assert load(path, "features", FeaturesConfig)[1] == FeaturesConfig(
        wait_strategy=WaitStrategy.SPIN, batch_ticks=2048
    )
    for line in ("batch_ticks = 2049", "batch = 1", 'wait_strategy = "x"'):
        path.write_text(f"[features]\n{line}\n{SYMBOLS}")
        with pytest.raises(ConfigError, match=r"tickwire\.toml: .*\$\.features"):
            load(path, "features", FeaturesConfig)
