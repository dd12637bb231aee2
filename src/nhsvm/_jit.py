"""The only importer of numba: how every kernel of the library is compiled.

A kernel is a plain function of arrays and scalars. It is compiled when first called, kept on disk for later processes,
and releases the interpreter lock, so that threads run it side by side. What kernels call is ``inlined`` and in the same
file: numba does not notice that a helper in another file has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": True, "error_model": "numpy"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function``; sums may be reordered once, at compile time, so results are the same in every call."""
    compiled: Callable[..., Any] = numba.njit(cache=True, **_OPTIONS)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function for kernels of the same file, to become a part of them.

    Handing over many arrays takes longer than a short step; and a kernel that calls another kernel is not the same
    machine code, nor gives the same last bits, in the process that compiled both and in those that find them on disk.
    """
    compiled: Callable[..., Any] = numba.njit(nogil=True, fastmath=True, error_model="numpy", forceinline=True)(
        function
    )
    return compiled


@intrinsic
def widened(typing_context: Any, weight: Any) -> Any:
    """A stored weight as a float to compute with: uint16 are the bits of a float16, int8 a number, floats themselves.

    The bits of a half, moved to where a float has them, are the same number but for its exponent, which is 112 too
    small. Infinity and NaN are not looked for.
    """
    if weight not in (types.uint16, types.int8):
        return weight(weight), lambda context, builder, signature, arguments: arguments[0]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single, word = ir.FloatType(), ir.IntType(32)
        if weight is types.int8:
            return builder.sitofp(arguments[0], single)
        bits = builder.zext(arguments[0], word)
        sign = builder.shl(builder.and_(bits, word(0x8000)), word(16))
        size = builder.shl(builder.and_(bits, word(0x7FFF)), word(13))
        return builder.fmul(builder.bitcast(builder.or_(sign, size), single), single(2.0**112))

    return types.float32(weight), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Ask for ``array[position]`` (one-dimensional) to be brought into the cache, and do not wait for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(struct.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        signature_ = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], signature_)
        # 1: to be written, 3: keep it as near as possible, 1: data, not instructions
        builder.call(function, [address, ir.Constant(number, 1), ir.Constant(number, 3), ir.Constant(number, 1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
