"""Straight-line LLVM IR with vectors of bytes: masks, and the sets of bytes that make them.

A mask is a vector whose bytes are 0x00 or 0xFF, one byte for each lane (a record, or a position of a text).
`TRUE` and `FALSE` stand for constant masks, and fold away; equal expressions are written once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from trident_core.errors import TridentError
from trident_query.ast import ALL_BYTES, ByteSet
from trident_query.llvm.host import Host

TRUE: Final = "true"
FALSE: Final = "false"

#: Operations of one circuit. Code generation takes about 40 µs for each; more than so many are refused.
OPERATIONS_MAX: Final = 6_000


class RefusedError(TridentError):
    """A pattern, or a column, that this form of code is not made for. `cap` names the limit."""

    exit_code = 2

    def __init__(self, message: str, *, cap: str) -> None:
        super().__init__(message, hint="dfa or glushkov may take it")
        self.cap = cap


class Code:
    """Lines of one basic block. Operations return the name of their value; equal ones share it."""

    def __init__(self, host: Host, operations_max: int = OPERATIONS_MAX, letter: str = "v") -> None:
        self.host, self.operations_max, self.letter = host, operations_max, letter
        self.vector = f"<{host.width} x i8>"
        self.lines: list[str] = []
        self._known: dict[str, str] = {}
        self._classes: dict[tuple[str, ByteSet], str] = {}

    # --- operations -----------------------------------------------------------------------------------------

    def value(self, expression: str) -> str:
        """The value of an expression without side effects."""
        known = self._known.get(expression)
        if known is None:
            known = self._known[expression] = f"%{self.letter}{len(self._known)}"
            self.lines.append(f"  {known} = {expression}")
            if len(self.lines) > self.operations_max:
                raise RefusedError(
                    f"the circuit has more than {self.operations_max:,} operations", cap="operations"
                )
        return known

    def constant(self, values: Iterable[int]) -> str:
        return f"<{', '.join(f'i8 {value}' for value in values)}>"

    def binary(self, operation: str, left: str, right: str) -> str:
        return self.value(f"{operation} {self.vector} {left}, {right}")

    def with_byte(self, operation: str, left: str, byte: int) -> str:
        return self.binary(operation, left, f"splat (i8 {byte})")

    def compare(self, relation: str, left: str, byte: int) -> str:
        found = self.value(f"icmp {relation} {self.vector} {left}, splat (i8 {byte})")
        return self.value(f"sext <{self.host.width} x i1> {found} to {self.vector}")

    def both(self, left: str, right: str) -> str:
        if FALSE in (left, right):
            return FALSE
        if left == TRUE or left == right:
            return right
        return left if right == TRUE else self.binary("and", *sorted((left, right)))

    def either(self, left: str, right: str) -> str:
        if TRUE in (left, right):
            return TRUE
        if left == FALSE or left == right:
            return right
        return left if right == FALSE else self.binary("or", *sorted((left, right)))

    def differ(self, left: str, right: str) -> str:
        if left == right:
            return FALSE
        if left in (TRUE, FALSE):
            left, right = right, left
        if right in (TRUE, FALSE):
            return left if right == FALSE else self.inverse(left)
        return self.binary("xor", *sorted((left, right)))

    def inverse(self, mask: str) -> str:
        if mask in (TRUE, FALSE):
            return FALSE if mask == TRUE else TRUE
        return self.with_byte("xor", mask, -1)

    def as_bits(self, mask: str) -> str:
        """One bit of an integer for each lane, lane 0 lowest."""
        width = self.host.width
        if mask in (TRUE, FALSE):
            return "-1" if mask == TRUE else "0"
        negative = self.value(f"icmp slt {self.vector} {mask}, zeroinitializer")
        return self.value(f"bitcast <{width} x i1> {negative} to i{width}")

    # --- sets of bytes --------------------------------------------------------------------------------------

    def member(self, plane: str, values: ByteSet) -> str:
        """Which bytes of `plane` are of the set."""
        if not values or values == ALL_BYTES:
            return TRUE if values else FALSE
        key = plane, values
        if key not in self._classes:
            self._classes[key] = self._member(plane, values)
        return self._classes[key]

    def _member(self, plane: str, values: ByteSet) -> str:
        """By the cheapest of: ranges, ranges of what is left out, either with one bit ignored, a table."""
        cost, negated, bit, rows = _form(values)
        if self.host.shuffles and rows is not None and cost > 6:
            return self._by_table(plane, rows)
        chosen = ALL_BYTES - values if negated else values
        if bit:
            plane = self.with_byte("or", plane, bit)
            mask = self._by_ranges(plane, chosen & _WITH_BIT[bit], _WITH_BIT[bit])
        else:
            mask = self._by_ranges(plane, chosen, ALL_BYTES)
        return self.inverse(mask) if negated else mask

    def _by_ranges(self, plane: str, values: ByteSet, domain: ByteSet) -> str:
        mask = FALSE
        for low, high in _ranges(values, domain):
            if low == high:
                mask = self.either(mask, self.compare("eq", plane, low))
            else:
                moved = self.with_byte("sub", plane, low) if low else plane
                mask = self.either(mask, self.compare("ule", moved, high - low))
        return mask

    def nibbles(self, plane: str) -> tuple[str, str]:
        """The lower and the upper halves of the bytes."""
        words = f"<{self.host.width // 2} x i16>"
        as_words = self.value(f"bitcast {self.vector} {plane} to {words}")
        moved = self.value(f"lshr {words} {as_words}, splat (i16 4)")
        as_bytes = self.value(f"bitcast {words} {moved} to {self.vector}")
        return self.with_byte("and", plane, 15), self.with_byte("and", as_bytes, 15)

    def look_up(self, table: list[int], nibbles: str) -> str:
        """table[n] for each nibble. Only where the host shuffles."""
        width = self.host.width
        name = "@llvm.x86.avx2.pshuf.b" if width == 32 else "@llvm.x86.ssse3.pshuf.b.128"
        spread = self.constant(table * (width // 16))
        return self.value(f"call {self.vector} {name}({self.vector} {spread}, {self.vector} {nibbles})")

    def _by_table(self, plane: str, rows: tuple[list[int], list[int]]) -> str:
        low, high = self.nibbles(plane)
        bits = self.binary("and", self.look_up(rows[0], low), self.look_up(rows[1], high))
        return self.compare("ne", bits, 0)


def declarations(host: Host) -> str:
    """What IR with `look_up` and population counts must declare."""
    vector = f"<{host.width} x i8>"
    lines = [f"declare i{host.width} @llvm.ctpop.i{host.width}(i{host.width})"]
    if host.shuffles:
        name = "@llvm.x86.avx2.pshuf.b" if host.width == 32 else "@llvm.x86.ssse3.pshuf.b.128"
        lines.append(f"declare {vector} {name}({vector}, {vector})")
    return "\n".join(lines)


_WITH_BIT: Final = {
    bit: frozenset(value for value in ALL_BYTES if value & bit) for bit in (1 << n for n in range(8))
}


@lru_cache(maxsize=4_096)
def _form(values: ByteSet) -> tuple[int, bool, int, tuple[list[int], list[int]] | None]:
    """(operations, whether of what is left out, the bit to ignore or 0, tables or None) for a set."""
    choices = []
    for negated in (False, True):
        chosen = ALL_BYTES - values if negated else values
        choices.append((_cost(chosen, ALL_BYTES) + negated, negated, 0))
        for bit, domain in _WITH_BIT.items():
            if all(value ^ bit in chosen for value in chosen):
                choices.append((_cost(chosen & domain, domain) + negated + 1, negated, bit))
    return *min(choices), _rows(values)


def _ranges(values: ByteSet, domain: ByteSet) -> list[tuple[int, int]]:
    """The fewest ranges that hold `values` and, of the rest, only bytes outside `domain`."""
    ranges: list[tuple[int, int]] = []
    joined = False  # no byte of the domain since the last range is left out
    for value in sorted(domain):
        if value not in values:
            joined = False
        elif joined:
            ranges[-1] = ranges[-1][0], value
        else:
            ranges.append((value, value))
            joined = True
    return ranges


def _cost(values: ByteSet, domain: ByteSet) -> int:
    return sum(2 if low == high else 4 if low else 3 for low, high in _ranges(values, domain)) - 1


def _rows(values: ByteSet) -> tuple[list[int], list[int]] | None:
    """Tables for the lower and upper nibble, with a common bit where the byte is of the set.

    None where the upper nibbles have more than eight different rows.
    """
    rows = [frozenset(low for low in range(16) if high << 4 | low in values) for high in range(16)]
    kinds = sorted({row for row in rows if row}, key=sorted)
    if len(kinds) > 8:
        return None
    lower = [sum(1 << bit for bit, row in enumerate(kinds) if low in row) for low in range(16)]
    upper = [1 << kinds.index(row) if row else 0 for row in rows]
    return lower, upper
