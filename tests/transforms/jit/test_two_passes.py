import numpy as np
import pytest

import calque
import calque.numpy as jnp

X, W = np.arange(3, dtype=np.float32), np.array([2, 3, 4], np.float32)


@pytest.mark.parametrize("jitted", [True, False])
def test_passes_apart(jitted):
    fwd, bwd = calque.fwd_and_bwd(lambda x, w: (x * w).sum(), argnums=(0, 1), jitted=jitted)
    out, residuals = fwd(X, W)
    assert float(out) == 11.0
    for ct in (1.0, 2.0):
        for g, want in zip(bwd(residuals, ct), (ct * W, ct * X)):
            np.testing.assert_array_equal(g, want)


def test_one_argument_and_an_auxiliary_output():
    fwd, bwd = calque.fwd_and_bwd(lambda x, w: ((x * w).sum(), {"w": w}), argnums=-1, has_aux=True)
    out, residuals, aux = fwd(X, W)
    assert float(out) == 11.0 and aux["w"].tolist() == W.tolist()
    np.testing.assert_array_equal(bwd(residuals, 1.0), X)


def test_the_passes_are_compiled_once():
    count = []
    fwd, bwd = calque.fwd_and_bwd(lambda x: count.append(1) or jnp.sin(x).sum(), argnums=0)
    for k in range(3):
        bwd(fwd(X + k)[1], 1.0)
    assert len(count) == 1


def test_refuses():
    with pytest.raises(ValueError, match="argnums has 1, but f is called with 1 positional"):

        def f(x):
            return x

        calque.fwd_and_bwd(f, argnums=1)[0](1.0)
    with pytest.raises(TypeError, match="Expected a callable"):
        calque.fwd_and_bwd(3, argnums=0)
