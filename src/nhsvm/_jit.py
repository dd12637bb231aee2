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
