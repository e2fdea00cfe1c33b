"""Where every share of every order went: a second account of a day, kept beside the book.

It knows references and quantities only, no prices and no queues, so it shares no code with any book. For each
order, what was added is what was executed, cancelled, deleted, replaced or evicted, and what rests. Rules:
docs/contracts/book.md (BOOK-5 to BOOK-9, BOOK-20 to BOOK-23).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.jit import njit_entry, njit_inlined

_SLOTS_MIN: Final = 1 << 16


class Account(IntEnum):
    """What the ledger counts: shares, then events that did not find what they name."""

    ADDED = 0  # by A, F and U
    EXECUTED = 1  # by E and C
    CANCELLED = 2  # by X
    DELETED = 3  # by D
    REPLACED = 4  # what was left of orders that a U replaced
    EVICTED = 5  # of orders whose reference was added again
    UNKNOWN = 6
    OVER = 7  # took more than there was: clamped
    REJECTED = 8  # adds without a side or shares
    ORDERS = 9  # that rest now


#: A slot: reference, remaining shares, 1 when it is taken (a reference may be 0).
_Slots = NDArray[np.uint64]


@njit_inlined
def _home(ref: Any, mask: Any) -> Any:
    mixed = ref * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@njit_inlined
def _find(slots: Any, ref: Any, mask: Any) -> Any:
    """The slot of a reference, or the empty one where it belongs."""
    at = _home(ref, mask)
    while slots[at, 2] and slots[at, 0] != ref:
        at = (at + np.uint64(1)) & mask
    return at


@njit_inlined
def _remove(slots: Any, at: Any, mask: Any) -> None:
    """Empty a slot; those behind it that a search would no longer reach move up."""
    one = np.uint64(1)
    hole = at
    after = (at + one) & mask
    while slots[after, 2]:
        home = _home(slots[after, 0], mask)
        if ((after - home) & mask) >= ((after - hole) & mask):
            slots[hole, 0], slots[hole, 1] = slots[after, 0], slots[after, 1]
            hole = after
        after = (after + one) & mask
    slots[hole, 2] = np.uint64(0)


@njit_inlined
def _add(slots: Any, mask: Any, totals: Any, ref: Any, qty: Any) -> None:
    at = _find(slots, ref, mask)
    if slots[at, 2]:
        totals[5] += slots[at, 1]
    else:
        totals[9] += np.uint64(1)
    slots[at, 0], slots[at, 1], slots[at, 2] = ref, qty, np.uint64(1)
    totals[0] += qty


@njit_entry
def _book_in(words: Any, start: int, slots: Any, totals: Any, counts: Any) -> int:
    """Account for events (rows of eight words) from `start` on; the first that was not, for want of room."""
    mask = np.uint64(slots.shape[0] - 1)
    room = np.uint64(slots.shape[0] // 2)
    one, zero = np.uint64(1), np.uint64(0)
    for i in range(start, words.shape[0]):
        if totals[9] >= room:
            return i
        kind = (words[i, 6] >> np.uint64(32)) & np.uint64(0xFF)
        counts[kind] += one
        ref, qty = words[i, 2], words[i, 5]
        if kind == 65 or kind == 70:  # A F
            side = (words[i, 6] >> np.uint64(40)) & np.uint64(0xFF)
            if qty == zero or (side != 66 and side != 83):
                totals[8] += one
            else:
                _add(slots, mask, totals, ref, qty)
            continue
        if not (kind == 69 or kind == 67 or kind == 88 or kind == 68 or kind == 85):  # E C X D U
            continue
        at = _find(slots, ref, mask)
        if not slots[at, 2]:
            totals[6] += one
            continue
        have = slots[at, 1]
        if kind == 68 or kind == 85:
            totals[3 if kind == 68 else 4] += have
            _remove(slots, at, mask)
            totals[9] -= one
            if kind == 85:
                if qty == zero:
                    totals[8] += one
                    new = _find(slots, words[i, 3], mask)
                    if slots[new, 2]:
                        totals[5] += slots[new, 1]
                        _remove(slots, new, mask)
                        totals[9] -= one
                else:
                    _add(slots, mask, totals, words[i, 3], qty)
            continue
        if qty > have:
            totals[7] += one
            qty = have
        totals[2 if kind == 88 else 1] += qty
        if qty == have:
            _remove(slots, at, mask)
            totals[9] -= one
        else:
            slots[at, 1] = have - qty
    return int(words.shape[0])


@njit_entry
def _move(slots: Any, larger: Any) -> None:
    mask = np.uint64(larger.shape[0] - 1)
    for i in range(slots.shape[0]):
        if slots[i, 2]:
            at = _find(larger, slots[i, 0], mask)
            larger[at, 0], larger[at, 1], larger[at, 2] = slots[i, 0], slots[i, 1], np.uint64(1)


class Ledger:
    """The account of a day. Memory: 48 to 96 bytes for each order that rests, never less than 1.5 MiB."""

    def __init__(self) -> None:
        self.totals = np.zeros(len(Account), np.uint64)
        self.counts = np.zeros(256, np.uint64)
        self._slots: _Slots = np.zeros((_SLOTS_MIN, 3), np.uint64)

    def warm_up(self) -> None:
        """Compile, or load from the cache, all kernels."""
        self.apply(np.zeros(1, EVENT))
        _move(self._slots[:1], np.zeros((2, 3), np.uint64))

    def apply(self, events: Events) -> None:
        """Account for events (EVENT[n], contiguous), in order."""
        words = events.view(np.uint64).reshape(-1, 8)
        done = 0
        while (done := _book_in(words, done, self._slots, self.totals, self.counts)) < len(words):
            larger = np.zeros((2 * len(self._slots), 3), np.uint64)
            _move(self._slots, larger)
            self._slots = larger

    def resting(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """(references ascending, shares): the orders that rest."""
        taken = self._slots[self._slots[:, 2] != 0]
        order = np.argsort(taken[:, 0])
        return taken[order, 0], taken[order, 1]

    def types(self) -> dict[str, int]:
        """Events by type letter."""
        return {chr(kind): int(n) for kind, n in enumerate(self.counts) if n}

    def problem(self) -> str:
        """Why shares are not conserved; empty when they are. Sums are modulo 2^64, as the columns are."""
        _, shares = self.resting()
        gone = np.concatenate([self.totals[Account.EXECUTED : Account.EVICTED + 1], shares]).sum()
        if self.totals[Account.ADDED] != gone:
            return f"{self.totals[Account.ADDED]} shares were added, {gone} are accounted for"
        if len(shares) != self.totals[Account.ORDERS]:
            return f"{len(shares)} orders rest where {self.totals[Account.ORDERS]} should"
        return ""
