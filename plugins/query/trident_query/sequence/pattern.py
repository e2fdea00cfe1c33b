"""Row patterns: the parser and its small trees. One grammar for the native form and for SQL:2016's.

    alternation := chain ("|" chain)*          chain := quantified*
    quantified  := item [("*" | "+" | "?" | "{" [n] "," [m] "}" | "{" n "}") ["?"]]
    item        := variable | "." | "(" alternation ")" | "()" | "^" | "$" | "{-" alternation "-}"
                 | "PERMUTE" "(" alternation ("," alternation)* ")"

Quantifiers are unfolded while they are read, so that every matcher sees the same seven kinds of node:
`x{2,3}` is `x x (x|)`, `x?` is `(x|)`, lazy `x??` is `(|x)`; what comes first in a `Choice` is preferred. In
a `Star`, an iteration that takes no row ends the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Final

from trident_core.errors import PatternError
from trident_query.where.tokens import Token, error, tokenize

#: Caps; errors name them.
REPEAT_MAX: Final = 256
PERMUTE_MAX: Final = 5
NODES_MAX: Final = 2_048
NEST_MAX: Final = 48
VARIABLES_MAX: Final = 30

#: The variable that every row satisfies, written `.`.
ANY: Final = "."


@dataclass(frozen=True, slots=True)
class Empty:
    size: int = 1


@dataclass(frozen=True, slots=True)
class Variable:
    """One row that satisfies the variable's condition. `hidden`: inside {- -}, left out of ALL ROWS."""

    name: str
    hidden: bool = False
    at: int = 0
    size: int = 1


@dataclass(frozen=True, slots=True)
class Start:
    """No row, at the start of a partition."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class End:
    """No row, at the end of a partition."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class Chain:
    items: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The first that leads to a match."""

    items: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Star:
    """Any number of times; as often as possible, or if `lazy` as seldom."""

    item: Node
    lazy: bool
    size: int


Node = Empty | Variable | Start | End | Chain | Choice | Star


def variables(node: Node) -> list[str]:
    """The variables of a pattern, in the order of their first place."""
    found: dict[str, None] = {}
    pending = [node]
    while pending:
        here = pending.pop()
        if isinstance(here, Variable):
            found[here.name] = None
        elif isinstance(here, (Chain, Choice)):
            pending.extend(reversed(here.items))
        elif isinstance(here, Star):
            pending.append(here.item)
    return list(found)


def has_hidden(node: Node) -> bool:
    if isinstance(node, Variable):
        return node.hidden
    if isinstance(node, (Chain, Choice)):
        return any(has_hidden(item) for item in node.items)
    return isinstance(node, Star) and has_hidden(node.item)


def parse_pattern(text: str, *, fold: bool = False) -> Node:
    """A pattern as a tree; with `fold`, variables without double quotes become upper case, as in SQL.

    Raises PatternError with the byte offset of what cannot stand there, or of what exceeds a cap.
    """
    reader = _Reader(text, fold)
    node = reader.alternation()
    if reader.here.kind != "end":
        raise reader.error(f"{reader.here.text!r} does not belong here")
    if len(found := variables(node)) > VARIABLES_MAX:
        raise reader.error(f"{len(found)} variables, more than {VARIABLES_MAX}, the cap on patterns")
    return node


class _Reader:
    def __init__(self, text: str, fold: bool) -> None:
        self.text, self.fold = text, fold
        self.tokens = tokenize(text)
        self.index = self.depth = self.hidden = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.index]

    def error(self, message: str, hint: str = "", token: Token | None = None) -> PatternError:
        return error(self.text, (token or self.here).at, message, hint)

    def take(self) -> Token:
        token = self.here
        self.index += token.kind != "end"
        return token

    def accept(self, sign: str) -> Token | None:
        return self.take() if self.here.kind == "sign" and self.here.text == sign else None

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.error(f"{sign!r} is missing here")

    def alternation(self) -> Node:
        self.depth += 1
        if self.depth > NEST_MAX:
            raise self.error(f"nested deeper than {NEST_MAX}, the cap on patterns")
        items = [self._chain()]
        while self.here.text in ("|", "||") and self.here.kind == "sign":
            double = self.take().text == "||"
            items += [Empty(), self._chain()] if double else [self._chain()]
        self.depth -= 1
        return self.sized(choice(items))

    def _chain(self) -> Node:
        items = []
        while self.here.kind in ("name", "quoted") or (
            self.here.kind == "sign" and self.here.text in ("(", "^", "$", "{-", ".")
        ):
            items.append(self._quantified())
            self.sized(chain(items))
        return chain(items)

    def _quantified(self) -> Node:
        start = self.here
        node = self._item()
        token = self.here
        if token.kind == "sign" and token.text in ("*", "+", "?", "{"):
            low, high = self._bounds()
            node = self.repeated(node, low, high, lazy=self.accept("?") is not None, token=start)
            if self.here.kind == "sign" and self.here.text in ("*", "+", "?", "{"):
                raise self.error("two quantifiers in a row", "put the first into parentheses")
        return node

    def _bounds(self) -> tuple[int, int | None]:
        token = self.take()
        if token.text != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[token.text]
        low = self._count()
        if self.accept("}"):
            if low is None:
                raise self.error("a number is missing between the braces", token=token)
            return low, low
        self.expect(",")
        high = self._count()
        self.expect("}")
        if high is not None and high < (low or 0):
            raise self.error(f"{{{low},{high}}} is reversed", token=token)
        return low or 0, high

    def _count(self) -> int | None:
        token = self.here
        if token.kind != "literal":
            return None
        if not isinstance(token.value, int):
            raise self.error("a count is a whole number")
        if token.value > REPEAT_MAX:
            raise self.error(f"{token.value} repeats, more than {REPEAT_MAX}, the cap on patterns")
        self.take()
        return token.value

    def repeated(self, node: Node, low: int, high: int | None, *, lazy: bool, token: Token) -> Node:
        if node.size * max(low, high or 0, 1) > NODES_MAX:
            raise self.error(f"a repeat of more than {NODES_MAX:,} nodes, the cap on patterns", token=token)
        items = [node] * low
        if high is None:
            return chain([*items, Star(node, lazy, node.size + 1)])
        tail: Node = Empty()
        for _ in range(high - low):
            longer = chain([node, tail])
            tail = choice([Empty(), longer] if lazy else [longer, Empty()])
        return chain([*items, tail])

    def _item(self) -> Node:
        token = self.take()
        if token.kind in ("name", "quoted"):
            if token.kind == "name" and token.text.upper() == "PERMUTE" and self.here.text == "(":
                return self._permuted(token)
            name = (
                token.text.upper() if self.fold and token.kind == "name" else str(token.value or token.text)
            )
            return Variable(name, self.hidden > 0, len(self.text[: token.at].encode("utf-8", "replace")))
        if token.text == ".":
            return Variable(ANY, self.hidden > 0, len(self.text[: token.at].encode("utf-8", "replace")))
        if token.text == "^":
            return Start()
        if token.text == "$":
            return End()
        closing = ")" if token.text == "(" else "-}"
        self.hidden += closing == "-}"
        node = self.alternation()
        self.expect(closing)
        self.hidden -= closing == "-}"
        return node

    def _permuted(self, token: Token) -> Node:
        """The items in any order; the order in which they are written is preferred, then the next one."""
        self.expect("(")
        items = [self.alternation()]
        while self.accept(","):
            items.append(self.alternation())
        self.expect(")")
        if len(items) > PERMUTE_MAX:
            raise self.error(f"PERMUTE of more than {PERMUTE_MAX}, the cap on patterns", token=token)
        return self.sized(choice([chain(list(order)) for order in permutations(items)]), token)

    def sized(self, node: Node, token: Token | None = None) -> Node:
        if node.size > NODES_MAX:
            raise self.error(f"more than {NODES_MAX:,} nodes, the cap on patterns", token=token)
        return node


def chain(items: list[Node]) -> Node:
    kept = tuple(item for item in items if not isinstance(item, Empty))
    if len(kept) < 2:
        return kept[0] if kept else Empty()
    return Chain(kept, sum(item.size for item in kept) + 1)


def choice(items: list[Node]) -> Node:
    return items[0] if len(items) == 1 else Choice(tuple(items), sum(item.size for item in items) + 1)
