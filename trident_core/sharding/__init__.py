"""Books over several threads: symbols dealt by locate, results in the order of the input."""

from __future__ import annotations

from trident_core.sharding.lane import AHEAD, Applied, Lane, applied
from trident_core.sharding.shard import Work
from trident_core.sharding.sharded import THREADS_MAX, ShardedBook, check_threads, make_books

__all__ = [
    "AHEAD", "THREADS_MAX", "Applied", "Lane", "ShardedBook", "Work", "applied", "check_threads",
    "make_books",
]  # fmt: skip
