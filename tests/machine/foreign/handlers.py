"""Foreign functions made of Python, for machines that have no compiler: they read their frames by
the records of the interface."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from calque.machine.foreign import structs, targets
from calque.machine.foreign.frames import laid_out

NAMES = {number: name for name, number in structs.DATA_TYPES.items()}
_alive: list[Any] = []


def pointers(address: int | None, count: int) -> list[int]:
    return list((ctypes.c_void_p * count).from_address(address)) if count else []


class Frame:
    """A call as Python sees it."""

    def __init__(self, address: int) -> None:
        self.raw = structs.CallFrame.from_address(address)
        self.api = structs.Api.from_address(self.raw.api)
        self.stage = structs.STAGES[self.raw.stage]
        self.args = [self._array(p) for p in pointers(self.raw.args.values, self.raw.args.size)]
        self.outs = [self._array(p) for p in pointers(self.raw.rets.values, self.raw.rets.size)]
        self.attributes = attributes(self.raw.attrs)

    @staticmethod
    def _array(address: int) -> np.ndarray:
        buffer = structs.Buffer.from_address(address)
        assert buffer.struct_size == ctypes.sizeof(structs.Buffer)
        assert buffer.data % 64 == 0
        shape = (ctypes.c_int64 * buffer.rank).from_address(buffer.dims)[:] if buffer.rank else []
        return elements(buffer.data, NAMES[buffer.dtype], int(np.prod(shape))).reshape(shape)

    def ask(self, name: str, record: Any) -> int | None:
        """Call a function of the table with a record."""
        answer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(getattr(self.api, name))
        found: int | None = answer(ctypes.addressof(record))
        return found

    def error(self, code: int, text: str) -> int | None:
        message = ctypes.create_string_buffer(text.encode())
        record = structs.made(structs.ErrorCreate, message=ctypes.addressof(message), code=code)
        return self.ask("error_create", record)


def elements(address: int, dtype: str, count: int) -> np.ndarray:
    kind = np.dtype(dtype)
    raw = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    return np.frombuffer(memoryview(raw).cast("B"), kind)


def _text(span: Any) -> str:
    return ctypes.string_at(span.ptr, span.len).decode()


def attributes(record: Any) -> dict[str, Any]:
    names = [structs.ByteSpan.from_address(p) for p in pointers(record.names, record.size)]
    kinds = (ctypes.c_int * record.size).from_address(record.types)[:] if record.size else []
    values = pointers(record.values, record.size)
    return {_text(n): _attribute(k, v) for n, k, v in zip(names, kinds, values)}


def _attribute(kind: int, address: int) -> Any:
    if kind == structs.STRING:
        return _text(structs.ByteSpan.from_address(address))
    if kind == structs.DICTIONARY:
        return attributes(structs.Attributes.from_address(address))
    if kind == structs.ARRAY:
        array = structs.Array.from_address(address)
        return elements(array.data, NAMES[array.dtype], array.size).copy()
    scalar = structs.Scalar.from_address(address)
    return elements(scalar.value, NAMES[scalar.dtype], 1)[0]


def handler(run: Callable[[Frame], int | None], version: tuple[int, int] = structs.VERSION) -> Any:
    """A capsule of a foreign function that runs this; None is no error."""

    def called(address: int) -> int | None:
        raw = structs.CallFrame.from_address(address)
        if raw.extension_start:
            asked = structs.MetadataExtension.from_address(raw.extension_start)
            assert asked.base.type == structs.METADATA
            known = asked.metadata[0].api_version
            known.major, known.minor = version
            return None
        return run(Frame(address))

    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(called)
    _alive.append(function)
    return targets.capsule_of(ctypes.cast(function, ctypes.c_void_p).value)


def known(name: str, run: Callable[[Frame], int | None], **options: Any) -> targets.Target:
    """A foreign function of the CPU that runs this."""
    targets.make_known(name, handler(run, **options), "cpu", 1, {})
    found = targets.find(name)
    assert found is not None
    return found


def run(
    target: targets.Target, args: Any = (), outs: Any = (), attributes: Any = None
) -> targets.Instance:
    """Call it once, with arrays row by row."""
    instance = targets.Instance(target, attributes or {})
    instance.run([(x, x.shape) for x in args], [(x, x.shape) for x in outs])
    return instance


def aligned(x: Any) -> np.ndarray:
    """An array as foreign functions get it."""
    return laid_out(np.asarray(x), range(np.ndim(x)), own=True)
