import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.linear_calls import custom_transpose, linear_call
from calque.transforms.functions.shapes import ShapeDtypeStruct
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_linear_call_checks_the_transpose():
    with pytest.raises(TypeError, match="transpose output"):
        grad(lambda x: linear_call(lambda r, x: x, lambda r, ct: jnp.ones(3), (), x))(1.0)


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
