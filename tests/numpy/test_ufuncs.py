"""Elementwise functions against NumPy over dtypes, against JAX for dtypes and weak types."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from tests.numpy.compare import DTYPES, check, values

UNARY = [
    "negative",
    "positive",
    "absolute",
    "sign",
    "floor",
    "ceil",
    "rint",
    "trunc",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sqrt",
    "cbrt",
    "sinh",
    "cosh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "square",
    "reciprocal",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "logical_not",
    "deg2rad",
    "rad2deg",
    "log2",
    "log10",
    "conjugate",
    "real",
    "imag",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "maximum",
    "minimum",
    "arctan2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "power",
    "nextafter",
]
REAL_ONLY = set(["floor", "ceil", "rint", "trunc", "cbrt", "signbit", "deg2rad", "rad2deg"])
NOT_COMPLEX = set(
    [
        "floor_divide",
        "remainder",
        "fmod",
        "arctan2",
        "nextafter",
        "maximum",
        "minimum",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
    ]
)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64", "float16"])
def test_unary(name, dtype):
    if dtype == "complex64" and (name in REAL_ONLY or name in ("sign",)):
        pytest.skip("not for complex numbers")
    x = values((3, 4), dtype)
    if dtype == "int32" and name == "reciprocal":
        x = np.abs(x).astype(np.float32) + 1
    if dtype == "int32" and name == "signbit":
        pytest.skip("NumPy has none for integers")
    check(name, x, tol=4e-3 if dtype == "float16" else 3e-6)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "complex64"])
def test_binary(name, dtype):
    if dtype == "complex64" and name in NOT_COMPLEX:
        pytest.skip("not for complex numbers")
    x, y = values((3, 1), dtype), values((4,), dtype, 1)
    if name in ("floor_divide", "remainder", "fmod", "power") and dtype != "complex64":
        y = np.abs(y) + np.ones((), y.dtype)
    if name == "power" and dtype == "float32":
        x = np.abs(x)
    check(name, x, y, tol=1e-5)


@pytest.mark.parametrize(
    "name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_bits(name, dtype):
    x, y = values((5,), dtype), np.abs(values((5,), dtype, 1))
    check(name, x, y)
    check("bitwise_not", x)


def test_floor_division_and_remainder_have_pythons_signs():
    a = np.array([7, -7, 7, -7, 0])
    b = np.array([3, 3, -3, -3, 5])
    np.testing.assert_array_equal(jnp.floor_divide(a, b), a // b)
    np.testing.assert_array_equal(jnp.remainder(a, b), a % b)
    np.testing.assert_allclose(jnp.remainder(a * 0.5, b * 0.7), (a * 0.5) % (b * 0.7), atol=1e-6)


@pytest.mark.parametrize("exponent", [-2, -1, 0, 1, 2, 3, 7, 0.5, 2.5])
def test_powers(exponent):
    x = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(jnp.asarray(x) ** exponent, x**exponent, rtol=1e-6)
    if isinstance(exponent, int) and exponent >= 0:
        i = np.array([-2, -1, 0, 3])
        np.testing.assert_array_equal(jnp.asarray(i) ** exponent, i**exponent)
        np.testing.assert_array_equal(jnp.power(i, np.full(4, exponent)), i**exponent)


def test_powers_of_truth_values_are_int32_also_where_integers_have_64_bits():
    yes = jnp.array([True, False])
    for wide in (False, True):
        with calque.enable_x64(wide):
            assert {(yes**n).dtype for n in (0, 1, 2, 3)} == {np.dtype("int32")}
            np.testing.assert_array_equal(yes**0, [1, 1])
            np.testing.assert_array_equal(yes**3, [1, 0])


@pytest.mark.parametrize("exponent", ["int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize("base", ["bool", "int8", "uint8", "int16", "int32"])
def test_one_known_exponent_does_not_widen(base, exponent):
    """Neither as an operator nor as a function, the first time and later."""
    x, n = jnp.ones(2, base), jnp.asarray(2, exponent)
    want = np.dtype("int32" if base == "bool" else base)
    assert [(x**n).dtype, (x**n).dtype, jnp.power(x, n).dtype] == [want] * 3
    traced = calque.jit(lambda x, n: x**n)(x, n)
    assert traced.dtype == (want if base == exponent else jnp.promote_types(base, exponent))


def test_powers_of_integers_are_not_weak():
    assert not calque.jit(lambda n: 2**n)(3).aval.weak_type
    assert not (2 ** jnp.array([True])).aval.weak_type
    small = jnp.array([1, 2], "int8")
    for f in (lambda n: 1.5**n, lambda n: 2j**n, lambda n: jnp.power(1.5, n)):
        for run in (f, f, calque.jit(f)):
            assert not run(small).aval.weak_type
    assert calque.jit(lambda n: n**n)(3.0).aval.weak_type
    assert calque.jit(lambda n: n**2)(3).aval.weak_type


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_to_a_base_keep_infinite_parts(name):
    """Of complex zero and infinity: one part is infinite, the other finite."""
    x = np.array([0, complex(-0.0, 0.0), complex(np.inf, 1), 8, 1000j], np.complex64)
    with np.errstate(all="ignore"):
        want = np.log(x).astype(np.complex128)
    scale = np.log(2 if name == "log2" else 10)
    for f in (getattr(jnp, name), calque.jit(getattr(jnp, name))):
        got = np.asarray(f(x))
        np.testing.assert_allclose(got.real, want.real / scale, rtol=1e-6)
        np.testing.assert_allclose(got.imag, want.imag / scale, rtol=1e-6)


def test_python_scalars_do_not_widen():
    assert (jnp.ones(2, jnp.float16) * 2.5).dtype == np.float16
    assert (jnp.ones(2, jnp.int8) + 1).dtype == np.int8
    assert (jnp.ones(2, jnp.int8) + 1.5).dtype == np.float32
    assert (jnp.asarray(3) + 1).aval.weak_type
    assert not (jnp.ones(2) + 1).aval.weak_type
    assert (jnp.ones(2, jnp.int8) + 1000).tolist() == [-23, -23]
    with pytest.raises(OverflowError):
        jnp.ones(2, jnp.int8) + 2**40


def test_refusals():
    with pytest.raises(
        TypeError,
        match=r"add requires ndarray or scalar arguments, got <class 'list'> at position 1",
    ):
        jnp.add(jnp.ones(2), [1.0, 2.0])
    with pytest.raises(TypeError, match=r"incompatible shapes.*\(2,\), \(3,\)"):
        jnp.ones(2) + jnp.ones(3)
    with pytest.raises(TypeError, match="boolean negative"):
        -jnp.array([True])
    with pytest.raises(TypeError):
        jnp.bitwise_and(jnp.ones(2), 1)


OPERANDS = [*DTYPES, "bfloat16", "python int", "python float", "python complex"]
PYTHON = {"python int": 2, "python float": 2.0, "python complex": 2j}


def result_type(library, module, name, kinds):
    """(dtype, weak type) of a result, found without computing it; or that the operands are
    refused."""
    arrays = [module.ones(2, k) for k in kinds if k not in PYTHON]

    def call(*xs):
        rest = iter(xs)
        return getattr(module, name)(*[PYTHON[k] if k in PYTHON else next(rest) for k in kinds])

    try:
        out = library.eval_shape(call, *arrays)
    except (TypeError, ValueError):
        return "refused"
    return (
        np.dtype(out.dtype).name,
        bool(out.weak_type) and out.dtype != bool,
    )  # bools have no weaker kind


@pytest.mark.peer
@pytest.mark.parametrize(
    "name", [*BINARY, "logaddexp", "copysign", "heaviside", "hypot", "float_power", "fmax"]
)
def test_result_types_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    different = {}
    for a in OPERANDS[:-3]:
        for b in OPERANDS:
            want = result_type(jax, jax.numpy, name, (a, b))
            got = result_type(calque, jnp, name, (a, b))
            if got != want:
                different[a, b] = got, want
    assert not different


@pytest.mark.peer
@pytest.mark.parametrize(
    "name", [*UNARY, "sinc", "i0", "angle", "nan_to_num", "iscomplex", "real", "imag", "fabs"]
)
def test_result_types_of_one_operand_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    different = {}
    for a in OPERANDS:
        want, got = result_type(jax, jax.numpy, name, (a,)), result_type(calque, jnp, name, (a,))
        if got != want:
            different[a] = got, want
    assert not different


def test_under_transformations():
    x = jnp.array([0.5, 1.5])
    np.testing.assert_allclose(calque.vmap(jnp.sin)(x), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(
        calque.grad(lambda x: jnp.sum(x**3))(x), 3 * np.asarray(x) ** 2, rtol=1e-6
    )


NUMBERS = (2, -3, 2.5, -0.0, 1e-40, 1e39, float("nan"), float("inf"), 1 << 24, (1 << 24) + 1, True)


@pytest.mark.parametrize("promotion", ["promote_dtypes", "promote_inexact", "promote_numeric"])
def test_operands_of_float32_are_what_promotion_makes_of_them(promotion):
    from calque.numpy import promotion as promotions
    from calque.numpy import ufuncs
    from calque.numpy.promotion import typeof

    def same(x, y):
        a, b = getattr(x, "aval", None), getattr(y, "aval", None)
        quick = ufuncs._of_float32("add", x, y, a, b)
        if quick is None:
            return False
        slow = ufuncs.operands("add", getattr(promotions, promotion), x, y)
        for p, q in zip(quick, slow, strict=True):
            assert typeof(p) is typeof(q)
            assert p is q or np.asarray(p).tobytes() == np.asarray(q).tobytes()
        return True

    x = jnp.asarray([1.5, 2.0], "float32")
    taken = [n for n in NUMBERS if same(x, n)]
    assert taken == [n for n in NUMBERS if same(n, x)]
    assert [str(n) for n in taken] == [str(n) for n in NUMBERS[:-2]]
    assert same(x, x) and same(x, jnp.float32(3)) and same(x, jnp.ones((3, 1)))
    others = (jnp.asarray([1, 2]), jnp.asarray(1.0), np.float32(1), np.ones(2, "f"), [1.0], None)
    assert not any(same(x, o) or same(o, x) for o in others)


def test_programs_of_float32_look_for_no_common_type(monkeypatch):
    from calque.numpy import promotion as promotions

    looked = []
    found = promotions.common_type
    monkeypatch.setattr(promotions, "common_type", lambda *a: looked.append(a) or found(*a))
    x = jnp.ones((3, 4))
    calque.make_jaxpr(lambda x: (1 - x * 2.0 + x[0]) / (x[:, :1] + 1e-5))(x)
    assert not looked
    calque.make_jaxpr(lambda x: x + np.int8(1))(x)
    assert looked


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_to_powers_of_any_number_of_bits(name: str) -> None:
    """Few exponents have more bits than six; where one has, all of its bits count."""
    rng = np.random.default_rng(4)
    x = rng.integers(0 if name[0] == "u" else -9, 10, 300).astype(name)
    with config.override("calque_enable_x64", True), np.errstate(all="ignore"):
        for most in (8, 120):
            y = rng.integers(0, most, 300).astype(name)
            for f in (jnp.power, calque.jit(jnp.power), calque.vmap(jnp.power)):
                got = np.asarray(f(x, y))
                assert got.dtype == x.dtype
                np.testing.assert_array_equal(got, np.power(x, y))
        far = calque.jit(jnp.power)(np.int64(7), np.int64(2**62 + 5))
        assert int(far) == pow(7, 2**62 + 5, 2**64)


def test_powers_of_integers_beside_derivatives() -> None:
    def f(x):
        return (x * jnp.power(jnp.int32(3), jnp.arange(4)) ** jnp.arange(4)).sum()

    want = sum((3**k) ** k for k in range(4))
    assert float(calque.grad(f)(2.0)) == float(calque.jacfwd(f)(2.0)) == want
    assert calque.jit(calque.vmap(calque.grad(f)))(jnp.ones(3)).tolist() == [want] * 3
