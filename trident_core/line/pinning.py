"""Pinning threads to processors: `--pin 0,1`, the book's and the store's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trident_core.errors import UsageError


def parse_pin(text: str) -> tuple[int, ...]:
    """ "0" or "0,1": the processor of the book's thread, and that of the store's. Raises UsageError."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 2 or not all(part.strip().isdigit() for part in parts):
        raise UsageError(
            f"--pin {text}: not one or two processors",
            hint="--pin 0,1: the book's and the store's, numbers as in /proc/cpuinfo",
        )
    return tuple(int(part) for part in parts)


def pin(cpu: int) -> str:
    """Pin the calling thread, and those that it starts from now on, to one processor. Why not, when the
    system refuses; else empty."""
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        return f"not pinned to processor {cpu}: {error.strerror} (this process may use {allowed})"
    return ""


@contextmanager
def pinned(cpu: int | None, notices: list[str]) -> Iterator[None]:
    """The calling thread on one processor, and back where it was afterwards; a refusal becomes a notice."""
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    if refusal := pin(cpu):
        notices.append(refusal)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
