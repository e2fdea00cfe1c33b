"""Layouts before ITCH 5.0: not parsed, but recognised, so that the user is told what the file is (trap 23).

ITCH 4.0 and 4.1 are binary with the same 2-byte prefixes, but have no locate and no tracking number; times
are split into messages T (seconds) and a 4-byte field (nanoseconds). Stocks have 6 characters in 4.0 and 8
in 4.1.
ITCH 2.0 and 3.0 are lines of ASCII: 2.0 starts each with milliseconds in 8 digits, 3.0 has T and M lines.
"""

from __future__ import annotations

import re
from typing import Final

from trident_parser.itch50 import LENGTHS

_LENGTHS_41: Final = {
    "T": 5, "S": 6, "R": 20, "H": 19, "Y": 14, "L": 20, "A": 30, "F": 34, "E": 25, "C": 30,
    "X": 17, "D": 13, "U": 29, "P": 38, "Q": 34, "B": 13, "I": 44, "N": 14,
}  # fmt: skip
_STOCKLESS: Final = "TSECXDUB"
_LENGTHS_40: Final = {
    letter: length if letter in _STOCKLESS else length - 2 for letter, length in _LENGTHS_41.items()
}
_LINE_30: Final = re.compile(
    rb"(T[ 0-9]{5}|M[ 0-9]{3}|S[OSQMEC]|R.{15}|H.{12}|L.{13}|A[ 0-9]{9}[BS].{22}|F[ 0-9]{9}[BS].{26}"
    rb"|E[ 0-9]{24}|C[ 0-9]{24}[YN].{10}|X[ 0-9]{15}|D[ 0-9]{9}|P[ 0-9]{9}[BS].{31}|Q[ 0-9]{9}.{26}"
    rb"|B[ 0-9]{9}|I[ 0-9]{9}.{48})\r?"
)
_LINE_20: Final = re.compile(rb"[ 0-9]{8}[SRHLAFECXDPQBI].*\r?")

#: Messages or lines that are looked at.
_LOOKED_AT: Final = 64


def looks_like_older_itch(head: bytes) -> str | None:
    """Which older layout an input has, by its start.

    "ITCH 4.1", "ITCH 4.0", "ITCH 4.x" (no message yet that tells the two apart), "ITCH 3.0", "ITCH 2.0", or
    None (ITCH 5.0, too). `head` starts on a message; 4 KiB are plenty. An answer needs at least two whole
    messages, of which the first 64 all fit that layout. Never raises.
    """
    frames = _frames(head)
    if len(frames) >= 2 and not all(LENGTHS[letter] == length for letter, length in frames):
        is_41, is_40 = (
            all(lengths.get(chr(letter)) == length for letter, length in frames)
            for lengths in (_LENGTHS_41, _LENGTHS_40)
        )
        if is_41 or is_40:
            return "ITCH 4.x" if is_41 and is_40 else "ITCH 4.1" if is_41 else "ITCH 4.0"
    lines = bytes(head).split(b"\n")[:-1][:_LOOKED_AT]
    if len(lines) >= 2:
        for name, line in (("ITCH 3.0", _LINE_30), ("ITCH 2.0", _LINE_20)):
            if all(line.fullmatch(each) for each in lines):
                return name
    return None


def _frames(head: bytes) -> list[tuple[int, int]]:
    """(type byte, length) of the whole frames at the start of `head`."""
    frames: list[tuple[int, int]] = []
    at = 0
    while len(frames) < _LOOKED_AT and at + 3 <= len(head):
        length = head[at] << 8 | head[at + 1]
        if length == 0 or at + 2 + length > len(head):
            break
        frames.append((head[at + 2], length))
        at += 2 + length
    return frames
