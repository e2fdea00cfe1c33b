"""What assertions look at: the kinds of the bytes around a position, and which hold between two kinds."""

from __future__ import annotations

from typing import Final

from trident_query.ast import WORD, At

#: Kinds of neighbours. OUTSIDE is before the start and after the end of the text.
OTHER, WORD_BYTE, NEWLINE_BYTE, OUTSIDE = range(4)
KINDS: Final = 4
#: A set of kinds, as a mask with bit `1 << kind`, that holds all of them.
ALL_KINDS: Final = 15

#: Byte -> kind; use with `bytes.translate`.
KIND_OF: Final = bytes(WORD_BYTE if b in WORD else NEWLINE_BYTE if b == 10 else OTHER for b in range(256))


def _holding(before: int, after: int) -> int:
    at = At.WORD_BOUNDARY if (before == WORD_BYTE) != (after == WORD_BYTE) else At.NOT_WORD_BOUNDARY
    if before == OUTSIDE:
        at |= At.TEXT_START | At.LINE_START
    if before == NEWLINE_BYTE:
        at |= At.LINE_START
    if after == OUTSIDE:
        at |= At.TEXT_END | At.LINE_END
    if after == NEWLINE_BYTE:
        at |= At.LINE_END
    return int(at)


#: HOLDING[before][after]: the assertions (flags of At) that hold between two neighbours of these kinds.
HOLDING: Final = [[_holding(before, after) for after in range(KINDS)] for before in range(KINDS)]


def kinds_that_matter(used: int) -> bytes:
    """Byte -> kind, with kinds that the assertions `used` (flags of At) cannot tell apart made OTHER."""
    lines = used & (At.LINE_START | At.LINE_END)
    words = used & (At.WORD_BOUNDARY | At.NOT_WORD_BOUNDARY)
    kept = {OTHER, WORD_BYTE if words else OTHER, NEWLINE_BYTE if lines else OTHER}
    return bytes(kind if kind in kept else OTHER for kind in KIND_OF)
