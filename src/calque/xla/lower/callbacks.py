"""Python called from inside programs on XLA: callbacks of the user, and primitives that XLA has no
operation for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.dtypes import ExtendedDType
from calque.core.jaxprs import Eqn
from calque.transforms.devices.sharding import SingleDeviceSharding
from calque.xla.lower.found_bodies import natively
from calque.xla.lower.placing import maximal_mesh, tiled
from calque.xla.lower.rules import Builder, equation_rule, listed
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Part, Value
from calque.xla.text.types import TOKEN, Tensor, Type, signature

_GPU: Final = "xla_ffi_python_gpu_callback"
TARGET: Final = {"cpu": "xla_ffi_python_cpu_callback", "cuda": _GPU, "rocm": _GPU}


class HostFunction:
    """The meaning of an equation as a function of NumPy arrays, with results of exactly the types
    that the program expects."""

    def __init__(
        self,
        e: Eqn,
        outs: Sequence[Tensor],
        *,
        ordered: bool = False,
        meaning: Callable[..., Any] | None = None,
    ) -> None:
        self.primitive, self.params, self.outs = e.primitive, e.params, tuple(outs)
        self.meaning = meaning or e.primitive.meaning
        self.records = tuple(
            v.aval.dtype.storage if isinstance(v.aval.dtype, ExtendedDType) else None
            for v in e.invars
        )
        self.source = e.source
        self.ordered = ordered
        self._errors: list[Exception] = []

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """With a token first, of arguments and results, where effects keep their order."""
        try:
            if self.ordered:
                return (args[0], *self.results(args[1:]))
            return self.results(args)
        except Exception as e:
            self._errors.append(e)
            raise

    def take_error(self) -> Exception | None:
        """What was raised here since this was asked last: XLA hands on its text alone."""
        return self._errors.pop() if self._errors else None

    def results(self, args: Sequence[Any]) -> tuple[np.ndarray, ...]:
        xs = [
            np.asarray(x) if record is None else _as_records(np.asarray(x), record)
            for x, record in zip(args, self.records, strict=True)
        ]
        found = self.meaning(*xs, **self.params)
        results = found if self.primitive.multiple_results else [found]
        return tuple(_as_tensor(np.asarray(x), t) for x, t in zip(results, self.outs, strict=True))

    @property
    def told(self) -> str:
        """What it is and where it stands, for errors."""
        return f"{self.primitive.name} at {self.source}"

    def __repr__(self) -> str:
        return f"HostFunction({self.told})"


def _as_records(words: np.ndarray, record: np.dtype) -> np.ndarray:
    """Keys out of the words of each: its own dimensions are the last ones."""
    keys = words.shape[: words.ndim - len(record[0].shape)]
    return np.frombuffer(words.tobytes(), record).reshape(keys)


def _as_tensor(x: np.ndarray, t: Tensor) -> np.ndarray:
    if x.dtype.names:  # keys: their words
        x = np.ascontiguousarray(x)[x.dtype.names[0]]
    return np.ascontiguousarray(x, t.dtype).reshape(t.shape)


def host_call(b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value]) -> list[Value]:
    """An equation whose meaning runs in Python, on the host; of nothing but empty arrays now, since
    there is one result only."""
    shapes = [t.shape for t in (*[x.tensor for x in args], *outs)]
    empty = bool(args) and all(0 in x.shape for x in args)
    if empty and not e.primitive.effect and not is_free(*shapes):
        found = HostFunction(e, outs).results([np.zeros(x.shape, x.dtype) for x in args])
        return [b.constant(x) for x in found]
    return _called(b, e, outs, args)


def _called(
    b: Builder,
    e: Eqn,
    outs: Sequence[Tensor],
    args: Sequence[Value],
    device: int | None = None,
) -> list[Value]:
    ordered = bool(e.params.get("ordered")) or e.params.get("effect") == "OrderedDebug"
    function = HostFunction(e, outs, ordered=ordered)
    return call_host(
        b, function, outs, args, effect=e.primitive.effect, ordered=ordered, device=device
    )


def native_call(
    b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value], *, ordered: bool
) -> list[Value]:
    """An equation that calque's own engine runs, on the host; its body may have effects."""
    function = HostFunction(e, outs, ordered=ordered, meaning=natively(e))
    return call_host(b, function, outs, args, effect=True, ordered=ordered)


def call_host(
    b: Builder,
    function: Any,
    outs: Sequence[Tensor],
    args: Sequence[Value],
    *,
    effect: bool = False,
    ordered: bool = False,
    device: int | None = None,
) -> list[Value]:
    """A call of a Python function of NumPy arrays that gives a tuple of them: of several devices
    on that of this number alone."""
    index = len(b.state.callbacks)
    b.state.callbacks.append(function)
    target = TARGET.get(b.state.platform)
    if target is None:
        told = getattr(function, "told", repr(function))
        raise NotImplementedError(
            f"programs on {b.state.platform} cannot call Python on the host: XLA has no such call"
            f" there, and no operation for {told}. Let it run elsewhere:"
            " jit(f, backend='cpu') outside of this program, and device_put its results"
        )
    xs = [*([b.ordered()] if ordered else []), *args]
    types: list[Type] = [*([TOKEN] if ordered else []), *outs]
    attributes = {
        "backend_config": '""',
        "mhlo.backend_config": f"{{index = {index} : ui64}}",
        "operand_layouts": layouts([x.type for x in xs]),
        "result_layouts": layouts(types),
    }
    if effect:
        attributes["has_side_effect"] = "true"
    if device is not None and b.state.gspmd:
        attributes["mhlo.sharding"] = f'"{{maximal device={device}}}"'
    elif device is not None and b.state.partitions > 1 and not b.state.manual:
        alone = f"<@{maximal_mesh(b.state, device)}, []>"
        # one for each result; of a call without results, one for the call
        attributes["sdy.sharding"] = (
            f"#sdy.sharding_per_value<[{', '.join([alone] * max(len(types), 1))}]>"
        )
    found = custom_call(b, target, types, xs, attributes)
    if ordered:
        b.token = found.pop(0)
    if device is not None and b.state.gspmd:  # what reads them is not on that device alone
        found = [tiled(b, x, None) for x in found]
    return found


def custom_call(
    b: Builder,
    target: str,
    types: Sequence[Type],
    xs: Sequence[Value],
    attributes: dict[str, str],
) -> list[Value]:
    """stablehlo.custom_call @target(operands) {attributes} : types"""
    listed_attributes = ", ".join(f"{k} = {attributes[k]}" for k in sorted(attributes))
    ending = f") {{{listed_attributes}}} : {signature([x.type for x in xs], types)}"
    parts: list[Part] = [f"stablehlo.custom_call @{target}(", *listed(xs), ending]
    return b.emit(types, *parts)


def layouts(types: Sequence[Type], columns_first: bool = False) -> str:
    """Arrays row by row; with `columns_first` the matrices in the last two dimensions column by
    column."""
    return f"[{', '.join(_layout(t, columns_first) for t in types)}]"


def _layout(t: Type, columns_first: bool) -> str:
    n = t.ndim if isinstance(t, Tensor) else 0
    if n == 0:
        return "dense<> : tensor<0xindex>"
    order = list(range(n - 1, -1, -1))
    if columns_first and n > 1:
        order[0], order[1] = order[1], order[0]
    text = str(order[0]) if n == 1 else f"[{', '.join(map(str, order))}]"
    return f"dense<{text}> : tensor<{n}xindex>"


@equation_rule("pure_callback", "io_callback", "debug_callback", "debug_print", "check")
def callback(b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value]) -> list[Value]:
    """Of several devices one calls, with whole arrays: that of the `sharding` asked for."""
    where = e.params.get("sharding")
    one = where.device_order[0].id if isinstance(where, SingleDeviceSharding) else 0
    if e.params.get("partitioned") and b.state.partitions_asked > 1 and not b.state.manual:
        warnings.warn(
            f"{e.primitive.name} at {e.source}: partitioned=True is of no effect, the function is"
            " called once, with whole values. Call it inside of calque.shard_map, where each device"
            " has its part",
            UserWarning,
            stacklevel=2,
        )
    return _called(b, e, outs, args, one)
