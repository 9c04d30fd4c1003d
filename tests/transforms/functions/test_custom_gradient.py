"""Gradients that a function returns itself, and captured values as arguments."""

import numpy as np
import pytest

from calque.transforms.functions.autodiff import grad, vjp
from calque.transforms.functions.custom_gradient import closure_convert, custom_gradient
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(3, dtype=np.float32)


def test_custom_gradient():
    f = custom_gradient(lambda x: (x**2, lambda ct: (ct * x,)))
    close([f(3.0), grad(f)(3.0), grad(jit(f))(3.0), jit(grad(f))(3.0)], [9.0, 3.0, 3.0, 3.0])
    close([vmap(grad(f))(X), grad(lambda x: vmap(f)(x).sum())(X)], [X, X])
    g = custom_gradient(lambda x, y: (x * y, lambda ct: (ct * y, 5 * ct)))
    close(grad(g, argnums=(0, 1))(2.0, 3.0), (3.0, 5.0))


def test_closure_convert():
    converted, consts = closure_convert(lambda x: x * 2, 1.0)
    assert consts == [] and float(converted(3.0)) == 6.0

    def solve(f, x):
        converted, consts = closure_convert(f, x)
        return apply(converted, x, *consts)

    def apply(f, x, *consts):
        g = custom_vjp(lambda x, *cs: f(x, *cs))
        g.defvjp(lambda x, *cs: (f(x, *cs), (x, cs)), lambda r, ct: vjp(f, r[0], *r[1])[1](10 * ct))
        return g(x, *consts)

    close(grad(lambda w: solve(lambda x: x * w, 2.0))(3.0), 20.0)
