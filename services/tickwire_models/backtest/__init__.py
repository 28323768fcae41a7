"""Backtests: a model's signals of a closed-loop replay, filled by hftbacktest."""
