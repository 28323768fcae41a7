# ruff: noqa: ANN001, ANN201 - hftbacktest's objects have types that Numba alone knows
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Fills by hftbacktest, as a program of its own: `python fills.py IN.npz OUT.npz`.

hftbacktest caps numpy below 2.3, so it may live in another environment than everything else: this file imports nothing
of Tickwire. It follows signals with at most one lot: BUY aims at a long lot, SELL at a short one, HOLD and WITHDRAWN at
none. Orders are limit orders at the signal's price (HOLD: at the other side's best price), good till cancelled; what
an earlier signal left open is cancelled first. Queue positions by hftbacktest's power-probability model, constant
latencies both ways, no partial fills.
"""

from __future__ import annotations

import sys

import numpy as np
from hftbacktest import GTC, LIMIT, BacktestAsset, HashMapMarketDepthBacktest
from numba import njit

_QUEUE_EXPONENT = 3.0


@njit(cache=True)
def follow(hbt, at_ns, action, price, lot, interval_ns, end_ns, equity, position, values):
    """Act on each signal when it is due; note equity and position at every interval; return how many were noted."""
    n, k, order_id, last_action = 0, 0, 0, 0
    hbt.elapse(1)  # to the first event: before it there is no time
    next_ns = hbt.current_timestamp + interval_ns
    while hbt.current_timestamp < end_ns and n < len(equity):
        due_ns = min(next_ns, at_ns[k]) if k < len(at_ns) else next_ns
        if due_ns > hbt.current_timestamp and hbt.elapse(due_ns - hbt.current_timestamp) != 0:
            break
        depth = hbt.depth(0)
        while k < len(at_ns) and at_ns[k] <= hbt.current_timestamp:
            if action[k] != last_action:
                last_action = action[k]
                hbt.clear_inactive_orders(0)
                orders = hbt.orders(0).values()
                while orders.has_next():
                    order = orders.get()
                    if order.cancellable:
                        hbt.cancel(0, order.order_id, False)
                wanted = lot if last_action == 1 else (-lot if last_action == 2 else 0.0)
                gap = wanted - hbt.position(0)
                order_id += 1
                if gap > lot / 2:
                    hbt.submit_buy_order(
                        0, order_id, price[k] if last_action == 1 else depth.best_ask, gap, GTC, LIMIT, False
                    )
                elif gap < -lot / 2:
                    hbt.submit_sell_order(
                        0, order_id, price[k] if last_action == 2 else depth.best_bid, -gap, GTC, LIMIT, False
                    )
            k += 1
        if hbt.current_timestamp >= next_ns:
            state = hbt.state_values(0)
            mid = (depth.best_bid + depth.best_ask) / 2
            if mid == mid:
                equity[n] = state.balance + state.position * mid - state.fee
                position[n] = state.position
                n += 1
            next_ns += interval_ns
    state = hbt.state_values(0)
    values[0], values[1], values[2] = state.num_trades, state.trading_value, state.fee
    return n


def main(source: str, target: str) -> None:
    """Read events, signals and settings; write equity, position and totals."""
    given = np.load(source)
    settings = {name: float(given[name]) for name in ("price_increment", "quantity_increment", "lot", "maker", "taker")}
    events, interval_ns, latency_ns = given["events"], int(given["interval_ns"]), int(given["latency_ns"])
    asset = (
        BacktestAsset()
        .data([events])
        .linear_asset(1.0)
        .constant_order_latency(latency_ns, latency_ns)
        .power_prob_queue_model(_QUEUE_EXPONENT)
        .no_partial_fill_exchange()
        .trading_value_fee_model(settings["maker"], settings["taker"])
        .tick_size(settings["price_increment"])
        .lot_size(settings["quantity_increment"])
    )
    hbt = HashMapMarketDepthBacktest([asset])
    end_ns = int(events["local_ts"][-1])
    size = max(int((end_ns - int(events["local_ts"][0])) // interval_ns) + 2, 2)
    equity, position, values = np.zeros(size), np.zeros(size), np.zeros(3)
    n = follow(
        hbt,
        given["at_ns"],
        given["action"],
        given["price"],
        settings["lot"],
        interval_ns,
        end_ns,
        equity,
        position,
        values,
    )
    hbt.close()
    np.savez(target, equity=equity[:n], position=position[:n], trades=values[0], traded=values[1], fees=values[2])


if __name__ == "__main__":
    main(*sys.argv[1:])
