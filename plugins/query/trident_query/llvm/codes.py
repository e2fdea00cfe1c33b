"""Dictionary-coded columns: the pattern runs on the distinct values, a look-up answers for each code.

    i64 look_up(code* codes, i64 count, i64 known, u8* answers, u8* bools)

A code from `known` on has no value and does not match: answers[known] is 0.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError
from trident_query.llvm.host import Host, object_code
from trident_query.llvm.kernels import Kernel, kernels
from trident_query.llvm.objects import Stored

NAME: Final = "look_up"

#: Codes of one turn of the loop.
UNROLLED: Final = 8

_POINTER, _I64 = ctypes.c_void_p, ctypes.c_int64
_ARGUMENTS: Final = (_POINTER, _I64, _I64, _POINTER, _POINTER)

_FRAME: Final = """
define i64 @look_up(ptr %codes, i64 %count, i64 %known, ptr %answers, ptr %bools) {{
entry:
  %listed = icmp ne ptr %bools, null
  %last = sub i64 %count, {unrolled}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i_many, %many_done ], [ %i_one, %one_done ]
  %total = phi i64 [ 0, %entry ], [ %total_many, %many_done ], [ %total_one, %one_done ]
  %roomy = icmp sle i64 %i, %last
  br i1 %roomy, label %many, label %few
few:
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %done
many:
{many}
  %i_many = add i64 %i, {unrolled}
  br i1 %listed, label %put_many, label %many_done
put_many:
{put}
  br label %many_done
many_done:
  br label %next
one:
{one}
  %total_one = add i64 %total, %o_0
  %i_one = add i64 %i, 1
  br i1 %listed, label %put_one, label %one_done
put_one:
  %o_to = getelementptr i8, ptr %bools, i64 %i
  store i8 %o_answer_0, ptr %o_to
  br label %one_done
one_done:
  br label %next
done:
  ret i64 %total
}}
declare i64 @llvm.umin.i64(i64, i64)
"""


def _one(letter: str, number: int, bits: int) -> list[str]:
    """The answer to code %i + number, as %<letter>_<number> (i64) and %<letter>_answer_<number> (i8)."""
    n, x = number, letter
    return [
        f"  %{x}_i_{n} = add i64 %i, {n}",
        f"  %{x}_at_{n} = getelementptr i{bits}, ptr %codes, i64 %{x}_i_{n}",
        f"  %{x}_read_{n} = load i{bits}, ptr %{x}_at_{n}, align 1",
        f"  %{x}_code_{n} = zext i{bits} %{x}_read_{n} to i64",
        f"  %{x}_known_{n} = call i64 @llvm.umin.i64(i64 %{x}_code_{n}, i64 %known)",
        f"  %{x}_from_{n} = getelementptr i8, ptr %answers, i64 %{x}_known_{n}",
        f"  %{x}_answer_{n} = load i8, ptr %{x}_from_{n}",
        f"  %{x}_{n} = zext i8 %{x}_answer_{n} to i64",
    ]


def look_up_code(bits: int) -> str:
    """LLVM IR of `look_up` for codes of 8, 16 or 32 bits."""
    many, put, total = [], [], "%total"
    for number in range(UNROLLED):
        many += _one("m", number, bits)
        following = "%total_many" if number == UNROLLED - 1 else f"%sum_{number}"
        many.append(f"  {following} = add i64 {total}, %m_{number}")
        put.append(f"  %to_{number} = getelementptr i8, ptr %bools, i64 %m_i_{number}")
        put.append(f"  store i8 %m_answer_{number}, ptr %to_{number}")
        total = following
    return _FRAME.format(
        unrolled=UNROLLED, many="\n".join(many), put="\n".join(put), one="\n".join(_one("o", 0, bits))
    )


def look_up(
    codes: NDArray[Any], answers: NDArray[np.bool_], host: Host, bools: NDArray[np.bool_] | None = None
) -> int:
    """How many codes (u8, u16 or u32 [n]) have a value that matches; each one's answer into `bools`.

    Raises UsageError for codes of another type.
    """
    if codes.ndim != 1 or codes.dtype not in (np.uint8, np.uint16, np.uint32):
        raise UsageError(f"codes are u8, u16 or u32 [n], not {codes.dtype}[{codes.ndim} dimensions]")
    codes = np.ascontiguousarray(codes)
    bits = 8 * codes.dtype.itemsize

    def make() -> Stored:
        return Stored(object_code(look_up_code(bits), host), {})

    kernel: Kernel = kernels().get(f"u{bits}", host, NAME, _ARGUMENTS, make)
    known = np.zeros(len(answers) + 1, np.uint8)
    known[:-1] = answers
    out = None if bools is None else bools.ctypes.data
    return kernel.call(codes.ctypes.data, len(codes), len(answers), known.ctypes.data, out)
