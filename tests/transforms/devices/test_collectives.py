import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.devices import collective_functions as c
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.loops import scan
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.arange(4, dtype=np.float32)
M = np.arange(16, dtype=np.float32).reshape(4, 4)


def over(f, x=X, **kw):
    return vmap(f, axis_name="i", **kw)(x)


def test_all_to_all_of_larger_values():
    x = np.arange(4 * 8 * 3, dtype=np.float32).reshape(4, 8, 3)
    got = over(lambda v: c.all_to_all(v, "i", 0, 1, tiled=True), x)
    want = np.stack(
        [np.concatenate([x[s, 2 * r : 2 * r + 2] for s in range(4)], axis=1) for r in range(4)]
    )
    close(got, want)
    y = x[:, :4]
    got = over(lambda v: c.all_to_all(v, "i", 0, 1), y)
    close(got, np.stack([np.stack([y[s, r] for s in range(4)], axis=1) for r in range(4)]))


def test_inside_calls_and_loops():
    close(over(jit(lambda x: c.psum(x * x, "i"))), np.full(4, 14, "f"))
    close(
        over(lambda x: scan(lambda v, _: (c.psum(v, "i"), None), x, None, length=2)[0]),
        np.full(4, 24, "f"),
    )
    close(
        jit(vmap(lambda x: c.psum(jit(jnp.sin)(x), "i"), axis_name="i"))(X),
        np.full(4, np.sin(X).sum(), "f"),
        1e-6,
    )


def test_derivatives():
    check(
        lambda x: vmap(lambda v: jnp.sin(v) * c.psum(v * v, "i"), axis_name="i")(x),
        np.array([0.1, 0.2, 0.3]),
    )
    check(lambda x: vmap(lambda v: v / c.pmax(v, "i"), axis_name="i")(x), np.array([0.1, 0.2, 0.3]))
    check(
        lambda x: vmap(lambda v: c.all_gather(v, "i").prod() * v, axis_name="i")(x),
        np.array([0.1, 0.2, 0.3]),
    )
    check(
        lambda x: vmap(lambda v: c.psum_scatter(v * v, "i"), axis_name="i")(x),
        np.arange(9.0).reshape(3, 3),
    )
    check(
        lambda x: vmap(lambda v: c.ppermute(v * v, "i", [(0, 2), (1, 0)]), axis_name="i")(x),
        np.arange(3.0),
    )
    close(over(grad(lambda x: c.psum(x, "i") * x)), np.full(4, 12, "f"))


def test_recorded_form():
    text = str(make_jaxpr(lambda x: c.pmean(x, "i"), axis_env=[("i", 4)])(X))
    assert "psum[axes=('i',) axis_index_groups=None] a" in text and "div b 4.0:f32[]" in text
    assert "axis_index[axis_name=i]" in str(
        make_jaxpr(lambda: c.axis_index("i"), axis_env=[("i", 4)])()
    )


def test_two_axes():
    def f(x):
        return vmap(lambda y: c.psum(y * x, ("i", "j")), axis_name="j")(X)

    close(over(f), np.full((4, 4), 36, "f"))

    def g(row):
        return vmap(lambda y: c.all_gather(y, "i"), axis_name="j")(row)

    close(over(g, M), np.tile(M.T, (4, 1, 1)))
