"""Cases of MATCH_RECOGNIZE that others made: run them, and count what passes, fails and is refused by name.

    python -m trident_query.sequence.cases FILE

FILE holds one JSON object a line: `id`, `sql`, and `expect`: {"values": "VALUES …"}, {"empty": true} or
{"error": "…"}. Rows are compared as a multiset, as their authors do.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trident_core.errors import TridentError
from trident_query.sequence.sql import parse_sql, plain, project
from trident_query.sequence.sql_expressions import Translator, sqlglot_modules


def expected_rows(values: str) -> list[list[Any]]:
    """The rows of a VALUES text."""
    sqlglot, exp = sqlglot_modules()
    tree = sqlglot.parse_one(f"SELECT * FROM ({values.strip()}) t", read="trino").find(exp.Values)
    rows = []
    for item in tree.expressions:
        cells = item.expressions if isinstance(item, exp.Tuple) else [item]
        rows.append([_cell(cell, exp) for cell in cells])
    return rows


def _cell(cell: Any, exp: Any) -> Any:
    if isinstance(cell, exp.Cast) and cell.this.is_string and cell.to.this in exp.DataType.INTEGER_TYPES:
        return int(cell.this.this)
    while isinstance(cell, (exp.Cast, exp.Paren)):
        cell = cell.this
    if isinstance(cell, exp.Array):
        return [_cell(item, exp) for item in cell.expressions]
    return plain(Translator("", frozenset()).constant(cell))


def outcome(case: dict[str, Any], answer: Any) -> str:
    """ "passed", or what was wrong. `answer(question, rows)` gives the output rows."""
    expect = case["expect"]
    try:
        statement = parse_sql(case["sql"])
        if not isinstance(statement.source, list):
            return "refused: FROM a table"
        rows = project(statement, answer(statement.question, statement.source))
    except TridentError as error:
        if "error" in expect and expect["error"] in error.message:
            return "passed"
        return f"refused: {error.message}"
    if "error" in expect:
        return f"no error, but {len(rows)} rows"
    wanted = expected_rows(expect["values"]) if "values" in expect else []
    if Counter(map(_comparable, rows)) == Counter(map(_comparable, wanted)):
        return "passed"
    return f"rows differ: {rows} instead of {wanted}"


def _comparable(row: list[Any]) -> str:
    return repr([int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row])


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(argv: Iterable[str]) -> int:
    from trident_query.sequence.answering import answer_rows

    counts: Counter[str] = Counter()
    for path in argv:
        for case in load(Path(path)):
            said = outcome(case, answer_rows)
            counts[said.partition(":")[0] if said != "passed" else said] += 1
            if said != "passed":
                print(f"{case['id']}: {said}")
    print(
        ", ".join(f"{count} {name}" for name, count in sorted(counts.items())), f"of {sum(counts.values())}"
    )
    return 1 if any(name not in ("passed", "refused") for name in counts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
