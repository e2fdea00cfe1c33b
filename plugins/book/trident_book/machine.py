"""What the processor can do in an instruction or two, and numba has no word for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, view, [index])


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def matches(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """`matches(array, i, value)` -> u32: bit k says that array[i + k] == value, for k from 0 to 7.

    `array` is u32, and array[i] is aligned to 32 bytes.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.VectorType(_I32, 8)
        pointer = _address(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.bitcast(pointer, eight.as_pointer())
        loaded = builder.load(pointer, align=32)
        single = builder.insert_element(ir.Constant(eight, ir.Undefined), args[2], _I32(0))
        zeros = ir.Constant(eight, [0] * 8)
        wanted = builder.shuffle_vector(single, ir.Constant(eight, ir.Undefined), zeros)
        equal = builder.icmp_unsigned("==", loaded, wanted)
        return builder.zext(builder.bitcast(equal, _I8), _I32)

    return types.uint32(array, types.uintp, types.uint32), codegen


def _count_zeros(name: str, builder: Any, value: Any) -> Any:
    function = builder.module.declare_intrinsic(name, (_I64,), ir.FunctionType(_I64, [_I64, _I1]))
    return builder.call(function, [value, _I1(0)])


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typingctx: Any, value: Any) -> Any:
    """The number of the lowest bit of a u64 that is set; 64 if none is."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _count_zeros("llvm.cttz.i64", builder, args[0])

    return types.uint64(types.uint64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def highest_bit(typingctx: Any, value: Any) -> Any:
    """The number of the highest bit of a u64 that is set; 2^64 - 1 if none is."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sub(_I64(63), _count_zeros("llvm.ctlz.i64", builder, args[0]))

    return types.uint64(types.uint64), codegen
