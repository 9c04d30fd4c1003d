"""calque.image against JAX, and against what it means."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import image, test_util
from tests.peers import compare, jax

RNG = np.random.default_rng(0)
PLANE = RNG.normal(size=(7, 10)).astype(np.float32)
METHODS = ["linear", "lanczos3", "lanczos5", "cubic", "cubic-pytorch", "area"]


@pytest.mark.peer
@pytest.mark.parametrize("method", [*METHODS, "nearest"])
@pytest.mark.parametrize("antialias", [True, False])
def test_resize_as_in_jax(method: str, antialias: bool) -> None:
    peer = jax().image
    whole, half = (PLANE * 9).astype(np.int32), PLANE.astype(np.float16)
    for x, shape in ((PLANE, (14, 5)), (PLANE, (7, 10)), (whole, (7, 23)), (half, (3, 10))):
        want = peer.resize(x, shape, method, antialias)
        compare(image.resize(x, shape, method, antialias), want, 2e-5)


@pytest.mark.peer
@pytest.mark.parametrize("method", METHODS)
def test_scale_and_translate_as_in_jax(method: str) -> None:
    peer = jax().image
    scale, move = np.array([1.7, 0.4], np.float32), np.array([-2.0, 1.5], np.float32)
    for antialias in (True, False):
        for dims, n in (((0, 1), 2), ((-1,), 1), ((), 0)):
            args = (
                (8, 12) if n == 2 else (7, 12) if n else (7, 10),
                dims,
                scale[:n],
                move[:n],
                method,
                antialias,
            )
            compare(
                image.scale_and_translate(PLANE, *args),
                peer.scale_and_translate(PLANE, *args),
                2e-5,
            )


def test_meaning() -> None:
    x = jnp.arange(12.0).reshape(3, 4)
    assert image.resize(x, (6, 4), "nearest").tolist() == jnp.repeat(x, 2, axis=0).tolist()
    np.testing.assert_allclose(
        image.resize(x, (1, 2), "area"), x.reshape(1, 3, 2, 2).mean((1, 3)), rtol=1e-5
    )
    for method in METHODS:
        np.testing.assert_allclose(image.resize(jnp.ones((5, 6)), (9, 2), method), 1, rtol=1e-5)
    moved = image.scale_and_translate(
        x, (3, 4), (0, 1), jnp.ones(2), jnp.array([1.0, 0.0]), "linear"
    )
    np.testing.assert_allclose(moved, jnp.roll(x, 1, axis=0).at[0].set(0), atol=1e-5)


def test_under_transformations() -> None:
    for method in METHODS:

        def f(x, method=method):
            return image.resize(x, (4, 12), method)

        np.testing.assert_allclose(calque.jit(f)(PLANE), f(PLANE), rtol=1e-5, atol=1e-5)
        test_util.check_grads(f, (jnp.asarray(PLANE),), order=1, rtol=2e-2, atol=2e-2)

    def rows(x):
        return image.resize(x, (5,), "cubic")

    np.testing.assert_allclose(
        calque.vmap(rows)(PLANE), image.resize(PLANE, (7, 5), "cubic"), rtol=1e-4, atol=1e-5
    )

    def place(s, t):
        return image.scale_and_translate(PLANE, (7, 10), (0, 1), s, t, "cubic", antialias=False)

    at = (jnp.array([1.13, 0.87]), jnp.array([0.31, 0.42]))
    test_util.check_grads(place, at, order=1, modes=["fwd", "rev"], rtol=5e-2, atol=5e-2, eps=1e-3)


def test_bad_arguments() -> None:
    one = jnp.ones(1)
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: image.resize(PLANE, (3,), "linear"), ValueError, "length"),
        (lambda: image.resize(PLANE, (3, -1), "linear"), ValueError, "negative"),
        (lambda: image.resize(PLANE, (3, 3), "box"), ValueError, "box"),
        (lambda: image.resize(PLANE, (3, 3), 1), TypeError, "ResizeMethod"),
        (lambda: image.resize([[1.0]], (3, 3), "linear"), TypeError, "resize"),
        (
            lambda: image.scale_and_translate(PLANE, (3, 3), (0,), one, one, "nearest"),
            ValueError,
            "nearest",
        ),
        (
            lambda: image.scale_and_translate(PLANE, (3, 3), (2,), one, one, "linear"),
            ValueError,
            "spatial dimension",
        ),
        (
            lambda: image.scale_and_translate(PLANE, (3, 3), (0, 1), one, one, "linear"),
            ValueError,
            "scale",
        ),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
