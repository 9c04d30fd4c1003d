"""The nearest of some codes, held against SciPy."""

import numpy as np
import pytest
from scipy.cluster import vq as theirs

import calque
from calque.scipy.cluster import vq

RNG = np.random.default_rng(0)
X, CODES = RNG.normal(size=(50, 3)).astype(np.float32), RNG.normal(size=(7, 3)).astype(np.float32)


def test_as_in_scipy():
    codes, distances = vq.vq(X, CODES)
    want = theirs.vq(X, CODES)
    assert codes.tolist() == want[0].tolist()
    np.testing.assert_allclose(distances, want[1], rtol=1e-4)
    jitted = calque.jit(vq.vq)(X, CODES)
    assert jitted[0].tolist() == codes.tolist()


def test_a_code_is_its_own_nearest():
    codes, distances = vq.vq(CODES, CODES)
    assert codes.tolist() == list(range(7)) and not np.asarray(distances).any()


@pytest.mark.parametrize("a, b", [(X, CODES[:, :2]), (X[0], CODES), (X[None], CODES[None])])
def test_shapes_that_do_not_fit(a, b):
    with pytest.raises((ValueError, TypeError)):
        vq.vq(a, b)
