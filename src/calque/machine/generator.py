"""LLVM's functions that make an object of a module, one after the other in a single call.

A thread that compiles while another one runs Python waits for the interpreter's lock after each
call that has given it up, and holds the other one up during each that has not: so one call does
all, without it.

before: parse (with the lock); passes (without; wait); code (without; wait)
after:  parse, passes, code (without; wait)"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from calque.machine.code import generation
from calque.machine.lang.unit import (
    NULL,
    Unit,
    i32,
    load_ptr,
    ptr,
    signature,
)
from calque.machine.once import once

unit = Unit("generator", leads=True)

_create_type = signature(ptr)
_parse_type = signature(ptr, ptr, ptr, ptr)
_verify_type = signature(i32, ptr, ptr)
_target_type = signature(None, ptr, ptr)
_passes_type = signature(None, ptr, ptr, ptr)
_emit_type = signature(ptr, ptr, ptr, i32, ptr)
_dispose_type = signature(None, ptr)
# The functions by their places in a table, in this order.
_TABLE: Final = (
    "LLVMPY_ContextCreate",
    "LLVMPY_ParseAssembly",
    "LLVMPY_VerifyModule",
    "LLVMPY_SetTarget",
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
    "LLVMPY_DisposeModule",
    "LLVMPY_ContextDispose",
)


@unit.function
def calque_generate(
    table: ptr, text: ptr, triple: ptr, machine: ptr, passes: ptr, builder: ptr, message: ptr
) -> ptr:
    """The buffer that holds the object of a module; none where LLVM refuses it, perhaps with a
    message."""
    made = NULL
    context = _create_type(load_ptr(table, 0))
    module = _parse_type(load_ptr(table, 8), context, text, message)
    if module != NULL:
        if _verify_type(load_ptr(table, 16), module, message) == 0:
            _target_type(load_ptr(table, 24), module, triple)
            if passes != NULL:
                _passes_type(load_ptr(table, 32), passes, module, builder)
            made = _emit_type(load_ptr(table, 40), machine, module, 1, message)
        _dispose_type(load_ptr(table, 48), module)
    _dispose_type(load_ptr(table, 56), context)
    return made


@once
def get_ready() -> None:
    """Let objects be made by one call from now on, if LLVM's library is the one that we know."""
    addresses = generation.addresses(_TABLE)
    if addresses is None:
        return
    table = (ctypes.c_void_p * len(addresses))(*addresses)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    call = ctypes.CFUNCTYPE(pointer, pointer, text, text, pointer, pointer, pointer, pointer)(
        unit.address("calque_generate")
    )

    def generate(*args: Any) -> Any:
        return call(ctypes.addressof(table), *args)

    generation.at_once.append(generate)
