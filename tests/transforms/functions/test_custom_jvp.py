"""custom_jvp for users: arguments and rules, and what is wrong with them."""

import functools

import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.custom_arguments import SymbolicZero
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.vmap import vmap
from tests.transforms.programs import check, close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_python_control_flow_inside():
    f = custom_jvp(lambda x: x * 2 if x > 0 else -x)
    f.defjvp(lambda p, t: (f(*p), 5 * t[0] if p[0] > 0 else 7 * t[0]))
    assert float(f(3.0)) == 6.0 and float(grad(f)(3.0)) == 5.0 and float(grad(f)(-3.0)) == 7.0


def test_nondiff_arguments_keywords_and_trees():
    @functools.partial(custom_jvp, nondiff_argnums=(0,))
    def apply(f, p, scale=1.0):
        return {"out": f(p["x"]) * scale}

    @apply.defjvp
    def _(f, primals, tangents):
        return apply(f, *primals), {"out": 3.0 * tangents[0]["x"]}

    assert float(grad(lambda x: apply(jnp.sin, {"x": x}, scale=2.0)["out"])(1.0)) == 3.0
    named = custom_jvp(lambda x, kind: x if kind == "a" else -x, nondiff_argnames=("kind",))
    named.defjvp(lambda kind, p, t: (named(p[0], kind), t[0] * 9))
    assert float(grad(named)(1.0, kind="b")) == 9.0


def test_defjvps():
    f = custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: t * y, None)
    close(grad(f, argnums=(0, 1))(2.0, 3.0), (3.0, 0.0))


def test_symbolic_zeros():
    seen = []
    f = custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        seen.append([type(t) is SymbolicZero for t in tangents])
        return f(*primals), tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    assert float(grad(f)(2.0, 3.0)) == 3.0
    close(vmap(grad(f), (0, None))(np.ones(2, np.float32), 3.0), np.float32([3, 3]))
    assert seen == [[False, True], [False, True]]


@pytest.mark.parametrize(
    "rule, error, text",
    [
        (None, AttributeError, "No JVP defined for custom_jvp function f using defjvp"),
        (lambda p, t: (p[0], (t[0], t[0])), TypeError, "equal container"),
        (lambda p, t: (p[0], jnp.ones(3)), TypeError, r"Expected float32\[\].*got float32\[3\]"),
        (lambda p, t: (p[0], jnp.int32(2)), TypeError, r"got int32\[\]"),
        (lambda p, t: p[0], TypeError, "must produce a pair"),
    ],
)
def test_bad_rules(rule, error, text):
    def f(x):
        return x

    g = custom_jvp(f)
    if rule is not None:
        g.defjvp(rule)
    with pytest.raises(error, match="(?s)" + text):
        grad(g)(1.0)
