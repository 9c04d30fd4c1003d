"""Programs as data, and what is being traced: functions of `extend.core`."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core import trace_state
from calque.core.arrays import is_concrete
from calque.core.avals import ShapedArray
from calque.core.dtypes import tangent_dtype
from calque.core.errors import ConcretizationTypeError
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var
from calque.core.jaxprs import subjaxprs as _subjaxprs
from calque.core.trace import JaxprTrace, typeof
from calque.core.trace_state import Trace
from calque.ops.staging import TOKEN
from calque.transforms.engines import axes

__all__ = [
    "AbstractToken",
    "DebugInfo",
    "Effect",
    "Token",
    "TraceTag",
    "array_types",
    "call_impl",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "trace_state_clean",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]  # fmt: skip


class Effect:
    """Something that an operation does beside giving results. Libraries derive their own from
    it."""


class AbstractToken:
    """The type of tokens."""


class _IsToken(type):
    """`isinstance(x, Token)` holds for what `lax.create_token` makes: an array of no elements."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return getattr(instance, "aval", None) is TOKEN


class Token(metaclass=_IsToken):
    """A value that orders effects. calque orders them as the program does and needs none."""


class TraceTag:
    """Marks traces that belong together."""


class DebugInfo(NamedTuple):
    """Names for messages: what was traced, where, and the names of arguments and results."""

    traced_for: str
    func_src_info: str | None
    arg_names: tuple[str, ...] | None = None
    result_paths: Any = None


no_effects: frozenset[Effect] = frozenset()
array_types: Final[set[type]] = {
    np.ndarray, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
    np.uint64, np.float16, np.float32,
    np.float64, np.complex64, np.complex128, np.longlong, np.intc,
}  # fmt: skip


# ---------------------------------------------------------------- programs


def new_jaxpr_eqn(
    invars: Sequence[Any], outvars: Sequence[Var], primitive: Any, params: dict[str, Any],
    effects: Any = no_effects, source_info: Any = None,
    ctx: Any = None,
) -> Eqn:  # fmt: skip
    """An equation. Its effects are those of its primitive; `effects` must not say otherwise."""
    if bool(effects) and not primitive.effect:
        raise ValueError(
            f"new_jaxpr_eqn: primitive {primitive} has no effects, got effects={effects}"
        )
    if ctx is not None:
        raise NotImplementedError(
            "new_jaxpr_eqn: equations keep no context of configuration here, leave out ctx"
        )
    return Eqn(primitive, invars, outvars, params, source_info)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes new variables of types."""
    return Var


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among the parameters of an equation."""
    return _subjaxprs(params)


def subjaxprs(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[Jaxpr]:
    """The programs among the parameters of the equations of a program."""
    for e in jaxpr.eqns:
        yield from _subjaxprs(e.params)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type without the mapped dimension: `mapped_aval(3, 0, f32[3,4])` is `f32[4]`."""
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(
            f"mapped_aval: dimension {axis} of {aval.str_short()} has not the size {size}"
        )
    shape, spec = list(aval.shape), _spec(aval)
    del shape[axis], spec[axis]
    return _of_dimensions(aval, shape, spec)


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
) -> ShapedArray:
    """The type with one more dimension: `unmapped_aval(3, 0, f32[4])` is `f32[3,4]`. Of a type that
    says where values are the dimension lies along `explicit_mesh_axis`."""
    if axis is None:
        return aval
    if explicit_mesh_axis is not None and aval.place is None:
        raise ValueError(
            f"unmapped_aval: {aval.str_short()} is on no mesh that has an axis"
            f" {explicit_mesh_axis!r}: give the type a sharding, or leave out explicit_mesh_axis"
        )
    shape, spec = list(aval.shape), _spec(aval)
    shape.insert(axis, size)
    spec.insert(axis, explicit_mesh_axis)
    return _of_dimensions(aval, shape, spec)


def _spec(aval: ShapedArray) -> list[Any]:
    """Along which axes of a mesh each dimension lies."""
    given = () if aval.place is None else tuple(aval.sharding.spec)
    return [*given, *[None] * (aval.ndim - len(given))]


def _of_dimensions(aval: ShapedArray, shape: Sequence[int], spec: Sequence[Any]) -> ShapedArray:
    """The type with other dimensions, which lie along these axes."""
    if aval.place is None:
        return aval.update(shape=tuple(shape))
    sharding = aval.sharding.update(spec=type(aval.sharding.spec)(*spec))
    return aval.update(shape=tuple(shape), sharding=sharding)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents: the same for floats and complex numbers, float0 for others."""
    return tangent_dtype(primal_dtype)


def call_impl(f: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """`f(*args)`, whatever the parameters of the call are."""
    return f(*args)


# ---------------------------------------------------------------- values


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` may be an operand of a primitive."""
    try:
        typeof(x)
    except (TypeError, OverflowError):
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """`force(val)` for a concrete value; for a traced one an error that says what needed it."""
    if not is_concrete(val):
        raise ConcretizationTypeError(
            f"Abstract tracer value encountered where concrete value is expected: {val!r}."
            f" {context}".strip()
        )
    return val if force is None else force(val)


# ---------------------------------------------------------------- traces


def find_top_trace(_: Sequence[Any]) -> Trace:
    """The trace that an operation on these values goes to."""
    return trace_state.top_trace(_)


def trace_state_clean() -> bool:
    """Whether nothing is being traced or transformed in this thread."""
    return trace_state.depth() == 0 and not unsafe_am_i_under_a_jit_DO_NOT_USE()


class _TraceState:
    """Equal to another when both were taken in the same trace."""

    def __init__(self) -> None:
        self._trace = trace_state.dynamic_trace()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TraceState) and other._trace is self._trace

    def __hash__(self) -> int:
        return id(self._trace)


def get_opaque_trace_state(convention: str | None = None) -> _TraceState:
    """Something to compare: it is equal as long as we are within the same trace."""
    return _TraceState()


@contextlib.contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """Operations inside go to this trace."""
    state = trace_state._state
    before, state.dynamic = state.dynamic, trace
    try:
        yield
    finally:
        state.dynamic = before


@contextlib.contextmanager
def take_current_trace() -> Iterator[Trace]:
    """The current trace, while operations inside run at once."""
    current = trace_state.dynamic_trace()
    with trace_state.evaluating():
        yield current


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is being recorded."""
    return isinstance(trace_state.dynamic_trace(), JaxprTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a named axis is being mapped over."""
    return bool(axes.in_scope())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that are being mapped over."""
    return [a.name for a in axes.in_scope()]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is being mapped over."""
    return bool(axes.in_scope())
