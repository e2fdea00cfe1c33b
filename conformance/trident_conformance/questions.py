"""Conditions, row patterns and the life of orders by chance, for the suite of sequence engines."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from trident_core.dtypes import EVENT, Events
from trident_core.session import Instrument, Session

# --- conditions ---------------------------------------------------------------------------------------------

_NUMBERS: Final = (
    "qty", "shares", "seq", "ref", "ref2", "locate", "flags", "0", "1", "7.5", "-3", "299",
    "18446744073709551615", "99999999999999999999", "ref2 - 1", "qty * 3", "-flags", "locate % 3", "7 - 2",
    "qty % flags", "-qty % 7", "5 % -flags",
)  # fmt: skip
_PRICES: Final = (
    "price", "100.25", "0", "-0.0001", "0.00001", "3.99999999", "price + 1", "price * 2", "-price",
    "price % 0.3", "-price % 0.7",
)  # fmt: skip
_TIMES: Final = ("ts", "00:00", "ts - 1us", "300", "299ns", "09:30")
_WORDS: Final = {
    "type": ("A", "F", "x"), "side": ("B", "S"), "symbol": ("A", "AAPL", "Z"),
    "mpid": ("AB", "ABCD", "", "ABCDE"), "aux": ("AB  CD", "", "ABCD", "       A"),
}  # fmt: skip
_SIGNS: Final = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def _test(draw: st.DrawFn) -> str:
    """One comparison, of values that go together."""
    kind = draw(st.sampled_from([_NUMBERS, _PRICES, _TIMES, None]))
    if kind is None:
        field = draw(st.sampled_from(sorted(_WORDS)))
        word, other = draw(st.sampled_from(_WORDS[field])), draw(st.sampled_from(_WORDS[field]))
        ways = (
            f"= '{word}'", f"!= '{word}'", f"in ('{word}', '{other}')", "~ '^A'", "!~ '[BS]'", "is null",
            "is not null",
        )  # fmt: skip
        return f"{field} {draw(st.sampled_from(ways))}"
    a, b, c = (draw(st.sampled_from(kind)) for _ in range(3))
    sign = draw(st.sampled_from(_SIGNS))
    how = f"{a} {sign} {b}", f"{a} between {b} and {c}", f"{a} in ({b}, {c})", f"{a} is null"
    return draw(st.sampled_from(how))


def conditions() -> st.SearchStrategy[str]:
    """Conditions of the language, of up to six tests."""
    return st.recursive(
        _test(),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            inner.map(lambda text: f"not ({text})"),
        ),
        max_leaves=6,
    )


def session() -> Session:
    """Symbols for the locates 1 to 4."""
    made = Session()
    for locate, symbol in enumerate(["AAPL", "A", "MSFT", "B C"], start=1):
        made.directory.put(Instrument(locate, symbol))
    return made


@st.composite
def wild_events(draw: st.DrawFn) -> Events:
    """Events of which every field may be anything, `seq` and `ts` too: for conditions."""
    whole = st.integers(0, 2**64 - 1) | st.integers(0, 300)
    made = np.zeros(draw(st.integers(1, 12)), EVENT)
    for row in made:
        row["type"] = draw(st.sampled_from(list(b"AFEDXUCPVLQIJKRSH\0\xff")))
        row["side"] = draw(st.sampled_from(list(b"BS\0 ")))
        row["locate"] = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 70_000]))
        row["flags"] = draw(st.sampled_from([0, 1, 2, 3]))
        row["price"] = draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-30, 4_000_000))
        for name in ("seq", "ts", "ref", "ref2", "qty"):
            row[name] = draw(whole)
        texts = [b"AB  CD  ", b"ABCD\0\0\0\0", b"\0" * 8, b"       A", b"\xffA \0  \0 "]
        row["aux"] = list(draw(st.sampled_from(texts)))
    return made


# --- row patterns -------------------------------------------------------------------------------------------

#: Variables that rows may satisfy together; `up` is about the row before.
DEFINE: Final = (
    "big: qty >= 100", "small: qty < 200", "up: price > prev(price)", "soon: ts - prev(ts) <= 1ms",
    "again: type = prev(type)", "turn: prev(price - prev(price)) > 0", "as_before: PREV(prev(qty)) = Qty",
)  # fmt: skip
_NAMES: Final = ("A", "E", "D", ".", "big", "small", "up", "soon", "A", "U", "again", "turn", "as_before")
_SUFFIXES: Final = ("*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?", "??", "{1,2}?")


def row_patterns() -> st.SearchStrategy[str]:
    """Small row patterns over type letters and the variables of DEFINE."""
    leaves = st.sampled_from((*_NAMES, *_NAMES, "()", "^", "$"))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' '.join(parts)})"),
            st.lists(inner, min_size=2, max_size=2).map(lambda parts: f"({' | '.join(parts)})"),
            st.tuples(inner, st.sampled_from(_SUFFIXES)).map(lambda pair: f"({pair[0]}){pair[1]}"),
        ),
        max_leaves=6,
    )


def defined(pattern: str) -> list[str]:
    """The definitions that a pattern needs."""
    words = set(pattern.replace("(", " ").replace(")", " ").replace("|", " ").split())
    return [text for text in DEFINE if text.partition(":")[0] in words]


def flow(rng: np.random.Generator, n: int) -> Events:
    """The life of orders: added, replaced, executed, cancelled and deleted; trades between, and events of
    orders that are gone."""
    made = np.zeros(n, EVENT)
    live: list[tuple[int, int]] = []
    reference, time = 1, 0
    for place, row in enumerate(made):
        time += int(rng.integers(0, 3)) * 1_000_000
        row["seq"], row["ts"] = 5 + 2 * place, time
        if rng.random() < 0.4 or not live:
            _added(rng, row, reference)
            live.append((reference, int(row["locate"])))
            reference += 1
            continue
        at = int(rng.integers(len(live)))
        row["ref"], row["locate"] = live[at]
        row["type"], row["qty"] = ord(rng.choice(list("EEXDDUCP"))), rng.integers(1, 3) * 100
        if row["type"] == ord("P"):
            row["ref"] = 0
        elif row["type"] == ord("U"):
            row["ref2"], row["price"] = reference, rng.integers(1, 4) * 10_000
            live[at] = reference, int(row["locate"])
            reference += 1
        elif row["type"] == ord("D"):
            live.pop(at)
    return made


def _added(rng: np.random.Generator, row: Any, reference: int) -> None:
    row["type"], row["ref"], row["locate"] = ord(rng.choice(list("AAF"))), reference, rng.integers(1, 4)
    row["qty"], row["price"], row["side"] = rng.integers(1, 4) * 100, rng.integers(1, 4) * 10_000, ord("B")
    if row["type"] == ord("F"):
        row["aux"][:4] = list(rng.choice([b"ABCD", b"XY  "]))
