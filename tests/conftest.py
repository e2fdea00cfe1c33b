"""Fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Callable[..., Path]:
    """`shared("data", "pcap")` is a path in the folder of data that others made; skips where it is absent.

    The folder is `$TRIDENT_SHARED`, else `shared` beside the checkout. See tests/README.md.
    """
    base = Path(os.environ.get("TRIDENT_SHARED") or ROOT.parent / "shared")

    def locate(*parts: str) -> Path:
        path = base.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"{'/'.join(parts)} is not in the folder of shared data (set TRIDENT_SHARED)")
        return path

    return locate
