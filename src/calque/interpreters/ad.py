"""Rules of differentiation: `primitive_jvps`, `primitive_transposes`, and functions that fill
them."""

from collections.abc import Callable
from typing import Any

from calque.core.avals import ShapedArray
from calque.core.errors import CustomVJPException as CustomVJPException
from calque.core.primitives import UndefinedPrimal, Zero
from calque.extend.own import Rules
from calque.ops import common
from calque.ops.arithmetic import add_any_p as add_jaxvals_p
from calque.ops.common import instantiate, tangent_aval, zero_like, zeros
from calque.transforms.engines.jvp import JVPTrace, JVPTracer
from calque.transforms.engines.trees import handed

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
    "add_tangents", "defbilinear", "defjvp", "defjvp2",
    "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros",
    "is_undefined_primal", "jvp", "linearize", "primitive_jvps",
    "primitive_transposes", "zeros_like_aval",
]  # fmt: skip


# rule(primals, tangents, **params) -> (result, tangent); rule(cotangent, *args, **params) ->
# cotangents of the arguments
def _jvp_as_given(_: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of a library, with arrays as users know them."""

    def jvp_rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        return rule(tuple(map(handed, primals)), tuple(map(handed, tangents)), **params)

    return jvp_rule


def _transpose_as_given(primitive: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    def transpose_rule(cts: Any, /, *args: Any, **params: Any) -> Any:
        cts = list(map(handed, cts)) if primitive.multiple_results else handed(cts)
        return rule(cts, *map(handed, args), **params)

    return transpose_rule


primitive_jvps = Rules("jvp", _jvp_as_given)
primitive_transposes = Rules("transpose", _transpose_as_given)


def _results(primitive: Any, out: Any) -> list[Any]:
    return list(out) if primitive.multiple_results else [out]


def _sum(primitive: Any, out: Any, parts: list[Any]) -> Any:
    """Tangents of the results added up; those that nothing reaches are Zero."""
    totals = [zero_like(o) for o in _results(primitive, out)]
    for part in parts:
        totals = [
            common.add_tangents(t, p)
            for t, p in zip(totals, _results(primitive, part), strict=True)
        ]
    return totals if primitive.multiple_results else totals[0]


def defjvp(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Gives a primitive its derivatives by one rule for each operand.

    Args:
        primitive: The primitive.
        *jvprules: For each operand `rule(tangent, *primals, **params)`, or None where there is no
            derivative.

    >>> wave_p = calque.extend.core.Primitive("wave")
    >>> _ = wave_p.def_impl(jnp.sin), wave_p.def_abstract_eval(lambda x: x)
    >>> calque.interpreters.ad.defjvp(wave_p, lambda t, x: t * jnp.cos(x))
    >>> calque.grad(wave_p.bind)(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    _with_rules(
        primitive, jvprules, lambda rule, t, out, primals, params: rule(t, *primals, **params)
    )


def defjvp2(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Gives a primitive its derivatives by rules that also get the result.

    Args:
        primitive: The primitive.
        *jvprules: For each operand `rule(tangent, result, *primals, **params)`, or None.

    >>> power_p = calque.extend.core.Primitive("power_of_e")
    >>> _ = power_p.def_impl(jnp.exp), power_p.def_abstract_eval(lambda x: x)
    >>> calque.interpreters.ad.defjvp2(power_p, lambda t, out, x: t * out)
    >>> calque.grad(power_p.bind)(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    _with_rules(
        primitive, jvprules, lambda rule, t, out, primals, params: rule(t, out, *primals, **params)
    )


def _with_rules(primitive: Any, rules: tuple[Any, ...], call: Callable[..., Any]) -> None:
    def jvp_rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        parts = [
            call(rule, t, out, primals, params)
            for rule, t in zip(rules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, _sum(primitive, out, parts)

    primitive_jvps[primitive] = jvp_rule


def deflinear(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Says that a primitive is linear in all its operands, and how it is transposed.

    Args:
        primitive: The primitive.
        transpose_rule: `transpose_rule(cotangent, **params)` gives a list of the operands'
            cotangents.

    >>> twice_p = calque.extend.core.Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: 2 * x), twice_p.def_abstract_eval(lambda x: x)
    >>> calque.interpreters.ad.deflinear(twice_p, lambda ct: [2 * ct])
    >>> calque.grad(twice_p.bind)(1.0)
    Array(2., dtype=float32, weak_type=True)"""
    deflinear2(primitive, lambda ct, /, *args, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Says that a primitive is linear, with a transpose rule that also gets the operands.

    Args:
        primitive: The primitive.
        transpose_rule: `transpose_rule(cotangent, *operands, **params)` gives a list of cotangents.
            The operands that it is linear in are `UndefinedPrimal`s, which have only an `aval`.

    >>> thrice_p = calque.extend.core.Primitive("thrice")
    >>> _ = thrice_p.def_impl(lambda x: 3 * x), thrice_p.def_abstract_eval(lambda x: x)
    >>> calque.interpreters.ad.deflinear2(thrice_p, lambda ct, x: [3 * ct])
    >>> calque.grad(thrice_p.bind)(1.0)
    Array(3., dtype=float32, weak_type=True)"""

    def jvp_rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, _sum(primitive, out, [])
        return out, primitive.bind(*map(instantiate, tangents), **params)

    primitive_jvps[primitive] = jvp_rule
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Any, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Says that a primitive is linear in each of its two operands.

    Args:
        prim: The primitive.
        lhs_rule: `lhs_rule(cotangent, x, y, **params)` gives the cotangent of `x`, which is
            unknown.
        rhs_rule: The same for `y`.

    >>> times_p = calque.extend.core.Primitive("times")
    >>> _ = times_p.def_impl(jnp.multiply), times_p.def_abstract_eval(lambda x, y: x)
    >>> calque.interpreters.ad.defbilinear(times_p, lambda t, x, y: t * y, lambda t, x, y: x * t)
    >>> calque.grad(times_p.bind)(2.0, 3.0)
    Array(3., dtype=float32, weak_type=True)"""

    def jvp_rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        (x, y), (tx, ty) = primals, tangents
        out = prim.bind(x, y, **params)
        parts = [prim.bind(tx, y, **params)] if type(tx) is not Zero else []
        parts += [prim.bind(x, ty, **params)] if type(ty) is not Zero else []
        return out, _sum(prim, out, parts)

    def transpose_rule(ct: Any, x: Any, y: Any, /, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    primitive_jvps[prim] = jvp_rule
    primitive_transposes[prim] = transpose_rule


def get_primitive_transpose(p: Any) -> Callable[..., Any]:
    """The transpose rule of a primitive.

    Args:
        p: The primitive.

    Returns:
        `rule(cotangent, *operands, **params)`. NotImplementedError if it has none.

    >>> callable(calque.interpreters.ad.get_primitive_transpose(calque.lax.neg_p))
    True"""
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented"
        ) from None


def is_undefined_primal(x: Any) -> bool:
    """Whether a value stands for a linear operand in a transpose rule.

    Args:
        x: An operand that a transpose rule got.

    Returns:
        True or False.

    >>> calque.interpreters.ad.is_undefined_primal(1.0)
    False"""
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """Gives a tangent as an array, also where it is Zero.

    Args:
        tangent: The tangent.

    Returns:
        An array.

    >>> from calque.experimental import hijax
    >>> hijax.instantiate_zeros(hijax.Zero(jax.typeof(1.0)))
    Array(0., dtype=float32, weak_type=True)"""
    return handed(instantiate(tangent))


def zeros_like_aval(aval: ShapedArray) -> Any:
    """An array of zeros of this type."""
    return zeros(aval)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents, each of which may be Zero."""
    return common.add_tangents(x, y)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two arrays, as sums of cotangents are recorded.

    Args:
        x: An array.
        y: An array of the same shape and dtype.

    Returns:
        An array of that type.

    >>> calque.interpreters.ad.add_jaxvals(jnp.arange(2), jnp.arange(2))
    Array([0, 2], dtype=int32)"""
    return add_jaxvals_p.bind(x, y)


def _from_primal_value(value: Any) -> Zero:
    """Gives the zero tangent of a value.

    Args:
        value: The value.

    Returns:
        A Zero.

    >>> from calque.experimental import hijax
    >>> hijax.Zero.from_primal_value(1.0)
    Zero(f32[])"""
    return zero_like(value)


def _instantiated(self: Zero) -> Any:
    """Gives it as an array of zeros.

    Returns:
        An array.

    >>> from calque.experimental import hijax
    >>> hijax.Zero(jax.typeof(1.0)).instantiate()
    Array(0., dtype=float32, weak_type=True)"""
    return handed(instantiate(self))


Zero.from_primal_value = staticmethod(_from_primal_value)  # type: ignore[attr-defined]
Zero.instantiate = _instantiated  # type: ignore[attr-defined]
UndefinedPrimal.from_primal_value = staticmethod(  # type: ignore[attr-defined]
    lambda value: UndefinedPrimal(tangent_aval(value.aval))
)


def jvp(
    fun: Any,
    primals: Any,
    tangents: Any,
    has_aux: bool = False,
    instantiate: Any = True,
    transform_stack: bool = True,
) -> Any:
    """Works on containers that are internal to JAX: use `calque.jvp`."""
    raise NotImplementedError(
        "interpreters.ad.jvp works on internal containers of JAX: use calque.jvp"
    )


def linearize(traceable: Any, primals_ft: Any, has_aux: bool = False, is_vjp: bool = False) -> Any:
    """Works on containers that are internal to JAX: use `calque.linearize`."""
    raise NotImplementedError(
        "interpreters.ad.linearize works on internal containers of JAX: use calque.linearize"
    )
