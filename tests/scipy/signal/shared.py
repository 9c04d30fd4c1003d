"""What the tests of this room share."""

from typing import Any

import numpy as np

RNG = np.random.default_rng(0)


WIDE, NARROW = (
    RNG.normal(size=(6, 5)).astype(np.float32),
    RNG.normal(size=(3, 4)).astype(np.float32),
)


def close(got: Any, want: Any, tol: float = 1e-4) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            close(g, w, tol)
        return
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)


SIGNAL, OTHER = (
    RNG.normal(size=(2, 100)).astype(np.float32),
    RNG.normal(size=(2, 100)).astype(np.float32),
)
