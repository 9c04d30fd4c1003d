"""Primitives that a library defines for itself, in JAX's way: rules are added one by one."""

import itertools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from calque.core import primitives, trace_state
from calque.core.arrays import from_numpy, to_numpy
from calque.core.avals import ShapedArray
from calque.core.dtypes import as_dtype, canonicalize
from calque.core.primitives import REGISTRY, NotApplicable
from calque.transforms.engines.trees import handed
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.lowerings import rule_for


class _AnyPrimitive(type):
    """`isinstance(p, Primitive)` holds for calque's own primitives too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, primitives.Primitive)


class Primitive(primitives.Primitive, metaclass=_AnyPrimitive):
    """An operation of a library's own.

    What it does is added by decorators and tables: `def_impl` its values, `def_abstract_eval` its
    types, `interpreters.ad.primitive_jvps` and `primitive_transposes` its derivatives,
    `interpreters.batching.primitive_batchers` its batching, `interpreters.mlir.register_lowering(p,
    mlir.lower_fun(f))` the function that compiled code runs for it. Without that, compiled code
    calls `impl`.

    Args:
        name: Its name; a number is added if there is such a primitive already.

    >>> double_p = jax.extend.core.Primitive("double")
    >>> _ = double_p.def_impl(lambda x: x * 2)
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> jax.jit(double_p.bind)(jnp.ones(2))
    Array([2., 2.], dtype=float32)"""

    multiple_results = False
    of_user = True
    impl: Callable[..., Any] | None = None  # what `def_impl` was given

    def __init__(self, name: str):
        def missing(what: str, when: str = "") -> NotApplicable:
            return NotApplicable(f"{what} rule{when} for '{name}' not implemented")

        super().__init__(
            _unused(name),
            meaning=self._meaning,
            shape=self._shape,
            jvp=missing("Differentiation"),
            transpose=missing("Transpose", " (for reverse-mode differentiation)"),
            batch=missing("Batching"),
        )
        self.abstract_eval: Callable[..., Any] | None = None

    # ---------------------------------------------------------------- definitions

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets what the operation gives for concrete arrays; works as a decorator.

        Args:
            impl: A function of the operands and parameters.

        Returns:
            The function, as it was given."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the types of the results; works as a decorator.

        Args:
            abstract_eval: A function of the types of the operands and the parameters.

        Returns:
            The function, as it was given."""
        self.abstract_eval = abstract_eval
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the types of the results and the effects; works as a decorator.

        Equations with effects are kept though nobody reads their results.

        Args:
            abstract_eval: A function of the types of the operands and the parameters that gives
                (types, effects).

        Returns:
            The function, as it was given."""

        def without_effects(*avals: Any, **params: Any) -> Any:
            out, effects = abstract_eval(*avals, **params)
            self.effect = self.effect or bool(effects)
            return out

        self.abstract_eval = without_effects
        return abstract_eval

    def def_custom_bind(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        """Sets what `bind` does instead of asking the trace; works as a decorator.

        Args:
            bind: A function of the operands and parameters.

        Returns:
            The function, as it was given."""
        self.bind = bind  # type: ignore[method-assign]
        return bind

    # ---------------------------------------------------------------- use

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Applies the operation: it runs at once, or the trace that operands belong to records it.

        Args:
            *args: The operands.
            **params: The parameters.

        Returns:
            The result; a list if `multiple_results` is set."""
        args = tuple(map(handed, args))
        trace = trace_state.top_trace(args)
        if trace.level == 0:
            return self._run(args, params)
        return trace.process(self, args, params)

    def _run(self, args: Any, params: dict[str, Any]) -> Any:
        run = self.impl or self.program
        if run is None and self.is_compiled():
            return self.compiled(args, params)
        if run is None:
            raise NotImplementedError(
                f"Evaluation rule for '{self.name}' not implemented: add it with def_impl"
            )
        return run(*args, **params)

    def is_compiled(self) -> bool:
        """Whether a rule says how it is compiled for the CPU.

        Returns:
            A bool."""
        return self.program is not None or rule_for(self, "cpu") is not None

    def compiled(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Runs what rules say: a function of arrays, or operations of MLIR, which are XLA's.

        Args:
            args: The operands.
            params: The parameters.

        Returns:
            What `bind` gives."""
        if self.program is not None:
            return self.program(*args, **params)
        out = jit(lambda *xs: self.bind(*xs, **params), backend="xla_cpu")(*args)
        found = [from_numpy(to_numpy(x)) for x in (out if self.multiple_results else [out])]
        return found if self.multiple_results else found[0]

    def _meaning(self, /, *arrays: Any, **params: Any) -> Any:
        """The call that compiled code makes: arrays are copied, since their memory is used
        again."""
        if self.program is None and self.impl is None and not self.is_compiled():
            raise NotImplementedError(
                f"Lowering rule for primitive '{self.name}' not found: add it with"
                " interpreters.mlir.register_lowering"
            )
        with trace_state.evaluating():
            out = self._run([from_numpy(x) for x in arrays], params)
            return [to_numpy(x) for x in out] if self.multiple_results else to_numpy(out)

    def _shape(self, /, *avals: ShapedArray, **params: Any) -> Any:
        if self.abstract_eval is None:
            raise NotImplementedError(
                f"Abstract evaluation for '{self.name}' not implemented: add it with"
                " def_abstract_eval"
            )
        out = self.abstract_eval(*avals, **params)
        if not self.multiple_results:
            return _aval(self.name, out)
        if not isinstance(out, (tuple, list)):
            raise _wrong_kind(self.name, out)
        return [_aval(self.name, a) for a in out]


def _aval(name: str, x: Any) -> ShapedArray:
    """What an abstract evaluation gave, as an aval: anything with a shape and a dtype."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise _wrong_kind(name, x)
    return ShapedArray(
        tuple(x.shape), canonicalize(as_dtype(x.dtype)), bool(getattr(x, "weak_type", False))
    )


def _wrong_kind(name: str, x: Any) -> Exception:
    return ValueError(
        f"{name}.abstract_eval() method should return a tuple or a list of ShapedArrays where"
        f" {name}.multiple_results is true, and else a ShapedArray; got {x!r}"
    )


def _unused(name: str) -> str:
    """The name, with a number if there is such a primitive already: caches know primitives by
    name."""
    if name not in REGISTRY:
        return name
    return next(f"{name}_{i}" for i in itertools.count(1) if f"{name}_{i}" not in REGISTRY)


class Rules(MutableMapping[Any, Callable[..., Any]]):
    """The rules of one kind of all primitives, as a table: setting one gives the primitive that
    rule."""

    def __init__(
        self,
        field: str,
        adapted: Callable[[Any, Callable[..., Any]], Callable[..., Any]] = lambda p, rule: rule,
    ):
        self._field, self._adapted = field, adapted

    def __getitem__(self, primitive: Any) -> Callable[..., Any]:
        rule = getattr(primitive, self._field, None)
        if rule is None or isinstance(rule, NotApplicable):
            raise KeyError(primitive)
        found: Callable[..., Any] = rule
        return found

    def __setitem__(self, primitive: Any, rule: Callable[..., Any]) -> None:
        if not isinstance(primitive, primitives.Primitive):
            raise TypeError(f"a rule belongs to a primitive, got {primitive!r}")
        setattr(primitive, self._field, self._adapted(primitive, rule))

    def __delitem__(self, primitive: Any) -> None:
        self[primitive]
        setattr(
            primitive,
            self._field,
            NotApplicable(f"the {self._field} rule of '{primitive}' was deleted"),
        )

    def __iter__(self) -> Iterator[Any]:
        return (p for p in list(REGISTRY.values()) if p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
