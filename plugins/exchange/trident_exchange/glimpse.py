"""GLIMPSE 5.0: the state of all books as ITCH 5.0 messages, and at the end where the feed goes on.

A snapshot is, over SoupBinTCP from number 1 on: the session's events (S), the directory (R) and trading
states (H), an add (A, F) for each order of the books in the order of its queue, and the message G with the
number of the ITCH message that comes next.

Source: Nasdaq GLIMPSE 5.0 specification, section 1 (message formats; 1.7 Snapshot Message).
"""

from __future__ import annotations

from typing import Final

from trident_core.errors import InputError

SNAPSHOT_BYTES: Final = 21
_DIGITS: Final = 20


class GlimpseError(InputError):
    """A message that is not the end of a snapshot."""


def encode_snapshot_end(sequence: int) -> bytes:
    """G and the number of the next message of the feed, in digits, left-justified."""
    return b"G" + str(sequence).encode().ljust(_DIGITS)


def decode_snapshot_end(message: bytes) -> int:
    """The number of the next message of the feed. Raises GlimpseError."""
    digits = message[1:].strip(b" ")
    if len(message) != SNAPSHOT_BYTES or message[:1] != b"G" or not digits.isdigit():
        raise GlimpseError(
            f"not the end of a snapshot: {message[:32]!r}", hint="G and 20 digits, at offset 0"
        )
    return int(digits)
