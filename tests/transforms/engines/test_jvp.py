import numpy as np
import pytest

import calque.numpy as jnp
from calque.core.jaxprs import check_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.functions.autodiff import jvp
from calque.transforms.functions.shapes import make_jaxpr
from tests.transforms.programs import check, close, reference_backend, values  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_elementwise_programs():
    check(
        lambda x, y: jnp.sin(x) * y + jnp.exp(x * y) / (1 + y * y),
        np.array([0.3, -0.5]),
        np.array([1.2, 0.7]),
    )


def test_trees_in_and_out():
    check(
        lambda p: {"a": p["w"] * p["b"], "s": [jnp.tanh(p["w"]).sum()]},
        {"w": np.array([0.1, 0.2]), "b": np.array([0.3, 0.4])},
    )


def test_constants_have_no_tangent():
    out, tangent = jvp(lambda x: (jnp.float32(3.0), x * 0 + 2), (1.0,), (1.0,))
    close((out, tangent), ((3.0, 2.0), (0.0, 0.0)))


def test_integers_have_float0_tangents():
    _, tangent = jvp(
        lambda x, n: (x * n, n + 1), (2.0, 3), (1.0, np.zeros((), [("float0", np.void, 0)]))
    )
    close(tangent[0], 3.0)
    assert np.asarray(tangent[1]).dtype.itemsize == 0


def test_nested_levels_do_not_mix():
    # the derivative of x * d/dy(x + y) is 1, not 2: a tangent of one level is no tangent of the
    # other
    def f(x):
        return x * jvp(lambda y: x + y, (1.0,), (1.0,))[1]

    close(jvp(f, (3.0,), (1.0,))[1], 1.0)


def test_python_control_flow_sees_values():
    def f(x):
        return 3 * x if x > 0 else -x

    close([jvp(f, (v,), (1.0,))[1] for v in (2.0, -2.0)], [3.0, -1.0])


def test_has_aux():
    out, tangent, aux = jvp(lambda x: (x * x, {"n": 7}), (3.0,), (1.0,), has_aux=True)
    close((out, tangent), (9.0, 6.0))
    assert aux == {"n": 7}


def test_weak_types_stay():
    out, tangent = jvp(lambda x: 2 * x, (5.0,), (1.0,))
    assert out.aval.weak_type and tangent.aval.weak_type


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda f: jvp(f, 1.0, (1.0,)),
            TypeError,
            r"must be tuples or lists; found",
        ),
        (lambda f: jvp(f, (1.0,), ()), TypeError, "same tree structure"),
        (
            lambda f: jvp(f, ({"w": np.ones(3)},), ({"w": np.ones(4)},)),
            ValueError,
            r"x\['w'\] of f",
        ),
        (
            lambda f: jvp(f, (1.0,), (1,)),
            TypeError,
            "expected tangent dtype float32, but got tangent dtype int32",
        ),
        (lambda f: jvp(f, ("a",), ("b",)), TypeError, "argument x of f: the value 'a' of type"),
        (lambda f: jvp(3, (1.0,), (1.0,)), TypeError, "Expected a callable"),
    ],
)
def test_bad_arguments(call, error, text):
    def f(x):
        return x

    with pytest.raises(error, match=text):
        call(f)


def test_programs_are_cached():
    closed = make_jaxpr(lambda x, y: (jnp.sin(x) * y, y))(1.0, 2.0)
    both, mask = jvp_jaxpr(closed, (True, False))
    assert mask == (True, False)
    assert jvp_jaxpr(closed, (True, False))[0] is both
    check_jaxpr(both.jaxpr)
    assert len(both.jaxpr.invars) == 3 and len(both.jaxpr.outvars) == 3
    assert jvp_jaxpr(closed, (True, False), True)[1] == (True, True)


def test_a_tracer_that_leaked_is_named():
    from calque.core.errors import UnexpectedTracerError

    kept = []
    jvp(lambda x: kept.append(x) or x, (1.0,), (1.0,))
    with pytest.raises(UnexpectedTracerError):
        kept[0] + 1.0
    assert values(1.0) == 1.0
