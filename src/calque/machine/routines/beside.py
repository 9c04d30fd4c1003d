"""Calls that do not depend on each other, each by a thread of its own."""

from __future__ import annotations

from typing import Final

from calque.machine.lang.unit import Unit, i64, load_i64, load_ptr, ptr, signature, store_ptr

# Words before the arguments of a call: its code, how many turns it is called for, and room for the
# program, which stands before the arguments of each.
HEAD: Final = 3

unit = Unit("beside")
_kernel_type = signature(None, ptr, i64, i64)


@unit.function
def calque_beside(args: ptr, begin: i64, end: i64) -> None:
    """Some of the calls in `args`: how many words each takes, then one behind the other."""
    step = 8 * load_i64(args, 0)
    for k in range(begin, end):
        call = args + 8 + k * step
        store_ptr(call, 16, load_ptr(args, -8))
        _kernel_type(load_ptr(call, 0), call + 8 * HEAD, 0, load_i64(call, 8))
