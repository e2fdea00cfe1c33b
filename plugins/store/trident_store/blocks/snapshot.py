"""A view of a block store up to a place: reads its blocks again at each scan, checks every one it uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trident_core.contracts import Finding
from trident_core.dtypes import EVENT, Events
from trident_core.session import Session
from trident_store.blocks.engine import EngineError, Source
from trident_store.blocks.format import Block, End, chain_problem, content_problem, decode_block, events_of
from trident_store.format import FrameKind
from trident_store.found import damage
from trident_store.parts import PartsSnapshot


class BlockSnapshot(PartsSnapshot):
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread,
    and after the store is closed. `pending` are the last blocks, `tail` the last events, that were not
    committed yet when it was taken."""

    def __init__(
        self,
        name: str,
        source: Source,
        store_id: bytes,
        session: Session,
        end: End,
        pending: Sequence[bytes] = (),
        tail: Events | None = None,
    ) -> None:
        self._tail = np.empty(0, EVENT) if tail is None else tail
        last_seq = int(self._tail["seq"][-1]) if len(self._tail) else end.last_seq
        super().__init__(session, end.ordinal + len(self._tail), last_seq)
        self._name, self._source, self._store_id = name, source, store_id
        self._end, self._pending = end, pending
        self._last_seqs: dict[
            int, int
        ] = {}  # of blocks that a bisection has read: the next one goes there too

    def _parts(self, seq: tuple[int, int]) -> Iterator[Events]:
        """The events of each block that may hold a seq of the closed range, in order, then the tail."""
        before: Block | None = None
        for number in range(self._first_block(seq[0]), self._end.blocks):
            value, block = self._block(number, before)
            before = block
            if block.kind != FrameKind.EVENTS:
                continue
            if block.first_seq > seq[1]:
                return
            yield events_of(value, block)
        if len(self._tail):
            yield self._tail.copy()

    def _first_block(self, seq: int) -> int:
        """The first block whose last seq is at least `seq`."""
        low, high = 0, self._end.blocks
        while low < high and seq > 1:
            middle = (low + high) // 2
            if middle not in self._last_seqs:
                self._last_seqs[middle] = self._block(middle, None)[1].last_seq
            if self._last_seqs[middle] < seq:
                low = middle + 1
            else:
                high = middle
        return low

    def _block(self, number: int, before: Block | None) -> tuple[bytes, Block]:
        """A block, checked, also as the one that follows `before`. Raises DamagedStoreError."""
        committed = self._end.blocks - len(self._pending)
        file, offset, problem = self._name, 0, f"block {number} is missing"
        first, last = before.after().ordinal if before else 0, self._end.ordinal - 1
        block: Block | None = None
        try:
            value = self._pending[number - committed] if number >= committed else self._source.get(number)
            if value is not None:
                block, problem = decode_block(self._store_id, value, number)
                if block is not None and block.kind == FrameKind.EVENTS:
                    first, last = block.ordinal, block.ordinal + block.count - 1
                if block is not None and not problem:
                    problem = content_problem(value, block)
                if block is not None and not problem and before is not None:
                    problem = chain_problem(block, before.after())
                if block is not None and not problem:
                    return value, block
                file, offset = self._source.place(number)
                problem = f"block {number}: {problem}"
        except EngineError as error:
            file, offset, problem = error.file or self._name, error.offset, f"block {number}: {error.problem}"
        raise damage(Finding(file or self._name, offset, first, last, problem))
