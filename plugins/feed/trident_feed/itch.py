"""What a feed must know of ITCH 5.0 to tell it from other bytes: the type letters and their lengths."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from trident_core.filenames import itch_version
from trident_parser.itch50 import MESSAGES
from trident_parser.older import looks_like_older_itch

#: Type byte -> length of the message, the type included.
LENGTHS: Final[dict[int, int]] = {message.type: message.length for message in MESSAGES}

#: Frames that `judge` looks at.
FRAMES_JUDGED: Final = 64


class Shape(Enum):
    """How the first messages of a file are framed."""

    PREFIXED = "each message behind its length: ITCH 5.0"
    ZERO_PREFIX = "every length prefix is zero"
    OLD = "a version of ITCH before 5.0"
    UNKNOWN = "not ITCH"


class Verdict(NamedTuple):
    """`score` is what `Feed.detect` answers, 0 to 100; `version` names an old version of ITCH."""

    shape: Shape
    score: int
    version: str = ""


def is_itch(message: bytes) -> bool:
    """Has the message a type of ITCH 5.0, and that type's length?"""
    return bool(message) and LENGTHS.get(message[0]) == len(message)


def judge(head: bytes, name: str = "") -> Verdict:
    """What a file that starts with `head` is. The name only tells an old version apart from nonsense."""
    good, bad = _prefixed_frames(head)
    if good and good >= bad:
        score = 95 if good >= 3 else 70
        return Verdict(Shape.PREFIXED, score - min(30, 10 * bad))
    zero = _zero_prefixed_frames(head)
    if zero:
        return Verdict(Shape.ZERO_PREFIX, 85 if zero >= 3 else 50)
    older = looks_like_older_itch(head)
    if older:
        return Verdict(Shape.OLD, 60, older)
    named = itch_version(name)
    if head and named and named < (5, 0):
        return Verdict(Shape.OLD, 1, f"ITCH {named[0]}.{named[1]}")
    return Verdict(Shape.UNKNOWN, 0)


def _prefixed_frames(head: bytes) -> tuple[int, int]:
    """(frames of a known type and its length, other frames) among the first; a cut last frame counts too."""
    good = bad = at = 0
    while at + 3 <= len(head) and good + bad < FRAMES_JUDGED:
        length = head[at] << 8 | head[at + 1]
        if length == 0:
            break
        if LENGTHS.get(head[at + 2]) == length:
            good += 1
        else:
            bad += 1
        at += 2 + length
    return good, bad


def _zero_prefixed_frames(head: bytes) -> int:
    """Frames whose prefix is zero and whose type is known, from the start on without an exception."""
    count = at = 0
    while at + 3 <= len(head) and count < FRAMES_JUDGED:
        length = LENGTHS.get(head[at + 2], 0)
        if head[at] or head[at + 1] or not length:
            return 0
        count += 1
        at += 2 + length
    return count
