import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, jvp, linear_transpose
from calque.transforms.functions.branches import cond
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.loops import scan, while_loop
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8])


def sine():
    """sin, with its own rule."""
    f = custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda primals, tangents: (f(primals[0]), jnp.cos(primals[0]) * tangents[0]))
    return f


def doubled():
    """sin, whose rule says twice its derivative."""
    f = custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda primals, tangents: (f(primals[0]), 2 * jnp.cos(primals[0]) * tangents[0]))
    return f


def test_a_right_rule_changes_nothing():
    f = sine()
    check(f, X)
    check(lambda x: f(f(x) * x), X)


def test_the_rule_is_used_everywhere():
    f, x = doubled(), np.float32(0.5)
    want = np.float32(2 * np.cos(0.5))
    close(
        [grad(f)(x), grad(jit(f))(x), jit(grad(f))(x), jvp(f, (x,), (x * 0 + 1,))[1]],
        [want] * 4,
        1e-6,
    )
    close(vmap(grad(f))(X.astype("f")), 2 * np.cos(X.astype("f")), 1e-6)
    close(
        grad(lambda x: jit(vmap(jit(f)))(x).sum())(X.astype("f")), 2 * np.cos(X.astype("f")), 1e-6
    )
    close(grad(lambda x: cond(x > 0, f, f, x))(x), want, 1e-6)
    close(grad(lambda x: scan(lambda c, _: (f(c), None), x, None, length=1)[0])(x), want, 1e-6)
    close(
        grad(lambda x: while_loop(lambda c: c[1] < 1, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0])(x),
        want,
        1e-5,
    )


def test_integers():
    f = custom_jvp(lambda x, n: x * n)
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1]))
    assert float(grad(f)(2.0, 3)) == 3.0


def test_transposes_as_its_program():
    f = custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda p, t: (f(*p), 5 * t[0]))
    close(linear_transpose(f, 1.0)(1.0), (2.0,))


def test_captured_tracers_are_refused_when_differentiated():
    def outer(w):
        f = custom_jvp(lambda x: x * w)
        f.defjvp(lambda p, t: (f(*p), t[0]))
        return jit(f)(2.0)

    with pytest.raises(TypeError, match="closed-over value"):
        grad(outer)(3.0)
    close(jit(outer)(3.0), 6.0)


def test_printed_form():
    f = doubled()
    text = str(verified(f, 1.0))
    assert (
        "custom_jvp_call[" in text
        and "jvp=<lambda>" in text
        and "symbolic_zeros=False" in text
        and "num_consts" not in text
    )
    assert "custom_jvp_call" in str(make_jaxpr(vmap(f))(X))
