"""Counting events by what they belong to: symbol, type, order, firm (MPID), or a bucket of time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Events
from trident_core.errors import UsageError
from trident_core.event_types import ATTRIBUTED
from trident_core.session import Session, format_time

#: Groups that are counted; past it the rest would be memory without bound.
GROUPS_MAX: Final = 5_000_000

_UNITS: Final = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60 * 10**9, "h": 3_600 * 10**9}
_BUCKET: Final = re.compile(r"([1-9][0-9]{0,8})(us|ms|s|m|h)")
FIELDS: Final = ("symbol", "type", "order", "mpid")


def bucket_ns(by: str) -> int | None:
    """The length of a time bucket ("500us", "10ms", "1s", "5m", "1h") in ns; None for other words."""
    found = _BUCKET.fullmatch(by)
    return int(found[1]) * _UNITS[found[2]] if found else None


def check_grouping(by: str) -> None:
    """Raises UsageError for what events cannot be grouped by."""
    if by not in FIELDS and bucket_ns(by) is None:
        raise UsageError(
            f"no counts by {by!r}", hint=f'group by {", ".join(FIELDS)}, or a time such as "1s" or "5m"'
        )


def keys_of(events: Events, by: str) -> NDArray[np.uint64]:
    """u64[n]: the group of each event: locate, type, order reference, MPID (its bytes, or 0) or bucket."""
    if by == "symbol":
        return np.asarray(events["locate"], np.uint64)
    if by == "type":
        return np.asarray(events["type"], np.uint64)
    if by == "order":
        return np.asarray(events["ref"], np.uint64)
    if by == "mpid":
        firms = np.ascontiguousarray(events["aux"][:, :4]).view("<u4")[:, 0].astype(np.uint64)
        return np.where(np.isin(events["type"], list(ATTRIBUTED)), firms, np.uint64(0))
    length = bucket_ns(by)
    if length is None:
        raise UsageError(f"no counts by {by!r}")
    return np.asarray(events["ts"] // np.uint64(length), np.uint64)


def name_of(key: int, by: str, session: Session) -> str:
    """A group for people: the symbol, the letter, the reference, the MPID, the time at which it begins."""
    if by == "symbol":
        return session.directory.symbol(key)
    if by == "type":
        return chr(key)
    if by == "order":
        return str(key) if key else ""
    if by == "mpid":
        return key.to_bytes(4, "little").decode("latin-1").rstrip("\0 ")
    return format_time(key * (bucket_ns(by) or 0))


def count_by(batches: Iterable[Events], by: str, session: Session) -> dict[str, int]:
    """How many events each group has: the most frequent first, buckets of time in order.

    Events without one (no symbol, no order, no MPID) count as "". Raises UsageError for another `by`, and for
    more than 5,000,000 groups.
    """
    check_grouping(by)
    counts: Counter[int] = Counter()
    for events in batches:
        add_counts(counts, keys_of(events, by))
    timed = bucket_ns(by) is not None
    ordered = sorted(counts.items()) if timed else counts.most_common()
    named: dict[str, int] = {}
    for key, count in ordered:
        name = name_of(key, by, session)
        named[name] = named.get(name, 0) + count
    return named


def add_counts(counts: Counter[Any], keys: NDArray[Any]) -> None:
    """Count a batch of keys. Raises UsageError when there are more groups than memory is meant for."""
    for key, count in zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True):
        counts[key] += count
    if len(counts) > GROUPS_MAX:
        raise UsageError(f"more than {GROUPS_MAX:,} groups", hint="narrow the search, or take larger groups")
