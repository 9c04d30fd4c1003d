import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, linear_transpose, vjp
from calque.transforms.functions.custom_gradient import closure_convert, custom_gradient
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.functions.linear_calls import custom_transpose, linear_call
from calque.transforms.functions.shapes import ShapeDtypeStruct
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


def scaled(r, x):
    return linear_call(lambda r, x: r * x, lambda r, ct: 3 * r * ct, r, x)


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


def test_linear_call_checks_the_transpose():
    with pytest.raises(TypeError, match="transpose output"):
        grad(lambda x: linear_call(lambda r, x: x, lambda r, ct: jnp.ones(3), (), x))(1.0)


def test_linear_call_mapped_in_its_residuals_alone():
    def double(r, x):
        return linear_call(lambda r, x: r * x, lambda r, ct: 2 * r * ct, r, x)

    rs = np.array([1.0, 2.0, 3.0], np.float32)

    def loss(x):
        return vmap(lambda r: double(r, x))(rs).sum()

    assert float(loss(3.0)) == 18.0 and float(grad(loss)(3.0)) == 12.0


def test_custom_transpose():
    scaled = custom_transpose(lambda r, x: {"y": r * x})
    out_types = {"y": ShapeDtypeStruct((), np.float32)}
    with pytest.raises(AttributeError, match="No transpose rule defined"):
        scaled(out_types, 2.0, 3.0)
    scaled.def_transpose(lambda r, ct: 10 * r * ct["y"])

    def f(x):
        return scaled(out_types, 2.0, x)["y"]

    assert float(f(3.0)) == 6.0 and float(grad(f)(3.0)) == 20.0 and float(jit(grad(f))(3.0)) == 20.0
    assert [float(v) for v in vmap(grad(f))(np.ones(2, np.float32))] == [20.0, 20.0]
    with pytest.raises(TypeError, match=r"but its out_types say \['float32\[2\]'\]"):
        scaled({"y": ShapeDtypeStruct((2,), np.float32)}, 2.0, 3.0)
