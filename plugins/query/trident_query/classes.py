"""Byte classes: bytes that no part of a pattern tells apart are one column of every table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trident_query.ast import ByteSet


@dataclass(frozen=True, slots=True)
class ByteClasses:
    """A partition of the 256 bytes. `of[b]` is the class of byte b, below `count`.

    Classes are numbered by their smallest byte, ascending: `representatives[c]`. `of` is `bytes` of 256, for
    `bytes.translate`; `as_array` gives it as u8[256].
    """

    of: bytes
    representatives: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.representatives)

    def as_array(self) -> NDArray[np.uint8]:
        """u8[256], read-only."""
        return np.frombuffer(self.of, dtype=np.uint8)

    def within(self, values: ByteSet) -> tuple[int, ...]:
        """The classes of `values`, ascending; each is inside as a whole if `values` was among the sets."""
        return tuple(sorted({self.of[value] for value in values}))

    def members(self, number: int) -> ByteSet:
        """The bytes of a class."""
        return frozenset(value for value in range(256) if self.of[value] == number)


def partition(sets: Iterable[ByteSet]) -> ByteClasses:
    """The coarsest partition in which every one of `sets` is a union of classes."""
    of = [0] * 256
    count = 1
    for values in set(sets):
        inside: dict[int, int] = {}  # class -> the class of its part in `values`
        sizes = [0] * count
        for number in of:
            sizes[number] += 1
        hits = [0] * count
        for value in values:
            hits[of[value]] += 1
        for number in range(count):
            if 0 < hits[number] < sizes[number]:
                inside[number] = count
                count += 1
        for value in values:
            of[value] = inside.get(of[value], of[value])
        if count == 256:
            break
    order: dict[int, int] = {}
    for number in of:
        order.setdefault(number, len(order))
    numbers = bytes(order[number] for number in of)
    return ByteClasses(numbers, tuple(numbers.index(number) for number in range(len(order))))
