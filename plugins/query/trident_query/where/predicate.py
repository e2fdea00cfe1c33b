"""Predicates over events, as an engine gives them: the machine's, and the reference with the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Query
from trident_core.dtypes import EVENT, Events
from trident_core.session import Session
from trident_query.reference import ReferenceQuery
from trident_query.where import plan
from trident_query.where.fields import Checker
from trident_query.where.lower import Lowering
from trident_query.where.parse import parse_expression
from trident_query.where.program import Machine
from trident_query.where.reference import ReferencePredicate


class Predicate:
    """A predicate compiled for the machine (`trident_core.contracts.Predicate`).

    `bounds` is what a scan can skip by. Not for several threads at once.
    """

    def __init__(self, text: str, session: Session, texts: Query | None = None) -> None:
        self.text, self.session = text, session
        tree = parse_expression(text)
        Checker(text).condition(tree)
        self.bounds = plan.bounds(tree, session)
        texts = texts or ReferenceQuery()
        lowering = Lowering(session, texts)
        lowering.add(tree)
        self.machine = Machine(lowering.code, texts)

    def match(self, events: Events) -> NDArray[np.bool_]:
        """bool[n]: for which events (EVENT[n]) it is true. Raises UsageError where arithmetic overflows."""
        return self.machine.match(events, len(events))

    def explain(self) -> dict[str, Any]:
        code = self.machine.code
        return {
            "engine": "register machine, blocks of 512 events, one pass",
            "instructions": len(code.instructions),
            "fields": list(code.fields),
            "tables": len(code.tables) + len(code.locates),
            "texts asked of the query engine": len(code.memories),
            "skipped by the scan": plan.describe(self.bounds, len(self.session.directory)) or "nothing",
        }


class SlowPredicate(ReferencePredicate):
    """The reference with the bounds of its predicate, so that a search can push it down as any other."""

    def __init__(self, text: str, session: Session, texts: Query | None = None) -> None:
        super().__init__(text, session)
        self.bounds = plan.Bounds()

    def explain(self) -> dict[str, Any]:
        return {"engine": "reference: one event at a time", "skipped by the scan": "nothing"}


def warm_up() -> None:
    """Compile the machine."""
    Predicate("qty = 1 and aux ~ 'A' and price + 1 > 1", Session()).match(np.zeros(1, EVENT))
