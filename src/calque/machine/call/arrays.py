"""The type of arrays, the one that this interpreter has: a C type made by machine code, or a class
of plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.machine.objects.pyapi import IS_KNOWN

if TYPE_CHECKING or IS_KNOWN:
    from calque.machine.call.subscript import (
        basic_part,
        basic_shape,
        learn_result,
        learn_source,
        set_fallback,
    )
    from calque.machine.objects.array_type import (
        DELETED,
        ArrayImpl,
        arrivals,
        as_numpy,
        buffers,
        delete_array,
        new_array,
        share,
        wrap_numpy,
    )
    from calque.machine.objects.filling import copied, filled
    from calque.machine.objects.pending import pending_arrays, set_owner
    from calque.machine.objects.shortcuts import checked_pair, instance_check
else:
    from calque.machine.objects.plain import (
        DELETED,
        ArrayImpl,
        arrivals,
        as_numpy,
        basic_part,
        basic_shape,
        buffers,
        checked_pair,
        copied,
        delete_array,
        filled,
        instance_check,
        learn_result,
        learn_source,
        new_array,
        pending_arrays,
        set_fallback,
        set_owner,
        share,
        wrap_numpy,
    )

__all__ = [
    "DELETED",
    "ArrayImpl",
    "arrivals",
    "as_numpy",
    "basic_part",
    "basic_shape",
    "buffers",
    "checked_pair",
    "copied",
    "delete_array",
    "filled",
    "instance_check",
    "learn_result",
    "learn_source",
    "new_array",
    "pending_arrays",
    "set_fallback",
    "set_owner",
    "share",
    "wrap_numpy",
]
