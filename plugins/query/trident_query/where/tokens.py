"""Words of the expression language: numbers, times, durations, texts, names, signs; each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from trident_core.errors import PatternError, UsageError
from trident_core.session import parse_time
from trident_query.where.tree import Unit

#: Longest text of an expression, in characters.
TEXT_MAX: Final = 16_384

#: Units of durations in nanoseconds.
DURATIONS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000,
    "min": 60_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip

_TIME: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,9})?)?")
_NUMBER: Final = re.compile(r"\d[\d_]*(\.\d+)?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGN: Final = re.compile(r"<=|>=|!=|<>|==|!~|\|\||\{-|-\}|[-+*/%=<>~(),.|?{}\[\]^$:;!]")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: name, quoted (a name in double quotes), sign, literal or end. `at`, `end`: in characters."""

    kind: str
    text: str
    at: int
    end: int
    value: int | Fraction | str | None = None
    unit: Unit = Unit.NULL


def error(text: str, at: int, message: str, hint: str = "") -> PatternError:
    """An error at a character of a text; positions are told in bytes."""
    return PatternError(message, pattern=text, position=len(text[:at].encode("utf-8", "replace")), hint=hint)


def parse_duration(text: str) -> int:
    """'5ms', '1.5s' or '250us' as nanoseconds. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([a-zµ]+)\s*", text)
    factor = DURATIONS.get(match[2]) if match else None
    value = Fraction(match[1].replace("_", "")) * factor if match and factor else Fraction(-1)
    if value < 0 or value.denominator != 1 or value >= 1 << 62:
        raise UsageError(f"not a duration: {text!r}", hint=f"a number and one of {', '.join(DURATIONS)}")
    return int(value)


def tokenize(text: str) -> list[Token]:
    """All tokens and an end. Raises PatternError at the first character that starts none."""
    if len(text) > TEXT_MAX:
        raise error(text, TEXT_MAX, f"longer than {TEXT_MAX:,} characters, the cap on expressions")
    tokens: list[Token] = []
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return [*tokens, Token("end", "", at, at)]
        tokens.append(_token(text, at))
        at = tokens[-1].end


def _token(text: str, at: int) -> Token:
    char = text[at]
    if char in "'\"":
        return _quoted(text, at)
    if char.isdecimal():
        return _numeric(text, at)
    for kind, shape in (("name", _NAME), ("sign", _SIGN)):
        if found := shape.match(text, at):
            return Token(kind, found[0], at, found.end())
    raise error(text, at, f"{char!r} starts nothing here", "texts stand in 'single quotes'")


def _quoted(text: str, at: int) -> Token:
    """'text', in which '' is a quote; "name" likewise."""
    quote, end, parts = text[at], at + 1, []
    while True:
        stop = text.find(quote, end)
        if stop < 0:
            raise error(text, at, "the quote is not closed", f"add {quote}")
        parts.append(text[end:stop])
        end = stop + 1
        if text[end : end + 1] != quote:
            break
        parts.append(quote)
        end += 1
    value = "".join(parts)
    if quote == '"':
        return Token("quoted", value, at, end, value, Unit.TEXT)
    return Token("literal", text[at:end], at, end, value, Unit.TEXT)


def _numeric(text: str, at: int) -> Token:
    if found := _TIME.match(text, at):
        try:
            return Token("literal", found[0], at, found.end(), parse_time(found[0]), Unit.TIME)
        except UsageError as wrong:
            raise error(text, at, wrong.message, wrong.hint) from None
    found = _NUMBER.match(text, at)
    if found is None:  # a digit of another script
        raise error(text, at, f"{text[at]!r} starts nothing here")
    number = Fraction(found[0].replace("_", ""))
    end = found.end()
    unit = re.compile(r"[A-Za-zµ]+").match(text, end)
    if unit is None:
        value = int(number) if number.denominator == 1 and "." not in found[0] else number
        return Token("literal", found[0], at, end, value, Unit.NUMBER)
    factor = DURATIONS.get(unit[0])
    if factor is None:
        raise error(text, end, f"no unit {unit[0]!r}", f"units are {', '.join(DURATIONS)}")
    length = number * factor
    if length.denominator != 1:
        raise error(text, at, "a duration finer than a nanosecond")
    return Token("literal", text[at : unit.end()], at, unit.end(), int(length), Unit.DURATION)
