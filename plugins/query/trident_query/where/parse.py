"""The parser of expressions: predicates, conditions of pattern variables, measures.

or      := and ("or" and)*            and  := not ("and" not)*          not := "not" not | test
test    := sum (("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") sum
           | ["not"] "in" "(" sum ("," sum)* ")" | ["not"] "between" sum "and" sum
           | ("~" | "!~") text | "is" ["not"] "null")?
sum     := product (("+" | "-" | "||") product)*   product := factor (("*" | "/" | "%") factor)*
factor  := "-" factor | literal | "(" or ")" | ["running" | "final"] name "(" arguments ")"
           | [variable "."] column
"""

from __future__ import annotations

from typing import Final

from trident_core.errors import PatternError
from trident_query.where.tokens import Token, error, tokenize
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
    Unit,
)

#: Deepest nesting of parentheses, `not`s and calls.
DEPTH_MAX: Final = 64
#: Most signs between values (and, or, +, = …) in one expression.
SIGNS_MAX: Final = 128
#: Most options of one `in`.
OPTIONS_MAX: Final = 4_096

_COMPARISONS: Final = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_WORDS: Final = frozenset({"and", "or", "not", "in", "between", "is", "null", "true", "false", "like"})


def parse_expression(text: str) -> Node:
    """An expression as a tree. Raises PatternError with the byte offset of what cannot stand there."""
    parser = Parser(text)
    node = parser.expression()
    parser.expect_end()
    return node


class Parser:
    """A cursor over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0
        self.signs = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.index]

    def error(self, message: str, hint: str = "", token: Token | None = None) -> PatternError:
        return error(self.text, (token or self.here).at, message, hint)

    def binary(self, sign: str, left: Node, right: Node, token: Token) -> Node:
        self.signs += 1
        if self.signs > SIGNS_MAX:
            raise self.error(f"more than {SIGNS_MAX} signs, the cap on expressions", token=token)
        return Binary(sign, left, right, self.place(token))

    def place(self, token: Token) -> int:
        return len(self.text[: token.at].encode("utf-8", "replace"))

    def take(self) -> Token:
        token = self.here
        self.index += token.kind != "end"
        return token

    def sees(self, text: str) -> bool:
        token = self.here
        return token.text.lower() == text and token.kind in ("sign", "name")

    def accept(self, text: str) -> Token | None:
        return self.take() if self.sees(text) else None

    def expect(self, text: str) -> Token:
        if not self.sees(text):
            raise self.error(f"{text!r} is missing here")
        return self.take()

    def expect_end(self) -> None:
        if self.here.kind != "end":
            raise self.error(f"{self.here.text!r} does not belong here", "join conditions by and, or")

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.error(f"nested deeper than {DEPTH_MAX}, the cap on expressions")
        node = self._and()
        while sign := self.accept("or"):
            node = self.binary("or", node, self._and(), sign)
        self.depth -= 1
        return node

    def _and(self) -> Node:
        node = self._not()
        while sign := self.accept("and"):
            node = self.binary("and", node, self._not(), sign)
        return node

    def _not(self) -> Node:
        signs = []
        while sign := self.accept("not"):
            signs.append(sign)
            if len(signs) > DEPTH_MAX:
                raise self.error(f"nested deeper than {DEPTH_MAX}, the cap on expressions")
        node = self._test()
        for sign in reversed(signs):
            node = Unary("not", node, self.place(sign))
        return node

    def _test(self) -> Node:
        item = self._sum()
        token = self.here
        at = self.place(token)
        if token.kind == "sign" and token.text in _COMPARISONS:
            self.take()
            node: Node = self.binary(_COMPARISONS[token.text], item, self._sum(), token)
            if self.here.kind == "sign" and self.here.text in _COMPARISONS:
                raise self.error("comparisons do not chain", "write a < b and b < c, or between")
            return node
        if self.accept("is"):
            negated = self.accept("not")
            self.expect("null")
            return Unary("not", IsNull(item, at), at) if negated else IsNull(item, at)
        if self.sees("like"):
            raise self.error("like is not in the language", "use ~ with a pattern: symbol ~ '^A'")
        if token.text in ("~", "!~"):
            self.take()
            node = self._pattern(item, at)
            return Unary("not", node, at) if token.text == "!~" else node
        negated = self.accept("not")
        if self.accept("in"):
            node = In(item, self._options(), at)
        elif self.accept("between"):
            low = self._sum()
            self.expect("and")
            node = Between(item, low, self._sum(), at)
        elif negated:
            raise self.error("after not comes in or between here", "to negate a test write not (…)")
        else:
            return item
        return Unary("not", node, at) if negated else node

    def _pattern(self, item: Node, at: int) -> Node:
        token = self.here
        if token.unit is not Unit.TEXT:
            raise self.error("a pattern in quotes is missing here", "as in symbol ~ '^A'")
        self.take()
        return Matches(item, str(token.value), at)

    def _options(self) -> tuple[Node, ...]:
        self.expect("(")
        options = [self._sum()]
        while self.accept(","):
            if len(options) == OPTIONS_MAX:
                raise self.error(f"more than {OPTIONS_MAX:,} options, the cap on one in")
            options.append(self._sum())
        self.expect(")")
        return tuple(options)

    def _sum(self) -> Node:
        node = self._product()
        while self.here.kind == "sign" and self.here.text in ("+", "-", "||"):
            sign = self.take()
            node = self.binary(sign.text, node, self._product(), sign)
        return node

    def _product(self) -> Node:
        node = self._factor()
        while self.here.kind == "sign" and self.here.text in ("*", "/", "%"):
            sign = self.take()
            node = self.binary(sign.text, node, self._factor(), sign)
        return node

    def _factor(self) -> Node:
        token = self.here
        at = self.place(token)
        if token.text == "-" and token.kind == "sign":
            self.take()
            self.depth += 1
            if self.depth > DEPTH_MAX:
                raise self.error(f"nested deeper than {DEPTH_MAX}, the cap on expressions")
            item = self._factor()
            self.depth -= 1
            return Unary("-", item, at)
        if token.kind == "literal":
            self.take()
            return Literal(token.value, token.unit, at)
        if self.accept("("):
            node = self.expression()
            self.expect(")")
            return node
        if token.kind in ("name", "quoted"):
            return self._name()
        if token.kind == "end":
            raise self.error("a value is missing at the end")
        raise self.error(f"{token.text!r} cannot start a value")

    def _name(self) -> Node:
        token = self.take()
        at = self.place(token)
        word = token.text.lower()
        if token.kind == "name" and word in _WORDS:
            if word in ("true", "false"):
                return Literal(word == "true", Unit.TRUTH, at)
            if word == "null":
                return Literal(None, Unit.NULL, at)
            raise self.error(f"{token.text!r} cannot start a value", token=token)
        if word in ("running", "final") and self.here.kind == "name":
            call = self._name()
            if not isinstance(call, Call):
                raise self.error(f"{word} stands before a function", token=token)
            return Call(call.name, call.arguments, word, call.star, call.variable, at)
        if self.accept("("):
            return self._call(word, at)
        if self.accept("."):
            column = self.take()
            if column.kind not in ("name", "quoted"):
                raise self.error("a column is missing after the dot", token=column)
            return Column(_folded(column), token.text, at)
        return Column(token.text if token.kind == "quoted" else word, None, at)

    def _call(self, name: str, at: int) -> Node:
        if self.accept(")"):
            return Call(name, at=at)
        self.depth += 1
        star, variable = self._star()
        if star:
            self.expect(")")
            self.depth -= 1
            return Call(name, star=True, variable=variable, at=at)
        arguments = [self.expression()]
        while self.accept(","):
            arguments.append(self.expression())
        self.expect(")")
        self.depth -= 1
        return Call(name, tuple(arguments), at=at)

    def _star(self) -> tuple[bool, str | None]:
        """Is the argument `*` or `X.*`?"""
        if self.accept("*"):
            return True, None
        ahead = self.tokens[self.index : self.index + 3]
        if [t.text for t in ahead[1:]] == [".", "*"] and ahead[0].kind in ("name", "quoted"):
            self.index += 3
            return True, ahead[0].text
        return False, None


def _folded(token: Token) -> str:
    return token.text if token.kind == "quoted" else token.text.lower()
