"""Strategies and fixtures that the parser's tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from trident_parser.itch50 import LENGTHS, MESSAGES

LETTERS = "".join(message.letter for message in MESSAGES)


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


@st.composite
def random_message(draw: st.DrawFn) -> bytes:
    """A message of a known type and its length; few locates and symbols, so that they meet again."""
    letter = draw(st.sampled_from(LETTERS))
    body = draw(st.binary(min_size=int(LENGTHS[ord(letter)]) - 3, max_size=int(LENGTHS[ord(letter)]) - 3))
    locate = draw(st.integers(0, 3))
    message = bytearray(letter.encode() + locate.to_bytes(2, "big") + body)
    offset = next(
        (f.offset for m in MESSAGES if m.letter == letter for f in m.fields if f.name == "stock"), 0
    )
    if offset:
        message[offset : offset + 8] = draw(
            st.sampled_from([b"AAPL    ", b"MSFT    ", b" " * 8, b"A\0\0\0\0\0\0\0"])
        )
    return bytes(message)


def stray_message() -> st.SearchStrategy[bytes]:
    """A message of any first byte and any length: mostly unknown types and wrong lengths."""
    return st.binary(min_size=1, max_size=60)


@pytest.fixture(scope="session")
def any_frames() -> Callable[..., st.SearchStrategy[bytes]]:
    """`any_frames()`: framed messages, good and stray ones mixed; `stray=False` leaves the stray ones out."""

    def strategy(*, stray: bool = True, max_size: int = 20) -> st.SearchStrategy[bytes]:
        one = st.one_of(random_message(), stray_message()) if stray else random_message()
        return st.lists(one.map(framed), max_size=max_size).map(b"".join)

    return strategy
