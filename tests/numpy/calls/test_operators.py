"""Operators of concrete arrays on the call path: powers, whose exponents may be part of the
program."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.call import functions as callpath

EXPONENTS: list[Any] = [
    1.7, 1.5, -0.5, 2.0, 0.3, 3.0, 0.0, -0.0, 1.0, 2.5, -2.5, 7.5, 1e15, -1e15, 1e300,
    float("inf"), float("-inf"), float("nan"),
    2, 3, -2, 0, 1, True, 2.0000000000000004, 1.5000000001,
]  # fmt: skip


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("order", [1, -1])
def test_powers_give_the_bits_of_compiled_ones_in_any_order(order: int) -> None:
    """What was taught for one exponent must not serve another for which `jit` makes another
    program."""
    x = jnp.asarray(np.linspace(0.1, 9, 23 + order), jnp.float32)
    for _ in range(3):
        for e in EXPONENTS[::order]:
            assert same(x**e, calque.jit(lambda x, e=e: x**e)(x)), e


def test_repeated_powers_enter_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.arange(1.0, 6.0)
    function = type(x).__pow__
    for e in (1.5, 1.7, 3, 2.0):
        _ = x**e, x**e
    before = callpath.entry_count(function)
    for e in (
        1.5,
        1.7,
        3,
        2.0,
        1.3,
        0.123,
        -7.7,
    ):  # other fractions are served by the entry of the first
        assert np.allclose(np.asarray(x**e), np.asarray(x) ** e, rtol=1e-5)
    assert callpath.entry_count(function) == before


@pytest.mark.parametrize("base", [2, 2.0, 3, True])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_powers_of_numbers(base: Any, dtype: str) -> None:
    x = jnp.arange(7).astype(dtype)
    for _ in range(3):
        assert same(base**x, calque.jit(lambda x: base**x)(x))


def test_integer_arrays() -> None:
    x = jnp.arange(-3, 4)
    for _ in range(3):
        assert (x**3).tolist() == [-27, -8, -1, 0, 1, 8, 27] and (x**0).tolist() == [1] * 7
        assert same(x**1.5, calque.jit(lambda x: x**1.5)(x))
    assert (jnp.arange(3, dtype="uint8") ** 2).tolist() == [0, 1, 4]


def test_integers_to_a_known_negative_power_are_refused() -> None:
    x = jnp.arange(-3, 4)
    for _ in range(3):
        for refused in (
            lambda: x**-1,
            lambda: x ** jnp.array(-1),
            lambda: x.astype("int8") ** jnp.array(-1),
            lambda: 2 ** jnp.array(-1),
            lambda: jnp.array([True]) ** -1,
            lambda: calque.jit(lambda x: x**-1)(x),
        ):
            with pytest.raises(TypeError, match="negative powers"):
                refused()
    powers = calque.jit(lambda x, y: x**y)(x, jnp.array(-1))  # which only runs know
    assert powers.tolist() == [0, 0, -1, 0, 1, 0, 0]


def test_a_known_exponent_decides_no_type() -> None:
    for _ in range(3):
        assert (jnp.asarray(2) ** jnp.array(3, "int8")).weak_type
        assert (2 ** jnp.array(3)).weak_type
        assert (jnp.arange(3, dtype="int8") ** jnp.array(2)).dtype == "int8"
        wrapped = jnp.array([3, -5], "int8") ** jnp.array(31)  # modulo 256
        assert wrapped.tolist() == [43, -77]


def test_derivatives_and_tracing_see_the_exponent() -> None:
    x = jnp.arange(1.0, 4.0)
    _ = x**1.5, x**3
    assert np.allclose(calque.grad(lambda x: (x**1.5).sum())(x), 1.5 * np.sqrt(np.arange(1, 4)))
    assert "integer_pow[y=3]" in str(calque.make_jaxpr(lambda x: x**3)(x))


def test_fractions() -> None:
    fractions = [0.3, -1.7, 1e15, -1e16, float("inf"), float("nan"), 1e-320]
    assert all(callpath.is_fraction(x) for x in fractions)
    assert not any(callpath.is_fraction(x) for x in (0.0, -0.0, 0.5, -2.5, 3.0, 999999999999999.5))


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (2, 3)), ((3,), (2, 3)), ((2, 3), (2,))])
def test_products_of_sizes_that_do_not_match_are_refused(shapes):
    a, b = map(jnp.ones, shapes)
    for _ in range(3):  # also by the operator's machine code
        with pytest.raises(TypeError, match="contract"):
            a @ b


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code every call asks Python")
def test_new_shapes_need_one_entry_for_all() -> None:
    function = type(jnp.ones(1)).__mul__
    rng = np.random.default_rng(0)
    for rank in (1, 2, 3):
        arrays = [rng.normal(size=(k + 997, *[3] * (rank - 1))).astype("f4") for k in range(12)]
        for k, a in enumerate(arrays):
            x = jnp.asarray(a)
            if k == 3:
                before = callpath.entry_count(function)
            assert (
                same(x * x, a * a)
                and same(x * 1.5, a * np.float32(1.5))
                and same(jnp.float32(2) * x, a * 2)
            )
            assert same(-x, -a) and same(x < 0.5, a < 0.5)
        assert callpath.entry_count(function) <= before
    x = jnp.asarray(arrays[5])
    _ = x * x  # the second time: an entry of its own
    assert callpath.entry_count(function) == before + 1
    assert same(x * x, arrays[5] ** 2) and callpath.entry_count(function) == before + 1


def test_shapes_that_broadcast_or_do_not_fit_are_no_business_of_it() -> None:
    for n in range(3, 9):
        x, y = jnp.arange(1.0 * n), jnp.ones((2, n))
        assert (
            (x + x).shape == (n,) and (x + y).shape == (2, n) and (x[:, None] + x).shape == (n, n)
        )
        assert (x + jnp.float32(1)).shape == (n,) and (x + jnp.ones(1)).shape == (n,)
        with pytest.raises((TypeError, ValueError), match="shapes"):
            x + jnp.ones(n + 1)
    assert (jnp.ones(0) + jnp.ones(0)).shape == (0,) and (jnp.ones((0, 3)) * 2).shape == (0, 3)


def test_types_of_new_shapes() -> None:
    for n in range(3, 9):
        x, b = jnp.arange(n), jnp.arange(n) > 1
        assert (x + 1).dtype == np.int32 and (x + 1.5).dtype == np.float32 and (b & b).dtype == bool
        assert (x / 2).weak_type is False and (calque.lax.full((n,), 1.0) + 1).weak_type
        with pytest.raises(OverflowError):
            x + 2**40
        assert (x + (2**31 - 1))[0] == 2**31 - 1
