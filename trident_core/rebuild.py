"""A store read once more, as data: where every share went, and, in depth, the book rebuilt from it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from trident_core.contracts import Book, Finding, Snapshot
from trident_core.digests import NAME, DigestRecord
from trident_core.dtypes import ORDER, Events
from trident_core.ledger import Account, Ledger

_BATCH = 1 << 16
#: Told of (events done, events in all).
Watch = Callable[[int, int], None]


@dataclass(slots=True)
class Rebuilt:
    """What a reading found. `ledger`: shares by account. `digest` (hex) and `live_orders` are of the book at
    the store's end; `compared`: after how many events a recorded digest was held against the book."""

    events: int = 0
    ledger: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    digest: str = ""
    live_orders: int = 0
    compared: list[int] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def reread(
    snapshot: Snapshot,
    records: Sequence[DigestRecord],
    *,
    book: Book | None = None,
    watch: Watch | None = None,
) -> Rebuilt:
    """Read every event of a snapshot. Without a `book`: continuity, conservation of shares, counts by type.
    With an empty one it is rebuilt too, held against the ledger, validated, and its digest against `records`.

    Raises DamagedStoreError, StoreError as the snapshot does.
    """
    return _Reading(snapshot, records, book, watch or (lambda done, total: None)).run()


class _Reading:
    def __init__(
        self, snapshot: Snapshot, records: Sequence[DigestRecord], book: Book | None, watch: Watch
    ) -> None:
        self.snapshot, self.book, self.watch = snapshot, book, watch
        self.pending = list(records)
        self.ledger, self.result = Ledger(), Rebuilt()
        self.last_seq = 0

    def run(self) -> Rebuilt:
        result = self.result
        self._meet()
        for events in self.snapshot.scan(batch=_BATCH):
            for part in self._cut(np.ascontiguousarray(events)):
                self._take(part)
                self._meet()
            self.watch(result.events, self.snapshot.count)
        if result.events != self.snapshot.count or self.last_seq != self.snapshot.last_seq:
            self._error(
                f"the store counts {self.snapshot.count} events up to seq {self.snapshot.last_seq}; a scan "
                f"gives {result.events} up to {self.last_seq}"
            )
        for record in self.pending:
            self._differs(
                f"{record.events} events up to seq {record.last_seq}; the store has "
                f"{result.events} up to {self.last_seq}",
                first=result.events, last=record.events - 1,
            )  # fmt: skip
        self._close()
        return result

    def _cut(self, events: Events) -> Iterator[Events]:
        """A batch in pieces that end where a record stands."""
        while self.pending and self.pending[0].events < self.result.events + len(events):
            at = self.pending[0].events - self.result.events
            yield events[:at]
            events = events[at:]
        yield events

    def _take(self, events: Events) -> None:
        if not len(events):
            return
        seq = events["seq"]
        if int(seq[0]) <= self.last_seq or not bool(np.all(seq[1:] > seq[:-1])):
            self._error(f"seq does not grow behind {self.last_seq}", first=self.result.events)
        self.ledger.apply(events)
        if self.book is not None:
            self.book.apply(events)
        self.result.events += len(events)
        self.last_seq = int(seq[-1])

    def _meet(self) -> None:
        """Hold the records of this place against what was read."""
        while self.pending and self.pending[0].events == self.result.events:
            record = self.pending.pop(0)
            if record.last_seq != self.last_seq:
                self._differs(f"seq {record.last_seq} where the store has {self.last_seq}")
            if record.counts and dict(record.counts) != self.ledger.types():
                self._differs(f"other counts of types up to seq {record.last_seq}")
            if self.book is None:
                continue
            digest = self.book.digest().hex()
            if digest != record.digest:
                self._differs(
                    f"digest {record.digest[:16]}… of the book after seq {record.last_seq}; rebuilt from the "
                    f"store it has digest {digest[:16]}…"
                )
            self.result.compared.append(record.events)

    def _close(self) -> None:
        ledger, result = self.ledger, self.result
        result.ledger = {each.name.lower(): int(ledger.totals[each]) for each in Account}
        result.types = ledger.types()
        if problem := ledger.problem():
            self._error(f"shares are not conserved: {problem}")
        if self.book is None:
            return
        result.digest, result.live_orders = self.book.digest().hex(), self.book.live_orders()
        for problem in self.book.validate():
            self._error(f"the rebuilt book: {problem}")
        # A level that overflows refuses an order for its price's sake, of which the ledger knows nothing.
        if self.book.anomalies.count("rejected_add") == ledger.totals[Account.REJECTED]:
            self._compare_orders(self.book)

    def _compare_orders(self, book: Book) -> None:
        orders = [book.orders(int(locate)) for locate in (0, *book.locates())]
        rows = np.concatenate([np.zeros(0, ORDER), *orders])
        rows = rows[np.argsort(rows["ref"])]
        refs, shares = self.ledger.resting()
        if not np.array_equal(rows["ref"], refs) or not np.array_equal(rows["qty"], shares):
            self._error(
                f"{len(rows)} orders rest in the rebuilt book, {len(refs)}, or others, by their shares"
            )

    def _error(self, problem: str, *, first: int = 0, last: int | None = None, file: str = "events") -> None:
        self.result.findings.append(Finding(file, 0, first, last, problem))

    def _differs(self, problem: str, *, first: int = 0, last: int | None = None) -> None:
        """Store and record contradict each other."""
        self._error(f"a run recorded {problem}", first=first, last=last, file=NAME)
