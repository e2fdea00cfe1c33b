"""Asking the processor for a cache line ahead of its use, for which numba has no word."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I32 = ir.IntType(32)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """`prefetch(array, i)` in a kernel: array[i] (of an array of several dimensions: the start of row i) will
    be read or written soon; ask for its cache line and do not wait. i is u64 and not checked; a line that
    does not exist is harmless.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        zero = context.get_constant(types.uintp, 0)
        place = [args[1]] + [zero] * (kind.ndim - 1)
        pointer = cgutils.get_item_pointer(context, builder, kind, view, place)
        pointer = builder.bitcast(pointer, cgutils.voidptr_t)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            (cgutils.voidptr_t,),
            ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32]),
        )
        read, keep_in_all_levels, data = _I32(0), _I32(3), _I32(1)
        builder.call(function, [pointer, read, keep_in_all_levels, data])
        return context.get_dummy_value()

    return types.void(array, types.uintp), codegen
