"""The methods of traced arrays that need a value. A value that is being differentiated may know
it; others can but say so, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core import errors
from calque.core.arrays import is_concrete, to_array
from calque.core.dtypes import is_integer
from calque.core.origins import origin
from calque.core.trace import JaxprTracer, value_if_known
from calque.core.trace_state import Tracer
from calque.transforms.devices.mesh import mapped_mesh
from calque.transforms.engines.batching import BatchTracer
from calque.transforms.engines.jvp import JVPTracer

_NUMBERS: Final = ("int", "float", "complex")
# What a derivative gives of the value at which it is taken. `float(x)` is refused: what is computed
# with it would be without a slope, and nobody would notice.
_GIVEN: Final[dict[str, Callable[[Any], Any]]] = {"int": int, "item": lambda x: x.item()}


def _known(x: Any) -> Any:
    """The value at which a derivative is taken, None where that is traced itself."""
    while type(x) is JVPTracer:
        x = x.primal
    x = value_if_known(x)
    return None if isinstance(x, Tracer) else to_array(x)


def _bool(self: Any) -> bool:
    known = _known(self)
    if known is not None:
        return bool(known)
    if self.aval.shape and self.aval.size != 1:
        how = "an empty array" if self.aval.size == 0 else "an array with more than one element"
        raise ValueError(
            f"The truth value of {how} is ambiguous. Use any() or all(), or compare shapes. Got a"
            f" traced array of type {self.aval.str_short()}.{origin(self)}"
        )
    raise errors.TracerBoolConversionError(
        f"Attempted boolean conversion of traced array with shape {self.aval.str_short()}. Its"
        f" value is not known while tracing.{origin(self)}\nUse lax.cond(pred, true_fun, false_fun,"
        " *operands) or jnp.where(pred, x, y) instead of `if`, lax.while_loop instead of `while`,"
        " and & | ~ instead of `and`, `or`, `not`; or let calque do so: jit(f,"
        ' control_flow="convert"); or make the argument static with static_argnums.'
    )


def _concretize(kind: str) -> Callable[..., Any]:
    instead = f"Try using `x.astype({kind})` instead, keep" if kind in _NUMBERS else "Keep"

    def method(self: Any, *args: Any) -> Any:
        if kind in _GIVEN and not args:
            known = _known(self)
            if known is not None:
                return _GIVEN[kind](known)
        if kind in _NUMBERS and self.aval.shape:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars. Got a traced array of type"
                f" {self.aval.str_short()}.{origin(self)}"
            )
        raise errors.ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected. The"
            f" {kind}() method was called on traced array of type {self.aval.str_short()}, whose"
            f" value is not known while tracing.{origin(self)}\n{instead} the"
            " computation in jnp functions, or make the argument static with"
            " static_argnums or static_argnames."
        )

    return method


def _no_index(self: Any) -> int:
    if self.aval.shape or not is_integer(self.aval.dtype):
        raise errors.TracerIntegerConversionError(
            "Only integer scalar arrays can be converted to a scalar index."
            f" Got a traced array of type {self.aval.str_short()}.{origin(self)}"
        )
    raise errors.TracerIntegerConversionError(
        "Abstract tracer value encountered where concrete value is expected. The __index__()"
        f" method was called on traced array with shape {self.aval.str_short()}: a Python index or"
        " size is needed, but its value is not known while"
        f" tracing.{origin(self)}\nIndex a calque array instead of a list (jnp.array(seq)[i]), use"
        " lax.fori_loop instead of range, or make the argument static with static_argnums."
    )


def _no_array(self: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    raise errors.TracerArrayConversionError(
        "The numpy.ndarray conversion method __array__() was called on traced array with shape"
        f" {self.aval.str_short()}.{origin(self)}\nUse the function of the same name in"
        " calque.numpy, or calque.pure_callback to call NumPy while the program runs."
    )


def _members(self: Any) -> str | None:
    """The values that the members of a `shard_map` have, each with its device and its place in the
    mesh, in the order of the mesh."""
    names: list[Any] = []
    held: dict[tuple[int, ...], Any] = {(): self}
    mesh: Any = None
    while isinstance(x := next(iter(held.values())), BatchTracer):
        trace: Any = x._trace
        axis = trace.axis
        if axis.mesh is None:
            break
        mesh = axis.mesh
        names.append(axis.name)
        held = {
            (*place, k): x.val if x.dim is None else x.val[_row(x, k)]
            for place, x in held.items()
            for k in range(axis.size)
        }
    if not names or any(isinstance(x, Tracer) for x in held.values()):
        return None
    manual = [n for n in mesh.axis_names if n in names or n in mesh.manual_axes]
    concrete = mapped_mesh(mesh)
    said = []
    for where in np.ndindex(*(mesh.shape[n] for n in manual)):
        at = dict(zip(manual, where, strict=True))
        device = "At"
        if concrete is not None and len(manual) == len(mesh.axis_names):
            device = f"On {concrete.devices[where]} at"
        place = f"{device} mesh coordinates ({', '.join(map(str, manual))},) = {where}"
        said.append(f"{place}:\n{held[tuple(at[n] for n in names)]}\n")
    return "\n".join(said)


def _row(x: Any, k: int) -> tuple[Any, ...]:
    return (slice(None),) * x.dim + (k,)


def _tracer_repr(self: Any) -> str:
    members = _members(self) if isinstance(self, BatchTracer) else None
    if members is not None:
        return members
    weak = "~" if self.aval.weak_type else ""
    kind = "JitTracer" if isinstance(self, JaxprTracer) else type(self).__name__
    held = "".join(
        f", {name}={getattr(self, name)}" for name in ("primal", "val") if hasattr(self, name)
    )
    dtype, sizes = getattr(self.aval.dtype, "name", self.aval.dtype), ",".join(map(str, self.shape))
    return f"{kind}({weak}{dtype}[{sizes}]{held})"


def _format(self: Any, spec: str) -> str:
    if not spec:
        return _tracer_repr(self)
    if is_concrete(self):
        return format(value_if_known(self), spec)
    raise TypeError(
        f"unsupported format string {spec!r} for a traced array of type {self.aval.str_short()}:"
        f" its value is not known while tracing.{origin(self)}\nPrint it while the program runs:"
        f" calque.debug.print('{{x:{spec}}}', x=x)"
    )


TRACED: Final[dict[str, Any]] = {
    "__repr__": _tracer_repr,
    "__str__": _tracer_repr,
    "__format__": _format,
    "__bool__": _bool,
    "__int__": _concretize("int"),
    "__float__": _concretize("float"),
    "__complex__": _concretize("complex"),
    "__index__": _no_index,
    "__array__": _no_array,
    "item": _concretize("item"),
    "tolist": _concretize("tolist"),
    "tobytes": _concretize("tobytes"),
    "__reduce__": _concretize("__reduce__"),
    "block_until_ready": lambda self: self,
}

# what numbers of the program answer whose value is known
KNOWN: Final = (
    "__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__", "__reduce__",
    "item", "tolist", "tobytes",
)  # fmt: skip


def of_value(name: str) -> Callable[..., Any]:
    """A method that the value has."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.value, name)(*args, **kwargs)

    return method
