"""Primitives: one operation with its meaning and all its rules side by side.

    neg_p = Primitive("neg", meaning=np.negative, shape=..., jvp=..., transpose=..., batch=...)

Every rule is required. Where one does not apply, `NotApplicable("why")` says so: using it raises
that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import pytrees, trace_state, vocabulary
from calque.core.avals import ShapedArray
from calque.core.vocabulary import do
from calque.machine.state import Hook, Listeners, process

__all__ = ["REGISTRY", "NotApplicable", "Primitive", "UndefinedPrimal", "Zero", "do"]


class NotApplicable:
    """A rule that does not exist, and why. Calling it raises NotImplementedError with the
    reason."""

    def __init__(self, reason: str):
        self.reason = reason

    def __call__(self, /, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(self.reason)


class Zero:
    """A tangent or cotangent that is known to be zero, without an array.

    Args:
        aval: Its type.

    >>> from calque.experimental import hijax
    >>> hijax.Zero(jax.typeof(1.0))
    Zero(f32[])"""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


pytrees.register(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))


class UndefinedPrimal:
    """Stands for a linear argument in a transpose rule: only its aval is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval.str_short()})"


pytrees.register(
    UndefinedPrimal, lambda primal: ((), primal.aval), lambda aval, _: UndefinedPrimal(aval)
)
# what a user has put in the place of an operation on concrete arrays, by its name
replacements: Final[dict[str, Callable[..., Any]]] = process.container("replaced operations", {})
on_replacement: Final[Listeners[Callable[..., None]]] = process.listeners(
    "an operation is replaced"
)
evaluation: Final[Hook[Callable[..., Any]]] = process.hook("evaluation as it is", lambda *_: None)
REGISTRY: Final[dict[str, Primitive]] = process.container("primitives", {})


class Primitive:
    """An operation of the language of programs.

    meaning(*numpy_arrays, **params)        the result, computed by NumPy: the oracle of every test
    shape(*avals, **params)                 the aval of the result; clear errors for bad operands
    jvp(primals, tangents, **params)        (result, tangent of the result); tangents may be Zero
    transpose(cts, *args, **params)         cotangents of the arguments that are UndefinedPrimal,
    None for the others batch(args, dims, **params)             (result, its batch dimension); dims
    are ints or None

    With `multiple_results` the results, and their tangents and dimensions, are lists."""

    __slots__ = (
        "batch",
        "defaults",
        "effect",
        "hidden",
        "jvp",
        "linearize",
        "meaning",
        "multiple_results",
        "name",
        "program",
        "shape",
        "transpose",
    )

    # what libraries ask of equations: calque's calls have their program in the parameter `jaxpr`,
    # as jit's, and none takes functions as operands
    call_primitive = False
    map_primitive = False
    of_user = False  # not the same in every process, whatever its name
    program: (
        Callable[..., Any] | None
    )  # a function of ordinary primitives that computes it: compiled code runs that

    def __init__(
        self,
        name: str,
        *,
        meaning: Callable[..., Any],
        shape: Callable[..., Any],
        jvp: Callable[..., Any],
        transpose: Callable[..., Any],
        batch: Callable[..., Any],
        multiple_results: bool = False,
        linearize: Callable[..., Any] | None = None,
        hidden: Callable[[dict[str, Any]], Sequence[str]] | Sequence[str] = (),
        effect: bool = False,
        defaults: dict[str, Any] | None = None,
    ):
        self.name, self.multiple_results = name, multiple_results
        self.meaning, self.shape, self.jvp, self.transpose, self.batch = (
            meaning,
            shape,
            jvp,
            transpose,
            batch,
        )
        self.linearize = (
            linearize  # for higher-order primitives whose known and unknown parts must be separated
        )
        self.hidden = hidden  # parameters that the printed form leaves out
        self.effect = effect  # equations with an effect are kept though nobody reads their results
        self.defaults = defaults or {}  # of parameters, for those who call it through `do`
        self.program = None
        for field in ("meaning", "shape", "jvp", "transpose", "batch"):
            if not callable(getattr(self, field)):
                raise TypeError(
                    f"primitive {name}: {field} must be callable or NotApplicable(reason)"
                )
        if REGISTRY.setdefault(name, self) is not self:
            raise ValueError(f"there is a primitive named {name} already")
        vocabulary.offer(name, self.bind, self.defaults)

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Apply to values: evaluated, or recorded by the trace that the arguments belong to."""
        return trace_state.top_trace(args).process(self, args, params)

    def bind_with_trace(
        self, trace: trace_state.Trace, args: Sequence[Any], avals: Any, params: Any = None, /
    ) -> Any:
        """Apply to values in a trace, as libraries do. Their types, `avals`, may be left out: the
        values know them."""
        with trace_state.current(trace):
            return self.bind(*args, **(avals if params is None else params))

    def handed_to(
        self, trace: trace_state.Trace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """What the trace of a library makes of this operation."""
        return trace.process_primitive(self, args, params)

    @property
    def impl(self) -> Callable[..., Any] | None:
        """What the operation does with concrete arrays outside of compiled programs."""
        return replacements.get(self.name, Evaluation(self))

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """From now on this runs for concrete arrays outside of compiled programs: to count what
        runs, or to watch it. Given back what `impl` was before, the operation is as it was."""
        if isinstance(impl, Evaluation) and impl.primitive is self:
            replacements.pop(self.name, None)
        else:
            replacements[self.name] = impl
        on_replacement.tell()
        return impl

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """What `bind` is called with, besides operands, to make an equation of these parameters:
        they alone."""
        return params

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _by_name, (self.name,)


class Evaluation:
    """An operation on concrete arrays as it is, whatever was put in its place."""

    __slots__ = ("primitive",)

    def __init__(self, primitive: Primitive):
        self.primitive = primitive

    def __call__(self, /, *args: Any, **params: Any) -> Any:
        return evaluation.call(self.primitive, args, params)


def _by_name(name: str) -> Primitive:
    return REGISTRY[name]
