"""What the rules of scan share."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.loops import scan
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.scan import bind_counted
from calque.transforms.primitives.scan_common import carried_too, thirds, with_count
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (5,)])
def test_rounds_counted_while_running(reverse, shape):
    """As a scan of the first rows, in every derivative."""
    rng = np.random.default_rng(0)
    w, c, xs = (
        np.float32(0.5),
        np.ones(shape, np.float32),
        rng.standard_normal((9, *shape)).astype(np.float32),
    )

    def step(w, c, x):
        return (jnp.sin(c) * w + x, c * 2)

    body = make_jaxpr(step)(w, c, xs[0])

    def counted(n, w, c, xs):
        out, ys = bind_counted(n, [w], [c], [xs], jaxpr=body, length=9, reverse=reverse)
        return out, ys[:4]

    def plain(w, c, xs):
        return scan(lambda c, x: step(w, c, x), c, xs, reverse=reverse)

    close(jit(counted)(4, w, c, xs), plain(w, c, xs[:4]), 1e-5)
    close(counted(0, w, c, xs)[0], c)

    def total(f):
        return lambda *a: sum(v.sum() for v in f(*a))

    for g in (
        lambda f: grad(f, (0, 1)),
        lambda f: grad(lambda w, c, xs: grad(f)(w, c, xs) ** 2, (0, 1)),
    ):
        got = jit(g(total(lambda w, c, xs: counted(4, w, c, xs))))(w, c, xs)
        close(got, g(total(plain))(w, c, xs[:4]), 1e-4)
    back = grad(total(lambda w, c, xs: counted(4, w, c, xs)), 2)(w, c, xs)
    close(back[:4], grad(total(plain), 2)(w, c, xs[:4]), 1e-5)
    counts = np.array([4, 9, 1], np.int32)
    lanes = vmap(lambda n, c: counted(n, w, c, xs)[0], (0, None))(counts, c)
    close(lanes, np.stack([plain(w, c, xs[:n])[0] for n in counts]), 1e-5)


def test_properties_spread_through_carries():
    # carry 0 is made of carry 1, carry 1 of carry 2, carry 2 of the constant
    def outs_of(mask):
        const, a, b, c, x = mask
        return (b, c, const, x)

    def spread(*true):
        return carried_too(tuple(i in true for i in range(5)), 1, 3, outs_of)

    assert spread() == (False,) * 5
    assert spread(0) == (True, True, True, True, False)
    assert spread(2) == (False, True, True, False, False)
    assert spread(4) == (False, False, False, False, True)


def test_places_by_part():
    assert thirds([0, 1, 3, 4, 7], 2, 3) == ([0, 1], [3, 4], [7])
    assert thirds([], 2, 3) == ([], [], [])


def test_counted_bodies_read_no_count():
    body = make_jaxpr(lambda c, x: (c + x, c))(1.0, 2.0)
    counted = with_count(body)
    assert with_count(body) is counted and counted.in_avals[0].dtype == np.int32
    assert counted.jaxpr.invars[1:] == body.jaxpr.invars and counted.eqns == body.eqns


def test_types_of_results():
    closed = make_jaxpr(lambda c, xs: scan(lambda c, x: (c, x[0]), c, xs))(
        np.ones(2, "f"), np.ones((5, 3), "i")
    )
    assert [a.str_short() for a in closed.out_avals] == ["f32[2]", "i32[5]"]
    assert (
        ShapedArray((0, 3), np.float32)
        in make_jaxpr(lambda: scan(lambda c, _: (c, jnp.ones(3)), 0.0, None, length=0))().out_avals
    )
