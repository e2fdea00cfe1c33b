"""Bytes to OUCH messages and back. decode(encode(m)) == m, and encode(decode(b)) == b for all bytes not
refused."""

from __future__ import annotations

import struct
from typing import Any, Final

from trident_exchange.ouch.errors import OuchError
from trident_exchange.ouch.layout import (
    BY_CLASS,
    INBOUND_BY_TYPE,
    OUTBOUND_BY_TYPE,
    Appendage,
    Layout,
)
from trident_exchange.ouch.messages import Inbound, Message, Outbound
from trident_exchange.ouch.options import decode_options, encode_options

#: Printable ASCII, by its byte.
_LETTERS: Final = {bytes((code,)): chr(code) for code in range(0x20, 0x7F)}


def decode_inbound(data: bytes) -> Inbound:
    """A message of a client (the payload of an unsequenced data packet). Raises OuchError."""
    message: Inbound = _decode(data, INBOUND_BY_TYPE, "client")
    return message


def decode_outbound(data: bytes) -> Outbound:
    """A message of the exchange (the payload of a sequenced data packet). Raises OuchError."""
    message: Outbound = _decode(data, OUTBOUND_BY_TYPE, "exchange")
    return message


def _decode(data: bytes, layouts: dict[int, Layout], sender: str) -> Any:
    layout = layouts.get(data[0]) if data else None
    if layout is None:
        raise _no_such_type(data, layouts, sender)
    size = layout.size
    if len(data) < size:
        raise OuchError(
            f"{layout.name} is cut in {layout.field_at(len(data))}", offset=len(data),
            hint=f"it has {size} bytes before its appendage, these are {len(data)}",
        )  # fmt: skip
    values: list[Any] = list(layout.packer.unpack_from(data))
    try:
        for place in layout.letters:
            values[place] = _LETTERS[values[place]]
        for place, _ in layout.texts:
            text = str(values[place], "ascii")
            if not text.isprintable():
                raise ValueError
            values[place] = text.rstrip(" ")
    except (KeyError, ValueError):
        raise _not_text(layout, values, place) from None
    if layout.appendage is Appendage.NEVER:
        if len(data) > size:
            raise OuchError(
                f"{len(data) - size} bytes after {layout.name}", offset=size, hint="it has no appendage"
            )
        return layout.kind._make(values)
    if len(data) == size and layout.appendage is Appendage.ALWAYS:
        raise OuchError(
            f"{layout.name} ends before its appendage", offset=size,
            hint="the 2-byte length of the appendage is there even when it is 0",
        )  # fmt: skip
    values.append(decode_options(data, size))
    return layout.kind._make(values)


def encode(message: Message) -> bytes:
    """The bytes of a message. Raises OuchError, with the field's offset, for what the wire cannot hold."""
    layout = BY_CLASS.get(type(message))
    if layout is None:
        raise OuchError(f"{type(message).__name__} is no message of OUCH", offset=0)
    values: list[Any] = list(message)
    options = values.pop() if layout.appendage is not Appendage.NEVER else None
    if options is None and layout.appendage is Appendage.ALWAYS:
        raise OuchError(f"{layout.name} without an appendage", offset=layout.size, hint="options=() is empty")
    try:
        for place in layout.letters:
            values[place] = values[place].encode("ascii")
            if values[place] not in _LETTERS:
                raise ValueError
        for place, width in layout.texts:
            text = values[place]
            if len(text) > width or not text.isprintable() or text.endswith(" "):
                raise ValueError
            values[place] = text.encode("ascii").ljust(width)
    except (AttributeError, ValueError):
        raise _cannot_hold(layout, values, place) from None
    packer = layout.packer
    data = bytearray(packer.size)
    try:
        packer.pack_into(data, 0, *values)
    except struct.error:
        raise _cannot_hold(layout, values, _first_bad(layout, values)) from None
    data[0] = ord(layout.letter)
    return bytes(data) + (encode_options(options) if options is not None else b"")


def _first_bad(layout: Layout, values: list[Any]) -> int:
    for place, form in enumerate(layout.formats):
        try:
            struct.pack(">" + ("s" if form == "c" else form), values[place])
        except struct.error:
            return place
    return 0


def _no_such_type(data: bytes, layouts: dict[int, Layout], sender: str) -> OuchError:
    known = ", ".join(layout.letter for layout in layouts.values())
    what = f"no message of the {sender} has the type {data[:1]!r}" if data else "a message of no bytes"
    return OuchError(what, offset=0, hint=f"the {sender} sends {known}")


def _not_text(layout: Layout, values: list[Any], place: int) -> OuchError:
    raw = values[place]
    bad = next((i for i, code in enumerate(raw) if not 0x20 <= code < 0x7F), 0)
    return OuchError(
        f"{layout.fields[place]} of {layout.name} is {raw!r}", offset=layout.offsets[place] + bad,
        hint="texts are printable ASCII, padded with spaces",
    )  # fmt: skip


def _cannot_hold(layout: Layout, values: list[Any], place: int) -> OuchError:
    form = layout.formats[place]
    if form == "c":
        hint = "one letter"
    elif form.endswith("s"):
        hint = f"up to {form[:-1]} ASCII characters, no space at the end"
    else:
        hint = f"a whole number of {struct.calcsize(form)} bytes"
    return OuchError(
        f"{layout.fields[place]} of {layout.name} is {values[place]!r}",
        offset=layout.offsets[place],
        hint=hint,
    )
