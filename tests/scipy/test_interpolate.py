"""RegularGridInterpolator against SciPy and JAX."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import calque
import calque.numpy as jnp
from calque import test_util
from calque.scipy.interpolate import RegularGridInterpolator
from tests.peers import compare, jax

RNG = np.random.default_rng(0)
GRID = (np.array([0.0, 0.5, 2.0, 3.0], np.float32), np.array([-1.0, 0.0, 4.0], np.float32))
VALUES = RNG.normal(size=(4, 3, 2)).astype(np.float32)
POINTS = np.stack([RNG.uniform(-0.5, 3.5, (3, 8)), RNG.uniform(-2, 5, (3, 8))], axis=-1).astype(
    np.float32
)


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 0.0, None])
def test_as_in_scipy(method: str, fill: Any) -> None:
    got = RegularGridInterpolator(GRID, VALUES, method, fill_value=fill)
    want = scipy.interpolate.RegularGridInterpolator(
        GRID, VALUES.astype(float), method, False, fill
    )
    np.testing.assert_allclose(got(POINTS), want(POINTS), rtol=1e-4, atol=1e-5)
    columns = (POINTS[..., 0], POINTS[..., 1])
    np.testing.assert_allclose(got(columns), want(columns), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        got(POINTS, "nearest"), want(POINTS, "nearest"), rtol=1e-4, atol=1e-5
    )


@pytest.mark.peer
def test_as_in_jax() -> None:
    peer = jax().scipy.interpolate.RegularGridInterpolator
    whole = (VALUES * 9).astype(np.int32)
    for values, points in (
        (VALUES, POINTS),
        (VALUES, np.array([[1, 2]])),
        (VALUES * 1j, POINTS),
        (whole, tuple(POINTS[0].T)),
    ):
        compare(RegularGridInterpolator(GRID, values)(points), peer(GRID, values)(points), 1e-5)
    line = np.arange(4, dtype=np.float32)
    for points in (line, (line,), line[:, None]):
        compare(
            RegularGridInterpolator((line,), line**2)(points), peer((line,), line**2)(points), 1e-5
        )


def test_under_transformations() -> None:
    f = RegularGridInterpolator(GRID, VALUES, fill_value=None)
    want = f(POINTS)
    np.testing.assert_allclose(calque.jit(lambda f, x: f(x))(f, POINTS), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(calque.vmap(f)(POINTS), want, rtol=1e-5, atol=1e-6)
    inner = jnp.array([[0.2, 0.3], [2.5, -0.5]])

    def slope(values, x):
        return RegularGridInterpolator(GRID, values)(x)

    test_util.check_grads(slope, (jnp.asarray(VALUES), inner), order=1, rtol=2e-2, atol=2e-2)


def test_bad_arguments() -> None:
    f = RegularGridInterpolator(GRID, VALUES)
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: RegularGridInterpolator(GRID, VALUES, "cubic"), ValueError, "cubic"),
        (
            lambda: RegularGridInterpolator(GRID, VALUES, bounds_error=True),
            NotImplementedError,
            "fill_value",
        ),
        (lambda: RegularGridInterpolator(GRID * 2, VALUES), ValueError, "4 point arrays"),
        (lambda: RegularGridInterpolator(GRID[::-1], VALUES), ValueError, "points 0"),
        (lambda: RegularGridInterpolator(GRID, VALUES, fill_value=1j), ValueError, "fill_value"),
        (lambda: f(POINTS, "cubic"), ValueError, "cubic"),
        (lambda: f(POINTS[..., :1]), ValueError, "dimension 1"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 5.0, None])
@pytest.mark.parametrize("turned", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_grids_that_fall(method: str, fill: Any, turned: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    grid = tuple(np.array(g)[::d] for g, d in zip(([0.0, 1.0, 2.5, 4.0], [-1.0, 0.0, 3.0]), turned))
    points = np.concatenate(
        [rng.uniform(-2, 5, (40, 2)), [[0, -1], [4, 3], [0.5, 1.5], [1.75, 0], [np.nan, 0]]]
    )
    options: dict[str, Any] = {"method": method, "bounds_error": False, "fill_value": fill}
    for values in (rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 2))):
        want = scipy.interpolate.RegularGridInterpolator(grid, values, **options)(points)
        got = RegularGridInterpolator(grid, values, **options)(points)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
