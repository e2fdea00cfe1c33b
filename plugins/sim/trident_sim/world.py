"""The symbols of the day: names, what the directory says of them, how active they are, where their price
starts.

Everything is invented: names are random letters, MPIDs are no firm's. (MPIDS is compiled into njit kernels;
the word makes the compile cache depend on this file.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.session import Directory, Instrument
from trident_parser.itch50 import TABLE_DTYPES
from trident_sim.rng import Stream
from trident_sim.spec import SimSpec

TEST_ISSUE: Final = "ZXZZT"
MPIDS: Final = (
    "ALFA", "BRVO", "CHRL", "DLTA", "ECHO", "FOXT", "GOLF", "HOTL", "INDI", "JULT", "KILO", "LIMA", "MIKE",
    "NOVE", "OSCR", "PAPA", "QUEB", "ROMO", "SIER", "TANG", "UNIF", "VICT", "WHIS", "XRAY", "YANK", "ZULU",
)  # fmt: skip

ALIAS_BITS: Final = 17
PRICE_MAX: Final = 1_999_000_000  # 199,900.0000: 100 below the specification's limit

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: Of 100 symbols: how many have names of 1, 2, 3, 4 letters (the rest: 5, the form of warrants and rights).
_LENGTHS_UPTO: Final = (1, 6, 38, 92)
#: (share of 1,000 symbols, lowest, highest opening price)
_PRICES: Final = (
    (60, 300, 9_900),
    (60, 10_100, 40_000),
    (580, 50_000, 600_000),
    (250, 600_000, 3_000_000),
    (50, 3_000_000, 30_000_000),
)
_VOLATILITY_BP: Final = (80, 420)


@dataclass(frozen=True)
class World:
    """Arrays are by symbol, index = locate - 1, unless they say otherwise.

    `weights` i64: relative activity, `rank` i64: 0 is the most active; `price` i64: the opening price, 4
    decimals; `unit` i64: the symbol's price grain, at least a tick; `step` i64: largest move of the fair
    price at one add, in 1/256 of the smallest price; `alias` i32[2**17]: locates, as often as they are
    active.
    """

    names: list[str]
    rank: NDArray[np.int64]
    weights: NDArray[np.int64]
    price: NDArray[np.int64]
    unit: NDArray[np.int64]
    step: NDArray[np.int64]
    alias: NDArray[np.int32]
    directory_rows: NDArray[Any]
    test_issue: int  # these four are locates
    ipo: int
    direct_listing: int
    halts: list[int]
    pauses: list[int]

    def directory(self) -> Directory:
        """The session's directory, as a parser would fill it from the R messages."""
        fields = [name for name in TABLE_DTYPES["R"].names or () if name not in _NOT_DETAILS]
        return Directory(
            Instrument(int(row["stock_locate"]), name, {field: _plain(row[field]) for field in fields})
            for name, row in zip(self.names, self.directory_rows, strict=True)
        )


_NOT_DETAILS: Final = {"seq", "stock_locate", "tracking_number", "timestamp", "stock"}


def _plain(value: Any) -> str | int:
    return value.decode("latin-1").rstrip() if isinstance(value, bytes) else int(value)


def make_world(spec: SimSpec) -> World:
    """Draw the symbols of `spec`. Memory: about 150 bytes a symbol and 0.5 MiB."""
    n = spec.symbols
    names = _names(n, Stream(spec.seed, 1))
    test = names.index(TEST_ISSUE)
    rank = _ranks(n, test, Stream(spec.seed, 2))
    weights = 10**12 // (rank + 4 + n // 1000)
    price = _prices(n, rank, Stream(spec.seed, 3))
    by_rank = np.argsort(rank, kind="stable") + 1
    special = [int(locate) for locate in by_rank[n // 10 + 1 : -1]]
    halts, pauses = 1 + n // 500, 1 + n // 800
    ipo, direct_listing = special[0], special[1]
    rows = _directory_rows(names, rank, price, Stream(spec.seed, 4))
    rows["authenticity"][test] = b"T"
    rows["ipo_flag"][ipo - 1] = b"Y"
    return World(
        names=names,
        rank=rank,
        weights=weights,
        price=price,
        unit=_units(price, rank),
        step=_steps(price, weights, spec.messages, Stream(spec.seed, 5)),
        alias=_alias(weights),
        directory_rows=rows,
        test_issue=test + 1,
        ipo=ipo,
        direct_listing=direct_listing,
        halts=special[2 : 2 + halts],
        pauses=special[2 + halts : 2 + halts + pauses],
    )


def _names(n: int, stream: Stream) -> list[str]:
    """n different names in alphabetical order, as locates are given out; the test issue is one of them."""
    names = {TEST_ISSUE}
    while len(names) < n:
        draw = stream.below(8, 1 << 20)
        length = 1 + sum(int(draw[0]) % 100 >= bound for bound in _LENGTHS_UPTO)
        name = "".join(_LETTERS[int(k) % 26] for k in draw[1 : 1 + length])
        if length == 5:
            name = name[:4] + "WRUFY"[int(draw[6]) % 5]
        elif length > 1 and int(draw[7]) % 64 == 0:
            name += "." + "AB"[int(draw[6]) % 2]
        names.add(name)
    return sorted(names)


def _ranks(n: int, test: int, stream: Stream) -> NDArray[np.int64]:
    """A random order of activity in which the test issue comes last."""
    rank = stream.permutation(n)
    last = int(np.flatnonzero(rank == n - 1)[0])
    rank[last], rank[test] = rank[test], n - 1
    return rank


def _prices(n: int, rank: NDArray[np.int64], stream: Stream) -> NDArray[np.int64]:
    band = stream.below(n, 1000)
    within = stream.bits31(n)
    price = np.zeros(n, np.int64)
    start = 0
    for share, low, high in _PRICES:
        chosen = (band >= start) & (band < start + share)
        price[chosen] = low + ((within[chosen] * (high - low)) >> 31)
        start += share
    if n >= 50:
        price[rank == n // 2] = 1_890_000_000  # one as dear as the format allows
        price[rank == 4] = 7_300  # and one of the most active below a dollar
    else:
        price[rank == 0] = 1_030_000
        price[rank == n - 2] = 7_300
    whole = price >= 10_000
    price[whole] -= price[whole] % 100
    return price


def _units(price: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """Half a basis point of the price for the most active symbol, up to 16 times that for the least."""
    unit = price // 20_000 * (1 + 15 * rank // len(rank))
    units: NDArray[np.int64] = np.where(
        price >= 10_000, np.maximum(unit // 100 * 100, 100), np.maximum(unit, 1)
    )
    return units


def _steps(
    price: NDArray[np.int64], weights: NDArray[np.int64], messages: int, stream: Stream
) -> NDArray[np.int64]:
    """Largest move at one add, so that the fair price ends the day about its volatility away."""
    volatility = stream.between(len(price), *_VOLATILITY_BP)
    total = int(weights.sum())
    steps = []
    for p, w, bp in zip(price.tolist(), weights.tolist(), volatility.tolist(), strict=True):
        adds = max(1, messages * 44 * w // (100 * total))
        steps.append(min(p * 256 * bp * 173 // (1_000_000 * max(1, isqrt(adds))), p * 256 * 3 // 1000))
    return np.maximum(np.array(steps, np.int64), 1)


def _alias(weights: NDArray[np.int64]) -> NDArray[np.int32]:
    """Each locate once, the rest of the table in proportion to the weights, what is left to the most
    active."""
    size = 1 << ALIAS_BITS
    spare = size - len(weights)
    counts = 1 + np.array([spare * w // int(weights.sum()) for w in weights.tolist()], np.int64)
    counts[int(np.argmax(weights))] += size - int(counts.sum())
    return np.repeat(np.arange(1, len(weights) + 1, dtype=np.int32), counts)


def _directory_rows(
    names: list[str], rank: NDArray[np.int64], price: NDArray[np.int64], stream: Stream
) -> NDArray[Any]:
    """Typed rows of R, without times."""
    n = len(names)
    rows = np.zeros(n, TABLE_DTYPES["R"])
    rows["stock_locate"] = np.arange(1, n + 1)
    rows["stock"] = [name.ljust(8).encode() for name in names]
    draw = stream.below(n, 1000)
    rows["market_category"] = np.array([*b"QQQGGSSNNNAPPZ"], np.uint8)[draw % 14].view("S1")
    rows["financial_status_indicator"] = np.where(price < 10_000, b"D", b"N")
    rows["round_lot_size"] = np.where(price >= 1_000_000_000, 1, 100)
    rows["round_lots_only"] = b"N"
    fund = (draw % 5 == 0) | (rank == 0)
    rows["issue_classification"] = np.where(fund, b"Q", b"C")
    rows["issue_sub_type"] = np.where(fund, b"E ", b"Z ")
    rows["authenticity"] = b"P"
    rows["short_sale_threshold_indicator"] = np.where(draw % 97 == 0, b"Y", b"N")
    rows["ipo_flag"] = b"N"
    rows["luld_reference_price_tier"] = np.where(rank * 5 < n, b"1", b"2")
    rows["etp_flag"] = np.where(fund, b"Y", b"N")
    leveraged = fund & (draw % 3 == 0)
    rows["etp_leverage_factor"] = np.where(leveraged, 2 + draw % 2, 0)
    rows["inverse_indicator"] = np.where(leveraged & (draw % 2 == 0), b"Y", b"N")
    return rows
