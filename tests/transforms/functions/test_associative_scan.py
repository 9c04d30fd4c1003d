"""associative_scan."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.associative_scan import associative_scan
from tests.transforms.programs import check, close, primitives_of, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

F = np.float32


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 13])
def test_associative_scan(n):
    x = np.arange(1, n + 1, dtype=F)
    close(associative_scan(jnp.add, x), np.cumsum(x))
    close(associative_scan(jnp.add, x, reverse=True), np.cumsum(x[::-1])[::-1])
    m = np.arange(2 * n, dtype=F).reshape(2, n)
    close(
        associative_scan(lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (m, m), axis=1),
        (np.cumsum(m, 1), m),
    )


def test_associative_scan_of_what_does_not_commute():
    ms = np.random.default_rng(0).normal(size=(6, 2, 2)).astype(F)
    want = [ms[0]]
    for m in ms[1:]:
        want.append(want[-1] @ m)
    close(associative_scan(jnp.matmul, ms), np.stack(want), 1e-4)
