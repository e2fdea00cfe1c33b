"""From the tree of a predicate to a program of the machine (`trident_query.where.kernel`).

Truth has three values, the machine's registers two. So negations move inwards to the tests first: a test is
true where its values are there and compare as it says, its negation where they are there and do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Query
from trident_core.dtypes import EVENT
from trident_core.session import Session
from trident_query.where.fields import FIELDS
from trident_query.where.kernel import WORDS, Op
from trident_query.where.reference import evaluate, text_of
from trident_query.where.symbols import SymbolTables
from trident_query.where.tree import (
    Between,
    Binary,
    Call,
    Column,
    In,
    IsNull,
    Literal,
    Matches,
    Node,
    Unary,
    walk,
)  # fmt: skip

_NEGATED: Final = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_CODES: Final = {"=": 0, "!=": 1, "<": 2, "<=": 3}
_SIGNS: Final = {"+": Op.ADD, "-": Op.SUB, "*": Op.MUL}
_TRUE: Final = 0  # the truth register that always holds


@dataclass(frozen=True, slots=True)
class Term:
    """A value in an integer register, or a constant; at a scale of decimals; valid where all `valid` are."""

    register: int = -1
    constant: Fraction | None = None
    scale: int = 0
    unsigned: bool = False
    valid: tuple[int, ...] = ()
    column: str = ""
    price: bool = False


@dataclass(slots=True)
class Code:
    """A program. `outputs`: the truth registers of the predicates, in order."""

    instructions: list[tuple[int, ...]] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    tables: list[NDArray[np.uint8]] = field(default_factory=list)
    locates: list[NDArray[np.uint8]] = field(default_factory=list)
    far: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # of those tables
    memories: list[str] = field(default_factory=list)  # the pattern of each
    outputs: list[int] = field(default_factory=list)
    registers: int = 0
    truths: int = 1
    slots: int = 0

    def array(self) -> NDArray[np.int64]:
        return np.array(self.instructions, np.int64).reshape(-1, WORDS)


class Lowering:
    """Makes one program of any number of predicates over events; common fields are loaded once."""

    def __init__(self, session: Session, texts: Query) -> None:
        self.session, self.texts = session, texts
        self.symbols = SymbolTables(session.directory)
        self.code = Code(far=self.symbols.far)
        self._loaded: dict[Any, int] = {}
        self._tests: dict[Any, int] = {}
        self.scale = max(session.price_decimals, 8)

    def add(self, tree: Node) -> int:
        """The truth register of one more predicate."""
        self.code.outputs.append(self.condition(tree, True))
        return self.code.outputs[-1]

    # --- conditions

    def condition(self, node: Node, wanted: bool) -> int:
        """The truth register that says where the node is true (or false, if not wanted)."""
        if isinstance(node, Literal):
            return self.truth(node.value is not None and bool(node.value) is wanted)
        if isinstance(node, Unary):
            return self.condition(node.item, not wanted)
        if isinstance(node, Binary) and node.sign in ("and", "or"):
            op = Op.AND if (node.sign == "and") is wanted else Op.OR
            return self.join(op, [self.condition(node.left, wanted), self.condition(node.right, wanted)])
        if isinstance(node, Binary):
            return self.test(node.sign if wanted else _NEGATED[node.sign], node.left, node.right)
        if isinstance(node, Between):
            low = self.test(">=" if wanted else "<", node.item, node.low)
            high = self.test("<=" if wanted else ">", node.item, node.high)
            return self.join(Op.AND if wanted else Op.OR, [low, high])
        if isinstance(node, In):
            return self._in(node, wanted)
        if isinstance(node, Matches):
            return self._matches(node, wanted)
        assert isinstance(node, IsNull)
        there = self.join(Op.AND, list(self.term(node.item).valid))
        return self.emit_truth(Op.NOT, there) if wanted else there

    def _in(self, node: In, wanted: bool) -> int:
        column = _base(node.item)
        if all(isinstance(option, Literal) for option in node.options) and column in (
            "type",
            "side",
            "symbol",
        ):
            options = {str(option.value) for option in node.options if isinstance(option, Literal)}
            return self._texts(node.item, lambda text: (text in options) is wanted)
        tests = [self.test("=" if wanted else "!=", node.item, option) for option in node.options]
        return self.join(Op.OR if wanted else Op.AND, tests)

    def _matches(self, node: Matches, wanted: bool) -> int:
        program = self.texts.compile(node.pattern)

        def holds(text: str) -> bool:
            raw = text.encode("utf-8", "surrogateescape")
            return bool(program.match(np.array([raw], dtype=f"S{max(len(raw), 1)}"))[0]) is wanted

        if isinstance(node.item, Literal):
            return self.truth(holds(str(node.item.value)))
        if _base(node.item) in ("type", "side", "symbol"):
            return self._texts(node.item, holds)
        term = self.term(node.item)
        there = self.join(Op.AND, list(term.valid))
        if node.pattern not in self.code.memories:
            self.code.memories.append(node.pattern)
        found = self.emit_truth(Op.MEMO, term.register, there, self.code.memories.index(node.pattern))
        return found if wanted else self.join(Op.AND, [there, self.emit_truth(Op.NOT, found)])

    def _texts(self, item: Node, holds: Callable[[str], bool]) -> int:
        """A test on a letter or a symbol, as a table of all that it can be."""
        term = self.term(item)
        if term.column == "symbol":
            test = self._known(holds)
        else:
            letters = [text_of(bytes([value])) for value in range(256)]
            test = self.table(np.array([holds(letter) for letter in letters], np.uint8), term.register)
        return self.join(Op.AND, [test, *term.valid])

    def test(self, sign: str, left: Node, right: Node) -> int:
        """A comparison, true where both sides are there and compare so."""
        if _is_text(left) or _is_text(right):
            return self._text_test(sign, left, right)
        a, b = self.term(left), self.term(right)
        if a.constant is not None:
            if b.constant is not None:
                return self.truth(_holds(sign, a.constant, b.constant))
            a, b, sign = b, a, _MIRRORED[sign]
        valid = [*a.valid, *b.valid]
        if b.constant is not None:
            return self.join(Op.AND, [self._with_constant(sign, a, b.constant * 10**a.scale), *valid])
        a, b = self._alike(a, b)
        return self.join(Op.AND, [self.compare(sign, a.register, b.register, a.unsigned), *valid])

    def _text_test(self, sign: str, left: Node, right: Node) -> int:
        if isinstance(left, Literal):
            left, right = right, left
        if isinstance(left, Literal) and isinstance(right, Literal):
            return self.truth((left.value == right.value) is (sign == "="))
        if isinstance(right, Literal) and _base(left) in ("type", "side", "symbol"):
            wanted = str(right.value)
            return self._texts(left, lambda text: (text == wanted) is (sign == "="))
        a = self.term(left)
        if isinstance(right, Literal):
            raw = str(right.value).encode("utf-8", "surrogateescape")
            if len(raw) > (4 if a.column == "mpid" else 8) or raw.endswith((b" ", b"\0")):
                return self.join(Op.AND, [self.truth(sign == "!="), *a.valid])
            packed = Fraction(int.from_bytes(raw.ljust(8, b"\0"), "little"))
            return self.join(Op.AND, [self._with_constant(sign, a, packed), *a.valid])
        b = self.term(right)
        return self.join(Op.AND, [self.compare(sign, a.register, b.register, True), *a.valid, *b.valid])

    def _with_constant(self, sign: str, term: Term, value: Fraction) -> int:
        """The value moves to the next integer that means the same; one that no register holds is decided."""
        low, high = (0, (1 << 64) - 1) if term.unsigned else (-(1 << 63) + 1, (1 << 63) - 1)
        if sign in ("=", "!=") and (value.denominator != 1 or not low <= value <= high):
            return self.truth(sign == "!=")
        bound = math.ceil(value) if sign in ("<", ">=") else math.floor(value)
        if bound < low:
            return self.truth(sign in (">", ">="))
        if bound > high:
            return self.truth(sign in ("<", "<="))
        constant = self.emit(Op.CONST, 0, 0, bound - (1 << 64) if bound >= 1 << 63 else bound)
        return self.compare(sign, term.register, constant, term.unsigned)

    def compare(self, sign: str, a: int, b: int, unsigned: bool) -> int:
        if sign in (">", ">="):
            a, b, sign = b, a, _MIRRORED[sign]
        return self.emit_truth(Op.CMP, a, b, _CODES[sign] + (4 if unsigned else 0))

    # --- values

    def term(self, node: Node) -> Term:
        if not any(isinstance(each, (Column, Call)) for each in walk(node)):
            value = evaluate(node, _nothing)
            return (
                Term(constant=Fraction(value))
                if value is not None
                else Term(constant=Fraction(0), valid=(self.truth(False),))
            )
        if isinstance(node, Column):
            return self._column(node.name)
        if isinstance(node, Call):
            return self._prev(self.term(node.arguments[0]))
        if isinstance(node, Unary):
            return self._arithmetic("-", Term(constant=Fraction(0)), self.term(node.item))
        assert isinstance(node, Binary)
        return self._arithmetic(node.sign, self.term(node.left), self.term(node.right))

    def _column(self, name: str) -> Term:
        column, types = FIELDS[name].column, FIELDS[name].types
        register = self.load(column)
        valid = () if types is None else (self._of_types(types),)
        if name == "price":
            flags, common = self.load("flags"), 10 ** (self.scale - self.session.price_decimals)
            packed = common << 32 | 10 ** (self.scale - 8)
            value = self.once(("price",), lambda: self.emit(Op.PRICE, register, flags, packed))
            return Term(value, scale=self.scale, valid=valid, column=name, price=True)
        if column == "qty":
            return Term(register, unsigned=True, valid=valid, column=name)
        if name == "mpid":
            value = self.once(("mpid",), lambda: self.emit(Op.PADDED, self.load("mpid"), 4))
            return Term(value, unsigned=True, valid=valid, column=name)
        if name == "aux":
            value = self.once(("aux",), lambda: self.emit(Op.PADDED, register, 8))
            return Term(value, unsigned=True, column=name)
        if name == "side":
            return Term(register, valid=(self._where("side", np.arange(256) != 0),), column=name)
        if name == "symbol":
            return Term(register, valid=(self._symbols(),), column=name)
        return Term(register, unsigned=EVENT[column] == np.uint64, column=name)

    def _symbols(self) -> int:
        return self.once("known", lambda: self._known(lambda symbol: True))

    def _known(self, holds: Callable[[str], bool]) -> int:
        self.code.locates.append(self.symbols.table(holds))
        return self.emit_truth(Op.LOCATES, self.load("locate"), 0, len(self.code.locates) - 1)

    def _prev(self, term: Term) -> Term:
        """The same of the row before; null in a key's first row."""
        if term.constant is not None:
            term = Term(self.emit(Op.CONST, 0, 0, int(term.constant)), valid=term.valid)
        there = self.join(Op.AND, list(term.valid))
        value = self.emit(Op.PREV, term.register, 0, self.code.slots)
        before = self.emit_truth(Op.PREV_TRUTH, there, 0, self.code.slots + 1)
        self.code.slots += 2
        return Term(value, None, term.scale, term.unsigned, (before,), term.column, term.price)

    def _arithmetic(self, sign: str, a: Term, b: Term) -> Term:
        a, b = self._integral(a, b if sign != "*" else None), self._integral(b, a if sign != "*" else None)
        valid = tuple(dict.fromkeys(a.valid + b.valid))
        where = self.join(Op.AND, list(valid))
        a, b = self._signed(a), self._signed(b)
        scale = a.scale + b.scale
        if sign != "*":
            a, b = self._scaled(a, b)
            scale = a.scale
        if sign == "%":
            nonzero = self._truth_register()
            return Term(
                self.emit(Op.REM, a.register, b.register, nonzero), None, scale, valid=(*valid, nonzero)
            )
        return Term(self.emit(_SIGNS[sign], a.register, b.register, where), None, scale, valid=valid)

    def _integral(self, term: Term, other: Term | None) -> Term:
        """A constant as a register, at the scale that makes it an integer."""
        if term.constant is None:
            return term
        scale = 0
        while (term.constant * 10**scale).denominator != 1:
            scale += 1
        value = int(term.constant * 10**scale)
        return Term(self.emit(Op.CONST, 0, 0, max(min(value, (1 << 63) - 1), 1 - (1 << 63))), scale=scale,
                    valid=term.valid, price=abs(value) >= (1 << 63) - 1)  # fmt: skip

    def _alike(self, a: Term, b: Term) -> tuple[Term, Term]:
        """Two terms that can be compared: one scale, one signedness."""
        if a.scale == b.scale and a.unsigned == b.unsigned:
            return a, b
        return self._scaled(self._signed(a), self._signed(b))

    def _scaled(self, a: Term, b: Term) -> tuple[Term, Term]:
        if a.scale == b.scale:
            return a, b
        if a.scale > b.scale:
            second, first = self._scaled(b, a)
            return first, second
        where = self.join(Op.AND, list(a.valid))
        value = self.emit(Op.SCALE, a.register, where, 10 ** (b.scale - a.scale))
        return Term(value, None, b.scale, False, a.valid), b

    def _signed(self, term: Term) -> Term:
        if not (term.unsigned or term.price):
            return term
        where = self.join(Op.AND, list(term.valid))
        self.code.instructions.append((Op.SIGNED, term.register, where, 0, 0 if term.unsigned else 1))
        return Term(term.register, None, term.scale, False, term.valid, term.column)

    # --- instructions

    def load(self, column: str) -> int:
        if column not in self.code.fields:
            self.code.fields.append(column)
        return self.once(column, lambda: self.emit(Op.LOAD, self.code.fields.index(column)))

    def once(self, key: Any, make: Callable[[], int]) -> int:
        if key not in self._loaded:
            self._loaded[key] = make()
        return self._loaded[key]

    def emit(self, op: Op, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.code.registers += 1
        self.code.instructions.append((op, self.code.registers - 1, a, b, c))
        return self.code.registers - 1

    def _truth_register(self) -> int:
        self.code.truths += 1
        return self.code.truths - 1

    def emit_truth(self, op: Op, a: int = 0, b: int = 0, c: int = 0) -> int:
        key = (op, a, b, c)
        if op not in (Op.PREV_TRUTH,) and key in self._tests:
            return self._tests[key]
        register = self._truth_register()
        self.code.instructions.append((op, register, a, b, c))
        self._tests[key] = register
        return register

    def truth(self, value: bool) -> int:
        return _TRUE if value else self.emit_truth(Op.TRUTH, 0, 0, 0)

    def join(self, op: Op, truths: list[int]) -> int:
        made = truths[0] if truths else _TRUE
        for each in truths[1:]:
            if op is Op.AND and _TRUE in (made, each):
                made = max(made, each)
            elif made != each:
                made = self.emit_truth(op, made, each)
        return made

    def table(self, values: NDArray[np.uint8], register: int) -> int:
        for index, known in enumerate(self.code.tables):
            if np.array_equal(known, values):
                return self.emit_truth(Op.LUT, register, 0, index)
        self.code.tables.append(values)
        return self.emit_truth(Op.LUT, register, 0, len(self.code.tables) - 1)

    def _where(self, column: str, values: NDArray[np.bool_]) -> int:
        return self.table(values.astype(np.uint8), self.load(column))

    def _of_types(self, types: bytes) -> int:
        return self._where("type", np.isin(np.arange(256), list(types)))


def _nothing(leaf: Column | Call) -> Any:
    raise AssertionError(leaf)


def _holds(sign: str, left: Fraction, right: Fraction) -> bool:
    return {"=": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
            ">": left > right, ">=": left >= right}[sign]  # fmt: skip


def _base(node: Node) -> str:
    """The column that a value is of, through prev."""
    while isinstance(node, Call):
        node = node.arguments[0]
    return node.name if isinstance(node, Column) else ""


def _is_text(node: Node) -> bool:
    if isinstance(node, Literal):
        return isinstance(node.value, str)
    return _base(node) in ("type", "side", "symbol", "mpid", "aux")
