"""The machine code that matches a column of fixed-width values: a loop over blocks, around a circuit.

    i64 match(u8* data, i64 count, i64 stride, u8* bits, u8* bools)

Value i is the `width` bytes at data + i * stride. Returns how many match; if `bits` is not null, bit i of it
(of the byte i / 8, lowest first) says whether value i does, and what is left of the last byte is 0; if
`bools` is not null, its byte i is 0 or 1. Nothing outside the values is read, nothing behind bit or byte
count - 1 (rounded up to whole bytes) is written. The last values, fewer than a block has, are copied to the
stack first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trident_query.glushkov import Glushkov
from trident_query.llvm.circuit import Circuit
from trident_query.llvm.code import FALSE, TRUE, Code, declarations
from trident_query.llvm.host import Host
from trident_query.llvm.planes import Planes

NAME: Final = "match"

_FRAME: Final = """
define i64 @match(ptr %data, i64 %count, i64 %stride, ptr %bits, ptr %bools) {{
entry:
  %rest = alloca [{rest} x i8], align 32
  %out = alloca [{block} x i8], align 32
  %has_bits = icmp ne ptr %bits, null
  %has_bools = icmp ne ptr %bools, null
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %until, %counted ]
  %total = phi i64 [ 0, %entry ], [ %more, %counted ]
  %left = sub i64 %count, %i
  %offset = mul i64 %i, %stride
  %at = getelementptr i8, ptr %data, i64 %offset
  %whole = icmp sge i64 %left, {block}
  br i1 %whole, label %block, label %last
last:
  %none = icmp sle i64 %left, 0
  br i1 %none, label %done, label %copy
copy:
  %c = phi i64 [ 0, %last ], [ %c_next, %copied ]
  %c_offset = mul i64 %c, %stride
  %c_from = getelementptr i8, ptr %at, i64 %c_offset
  %c_to_offset = mul i64 %c, {width}
  %c_to = getelementptr i8, ptr %rest, i64 %c_to_offset
  br label %byte
byte:
  %b = phi i64 [ 0, %copy ], [ %b_next, %byte ]
  %b_from = getelementptr i8, ptr %c_from, i64 %b
  %b_to = getelementptr i8, ptr %c_to, i64 %b
  %b_value = load i8, ptr %b_from
  store i8 %b_value, ptr %b_to
  %b_next = add i64 %b, 1
  %b_more = icmp slt i64 %b_next, {width}
  br i1 %b_more, label %byte, label %copied
copied:
  %c_next = add i64 %c, 1
  %c_more = icmp slt i64 %c_next, %left
  br i1 %c_more, label %copy, label %block
block:
  %from = phi ptr [ %at, %next ], [ %rest, %copied ]
  %step = phi i64 [ %stride, %next ], [ {width}, %copied ]
  %here = phi i64 [ {block}, %next ], [ %left, %copied ]
{body}
  %spare = sub i64 {block}, %here
  %spare_bits = trunc i64 %spare to {bits}
  %valid = lshr {bits} -1, %spare_bits
  %hits = and {bits} {found}, %valid
  %ones = call {bits} @llvm.ctpop.{bits}({bits} %hits)
  %ones_64 = zext {bits} %ones to i64
  %more = add i64 %total, %ones_64
  %until = add i64 %i, %here
  br i1 %has_bits, label %put_bits, label %no_bits
put_bits:
  %bits_offset = lshr i64 %i, 3
  %bits_at = getelementptr i8, ptr %bits, i64 %bits_offset
  br i1 %whole, label %bits_whole, label %bits_rest
bits_whole:
  store {bits} %hits, ptr %bits_at, align 1
  br label %no_bits
bits_rest:
  %w = phi i64 [ 0, %put_bits ], [ %w_next, %bits_rest ]
  %w_left = phi {bits} [ %hits, %put_bits ], [ %w_moved, %bits_rest ]
  %w_at = getelementptr i8, ptr %bits_at, i64 %w
  %w_byte = trunc {bits} %w_left to i8
  store i8 %w_byte, ptr %w_at
  %w_moved = lshr {bits} %w_left, 8
  %w_next = add i64 %w, 1
  %w_bits = shl i64 %w_next, 3
  %w_more = icmp slt i64 %w_bits, %here
  br i1 %w_more, label %bits_rest, label %no_bits
no_bits:
  br i1 %has_bools, label %put_bools, label %counted
put_bools:
  %bools_at = getelementptr i8, ptr %bools, i64 %i
  br i1 %whole, label %bools_whole, label %bools_few
bools_whole:
  store {vector} {bytes}, ptr %bools_at, align 1
  br label %counted
bools_few:
  store {vector} {bytes}, ptr %out, align 32
  br label %bools_rest
bools_rest:
  %o = phi i64 [ 0, %bools_few ], [ %o_next, %bools_rest ]
  %o_from = getelementptr i8, ptr %out, i64 %o
  %o_to = getelementptr i8, ptr %bools_at, i64 %o
  %o_value = load i8, ptr %o_from
  store i8 %o_value, ptr %o_to
  %o_next = add i64 %o, 1
  %o_more = icmp slt i64 %o_next, %here
  br i1 %o_more, label %bools_rest, label %counted
counted:
  br i1 %whole, label %next, label %done
done:
  %result = phi i64 [ %total, %last ], [ %more, %counted ]
  ret i64 %result
}}
{declarations}
"""


@dataclass(frozen=True, slots=True)
class Match:
    """LLVM IR of `match`, and how many operations a block takes, loads and shuffles included."""

    ir: str
    operations: int


def match_code(automaton: Glushkov, width: int, host: Host, *, contiguous: bool, raw: bool) -> Match:
    """`match` for values of `width` bytes, at least 1. Raises RefusedError."""
    code = Code(host)
    planes = Planes(code, width, contiguous=contiguous)
    mask = Circuit(code, automaton, width, planes.plane, raw=raw).found()
    ordered = mask if mask in (TRUE, FALSE) else planes.in_order(mask)
    ones = (
        f"splat (i8 {int(ordered == TRUE)})"
        if ordered in (TRUE, FALSE)
        else code.with_byte("and", ordered, 1)
    )
    return _framed(code, width, code.as_bits(ordered), ones)


def set_code(automata: Sequence[Glushkov], width: int, host: Host, *, contiguous: bool, raw: bool) -> Match:
    """The same for up to 8 patterns: bit k of byte i of `bools` says whether the k-th occurs in value i, and
    values with any are counted. Planes, and what circuits have in common, are made once."""
    code = Code(host)
    planes = Planes(code, width, contiguous=contiguous)
    always, some = 0, FALSE
    for number, automaton in enumerate(automata):
        mask = Circuit(code, automaton, width, planes.plane, raw=raw).found()
        if mask == TRUE:
            always |= 1 << number
        elif mask != FALSE:
            bit = code.with_byte("and", mask, 1 << number)
            some = bit if some == FALSE else code.binary("or", some, bit)
    if some == FALSE:
        return _framed(code, width, code.as_bits(TRUE if always else FALSE), f"splat (i8 {always})")
    octets = planes.in_order(some)
    if always:
        return _framed(code, width, code.as_bits(TRUE), code.with_byte("or", octets, always))
    return _framed(code, width, code.as_bits(code.inverse(code.compare("eq", octets, 0))), octets)


def _framed(code: Code, width: int, found: str, ones: str) -> Match:
    """The loop around a block's code: its bits, and its bytes for `bools`."""
    host = code.host
    ir = _FRAME.format(
        body="\n".join(code.lines),
        block=host.width,
        rest=host.width * width,
        width=width,
        vector=code.vector,
        bits=f"i{host.width}",
        found=found,
        bytes=ones,
        declarations=declarations(host),
    )
    return Match(ir, len(code.lines))
