"""map_coordinates against SciPy and JAX."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import calque
import calque.numpy as jnp
from calque import test_util
from calque.scipy import ndimage
from tests.peers import compare, jax

RNG = np.random.default_rng(0)
PLANE = RNG.normal(size=(5, 7)).astype(np.float32)
PLACES = [RNG.uniform(-9, 12, (4, 6)).astype(np.float32) for _ in range(2)]
MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_as_in_scipy(mode: str, order: int) -> None:
    got = ndimage.map_coordinates(PLANE, PLACES, order, mode, 0.5)
    places = np.round(PLACES) if order == 0 else PLACES
    want = scipy.ndimage.map_coordinates(PLANE, places, order=order, mode=MODES[mode], cval=0.5)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


@pytest.mark.peer
@pytest.mark.parametrize("mode", MODES)
def test_as_in_jax(mode: str) -> None:
    peer = jax().scipy.ndimage.map_coordinates
    halves = [np.arange(-6, 6, 0.5, dtype=np.float32)] * 2
    cases: list[tuple[Any, Any, int]] = [
        (PLANE, [p.astype(np.int32) for p in PLACES], 1),
        (PLANE, halves, 0),
        ((PLANE * 9).astype(np.int32), PLACES, 1),
        ((PLANE * 9).astype(np.int32), halves, 1),
        (PLANE.astype(np.float16), PLACES, 1),
        (PLANE * 1j, PLACES, 1),
        (PLANE[:, :1], PLACES, 1),
    ]
    for image, places, order in cases:
        want = peer(image, places, order, mode=mode, cval=2)
        compare(ndimage.map_coordinates(image, places, order, mode=mode, cval=2), want, 1e-5)
    cube = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    compare(
        ndimage.map_coordinates(cube, [*PLACES, PLACES[0]], 1, mode),
        peer(cube, [*PLACES, PLACES[0]], 1, mode),
        1e-5,
    )


def test_under_transformations() -> None:
    def f(image, places):
        return ndimage.map_coordinates(image, places, 1, "mirror")

    want = f(PLANE, PLACES)
    np.testing.assert_allclose(calque.jit(f)(PLANE, PLACES), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(calque.vmap(f, (None, 0))(PLANE, PLACES), want, rtol=1e-5, atol=1e-6)
    test_util.check_grads(
        f, (jnp.asarray(PLANE), [jnp.asarray(p) for p in PLACES]), order=1, rtol=2e-2, atol=2e-2
    )


def test_bad_arguments() -> None:
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: ndimage.map_coordinates(PLANE, PLACES[:1], 1), ValueError, "1 != 2"),
        (lambda: ndimage.map_coordinates(PLANE, PLACES, 2), NotImplementedError, "order"),
        (
            lambda: ndimage.map_coordinates(PLANE, PLACES, 1, "grid-wrap"),
            NotImplementedError,
            "grid-wrap",
        ),
        (lambda: ndimage.map_coordinates([[1.0]], PLACES, 1), TypeError, "map_coordinates"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
