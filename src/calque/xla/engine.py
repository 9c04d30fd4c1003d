"""Programs compiled and run by XLA on this machine's CPU.

Arrays stay what they are: memory of this process, which XLA reads and writes where it lies. A call
returns when its results are there, and raises what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import to_array
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import MemoryStats, Options
from calque.core.jaxprs import ClosedJaxpr
from calque.machine.call.arrays import wrap_numpy
from calque.machine.once import once
from calque.xla import jaxlib
from calque.xla.devices import cpu_client, cpu_devices, device_of
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.programs import host_data
from calque.xla.text.types import Tensor, type_of

__all__ = ["Executable", "compile_on_cpu", "cpu_devices"]

prepared = once(jaxlib.register_lapack)


class Executable:
    """A program that XLA compiled."""

    program: Any = None  # it is called from Python

    def __init__(self, closed: ClosedJaxpr, options: Options) -> None:
        self.closed, self.options = closed, options
        self.in_avals: Sequence[ShapedArray] = closed.in_avals
        self.out_avals: Sequence[ShapedArray] = closed.out_avals
        request = Request(name=options.name, constants_as_arguments=True, plain_results=True)
        self.lowered = lower_module(closed, request)
        prepared()
        device = device_of(options.device)
        self.put = jaxlib.Putter(device.xla)
        self.constants = [self.put(host_data(c)) for c in self.lowered.constants]
        types = self.lowered.module.functions[0].results
        outs = [(t.shape, t.dtype) for t in types if isinstance(t, Tensor)]
        self.loaded = jaxlib.LoadedProgram(
            cpu_client(), device.xla, self.lowered.text(), self.lowered.callbacks, outs
        )

    def call(self, args: Sequence[Any]) -> list[Any]:
        """The results for arrays of exactly the types of the program."""
        buffers = [*self.constants, *(self.put(self.checked(i, args)) for i in self.lowered.kept)]
        try:
            found = self.loaded.run(buffers)
        except jaxlib.runtime_errors() as e:
            raise self.reason(e) from None
        return [array_of(x, a) for x, a in zip(found, self.out_avals, strict=True)]

    def checked(self, i: int, args: Sequence[Any]) -> np.ndarray:
        """An argument as XLA takes it."""
        x, aval = to_array(args[i]), self.in_avals[i]
        if x.aval.shape != aval.shape or x.aval.dtype != aval.dtype:
            raise TypeError(
                f"a program compiled for {aval.str_short()} was called with {x.aval.str_short()}"
            )
        return host_data(x)

    def reason(self, error: Exception) -> Exception:
        """What a function on the host raised, if that is why the program failed."""
        for function in self.lowered.callbacks:
            raised: Exception | None = function.take_error()
            if raised is not None:
                return raised
        return error

    def as_text(self, stage: str | None = None) -> str:
        if stage in (None, "hlo"):
            return self.loaded.hlo()
        if stage == "stablehlo":
            return self.lowered.text()
        if stage == "jaxpr":
            return str(self.closed)
        raise ValueError(f"XLA has the stages hlo, stablehlo and jaxpr, not {stage!r}")

    def cost_analysis(self) -> dict[str, float]:
        return self.loaded.costs()

    def memory_analysis(self) -> MemoryStats:
        m = self.loaded.memory()
        return MemoryStats(
            sum(map(nbytes, self.in_avals)),
            sum(map(nbytes, self.out_avals)),
            int(m.temp_size_in_bytes),
            int(m.alias_size_in_bytes),
            int(m.generated_code_size_in_bytes),
        )


def array_of(x: np.ndarray, aval: ShapedArray) -> Any:
    """A result as an Array, in the memory that XLA gave it; of keys the words as records."""
    tensor = type_of(aval)
    if tensor.shape != aval.shape:
        x = np.ascontiguousarray(x).view(aval.dtype.storage).reshape(aval.shape)
    elif tensor.dtype != aval.dtype:  # float0
        x = np.zeros(aval.shape, aval.dtype)
    elif x.dtype != aval.dtype:  # bits of a type that NumPy lacks, or integers of fewer bits
        is_bits = aval.dtype.name.startswith(("bfloat", "float"))
        x = x.view(aval.dtype) if is_bits else x.astype(aval.dtype)
    return wrap_numpy(aval, np.ascontiguousarray(x).reshape(aval.shape))


def compile_on_cpu(closed: ClosedJaxpr, options: Options) -> Executable:
    """The backend `xla_cpu`."""
    return Executable(closed, options)
