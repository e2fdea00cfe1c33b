"""What query engines are measured on: a column of symbols, and a text such as a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Distinct symbols: as many as a day of NASDAQ has.
SYMBOLS: Final = 8_900
NAMES: Final = ("AAPL", "MSFT", "GOOG", "AMZN", "TSLA", "NVDA", "META")

#: label -> pattern, from a literal to classes only.
COLUMN_PATTERNS: Final = {
    "p1": "^AA",
    "p2": "^AAPL *$",
    "p3": f"^(?:{'|'.join(NAMES)}) *$",
    "p4": "^[A-Z]{4}[WRU] *$",
    "p5": "^[A-M][A-Z]*[AEIOU][B-DF-HJ-NP-TV-Z][A-Z]* *$",
    "p6": "(QQ|ZZ|X[A-Z]X)",
}
#: Those of them that are made of classes.
CLASS_HEAVY: Final = ("p4", "p5", "p6")

#: label -> (pattern, flags).
TEXT_PATTERNS: Final = {
    "literal": ("ZVZZT", ""),
    "classes": ("[A-Z]{4}XL[QZ]Z", ""),
    "7 names": ("|".join(NAMES), ""),
    "date": (r"\d{4}-\d\d", ""),
    "(?i) literal": ("trident", "i"),
}

_WORDS: Final = (
    b"order added executed cancelled replaced session halt quote side shares price book depth open close "
    b"auction venue reference"
).split()


@dataclass(frozen=True, slots=True)
class Column:
    """`values` S8[n], padded with spaces; `codes` u16[n] into `distinct` S8[SYMBOLS]."""

    values: NDArray[np.bytes_]
    codes: NDArray[np.uint16]
    distinct: NDArray[np.bytes_]


def column(count: int, seed: int = 1) -> Column:
    """`count` symbols of SYMBOLS distinct ones, 1 to 5 letters, the k-th as often as 1 / k (Zipf)."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([1, 2, 3, 4, 5], 4 * SYMBOLS, p=[0.002, 0.03, 0.25, 0.528, 0.19])
    letters = rng.integers(65, 91, (4 * SYMBOLS, 5)).astype(np.uint8)
    letters[np.arange(5) >= lengths[:, None]] = 32
    made = np.full((4 * SYMBOLS, 8), 32, np.uint8)
    made[:, :5] = letters
    known = [name.ljust(8).encode() for name in NAMES]
    found = dict.fromkeys([*known, *(row.tobytes() for row in made)])
    distinct = np.array(list(found)[:SYMBOLS], "S8")
    distinct = distinct[rng.permutation(SYMBOLS)]
    weights = 1 / np.arange(1, SYMBOLS + 1)
    codes = rng.choice(SYMBOLS, count, p=weights / weights.sum()).astype(np.uint16)
    return Column(distinct[codes], codes, distinct)


def text(size: int, seed: int = 1) -> bytes:
    """`size` bytes of a log: times, words, symbols, shares, prices; each pattern once in 4,000 lines."""
    block = b"\n".join(_lines(np.random.default_rng(seed), min(size, 8 << 20))) + b"\n"
    return (block * (size // len(block) + 1))[:size]


def _lines(rng: np.random.Generator, size: int) -> Iterator[bytes]:
    drawn: Any = rng.integers(65, 91, (2_000, 4)).astype(np.uint8)
    symbols = [row.tobytes() for row in drawn if row.tobytes().decode() not in NAMES]
    written = number = 0
    while written < size:
        h, m, s, ns, count, symbol, shares, price, cents = rng.integers(
            (4, 0, 0, 0, 3, 0, 1, 1, 0), (20, 60, 60, 10**9, 9, len(symbols), 5_000, 900, 100)
        ).tolist()
        words = b" ".join(_WORDS[i] for i in rng.integers(0, len(_WORDS), count).tolist())
        line = b"%02d:%02d:%02d.%09d %s %s %d @ %d.%02d" % (
            h, m, s, ns, words, symbols[symbol], shares, price, cents,
        )  # fmt: skip
        planted = {
            0: NAMES[number // 4_000 % 7].encode(), 1_000: b"2019-12", 2_000: b"ABCDXLQZ",
            3_000: b"ZVZZT TridEnt",
        }.get(number % 4_000)  # fmt: skip
        line = line if planted is None else line + b" " + planted
        number += 1
        written += len(line) + 1
        yield line
