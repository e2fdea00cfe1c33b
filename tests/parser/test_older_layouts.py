"""Layouts before 5.0 are recognised, not parsed (trap 23)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_core import Session
from trident_core.decode import events_of
from trident_parser.older import looks_like_older_itch
from trident_parser.reference import ReferenceParser


def framed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(2, "big") + message for message in messages)


SECONDS = b"T" + bytes(4)
SYSTEM = b"S" + bytes(4) + b"O"
ADD_41 = b"A" + bytes(4) + bytes(8) + b"B" + bytes(4) + b"AAPL    " + bytes(4)
ADD_40 = b"A" + bytes(4) + bytes(8) + b"B" + bytes(4) + b"AAPL  " + bytes(4)

ITCH_30 = (
    b"T25200\r\nM001\r\nSO\r\nRAAPL  QN   100N\r\nHAAPL  T     \r\n"
    b"A        1B   100AAPL  0003201400\r\nE        1    50        7\r\n"
)
ITCH_20 = b"25200001SO\r\n25200002A        1B   100AAPL  0003201400Y\r\n"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (framed(SECONDS, SYSTEM, SECONDS), "ITCH 4.x"),
        (framed(SECONDS, SYSTEM, ADD_41), "ITCH 4.1"),
        (framed(SECONDS, SYSTEM, ADD_40), "ITCH 4.0"),
        (framed(SECONDS, SYSTEM, ADD_41) + b"\0\x1e", "ITCH 4.1"),
        (framed(SECONDS, ADD_41, ADD_40), None),
        (framed(SECONDS), None),
        (ITCH_30, "ITCH 3.0"),
        (ITCH_20, "ITCH 2.0"),
        (b"", None),
        (b"one\ntwo\nthree\n", None),
    ],
)
def test_recognises(head: bytes, name: str | None) -> None:
    assert looks_like_older_itch(head) == name


def test_real_5_0_is_not_older(shared: Callable[..., Path]) -> None:
    for parts in (("itch50_runk", "locate-13-10k.bin"), ("itch50_heads", "huckzou_partialData.bin")):
        assert looks_like_older_itch(shared("data", *parts).read_bytes()[:4096]) is None


@given(st.binary(max_size=300))
def test_never_raises(head: bytes) -> None:
    assert looks_like_older_itch(head) is None or len(head) > 10


def test_the_parser_skips_all_of_it_and_says_so() -> None:
    parser = ReferenceParser(Session())
    assert len(events_of(framed(SECONDS, SYSTEM, ADD_41, ADD_41), parser)) == 0
    assert parser.anomalies.count("unknown_type") == 1
    assert parser.anomalies.count("wrong_length") == 3
