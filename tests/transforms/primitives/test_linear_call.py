"""The primitive linear_call: its rules."""

import numpy as np
import pytest

from calque.transforms.functions.autodiff import grad, linear_transpose
from calque.transforms.functions.linear_calls import linear_call
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.functions.shared import scaled
from tests.transforms.programs import close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(3, dtype=np.float32)


def test_linear_call():
    close(
        [scaled(2.0, 5.0), grad(scaled, argnums=1)(2.0, 5.0), grad(scaled)(2.0, 5.0)],
        [10.0, 6.0, 5.0],
    )
    close(linear_transpose(lambda x: scaled(2.0, x), 1.0)(1.0), (6.0,))
    close(
        linear_transpose(lambda y: linear_transpose(lambda x: scaled(2.0, x), 1.0)(y)[0], 1.0)(1.0),
        (2.0,),
    )
    close(
        [vmap(scaled, (None, 0))(2.0, X), vmap(grad(scaled, argnums=1), (0, None))(X, 1.0)],
        [2 * X, 3 * X],
    )
    close(jit(grad(lambda x: jit(scaled)(2.0, x)))(1.0), 6.0)
    assert "linear_call[" in str(verified(scaled, 1.0, 2.0))


def test_linear_call_mapped_in_its_residuals_alone():
    def double(r, x):
        return linear_call(lambda r, x: r * x, lambda r, ct: 2 * r * ct, r, x)

    rs = np.array([1.0, 2.0, 3.0], np.float32)

    def loss(x):
        return vmap(lambda r: double(r, x))(rs).sum()

    assert float(loss(3.0)) == 18.0 and float(grad(loss)(3.0)) == 12.0
