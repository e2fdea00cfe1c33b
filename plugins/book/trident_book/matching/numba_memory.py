"""State as one address: to kernels a `Block` is a pointer to a block of memory that says where its arrays
are.

A namedtuple of arrays, which other kernels get, is some two hundred values to pass with each call, and to
compile for. Here `st.orders` is an array made on the spot of an address and a length in the block; small
arrays that never grow stand in the block itself, and blocks may contain blocks. A kernel that Python calls
gets the memory as an array of u64, and begins with `st = state_at(memory)`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from trident_core.jit import Kernel, njit

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_WORD: Final = 8


def njit_spliced(function: Kernel) -> Kernel:
    """For kernels with a single caller: made part of it before anything is compiled."""
    bare: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
    return njit(**bare, no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="always")(function)


class Pool(NamedTuple):
    """An array of its own, which may be replaced by a longer one."""

    dtype: np.dtype[Any]


class Fixed(NamedTuple):
    """An array in the block itself."""

    dtype: np.dtype[Any]
    length: int


class BlockType(types.Type):
    """What a block of a layout is to numba."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class Layout:
    """The members of a block by name: Pool, Fixed, or another Layout; and where each stands, in bytes."""

    def __init__(self, name: str, **members: Any) -> None:
        self.members = members
        self.offsets: dict[str, int] = {}
        self.size = 0
        for member, kind in members.items():
            self.size += -self.size % 64 if isinstance(kind, Fixed) else 0
            self.offsets[member] = self.size
            if isinstance(kind, Fixed):
                self.size += kind.dtype.itemsize * kind.length
            else:
                self.size += kind.size if isinstance(kind, Layout) else 2 * _WORD
        self.size += -self.size % 64
        self.type = BlockType(f"Block({name})")
        _LAYOUTS[self.type.name] = self

    def type_of(self, member: str) -> Any:
        kind = self.members[member]
        return kind.type if isinstance(kind, Layout) else numba.from_dtype(kind.dtype)[::1]


_LAYOUTS: Final[dict[str, Layout]] = {}


# --- to kernels ---------------------------------------------------------------------------------------------


@register_model(BlockType)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _I8.as_pointer())


@infer_getattr
class _Attributes(AttributeTemplate):  # type: ignore[misc]
    key = BlockType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        layout = _LAYOUTS[kind.name]
        return layout.type_of(name) if name in layout.members else None


@lower_getattr_generic(BlockType)  # type: ignore[untyped-decorator]
def _get(context: Any, builder: Any, kind: Any, block: Any, name: str) -> Any:
    layout = _LAYOUTS[kind.name]
    member = layout.members[name]
    place = builder.gep(block, [_I64(layout.offsets[name])])
    if isinstance(member, Layout):
        return place
    if isinstance(member, Fixed):
        data, length = place, _I64(member.length)
    else:
        words = builder.bitcast(place, _I64.as_pointer())
        data = builder.inttoptr(builder.load(words), _I8.as_pointer())
        length = builder.load(builder.gep(words, [_I64(1)]))
    array_type = layout.type_of(name)
    array = context.make_array(array_type)(context, builder)
    size = _I64(member.dtype.itemsize)
    populate_array(
        array, data=builder.bitcast(data, array.data.type), shape=[length], strides=[size], itemsize=size,
        meminfo=None,
    )  # fmt: skip
    return array._getvalue()


def reader_of(layout: Layout) -> Any:
    """The intrinsic `state_at(memory)`: the block at the start of an array of u64."""

    @intrinsic  # type: ignore[untyped-decorator]
    def state_at(typingctx: Any, memory: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.bitcast(array.data, _I8.as_pointer())

        return layout.type(memory), codegen

    return state_at


# --- to Python ----------------------------------------------------------------------------------------------


class Block:
    """A block with its arrays as attributes; to assign one is to replace it. Arrays of 0 until then."""

    layout: Layout
    memory: NDArray[np.uint64]
    start: int

    def __init__(self, layout: Layout, memory: NDArray[np.uint64], start: int = 0) -> None:
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "start", start)
        for name, member in layout.members.items():
            at = start + layout.offsets[name]
            if isinstance(member, Layout):
                object.__setattr__(self, name, Block(member, memory, at))
            elif isinstance(member, Fixed):
                data = memory.view(np.uint8)[at : at + member.dtype.itemsize * member.length]
                object.__setattr__(self, name, data.view(member.dtype))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __setattr__(self, name: str, array: NDArray[Any]) -> None:
        member = self.layout.members[name]
        if not isinstance(member, Pool) or array.dtype != member.dtype or not array.flags.c_contiguous:
            raise TypeError(f"{name} is no {array.dtype}")
        object.__setattr__(self, name, array)  # and keeps its memory alive
        at = (self.start + self.layout.offsets[name]) // _WORD
        self.memory[at : at + 2] = array.ctypes.data, len(array)
