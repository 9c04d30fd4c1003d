"""The dtypes that elementwise functions and operators take and give, by the standard's tables;
their values against NumPy's."""

import itertools
import operator

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.array_api.standard import (
    BINARY,
    CATEGORIES,
    COMPLEXES,
    COMPONENT,
    DTYPES,
    INTEGRAL,
    NUMERIC,
    REALS,
    UNARY,
    promoted,
)

RUN = {
    "bool",
    "int8",
    "uint32",
    "int64",
    "float32",
    "float64",
    "complex64",
}  # dtypes whose values are compared as well


def shape(dtype, *sizes):
    return calque.ShapeDtypeStruct(sizes, dtype)


def values(dtype, seed=0):
    """Values at which every function is defined, of both signs where there are signs."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype.startswith(("int", "uint")):
        return rng.integers(1 if seed else -3 if dtype[0] == "i" else 0, 6, 3).astype(dtype)
    x = rng.uniform(-0.9, 0.9, 3)
    return (x + 1j * rng.uniform(-0.9, 0.9, 3) if dtype in COMPLEXES else x).astype(dtype)


def result_of(rule, dtype):
    return {"bool": "bool", "component": COMPONENT.get(dtype, dtype)}.get(rule, dtype)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    category, rule = UNARY[name]
    f, theirs = getattr(jnp, name), getattr(np, name)
    for dtype in CATEGORIES[category]:
        x = values(dtype)
        x = (
            np.abs(x) + (name == "acosh")
            if dtype in REALS and name.startswith(("log", "sqrt", "acosh"))
            else x
        )
        out = f(jnp.asarray(x))
        assert (out.dtype, out.shape) == (
            result_of(rule, dtype),
            (3,),
        ), f"{name} of {dtype} gives {out.dtype}"
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(out, theirs(x), rtol=3e-6, atol=1e-6)


def defined(name):
    category, rule = BINARY[name]
    for a, b in itertools.product(CATEGORIES[category], repeat=2):
        if promoted(a, b):
            yield a, b, result_of(rule, promoted(a, b))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    f, theirs = getattr(jnp, name), getattr(np, name)
    for a, b, want in defined(name):
        out = calque.eval_shape(f, shape(a, 3, 1), shape(b, 2))
        assert (out.dtype, out.shape) == (want, (3, 2)), f"{name} of {a} and {b} gives {out.dtype}"
    for dtype in RUN.intersection(CATEGORIES[BINARY[name][0]]):
        x, y = values(dtype), values(dtype, 1)
        x = np.abs(x).astype(dtype) if name == "pow" else x
        out = f(jnp.asarray(x), jnp.asarray(y))
        assert out.dtype == result_of(BINARY[name][1], dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(out, theirs(x, y), rtol=1e-5)


def test_the_lattice():
    for a, b in itertools.product(DTYPES, repeat=2):
        want = promoted(a, b)
        if want:
            assert jnp.result_type(a, b) == jnp.result_type(jnp.ones(2, a), getattr(jnp, b)) == want
            assert jnp.can_cast(a, want) and jnp.can_cast(jnp.ones(1, a), getattr(jnp, want))
    assert jnp.result_type("int8", "uint8", "int32") == "int32"
    assert not jnp.can_cast("float64", "float32") and not jnp.can_cast("int16", "uint16")


# What the standard leaves open, as JAX has it: integers and floats promote to the float.
MIXED = {("int32", "float32"): "float32", ("int64", "float32"): "float32", ("bool",
"int8"): "int8", ("uint64", "int8"): "float64", ("int8", "complex64"): "complex64"}  # fmt: skip


@pytest.mark.parametrize("pair", MIXED)
def test_pairs_that_the_standard_leaves_open(pair):
    assert (
        jnp.result_type(*pair)
        == calque.eval_shape(jnp.add, *(shape(d) for d in pair)).dtype
        == MIXED[pair]
    )


# ---------------------------------------------------------------- operators

SYMBOLS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv",
    "floor_divide": "floordiv", "remainder": "mod", "pow": "pow",
    "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor",
    "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge",
}  # fmt: skip
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
SINGLE = {
    "abs": operator.abs,
    "negative": operator.neg,
    "positive": operator.pos,
    "bitwise_invert": operator.invert,
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_operators_are_the_functions(name):
    op, f = getattr(operator, SYMBOLS[name]), getattr(jnp, name)
    for a, b, want in defined(name):
        assert calque.eval_shape(op, shape(a, 2), shape(b, 2)).dtype == want
    for dtype in RUN.intersection(CATEGORIES[BINARY[name][0]]):
        x, y = jnp.asarray(np.abs(values(dtype)).astype(dtype)), jnp.asarray(values(dtype, 1))
        out = op(x, y)
        assert out.dtype == f(x, y).dtype
        np.testing.assert_array_equal(out, f(x, y))


@pytest.mark.parametrize("name", SINGLE)
def test_operators_of_one_array(name):
    for dtype in CATEGORIES[UNARY[name][0]]:
        x = jnp.asarray(values(dtype))
        np.testing.assert_array_equal(SINGLE[name](x), getattr(jnp, name)(x))
        assert SINGLE[name](x).dtype == getattr(jnp, name)(x).dtype


def scalars(dtype):
    """Python scalars that the standard lets stand beside this dtype."""
    if dtype == "bool":
        return (True,)
    if dtype in CATEGORIES[INTEGRAL]:
        return (2,)
    return (2, 2.5) if dtype in REALS else (2, 2.5, 2.5 + 1j)


@pytest.mark.parametrize("name", SYMBOLS)
def test_python_scalars_take_the_arrays_dtype(name):
    op = getattr(operator, SYMBOLS[name])
    for dtype in CATEGORIES[BINARY[name][0]]:
        x = jnp.asarray(np.abs(values(dtype, 1)).astype(dtype))
        for scalar in scalars(dtype):
            want = result_of(BINARY[name][1], dtype)
            for f in (lambda x: op(x, scalar), lambda x: op(scalar, x)):
                assert calque.eval_shape(f, x).dtype == want, (dtype, scalar)
            if dtype not in RUN:
                continue
            as_array = jnp.asarray(scalar, dtype)
            assert op(x, scalar).dtype == op(scalar, x).dtype == want
            np.testing.assert_array_equal(op(scalar, x), op(as_array, x))
            if name != "pow":  # an exponent of Python is multiplied out
                np.testing.assert_array_equal(op(x, scalar), op(x, as_array))


@pytest.mark.parametrize("name", [n for n in SYMBOLS if n not in COMPARISONS])
def test_in_place_operators_give_the_same(name):
    in_place, op = (
        getattr(operator, "i" + SYMBOLS[name].strip("_")),
        getattr(operator, SYMBOLS[name]),
    )
    dtype = "int32" if "bitwise" in name else "float32"
    x, y = jnp.asarray(values(dtype, 1)), jnp.asarray(np.abs(values(dtype, 2)))
    before = x
    np.testing.assert_array_equal(in_place(x, y), op(before, y))
    assert in_place(x, 2).dtype == dtype


@pytest.mark.parametrize(
    "name", [n for n in BINARY if BINARY[n][0] != NUMERIC][:6] + ["add", "pow"]
)
def test_functions_take_one_python_scalar(name):
    f, dtype = getattr(jnp, name), CATEGORIES[BINARY[name][0]][-1]
    x = jnp.asarray(values(dtype, 1))
    for out in (f(x, 1), f(1, x)):
        assert out.dtype == result_of(BINARY[name][1], dtype) and out.shape == x.shape


# ---------------------------------------------------------------- shapes

SHAPES = [
    ((), ()),
    ((3,), ()),
    ((3, 1), (1, 4)),
    ((0,), (1,)),
    ((2, 0), (1,)),
    ((1, 3, 1), (2, 1, 4)),
    ((0, 1), (1, 0)),
    ((5, 1, 1, 2), (3, 1)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcasting(shapes):
    a, b = (np.arange(np.prod(s), dtype="float32").reshape(s) for s in shapes)
    want = a + b
    np.testing.assert_array_equal(jnp.add(jnp.asarray(a), jnp.asarray(b)), want)
    assert all(x.shape == want.shape for x in jnp.broadcast_arrays(a, b))
    assert jnp.broadcast_shapes(*shapes) == want.shape


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((2, 3), (2,)), ((0,), (2,))])
def test_shapes_that_do_not_broadcast(shapes):
    a, b = map(jnp.ones, shapes)
    for f in (jnp.add, operator.mul, jnp.broadcast_arrays):
        with pytest.raises((ValueError, TypeError)):
            f(a, b)
    with pytest.raises((ValueError, TypeError)):
        jnp.broadcast_to(jnp.ones(shapes[0]), (7,))
