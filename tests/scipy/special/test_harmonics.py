"""Bessel functions by recurrence, spherical harmonics."""

import numpy as np
import pytest
import scipy.special

import calque.numpy as jnp
from calque.scipy import special
from tests.ops.helpers import x64
from tests.scipy.special.shared import close


def test_bessel_functions() -> None:
    z = np.linspace(-15, 15, 41)
    with x64():
        close(
            special.bessel_jn(z, v=4), np.stack([scipy.special.jn(k, z) for k in range(5)]), 1e-12
        )
    close(
        special.bessel_jn(jnp.asarray(z, "float32"), v=2, n_iter=40),
        np.stack([scipy.special.jn(k, z) for k in range(3)]),
        1e-5,
    )
    for bad in ({"v": -1}, {"v": 3, "n_iter": 2}):
        with pytest.raises(ValueError, match="order must be"):
            special.bessel_jn(1.0, **bad)
