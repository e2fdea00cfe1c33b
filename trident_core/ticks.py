"""The processor's time-stamp counter, read inside kernels: the clock for what takes nanoseconds.

On x86-64 only: `available` says whether. A read is `lfence; rdtsc; lfence`: it waits until all instructions
before it are complete, loads included, and those after it wait for it. So what is measured cannot leak out of
its bracket; nor can it overlap with its neighbours, as it would without the clock. Stores may still be in the
store buffer. The counter runs at a constant rate (`constant_tsc`), found against `time.perf_counter_ns`.
"""

from __future__ import annotations

import platform
import time
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from trident_core.jit import njit_entry

NAME: Final = "time-stamp counter (lfence; rdtsc; lfence)"


def available() -> bool:
    """Whether this processor has the counter; else `read_ticks` must not be compiled."""
    return platform.machine() in ("x86_64", "AMD64")


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def read_ticks(typingctx: Any) -> Any:
    """`read_ticks()` -> i64, in a kernel: the counter, fenced on both sides."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.FunctionType(ir.VoidType(), [])
        fence = builder.module.declare_intrinsic("llvm.x86.sse2.lfence", (), nothing)
        counter = builder.module.declare_intrinsic(
            "llvm.readcyclecounter", (), ir.FunctionType(ir.IntType(64), [])
        )
        builder.call(fence, [])
        ticks = builder.call(counter, [])
        builder.call(fence, [])
        return ticks

    return types.int64(), codegen


@njit_entry
def _pairs(out: NDArray[np.int64]) -> None:
    """out[i] = the step between two reads with nothing between them."""
    for i in range(len(out)):
        before = read_ticks()
        out[i] = read_ticks() - before


def floor_ticks(samples: int = 100_000) -> NDArray[np.int64]:
    """i64[samples]: the steps between two consecutive reads, what no bracket here can be shorter than."""
    out = np.zeros(samples, np.int64)
    _pairs(out[:1])
    _pairs(out)
    return out


@njit_entry
def _now(out: NDArray[np.int64]) -> None:
    out[0] = read_ticks()


class Rate:
    """Ticks a nanosecond, from the two clocks read at the start and at each question."""

    def __init__(self) -> None:
        self._cell = np.zeros(1, np.int64)
        _now(self._cell)
        self._began = self._both()

    def _both(self) -> tuple[int, int]:
        """(ns, ticks) of one moment: the closest of 20 brackets of one clock around the other."""
        best: tuple[int, int, int] | None = None
        for _ in range(20):
            before = time.perf_counter_ns()
            _now(self._cell)
            after = time.perf_counter_ns()
            if best is None or after - before < best[0]:
                best = after - before, (before + after) // 2, int(self._cell[0])
        assert best is not None
        return best[1:]

    def ticks_per_ns(self, seconds_min: float = 0.2) -> float:
        """Over the time since the start, waiting until it is long enough to be exact to 1 in 10,000."""
        began_ns, began_ticks = self._began
        rest = seconds_min - (time.perf_counter_ns() - began_ns) / 1e9
        if rest > 0:
            time.sleep(rest)
        ns, ticks = self._both()
        return (ticks - began_ticks) / (ns - began_ns)
