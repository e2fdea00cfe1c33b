"""Where the fields of OUCH 5.0's messages stand: one line a message, from which decode and encode are
derived.

In a line: B H I Q are unsigned big-endian integers of 1, 2, 4, 8 bytes, c is a letter, "Ns" a text of N
bytes, left-justified, padded with spaces. The type letter comes before them, the appendage behind.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from trident_exchange.ouch import messages as m


class Appendage(Enum):
    """Whether a message ends with an appendage."""

    NEVER = "never"
    ALWAYS = "always"  # its 2-byte length is there even when it is empty
    MAYBE = "maybe"  # it may end before the length


@dataclass(frozen=True, slots=True)
class Layout:
    """One message: `size` bytes with the type letter and without the appendage."""

    kind: type[Any]
    letter: str
    name: str
    formats: tuple[str, ...]
    appendage: Appendage
    packer: struct.Struct
    size: int
    fields: tuple[str, ...]
    letters: tuple[int, ...]  # places of one-letter fields among the values
    texts: tuple[tuple[int, int], ...]  # (place, width) of the longer texts
    offsets: tuple[int, ...] = field(repr=False)  # of each field in the message

    def field_at(self, offset: int) -> str:
        """The name of the field in which a byte of the message stands."""
        return next(
            (name for name, at in zip(self.fields[::-1], self.offsets[::-1], strict=True) if at <= offset),
            "type",
        )


def _layout(kind: type[Any], letter: str, name: str, size: int, line: str, appendage: Appendage) -> Layout:
    formats = tuple(line.split())
    fields = tuple(name for name in kind._fields if name != "options")
    widths = [struct.calcsize(">" + ("s" if each == "c" else each)) for each in formats]
    offsets = tuple(1 + sum(widths[:i]) for i in range(len(widths)))
    packer = struct.Struct(">x" + "".join("s" if each == "c" else each for each in formats))
    if packer.size != size or len(fields) != len(formats):
        raise ImportError(f"{kind.__name__} has {packer.size} bytes, not {size}, or another number of fields")
    if ("options" in kind._fields) is (appendage is Appendage.NEVER):
        raise ImportError(f"{kind.__name__} and its appendage do not fit")
    texts = tuple((i, int(each[:-1])) for i, each in enumerate(formats) if re.fullmatch(r"\d+s", each))
    letters = tuple(i for i, each in enumerate(formats) if each == "c")
    return Layout(kind, letter, name, formats, appendage, packer, size, fields, letters, texts, offsets)


_ALWAYS, _MAYBE, _NEVER = Appendage.ALWAYS, Appendage.MAYBE, Appendage.NEVER

#: Sections 2.1 to 2.8, with the sizes that the specification gives.
INBOUND: Final = (
    _layout(m.EnterOrder, "O", "Enter Order", 45, "I c I 8s Q c c c c c 14s", _ALWAYS),
    _layout(m.ReplaceOrder, "U", "Replace Order Request", 38, "I I I Q c c c 14s", _ALWAYS),
    _layout(m.CancelOrder, "X", "Cancel Order Request", 9, "I I", _MAYBE),
    _layout(m.ModifyOrder, "M", "Modify Order Request", 10, "I c I", _MAYBE),
    _layout(m.MassCancel, "C", "Mass Cancel Request", 17, "I 4s 8s", _ALWAYS),
    _layout(m.DisableOrderEntry, "D", "Disable Order Entry Request", 9, "I 4s", _ALWAYS),
    _layout(m.EnableOrderEntry, "E", "Enable Order Entry Request", 9, "I 4s", _ALWAYS),
    _layout(m.AccountQuery, "Q", "Account Query Request", 1, "", _MAYBE),
)

#: Sections 3.1 to 3.17.
OUTBOUND: Final = (
    _layout(m.SystemEvent, "S", "System Event", 10, "Q c", _NEVER),
    _layout(m.Accepted, "A", "Order Accepted", 62, "Q I c I 8s Q c c Q c c c c 14s", _ALWAYS),
    _layout(m.Replaced, "U", "Order Replaced", 66, "Q I I c I 8s Q c c Q c c c c 14s", _ALWAYS),
    _layout(m.Canceled, "C", "Order Canceled", 18, "Q I I c", _MAYBE),
    _layout(m.AiqCanceled, "D", "AIQ Canceled", 32, "Q I I c I Q c c", _MAYBE),
    _layout(m.Executed, "E", "Order Executed", 34, "Q I I Q c Q", _ALWAYS),
    _layout(m.BrokenTrade, "B", "Broken Trade", 36, "Q I Q c 14s", _MAYBE),
    _layout(m.Rejected, "J", "Rejected", 29, "Q I H 14s", _MAYBE),
    _layout(m.CancelPending, "P", "Cancel Pending", 13, "Q I", _MAYBE),
    _layout(m.CancelReject, "I", "Cancel Reject", 13, "Q I", _MAYBE),
    _layout(m.PriorityUpdate, "T", "Order Priority Update", 30, "Q I Q c Q", _MAYBE),
    _layout(m.Modified, "M", "Order Modified", 18, "Q I c I", _MAYBE),
    _layout(m.Restated, "R", "Order Restated", 14, "Q I c", _ALWAYS),
    _layout(m.MassCancelResponse, "X", "Mass Cancel Response", 25, "Q I 4s 8s", _ALWAYS),
    _layout(m.DisableOrderEntryResponse, "G", "Disable Order Entry Response", 17, "Q I 4s", _ALWAYS),
    _layout(m.EnableOrderEntryResponse, "K", "Enable Order Entry Response", 17, "Q I 4s", _ALWAYS),
    _layout(m.AccountQueryResponse, "Q", "Account Query Response", 13, "Q I", _MAYBE),
)

BY_CLASS: Final[dict[type[Any], Layout]] = {each.kind: each for each in (*INBOUND, *OUTBOUND)}
INBOUND_BY_TYPE: Final[dict[int, Layout]] = {ord(each.letter): each for each in INBOUND}
OUTBOUND_BY_TYPE: Final[dict[int, Layout]] = {ord(each.letter): each for each in OUTBOUND}
