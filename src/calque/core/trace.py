"""Evaluation and recording: the traces that run primitives at once, and those that write them into
a jaxpr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from calque.core import dims, errors, foreign_values, leaks, primitives, trace_state
from calque.core.adopting import from_numpy, refuse_masked
from calque.core.at_sizes import at_sizes, settled
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import Dim
from calque.core.dtypes import PYTHON_SCALARS, canonicalize, float0
from calque.core.jaxprs import (
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    check_jaxpr,
    recorded,
    subjaxprs,
)
from calque.core.primitives import Primitive
from calque.core.source import OWN, here, untransformed
from calque.core.source import at as source_at
from calque.core.trace_state import OwnTracer, Trace, Tracer
from calque.machine.call.arrays import ArrayImpl, wrap_numpy
from calque.machine.state import Hook, ProcessValue, process

# ---------------------------------------------------------------- the types of values

# What primitives take as it is. Other objects may offer an `aval` as well, on behalf of a value
# that they hold: their `__jax_array__` is asked first.
VALUES: Final = (ArrayImpl, Tracer)


# classes whose values have a type above arrays -> what gives it. They are opened where functions
# begin (`transforms.primitives.high_values`) and are no operands.
HIGH_TYPES: Final[dict[type, Callable[[Any], Any]]] = process.container("types above arrays", {})


def high_type_of(x: Any) -> Callable[[Any], Any] | None:
    """What gives the type of a value whose type stands above arrays; None for all others."""
    return next((HIGH_TYPES[c] for c in type(x).__mro__ if c in HIGH_TYPES), None)


def typeof(x: Any) -> ShapedArray:
    """The aval of any value that may be an operand: arrays, tracers, NumPy arrays, numbers."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    t = type(x)
    if t in _PYTHON_AVALS:
        return _PYTHON_AVALS[t](x)
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_masked(x)
        dtype = x.dtype
        if dtype.kind == "V" and dtype == float0:
            return ShapedArray(x.shape, float0)
        return ShapedArray(x.shape, canonicalize(dtype))
    if isinstance(x, PYTHON_SCALARS):
        return next(_PYTHON_AVALS[p](x) for p in PYTHON_SCALARS if isinstance(x, p))
    if hasattr(x, "__jax_array__"):
        return typeof(x.__jax_array__())
    rule = foreign_values.types.of(x) or foreign_values.conversions.of(x)
    if rule is not None:
        found = rule(x)
        return found if isinstance(found, ShapedArray) else typeof(found)
    if high_type_of(x) is not None:
        raise NotImplementedError(
            f"a value of the class {t.__name__}, whose type stands above arrays, is no operand:"
            " functions given to jit and eval_shape may take and return it, and others may close"
            " over it. Here use arrays, pytrees of them, or calque.Ref for values that change."
        )
    raise TypeError(
        f"Value {x!r} with type {type(x)} is not a valid calque type: an array, a NumPy array or a"
        " Python number is needed"
    )


foreign_values.types.own = lambda x: typeof(np.asarray(x))


def placed_typeof(x: Any) -> ShapedArray:
    """Gives the type of a value: shape, dtype, weak type and, on a mesh, how it is split.

    Args:
        x: An array, traced or not, a number, or a Ref.

    Returns:
        A ShapedArray; of a Ref and of objects of extensions their own type.

    >>> jax.typeof(jnp.ones((2, 3)))
    ShapedArray(float32[2,3])"""
    if type(x) is ArrayImpl:
        extra = x._extra
        return x.aval if extra is None else typing.value.placed(x.aval, extra)
    own = getattr(type(x), "__typeof__", None)
    if own is None and HIGH_TYPES:
        own = high_type_of(x)
    return typeof(x) if own is None else own(x)


def _python_int(x: int) -> ShapedArray:
    dtype = canonicalize(int)
    limit = 1 << (8 * dtype.itemsize - 1)
    if not -limit <= x < limit:
        raise OverflowError(
            f"Python int {x} too large to convert to {dtype.name}; give it a wider dtype"
            + (
                ""
                if dtype.itemsize == 8
                else " (64-bit types need calque.config.update('calque_enable_x64', True))"
            )
        )
    return ShapedArray((), dtype, True)


_PYTHON_AVALS: Final[dict[type, Callable[[Any], ShapedArray]]] = {
    bool: lambda x: ShapedArray((), np.dtype(bool), False),
    int: _python_int,
    float: lambda x: ShapedArray((), canonicalize(float), True),
    complex: lambda x: ShapedArray((), canonicalize(complex), True),
    Dim: lambda x: ShapedArray((), canonicalize(int), True),
}


# ---------------------------------------------------------------- evaluation

Evaluator = Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]


def _no_evaluator(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    raise RuntimeError("no backend is installed: import calque")


# what runs a primitive on concrete arrays
evaluator: Final[Hook[Evaluator]] = process.hook("evaluation of a primitive", _no_evaluator)


def _as_it_is(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    return evaluator.installed(primitive, args, params)


primitives.evaluation.install(_as_it_is)


def _replaced(
    evaluate: Evaluator, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    """What a user has put in the place of an operation; a rematerialised call runs its operations
    one by one, so that all of them are seen."""
    run = primitives.replacements.get(primitive.name)
    if run is not None:
        return run(*args, **params)
    if primitive.name == "remat2":
        return eval_jaxpr(params["jaxpr"].jaxpr, params["jaxpr"].consts, *args)
    return evaluate(primitive, args, params)


def _watch_replacements() -> None:
    evaluator.intercept("replacements", _replaced if primitives.replacements else None)


primitives.on_replacement.add(_watch_replacements)


class EvalTrace(Trace):
    """The bottom: operations run at once, on whatever backend is installed."""

    level = 0

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return evaluator.call(primitive, args, params)


trace_state.set_base(EvalTrace())


# ---------------------------------------------------------------- recording


def has_type_alone(x: Any) -> bool:
    """Whether this has a type and no value: a symbolic zero, a shape with its dtype."""
    return (
        hasattr(x, "aval")
        and not hasattr(x, "__jax_array__")
        and (issubclass(type(x), VALUES) or not isinstance(x, VALUES))  # a proxy has a value
    )


def constant(x: Any) -> Any:
    """A value from outside as programs keep it: an Array, of the values as they are now."""
    if issubclass(type(x), VALUES) or has_type_alone(x):
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_masked(x)
        return from_numpy(np.asarray(x))
    return constant(x.__jax_array__() if hasattr(x, "__jax_array__") else held(x))


def held(x: Any) -> Any:
    """The array of a value of a foreign class."""
    rule = foreign_values.conversions.of(x)
    return np.asarray(x) if rule is None else rule(x)


class Typing:
    """What types say of where values are: along which mesh axes they are split, or vary
    (`transforms/devices/type_rules.py`). This one knows of no meshes."""

    def ambient(self) -> Any:
        """The mesh here whose axes types speak of, or None."""
        return None

    def placed(self, aval: ShapedArray, sharding: Any) -> ShapedArray:
        """The type of arrays with this sharding."""
        return aval

    def resolved(self, sharding: Any) -> Any:
        """The sharding that a PartitionSpec says here; others as they are."""
        return sharding

    def mesh_of(self, aval: Any) -> Any:
        """The mesh that a type speaks of, or None."""
        return None

    def operands(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The operands, made to agree."""
        return args

    def results(
        self, primitive: Primitive, avals: Sequence[Any], params: dict[str, Any], out: Any,
        mesh: Any,
    ) -> Any:  # fmt: skip
        """The types of the results, `out`, with what they say of that."""
        return out

    def of_member(self, aval: ShapedArray, axis: Any, kind: str) -> ShapedArray:
        """The type of a value that relates in this way to an axis of a `shard_map`."""
        return aval

    def without(self, aval: ShapedArray, dim: int) -> ShapedArray:
        """A type without one of its dimensions."""
        return ShapedArray(aval.shape[:dim] + aval.shape[dim + 1 :], aval.dtype, aval.weak_type)

    def lenient(self) -> AbstractContextManager[None]:
        """Inside, shardings that are ambiguous are no error."""
        return contextlib.nullcontext()

    def retyped(self, x: Any, aval: ShapedArray) -> Any:
        """A value where a type says that it is."""
        return x

    def batched(self, aval: ShapedArray, dim: int | None, axis: Any) -> ShapedArray:
        """The type of all values of a type along an axis, in a further dimension if they differ."""
        return aval

    def lane_axes(self, values: Sequence[Any], dims: Sequence[Any], spmd: Any) -> Any:
        """The mesh axes over which types split the mapped dimension, and their mesh, or None."""
        return None

    def on_lanes(self, x: Any, dim: int, lanes: Any) -> Any:
        """A result with its mapped dimension split over these axes."""
        return x

    def row(self, aval: ShapedArray) -> ShapedArray:
        """The type of an element along the first dimension."""
        return ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type)

    def stacked(self, aval: ShapedArray, length: Any) -> ShapedArray:
        """The type of so many values in a new first dimension."""
        return ShapedArray((length, *aval.shape), aval.dtype, aval.weak_type)

    def alike(self, a: Any, b: Any) -> bool:
        """Whether two types of one value say the same of how it is split."""
        return True

    def casts(self, a: Any, b: Any) -> tuple[Any, ...]:
        """The axes along which values of type `b` vary and those of type `a` do not."""
        return ()

    def kind(self, primitive: Primitive, kinds: Sequence[str | None], constant: Any) -> str | None:
        """How the result of an operation relates to an axis of a `shard_map`, from how its operands
        do; `constant` tells those that may be joined with any."""
        return "varying" if any(kinds) else None


_WITH_RANK: Final = (ArrayImpl, np.ndarray, np.generic)
typing: Final[ProcessValue[Typing]] = process.value("where values are, in types", Typing())


class JaxprTracer(OwnTracer):
    """A value of a program that is being recorded."""

    __slots__ = ("_var",)

    _var: Var


class ConstantTracer(JaxprTracer):
    """A number of a program that is being recorded, whose value Python may ask for."""

    __slots__ = ("value",)

    _var: Var | Literal  # type: ignore[assignment]
    value: ArrayImpl


def value_if_known(x: Any) -> Any:
    """The Array of a number that a program was given while it is recorded; others as they are."""
    return x.value if type(x) is ConstantTracer else x


def as_constant(x: Any) -> Any:
    """A new Array of rank 0 as a value of the program that is being recorded, if one is; others as
    they are."""
    trace = trace_state.dynamic_trace()
    if trace.level and isinstance(trace, JaxprTrace):
        return trace.constant_tracer(x)
    return x


class JaxprTrace(Trace):
    """Records operations as equations. Values from outside become constants."""

    lenient = False  # is what it records derived from a program whose types agreed?
    hoisting = False  # are arrays without axes constants beside the program, not part of its text?
    transposable = False  # are linear maps of users recorded as they are, with their transposes?

    def __init__(self, function: str = "", argument_names: Sequence[str] | None = None):
        self.eqns: list[Eqn] = []
        self.invars: list[Var] = []
        self.constvars: dict[int, tuple[Var, Any]] = {}
        self.function, self.argument_names = function, argument_names
        self.mesh = typing.value.ambient()  # the mesh that types speak of here, or None
        self.kept: list[Any] = []  # what constants were made of: alive while their ids are keys
        self.makers: dict[
            Var, tuple[Eqn, int]
        ] = {}  # of the first `indexed` equations: variable -> its equation
        self.indexed = 0
        self.found: dict[
            Any, Any
        ] = {}  # what was made of a mask or a bound whose size the program finds

    def new_argument(self, aval: ShapedArray) -> JaxprTracer:
        self.mesh = self.mesh or typing.value.mesh_of(aval)
        t = self.tracer(aval)
        self.invars.append(t._var)
        return t

    def tracer(self, aval: ShapedArray) -> JaxprTracer:
        t = JaxprTracer()
        t._trace, t.aval, t._var = self, aval, Var(aval)
        return t

    def stage_value(self, val: Any) -> Any:
        """A value from outside as one of this program."""
        t = self.tracer(typeof(val))
        t._var = self.atom(val)  # type: ignore[assignment]
        return t

    def constant_tracer(self, x: Any) -> Any:
        """A new Array of rank 0 as a value of this program; others as they are."""
        if type(x) is not ArrayImpl or x.ndim or not isinstance(x.aval.dtype, np.dtype):
            return x
        t = ConstantTracer()
        t._trace, t.aval, t.value = self, x.aval, x
        t._var = Literal(np.asarray(x).astype(x.aval.dtype, copy=False), x.aval)
        return t

    def atom(self, x: Any) -> Var | Literal:
        if isinstance(x, Tracer):
            if x._trace is self:
                return x._var  # type: ignore[attr-defined]
            check_alive(x)
            if type(x) is ConstantTracer and not self.hoisting:
                return self.atom(x.value)
        elif type(x) is Dim:
            return self.atom(dims.value_of(x))
        elif isinstance(x, PYTHON_SCALARS) or (
            isinstance(x, (np.ndarray, np.generic) if self.hoisting else _WITH_RANK) and x.ndim == 0
        ):
            aval = typeof(x)
            if isinstance(aval.dtype, np.dtype) and aval.dtype != float0:
                value = np.asarray(x).astype(aval.dtype, copy=False)
                return Literal(value, aval, written=not isinstance(x, ArrayImpl))
        return self.constant_variable(x)

    def constant_variable(self, x: Any) -> Var:
        """The variable of a value from outside."""
        known = self.constvars.get(id(x))
        if known is None:
            self.kept.append(x)
            value = constant(x)
            known = self.constvars[id(x)] = (Var(typeof(value)), value)
            if isinstance(x, Tracer):
                self.mesh = self.mesh or typing.value.mesh_of(x.aval)
        return known[0]

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if self.done:
            raise leaked(next((a for a in args if isinstance(a, Tracer)), None), self)
        if self.mesh is not None:
            args = typing.value.operands(primitive, args, params)
        atoms = [
            a._var if type(a) is JaxprTracer and a._trace is self else self.atom(a) for a in args
        ]
        if self.mesh is not None:
            out = self.typed_results(primitive, atoms, params)
        else:
            out = primitive.shape(*[a.aval for a in atoms], **params)
        if primitive.multiple_results:
            tracers = [self.tracer(aval) for aval in out]
            made = [t._var for t in tracers]
            self.eqns.append(recorded(primitive, atoms, made, params, here(OWN)))
            return tracers
        if self.mesh is None and getattr(out, "place", None) is not None:
            self.mesh = typing.value.mesh_of(out)  # from here on types speak of it
        t, v = JaxprTracer(), Var(out)
        t._trace, t.aval, t._var = self, out, v
        self.eqns.append(recorded(primitive, atoms, [v], params, here(OWN)))
        return t

    def typed_results(
        self, primitive: Primitive, atoms: Sequence[Var | Literal], params: dict[str, Any]
    ) -> Any:
        """The types of the results, where types say where values are."""
        avals = [a.aval for a in atoms]
        programs = any(True for _ in subjaxprs(params))
        plain = avals if programs else [getattr(a, "without_place", lambda a=a: a)() for a in avals]
        out = primitive.shape(*plain, **params)
        if self.lenient:
            with typing.value.lenient():
                return typing.value.results(primitive, avals, params, out, self.mesh)
        return typing.value.results(primitive, avals, params, out, self.mesh)

    def made_as(self, atom: Var | Literal, depth: int = 8) -> Any:
        """How a value was made, as a key: equal for values made alike from the same ones."""
        if isinstance(atom, Literal):
            return (atom.aval, atom.val.tobytes())
        for e in self.eqns[self.indexed :]:
            self.makers |= {v: (e, k) for k, v in enumerate(e.outvars)}
        self.indexed = len(self.eqns)
        made = self.makers.get(atom)
        if made is None or made[0].primitive.effect or depth == 0:
            return id(atom)
        e, place = made
        params = tuple(e.params.items())
        try:
            hash(params)
        except TypeError:
            return id(atom)
        return (e.primitive.name, place, params, *[self.made_as(a, depth - 1) for a in e.invars])

    def finish(self, outs: Sequence[Any]) -> ClosedJaxpr:
        """The recorded program with these results."""
        out_atoms = [self.atom(o) for o in outs]
        pairs = list(self.constvars.values())
        jaxpr = Jaxpr([v for v, _ in pairs], self.invars, out_atoms, self.eqns)
        if config.enable_checks:
            check_jaxpr(jaxpr)
        return ClosedJaxpr(jaxpr, [c for _, c in pairs])


def trace_to_jaxpr(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray],
    function: str = "",
    argument_names: Sequence[str] | None = None,
    lenient: bool = False,
    hoisting: bool = False,
) -> ClosedJaxpr:
    """Record `fun`, a function of flat arguments that returns a flat list, as a program. One that
    is derived from another is `lenient` about shardings that its operands leave open. One that is
    `hoisting` has the arrays it captures beside it, those without axes too."""
    trace = JaxprTrace(function or getattr(fun, "__name__", ""), argument_names)
    trace.lenient, trace.hoisting = lenient, hoisting
    with trace_state.recording(trace), untransformed():
        outs = fun(*[trace.new_argument(a) for a in in_avals])
        closed = trace.finish(outs)
    del outs
    leaks.check([trace], closed.consts)
    return closed


def check_alive(x: Tracer) -> None:
    if x._trace.done:
        raise leaked(x, x._trace)


def leaked(x: Tracer | None, trace: Trace) -> Exception:
    what = "a traced value"
    if x is not None:
        what += f" of type {x.aval.dtype.name}[{','.join(map(str, x.aval.shape))}]"
    name = getattr(trace, "function", "")
    return errors.UnexpectedTracerError(
        f"Encountered an unexpected tracer: {what} was used after the transformation that made it"
        + (f" (of function {name})" if name else "")
        + " had ended. Perhaps it escaped through global state from a function that was traced"
        f" before.{_created(x)} A function under jit, grad or vmap must return its results: a value"
        " stored in a global, a list or an attribute while tracing is a placeholder, not an array."
        " Return it instead."
    )


trace_state.ended.install(
    lambda args, trace: leaked(next((a for a in args if isinstance(a, Tracer)), None), trace)
)


def _created(x: Tracer | None) -> str:
    """The line that made a traced value, as far as it is known."""
    if not isinstance(x, JaxprTracer) or not isinstance(x._trace, JaxprTrace):
        return ""
    maker = next((e for e in x._trace.eqns if x._var in e.outvars), None)
    return f" It was created on line {maker.source}." if maker and maker.source else ""


# ---------------------------------------------------------------- running jaxprs


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a program equation by equation on these values, which may be tracers."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    last = last_uses(jaxpr)
    has_found = False  # has a size been found, that stands in what follows?
    # where the values are was checked when the program was traced
    with source_at(None) as place, typing.value.lenient():
        for i, e in enumerate(jaxpr.eqns):
            place.source = e.source
            operands = [env[a] if isinstance(a, Var) else literal_value(a) for a in e.invars]
            params = at_sizes(e.params, settled) if has_found else e.params
            out = e.primitive.bind(*operands, **params)
            if e.primitive.name == "let_size":
                has_found = has_found or not isinstance(operands[0], Tracer)
            for v, x in zip(e.outvars, out if e.primitive.multiple_results else (out,)):
                env[v] = x
            for v in last.get(i, ()):
                env.pop(v, None)
    return [env[a] if isinstance(a, Var) else literal_value(a) for a in jaxpr.outvars]


def literal_value(a: Literal) -> Any:
    """The constant as an operand: a Python number where that has its weak type."""
    if a.aval.weak_type:
        x = a.val.item()
        if typeof(x) is a.aval:
            return x
    if typeof(a.val).dtype != a.aval.dtype:  # of 64 bits, where those are not enabled
        return wrap_numpy(a.aval, np.asarray(a.val))
    return a.val


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """Equation index -> the variables that are not needed after it."""
    keep = {a for a in jaxpr.outvars if isinstance(a, Var)}
    seen: set[Var] = set()
    out: dict[int, list[Var]] = {}
    for i in range(len(jaxpr.eqns) - 1, -1, -1):
        e = jaxpr.eqns[i]
        named = (*e.outvars, *(a for a in e.invars if isinstance(a, Var)))
        dying = [v for v in named if v not in seen and v not in keep]
        if dying:
            out[i] = dying
            seen.update(dying)
    return out


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Makes a function of a program.

    Args:
        closed_jaxpr: The program.

    Returns:
        A function of its arguments that gives the list of its results.

    >>> jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(lambda x: x + 1)(2.0))(5.0)
    [Array(6., dtype=float32, weak_type=True)]"""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)
