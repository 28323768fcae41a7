"""A strategy in ten lines: prints every BUY and SELL of a running Tickwire. `python examples/strategy.py [PREFIX]`."""

import sys

from tickwire.client import Action, Lapped, SignalReader

with SignalReader(*sys.argv[1:2]) as reader:
    while reader.wait(timeout_s=10.0):
        batch = reader.poll()
        if isinstance(batch, Lapped):
            print("lost", batch.lost)
            continue
        for signal in batch:
            if signal.action is not Action.HOLD:
                print(signal.symbol, signal.action.name, signal.quantity, signal.limit_price)
