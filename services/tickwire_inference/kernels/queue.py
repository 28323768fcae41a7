"""The requests that wait for a batch: at most one a symbol, in arrays that only the scheduler thread touches.

`queue[symbol]` (dtype `WAITING`) is the symbol's place, `order[:state.waiting]` lists the symbols that wait, unsorted.

I1  A symbol is in `order` exactly when `queue[symbol].place` is its index there; otherwise the place is -1.
I2  Conflation: a newer request of a waiting symbol brings its deadline and leaves the symbol's queue age as it is.
I3  Who goes first: the least `queued_ns + handicap_ns`, then the least symbol id. The handicap of a priority class is
    its rank times the ageing time, so a request is overtaken only by requests queued less than that time after it.
I4  Expiry is by the clock alone: a request leaves at the first look at or after its deadline. Never in closed loop.
"""

from __future__ import annotations

from numba import from_dtype, int64

from tickwire.kernel import inlined, kernel
from tickwire_inference.layouts import STATE, WAITING

QUEUE_TYPE = from_dtype(WAITING)[::1]
STATE_TYPE = from_dtype(STATE)[::1]
ORDER_TYPE = int64[::1]

_NOT_WAITING = -1


@inlined
def _goes_before(queue, symbol, other):
    ours = queue[symbol].queued_ns + queue[symbol].handicap_ns
    theirs = queue[other].queued_ns + queue[other].handicap_ns
    return ours < theirs or (ours == theirs and symbol < other)


@kernel(int64(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE, int64, int64, int64))
def submit(queue, order, state, symbol, queued_ns, deadline_ns):
    """Queue a symbol's newest row; return 1, or 0 when it took the place of a waiting one (I2)."""
    queue[symbol].deadline_ns = deadline_ns
    if queue[symbol].place != _NOT_WAITING:
        return 0
    place = state[0].waiting
    order[place] = symbol
    queue[symbol].place = place
    queue[symbol].queued_ns = queued_ns
    state[0].waiting = place + 1
    return 1


@kernel(int64(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE, int64))
def withdraw(queue, order, state, symbol):
    """Take a symbol out of the queue; return 1 if it was waiting."""
    place = queue[symbol].place
    if place == _NOT_WAITING:
        return 0
    last = state[0].waiting - 1
    moved = order[last]
    order[place] = moved
    queue[moved].place = place
    queue[symbol].place = _NOT_WAITING
    state[0].waiting = last
    return 1


@kernel(int64(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE, int64, ORDER_TYPE))
def withdraw_expired(queue, order, state, now_ns, expired):
    """Take out every request whose deadline has come (I4); return how many ids stand in `expired`."""
    if state[0].closed_loop != 0:
        return 0
    n = 0
    i = 0
    while i < state[0].waiting:
        symbol = order[i]
        if queue[symbol].deadline_ns <= now_ns:
            withdraw(queue, order, state, symbol)  # the last of `order` moves to place i
            expired[n] = symbol
            n += 1
        else:
            i += 1
    return n


@kernel(int64(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE, int64, ORDER_TYPE))
def withdraw_batch(queue, order, state, size, batch):
    """Take the `size` symbols that go first (I3) into `batch`, shape (16,), in that order; return how many they are."""
    n = 0
    for i in range(state[0].waiting):
        symbol = order[i]
        if n == size and not _goes_before(queue, symbol, batch[n - 1]):
            continue
        n = min(n + 1, size)
        place = n - 1
        while place > 0 and _goes_before(queue, symbol, batch[place - 1]):
            batch[place] = batch[place - 1]
            place -= 1
        batch[place] = symbol
    for i in range(n):
        withdraw(queue, order, state, batch[i])
    return n


@kernel(int64(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE))
def oldest_deadline(queue, order, state):
    """Return the earliest deadline of all that wait; at least one must."""
    oldest = queue[order[0]].deadline_ns
    for i in range(1, state[0].waiting):
        oldest = min(oldest, queue[order[i]].deadline_ns)
    return oldest
