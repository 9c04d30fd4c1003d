"""Programs as data, and what is being traced: functions of `extend.core`."""

import contextlib
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final

import numpy as np

from calque.core import trace_state
from calque.core.arrays import is_concrete
from calque.core.avals import ShapedArray
from calque.core.dtypes import tangent_dtype
from calque.core.errors import ConcretizationTypeError
from calque.core.jaxprs import ClosedJaxpr, DebugInfo, Eqn, Jaxpr, Var
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
    """Something that an operation does beside giving results. Libraries derive their own from it.

    >>> class Prints(jax.extend.core.Effect):
    ...     pass"""


Effects = Set[Effect]


class AbstractToken:
    """The type of tokens.

    >>> jax.extend.core.AbstractToken is not jax.extend.core.Token
    True"""


class _IsToken(type):
    """`isinstance(x, Token)` holds for what `lax.create_token` makes: an array of no elements."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return getattr(instance, "aval", None) is TOKEN


class Token(metaclass=_IsToken):
    """A value that orders effects. calque orders them as the program does and needs none.

    >>> isinstance(lax.create_token(), jax.extend.core.Token)
    True"""


class TraceTag:
    """Marks traces that belong together.

    >>> isinstance(jax.extend.core.TraceTag(), jax.extend.core.TraceTag)
    True"""


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
    """Makes an equation.

    Args:
        invars: The operands, variables and literals.
        outvars: The variables of the results.
        primitive: The operation.
        params: The parameters by name.
        effects: The effects; they must not say what the primitive does not have.
        source_info: Where it was made in the user's code.
        ctx: Must be None: equations keep no context of configuration.

    Returns:
        A JaxprEqn.

    >>> x, y = (jax.extend.core.Var(jax.typeof(1.0)) for _ in range(2))
    >>> jax.extend.core.new_jaxpr_eqn([x], [y], lax.sin_p, {}).primitive
    sin"""
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
    """Gives a function that makes new variables of types.

    Returns:
        A function from a type to a Var.

    >>> jax.extend.core.gensym()(jax.typeof(1.0)).aval
    ShapedArray(float32[], weak_type=True)"""
    return Var


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Gives the programs among the parameters of an equation.

    Args:
        params: The parameters.

    Returns:
        An iterator of programs.

    >>> e = jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0).eqns[0]
    >>> len(list(jax.extend.core.jaxprs_in_params(e.params)))
    1"""
    return _subjaxprs(params)


def subjaxprs(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[Jaxpr]:
    """Gives the programs among the parameters of the equations of a program.

    Args:
        jaxpr: The program.

    Returns:
        An iterator of programs.

    >>> jaxpr = jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0).jaxpr
    >>> len(list(jax.extend.core.subjaxprs(jaxpr)))
    1"""
    for e in jaxpr.eqns:
        yield from _subjaxprs(e.params)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Gives a type without a mapped dimension.

    Args:
        size: The size of the dimension.
        axis: The dimension; None changes nothing.
        aval: The type.

    Returns:
        A ShapedArray.

    >>> jax.extend.core.mapped_aval(3, 0, jax.typeof(jnp.ones((3, 4))))
    ShapedArray(float32[4])"""
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
    """Gives a type with one more dimension.

    Args:
        size: The size of the dimension.
        axis: Where it stands; None changes nothing.
        aval: The type.
        explicit_mesh_axis: The mesh axis that it lies along, of a type that says where values are.

    Returns:
        A ShapedArray.

    >>> jax.extend.core.unmapped_aval(3, 0, jax.typeof(jnp.ones(4)))
    ShapedArray(float32[3,4])"""
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
    """Gives the dtype of tangents.

    Args:
        primal_dtype: The dtype of values.

    Returns:
        The same for floats and complex numbers, float0 for others.

    >>> jax.extend.core.primal_dtype_to_tangent_dtype(np.dtype("float32"))
    dtype('float32')"""
    return tangent_dtype(primal_dtype)


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None) -> Any:
    """Makes no dtype whose tangents have another one: there are no such dtypes here.

    Args:
        primal_dtype: The dtype of values.
        tangent_dtype: The dtype of their tangents.
        name: How it is printed.

    Differs from JAX:
        It is refused; `custom_vjp` gives a function of integers or small floats derivatives.

    >>> jax.experimental.primal_tangent_dtype(np.int8, np.float32)
    Traceback (most recent call last):
    NotImplementedError: ..."""
    raise NotImplementedError(
        f"primal_tangent_dtype: no dtype of {np.dtype(primal_dtype)} values has"
        f" {np.dtype(tangent_dtype)} tangents{f' ({name})' if name else ''}; keep the values in"
        " the dtype of the tangents, or say the derivative by custom_vjp"
    )


def call_impl(f: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
    """Calls a function, whatever the parameters of the call are.

    Args:
        f: The function.
        *args: Its arguments.
        **params: Parameters, which are not looked at.

    Returns:
        What the function returns.

    >>> jax.extend.core.call_impl(max, 1, 2, name="f")
    2"""
    return f(*args)


# ---------------------------------------------------------------- values


def valid_jaxtype(x: Any) -> bool:
    """Tells whether a value may be an operand of a primitive.

    Args:
        x: The value.

    Returns:
        A bool.

    >>> jax.extend.core.valid_jaxtype(1.0), jax.extend.core.valid_jaxtype("x")
    (True, False)"""
    try:
        typeof(x)
    except (TypeError, OverflowError):
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """Gives a value that must be known now.

    Args:
        force: What to make of it, such as `int`; None leaves it.
        val: The value.
        context: What needs it, for the error.

    Returns:
        `force(val)`.

    Raises:
        ConcretizationTypeError: The value is traced.

    >>> jax.extend.core.concrete_or_error(int, jnp.asarray(3))
    3"""
    if not is_concrete(val):
        raise ConcretizationTypeError(
            f"Abstract tracer value encountered where concrete value is expected: {val!r}."
            f" {context}".strip()
        )
    return val if force is None else force(val)


# ---------------------------------------------------------------- traces


def find_top_trace(_: Sequence[Any]) -> Trace:
    """Gives the trace that an operation on values goes to.

    Returns:
        A Trace.

    >>> jax.extend.core.find_top_trace([jnp.ones(2)]).level
    0"""
    return trace_state.top_trace(_)


def trace_state_clean() -> bool:
    """Whether nothing is being traced or transformed in this thread."""
    return trace_state.depth() == 0 and not unsafe_am_i_under_a_jit_DO_NOT_USE()


class _TraceState:
    """Equal to another when both were taken in the same trace, that of a derivative or of vmap
    too."""

    def __init__(self) -> None:
        self._where = trace_state.where()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TraceState) and other._where == self._where

    def __hash__(self) -> int:
        return hash(self._where)


def get_opaque_trace_state(convention: str | None = None) -> _TraceState:
    """Gives something that is equal as long as the same trace goes on.

    Args:
        convention: Not looked at.

    Returns:
        An object to compare.

    >>> get = jax.extend.core.get_opaque_trace_state
    >>> get() == get()
    True"""
    return _TraceState()


@contextlib.contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """A `with` block in which operations go to a trace.

    Args:
        trace: The trace; one of a class derived from `core.Trace`, too, whose `process_primitive`
            gets the operations.
        check_leaks: Whether JAX would look for values that outlive it; it changes nothing here.

    Returns:
        A context manager.

    >>> with jax.extend.core.take_current_trace() as trace:
    ...     with jax.extend.core.set_current_trace(trace):
    ...         jnp.ones(2) + 1
    Array([2., 2.], dtype=float32)"""
    with trace_state.current(trace):
        yield


@contextlib.contextmanager
def take_current_trace() -> Iterator[Trace]:
    """A `with` block in which operations run at once.

    Returns:
        A context manager that gives the trace that was current.

    >>> with jax.extend.core.take_current_trace() as trace:
    ...     jnp.ones(2) + 1
    Array([2., 2.], dtype=float32)"""
    current = trace_state.dynamic_trace()
    with trace_state.evaluating():
        yield current


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Tells whether a program is being recorded.

    Returns:
        A bool.

    >>> jax.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    False"""
    return isinstance(trace_state.dynamic_trace(), JaxprTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Tells whether a named axis is being mapped over.

    Returns:
        A bool.

    >>> jax.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False"""
    return bool(axes.in_scope())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Lists the named axes that there are here.

    Returns:
        A list of names.

    >>> jax.extend.core.unsafe_get_axis_names_DO_NOT_USE()
    []"""
    return [a.name for a in axes.in_scope()]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Tells whether there are named axes here.

    Returns:
        A bool.

    >>> jax.extend.core.nonempty_axis_env_DO_NOT_USE()
    False"""
    return bool(axes.in_scope())
