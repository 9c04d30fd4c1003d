"""What the tests of this room share."""

from typing import Any

import numpy as np


def close(got: Any, want: Any, tol: float) -> None:
    for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True):
        np.testing.assert_allclose(np.asarray(g).astype(w.dtype), w, rtol=tol, atol=tol)
