"""What the tests of this room share."""

from typing import Any

import numpy as np

import calque.numpy as jnp

RNG = np.random.default_rng(0)


A = RNG.normal(size=(4, 4)).astype(np.float32)


DATA = {
    "A": A,
    "P": A @ A.T + np.eye(4, dtype=np.float32),
    "C": (A + 1j * RNG.normal(size=(4, 4))).astype(np.complex64),
    "B": RNG.normal(size=(2, 3, 3)).astype(np.float32),
    "I": np.array([1, 2, 3, 4]),
    "U": np.array([1, 2, 5], np.uint8),
    "H": np.array([1, 2, 4], np.float16),
    "T": np.triu(A @ A.T + np.eye(4, dtype=np.float32)),
    "Z": np.zeros((0, 0), np.float32),
    "N": np.zeros(0, np.float32),
    "L": np.array([True, False, True]),
}


def close(got: Any, want: Any, tol: float = 2e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tol, atol=tol)


def adjoint(x: Any) -> Any:
    return jnp.conj(jnp.matrix_transpose(x))
