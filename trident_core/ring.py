"""A single-producer, single-consumer ring of EVENTs between two threads.

Head and tail are 64-bit counters that only grow, each on a cache line of its own. The producer publishes with
a release store after its copy, the consumer reads with an acquire load before its own, so that neither lock
nor other fence is needed (Lamport 1983; the C11 orderings are in the kernels' atomics, through LLVM).
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.jit import njit

# Counters lie two cache lines apart: adjacent-line prefetch would otherwise couple them.
HEAD: Final = 0  # events pushed
TAIL: Final = 16  # events popped
CLOSED: Final = 32  # 1 when the producer will push no more
#: The counters and room up to a page, so that slots begin on one.
CURSOR_WORDS: Final = 512

#: Looks at the other side's counter before a call gives up; Python then sleeps between calls.
SPINS: Final = 64
#: 64 GiB of slots: beyond it a wrong figure is likelier than a wish.
CAPACITY_MAX: Final = 1 << 30
#: Sleep between two tries of a waiting side, in seconds; doubles up to the second figure.
_NAP_FIRST, _NAP_LAST = 20e-6, 1e-3


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def load_acquire(typingctx: Any, array: Any, index: Any) -> Any:
    """array[index] of a u64 array, with acquire ordering."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, [args[1]])
        return builder.load_atomic(pointer, "acquire", 8, typ=ir.IntType(64))

    return types.uint64(array, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def store_release(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] = value of a u64 array, with release ordering."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, [args[1]])
        builder.store_atomic(args[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), codegen


@njit
def _push(slots: Any, cursors: Any, words: Any, start: int, spins: int) -> int:
    """Copy events[start:] in while there is room; the number copied (0: full after `spins` looks)."""
    capacity = np.uint64(slots.shape[0])
    mask = capacity - np.uint64(1)
    head = cursors[0]
    room = np.uint64(0)
    for _ in range(spins):
        room = capacity - (head - load_acquire(cursors, 16))
        if room:
            break
    n = min(room, np.uint64(words.shape[0] - start))
    for i in range(n):
        slot = (head + np.uint64(i)) & mask
        for word in range(8):
            slots[slot, word] = words[start + i, word]
    store_release(cursors, 0, head + n)
    return int(n)


@njit
def _pop(slots: Any, cursors: Any, words: Any, spins: int) -> int:
    """Copy waiting events out; the number copied, 0 when there is none, -1 when closed and drained."""
    mask = np.uint64(slots.shape[0] - 1)
    tail = cursors[16]
    waiting = np.uint64(0)
    for _ in range(spins):
        # Closed is read before head: a producer pushes, then closes.
        closed = load_acquire(cursors, 32)
        waiting = load_acquire(cursors, 0) - tail
        if waiting:
            break
        if closed:
            return -1
    n = min(waiting, np.uint64(words.shape[0]))
    for i in range(n):
        slot = (tail + np.uint64(i)) & mask
        for word in range(8):
            words[i, word] = slots[slot, word]
    store_release(cursors, 16, tail + n)
    return int(n)


@njit
def _close(cursors: Any) -> None:
    store_release(cursors, 32, np.uint64(1))


def check_capacity(capacity: int) -> None:
    """Raises UsageError for a number of slots that no ring can have."""
    if not 2 <= capacity <= CAPACITY_MAX or capacity & (capacity - 1):
        raise UsageError(f"ring capacity {capacity} is not a power of two from 2 to {CAPACITY_MAX}")


def words_of(capacity: int) -> int:
    """The u64 words of a ring in memory."""
    return CURSOR_WORDS + 8 * capacity


class Ring:
    """`capacity` EVENT slots (a power of two), preallocated: capacity x 64 bytes.

    One thread calls push and close, one other calls pop. `full_waits` counts the producer's waits. `memory`:
    u64[words_of(capacity)], zeros at first, instead of memory of its own; two processes that share it have
    the same ring.
    """

    def __init__(self, capacity: int = 1 << 16, memory: NDArray[np.uint64] | None = None) -> None:
        check_capacity(capacity)
        self.capacity = capacity
        words = np.zeros(words_of(capacity), np.uint64) if memory is None else memory[: words_of(capacity)]
        self._cursors: NDArray[np.uint64] = words[:CURSOR_WORDS]
        self._slots: NDArray[np.uint64] = words[CURSOR_WORDS:].reshape(capacity, 8)
        self.full_waits = 0
        self.full_wait_ns = 0

    def __len__(self) -> int:
        """Events waiting: a moment's view."""
        return int(self._cursors[HEAD]) - int(self._cursors[TAIL])

    @property
    def pushed(self) -> int:
        """Events pushed since the ring was made."""
        return int(self._cursors[HEAD])

    def try_push(self, events: Events, start: int = 0) -> int:
        """Push events[start:] as far as there is room; return how many.

        Raises UsageError for a start outside 0 to len(events).
        """
        words = _words(events)
        if not 0 <= start <= len(events):
            raise UsageError(f"cannot push from event {start} of {len(events)}")
        return int(_push(self._slots, self._cursors, words, start, SPINS))

    def push(self, events: Events, *, give_up: Any = None) -> int:
        """Push all events, waiting for room; return how many. `give_up()` true ends the wait early."""
        words, total, start, nap = _words(events), len(events), 0, _NAP_FIRST
        while start < total:
            done = int(_push(self._slots, self._cursors, words, start, SPINS))
            start += done
            if done:
                nap = _NAP_FIRST
                continue
            if give_up is not None and give_up():
                break
            began = time.perf_counter_ns()
            time.sleep(nap)
            nap = min(nap * 2, _NAP_LAST)
            self.full_waits += 1
            self.full_wait_ns += time.perf_counter_ns() - began
        return start

    def try_pop(self, out: Events) -> int:
        """Pop up to len(out) events; 0 when none waits, -1 when the ring is closed and drained."""
        return int(_pop(self._slots, self._cursors, _words(out), SPINS))

    def pop(self, out: Events) -> int:
        """Pop 1 to len(out) events, waiting for them; 0 only when the ring is closed and drained."""
        nap = _NAP_FIRST
        while True:
            count = self.try_pop(out)
            if count:
                return max(count, 0)
            time.sleep(nap)
            nap = min(nap * 2, _NAP_LAST)

    def warm_up(self) -> None:
        """Compile the kernels (or load them from the cache) before the clock of a run starts."""
        none = np.zeros(0, EVENT)
        self.try_push(none)
        self.try_pop(none)
        _close(np.zeros_like(self._cursors))

    def close(self) -> None:
        """The producer's last call: what was pushed can still be popped."""
        _close(self._cursors)


def _words(events: Events) -> NDArray[np.uint64]:
    """An EVENT array as u64[n, 8], without a copy."""
    if (
        not isinstance(events, np.ndarray)
        or events.dtype != EVENT
        or events.ndim != 1
        or not events.flags.c_contiguous
    ):
        raise UsageError("the ring takes contiguous one-dimensional arrays of EVENT")
    return events.view(np.uint64).reshape(-1, 8)
