"""The array object: Python's conversions, matrix products, devices; creation functions; casts."""

import operator

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.array_api.standard import CATEGORIES, DTYPES, FLOATING, INTEGRAL, NUMERIC, REAL

# ---------------------------------------------------------------- conversions


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_to_python(dtype):
    one, zero = jnp.asarray(1, dtype), jnp.asarray(0, dtype)
    assert bool(one) is True and bool(zero) is False
    assert complex(one) == 1 and isinstance(complex(one), complex)
    if dtype not in ("complex64", "complex128"):
        assert (
            isinstance(float(one), float)
            and isinstance(int(one), int)
            and float(one) == int(one) == 1
        )
    if dtype in CATEGORIES[INTEGRAL]:
        assert operator.index(one) == 1 and [10, 20][one] == 20
    else:
        with pytest.raises(TypeError):
            operator.index(one)


def test_conversions_of_special_values():
    assert bool(jnp.asarray(jnp.nan)) and bool(jnp.asarray(jnp.inf)) and not bool(jnp.asarray(-0.0))
    assert np.isnan(float(jnp.asarray(jnp.nan))) and float(jnp.asarray(-jnp.inf)) == -np.inf
    with pytest.raises(ValueError):
        int(jnp.asarray(jnp.nan))
    with pytest.raises(OverflowError):
        int(jnp.asarray(jnp.inf))
    for convert in (float, int):
        with pytest.raises(TypeError):
            convert(jnp.asarray(1j))
        with pytest.raises(TypeError):
            convert(jnp.ones(2))
    for shape in ((2,), (0,)):
        with pytest.raises(ValueError):
            bool(jnp.ones(shape))


@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,
    4)), ((4, 1, 2, 3), (5, 3, 2)), ((2, 0), (0, 3)), ((0, 3), (3, 2))]
)  # fmt: skip
def test_products(shapes):
    for dtype in ("int32", "float32", "float64", "complex64"):
        a, b = (np.arange(np.prod(s)).reshape(s).astype(dtype) for s in shapes)
        want = a @ b
        for out in (
            jnp.asarray(a) @ jnp.asarray(b),
            jnp.matmul(a, b),
            jnp.linalg.matmul(jnp.asarray(a), jnp.asarray(b)),
        ):
            assert (out.dtype, out.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(out, want)


def test_products_that_are_refused():
    for a, b in (((3,), (4,)), ((2, 3), (2, 3)), ((), (3,)), ((3,), ()), ((2, 2, 3), (3, 3, 4))):
        with pytest.raises((TypeError, ValueError)):
            jnp.ones(a) @ jnp.ones(b)
    assert (
        calque.eval_shape(operator.matmul, jnp.ones(2, "int8"), jnp.ones(2, "uint8")).dtype
        == "int16"
    )


def test_devices():
    x = jnp.arange(3.0)
    same = x.to_device(x.device)
    assert same.tolist() == x.tolist() and same.device == x.device
    with pytest.raises((ValueError, TypeError)):
        x.to_device("nowhere")
    assert x.__dlpack_device__() == (1, 0)
    for made in (
        jnp.ones(2, device=x.device),
        jnp.asarray([1], device=x.device),
        jnp.eye(2, device=x.device),
    ):
        assert made.device == x.device


# ---------------------------------------------------------------- creation

CREATION = {
    "zeros": (lambda m, **kw: m.zeros((2, 3), **kw), "float64"),
    "ones": (lambda m, **kw: m.ones(4, **kw), "float64"),
    "ones of rank 0": (lambda m, **kw: m.ones((), **kw), "float64"),
    "ones without elements": (lambda m, **kw: m.ones((0, 2), **kw), "float64"),
    "full int": (lambda m, **kw: m.full((2,), 3, **kw), "int64"),
    "full float": (lambda m, **kw: m.full(2, 3.0, **kw), "float64"),
    "full complex": (lambda m, **kw: m.full((2, 1), 3.0 + 0j, **kw), "complex128"),
    "full bool": (lambda m, **kw: m.full((2,), True, **kw), "bool"),
    "eye": (lambda m, **kw: m.eye(3, **kw), "float64"),
    "eye of columns": (lambda m, **kw: m.eye(2, 4, k=1, **kw), "float64"),
    "eye below": (lambda m, **kw: m.eye(3, k=-2, **kw), "float64"),
    "eye far": (lambda m, **kw: m.eye(3, k=7, **kw), "float64"),
    "arange": (lambda m, **kw: m.arange(5, **kw), "int64"),
    "arange with a step": (lambda m, **kw: m.arange(9, 2, -3, **kw), "int64"),
    "arange of floats": (lambda m, **kw: m.arange(0.0, 2.0, 0.5, **kw), "float64"),
    "arange of nothing": (lambda m, **kw: m.arange(3, 1, **kw), "int64"),
    "linspace": (lambda m, **kw: m.linspace(0, 5, 6, **kw), "float64"),
    "linspace without its end": (
        lambda m, **kw: m.linspace(0, 6, 6, endpoint=False, **kw),
        "float64",
    ),
    "linspace of one": (lambda m, **kw: m.linspace(3, 5, 1, **kw), "float64"),
    "linspace of nothing": (lambda m, **kw: m.linspace(3, 5, 0, **kw), "float64"),
}


@pytest.mark.parametrize("name", CREATION)
def test_creation(name):
    make, default = CREATION[name]
    out, want = make(jnp), make(np)
    assert (out.dtype, out.shape) == (default, want.shape)
    np.testing.assert_allclose(out, want)
    for dtype in ("int8", "float32", "complex64"):
        if "complex" in name and dtype != "complex64":
            continue
        typed = make(jnp, dtype=getattr(jnp, dtype))
        assert (typed.dtype, typed.shape) == (dtype, want.shape)
        np.testing.assert_allclose(typed, want.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_creation_like_another(dtype):
    x = jnp.ones((2, 3), dtype)
    for out, value in ((jnp.zeros_like(x), 0), (jnp.ones_like(x), 1), (jnp.full_like(x, 1), 1)):
        assert (out.dtype, out.shape) == (dtype, (2, 3)) and np.all(np.asarray(out) == value)
    assert jnp.empty_like(x).dtype == jnp.empty((2,), dtype=dtype).dtype == dtype
    assert jnp.zeros_like(x, dtype=jnp.int16).dtype == "int16"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"), (3, "int64"), (3.0, "float64"), (3j, "complex128"), ([1, 2], "int64"),
        ([[1.0], [2]], "float64"), ([True, False], "bool"),
        ([1, 2.5, 3j], "complex128"), ([], "float64"), (((1, 2), (3, 4)), "int64"), ([True, 2],
        "int64"),
    ],
)  # fmt: skip
def test_asarray_of_python_values(value, dtype):
    out = jnp.asarray(value)
    assert (out.dtype, out.shape) == (dtype, np.asarray(value).shape)
    np.testing.assert_array_equal(out, value)


def test_asarray_copies_and_casts():
    x = jnp.arange(3)
    for copy in (None, True, False):
        assert jnp.asarray(x, copy=copy).tolist() == [0, 1, 2]
    source = np.arange(3)
    copied = jnp.asarray(source, copy=True)
    source[0] = 9
    assert copied.tolist() == [0, 1, 2]
    assert jnp.asarray(x, dtype=jnp.float32).dtype == "float32"
    assert jnp.asarray(memoryview(b"ab")).tolist() == [97, 98]
    # The standard wants an error where copy=False asks for the impossible; JAX copies.
    assert jnp.asarray([1, 2], copy=False).tolist() == [1, 2]


def test_grids_and_triangles():
    a, b = np.arange(3), np.arange(2.0)
    for indexing in ("xy", "ij"):
        for got, want in zip(
            jnp.meshgrid(a, b, indexing=indexing), np.meshgrid(a, b, indexing=indexing)
        ):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
    assert jnp.meshgrid(jnp.arange(3))[0].shape == (3,)
    x = np.arange(24).reshape(2, 3, 4)
    for k in (-5, -1, 0, 2, 9):
        for name in ("tril", "triu"):
            np.testing.assert_array_equal(getattr(jnp, name)(x, k=k), getattr(np, name)(x, k=k))
    with pytest.raises((ValueError, TypeError)):
        jnp.tril(jnp.ones(3))


# ---------------------------------------------------------------- casts


@pytest.mark.parametrize("source", DTYPES)
def test_astype(source):
    x = np.array([0, 1, 3], source) if source != "bool" else np.array([False, True, True])
    for target in DTYPES:
        out = jnp.astype(jnp.asarray(x), getattr(jnp, target))
        real = x.real if "complex" in source and "complex" not in target else x
        assert out.dtype == target
        np.testing.assert_array_equal(out, real.astype(target))
    assert jnp.astype(jnp.asarray(x), source, copy=True).tolist() == x.tolist()


def test_astype_of_special_values():
    assert jnp.astype(jnp.asarray([jnp.nan, 0.0, -0.0, jnp.inf]), bool).tolist() == [
        True,
        False,
        False,
        True,
    ]
    assert jnp.astype(jnp.asarray([-1.9, 1.9]), "int32").tolist() == [-1, 1]
    assert jnp.astype(jnp.asarray([1, -1]), "uint8").tolist() == [1, 255]
    x = jnp.ones(2)
    assert jnp.astype(x, "float32", device=x.device).device == x.device


@pytest.mark.parametrize("dtype", CATEGORIES[REAL])
def test_clip(dtype):
    x = np.array([0, 1, 2, 3, 4], dtype)
    for low, high in ((1, 3), (None, 2), (2, None), (None, None), (3, 1)):
        out = jnp.clip(jnp.asarray(x), min=low, max=high)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, x if low is high is None else np.clip(x, low, high))
    low = jnp.asarray([[1], [2]], dtype)
    assert jnp.clip(jnp.asarray(x), low, 3).shape == (2, 5)
    if dtype.startswith("float"):
        assert np.isnan(jnp.clip(jnp.asarray([jnp.nan, 1]), 0, 2)[0]) and np.isnan(
            jnp.clip(jnp.asarray([1.0]), jnp.nan, 2)[0]
        )


def test_categories_are_those_of_isdtype():
    for dtype in DTYPES:
        assert jnp.isdtype(getattr(jnp, dtype), "numeric") == (dtype in CATEGORIES[NUMERIC])
        assert jnp.isdtype(getattr(jnp, dtype), ("real floating", "complex floating")) == (
            dtype in CATEGORIES[FLOATING]
        )
        assert jnp.isdtype(getattr(jnp, dtype), getattr(jnp, dtype))
    assert not jnp.isdtype(jnp.float32, jnp.float64)
    with pytest.raises((TypeError, ValueError)):
        jnp.isdtype(jnp.float32, "float of some kind")
