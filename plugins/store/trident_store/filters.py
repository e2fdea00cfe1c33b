"""The conditions of a scan, and small things on arrays of events that every store's snapshot needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError

Range = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions of a scan; ranges are closed."""

    seq: tuple[int, int]
    ts: tuple[int, int]
    locates: NDArray[np.uint32] | None
    types: bytes | None

    def pick(self, events: Events) -> Events:
        """The events that satisfy all conditions; the same array when all do."""
        keep: NDArray[np.bool_] | None = None
        for column, (low, high) in (("seq", self.seq), ("ts", self.ts)):
            if low > 0:
                keep = _both(keep, events[column] >= np.uint64(low))
            if high < (1 << 64) - 1:
                keep = _both(keep, events[column] <= np.uint64(high))
        if self.locates is not None:
            keep = _both(keep, np.isin(events["locate"], self.locates))
        if self.types is not None:
            wanted = np.zeros(256, np.bool_)
            wanted[list(self.types)] = True
            keep = _both(keep, wanted[events["type"]])
        return events if keep is None or keep.all() else take(events, keep)


def conditions(
    seq: Range, ts: Range, locates: Sequence[int] | NDArray[Any] | None, types: bytes | None, batch: int
) -> Filter:
    """The arguments of a scan, checked. Raises UsageError."""
    if not 1 <= batch <= 1 << 24:
        raise UsageError(f"batch must be 1 to {1 << 24}, not {batch}")
    return Filter(_closed_range("seq", seq), _closed_range("ts", ts), _wanted_locates(locates), types)


def check_reference(ref: int) -> None:
    """Raises UsageError unless `ref` fits the field."""
    if not 0 <= ref < 1 << 64:
        raise UsageError(f"an order reference is 0 to 2**64 - 1, not {ref}")


def naming(events: Events, ref: int) -> Events:
    """The events that name the order reference `ref` (not 0), as their own or as a replace's new one."""
    wanted = np.uint64(ref)
    replaced = (events["ref2"] == wanted) & (events["type"] == ord("U"))
    return take(events, (events["ref"] == wanted) | replaced)


def _both(keep: NDArray[np.bool_] | None, more: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return more if keep is None else keep & more


def take(events: Events, keep: NDArray[np.bool_]) -> Events:
    """The events where `keep` is true, as an array of their own."""
    # Rows of eight words move as memory; numpy moves structured rows field by field, five times slower.
    return events.view("<u8").reshape(-1, 8)[keep].view(EVENT).reshape(-1)


def join(parts: Sequence[Events]) -> Events:
    """One array of several."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.view("<u8") for part in parts]).view(EVENT)


def rebatch(parts: Iterable[Events], batch: int) -> Iterator[Events]:
    """The same events in arrays of `batch`, the last one shorter."""
    kept: list[Events] = []
    have = 0
    for part in parts:
        if len(part):
            kept.append(part)
            have += len(part)
        while have >= batch:
            joined = join(kept)
            yield joined[:batch]
            kept, have = [joined[batch:]] if have > batch else [], have - batch
    if have:
        yield join(kept)


def _closed_range(name: str, limits: Range) -> tuple[int, int]:
    """Open ends as 0 and 2**64 - 1; limits outside u64 are moved to what they mean."""
    try:
        low, high = limits
        low = 0 if low is None else int(low)
        high = (1 << 64) - 1 if high is None else int(high)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be (low, high), each an integer or None, not {limits!r}") from None
    if high < 0 or low >= 1 << 64 or low > high:
        return 1, 0
    return max(low, 0), min(high, (1 << 64) - 1)


def _wanted_locates(locates: Sequence[int] | NDArray[Any] | None) -> NDArray[np.uint32] | None:
    if locates is None:
        return None
    wanted = np.asarray(locates)
    if wanted.size == 0:
        return np.empty(0, np.uint32)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise UsageError(f"locates must be a flat sequence of integers, not {wanted.dtype} of {wanted.shape}")
    return wanted[(wanted >= 0) & (wanted < 1 << 32)].astype(np.uint32)
