"""The dialect by hand: what each construct matches, and what is refused where (docs/dialect.md)."""

from __future__ import annotations

import pytest

from trident_core.errors import PatternError, UsageError
from trident_query.ast import EMPTY, OneOf, Repeat
from trident_query.nfa import build
from trident_query.parse import DEPTH_MAX, PATTERN_BYTES_MAX, REPEAT_MAX, STATES_MAX, parse
from trident_query.reference import ReferenceQuery

# pattern, flags, text, spans
SPANS = [
    # literals and escapes
    ("AAPL", "", b"xAAPLAAPL", [(1, 5), (5, 9)]),
    (r"\t\n\r\f\v\a\0", "", b"\t\n\r\f\v\x07\0", [(0, 7)]),
    (r"\x41\x{42}\x{043}\0101", "", b"ABC\x081", [(0, 5)]),
    (r"\0\08\012", "", b"\0\x008\n", [(0, 4)]),
    (r"\.\*\+\?\(\)\[\]\{\}\|\^\$\\\-\/\ \_\#", "", b".*+?()[]{}|^$\\-/ _#", [(0, 19)]),
    ("}]", "", b"a}]", [(1, 3)]),
    ("é", "", "née".encode(), [(1, 3)]),
    ("é+", "", "ééx".encode(), [(0, 4)]),
    ("\udcff", "", b"a\xff", [(1, 2)]),
    # any byte
    (".", "", b"\xff\n\0", [(0, 1), (2, 3)]),
    (".", "s", b"\xff\n\0", [(0, 1), (1, 2), (2, 3)]),
    ("(?s:.).", "", b"\nab", [(0, 2)]),
    # classes
    ("[a-c]+", "", b"xabcd", [(1, 4)]),
    ("[^a-c]+", "", b"ab\nxc", [(2, 4)]),
    ("[]a]+", "", b"[]a", [(1, 3)]),
    ("[^]a]+", "", b"]b[a", [(1, 3)]),
    ("[a^-]+", "", b"^-ab", [(0, 3)]),
    ("[-a]+", "", b"-a+", [(0, 2)]),
    ("[--/]+", "", b",-./0", [(1, 4)]),
    ("[+--]+", "", b"*+,-.", [(1, 4)]),
    ("[a-c-e]+", "", b"c-ed", [(0, 3)]),
    (r"[\d\-x]+", "", b"1-x,", [(0, 3)]),
    (r"[\D]+", "", b"12ab", [(2, 4)]),
    (r"[\x80-\xFF]+", "", b"a\x7f\x80\xff", [(2, 4)]),
    ("[[a]+", "", b"x[a", [(1, 3)]),
    ("[[:digit:][:upper:]x]+", "", b"ab1Ax", [(2, 5)]),
    ("[[:^alnum:]]+", "", b"a1, b", [(2, 4)]),
    ("[^[:space:]]+", "", b" \v\fa ", [(3, 4)]),
    ("[[:punct:]]+", "", b"a!~_1", [(1, 4)]),
    ("[[:xdigit:]]+", "", b"gfF0G", [(1, 4)]),
    (r"[^\s\S]", "", b"abc", []),
    (r"\w+", "", b"-aZ_9-", [(1, 5)]),
    (r"\W+", "", "aé".encode(), [(1, 3)]),
    (r"\s+", "", b"a \t\n\v\f\r\xa0", [(1, 7)]),
    # anchors
    ("^a", "", b"aa\na", [(0, 1)]),
    ("^a", "m", b"aa\na", [(0, 1), (3, 4)]),
    ("a$", "", b"a\na\n", []),
    ("a$", "m", b"a\na\n", [(0, 1), (2, 3)]),
    ("a$", "m", b"a\r\n", []),
    (r"\Aa|a\z", "m", b"a\na\na", [(0, 1), (4, 5)]),
    ("^", "m", b"a\n", [(0, 0), (2, 2)]),
    ("$", "m", b"a\n", [(1, 1), (2, 2)]),
    ("^*a", "", b"ba", [(1, 2)]),
    (r"\bab\b", "", b"ab abc ab", [(0, 2), (7, 9)]),
    (r"\B", "", b"ab", [(1, 1)]),
    (r"\B", "", b"", [(0, 0)]),
    (r"\b", "", b"", []),
    (r"\b", "", "é".encode(), []),
    (r"a\b{2}", "", b"a-", [(0, 1)]),
    # groups, alternation
    ("(a)(?:b)(?P<n>c)(?<m>d)", "", b"abcd", [(0, 4)]),
    ("a|ab|abc", "", b"abcab", [(0, 3), (3, 5)]),
    ("abcd|c", "", b"abccd", [(2, 3), (3, 4)]),
    ("(|a)b", "", b"abb", [(0, 2), (2, 3)]),
    ("()", "", b"a", [(0, 0), (1, 1)]),
    ("", "", b"ab", [(0, 0), (1, 1), (2, 2)]),
    ("a*", "", b"baac", [(0, 0), (1, 3), (4, 4)]),
    # repeats
    ("a{2}", "", b"aaaaa", [(0, 2), (2, 4)]),
    ("a{2,}", "", b"abaaa", [(2, 5)]),
    ("a{0,2}b", "", b"aaab", [(1, 4)]),
    ("a{0}b", "", b"ab", [(1, 2)]),
    ("(?:ab?){2,3}", "", b"abaabaa", [(0, 5), (5, 7)]),
    ("a+?b??c*?", "", b"aabcc", [(0, 5)]),
    ("(?:a*)*", "", b"aa", [(0, 2)]),
    ("(?:|a)+", "", b"aaa", [(0, 3)]),
    ("(?:a|b*)*c", "", b"abbac", [(0, 5)]),
    # flags
    ("aBc", "i", b"AbC", [(0, 3)]),
    ("[a-b]", "i", b"B", [(0, 1)]),
    ("[^a]", "i", b"aAb", [(2, 3)]),
    ("[[:^upper:]]", "i", b"aA1", [(2, 3)]),
    (r"\x61", "i", b"A", [(0, 1)]),
    ("é", "i", "É".encode(), []),
    ("k", "i", "\u212a".encode(), []),  # KELVIN SIGN: only ASCII letters fold
    ("(?i)a(?-i)b", "", b"Ab AB", [(0, 2)]),
    ("(?i:a)b", "", b"Ab aB", [(0, 2)]),
    ("(a(?i)b|c)d", "", b"aBd Cd CD", [(0, 3), (4, 6)]),
    ("(?s-i:.)A", "i", b"\nA\na", [(0, 2), (2, 4)]),
    ("(?im)^A", "", b"b\na", [(2, 3)]),
    (" a b # a comment\n [ #] \\ ", "x", b"ab# ", [(0, 4)]),
    ("a +", "x", b"aa", [(0, 2)]),
    ("(?x: a b) c", "", b"ab c", [(0, 4)]),
    ("(?x)a#b", "", b"ab", [(0, 1)]),
]


@pytest.mark.parametrize(("pattern", "flags", "text", "spans"), SPANS)
def test_spans(
    engine: ReferenceQuery, pattern: str, flags: str, text: bytes, spans: list[tuple[int, int]]
) -> None:
    assert engine.compile(pattern, flags=flags).spans(text) == spans


# pattern, byte offset, what the message names
REFUSED = [
    ("a(?=b)", 1, "look-ahead"),
    ("a(?!b)", 1, "negative look-ahead"),
    ("(?<=a)b", 0, "look-behind"),
    ("(?<!a)b", 0, "negative look-behind"),
    (r"(a)\1", 3, "back-reference"),
    (r"[\1]", 1, "back-reference"),
    (r"(?P<n>a)\k<n>", 8, "back-reference"),
    (r"(a)\g1", 3, "back-reference"),
    ("(?P<n>a)(?P=n)", 8, "named back-reference"),
    ("(?>a)", 0, "atomic"),
    ("ab*+", 3, "possessive"),
    ("a{2}+", 4, "possessive"),
    ("a?+", 2, "possessive"),
    ("a++", 2, "possessive"),
    ("(a)?(?(1)b|c)", 4, "conditional"),
    ("a(?R)?", 1, "recursion"),
    ("(a)(?1)", 3, "recursion"),
    ("(a)(?-1)", 3, "recursion"),
    ("(?&n)", 0, "recursion"),
    ("(?P>n)", 0, "recursion"),
    ("(?|a)", 0, "branch-reset"),
    ("(?#a)", 0, "comment"),
    ("(?^:a)", 0, "flag reset"),
    ("(?C1)", 0, "callout"),
    ("(?[a])", 0, "extended class"),
    ("(*ACCEPT)", 0, "verb"),
    (r"\pL", 0, "Unicode property"),
    (r"[a\P{L}]", 2, "Unicode property"),
    (r"é\C", 2, "single-byte"),
    (r"\Ga", 0, "last match"),
    (r"a\Kb", 1, "match start"),
    (r"\R", 0, "line-break"),
    (r"\X", 0, "grapheme"),
    (r"\N", 0, "not-newline"),
    (r"\h", 0, "horizontal"),
    (r"\Qa\E", 0, "quoting"),
    (r"a\Z", 1, "end anchor"),
    (r"\e", 0, "escape-character"),
    (r"\cA", 0, "control"),
    (r"\u0041", 0, "Unicode escape"),
    (r"\<a", 0, "word anchor"),
    (r"\y", 0, "no escape"),
    (r"\é", 0, "no escape"),
    ("a\\", 1, "backslash"),
    ("[a\\", 2, "backslash"),
    (r"\x4", 0, "hexadecimal"),
    (r"\xGG", 0, "hexadecimal"),
    (r"\x{}", 0, "hexadecimal"),
    (r"\x{41", 0, "hexadecimal"),
    (r"\x{100}", 0, "one byte"),
    ("[é]", 1, "2 bytes"),
    ("[a-é]", 3, "2 bytes"),
    ("[z-a]", 1, "range z-a is reversed"),
    (r"[a-\d]", 1, "range"),
    (r"[\d-z]", 1, "range"),
    ("[a-[:digit:]]", 1, "range"),
    ("[ab", 0, "class is not closed"),
    ("a[]", 1, "class is not closed"),
    ("[a-", 0, "class is not closed"),
    ("[", 0, "class is not closed"),
    ("[[:foo:]]", 1, "POSIX class"),
    ("[[:alpha]]", 1, "POSIX class"),
    ("[:alpha:]", 0, "POSIX class"),
    ("[[.a.]]", 1, "collating"),
    ("[[=a=]]", 1, "collating"),
    ("[a&&b]", 2, "set operation"),
    ("[a-z--b]", 4, "set operation"),
    ("[a~~b]", 2, "set operation"),
    (r"[\b]", 1, "assertion"),
    (r"[\B]", 1, "assertion"),
    ("(a", 0, "group is not closed"),
    ("((a)", 0, "group is not closed"),
    ("a)", 1, "no group to close"),
    ("*a", 0, "nothing to repeat"),
    ("a|*", 2, "nothing to repeat"),
    ("(+)", 1, "nothing to repeat"),
    ("(?i)?", 4, "nothing to repeat"),
    ("a(?i)*", 5, "nothing to repeat"),
    ("{2}", 0, "nothing to repeat"),
    ("a**", 2, "repeats a quantifier"),
    ("a{2}{3}", 4, "repeats a quantifier"),
    ("a???", 3, "repeats a quantifier"),
    ("a{", 1, "does not start a repeat"),
    ("a{,3}", 1, "does not start a repeat"),
    ("a{2, 3}", 1, "does not start a repeat"),
    ("a{x}", 1, "does not start a repeat"),
    ("a{3,2}", 1, "reversed"),
    ("a{1001}", 1, "1,000"),
    ("a{1,1001}", 1, "1,000"),
    ("a{1001,}", 1, "1,000"),
    ("a{" + "9" * 10_000 + "}", 1, "1,000"),
    ("(?)", 0, "no flag"),
    ("(?-)", 0, "no flag"),
    ("(?i-)", 0, "no flag"),
    ("(?-:a)", 0, "no flag"),
    ("é(?u)a", 2, "unknown flag 'u'"),
    ("(?U)a", 0, "unknown flag 'U'"),
    ("(?i", 0, "not a group"),
    ("(?P<1>a)", 0, "group name"),
    ("(?<>a)", 0, "group name"),
    ("(?P<n", 0, "group name"),
    ("(?<n>a)(?<n>b)", 7, "twice"),
    ("a\ud800", 1, "surrogate"),
]


@pytest.mark.parametrize(("pattern", "position", "names"), REFUSED)
def test_refused_with_position_and_name(
    engine: ReferenceQuery, pattern: str, position: int, names: str
) -> None:
    with pytest.raises(PatternError) as caught:
        engine.compile(pattern)
    error = caught.value
    assert error.position == position
    assert names in error.reason
    assert error.pattern == pattern
    named = any(words in error.reason for words in ("is not in the dialect", "unknown flag", "cap '"))
    assert bool(error.construct) is named
    assert error.construct in error.reason
    assert "\n" not in str(error)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    "pattern", [pattern for pattern, _, names in REFUSED if "look" in names or "back" in names]
)
def test_refusals_of_other_dialects_say_what_to_do(engine: ReferenceQuery, pattern: str) -> None:
    with pytest.raises(PatternError) as caught:
        engine.compile(pattern)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("a(?!b)", "negative look-ahead"),
        (r"(a)\1", "back-reference"),
        (r"(a)\k<n>", "back-reference"),
        (r"\pL", "Unicode property"),
        ("a++", "possessive quantifier"),
        ("[a&&b]", "set operation"),
        ("(?U)a", "unknown flag"),
        ("a{1001}", "repeat"),
    ],
)
def test_what_is_refused_has_a_name(engine: ReferenceQuery, pattern: str, construct: str) -> None:
    with pytest.raises(PatternError) as caught:
        engine.compile(pattern)
    assert caught.value.construct == construct


def test_carets_stand_under_the_construct() -> None:
    for pattern, line, column in [("né(?=b)", "né(?=b)", 2), ("(?x)a\n  b(?=c) # x\nd", "  b(?=c) # x", 3)]:
        with pytest.raises(PatternError) as caught:
            parse(pattern)
        shown, caret = caught.value.caret().split("\n")
        assert shown == line
        assert caret.index("^") == column


def test_flags_and_pattern_must_be_of_the_dialect(engine: ReferenceQuery) -> None:
    with pytest.raises(UsageError, match="unknown flag 'g'"):
        engine.compile("a", flags="ig")
    with pytest.raises(UsageError, match="bytes"):
        engine.compile(b"a")  # type: ignore[arg-type]


# --- caps ---------------------------------------------------------------------------------------------------


def test_repeat_cap() -> None:
    assert parse(f"a{{{REPEAT_MAX}}}").size == REPEAT_MAX
    with pytest.raises(PatternError):
        parse(f"a{{{REPEAT_MAX + 1}}}")


def test_depth_cap() -> None:
    assert parse("(" * DEPTH_MAX + "a" + ")" * DEPTH_MAX).size == 1
    with pytest.raises(PatternError, match="nested") as caught:
        parse("(" * (DEPTH_MAX + 1) + "a" + ")" * (DEPTH_MAX + 1))
    assert caught.value.position == DEPTH_MAX


def test_the_deepest_tree_does_not_exhaust_the_stack(engine: ReferenceQuery) -> None:
    pattern = "(?:x|(?:" * (DEPTH_MAX // 2) + "a" + ")*b)?" * (DEPTH_MAX // 2)
    assert engine.compile(pattern, full=True).spans(b"a" + b"b" * (DEPTH_MAX // 2)) != []


def test_states_cap_names_the_repeat_that_passes_it() -> None:
    assert parse("(?:a{1000}){100}").size == STATES_MAX
    with pytest.raises(PatternError, match="states") as caught:
        parse("(?:a{1000}){101}")
    assert caught.value.position == 11
    with pytest.raises(PatternError, match="states") as caught:
        parse("(?:(?:(?:a{1000}){1000}){1000}){1000}")
    assert caught.value.position == 17
    with pytest.raises(PatternError, match="states"):
        parse("a" * (STATES_MAX + 1))


def test_pattern_length_cap() -> None:
    with pytest.raises(PatternError, match="bytes of pattern") as caught:
        parse("a" * (PATTERN_BYTES_MAX + 1))
    assert len(str(caught.value)) < 500


def test_an_alternation_of_twenty_thousand_symbols_is_within_the_caps() -> None:
    symbols = [f"{number:05d}"[::-1][:4] for number in range(20_000)]
    assert parse("|".join(symbols), full=True).size <= STATES_MAX


# --- trees --------------------------------------------------------------------------------------------------


def test_size_is_the_number_of_states() -> None:
    for pattern, flags, *_ in SPANS:
        node = parse(pattern, flags)
        assert len(build(node)) == node.size + 1


def test_trees_are_simple() -> None:
    assert parse("") is EMPTY
    assert parse("(?:)*") is EMPTY
    assert parse("(((a)))") == OneOf(frozenset(b"a"))
    assert parse("a{3,}?") == Repeat(OneOf(frozenset(b"a")), 3, None, 4, nullable=False, lazy=True)
    assert parse("[Aa]") == parse("a", "i") == parse("(?i:A)")
