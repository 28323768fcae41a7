"""The configuration of features."""

from __future__ import annotations

import pytest

from tickwire.errors import ConfigError
from tickwire.ring import WaitStrategy
from tickwire.runtime import load
from tickwire_features.config import FeaturesConfig

SYMBOLS = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'


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
