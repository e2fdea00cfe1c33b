"""Stores that are wrong in one way each, for the crash laboratory."""

from __future__ import annotations

from trident_store.reference import ReferenceStore


class AcknowledgesTooEarly(ReferenceStore):
    """Calls durable what is written: a crash may take it away."""

    def sync(self) -> int:
        self._writer.settle()
        return self._writer.end.last_seq
