"""The machine code that finds where, in a text, a match may begin.

    i64 candidates(u8* data, i64 begin, i64 end, i64* out, i64 room, i64* reached)

Tests the positions from `begin` on, in whole blocks before `end`, and writes those that pass, ascending, to
`out` (or only counts them, if it is null); stops early, at a block, where `room` may not do. Returns how
many; `reached` is the first position not tested. Reads up to `Scan.reach` bytes behind `end`, no more.

Two tests. The first, of a window of up to three bytes, decides for a block of several vectors whether there
is anything: either by comparing bytes, alternative by alternative, or, where that takes more operations, by
tables of nibbles with a bit for each of eight groups of alternatives (the "Teddy" of Hyperscan: X. Wang et
al., "Hyperscan: A Fast Multi-pattern Regex Matcher for Modern CPUs", NSDI 2019). The second, of the whole
prefix, decides where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from trident_query.llvm.code import FALSE, TRUE, Code, RefusedError, declarations
from trident_query.llvm.host import Host
from trident_query.llvm.windows import PREFIX_MAX, RATE_MAX, Prefix, Row, Window, best_window, buckets

NAME: Final = "candidates"

#: Vectors of a block.
VECTORS: Final = 4
#: Operations of the first test, for one vector, up to which it compares; the tables take about as many.
COMPARE_MAX: Final = 28
#: Operations of the second test, for one vector.
PREFIX_OPERATIONS_MAX: Final = 600
#: How often a block may pass the first test for that test to be worth its time.
_PASS_MAX: Final = 0.5

_FRAME: Final = """
define i64 @candidates(ptr %data, i64 %begin, i64 %end, ptr %out, i64 %room, ptr %reached) {{
entry:
  %masks = alloca [{vectors} x i{width}], align 32
  %listed = icmp ne ptr %out, null
  %stop = sub i64 %end, {block}
  br label %next
next:
  %at = phi i64 [ %begin, %entry ], [ %until, %advance ]
  %total = phi i64 [ 0, %entry ], [ %more, %advance ]
  %inside = icmp sle i64 %at, %stop
  %full = add i64 %total, {block}
  %fits = icmp sle i64 %full, %room
  %counts = xor i1 %listed, true
  %roomy = or i1 %fits, %counts
  %go = and i1 %inside, %roomy
  br i1 %go, label %block, label %done
block:
  %from = getelementptr i8, ptr %data, i64 %at
{first}
  br i1 {any}, label %look, label %advance
look:
  br label %vector
vector:
  %v = phi i64 [ 0, %look ], [ %v_next, %vector_done ]
  %found = phi i64 [ %total, %look ], [ %found_all, %vector_done ]
  %v_start = mul i64 %v, {width}
  %v_from = getelementptr i8, ptr %from, i64 %v_start
  %v_mask_at = getelementptr i{width}, ptr %masks, i64 %v
{second}
  %v_at = add i64 %at, %v_start
  %ones = call i{width} @llvm.ctpop.i{width}(i{width} {bits})
  %ones_64 = zext i{width} %ones to i64
  %found_all = add i64 %found, %ones_64
  %some = icmp ne i{width} {bits}, 0
  %list = and i1 %some, %listed
  br i1 %list, label %bit, label %vector_done
bit:
  %left = phi i{width} [ {bits}, %vector ], [ %left_next, %bit ]
  %slot = phi i64 [ %found, %vector ], [ %slot_next, %bit ]
  %lowest = call i{width} @llvm.cttz.i{width}(i{width} %left, i1 true)
  %lowest_64 = zext i{width} %lowest to i64
  %position = add i64 %v_at, %lowest_64
  %slot_at = getelementptr i64, ptr %out, i64 %slot
  store i64 %position, ptr %slot_at
  %slot_next = add i64 %slot, 1
  %less = sub i{width} %left, 1
  %left_next = and i{width} %left, %less
  %bit_more = icmp ne i{width} %left_next, 0
  br i1 %bit_more, label %bit, label %vector_done
vector_done:
  %v_next = add i64 %v, 1
  %v_more = icmp slt i64 %v_next, {vectors}
  br i1 %v_more, label %vector, label %looked
looked:
  br label %advance
advance:
  %more = phi i64 [ %total, %block ], [ %found_all, %looked ]
  %until = add i64 %at, {block}
  br label %next
done:
  store i64 %at, ptr %reached
  ret i64 %total
}}
declare i{width} @llvm.cttz.i{width}(i{width}, i1)
{declarations}
"""


@dataclass(slots=True)
class Scan:
    """Code that finds candidates, and what it does. `exact`: each candidate begins a match, of `shortest`
    bytes, and each match is one. `block`: positions tested at once. `reach`: bytes read behind `end`."""

    ir: str
    block: int
    reach: int
    shortest: int
    exact: bool
    window: Window
    how: str

    def facts(self) -> dict[str, Any]:
        """For the cache of objects, and for `explain`."""
        return {
            "block": self.block,
            "reach": self.reach,
            "shortest": self.shortest,
            "exact": self.exact,
            "window": [self.window.first, self.window.count],
            "rate": self.window.rate,
            "how": self.how,
        }


def scan_code(found: Prefix, host: Host) -> Scan:
    """The code for a pattern with these prefixes. Raises RefusedError ("rate") where too much would pass."""
    window = best_window(found)
    length = min(found.shortest, PREFIX_MAX)
    block = VECTORS * host.width
    second = Code(host, letter="s")
    try:
        second.operations_max = PREFIX_OPERATIONS_MAX
        planes = [_load(second, "%v_from", distance) for distance in range(length)]
        mask = found.mask(second, planes, 0)
        rate = found.rate(0, length)
    except RefusedError:
        second, mask, rate = Code(host, letter="s"), "", window.rate
    exact = found.exact and bool(mask)
    if rate > RATE_MAX and not exact:
        raise RefusedError(
            f"about one position in {max(1, round(1 / rate))} may begin a match; a scan for windows is for "
            f"one in {round(1 / RATE_MAX)} or fewer",
            cap="rate",
        )
    first = Code(host, letter="f")
    how = "compares"
    alone = bool(mask) and window.rate * block > _PASS_MAX
    if alone:
        any_found, how = TRUE, "compares the whole prefix"
    else:
        any_found, how = _first_test(first, found, window, keep=not mask)
    if mask:
        bits = second.as_bits(mask)
    else:
        bits = second.value(f"load i{host.width}, ptr %v_mask_at")
    ir = _FRAME.format(
        first="\n".join(first.lines),
        second="\n".join(second.lines),
        any=any_found,
        bits=bits,
        width=host.width,
        vectors=VECTORS,
        block=block,
        declarations=declarations(host),
    )
    return Scan(ir, block, length, found.shortest, exact, window, how)


def _load(code: Code, base: str, distance: int) -> str:
    at = code.value(f"getelementptr i8, ptr {base}, i64 {distance}")
    return code.value(f"load {code.vector}, ptr {at}, align 1")


def _first_test(code: Code, found: Prefix, window: Window, *, keep: bool) -> tuple[str, str]:
    """(whether anything in the block passes, how it is tested); `keep`: where, for each vector, in %masks."""
    width = code.host.width
    trial = Code(code.host)
    found.mask(trial, [f"%p{distance}" for distance in range(window.count)], window.first)
    tables = len(trial.lines) > COMPARE_MAX and code.host.shuffles
    groups = buckets(found.rows(window.first, window.count)) if tables else []
    anything = FALSE
    for vector in range(VECTORS):
        start = vector * width + window.first
        planes = [_load(code, "%from", start + offset) for offset in range(window.count)]
        mask = _by_buckets(code, planes, groups) if tables else found.mask(code, planes, window.first)
        if keep:
            at = code.value(f"getelementptr i{width}, ptr %masks, i64 {vector}")
            code.lines.append(f"  store i{width} {code.as_bits(mask)}, ptr {at}")
        anything = code.either(anything, mask)
    if anything in (TRUE, FALSE):
        return anything, "compares"
    any_bit = code.value(f"icmp ne i{width} {code.as_bits(anything)}, 0")
    return any_bit, f"tables of {len(groups)} groups" if tables else "compares"


def _by_buckets(code: Code, planes: list[str], groups: list[Row]) -> str:
    """Where a row of some group may begin: a bit for each group, by the nibbles of each byte."""
    bits = ""
    for offset, plane in enumerate(planes):
        low_table, high_table = [0] * 16, [0] * 16
        for bit, row in enumerate(groups):
            for low in {byte & 15 for byte in row[offset]}:
                low_table[low] |= 1 << bit
            for high in {byte >> 4 for byte in row[offset]}:
                high_table[high] |= 1 << bit
        low_nibbles, high_nibbles = code.nibbles(plane)
        here = code.binary(
            "and", code.look_up(low_table, low_nibbles), code.look_up(high_table, high_nibbles)
        )
        bits = code.binary("and", bits, here) if bits else here
    return code.compare("ne", bits, 0)
