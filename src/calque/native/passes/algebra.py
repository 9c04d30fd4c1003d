"""Identities that keep every bit: no reassociation, and signed zeros and nans stay what they
are."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from calque.core.extents import smaller
from calque.core.jaxprs import Atom, Eqn, Literal, Var
from calque.native.passes.sweep import Rule, Sweep
from calque.native.scalars.powers import NAMES


def _value(a: Atom) -> Any:
    """The number a literal holds, or None."""
    return a.val.item() if a.__class__ is Literal and a.val.dtype.kind in "biufc" else None  # type: ignore[union-attr]


def _same(e: Eqn, a: Atom) -> Atom | None:
    """`a`, when it can stand for the result of `e` (a scalar operand of an array operation
    cannot)."""
    aval = e.outvars[0].aval
    return a if a.aval.shape == aval.shape and a.aval.dtype == aval.dtype else None


def _negative_zero(v: Any) -> bool:
    return v == 0 and (not isinstance(v, float) or math.copysign(1.0, v) < 0)


def _positive_zero(v: Any) -> bool:
    return v == 0 and (not isinstance(v, float) or math.copysign(1.0, v) > 0)


def add_nothing(_: Sweep, e: Eqn) -> Atom | None:
    """x + -0.0 -> x (for integers x + 0); x + 0.0 is another number when x is -0.0."""
    if e.outvars[0].aval.dtype.kind not in "iuf":
        return None
    a, b = e.invars
    v = _value(b)
    if v is not None and _negative_zero(v):
        return _same(e, a)
    v = _value(a)
    return _same(e, b) if v is not None and _negative_zero(v) else None


def subtract_nothing(_: Sweep, e: Eqn) -> Atom | None:
    """x - 0.0 -> x"""
    v = _value(e.invars[1])
    if v is None or e.outvars[0].aval.dtype.kind not in "iuf":
        return None
    return _same(e, e.invars[0]) if _positive_zero(v) else None


def multiply_by_one(_: Sweep, e: Eqn) -> Atom | None:
    """x * 1 -> x, 1 * x -> x"""
    if e.outvars[0].aval.dtype.kind not in "iuf":
        return None
    a, b = e.invars
    return _same(e, a) if _value(b) == 1 else _same(e, b) if _value(a) == 1 else None


def divide(s: Sweep, e: Eqn) -> Atom | Eqn | None:
    """x / 1 -> x; x / 8.0 -> x * 0.125: the reciprocal of a power of two is exact."""
    dtype, v = e.outvars[0].aval.dtype, _value(e.invars[1])
    if v is None or dtype.kind not in "iuf":
        return None
    if v == 1:
        return _same(e, e.invars[0])
    if dtype.kind != "f" or dtype.itemsize < 4 or not v or not math.isfinite(v):
        return None
    mantissa, exponent = math.frexp(v)
    if abs(mantissa) != 0.5 or not -120 < exponent < 120:
        return None
    reciprocal = Literal(np.asarray(1.0 / v).astype(dtype), e.invars[1].aval)
    return s.new("mul", [e.invars[0], reciprocal], e.outvars[0], e)


def neutral_bound(_: Sweep, e: Eqn) -> Atom | None:
    """max(x, -inf) -> x, min(x, inf) -> x: a nan stays a nan either way."""
    if e.outvars[0].aval.dtype.kind != "f":
        return None
    end = -math.inf if e.primitive.name == "max" else math.inf
    a, b = e.invars
    return _same(e, a) if _value(b) == end else _same(e, b) if _value(a) == end else None


def twice_undone(s: Sweep, e: Eqn) -> Atom | None:
    """neg(neg x) -> x, not(not x) -> x, rev of the same axes twice -> x"""
    inner = s.made_by(e.invars[0], e.primitive.name)
    return inner.invars[0] if inner is not None and inner.params == e.params else None


def power_one(_: Sweep, e: Eqn) -> Atom | None:
    """x ** 1 -> x"""
    return _same(e, e.invars[0]) if e.params["y"] == 1 else None


def known_choice(_: Sweep, e: Eqn) -> Atom | None:
    """select_n true a b -> b; select_n p a a -> a"""
    which, *cases = e.invars
    v = _value(which)
    if v is not None:
        return _same(e, cases[int(v)])
    return _same(e, cases[0]) if all(c is cases[0] for c in cases) else None


def identity(_: Sweep, e: Eqn) -> Atom | None:
    """stop_gradient x -> x, and every operation that gives back its operand as it stands."""
    return _same(e, e.invars[0])


def known_number(_: Sweep, e: Eqn) -> Atom | None:
    """A number that is kept apart is known all the same."""
    a = e.invars[0]
    return a if len(e.invars) == 1 and a.__class__ is Literal else None


def no_axes(_: Sweep, e: Eqn) -> Atom | None:
    """A reduction over no axes, or a reversal of none, is its operand."""
    return None if e.params.get("axes", e.params.get("dimensions")) else _same(e, e.invars[0])


def whole_slice(_: Sweep, e: Eqn) -> Atom | None:
    """A slice of everything is its operand."""
    return (
        _same(e, e.invars[0])
        if not e.params["strides"] or all(s == 1 for s in e.params["strides"])
        else None
    )


def no_padding(_: Sweep, e: Eqn) -> Atom | None:
    """A pad of nothing is its operand."""
    return None if any(any(c) for c in e.params["padding_config"]) else _same(e, e.invars[0])


def still_transposed(_: Sweep, e: Eqn) -> Atom | None:
    """A transposition that moves nothing is its operand."""
    return (
        e.invars[0]
        if tuple(e.params["permutation"]) == tuple(range(e.invars[0].aval.ndim))
        else None
    )


def transposed_product(s: Sweep, e: Eqn) -> Eqn | None:
    """transpose (dot_general a b) -> dot_general b a, where nothing else reads the product: the
    sums are the same ones."""
    dot = s.made_by(e.invars[0], "dot_general")
    if dot is None or not s.read_once(dot.outvars[0]):
        return None
    (ca, cb), (ba, bb) = dot.params["dimension_numbers"]
    a, b = dot.invars
    batch, left = len(ba), a.aval.ndim - len(ca) - len(ba)
    right = b.aval.ndim - len(cb) - len(bb)
    swapped = (
        *range(batch),
        *range(batch + left, batch + left + right),
        *range(batch, batch + left),
    )
    if tuple(e.params["permutation"]) != swapped or not left or not right:
        return None
    precision = dot.params.get("precision")
    params = {**dot.params, "dimension_numbers": ((cb, ca), (bb, ba))}
    if isinstance(precision, tuple) and len(precision) == 2:
        params["precision"] = precision[::-1]
    return s.new("dot_general", [b, a], e.outvars[0], dot, **params)


def read_in_order(s: Sweep, e: Eqn) -> Eqn | None:
    """reshape[dimensions=(1, 0)] x -> reshape[dimensions=None] (transpose x)"""
    order = e.params["dimensions"]
    if order is None:
        return None
    aval = e.invars[0].aval
    turned = Var(aval.update(shape=tuple([aval.shape[d] for d in order])))
    s.eqns.append(s.new("transpose", e.invars, turned, e, permutation=tuple(order)))
    return s.new("reshape", [turned], e.outvars[0], e, **{**e.params, "dimensions": None})


def single_part(_: Sweep, e: Eqn) -> Atom | None:
    """concatenate of one operand (empty ones aside) -> that operand"""
    parts = [a for a in e.invars if a.aval.shape[e.params["dimension"]]]
    return _same(e, parts[0]) if len(parts) == 1 else None


def known_start(s: Sweep, e: Eqn) -> Eqn | None:
    """dynamic_slice x 3 -> slice[3:...] x"""
    starts = [_value(a) for a in e.invars[1:]]
    if any(v is None for v in starts):
        return None
    shape, sizes = e.invars[0].aval.shape, e.params["slice_sizes"]
    lo = tuple(smaller(max(v, 0), d - n) for v, d, n in zip(starts, shape, sizes))
    hi = tuple(i + n for i, n in zip(lo, sizes))
    return s.new(
        "slice", e.invars[:1], e.outvars[0], e, start_indices=lo, limit_indices=hi, strides=None
    )


def fixed_exponent(exponent: Any) -> float | None:
    """The number, if it is one that multiplications and square roots can raise to."""
    v = (
        exponent.item()
        if isinstance(exponent, (np.ndarray, np.generic)) and not exponent.shape
        else exponent
    )
    return v if type(v) is float and v in NAMES else None


def power_by_roots(s: Sweep, e: Eqn) -> Eqn | None:
    """pow x 1.5 -> pow[exponent=1.5] x; only for a number in the program's text, which is one for
    eager execution too."""
    if (
        len(e.invars) != 2
        or e.outvars[0].aval.dtype.kind == "c"
        or e.invars[0].aval.shape != e.outvars[0].aval.shape
    ):
        return None
    exponent = e.invars[1]
    v = fixed_exponent(_value(exponent)) if getattr(exponent, "written", False) else None
    return s.new("pow", e.invars[:1], e.outvars[0], e, exponent=v) if v is not None else None


RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "pow": (power_by_roots,),
    "add": (add_nothing,),
    "add_any": (add_nothing,),
    "sub": (subtract_nothing,),
    "mul": (multiply_by_one,),
    "div": (divide,),
    "max": (neutral_bound,),
    "min": (neutral_bound,),
    "neg": (twice_undone,),
    "not": (twice_undone,),
    "rev": (no_axes, twice_undone),
    "integer_pow": (power_one,),
    "select_n": (known_choice,),
    "convert_element_type": (identity,),
    "stop_gradient": (identity,),
    "optimization_barrier": (known_number,),
    "sharding_constraint": (identity,),
    "device_put": (identity,),
    "copy": (identity,),
    "copy_p": (identity,),
    "reshape": (read_in_order, identity),
    "broadcast_in_dim": (identity,),
    "squeeze": (identity,),
    "transpose": (still_transposed, transposed_product),
    "slice": (whole_slice,),
    "pad": (no_padding,),
    "concatenate": (single_part,),
    "dynamic_slice": (known_start,),
    **{f"reduce_{k}": (no_axes,) for k in ("sum", "prod", "max", "min", "and", "or", "xor")},
}
