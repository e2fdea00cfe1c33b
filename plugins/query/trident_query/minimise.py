"""Minimisation of an automaton given as a table: Hopcroft's algorithm by partition refinement.

J. Hopcroft, "An n log n algorithm for minimizing states in a finite automaton", 1971; in the form of
A. Valmari, "Fast brief practical DFA minimization", Information Processing Letters 112(6), 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit


def minimise(table: NDArray[Any], outputs: NDArray[Any]) -> NDArray[np.int64]:
    """i64[states]: the block of each state; two states share one if no text tells them apart.

    `table`: integers [states, letters], the complete transition table. `outputs`: [states], what a state
    says; two states with different outputs are never joined. Blocks are numbered by their smallest state,
    ascending. O(n log n) for n = states x letters.
    """
    states, letters = table.shape
    if states == 0:
        return np.zeros(0, np.int64)
    _, groups = np.unique(outputs, return_inverse=True)
    heads = np.ascontiguousarray(table, dtype=np.int64).T.reshape(-1)  # sorted by letter
    blocks = _refine(heads, states, letters, groups.astype(np.int64), int(groups.max()) + 1)
    first = np.full(int(blocks.max()) + 1, states, np.int64)
    np.minimum.at(first, blocks, np.arange(states))
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbered: NDArray[np.int64] = rank[blocks]
    return numbered


@njit(error_model="numpy")
def _mark(
    e: Any, elements: Any, place: Any, block: Any, first: Any, marked: Any, touched: Any, count: Any
) -> Any:
    """Move element e among the marked ones of its block; return the number of blocks with marked elements."""
    s = block[e]
    i = place[e]
    j = first[s] + marked[s]
    if i < j:  # marked already
        return count
    other = elements[j]
    elements[i] = other
    place[other] = i
    elements[j] = e
    place[e] = j
    if marked[s] == 0:
        touched[count] = s
        count += 1
    marked[s] += 1
    return count


@njit(error_model="numpy")
def _split(
    elements: Any, block: Any, first: Any, past: Any, marked: Any, touched: Any, count: Any, blocks: Any
) -> Any:
    """Split each touched block in two; the smaller part is the new one. Return how many blocks there are."""
    while count:
        count -= 1
        s = touched[count]
        j = first[s] + marked[s]
        if j == past[s]:
            marked[s] = 0
            continue
        if marked[s] <= past[s] - j:
            first[blocks] = first[s]
            past[blocks] = j
            first[s] = j
        else:
            past[blocks] = past[s]
            first[blocks] = j
            past[s] = j
        for i in range(first[blocks], past[blocks]):
            block[elements[i]] = blocks
        marked[s] = 0
        marked[blocks] = 0
        blocks += 1
    return blocks


@njit(error_model="numpy")
def _grouped(group: Any, groups: Any) -> tuple[Any, Any, Any, Any]:
    """Counting sort: elements by group, the place of each, first place of each group and past its last."""
    count = len(group)
    first = np.zeros(count + groups + 1, np.int64)
    past = np.zeros(count + groups + 1, np.int64)
    for e in range(count):
        past[group[e]] += 1
    total = 0
    for g in range(groups):
        first[g] = total
        total += past[g]
        past[g] = first[g]
    elements = np.empty(count, np.int64)
    place = np.empty(count, np.int64)
    for e in range(count):
        g = group[e]
        elements[past[g]] = e
        place[e] = past[g]
        past[g] += 1
    return elements, place, first, past


@njit(error_model="numpy")
def _refine(heads: Any, states: Any, letters: Any, groups: Any, group_count: Any) -> Any:
    """Blocks of states. `heads[letter * states + tail]`: the transitions; `groups`: the first partition.

    Blocks of transitions ("cords", first by letter) split blocks of states by their tails, and blocks of
    states split cords by their heads, until nothing splits.
    """
    edges = states * letters
    block = groups.copy()
    elements, place, first, past = _grouped(block, group_count)
    marked = np.zeros(len(first), np.int64)
    touched = np.empty(len(first), np.int64)
    cord = np.arange(edges) // states
    cords, cord_place, cord_first, cord_past = _grouped(cord, letters)
    cord_marked = np.zeros(len(cord_first), np.int64)
    cord_touched = np.empty(len(cord_first), np.int64)
    by_head, _, head_first, head_past = _grouped(heads, states)
    blocks = group_count
    cord_count = letters
    b = 1
    c = 0
    while c < cord_count:
        count = 0
        for i in range(cord_first[c], cord_past[c]):
            count = _mark(cords[i] % states, elements, place, block, first, marked, touched, count)
        blocks = _split(elements, block, first, past, marked, touched, count, blocks)
        c += 1
        while b < blocks:
            count = 0
            for i in range(first[b], past[b]):
                s = elements[i]
                for j in range(head_first[s], head_past[s]):
                    count = _mark(
                        by_head[j], cords, cord_place, cord, cord_first, cord_marked, cord_touched, count
                    )
            cord_count = _split(
                cords, cord, cord_first, cord_past, cord_marked, cord_touched, count, cord_count
            )
            b += 1
    return block
