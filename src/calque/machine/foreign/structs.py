"""The memory of XLA's interface for foreign functions (version 0.3 of it): records as C knows them.

Every record begins with its size and a pointer to extensions. `made` fills in the size."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, ClassVar, Final, TypeVar

VERSION: Final = (0, 3)
# Kinds of data, of arguments, of attributes; stages; the extension that asks what a function is.
DATA_TYPES: Final = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "complex64": 15, "bfloat16": 16, "complex128": 18,
    "float8_e5m2": 19, "float8_e4m3fn": 20, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25, "float8_e4m3": 28, "float8_e3m4": 29, "float8_e8m0fnu": 33,
}  # fmt: skip
BUFFER: Final = 1
ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4
STAGES: Final = ("instantiate", "prepare", "initialize", "execute")
METADATA: Final = 1

_Record = TypeVar("_Record", bound=Structure)


class Extension(Structure):
    _fields_ = (("struct_size", c_size_t), ("type", c_int), ("next", c_void_p))


class _Sized(Structure):
    _fields_: ClassVar[Any] = (("struct_size", c_size_t), ("extension_start", c_void_p))


class ApiVersion(_Sized):
    _fields_ = (("major", c_int), ("minor", c_int))


class ByteSpan(Structure):
    _fields_ = (("ptr", c_void_p), ("len", c_size_t))


class Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", c_void_p))


class Array(Structure):
    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


class Buffer(_Sized):
    _fields_ = (("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", c_void_p))


class Values(_Sized):
    """Arguments or results: how many, of which kinds, and where each is."""

    _fields_ = (("size", c_int64), ("types", c_void_p), ("values", c_void_p))


class Attributes(_Sized):
    _fields_ = (
        ("size", c_int64),
        ("types", c_void_p),
        ("names", c_void_p),
        ("values", c_void_p),
    )


class CallFrame(_Sized):
    """What a foreign function is called with. The size that it tells leaves out `future`."""

    _fields_ = (
        ("api", c_void_p),
        ("ctx", c_void_p),
        ("stage", c_int),
        ("args", Values),
        ("rets", Values),
        ("attrs", Attributes),
        ("future", c_void_p),
    )


class Metadata(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("api_version", ApiVersion),
        ("traits", c_uint32),
        ("state_type_id", c_int64),
    )


class MetadataExtension(Structure):
    _fields_ = (("base", Extension), ("metadata", POINTER(Metadata)))


class TypeInfo(_Sized):
    _fields_ = (("deleter", c_void_p),)


class ErrorCreate(_Sized):
    _fields_ = (("message", c_void_p), ("code", c_int))


class ErrorMessage(_Sized):
    _fields_ = (("error", c_void_p), ("message", c_void_p))


class ErrorDestroy(_Sized):
    _fields_ = (("error", c_void_p),)


class OfContext(_Sized):
    """A question about a call that is answered by one word."""

    _fields_ = (("ctx", c_void_p), ("word", c_void_p))


class ContextGet(_Sized):
    _fields_ = (("ctx", c_void_p), ("type_id", POINTER(c_int64)), ("data", c_void_p))


class State(_Sized):
    _fields_ = (
        ("ctx", c_void_p),
        ("stage", c_int),
        ("type_id", POINTER(c_int64)),
        ("state", c_void_p),
    )


class StateWithoutStage(_Sized):
    """As libraries know it that were built before version 0.3."""

    _fields_ = (("ctx", c_void_p), ("type_id", POINTER(c_int64)), ("state", c_void_p))


class TypeRegister(_Sized):
    _fields_ = (("name", ByteSpan), ("type_id", POINTER(c_int64)), ("type_info", POINTER(TypeInfo)))


class Memory(_Sized):
    _fields_ = (
        ("ctx", c_void_p),
        ("size", c_size_t),
        ("alignment", c_size_t),
        ("data", c_void_p),
    )


class MemoryFree(_Sized):
    _fields_ = (("ctx", c_void_p), ("size", c_size_t), ("data", c_void_p))


class Schedule(_Sized):
    _fields_ = (("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p))


class FutureOf(_Sized):
    _fields_ = (("future", c_void_p), ("error", c_void_p))


class Ordinal(_Sized):
    _fields_ = (("ctx", c_void_p), ("ordinal", c_int32))


# The functions that a foreign function may call, in the order of their places.
FUNCTIONS: Final = (
    "error_create", "error_message", "error_destroy", "handler_register", "stream",
    "type_register", "context_get", "state_set", "state_get", "memory_allocate", "memory_free",
    "schedule", "threads", "future_create", "future_available", "future_error", "run_id", "ordinal",
)  # fmt: skip


class Api(_Sized):
    _fields_ = (
        ("version", ApiVersion),
        ("internal", c_void_p),
        *((name, c_void_p) for name in FUNCTIONS),
    )


def made(record: type[_Record], /, **fields: Any) -> _Record:
    """A record that knows its size."""
    return record(**{"struct_size": ctypes.sizeof(record), **fields})
