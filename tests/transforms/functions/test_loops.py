import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.transforms.functions.loops import fori_loop, map_, scan, while_loop
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
F = np.float32


def test_weak_initial_values_are_promoted():
    c, _ = scan(lambda c, x: (c + x, None), 0, np.arange(3, dtype=F))
    assert c.dtype == F and not c.aval.weak_type
    assert float(while_loop(lambda c: c < 3, lambda c: c + 1.5, 1)) == 4.0


def test_a_promoted_carry_is_strong():
    for out in (
        scan(lambda c, _: (c + 1.0, None), 0, None, length=3)[0],
        fori_loop(0, 3, lambda i, c: c + 1.0, 0),
        while_loop(lambda c: c < 3, lambda c: c + 1.0, 0),
    ):
        assert (out.dtype, out.aval.weak_type, float(out)) == (np.float32, False, 3.0)
    assert fori_loop(0, 3, lambda i, c: c + i, 0).aval.weak_type


def test_scan_of_trees_and_lengths():
    out = scan(
        lambda c, x: ({"s": c["s"] + x[0] * x[1]}, {"y": x[0]}),
        {"s": 0.0},
        (np.arange(3, dtype=F), np.ones(3, F)),
    )
    close(out, ({"s": F(3)}, {"y": F([0, 1, 2])}))
    assert int(scan(lambda c, _: (c + 1, None), 0, None, length=5)[0]) == 5
    close(scan(lambda c, x: (c, x), 0, np.arange(3), reverse=True, unroll=2)[1], np.arange(3))


def test_fori_loop_of_fixed_bounds_is_a_scan():
    closed = make_jaxpr(lambda x: fori_loop(2, 5, lambda i, c: c * i, x))(1.0)
    assert (
        primitives_of(closed) == ["scan"]
        and float(fori_loop(2, 5, lambda i, c: c * i, 1.0)) == 24.0
    )
    assert int(fori_loop(lower=2, upper=5, body_fun=lambda i, s: s + i, init_val=0)) == 9
    assert int(fori_loop(5, 2, lambda i, s: s + i, 7)) == 7
    assert int(fori_loop(np.int8(0), np.int8(3), lambda i, s: s + 1, 0)) == 3


def test_map():
    xs = np.arange(7, dtype=F)
    for size in (None, 1, 3, 7, 10):
        close(map_(lambda x: (x * x, {"n": x + 1}), xs, batch_size=size), (xs * xs, {"n": xs + 1}))
    check(lambda x: map_(lambda v: jnp.sin(v), x, batch_size=2), np.array([0.1, 0.2, 0.3]))


def test_without_jit():
    with config.override("disable_jit", True):
        seen = []
        close(
            scan(lambda c, x: (seen.append(float(c)) or c + x, c * x), 0.0, np.arange(3, dtype=F)),
            (F(3), F([0, 0, 2])),
        )
        assert seen == [0.0, 0.0, 1.0]
        assert int(while_loop(lambda c: c < 5, lambda c: c + 1, 0)) == 5
        assert int(fori_loop(0, 3, lambda i, c: c + i, 0)) == 3


def body_dtype(c, x):
    return c * 1.5, None


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda: scan(body_dtype, jnp.int32(0), None, length=2),
            TypeError,
            r"input carry c has type int32\[\].*float32\[\], so the dtypes",
        ),
        (
            lambda: scan(
                lambda c, x: ({"a": jnp.ones(2)}, None), {"a": jnp.ones(3)}, None, length=1
            ),
            TypeError,
            r"c\['a'\] has type float32\[3\]",
        ),
        (
            lambda: scan(lambda c, x: ((c, c), None), 0, None, length=2),
            TypeError,
            "same pytree structure",
        ),
        (lambda: scan(lambda c, x: c, 0, None, length=2), TypeError, "must be a pair"),
        (lambda: scan(lambda c, x: (c, None), 0, None), ValueError, "`length` not provided"),
        (
            lambda: scan(lambda c, x: (c, None), 0, (jnp.ones(3), jnp.ones(4))),
            ValueError,
            "leading axis sizes: 3, 4",
        ),
        (
            lambda: scan(lambda c, x: (c, None), 0, jnp.ones(3), length=4),
            ValueError,
            r"disagrees with leading axis sizes \[3\]",
        ),
        (lambda: scan(lambda c, x: (c, None), 0, {"w": 1.0}), ValueError, r"xs\['w'\] is a scalar"),
        (
            lambda: while_loop(lambda c: c, lambda c: c, 1),
            TypeError,
            "must return a boolean scalar",
        ),
        (lambda: while_loop(lambda c: (c, c), lambda c: c, 1), TypeError, "got pytree"),
        (
            lambda: while_loop(lambda c: c["a"] < 3, lambda c: {"a": jnp.ones(3)}, {"a": 1.0}),
            TypeError,
            r"c\['a'\].*shapes do not match",
        ),
        (
            lambda: fori_loop(0, 3.0, lambda i, x: x, 0),
            TypeError,
            "equal types, got int32 and float32",
        ),
        (
            lambda: fori_loop(0, 3, lambda i, x: x * 1.5, jnp.int32(1)),
            TypeError,
            r"loop_carry\[1\] has type int32",
        ),
        (
            lambda: map_(lambda x: x, jnp.ones(3), batch_size=-1),
            ValueError,
            "batch_size must not be negative",
        ),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match="(?s)" + text):
        call()


def test_errors_name_the_function_of_the_user():
    def widen(i, v):
        return v[None]

    for upper in (3, np.int32(3)):
        with pytest.raises(TypeError, match="widen"):
            fori_loop(0, upper, widen, np.ones(3, np.float32))
    with pytest.raises(TypeError, match="widen"):
        jit(lambda n: fori_loop(0, n, widen, np.ones(3, np.float32)))(3)


def test_what_a_loop_only_hands_on_does_not_go_through_it():
    kept_as_it_is = jnp.float32(5.0)

    def step(carry, x):
        fixed, moving = carry
        return (fixed, moving + x), (x, moving)

    def f(fixed, xs):
        return scan(step, (fixed, 0.0), xs)

    (fixed, _), (handed, _) = f(kept_as_it_is, jnp.arange(3.0))
    assert fixed is kept_as_it_is
    jaxpr = calque.make_jaxpr(f)(1.0, jnp.arange(3.0)).jaxpr
    assert jaxpr.outvars[0] is jaxpr.invars[0] and jaxpr.outvars[2] is jaxpr.invars[1]
    assert len(jaxpr.eqns[-1].params["jaxpr"].jaxpr.outvars) <= 3
    lanes = calque.vmap(lambda x: f(1.0, x)[0][0], out_axes=None)(jnp.ones((4, 3)))
    assert lanes.shape == ()
    kept = while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (kept_as_it_is, 0))
    assert kept[0] is kept_as_it_is
    same = calque.vmap(lambda x, y: calque.lax.cond(x < 0, lambda: y, lambda: y), (0, None), None)
    assert same(jnp.arange(3.0), 2.0).shape == ()


def test_bounds_that_are_no_integers():
    total = fori_loop(0.5, 3.0, lambda i, c: c + i, 0.0)
    assert float(total) == 0.5 + 1.5 + 2.5
    assert float(calque.grad(lambda x: fori_loop(x, x + 2.0, lambda i, c: 2 * c, x))(1.0)) == 4.0


@pytest.mark.parametrize("wrap", [lambda f: f, calque.jit, calque.checkpoint])
def test_programs_that_speak_of_an_axis_belong_to_its_map(wrap):
    def up_to_index(x):
        return while_loop(lambda x: x < calque.lax.axis_index("i"), lambda x: x + 2, x)

    f = wrap(up_to_index)
    lanes = jnp.zeros(4, jnp.int32)
    expected = [0, 2, 2, 4]
    assert calque.vmap(f, axis_name="i")(lanes).tolist() == expected
    assert calque.vmap(lambda _: f(0), axis_name="i")(lanes).tolist() == expected


@pytest.mark.parametrize(
    ("f", "init", "text"),
    [
        (
            lambda c, x: ((0, 0, 0), x),
            (1, 2),
            "The input carry c is a tuple of length 2 but .* 3, so",
        ),
        (lambda c, x: ([c[0]] * 2, x), (1, 2), "is a <class 'tuple'> but .* is a <class 'list'>"),
        (lambda c, x: ({"a": 0, "b": 0}, x), {"a": 0}, "with 1 child but .* with 2 children"),
        (lambda c, x: (({"T": 0},), x), ({"t": 0},), r"c\[0\] is .* metadata \('t',\) but .*'T'"),
        (lambda c, x: ((0, (1, 2)), x), (0, 1), r"component c\[1\] is a pytree leaf but .* is a <"),
    ],
)
def test_how_carries_differ_is_said(f, init, text):
    with pytest.raises(TypeError, match=text):
        scan(f, init, jnp.arange(3.0))
