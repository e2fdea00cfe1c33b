"""An intrinsic that asks the processor for the cache line of an array item, and does not wait for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """`prefetch(array, i)`: array[i] will be read or written soon. 1-D arrays of anything; i is not checked,
    and a line that does not exist is harmless."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, [args[1]])
        pointer = builder.bitcast(pointer, cgutils.voidptr_t)
        i32 = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            (cgutils.voidptr_t,),
            ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32]),
        )
        read, keep_in_all_levels, data = i32(0), i32(3), i32(1)
        builder.call(function, [pointer, read, keep_in_all_levels, data])
        return context.get_dummy_value()

    return types.void(array, types.uintp), codegen
