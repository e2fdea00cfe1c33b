"""The latency of the numba matching engine's kernel, command by command, by the processor's counter.

The bracket holds a whole call of the kernel with one command: checks, the book, the reports.
"""

from __future__ import annotations

from typing import Any

from trident_book.matching import numba_state as s
from trident_book.matching.numba_submit import submit
from trident_core.jit import njit_entry
from trident_core.ticks import read_ticks


@njit_entry
def submit_timed(memory: Any, commands: Any, rows: Any, ticks: Any, start: Any, resumed: Any) -> Any:
    """Carry out commands from `start` on, each by a call of its own that may write all `rows` anew; ticks[i]
    is what the call of command i took.

    Stops where something is wanted that the kernel does not do (a pool needs room), and returns the command:
    call again from there with `resumed` True, and its bracket, begun before, holds that too.
    """
    st = s.state_at(memory)
    i = start
    while i < len(commands):
        if not (resumed and i == start):
            ticks[i] = read_ticks()
        st.g[s.ROW_BASE] = st.g[s.SEQ]
        submit(memory, commands[: i + 1], rows, i)
        if st.g[s.STATUS] != s.ALL_DONE:
            return i
        ticks[i] = read_ticks() - ticks[i]
        i += 1
    return i
