"""The feature table: what a row means, and its hash."""

from __future__ import annotations

import dataclasses

from tickwire.records import N_FEATURES, features


def test_table_every_feature_is_described():
    """48 different names, each with formula, unit and source."""
    assert len(features.FEATURES) == N_FEATURES == len(set(features.FEATURE_NAMES))
    for feature in features.FEATURES:
        assert all(dataclasses.astuple(feature)), feature


def test_table_order_is_levels_then_statistics():
    """Ten levels of bid price, bid size, ask price, ask size, then eight statistics."""
    for i in range(10):
        assert features.FEATURE_NAMES[4 * i : 4 * i + 4] == tuple(
            f"{side}_{what}_{i + 1}" for side in ("bid", "ask") for what in ("price", "size")
        )
    assert features.FEATURE_NAMES[40:] == (
        "order_flow_top",
        "order_flow_levels",
        "trade_imbalance",
        "signed_volume",
        "microprice_offset",
        "spread",
        "realised_volatility",
        "event_age",
    )


def test_hash_order_formula_or_unit_changes_it(monkeypatch):
    """F5: a permuted or redefined table is another table; who first described it is not part of it."""
    original = features.feature_hash()
    table = features.FEATURES
    changed = {
        "order": (table[1], table[0], *table[2:]),
        "formula": (dataclasses.replace(table[0], formula="other"), *table[1:]),
        "unit": (dataclasses.replace(table[0], unit="other"), *table[1:]),
        "name": (dataclasses.replace(table[0], name="other"), *table[1:]),
    }
    hashes = set()
    for variant in changed.values():
        monkeypatch.setattr(features, "FEATURES", variant)
        hashes.add(features.feature_hash())
    assert len(hashes | {original}) == len(changed) + 1
    monkeypatch.setattr(features, "FEATURES", (dataclasses.replace(table[0], source="other"), *table[1:]))
    assert features.feature_hash() == original
