"""The engines of the kind "sequence": `numba`, linear and streaming, and `reference`, backtracking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trident_core.contracts import Query
from trident_core.dtypes import EVENT, Events
from trident_core.session import Session
from trident_query.sequence.columns import Rows, columns_of
from trident_query.sequence.events import EventSequence
from trident_query.sequence.native import native_question
from trident_query.sequence.question import STEPS_MAX
from trident_query.sequence.reference import answer
from trident_query.sequence.slow_events import SlowSequence
from trident_query.sequence.sql import parse_sql, project
from trident_query.sequence.sql_events import answer_sql, event_columns
from trident_query.where.predicate import Predicate, SlowPredicate
from trident_query.where.predicate import warm_up as warm_predicates


class NumbaSequences:
    """Compiled conditions and automata (`trident_core.contracts.Sequences`)."""

    def predicate(self, text: str, session: Session, *, texts: Query | None = None) -> Predicate:
        """Raises PatternError with the byte offset of what cannot stand there."""
        return Predicate(text, session, texts)

    def search(
        self, match: str, session: Session, *, define: Sequence[str] = (), per: str = "order",
        within: str | None = None, skip: str = "past", measures: Sequence[str] = (), all_rows: bool = False,
        texts: Query | None = None, count_only: bool = False,
    ) -> EventSequence:  # fmt: skip
        """Raises PatternError with the byte offset, UsageError, or SequenceError that names what is not
        linear.
        """
        question = native_question(
            match, define=define, per=per, within=within, skip=skip, measures=measures, all_rows=all_rows
        )
        return EventSequence(question, session, per, texts=texts, count_only=count_only)

    def sql(
        self, text: str, events: Events, session: Session, *, allow_backtracking: bool = False, steps: int = 0
    ) -> tuple[list[str] | None, list[list[Any]]]:
        """See `trident_query.sequence.sql_events.answer_sql`; 0 steps: the default cap."""
        return answer_sql(
            text, events, session, allow_backtracking=allow_backtracking, steps=steps or STEPS_MAX
        )

    def warm_up(self) -> None:
        """Compile the machine and all passes."""
        warm_predicates()
        events = np.zeros(4, EVENT)
        events["seq"], events["ref"] = np.arange(1, 5), 7
        events["type"] = list(b"AEED")
        session = Session()
        for options in ({}, {"count_only": True}, {"within": "1s"}):
            for per in ("order", "all"):
                made: Any = self.search("A E* . {1,2}", session, per=per, **options)
                made.feed(events)
                made.finish()
        types, keys = events["type"].copy(), np.zeros(4, np.int32)
        for count_only in (False, True):
            typed = self.search("A E+ D", session, count_only=count_only)
            typed.feed_types(types, keys, 0, key_count=1)


class ReferenceSequences:
    """The same, slow and plain."""

    def sql(
        self, text: str, events: Events, session: Session, *, allow_backtracking: bool = False, steps: int = 0
    ) -> tuple[list[str] | None, list[list[Any]]]:
        statement = parse_sql(text, steps_max=steps or STEPS_MAX)
        rows: Any = statement.source
        if isinstance(rows, str):
            columns, valid = columns_of(event_columns(events, session))
            rows = Rows(columns, valid, np.arange(len(events)))
        names = None if statement.outputs is None else [name for name, _ in statement.outputs]
        return names, project(statement, answer(statement.question, rows))

    def predicate(self, text: str, session: Session, *, texts: Query | None = None) -> SlowPredicate:
        return SlowPredicate(text, session, texts)

    def search(
        self, match: str, session: Session, *, define: Sequence[str] = (), per: str = "order",
        within: str | None = None, skip: str = "past", measures: Sequence[str] = (), all_rows: bool = False,
        texts: Query | None = None, count_only: bool = False,
    ) -> SlowSequence:  # fmt: skip
        question = native_question(
            match, define=define, per=per, within=within, skip=skip, measures=measures, all_rows=all_rows
        )
        return SlowSequence(question, session, per, texts=texts, count_only=count_only)
