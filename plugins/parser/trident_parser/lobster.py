"""LOBSTER message files -> EVENTs: a second wire format, one of lines (lobsterdata.com, "Output Structure").

A line is `time,type,order id,size,price,direction`: seconds after midnight as a decimal, prices in dollars
times 10,000. Replaces do not occur: LOBSTER writes a deletion and a new order. What each column of an EVENT
holds, and what a file that records only the best levels cannot tell, is in docs/lobster.md.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import ParseResult, Status, TradingState
from trident_core.dtypes import EVENT, Events, Frames
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.stats import Anomalies

#: Longest line that is read, its newline included (six columns at their widest take 90). A longer one is one
#: `bad_line`, skipped up to its newline without being kept.
LINE_BYTES_MAX: Final = 128
#: The one symbol of a file. Its name is in the session's directory if the feed could tell it.
LOCATE: Final = 1
#: `counts` has lines that could not be read here.
BAD_LINE_TYPE: Final = ord("?")

_LINE: Final = re.compile(
    rb"(\d{1,5})(?:\.(\d{1,18}))?,([1-7]),(-[1-9]|\d{1,20}),(\d{1,18}),(-?\d{1,18}),(-?1)\r?"
)
_EVENT: Final = Struct("<QQQQqQIBBH8s")  # the layout of EVENT, in the order of its columns
_NO_AUX: Final = bytes(8)
_U64_MAX: Final = (1 << 64) - 1

_LETTERS: Final = {b"1": b"A", b"2": b"X", b"3": b"D", b"4": b"E", b"5": b"P", b"6": b"Q", b"7": b"H"}
_ORDER_TYPES: Final = b"1234"
_SIDES: Final = {b"1": ord("B"), b"-1": ord("S")}
#: Type 6: the order id tells the cross; -3 and -4 are of several kinds, which ITCH's letters keep apart.
_CROSS_TYPES: Final = {b"-1": b"O", b"-2": b"C"}
#: Type 7: the price tells the state.
_STATES: Final = {
    b"-1": bytes([TradingState.HALTED]),
    b"0": bytes([TradingState.QUOTATION]),
    b"1": bytes([TradingState.TRADING]),
}


class LobsterParser:
    """LOBSTER message lines -> EVENTs, one for each good line. Satisfies `contracts.Parser`.

    `seq` is the number of the line, from 1. Bad lines are skipped and counted as `bad_line` at the offset of
    their first byte; each takes a number, and counts as type `?`. `counts` has the others by the EVENT's
    letter. A line ends with a newline; the feed supplies one that the last line lacks. Memory: constant.

    The lines carry no symbol, so the directory is the feed's to teach. There is no lenient mode: `lenient` is
    accepted and changes nothing.
    """

    def __init__(self, session: Session, *, lenient: bool = False) -> None:
        self.session = session
        self.lenient = lenient
        self.anomalies = Anomalies()
        self.counts: NDArray[np.uint64] = np.zeros(256, np.uint64)
        self.next_seq = 1
        self.position = 0
        self._inside_long_line = False

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """See `trident_core.contracts.Parser`. Never MALFORMED, never END: any line can be skipped."""
        _check_arrays(frames, out)
        data, cells = frames.data, out.view(np.uint8).data
        at, count, status = 0, 0, Status.OK
        while at < len(data):
            if count == len(out):
                status = Status.OUT_FULL
                break
            line = bytes(data[at : at + LINE_BYTES_MAX])
            length = line.find(b"\n") + 1
            if not length and len(line) < LINE_BYTES_MAX and not self._inside_long_line:
                status = Status.NEED_MORE
                break
            if self._inside_long_line:
                self._inside_long_line = not length
            elif (event := self._event(line[: length - 1]) if length else None) is None:
                self.anomalies.add("bad_line", at=self.position + at)
                self._count(BAD_LINE_TYPE)
                self._inside_long_line = not length
            else:
                cells[64 * count : 64 * count + 64] = event
                self._count(event[52])
                count += 1
            at += length or len(line)
        self.position += at
        return ParseResult(at, count, status)

    def _count(self, letter: int) -> None:
        self.counts[letter] += np.uint64(1)
        self.next_seq += 1

    def _event(self, line: bytes) -> bytes | None:
        """The 64 bytes of the line's EVENT; None for a line that is not one of a LOBSTER message file."""
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        seconds, fraction, kind, order, size, price_text, direction = match.groups()
        ts = int(seconds) * 1_000_000_000 + _nanoseconds(fraction or b"0")
        ref, price, side, aux = int(order), int(price_text), _SIDES[direction], _NO_AUX
        if kind in _ORDER_TYPES:
            if ref < 1:
                return None
        elif kind == b"6":
            ref, aux = 0, _CROSS_TYPES.get(order, _NO_AUX)
        elif kind == b"7":
            if price_text not in _STATES:
                return None
            ref, price, side, aux = 0, 0, 0, _STATES[price_text]
        if not 0 <= ref <= _U64_MAX:
            return None
        letter = _LETTERS[kind][0]
        return _EVENT.pack(self.next_seq, ts, ref, 0, price, int(size), LOCATE, letter, side, 0, aux)


def _nanoseconds(fraction: bytes) -> int:
    """The digits after the point as nanoseconds. Those after the ninth are float noise in real files
    (43002.632812672004 in a sample day): rounded, half up."""
    noise_digits = len(fraction) - 9
    if noise_digits <= 0:
        return int(fraction.ljust(9, b"0"))
    return int((int(fraction) + 5 * 10 ** (noise_digits - 1)) // 10**noise_digits)


def _check_arrays(frames: Frames, out: Events) -> None:
    if frames.dtype != np.uint8 or frames.ndim != 1 or not frames.flags.c_contiguous:
        raise UsageError("frames must be a contiguous u8[n]")
    if out.dtype != EVENT or out.ndim != 1 or not out.flags.c_contiguous or not out.flags.writeable:
        raise UsageError("parse_into needs a writable, contiguous EVENT[m] to write to")
    if len(out) == 0:
        raise UsageError("parse_into needs room for at least one event")
