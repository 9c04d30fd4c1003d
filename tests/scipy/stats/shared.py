"""What the tests of this room share."""

from typing import Any

import numpy as np


def F(*x):
    return np.array(x, np.float32)


def close(got: Any, want: Any, tol: float = 2e-4) -> None:
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=tol, atol=tol)
