"""The rows of LOBSTER's message and orderbook files, of every symbol at once: docs/lobster.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.errors import InputError, UsageError
from trident_core.session import Session
from trident_core.tables import lobster_kernel as k
from trident_core.tables.common import check
from trident_core.tables.ladder_kernel import NEXT, ROWS
from trident_core.tables.levels import DEPTH_MAX
from trident_core.tables.pools import BookPools, grown

#: LOBSTER's prices are dollars times 10,000.
PRICE_DECIMALS: Final = 4
#: Rows are given in blocks of at most this size.
BLOCK_BYTES: Final = 16 << 20

#: What LOBSTER's files do not have, or have otherwise, as far as it can be counted.
COUNTED: Final = {
    "outside_depth": (k.OUTSIDE, "changes of the book outside the depth: not in the files"),
    "other_price": (k.OTHER_PRICE, "executions away from the displayed price, which is written"),
    "not_printable": (k.NOT_PRINTABLE, "executions that do not print, written like the others"),
    "no_shares": (k.EMPTY, "crosses, and changes of orders, of no shares: not in the files"),
    "voids": (k.VOID, "voided prints (B): not in the files"),
    "evictions": (k.EVICTED, "orders evicted by a duplicate reference, written as deletions"),
}


class Block(NamedTuple):
    """Rows of both files, in the order of the messages.

    `heads` is i64[r, 7]: the number of the symbol, time (ns since midnight), type, order id (u64 bits; of a
    cross negative), size, price, direction. `books` is i64[r, 4 depth]: ask price, ask size, bid price, bid
    size of each level, best first. The first `used` rows are filled.
    """

    heads: NDArray[np.int64]
    books: NDArray[np.int64]
    used: int = 0


class LobsterRows:
    """Every message that LOBSTER's files of this depth have, with the levels after it.

    Give it every batch of a session from the first on; `give` gets the rows from the time of day `since` (ns)
    on, block by block, the last one from `finish`, and may return an older block that it needs no more.
    `locates()` are the symbols by their numbers. Any split gives the same rows. Memory: that of `BookPools`,
    and one block.
    Raises UsageError unless 1 <= depth <= DEPTH_MAX and quantities are whole; InputError, once all rows of a
    batch are made, for prices of more than 4 decimals.
    """

    def __init__(
        self, session: Session, depth: int, give: Callable[[Block], Block | None], *, since: int = 0
    ) -> None:
        if not 1 <= depth <= DEPTH_MAX:
            raise UsageError(f"no LOBSTER files of {depth} levels", hint=f"choose 1 to {DEPTH_MAX}")
        if session.qty_decimals:
            raise UsageError(f"LOBSTER's sizes are whole, these have {session.qty_decimals} decimals")
        self.depth = depth
        self._give = give
        finer = session.price_decimals - PRICE_DECIMALS
        scales = 10 ** max(-finer, 0), 10 ** max(finer, 0)
        self._settings = np.array([depth, since, *scales], np.int64)
        self._counts = np.zeros(k.COUNT_SLOTS, np.int64)
        self._halted: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._pools = BookPools(k.LOBSTER_STATE_SLOTS)
        self._row_count = max(k.ROWS_MAX, BLOCK_BYTES // (8 * (k.HEAD_COLUMNS + 4 * depth)))
        self._block = self._new_block()

    def apply(self, events: Events, effects: Effects, tops: Tops) -> None:
        """One batch: what `Book.apply` was given and gave. Raises UsageError for other arrays."""
        check(events, (effects, EFFECT), (tops, TOP))
        pools, state = self._pools, self._pools.state
        symbols = pools.symbols.numbers(tops["locate"])
        room = pools.make_room(len(events))
        if room > len(self._halted):
            self._halted = grown(self._halted, room)
        words = np.ascontiguousarray(events).view(np.int64).reshape(-1, 8)
        did = np.ascontiguousarray(effects).view(np.int64).reshape(-1, 4)
        state[NEXT] = 0
        while True:
            k.tell(
                words, events["type"], events["side"], events["flags"], symbols, did, effects["outcome"],
                effects["side"], pools.orders, pools.free, pools.keys, pools.slots, pools.levels, pools.sides,
                state, self._settings, self._counts, self._halted, self._block.heads, self._block.books,
            )  # fmt: skip
            if state[NEXT] == len(events):
                break
            if state[k.FULL]:
                self._hand_over()
            else:
                pools.repack()
        if self._counts[k.FINER]:
            raise InputError(
                f"{self._counts[k.FINER]} prices have more than {PRICE_DECIMALS} decimals, which LOBSTER's "
                "files cannot hold",
                hint="convert to another format",
            )

    def warm_up(self) -> None:
        """Compile, or load, the kernels that only growth calls; see `trident_core.contracts.Warmable`."""
        self._pools.warm_up()

    def finish(self) -> None:
        """Give the rows of the last block."""
        self._hand_over()

    def locates(self) -> NDArray[np.uint32]:
        """u32[symbols]: the locate of each number."""
        return self._pools.symbols.locates()

    def counts(self) -> dict[str, int]:
        """Of what `COUNTED` names, how often it was met."""
        return {name: int(self._counts[slot]) for name, (slot, _) in COUNTED.items() if self._counts[slot]}

    def _hand_over(self) -> None:
        rows = int(self._pools.state[ROWS])
        self._pools.state[ROWS] = self._pools.state[k.FULL] = 0
        if rows:
            self._block = self._give(self._block._replace(used=rows)) or self._new_block()

    def _new_block(self) -> Block:
        rows = self._row_count
        return Block(np.empty((rows, k.HEAD_COLUMNS), np.int64), np.empty((rows, 4 * self.depth), np.int64))
