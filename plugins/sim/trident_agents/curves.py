"""Tables of integers that stand for functions: equal on every machine, as no float is involved.

(Constants of this module are compiled into njit kernels; the word makes the compile cache depend on it.)
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Final

import numpy as np
from numpy.typing import NDArray

NS: Final = 1_000_000_000
PREOPEN: Final = (9 * 3600 + 25 * 60) * NS  # the call begins
OPEN: Final = (9 * 3600 + 30 * 60) * NS

#: Places of the tables in `State.tables`: -ln(u) in 1/65536, 2^(k/16) in 1/1024 for k from -64, and the
#: share of #: the day that is over, in 1/2^20 of the day's activity, at each 1/64 of trading.
EXP, EXP_BITS = 0, 12
POW, POW_MID = 1 << EXP_BITS, 64
DAY: Final = POW + 2 * POW_MID + 1
DAY_STEPS: Final = 64
TABLES_SIZE: Final = DAY + DAY_STEPS + 1

#: Activity over the day, a U: at the open, every eighth of the day, at the close.
_SHAPE: Final = (190, 120, 95, 82, 75, 78, 92, 120, 230)


def make_tables() -> NDArray[np.int64]:
    """i64[TABLES_SIZE]."""
    tables = np.zeros(TABLES_SIZE, np.int64)
    with localcontext() as context:
        context.prec = 30
        size = 1 << EXP_BITS
        for k in range(size):
            tables[EXP + k] = int(-((Decimal(2 * k + 1) / (2 * size)).ln()) * 65536)
        for k in range(2 * POW_MID + 1):
            tables[POW + k] = int(Decimal(2) ** (Decimal(k - POW_MID) / 16) * 1024)
    rates = [_rate(k) for k in range(DAY_STEPS)]
    over = np.cumsum([0, *rates])
    tables[DAY:] = (over << 20) // over[-1]
    return tables


def _rate(step: int) -> int:
    """Activity in one 1/64 of the day, between two points of the shape."""
    point, within = divmod(step, DAY_STEPS // 8)
    part = DAY_STEPS // 8
    return _SHAPE[point] * (part - within) + _SHAPE[point + 1] * within
