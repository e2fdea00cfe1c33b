"""Inputs by chance: small ones that hypothesis can shrink, and longer days from a seed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from trident_core.dtypes import EVENT, EventFlag, Events, Frames
from trident_core.session import Instrument, Session
from trident_parser.itch50 import LENGTHS, MESSAGES, STOCK_OFFSETS

#: Symbols of the days from a seed: locate -> symbol.
SYMBOLS: Final = {1: "AAPL", 2: "MSFT", 3: "ZVZZT", 4: "BRK.A", 5: "A", 65535: "LONGNAME"}

_U64: Final = (1 << 64) - 1


def session() -> Session:
    """A session that knows SYMBOLS."""
    made = Session()
    for locate, symbol in SYMBOLS.items():
        made.directory.put(Instrument(locate, symbol))
    return made


def shrunk(check: Callable[[Events], None], events: Events, seconds: float = 20.0) -> None:
    """`check(events)`; when it fails, the failure of the smallest part of them that was found in time."""
    try:
        check(events)
    except Exception as error:
        check(smallest(check, events, seconds, type(error)))
        raise


def smallest(
    check: Callable[[Events], None], events: Events, seconds: float, failure: type[Exception]
) -> Events:
    """The smallest part of `events` found in `seconds` on which `check` still raises `failure`, by leaving
    out halves, quarters … (the ddmin of Zeller and Hildebrandt, 2002); at the end no row is too many."""
    end = time.monotonic() + seconds

    def fails(part: Events) -> bool:
        try:
            check(part.copy())
        except failure:
            return True
        except Exception:  # it fails in another way
            return False
        return False

    size = max(len(events) // 2, 1)
    while time.monotonic() < end:
        at, before = 0, len(events)
        while at < len(events) and time.monotonic() < end:
            part = np.delete(events, slice(at, at + size))
            if len(part) and fails(part):
                events = part
            else:
                at += size
        if size == 1 and len(events) == before:
            break
        size = max(size // 2, 1)
    return events


# --- events for books ---------------------------------------------------------------------------------------

_LETTERS: Final = "AAAAFFFEEECCXXXDDUUUUHhPQBSRINZ"
_AUX: Final = (b"", b"T", b"H", b"P", b"Q", b"Z", b"ABCD", b"WXYZ....")

_small: Final = st.tuples(
    st.sampled_from(_LETTERS),
    st.integers(0, 7),  # ref: few, so that they meet
    st.integers(0, 7),  # ref2
    st.sampled_from("BBBSSSX"),
    st.integers(0, 4).map(lambda k: 1_000_000 + 100 * k),
    st.sampled_from((0, 1, 2, 3, 5, 100, (1 << 32) - 1, _U64)),
    st.integers(0, 2),  # locate
    st.sampled_from(_AUX),
    st.integers(1, 3),  # seq gap
    st.integers(0, 2),  # time gap
)


def _events(rows: list[tuple[Any, ...]]) -> Events:
    events = np.zeros(len(rows), EVENT)
    seq = ts = 0
    for i, (letter, ref, ref2, side, price, qty, locate, aux, seq_gap, ts_gap) in enumerate(rows):
        seq, ts = seq + seq_gap, ts + ts_gap
        events[i] = (
            seq, ts, ref, ref2, price, qty, locate, ord(letter), ord(side), 0, tuple(aux.ljust(8, b"\0"))
        )  # fmt: skip
    return events


def book_events() -> st.SearchStrategy[Events]:
    """Up to 60 events on few references, prices and symbols: every rule and every anomaly comes up."""
    return st.lists(_small, max_size=60).map(_events)


def wild_events() -> st.SearchStrategy[Events]:
    """Events of arbitrary bytes, most of them with the type of an order message."""

    def build(data: bytes, letters: str) -> Events:
        events = np.frombuffer(data[: len(data) // 64 * 64], EVENT).copy()
        for i, letter in enumerate(letters[: len(events)]):
            events["type"][i] = ord(letter)
        return events

    return st.builds(build, st.binary(max_size=64 * 16), st.text(_LETTERS, max_size=16))


class _Day:
    """The state of one day by chance: what lives, and the rows so far."""

    def __init__(self, seed: int, faults: bool) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.live: dict[int, tuple[int, int]] = {}  # ref -> locate, quantity
        self.refs: list[int] = []
        self.next_ref = self.next_match = 1
        self.ts = 4 * 3_600_000_000_000
        self.rows: list[tuple[Any, ...]] = []

    def put(self, letter: str, locate: int, *, ref: int = 0, ref2: int = 0, price: int = 0, qty: int = 0,
            side: str = "\0", flags: int = 0, aux: bytes = b"") -> None:  # fmt: skip
        self.ts += self.random.choice((0, 0, 1, 50, 1000, 2_000_000))
        self.rows.append(
            (len(self.rows) + 1, self.ts, ref, ref2, price, qty, locate, ord(letter), ord(side), flags,
             tuple(aux.ljust(8, b"\0")))
        )  # fmt: skip

    def open(self) -> None:
        self.put("S", 0, aux=b"O")
        for locate in SYMBOLS:
            self.put("R", locate, qty=100, aux=b"Q CZ PN ")
            self.put("H", locate, aux=b"T    ")

    def match(self) -> int:
        self.next_match += 1
        return self.next_match

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.45 or not self.refs:
            self.add()
        elif chance < 0.95:
            self.modify()
        else:
            self.other()

    def add(self) -> None:
        pick = self.random
        locate, side = pick.choice(list(SYMBOLS)), pick.choice("BS")
        tick = min(int(pick.expovariate(0.25)), 60)
        price = 1_000_000 * (locate % 7 + 1) + (-100 * tick if side == "B" else 100 * (tick + 1))
        if pick.random() < 0.01:
            price += 500 if side == "B" else -500  # crosses now and then
        qty, ref = pick.choice((1, 10, 100, 100, 100, 300, 5000)), self.next_ref
        self.next_ref += pick.choice((1, 1, 1, 2, 9))
        if self.faults and self.refs and pick.random() < 0.005:
            ref = pick.choice(self.refs)  # a duplicate, unless it is gone
        if pick.random() < 0.3:
            self.put(
                "F", locate, ref=ref, price=price, qty=qty, side=side, aux=pick.choice((b"MMKR", b"NITE"))
            )
        else:
            self.put("A", locate, ref=ref, price=price, qty=qty, side=side)
        self.live[ref] = (locate, qty)
        self.refs.append(ref)

    def modify(self) -> None:
        pick = self.random
        at = pick.randrange(len(self.refs))
        ref = self.refs[at]
        locate, left = self.live.get(ref, (1, 1))
        if ref not in self.live and not self.faults:
            self.refs[at] = self.refs[-1]
            self.refs.pop()
            return
        letter = pick.choice("EEECXXDDDUUU")
        qty = left if pick.random() < 0.4 else pick.randint(1, left)
        if self.faults and pick.random() < 0.01:
            qty, locate = left + 1, pick.choice(list(SYMBOLS))
        self.live.pop(ref, None)
        if letter in "ECX" and qty < left:
            self.live[ref] = (locate, left - qty)
        if letter == "E":
            self.put("E", locate, ref=ref, ref2=self.match(), qty=qty)
        elif letter == "C":
            flags = pick.choice((0, int(EventFlag.NON_PRINTABLE)))
            self.put("C", locate, ref=ref, ref2=self.match(), qty=qty, price=999_900, flags=flags)
        elif letter == "X":
            self.put("X", locate, ref=ref, qty=qty)
        elif letter == "D":
            self.put("D", locate, ref=ref)
        else:
            new, price = self.next_ref, 1_000_000 * (locate % 7 + 1) + 100 * pick.randint(-20, 20)
            self.next_ref += 1
            self.put("U", locate, ref=ref, ref2=new, qty=left, price=price)
            self.live[new] = (locate, left)
            self.refs.append(new)

    def other(self) -> None:
        pick = self.random
        locate = pick.choice(list(SYMBOLS))
        match pick.choice("HHhPQBYLJVWKINO"):
            case "H":
                self.put("H", locate, aux=pick.choice((b"T    ", b"HLUDP", b"P    ", b"Q    ")))
            case "h":
                self.put("h", locate, aux=b"QH")
            case "P":
                self.put("P", locate, ref2=self.match(), qty=100, price=999_900, side="B")
            case "Q":
                self.put(
                    "Q", locate, ref2=self.match(), qty=pick.choice((0, 6_000_000_000)), price=1, aux=b"O"
                )
            case "B":
                self.put("B", locate, ref2=pick.randint(1, self.next_match))
            case "Y":
                self.put("Y", locate, aux=b"1")
            case "L":
                self.put("L", locate, aux=b"MMKRYNA")
            case "J":
                self.put("J", locate, price=1_000_000, qty=1, aux=b"\x01\x02\x03\x00\x04\x05\x06\x00")
            case "V":
                self.put("V", 0, price=32_604_000_000_0, flags=int(EventFlag.PRICE_8DP))
            case "W":
                self.put("W", 0, aux=b"1")
            case "K":
                self.put("K", 0, price=250_000, qty=34_200, aux=b"A")
            case "I":
                self.put(
                    "I", locate, ref2=7, price=1, qty=8_000_000_000, side="N", aux=b"OL\0\0\x01\x02\x03\x00"
                )
            case "N":
                self.put("N", locate, aux=b"S")
            case _:
                self.put("O", locate, price=1_000_000, aux=b"N\0\0\0\x01\x02\x03\x00")


def day(seed: int, n: int, *, faults: bool = True) -> Events:
    """n events of one day, EVENT[n], the same for the same seed: all types, several symbols.

    With `faults`, among them unknown and duplicate references, over-executions and wrong locates. Every event
    can be encoded with `session()`.
    """
    made = _Day(seed, faults)
    made.open()
    while len(made.rows) < n:
        made.step()
    return np.array(made.rows[:n], EVENT)


# --- bytes for parsers --------------------------------------------------------------------------------------

_KNOWN: Final = [message.letter for message in MESSAGES]
_STOCKS: Final = (
    b"AAPL    ",
    b"MSFT    ",
    b"A       ",
    b"        ",
    b"LONGNAME",
    b"A\0\0\0\0\0\0\0",
    b"\xc9T\xc9     ",
)


@st.composite
def _message(draw: st.DrawFn) -> bytes:
    """One framed message; most are of a known type and its length."""
    how = draw(st.sampled_from(("known",) * 12 + ("unknown", "length", "empty-text")))
    if how == "unknown":
        other = draw(st.binary(min_size=1, max_size=60))
        return len(other).to_bytes(2, "big") + other
    letter = draw(st.sampled_from(_KNOWN))
    length = int(LENGTHS[ord(letter)])
    body = bytearray(letter.encode() + draw(st.binary(min_size=length - 1, max_size=length - 1)))
    body[1:3] = draw(st.integers(0, 3)).to_bytes(2, "big")
    stock = int(STOCK_OFFSETS[ord(letter)])
    if stock:
        body[stock : stock + 8] = draw(st.sampled_from(_STOCKS))
    if how == "length":
        wrong = draw(st.integers(1, length + 4))
        body = (body + bytes(8))[:wrong]
    return len(body).to_bytes(2, "big") + bytes(body)


@st.composite
def frames(draw: st.DrawFn, *, end: bool = True, whole: bool = False) -> Frames:
    """Framed messages; now and then an end mark among them (`end`), or a last one that is cut (not
    `whole`)."""
    parts = draw(st.lists(_message(), max_size=12))
    if end and draw(st.integers(0, 5)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), b"\0\0")
    data = b"".join(parts)
    if not whole and draw(st.booleans()):
        data = data[: draw(st.integers(0, len(data)))]
    return np.frombuffer(data, np.uint8)


def junk() -> st.SearchStrategy[Frames]:
    """Any bytes at all."""
    return st.binary(max_size=200).map(lambda data: np.frombuffer(data, np.uint8))


def day_bytes(seed: int, n: int, *, faults: bool = True) -> bytes:
    """A day as a feed carries it; with `faults`, also messages of unknown types and of wrong lengths."""
    from trident_parser.encode import encode_events

    data = encode_events(day(seed, n, faults=faults), session()).tobytes()
    if not faults:
        return data
    pick, parts, at = random.Random(seed), [], 0
    while at < len(data):
        size = 2 + int.from_bytes(data[at : at + 2], "big")
        parts.append(data[at : at + size])
        at += size
        if pick.random() < 0.01:
            parts.append(
                pick.choice(
                    (b"\0\x05z1234", b"\0\x0aD\0\1\0\0\0\0\0\0\1", b"\0\x01A", b"\1\x00" + bytes(256))
                )
            )
    return b"".join(parts)
