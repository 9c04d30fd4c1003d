"""Selection in windows: which element each window selects, and their rules."""

import numpy as np
import pytest

import calque
from calque import lax
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY
from calque.ops import select_windows as S
from calque.ops.indexing import combiner
from tests.ops.helpers import check_batch, check_jvp, check_meaning, check_transpose, run, same
from tests.ops.test_windows import CASES, NO_DILATION, params, v, windows


@pytest.mark.parametrize("name", NO_DILATION)
@pytest.mark.parametrize("select", ["ge", "le"])
def test_selection(name, select):
    x, p = CASES[name]
    y = v(*x.shape, seed=4)
    sizes, cells = windows(x, p)
    gathered, scattered = np.zeros(sizes), np.zeros(x.shape)
    source = v(*sizes, seed=5)
    for i, where in cells.items():
        real = [c for c in where if c is not None]
        if real:
            best = (max if select == "ge" else min)(real, key=lambda c: x[c])
            gathered[i] = y[best]
            scattered[best] += source[i]
    q = {k: p[k] for k in ("window_dimensions", "window_strides", "padding")}
    prim = REGISTRY[select]
    check_meaning(
        S.select_and_gather_add_p,
        lambda y, x: gathered.astype("float32"),
        y.astype("float32"),
        x.astype("float32"),
        select_prim=prim,
        **p,
    )
    check_meaning(
        S.select_and_scatter_add_p,
        lambda s, x: scattered.astype("float32"),
        source.astype("float32"),
        x.astype("float32"),
        rtol=1e-6,
        atol=1e-6,
        select_prim=prim,
        **q,
    )
    check_jvp(S.select_and_gather_add_p, y, x, moved=[0], select_prim=prim, **p)
    check_transpose(S.select_and_gather_add_p, y, x, select_prim=prim, **p)
    check_transpose(S.select_and_scatter_add_p, source, x, select_prim=prim, **q)
    check_batch(
        S.select_and_gather_add_p, y.astype("float32"), x.astype("float32"), select_prim=prim, **p
    )
    check_batch(
        S.select_and_scatter_add_p,
        source.astype("float32"),
        x.astype("float32"),
        select_prim=prim,
        **q,
    )
    general = {
        "select_jaxpr": combiner(select, np.dtype("float32")),
        "select_consts": (),
        "scatter_jaxpr": combiner("add", np.dtype("float32")),
        "scatter_consts": (),
    }
    args = x.astype("float32"), source.astype("float32"), np.float32(0.5)
    check_meaning(
        S.select_and_scatter_p,
        lambda *a: (scattered + 0.5).astype("float32"),
        *args,
        rtol=1e-5,
        atol=1e-5,
        **general,
        **q,
    )
    check_batch(
        S.select_and_scatter_p,
        *args,
        only=[(0, 0, None), (None, 0, None)],
        rtol=1e-5,
        atol=1e-5,
        **general,
        **q,
    )


def test_selection_of_the_lowest_value():
    p = params(1, (2,), padding=((1, 0),))
    x = np.array([-np.inf, 1, np.nan], "float32")
    (got,) = run(
        lambda t, x: S.select_and_gather_add_p.bind(t, x, select_prim=REGISTRY["ge"], **p),
        np.array([1, 2, 3], "float32"),
        x,
    )
    same(got, np.array([1, 2, 3], "float32"))


def test_the_first_of_equals_is_selected_and_nan_before_all():
    p = params(1, (3,), window_strides=(3,))
    x = np.array([2, 5, 5, 1, np.nan, np.nan, -1, -1, -2], "float32")
    marks = np.arange(9, dtype="float32")
    for select, want in (("ge", [1, 4, 6]), ("le", [0, 4, 8])):
        got = S.select_and_gather_add_p.bind(marks, x, select_prim=REGISTRY[select], **p)
        assert got.tolist() == want
    with pytest.raises(NotImplementedError, match="windows select by ge or le, not by gt"):
        S.select_and_gather_add_p.meaning(marks, x, select_prim=REGISTRY["gt"], **p)


@pytest.mark.parametrize("fold, init", [(lax.max, -np.inf), (lax.min, np.inf)])
def test_they_are_the_derivatives_of_extremes(fold, init):
    x = v(6, 5).astype("float32")

    def f(x):
        return lax.reduce_window(x, init, fold, (2, 3), (2, 1), "SAME")

    t = v(6, 5, seed=2).astype("float32")
    eps = 1e-3
    want = (np.asarray(f(x + eps * t)) - np.asarray(f(x - eps * t))) / (2 * eps)
    np.testing.assert_allclose(calque.jvp(f, (x,), (t,))[1], want, atol=2e-2)
    back = calque.make_jaxpr(calque.grad(lambda x: f(x).sum()))(x)
    assert [e.primitive.name for e in back.eqns].count("select_and_scatter_add") == 1


@pytest.mark.parametrize(("fold", "init"), [(lax.max, -np.inf), (lax.min, np.inf)])
def test_gradients_over_a_dilated_operand(fold, init):
    x, t = v(4, 3).astype("float32"), v(4, 3, seed=2).astype("float32")

    def f(x):
        pads = ((0, 1), (1, 0))
        return lax.reduce_window(x, init, fold, (2, 3), (1, 2), pads, base_dilation=(2, 3))

    ct = np.ones(f(x).shape, "f")
    along = float((calque.jvp(f, (x,), (t,))[1] * ct).sum())
    (back,) = calque.vjp(f, x)[1](ct)
    np.testing.assert_allclose((np.asarray(back) * t).sum(), along, rtol=1e-5)
    assert np.count_nonzero(back) > 3


def test_gradients_of_dilated_windows_are_refused():
    x = v(6).astype("float32")
    p = params(1, (2,), window_dilation=(2,))

    def f(t):
        return S.select_and_gather_add_p.bind(t, x, select_prim=REGISTRY["ge"], **p)

    with pytest.raises(NotImplementedError, match="dilated"):
        calque.grad(lambda t: f(t).sum())(x)


def test_shapes_that_do_not_fit():
    a, b = ShapedArray((4,), np.float32), ShapedArray((3,), np.float32)
    p = params(1, (2,))
    q = {k: p[k] for k in ("window_dimensions", "window_strides", "padding")}
    ge = REGISTRY["ge"]
    with pytest.raises(TypeError, match="must have one shape"):
        S.select_and_gather_add_p.shape(b, a, select_prim=ge, **p)
    with pytest.raises(TypeError, match=r"shape of the windows, \(3,\), over f32\[4\]"):
        S.select_and_scatter_add_p.shape(a, a, select_prim=ge, **q)
    jaxprs = {k: None for k in ("select_jaxpr", "select_consts", "scatter_jaxpr", "scatter_consts")}
    with pytest.raises(TypeError, match="must be a scalar of the same dtype"):
        S.select_and_scatter_p.shape(a, b, ShapedArray((), np.int32), **jaxprs, **q)
    with pytest.raises(NotImplementedError, match="batched over its initial value"):
        S.select_and_scatter_p.batch((None, None, None), (0, 0, 0))
