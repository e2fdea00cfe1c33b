"""Parsers that are wrong in one way each."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.contracts import ParseResult
from trident_core.dtypes import EVENT, Events, Frames
from trident_parser.reference import ReferenceParser


class RightParser(ReferenceParser):
    """A parser without a mistake."""


class ReadsPastTheEnd(ReferenceParser):
    """Loads eight bytes at a time, the last of them beyond the input."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        if len(frames):
            beyond = np.lib.stride_tricks.as_strided(frames, (len(frames) + 8,))
            int(beyond[-8:].sum())
        return super().parse_into(frames, out)


class WritesBeyondTheCount(ReferenceParser):
    """Clears the row behind the last one."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        result = super().parse_into(frames, out)
        if result.count < len(out):
            out[result.count] = np.zeros(1, EVENT)[0]
        return result


class NumbersOnlyWhatItKnows(ReferenceParser):
    """Gives no sequence number to a message that it skips."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        first, skipped = self.next_seq, self._skipped()
        result = super().parse_into(frames, out)
        if self._skipped() > skipped:
            out["seq"][: result.count] = np.arange(first, first + result.count)
            self.next_seq = first + result.count
        return result

    def _skipped(self) -> int:
        return self.anomalies.count("unknown_type") + self.anomalies.count("wrong_length")


class ForgetsWhereItIs(ReferenceParser):
    """Reports offsets within the chunk instead of the source."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        position, self.position = self.position, 0
        result = super().parse_into(frames, out)
        self.position = position + result.consumed
        return result


class SharesHaveASign(ReferenceParser):
    """Loads shares as a signed number of 32 bits."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        result = super().parse_into(frames, out)
        rows = out[: result.count]
        great = (rows["qty"] >> np.uint64(31) == 1) & np.isin(rows["type"], list(b"AFECXU"))
        rows["qty"][great] |= np.uint64(0xFFFF_FFFF_0000_0000)
        return result


class CorrectsLetters(ReferenceParser):
    """Makes the side a capital letter."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        result = super().parse_into(frames, out)
        side = out["side"][: result.count]
        side[(side >= ord("a")) & (side <= ord("z"))] -= 32
        return result


class SwallowsTheTail(ReferenceParser):
    """Says that it used a message of which a part is still to come."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        result: Any = super().parse_into(frames, out)
        return ParseResult(len(frames), *result[1:]) if result.status.name == "NEED_MORE" else result
