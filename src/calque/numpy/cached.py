"""Library functions whose eager calls run as machine code.

`cached(f)` is called like `f`. When the same kinds of arguments come a second time, `f` is traced once and an entry is added to
its call path (`native.eager_program`): from then on such a call enters no Python frame. Everything else goes to `f`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import lazy, pytrees
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.pause import no_collection
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.machine import callpath
from calque.transforms.call_specs import result_spec
from calque.transforms.jit import callpath_enabled, epoch

eager_program = lazy.LazyModule("calque.native.eager_program")

SEEN_LIMIT = 10_000
MET, TAUGHT, REFUSED = range(3)
_STATIC = (int, bool, str, type(None))


class Arguments:
    """The arguments of one call: a key, the arrays among them, and how the call path recognises them."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]):
        self.avals: list[ShapedArray] = []
        self.key: list[Any] = []
        self.specs = [self.spec(a) for a in args]
        for k, v in kwargs.items():
            self.key.append(k)
            self.specs.append(self.spec(v))

    def spec(self, a: Any) -> tuple[Any, ...]:
        t = type(a)
        if t is ArrayImpl and a._extra is not None:  # placed on devices: the results follow, in Python
            raise eager_program.Inexpressible
        if t is ArrayImpl or t is float:
            aval = typeof(a)
            self.avals.append(aval)
            self.key.append(aval)
            i = len(self.avals) - 1
            return ("array", aval, i) if t is ArrayImpl else ("pyfloat", aval.dtype, i)
        if t is tuple or t is list:
            self.key.append((t, len(a)))
            return (t.__name__, [self.spec(v) for v in a])
        self.key.append((t, a))
        if a is None:
            return ("none",)
        if t in _STATIC:
            return ("eq", a)
        if isinstance(a, (type, np.dtype)) or a is Ellipsis:
            return ("is", a)
        raise eager_program.Inexpressible


def cached(f: Callable[..., Any]) -> Any:
    """`f` with a call path of its own for eager calls."""
    seen: dict[Any, int] = {}  # kinds of arguments met before -> what is to be done for the next ones

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if callpath_enabled():
            try:
                given = Arguments(args, kwargs)
                key = (epoch(), *given.key)
                known = seen.get(key)
            except (eager_program.Inexpressible, TypeError):  # not for machine code, or arguments that cannot be a key
                return f(*args, **kwargs)
            if known is None or known == TAUGHT:  # an entry that went, or that does not take this very value
                if len(seen) > SEEN_LIMIT:
                    seen.clear()
                seen[key] = MET
            elif known == MET:
                seen[key] = TAUGHT if teach(function, f, given, args, kwargs) else REFUSED
                if seen[key] == TAUGHT:
                    return function(*args, **kwargs)
        return f(*args, **kwargs)

    function = callpath.Jitted(miss)
    functools.update_wrapper(function, f, updated=())
    function.__wrapped__ = f
    return function


def teach(function: Any, f: Callable[..., Any], given: Arguments, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Add an entry for such arguments; False when the function is not for machine code."""
    tree: list[pytrees.PyTreeDef] = []

    def flat(*arrays: Any) -> list[Any]:
        values = iter(arrays)
        full = [substituted(a, values) for a in args]
        out, structure = pytrees.flatten(f(*full, **{k: substituted(v, values) for k, v in kwargs.items()}))
        if not all(isinstance(v, Tracer) for v in out):  # a Python value, or an array made while tracing
            raise eager_program.Inexpressible
        tree[:] = [structure]
        return out

    try:
        with no_collection():
            program = eager_program.assemble(trace_to_jaxpr(flat, given.avals))
        out = result_spec(pytrees.unflatten(tree[0], [("out", k) for k in range(tree[0].num_leaves)]))
        callpath.add_entry(function, callpath.Entry(given.specs, tuple(kwargs), program, out, epoch()))
    except Exception:  # whatever is wrong shows again, with concrete values, in the call itself
        return False
    return True


def substituted(a: Any, arrays: Any) -> Any:
    """An argument with its arrays and floats replaced by the next traced values."""
    t = type(a)
    if t is ArrayImpl or t is float:
        return next(arrays)
    if t is tuple or t is list:
        return t(substituted(v, arrays) for v in a)
    return a


# ---------------------------------------------------------------- which functions

_NOT = frozenset(
    [
        "array",
        "asarray",
        "apply_along_axis",
        "apply_over_axes",
        "frombuffer",
        "fromfile",
        "fromfunction",
        "fromiter",
        "frompyfunc",
        "fromstring",
        "from_dlpack",
        "load",
        "save",
        "savez",
        "piecewise",
        "vectorize",
        "printoptions",
        "set_printoptions",
        "get_printoptions",
        "einsum_path",
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
        "nonzero",
        "flatnonzero",
        "argwhere",
        "setdiff1d",
        "setxor1d",
        "union1d",
        "intersect1d",
        "shape",
        "ndim",
        "size",
        "result_type",
        "promote_types",
        "can_cast",
        "issubdtype",
        "isdtype",
        "iscomplexobj",
        "isrealobj",
        "isscalar",
        "iterable",
        "broadcast_shapes",
        "array_repr",
        "array_str",
        "array2string",
        "asanyarray",
        "power",
        "pow",
        "float_power",
    ]  # a Python exponent is part of the program
)
_METHODS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "all",
    "any",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "dot",
    "trace",
    "diagonal",
    "swapaxes",
    "squeeze",
    "ravel",
    "flatten",
    "repeat",
    "clip",
    "round",
    "conj",
    "take",
    "argsort",
    "reshape",
    "transpose",
    "astype",
    "copy",
]


def with_call_path(name: str, f: Any) -> Any:
    """What the namespace offers under a name: a function gets a call path of its own."""
    if name.startswith("_") or name in _NOT or isinstance(f, type) or not callable(f):
        return f
    if not getattr(f, "__module__", "").startswith("calque.numpy") and not hasattr(f, "outer"):
        return f
    made = cached(f)
    for method in ("reduce", "accumulate", "outer", "at", "reduceat", "nin", "nout", "nargs", "identity"):
        if hasattr(f, method):
            setattr(made, method, getattr(f, method))
    return made


def install() -> None:
    """Give the methods of arrays call paths of their own."""
    for name in _METHODS:
        setattr(ArrayImpl, name, cached(getattr(ArrayImpl, name)))
    ArrayImpl.T = property(cached(ArrayImpl.T.fget))
