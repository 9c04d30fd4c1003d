"""custom_jvp for users: arguments and rules, and what is wrong with them."""

import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.dtypes import float0
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import jaxpr_as_fun
from calque.transforms.engines.slices import without_dead_code
from calque.transforms.engines.zeros import SymbolicZero
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.custom_arguments import zero_from_primal
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.loops import scan
from calque.transforms.functions.shapes import make_jaxpr
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
    with pytest.raises(error, match=r"(?s)" + text):
        grad(g)(1.0)


def scanned(f):
    """`f` called while a program is recorded: then its own results are known."""
    return lambda x: scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def test_rules_give_the_results_of_the_function():
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: ((p[0], p[0]), (t[0], t[0])))
    with pytest.raises(
        TypeError, match=r"(?s)same container.*\(float32\[\], float32\[\]\).* float32\["
    ):
        jvp(scanned(f), (jnp.float32(1),), (jnp.float32(1),))
    f.defjvp(lambda p, t: (jnp.zeros(3), t[0]))
    with pytest.raises(TypeError, match=r"(?s)same shape/dtype.*float32\[3\]\nwhile.*float32\[\]"):
        jvp(scanned(f), (jnp.float32(1),), (jnp.float32(1),))


def test_unused_results_are_not_computed():
    f = custom_jvp(lambda x: (jnp.sin(x), jnp.cos(x)))
    f.defjvp(lambda p, t: (f(*p), (2 * t[0], 3 * t[0])))
    closed = make_jaxpr(lambda x: f(x)[1])(1.0)
    pruned = without_dead_code(closed.jaxpr)
    (call,) = [e for e in pruned.eqns if e.primitive.name == "custom_jvp_call"]
    assert [e.primitive.name for e in call.params["call_jaxpr"].eqns] == ["cos"]
    assert jvp(lambda x: jaxpr_as_fun(ClosedJaxpr(pruned, []))(x)[0], (1.0,), (1.0,))[1] == 3.0


def test_keyword_arguments_without_a_position_are_refused():
    f = custom_jvp(lambda x, *, scale=1.0: x * scale)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(TypeError, match=r"custom_jvp-decorated function(?s:.*)positions: scale"):
        f(1.0, scale=2.0)


def test_tangents_of_integers():
    nothing = jnp.zeros((), float0)
    assert nothing.dtype == float0
    f = custom_jvp(lambda x, n: (x, n))
    f.defjvp(lambda p, t: (p, (5 * t[0], zero_from_primal(p[1]))))
    out, tangents = jvp(f, (2.0, 3), (1.0, nothing))
    assert out == (2.0, 3) and tangents[0] == 5.0 and tangents[1].dtype == float0


def test_numbers_stay_numbers_where_the_function_runs_at_once():
    f = calque.custom_jvp(lambda x, y: {"sum": x + y, "y": y})
    f.defjvp(lambda primals, tangents: (f(*primals), {"sum": tangents[0], "y": tangents[1]}))
    out = f(1, 2.5)
    assert type(out["sum"]) is float and out == {"sum": 3.5, "y": 2.5}
    assert isinstance(calque.jit(f)(1, 2.5)["sum"], calque.Array)
