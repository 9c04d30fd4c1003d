"""Derivatives at a point as values."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.functions.autodiff import linearize
from calque.transforms.functions.linearized import Linearized, derivative_value
from tests.transforms.programs import close


def test_linearize_checks_tangents():
    _, f_lin = linearize(lambda x: x["w"] * 2, {"w": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match=r"x\['w'\] of <lambda>"):
        f_lin({"w": np.ones(4, np.float32)})
    with pytest.raises(TypeError, match="structure"):
        f_lin(1.0)


def f(x, w):
    return {"y": jnp.sin(x) * w, "n": 3, "w": w}


def test_derivatives_are_applied_any_number_of_times():
    _, lin = linearize(f, 0.5, 2.0)
    for dx, dw in ((1.0, 0.0), (0.0, 1.0), (0.25, -2.0)):
        got = lin(dx, dw)
        np.testing.assert_allclose(got["y"], np.cos(0.5) * 2 * dx + np.sin(0.5) * dw, rtol=1e-6)
        assert float(got["w"]) == dw and got["n"].dtype == calque.dtypes.float0
    assert lin.__name__ == "derivative of f"
    assert "mul" in str(lin.func.args[0])
    close(lin.func(lin.args, 1.0, 0.0)["y"], lin(1.0, 0.0)["y"])


def test_a_derivative_leaves_programs_as_a_container():
    @calque.jit
    def at(x):
        return linearize(jnp.sin, x)[1]

    lin = at(0.5)
    assert isinstance(lin, Linearized) and float(lin(2.0)) == pytest.approx(2 * np.cos(0.5))
    doubled = calque.tree.map(lambda r: 2 * r, lin)
    assert float(doubled(1.0)) == pytest.approx(2 * np.cos(0.5))
    xs = np.linspace(0, 1, 3, dtype=np.float32)
    lanes = calque.vmap(lambda x: linearize(jnp.sin, x)[1])(xs)
    got = calque.vmap(lambda g: g(1.0))(lanes)
    np.testing.assert_allclose(got, np.cos(xs), rtol=1e-6)


def test_tangents_of_other_structure_are_refused():
    _, lin = linearize(f, 0.5, 2.0)
    with pytest.raises(TypeError, match="apply the linearized f to one tangent for each primal"):
        lin(1.0)
    with pytest.raises(ValueError, match="for the argument w of f of type f"):
        lin(1.0, np.ones(2, np.float32))


def test_cotangents_are_arrays():
    assert isinstance(derivative_value(2.0), calque.Array)
    assert calque.grad(lambda x: 3.0 * x)(1.0).dtype == np.float32


def test_tangents_vary_along_no_more_axes_than_the_point():
    mesh = calque.make_mesh((calque.device_count(),), ("x",))

    def at(point):
        def f(t):
            p = point(jnp.ones(1))
            return linearize(lambda v: (v * v).sum(), p)[1](t)[None]

        return calque.shard_map(f, mesh=mesh, in_specs=calque.P("x"), out_specs=calque.P("x"))

    t = jnp.ones(calque.device_count())
    with pytest.raises(ValueError, match=r"\('x',\), to='varying'\)` to the primal value passed"):
        at(lambda p: p)(t)
    out = at(lambda p: calque.lax.pcast(p, "x", to="varying"))(t)
    assert set(out.tolist()) == {2.0}
