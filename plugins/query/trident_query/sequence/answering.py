"""Answers of questions in rows: the linear engine where it can, backtracking where that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident_query.sequence.question import Question
from trident_query.sequence.tables import table_rows


def answer_rows(question: Question, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Output rows of a question about rows (mappings); see `table_rows` with backtracking allowed."""
    return table_rows(question, rows, allow_backtracking=True)
