"""Fixtures of the query tests."""

from __future__ import annotations

import pytest

from trident_query.reference import ReferenceQuery


@pytest.fixture(scope="session")
def engine() -> ReferenceQuery:
    return ReferenceQuery()
