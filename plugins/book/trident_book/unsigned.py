"""Positions without a sign."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.jit import njit_inlined


@njit_inlined
def u(at: Any) -> Any:
    """A position as unsigned: indexing with it asks nothing about negative ones."""
    return np.uint64(at)
