"""The prepared messages of the day, in order of time: everything but order flow.

What depends on the market when the time comes (prices of crosses, imbalances, collars, voided matches) is
left open and filled in by the kernel. An I with locate 0 stands for one message for every symbol, `ref`
nanoseconds apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trident_core.dtypes import EVENT, EventFlag, Events
from trident_parser.itch50 import TABLE_DTYPES
from trident_sim.rng import Stream
from trident_sim.spec import SimSpec
from trident_sim.timetable import CLOSE, END, NS, OPEN, START, clock
from trident_sim.world import MPIDS, World

_SYSTEM_EVENTS: Final = (
    (clock(3), b"O"), (START, b"S"), (OPEN, b"Q"), (CLOSE, b"M"), (END, b"E"), (clock(20, 5), b"C"),
)  # fmt: skip
_SPIN_GAP_NS: Final = 900
_NOII_SHARE: Final = 66  # one message in so many is an imbalance indicator
_INDEX_CLOSE: Final = 3_240_02000000  # of the index behind the market-wide breakers: 3,240.02, 8 decimals


@dataclass(frozen=True)
class Schedule:
    """`items`: EVENT[k] by time, `seq` unset. `rows`: typed rows of the types that EVENT has no room for
    or, as K, that name a symbol under locate 0; as many and in the same order as in `items`. `messages`:
    how many messages the items make."""

    items: Events
    rows: dict[str, NDArray[Any]]
    messages: int


def make_schedule(spec: SimSpec, world: World) -> Schedule:
    """Prepare the day."""
    blocks = [
        *_system(world),
        *_before_the_open(spec, world),
        *_crosses(spec, world),
        *_halts(world),
        *_listings(world),
        *_indicators(spec, world),
    ]
    rows: dict[str, list[NDArray[Any]]] = {}
    for block in blocks:
        if block.rows is not None:
            rows.setdefault(chr(block.events["type"][0]), []).append(block.rows)
    items = np.concatenate([block.events for block in blocks])
    items = items[np.argsort(items["ts"], kind="stable")]
    typed = {}
    for letter, parts in rows.items():
        table = np.concatenate(parts)
        typed[letter] = table[np.argsort(table["timestamp"], kind="stable")]
    spins = int(np.count_nonzero((items["type"] == ord("I")) & (items["locate"] == 0)))
    return Schedule(items, typed, len(items) + spins * (spec.symbols - 1))


@dataclass(frozen=True)
class _Block:
    events: Events
    rows: NDArray[Any] | None = None


def _block(letter: str, ts: ArrayLike, locate: ArrayLike = 0, aux: Any = b"", **columns: ArrayLike) -> _Block:
    """Messages of one type. `aux` is bytes, one for all or a list."""
    times = np.atleast_1d(np.asarray(ts, np.int64))
    events = np.zeros(len(times), EVENT)
    events["ts"], events["type"], events["locate"] = times, ord(letter), locate
    for name, values in columns.items():
        events[name] = values
    parts = [aux] * len(times) if isinstance(aux, bytes) else aux
    events["aux"] = np.frombuffer(b"".join(part.ljust(8, b"\0") for part in parts), np.uint8).reshape(-1, 8)
    return _Block(events)


def _typed(block: _Block, **fields: Any) -> _Block:
    """The same with typed rows: the header from the events, the rest from `fields`."""
    rows = np.zeros(len(block.events), TABLE_DTYPES[chr(block.events["type"][0])])
    rows["timestamp"] = block.events["ts"]
    rows["stock_locate"] = block.events["locate"]
    for name, values in fields.items():
        rows[name] = values
    return _Block(block.events, rows)


def _at(seconds: int, nanoseconds: int = 0) -> int:
    return seconds * NS + nanoseconds


def _system(world: World) -> list[_Block]:
    """System events; the levels of the market-wide breakers and a breach of the first, late enough not to
    halt."""
    events = [_block("S", _at(second, 137_000 + 11 * k), aux=code)
              for k, (second, code) in enumerate(_SYSTEM_EVENTS)]  # fmt: skip
    levels = [_INDEX_CLOSE * percent // 100 for percent in (93, 87, 80)]
    decline = _block("V", _at(clock(3, 40)), price=levels[0], flags=int(EventFlag.PRICE_8DP))
    return [
        *events,
        _typed(decline, level_1=levels[0], level_2=levels[1], level_3=levels[2]),
        _block("W", _at(clock(15, 31, 7), 204_511), aux=b"1"),
    ]


def _before_the_open(spec: SimSpec, world: World) -> list[_Block]:
    """The spins over all symbols: directory, trading state, short-sale restriction, market makers."""
    n = spec.symbols
    stream = Stream(spec.seed, 8)
    locates = np.arange(1, n + 1)
    spin = np.arange(n) * 41_000
    rows = world.directory_rows.copy()
    directory = _block(
        "R",
        _at(clock(3, 5)) + spin,
        locates,
        [
            b"".join(row[name] for name in _R_IN_AUX[:2])
            + b"".join((row["issue_classification"], row["issue_sub_type"].ljust(2)))
            + b"".join((row["authenticity"], row["etp_flag"], row["ipo_flag"]))
            for row in rows
        ],
        qty=rows["round_lot_size"],
    )
    rows["timestamp"] = directory.events["ts"]
    waiting = {world.ipo, world.direct_listing}
    states = [b"HIPO1" if locate in waiting else b"T    " for locate in locates.tolist()]
    sho = [b"2" if draw == 0 else b"0" for draw in stream.below(n, 40).tolist()]
    sho[world.halts[0] - 1] = b"1"
    makers = max(1, min(len(MPIDS) - 2, spec.messages // (n * 1250)))
    first = np.repeat(stream.below(n, len(MPIDS)), makers) + np.tile(np.arange(makers), n)
    positions = [
        MPIDS[k % len(MPIDS)].encode() + (b"Y" if not j % makers else b"N") + b"NA"
        for j, k in enumerate(first.tolist())
    ]
    return [
        _Block(directory.events, rows),
        _block("H", _at(clock(3, 10)) + spin, locates, states),
        _block("Y", _at(clock(3, 15)) + spin, locates, sho),
        _block("L", _at(clock(3, 20)) + np.arange(n * makers) * 9_000, np.repeat(locates, makers), positions),
    ]


_R_IN_AUX: Final = ("market_category", "financial_status_indicator")


def _crosses(spec: SimSpec, world: World) -> list[_Block]:
    """The opening and the closing cross of every symbol, in no particular order; two of three trade nothing
    (as on 2019-01-30). A few symbols trade once more after the close."""
    blocks = []
    waiting = (world.ipo, world.direct_listing)
    for salt, second, letter in ((9, OPEN, b"O"), (10, CLOSE, b"C")):
        stream = Stream(spec.seed, salt)
        order = stream.permutation(spec.symbols) + 1
        if letter == b"O":
            order = order[~np.isin(order, waiting)]
        n = len(order)
        active = (world.rank[order - 1] * 3 < spec.symbols) | (stream.below(n, 20) == 0)
        shares = np.where(active, 100 * (1 + (stream.below(n, 1 << 12) * stream.below(n, 1 << 12) >> 12)), 0)
        ts = _at(second, 564_930) + np.cumsum(stream.between(n, 40_000, 160_000))
        blocks.append(_block("Q", ts, order, letter, qty=shares))
    stream = Stream(spec.seed, 11)
    few = stream.permutation(spec.symbols)[: 1 + spec.symbols // 200] + 1
    ts = _at(clock(16, 30)) + np.arange(len(few)) * 800_000
    return [*blocks, _block("Q", ts, few, b"I", qty=100 * stream.between(len(few), 1, 400))]


def _resumption(locate: int, seconds: int) -> list[_Block]:
    """Imbalances every five seconds, then the cross and the resumption."""
    times = [_at(seconds - 5 * k, 1_000 + locate) for k in range(6, 0, -1)]
    return [
        _block("I", times, locate, b"H"),
        _block("Q", _at(seconds, 400_123), locate, b"H", qty=100 * (50 + locate % 1000)),
        _block("H", _at(seconds, 402_310), locate, b"TT3  "),
    ]


def _halts(world: World) -> list[_Block]:
    """News halts, volatility pauses, and two operational halts (of one venue only: trading goes on)."""
    blocks: list[_Block] = []
    for k, locate in enumerate(world.halts):
        start = clock(10, 40) + 733 * k % 14_000
        blocks += [
            _block("H", _at(start, 51_207), locate, b"HT1  "),
            _block("H", _at(start + 600, 3_111), locate, b"HT2  "),
            _block("H", _at(start + 900, 10_402), locate, b"QT3  "),
            *_resumption(locate, start + 1_200),
        ]
    for k, locate in enumerate(world.pauses):
        start = clock(9, 47) + 977 * k % 18_000
        blocks += [
            _block("H", _at(start, 77_001), locate, b"PLUDP"),
            _block("J", _at(start, 91_930), locate),
            _block("Y", _at(start, 120_011), locate, b"1"),
            *_resumption(locate, start + 300),
        ]
    venues = ((clock(11, 15), 600, b"B", world.halts[0]), (clock(13, 2), 240, b"X", world.pauses[0]))
    for start, duration, market, locate in venues:
        blocks += [
            _block("h", _at(start, 5_550), locate, market + b"H"),
            _block("h", _at(start + duration, 8_120), locate, market + b"T"),
        ]
    return blocks


def _listings(world: World) -> list[_Block]:
    """An IPO, whose release time moves once, and a direct listing with its price discovery."""
    ipo, listing = world.ipo, world.direct_listing
    release, later, listed = clock(10, 30), clock(10, 45), clock(11, 5)
    price, near = int(world.price[ipo - 1]), int(world.price[listing - 1])
    released = np.array([release, 0, later])
    quoting = _block("K", [_at(clock(9, 2)), _at(clock(10, 26)), _at(clock(10, 31))], 0, [b"A", b"C", b"A"],
                     price=price, qty=released)  # fmt: skip
    times = np.array([_at(listed - 30 * k, 7_700) for k in range(8, 0, -1)])
    low, high = near * 8 // 10, near * 18 // 10
    found = near + near // 200 * np.arange(-4, 4)
    eligible = [b"N"] * 3 + [b"Y"] * 5
    discovery = _block(
        "O", times, listing, [flag + bytes(3) + low.to_bytes(4, "little") for flag in eligible], price=found
    )
    return [
        _typed(
            quoting,
            stock=world.names[ipo - 1].ljust(8).encode(),
            ipo_quotation_release_time=released,
            ipo_quotation_release_qualifier=[b"A", b"C", b"A"],
            ipo_price=price,
        ),
        _block("H", _at(later, 2_000), ipo, b"QIPOQ"),
        *_resumption(ipo, later + 600),
        _typed(
            discovery,
            stock=world.names[listing - 1].ljust(8).encode(),
            open_eligibility_status=eligible,
            minimum_allowable_price=low,
            maximum_allowable_price=high,
            near_execution_price=found,
            near_execution_time=times,
            lower_price_range_collar=found * 9 // 10,
            upper_price_range_collar=found * 11 // 10,
        ),
        _block("H", _at(listed - 300, 2_000), listing, b"QIPOQ"),
        *_resumption(listing, listed),
    ]


def _indicators(spec: SimSpec, world: World) -> list[_Block]:
    """Imbalance spins before the opening and the closing cross, retail interest, and broken trades."""
    spins = max(2, spec.messages // (_NOII_SHARE * spec.symbols))
    opening = max(1, min(300, spins // 3))
    closing = max(1, min(600, spins - opening))
    stream = Stream(spec.seed, 12)
    before_open = _at(OPEN) - np.arange(opening, 0, -1) * (120 * NS // opening if opening < 120 else NS)
    before_close = _at(CLOSE) - np.arange(closing, 0, -1) * (600 * NS // closing)
    retail = max(4, spec.messages // 40_000)
    breaks = max(2, spec.messages // 300_000)
    return [
        _block("I", before_open, 0, b"O", ref=_SPIN_GAP_NS),
        _block("I", before_close, 0, b"C", ref=_SPIN_GAP_NS),
        _block(
            "N",
            _at(OPEN) + np.sort(stream.bits31(retail)) * (6 * 3600 * NS >> 31),
            world.alias[stream.below(retail, len(world.alias))],
            [b"ABSN"[k : k + 1] for k in stream.below(retail, 4).tolist()],
        ),
        _block("B", _at(clock(9, 40)) + np.sort(stream.bits31(breaks)) * (8 * 3600 * NS >> 31)),
    ]
