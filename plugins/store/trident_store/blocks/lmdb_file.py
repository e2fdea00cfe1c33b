"""LMDB's file, read without LMDB: every page is checked before it is followed.

LMDB believes its file: a damaged page gives wrong values or ends the process. And its readers write into a
lock file. So blocks are read here with `pread`, in the format of LMDB 0.9 (data version 1, 64-bit,
little-endian): two meta pages, a B+tree of keys and, for each value, a run of overflow pages. LMDB copies
pages on write, and a page that some state uses is not written to before the third commit behind that state: a
descent that saw at most one commit go by has seen a whole tree. Runs of overflow pages are never freed here.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from trident_store.blocks.engine import EngineError
from trident_store.blocks.format import key_of

_PAGE: Final = struct.Struct("<QHHHH")  # number, pad, flags, lower, upper
_PAGE_BYTES: Final = _PAGE.size
_META: Final = struct.Struct("<IIQQ")  # magic, version, address, map size
_TREE: Final = struct.Struct("<IHHQQQQQ")  # pad, flags, depth, branch, leaf, overflow pages, entries, root
_META_END: Final = struct.Struct("<QQ")  # last page, transaction
_NODE: Final = struct.Struct("<HHHH")  # low, high, flags, key bytes
_MAGIC: Final = 0xBEEFC0DE
_BRANCH, _LEAF, _OVERFLOW, _METAPAGE = 1, 2, 4, 8
_INTEGER_KEY: Final = 8
_BIG: Final = 1
_NONE: Final = (1 << 64) - 1
_MAX_DEPTH: Final = 32
_TRIES: Final = 100
PAGE_SIZES: Final = tuple(1 << n for n in range(9, 17))


class Tree(NamedTuple):
    """One of the two trees: free pages, blocks."""

    pad: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class State(NamedTuple):
    """What the later meta page says."""

    page_bytes: int
    free: Tree
    main: Tree
    last_page: int
    transaction: int


class Node(NamedTuple):
    """One entry of a page: in a branch `page` is its child, in a leaf the first page of a big value."""

    key: bytes
    page: int
    size: int
    inline: bytes


class LmdbFile:
    """`data.mdb`, open for reading. Its descriptor is closed with the object."""

    torn = (0, "")

    def __init__(self, path: Path, name: str) -> None:
        self._name = name
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._closer = weakref.finalize(self, os.close, self._handle)

    def close(self) -> None:
        self._closer()

    def error(self, problem: str, page: int = 0, page_bytes: int = 0) -> EngineError:
        return EngineError(problem, file=self._name, offset=page * page_bytes)

    # -- blocks --

    def get(self, number: int) -> bytes | None:
        """See `trident_store.blocks.engine.View.get`."""
        node, state = self._find(number)
        if node is None:
            return None
        return self._value(state, node)[: node.size]

    def place(self, number: int) -> tuple[str, int]:
        """File and offset of a block's value; offset 0 when it is not known."""
        try:
            node, state = self._find(number)
        except EngineError as error:
            return self._name, error.offset
        return self._name, node.page * state.page_bytes + _PAGE_BYTES if node else 0

    def _find(self, number: int) -> tuple[Node | None, State]:
        for _ in range(_TRIES):
            state, problem = self._state(), None
            try:
                node = self._descend(state, key_of(number))
            except EngineError as error:
                problem = error
            if self._state().transaction <= state.transaction + 1:
                if problem:
                    raise problem
                return node, state
        raise self.error("the file changes faster than it can be read")

    def _descend(self, state: State, key: bytes) -> Node | None:
        page = state.main.root
        if page == _NONE:
            return None
        for depth in range(state.main.depth):
            nodes, leaf = self._nodes(state, page)
            if leaf != (depth == state.main.depth - 1):
                raise self.error("the tree of blocks has another depth than it says", page, state.page_bytes)
            if leaf:
                return next((node for node in nodes if node.key == key), None)
            below = [node.page for node in nodes[:1]] + [node.page for node in nodes[1:] if node.key <= key]
            page = below[-1]
        raise self.error("the tree of blocks has no leaf", page, state.page_bytes)

    # -- pages --

    def _read(self, page: int, count: int, page_bytes: int) -> bytes:
        try:
            data = os.pread(self._handle, count * page_bytes, page * page_bytes)
        except (OSError, OverflowError) as error:
            raise self.error(f"cannot be read ({error})", page, page_bytes) from None
        if len(data) < count * page_bytes:
            raise self.error("the file is cut short", page, page_bytes)
        return data

    def _state(self) -> State:
        """The later meta page, both checked as LMDB does, and more."""
        head = self._read(0, 1, PAGE_SIZES[0])
        page_bytes = _TREE.unpack_from(head, _PAGE_BYTES + _META.size)[0]
        if page_bytes not in PAGE_SIZES:
            raise self.error(f"no page size: {page_bytes}")
        found = [self._meta(page, page_bytes) for page in (0, 1)]
        return max(found, key=lambda state: state.transaction)

    def _meta(self, page: int, page_bytes: int) -> State:
        data = self._read(page, 1, page_bytes)
        number, _, flags, _, _ = _PAGE.unpack_from(data)
        magic, version, address, _ = _META.unpack_from(data, _PAGE_BYTES)
        at = _PAGE_BYTES + _META.size
        free, main = (Tree._make(_TREE.unpack_from(data, at + n * _TREE.size)) for n in (0, 1))
        last, transaction = _META_END.unpack_from(data, at + 2 * _TREE.size)
        problems = (
            (number != page or flags & ~0x10 != _METAPAGE, "the meta page's header"),
            (magic != _MAGIC or version != 1, "the meta page's magic or version"),
            (address != 0, "the address of the map"),
            (
                free.pad != page_bytes or free.flags & 0x7FFF != _INTEGER_KEY or main.flags != 0,
                "the trees' flags",
            ),
            (max(free.depth, main.depth) > _MAX_DEPTH, "the depth of the trees"),
            (transaction > 1 and transaction % 2 != page, "the number of the transaction"),
        )
        for wrong, what in problems:
            if wrong:
                raise self.error(f"{what} is not what it should be", page, page_bytes)
        return State(page_bytes, free, main, last, transaction)

    def _nodes(self, state: State, page: int, tree: Tree | None = None) -> tuple[list[Node], bool]:
        """The entries of a branch or leaf page of a tree (None: of blocks), and whether it is a leaf.

        Raises EngineError.
        """
        size = state.page_bytes
        if not 2 <= page <= state.last_page:
            raise self.error(f"page {page} is none of the file's {state.last_page + 1}", page, size)
        data = self._read(page, 1, size)
        number, _, flags, lower, upper = _PAGE.unpack_from(data)
        if number != page or flags not in (_BRANCH, _LEAF):
            raise self.error("a page of the tree is not what it should be", page, size)
        if not _PAGE_BYTES <= lower <= upper <= size or lower % 2:
            raise self.error("the bounds of a page do not check", page, size)
        offsets = struct.unpack_from(f"<{(lower - _PAGE_BYTES) // 2}H", data, _PAGE_BYTES)
        nodes = [self._node(state, page, data, offset, upper, flags == _LEAF) for offset in offsets]
        keys = [node.key for node in nodes[flags == _BRANCH :]]  # the first key of a branch is not used
        if tree is state.free:  # its keys are numbers in the machine's order
            keys = [key[::-1] for key in keys]
        if not nodes or any(len(key) != 8 for key in keys) or any(a >= b for a, b in pairwise(keys)):
            raise self.error("the keys of a page do not grow", page, size)
        return nodes, flags == _LEAF

    def _node(self, state: State, page: int, data: bytes, at: int, upper: int, leaf: bool) -> Node:
        size = state.page_bytes
        if not upper <= at <= size - _NODE.size:
            raise self.error("an entry stands outside its page", page, size)
        low, high, flags, key_bytes = _NODE.unpack_from(data, at)
        start = at + _NODE.size
        key = data[start : start + key_bytes]
        if leaf:
            value_bytes = low | high << 16
            inline = value_bytes if flags == 0 else 8
            if flags not in (0, _BIG) or start + key_bytes + inline > size:
                raise self.error("an entry of a leaf does not check", page, size)
            value = data[start + key_bytes : start + key_bytes + inline]
            if flags == _BIG:
                return Node(key, int.from_bytes(value, "little"), value_bytes, b"")
            return Node(key, 0, value_bytes, value)
        if start + key_bytes > size:
            raise self.error("an entry of a branch does not check", page, size)
        return Node(key, low | high << 16 | flags << 32, 0, b"")

    def _run(self, state: State, node: Node) -> int:
        """How many pages a big value takes."""
        return (_PAGE_BYTES - 1 + node.size) // state.page_bytes + 1

    def _value(self, state: State, node: Node) -> bytes:
        """A value, its run of pages checked."""
        if node.page == 0:
            return node.inline
        size, count = state.page_bytes, self._run(state, node)
        if not 2 <= node.page <= node.page + count - 1 <= state.last_page:
            raise self._outside(state, node.page)
        data = self._read(node.page, count, size)
        number, _, flags, low, high = _PAGE.unpack_from(data)
        if number != node.page or flags != _OVERFLOW or low | high << 16 != count:
            raise self.error("a value's page is not what it should be", node.page, size)
        return data[_PAGE_BYTES : _PAGE_BYTES + node.size]

    def _outside(self, state: State, page: int) -> EngineError:
        return self.error("a value stands on pages that the file has not", page, state.page_bytes)

    # -- everything --

    def check(self) -> list[EngineError]:
        """Both trees whole, and every page of the file in exactly one place: a tree, a value, the free list.

        Where they are not, LMDB would write over blocks that it takes for free."""
        problems: list[EngineError] = []
        try:
            state = self._state()
            if os.fstat(self._handle).st_size < (state.last_page + 1) * state.page_bytes:
                return [self.error("the file is cut short")]
            taken = np.zeros(state.last_page + 1, np.uint8)
            taken[:2] = 1
            for tree in (state.main, state.free):
                self._check_tree(state, tree, taken)
            bad = np.flatnonzero(taken != 1)
            if len(bad):
                what = "belongs to nothing" if taken[bad[0]] == 0 else "is used twice"
                problems.append(self.error(f"page {bad[0]} {what}", int(bad[0]), state.page_bytes))
        except EngineError as error:
            problems.append(error)
        return problems

    def _check_tree(self, state: State, tree: Tree, taken: np.ndarray) -> None:
        counts = [0, 0, 0, 0]
        if tree.root != _NONE:
            for nodes, leaf, page, depth in self._walk(state, tree, tree.root, 1):
                taken[page] += 1
                if leaf != (depth == tree.depth):
                    raise self.error("a tree has another depth than it says", page, state.page_bytes)
                counts[leaf] += 1
                counts[3] += len(nodes) if leaf else 0
                for node in nodes if leaf else ():
                    value = self._value(state, node) if node.page == 0 or tree is state.free else b""
                    if node.page:
                        run = self._run(state, node)
                        if not node.page >= 2 or node.page + run - 1 > state.last_page:
                            raise self.error(
                                "a value stands on pages that the file has not", page, state.page_bytes
                            )
                        taken[node.page : node.page + run] += 1
                        counts[2] += run
                    if tree is state.free:
                        self._check_free(state, node, value, taken, page)
        said = [tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries]
        if counts != said:
            raise self.error(f"a tree counts {said} pages and entries, and has {counts}", 0)

    def _walk(
        self, state: State, tree: Tree, page: int, depth: int
    ) -> Iterator[tuple[list[Node], bool, int, int]]:
        if depth > _MAX_DEPTH:
            raise self.error("a tree has no end", page, state.page_bytes)
        nodes, leaf = self._nodes(state, page, tree)
        yield nodes, leaf, page, depth
        if not leaf:
            for node in nodes:
                yield from self._walk(state, tree, node.page, depth + 1)

    def _check_free(self, state: State, node: Node, value: bytes, taken: np.ndarray, page: int) -> None:
        """One list of free pages: how many, then their numbers, descending."""
        numbers = np.frombuffer(value[: len(value) // 8 * 8], "<u8")
        whole = len(value) % 8 == 0 and len(numbers) > 0
        if (
            not whole
            or int.from_bytes(node.key, "little") > state.transaction
            or int(numbers[0]) > len(numbers) - 1
        ):
            raise self.error("a list of free pages does not check", page, state.page_bytes)
        free = numbers[1 : 1 + int(numbers[0])]
        if len(free) and (int(free.max()) > state.last_page or int(free.min()) < 2):
            raise self.error("a list of free pages names pages that the file has not", page, state.page_bytes)
        if len(free) > 1 and not bool((free[:-1] > free[1:]).all()):
            raise self.error("a list of free pages is not in order", page, state.page_bytes)
        taken[free.astype(np.int64)] += 1
