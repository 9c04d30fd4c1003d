"""Operations of each element, on XLA: what one operation of StableHLO does not do by itself."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from tests.xla.lower.shared import on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

x = np.float32([-3, -0.5, 0, 0.25, 7])


@pytest.mark.parametrize(
    ("y", "products", "quotients"), [(0, 0, 0), (1, 0, 0), (2, 1, 0), (7, 4, 0), (8, 3, 0)]
)
def test_powers_are_as_few_products_as_squaring_needs(
    y: int, products: int, quotients: int
) -> None:
    for sign in (1, -1):
        found = operations(text_of(lambda x: lax.integer_pow(x, sign * y) + 0, x))
        assert found["multiply"] == products
        assert found["divide"] == (1 if sign < 0 and y else quotients)


@needs_jaxlib
@pytest.mark.parametrize("y", [-3, -1, 0, 1, 5, 12])
def test_powers(y: int) -> None:
    (found,) = on_both(lambda x: lax.integer_pow(x, y), x[[0, 1, 3, 4]], rtol=1e-6)
    np.testing.assert_allclose(found, x[[0, 1, 3, 4]].astype(float) ** y, rtol=1e-6)


@needs_jaxlib
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_the_high_half_of_a_product(dtype: str) -> None:
    info = np.iinfo(dtype)
    some = [info.min, info.max, info.max // 3, 0, 1, info.max - 1, info.min // 2]
    a, b = [np.array(v, dtype) for v in zip(*[(p, q) for p in some for q in some])]
    with jax.enable_x64(True):
        (found,) = on_both(lax.mulhi, a, b)
    want = [(int(p) * int(q)) >> info.bits for p, q in zip(a, b)]
    assert found.dtype == dtype and found.tolist() == want


@needs_jaxlib
@pytest.mark.parametrize("cases", [1, 2, 3, 5, 8])
def test_one_of_several(cases: int) -> None:
    which = np.arange(20, dtype=np.int32).reshape(4, 5) % cases
    rows = [np.full((4, 5), 10 * i, np.float32) for i in range(cases)]
    (found,) = on_both(lambda w, *xs: lax.select_n(w, *xs), which, *rows)
    np.testing.assert_array_equal(found, 10 * which)
    compared = operations(text_of(lambda w, *xs: lax.select_n(w, *xs), which, *rows))
    assert compared["compare"] == compared["select"] == cases - 1


@needs_jaxlib
@needs_jaxlib
@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_small_parts_of_complex_waves_are_kept(name: str, dtype: str) -> None:
    """XLA's own sine gives -7e-13 for -7e-13+8e-13j."""
    r = np.random.default_rng(0)
    sizes = 10.0 ** r.uniform(-14, 1, (2, 400)) * r.choice([-1, 1], (2, 400))
    z = np.append(sizes[0] + 1j * sizes[1], [0, 1j, 2, -0.5j, 90, 90j]).astype(dtype)
    with jax.enable_x64(True):
        f = jax.jit(getattr(jnp, name), backend="xla_cpu")
        at = np.asarray([complex(0, 1000), complex(1000, 0)], dtype)
        found, edge = np.asarray(f(z)), np.asarray(f(at))
    wanted = getattr(np, name)(z.astype(complex))
    rtol = 40 * np.finfo(dtype).eps
    seen = np.abs(wanted) < 1e38  # what float32 has
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(found)[seen], part(wanted)[seen], rtol=rtol, atol=1e-37)
    with np.errstate(all="ignore"):
        beyond = getattr(np, name)(at.astype(complex))
    np.testing.assert_array_equal(np.isnan(edge), np.isnan(beyond))


def test_complex_numbers_are_ordered_by_their_parts() -> None:
    a = np.complex64([1 + 2j, 1 - 2j, -1 + 9j, 3])
    b = np.complex64([1 + 1j, 1 - 1j, 2 + 0j, 3])

    def ordered(a: Any, b: Any) -> Any:
        return lax.max(a, b), lax.min(a, b)

    most, least = on_both(ordered, a, b)
    want = [sorted(p, key=lambda z: (z.real, z.imag)) for p in zip(a.tolist(), b.tolist())]
    assert most.tolist() == [p[1] for p in want] and least.tolist() == [p[0] for p in want]


@needs_jaxlib
def test_bounds_of_a_clamp() -> None:
    low, high = np.float32(-1), np.full(5, 5, np.float32)
    for bounds in ((low, low + 2), (low, low - 2), (high - 6, high)):
        (found,) = on_both(lambda x, a, b: lax.clamp(a, x, b), x, *bounds)
        np.testing.assert_array_equal(found, np.minimum(np.maximum(x, bounds[0]), bounds[1]))


@needs_jaxlib
def test_signs_without_a_sign() -> None:
    (found,) = on_both(lax.sign, np.uint8([0, 1, 200]))
    assert found.tolist() == [0, 1, 1] and found.dtype == np.uint8
    on_both(lax.sign, np.float32([-0.0, 0.0, -np.inf, np.nan]))


@needs_jaxlib
def test_conversions() -> None:
    def converted(z: Any, x: Any, n: Any) -> Any:
        return z.real, x.astype(bool), z.astype(bool), n.astype(jnp.bfloat16), x.astype("int8")

    z = np.complex64([2j, 1 + 1j, 0])
    _, truth, of_complex, *_ = on_both(converted, z, np.float32([0.25, -0.0, np.nan]), np.int32(3))
    assert truth.tolist() == [True, False, True]
    with pytest.warns(np.exceptions.ComplexWarning):
        dropped = on_both(lambda z: lax.convert_element_type(z, np.float32), z)[0]
    assert dropped.tolist() == [0, 1, 0]
    assert of_complex.shape == (3,)


@needs_jaxlib
@pytest.mark.parametrize(
    ("of", "to"),
    [("float32", "uint8"), ("uint16", "uint32"), ("int32", "float32"), ("int8", "int8")],
)
def test_bits_as_another_type(of: str, to: str) -> None:
    data = np.array([[0, 1], [1, 1]], of)
    (found,) = on_both(lambda x: lax.bitcast_convert_type(x, to), data)
    np.testing.assert_array_equal(found.ravel(), data.view(to).ravel())


def test_types_of_six_bits_have_no_bytes() -> None:
    six = jnp.zeros(4, jnp.float8_e4m3fn)
    assert "bitcast_convert" in text_of(lambda x: lax.bitcast_convert_type(x, "uint8"), six)
    with pytest.raises(NotImplementedError, match="float6_e2m3fn has no whole byte"):
        text_of(lambda x: lax.bitcast_convert_type(x.astype(jnp.float6_e2m3fn), "uint8"), x)


@needs_jaxlib
def test_order_of_all_numbers() -> None:
    numbers = np.float32([-0.0, 0.0, np.nan, -np.inf, np.inf])
    pairs = [np.ravel(g) for g in np.meshgrid(numbers, numbers)]
    on_both(lambda a, b: (lax.eq_to_p.bind(a, b), lax.lt_to_p.bind(a, b)), *pairs)


@needs_jaxlib
def test_rounding_halves() -> None:
    halves = np.float32([-2.5, -0.5, 0.5, 1.5, 2.5])
    away, even = on_both(
        lambda x: (lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)), halves
    )
    assert away.tolist() == [-3, -1, 1, 2, 3] and even.tolist() == [-2, 0, 0, 2, 2]


@needs_jaxlib
def test_reduced_precision_and_barriers() -> None:
    def through(x: Any) -> Any:
        a, b = lax.optimization_barrier((x, x + 1))
        return lax.reduce_precision(x / 3, 5, 3), a + b

    assert operations(text_of(through, x))["optimization_barrier"] == 1
    assert lax.optimization_barrier(()) == ()
    on_both(through, x)
