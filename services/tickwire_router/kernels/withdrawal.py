"""Withdrawals that no prediction asks for: the kill switch was thrown, or predictions are missing."""

from __future__ import annotations

from numba import boolean, int64, uint8, uint64, void

from tickwire.kernel import kernel
from tickwire.records import Action, SignalKind, SignalReason
from tickwire.ring.words import address_of, load_acquire, store_release
from tickwire_router.kernels.counting import count_signal
from tickwire_router.kernels.decode import kill_reason
from tickwire_router.kernels.desk import DESK_TYPE
from tickwire_router.kernels.outbox import new_signal

_HOLD, _WITHDRAWN = int(Action.HOLD), int(SignalKind.WITHDRAWN)


@kernel(int64(DESK_TYPE, boolean))
def withdraw(d, everything):
    """Put WITHDRAWN in the outbox for every killed symbol whose newest signal is BUY or SELL.

    Args:
        d: The desk; its outbox has room for a signal of every symbol.
        everything: Also for symbols that are not killed, since their predictions are missing (BOOK_INVALID).

    Returns:
        Signals in the outbox.
    """
    for symbol in range(d.last_action.size):
        reason = kill_reason(d, symbol)
        if d.last_action[symbol] != _HOLD and (everything or reason >= 0):
            if reason < 0:
                reason = int64(SignalReason.BOOK_INVALID)
            new_signal(d, symbol, _WITHDRAWN, _HOLD, reason)
            count_signal(d, symbol, _WITHDRAWN, _HOLD, reason)
            d.last_action[symbol] = uint8(_HOLD)
    return d.progress[0].outbox_end


@kernel(boolean(DESK_TYPE))
def kill_changed(d):
    """Return whether the kill switch has changed since the last call."""
    # SYNC kill: the switch as the file has it.
    turn = load_acquire(address_of(d.kill_turn))
    changed = turn != d.progress[0].kill_turn
    d.progress[0].kill_turn = turn
    return changed


@kernel(void(DESK_TYPE, uint8[::1], int64))
def set_kill(d, killed, generation):
    """Hand the kill switch to the loop; for the event loop's thread.

    Args:
        d: The desk.
        killed: 1 by symbol, the last one for all, shape (n_symbols + 1,).
        generation: The kill file's.
    """
    for i in range(killed.size):
        d.killed[i] = killed[i]
    # SYNC kill_generation: the switch of this generation, stored above.
    store_release(address_of(d.kill_generation), uint64(generation))
    turn = address_of(d.kill_turn)
    # SYNC kill: everything stored above.
    store_release(turn, load_acquire(turn) + uint64(1))
