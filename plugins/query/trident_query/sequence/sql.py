"""SQL:2016's MATCH_RECOGNIZE as a second syntax: `sqlglot` parses the statement, this makes a `Question` of
it.

What sqlglot does not read (SUBSET, SKIP TO a variable, RUNNING inside an expression) is taken out of the text
or renamed before. Names without double quotes are folded: variables to upper case, columns to lower case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from trident_core.errors import PatternError, UsageError
from trident_query.sequence.pattern import parse_pattern
from trident_query.sequence.question import STEPS_MAX, Measure, Question, Rows, Skip
from trident_query.sequence.sql_expressions import Translator, refusal, sqlglot_modules
from trident_query.where.tree import Column, Node

#: Longest statement, in characters.
STATEMENT_MAX: Final = 65_536
_FRAMED: Final = re.compile(r"\b(running|final)\s+(?=[a-z_]+\s*\()", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed statement. `source`: the input's name, or its rows where the statement brings its own
    (VALUES). `outputs`: name and expression over the output columns; None is `SELECT *`."""

    question: Question
    source: str | list[dict[str, Any]]
    outputs: list[tuple[str, Node]] | None


def parse_sql(text: str, *, steps_max: int = STEPS_MAX) -> Statement:
    """A `SELECT … FROM … MATCH_RECOGNIZE (…)` statement.

    Raises PatternError, with the byte offset where it is known, for what is not read: it names the construct.
    """
    sqlglot, exp = sqlglot_modules()
    if len(text) > STATEMENT_MAX:
        raise UsageError(f"a statement of more than {STATEMENT_MAX:,} characters, the cap on SQL")
    readable, subsets = _subset(text)
    readable = _FRAMED.sub(lambda found: f"trident_{found[1].lower()}_", readable)
    readable = re.sub(
        r"\bSKIP\s+TO\s+(?!NEXT\b|FIRST\b|LAST\b)", "SKIP TO LAST ", readable, flags=re.IGNORECASE
    )
    try:
        tree = sqlglot.parse_one(readable, read="trino")
    except sqlglot.errors.SqlglotError as error:
        raise _unreadable(text, error) from None
    clauses = list(tree.find_all(exp.MatchRecognize))
    if len(clauses) != 1 or not isinstance(tree, exp.Select):
        raise refusal(
            text,
            "MATCH_RECOGNIZE",
            f"{len(clauses)} MATCH_RECOGNIZE clauses; there must be one in one SELECT",
        )
    for kind in ("with_", "with", "joins", "where", "group", "having", "order", "limit", "distinct"):
        if tree.args.get(kind):
            name = {"with_": "WITH"}.get(kind, kind.upper())
            raise refusal(text, name, f"{name} around MATCH_RECOGNIZE is not read")
    question = _question(text, clauses[0], subsets, steps_max)
    return Statement(question, _source(text, tree, exp), _outputs(text, tree, exp))


def _unreadable(text: str, error: Any) -> PatternError:
    where = error.errors[0] if getattr(error, "errors", None) else {}
    lines = text.split("\n")[: where.get("line", 1) - 1]
    offset = sum(len(line) + 1 for line in lines) + max(where.get("col", 1) - 1, 0)
    offset = min(offset, len(text))
    said = where.get("description") or str(error).split("\n")[0]
    return PatternError(
        f"not readable as SQL: {said}", pattern=text, position=len(text[:offset].encode("utf-8", "replace"))
    )


def _subset(text: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The text without its SUBSET clause (blanks instead), and the union variables of it."""
    found = re.search(r"\bSUBSET\b(.*?)(?=\bDEFINE\b)", text, re.IGNORECASE | re.DOTALL)
    if not found:
        return text, {}
    made: dict[str, tuple[str, ...]] = {}
    one = re.compile(r'\s*("[^"]+"|\w+)\s*=\s*\(([^()]*)\)\s*(,|$)')
    at = 0
    body = found[1].rstrip()
    while at < len(body):
        union = one.match(body, at)
        if not union:
            raise PatternError("SUBSET takes name = (variable, …), …", pattern=text,
                               position=len(text[: found.start(1) + at].encode()))  # fmt: skip
        made[_variable(union[1])] = tuple(_variable(name.strip()) for name in union[2].split(","))
        at = union.end()
    return text[: found.start()] + " " * (found.end() - found.start()) + text[found.end() :], made


def _variable(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.upper()


def _question(text: str, clause: Any, subsets: Mapping[str, tuple[str, ...]], steps_max: int) -> Question:
    translator = Translator(text, frozenset(subsets))
    after, rows = _words(clause, "after"), _words(clause, "rows")
    skip, target = _skip(text, after)
    partition = tuple(_column(text, item) for item in clause.args.get("partition_by") or ())
    order = tuple(
        (_column(text, item.this), bool(item.args.get("desc")))
        for item in (clause.args["order"].expressions if clause.args.get("order") else ())
    )
    define = {_name(alias.args["alias"], upper=True): translator.node(alias.this)
              for alias in clause.args.get("define") or ()}  # fmt: skip
    texts = {_name(alias.args["alias"], upper=True): alias.this.sql("trino")
             for alias in clause.args.get("define") or ()}  # fmt: skip
    measures = []
    for measure in clause.args.get("measures") or ():
        alias = measure.this
        measures.append(
            Measure(_name(alias.args["alias"]), translator.node(alias.this), alias.this.sql("trino"))
        )
    pattern = parse_pattern(str(clause.args["pattern"].this), fold=True)
    return Question(
        pattern, define, texts, subsets, tuple(measures), partition, order, _rows(text, rows), skip, target,
        steps_max=steps_max,
    )  # fmt: skip


def _words(clause: Any, part: str) -> str:
    found = clause.args.get(part)
    return " ".join(str(found.this).split()) if found else ""


def _rows(text: str, words: str) -> Rows:
    kinds = {
        "": Rows.ONE, "ONE ROW PER MATCH": Rows.ONE, "ALL ROWS PER MATCH": Rows.ALL,
        "ALL ROWS PER MATCH SHOW EMPTY MATCHES": Rows.ALL,
        "ALL ROWS PER MATCH OMIT EMPTY MATCHES": Rows.OMIT_EMPTY,
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS": Rows.UNMATCHED,
    }  # fmt: skip
    if words.upper() not in kinds:
        raise refusal(text, "ROWS PER MATCH", f"{words} is not read")
    return kinds[words.upper()]


def _skip(text: str, words: str) -> tuple[Skip, str]:
    upper = words.upper()
    if upper in ("", "AFTER MATCH SKIP PAST LAST ROW"):
        return Skip.PAST_LAST, ""
    if upper == "AFTER MATCH SKIP TO NEXT ROW":
        return Skip.NEXT_ROW, ""
    found = re.fullmatch(r'AFTER MATCH SKIP TO (FIRST|LAST) (\w+|"[^"]+")', words, re.IGNORECASE)
    if not found:
        raise refusal(text, "SKIP", f"{words} is not read")
    return Skip.FIRST if found[1].upper() == "FIRST" else Skip.LAST, _variable(found[2])


def _name(identifier: Any, *, upper: bool = False) -> str:
    if identifier.args.get("quoted"):
        return str(identifier.this)
    return str(identifier.this).upper() if upper else str(identifier.this).lower()


def _column(text: str, node: Any) -> str:
    if type(node).__name__ != "Column" or node.args.get("table"):
        raise refusal(text, node.sql(), "PARTITION BY and ORDER BY take columns")
    return _name(node.this)


def _outputs(text: str, tree: Any, exp: Any) -> list[tuple[str, Node]] | None:
    if len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        return None
    translator = Translator(text, frozenset(), output=True)
    return [(_name(exp.to_identifier(item.alias_or_name or f"_col{place}")), translator.node(item.unalias()))
            for place, item in enumerate(tree.expressions)]  # fmt: skip


def _source(text: str, tree: Any, exp: Any) -> str | list[dict[str, Any]]:
    """The input: the name of a table, or the rows of VALUES with the names of their columns."""
    source = (tree.args.get("from_") or tree.args.get("from")).this
    if isinstance(source, exp.Table):
        return _name(source.this)
    if not isinstance(source, (exp.Values, exp.Subquery)):
        raise refusal(text, "FROM", "FROM takes a table or VALUES")
    values = source.find(exp.Values)
    alias = source.args.get("alias") or (values.args.get("alias") if values else None)
    if values is None or alias is None or not alias.columns or source.find(exp.Select):
        raise refusal(text, "FROM", "FROM takes a table, or (VALUES …) name(columns)")
    names = [_name(column) for column in alias.columns]
    translator = Translator(text, frozenset())
    rows = []
    for item in values.expressions:
        cells = item.expressions if isinstance(item, exp.Tuple) else [item]
        rows.append(dict(zip(names, (translator.constant(cell) for cell in cells), strict=True)))
    return rows


def project(statement: Statement, rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """The output of the SELECT around the clause: its columns, for each row."""
    from trident_query.where.reference import evaluate

    if statement.outputs is None:
        order = [column for column, _ in statement.question.order]
        return [_star(row, statement.question, order) for row in rows]
    made = []
    for row in rows:

        def lookup(leaf: Any, row: Mapping[str, Any] = row) -> Any:
            if isinstance(leaf, Column) and leaf.name in row:
                return row[leaf.name]
            raise UsageError(f"no output column {leaf.name!r}", hint=f"there are {', '.join(row)}")

        made.append([plain(evaluate(node, lookup)) for _, node in statement.outputs])
    return made


def _star(row: Mapping[str, Any], question: Question, order: list[str]) -> list[Any]:
    """All columns; one that ORDER BY names twice stands twice."""
    if question.rows is Rows.ONE:
        return [plain(value) for value in row.values()]
    leading = [*question.partition, *order]
    rest = [name for name in row if name not in leading]
    return [plain(row[name]) for name in [*leading, *rest]]


def plain(value: Any) -> Any:
    """A whole number as int, another exact one as float."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value
