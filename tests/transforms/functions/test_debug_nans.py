import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core import trace
from calque.core.config import config


@pytest.fixture
def nans():
    with config.override("debug_nans", True):
        yield


def refused(fun, *args, name, kind="nan", line=None):
    """`fun` raises and names the primitive and a line of this file."""
    with pytest.raises(
        FloatingPointError,
        match=rf"invalid value \({kind}\) encountered in {name} at .*test_debug_nans.py",
    ) as e:
        fun(*args)
    if line is not None:
        assert int(re.search(r"\.py:(\d+)", str(e.value)).group(1)) == line


def test_single_operations(nans):
    refused(jnp.log, -1.0, name="log")
    refused(lambda: jnp.zeros(3) / 0, name="div")
    refused(lambda: calque.vmap(jnp.sqrt)(jnp.array([-1.0])), name="sqrt")
    refused(lambda: jnp.log(jnp.array([-1.0], "bfloat16")), name="log")
    assert np.isinf(float(jnp.log(0.0)))
    assert jnp.arange(3).sum() == 3 and not bool(jnp.isnan(1.0))


def test_infinities():
    with config.override("debug_infs", True):
        refused(lambda: jnp.log(0.0), name="log", kind="inf")
        zero = jnp.float32(0)
        refused(calque.jit(lambda x: 1 / x + 1), zero, name="div", kind="inf")
        assert np.isnan(float(jnp.log(-1.0)))


def first_line(x):
    y = jnp.sin(x)
    z = jnp.log(y)
    return z + 1


def test_a_program_names_its_first_equation(nans):
    line = first_line.__code__.co_firstlineno + 2
    refused(calque.jit(first_line), -1.0, name="log", line=line)
    refused(calque.jit(calque.vmap(first_line)), jnp.full(3, -1.0), name="log", line=line)
    refused(calque.jit(lambda x: calque.jit(first_line)(x) * 2), -1.0, name="log", line=line)
    refused(calque.jit(calque.value_and_grad(first_line)), -1.0, name="log", line=line)
    np.testing.assert_allclose(calque.jit(first_line)(1.0), np.log(np.sin(1.0)) + 1, rtol=1e-5)


@pytest.mark.parametrize("wrap", [calque.jit, lambda f: f])
def test_inside_loops_and_branches(nans, wrap):
    line = first_line.__code__.co_firstlineno + 2
    scan = wrap(
        lambda x: lax.scan(lambda c, k: (first_line(c * k), c), x, jnp.ones(3), reverse=True)
    )
    refused(scan, -1.0, name="log", line=line)
    loop = wrap(
        lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (first_line(c[0]), c[1] + 1), (x, 0))
    )
    refused(loop, -1.0, name="log", line=line)
    refused(wrap(lambda x: lax.cond(x < 0, first_line, jnp.cos, x)), -1.0, name="log", line=line)
    refused(wrap(calque.checkpoint(first_line)), -1.0, name="log", line=line)


def test_hidden_values_do_no_harm(nans):
    assert float(calque.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))(-1.0)) == 0


def test_flags_may_change_at_any_time():
    f = calque.jit(lambda x: jnp.log(x))
    before = trace.evaluator.call
    assert all(np.isnan(float(f(-1.0))) for _ in range(3))
    with config.override("debug_nans", True):
        assert trace.evaluator.call is not before
        for _ in range(3):
            assert float(f(1.0)) == 0
            refused(f, -1.0, name="log")
            refused(lambda: jnp.log(-1.0), name="log")
    assert trace.evaluator.call is before
    assert np.isnan(float(f(-1.0))) and np.isnan(float(jnp.log(-1.0)))


def test_long_loops_are_explained_by_the_round(nans):
    line = first_line.__code__.co_firstlineno + 2

    def bad_at(k):
        def body(i, c):
            return jnp.where(i == k, first_line(c - 9), c * 0.5 + 0.1)

        return calque.jit(lambda x: lax.fori_loop(0, 20_000, body, x))

    refused(bad_at(15_000), 0.3, name="log", line=line)
    counted = calque.jit(
        lambda x: lax.while_loop(lambda c: c[1] < 9000, lambda c: (c[0] - 0.001, c[1] + 1), (x, 0))
    )
    assert float(counted(1.0)[0]) < 0


def test_a_rule_that_gives_nan():
    f = calque.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct * float("nan"),))
    with calque.debug_nans(), pytest.raises(FloatingPointError, match=r"invalid value \(nan\)"):
        calque.grad(f)(1.0)


def test_what_no_operation_made_is_said():
    with config.override("calque_debug_nans", True):
        f = calque.jit(lambda x: x * 3.0)
        with pytest.raises(FloatingPointError, match=r"de-optimized function did not .* input"):
            f(jnp.float32(np.nan))
        with pytest.raises(FloatingPointError, match=r"de-optimized function did not .* literal"):
            calque.jit(lambda x: (jnp.nan, x))(1.0)


def divides(x):
    y = x + 1
    return 0.0 / (y - 1)


def test_the_traceback_leads_through_the_function(nans, monkeypatch):
    # while mutable references live, of other tests too, nothing runs twice
    monkeypatch.setattr("calque.transforms.jit.function.any_alive", lambda: False)
    f = calque.jit(divides)
    with pytest.raises(FloatingPointError) as caught:
        f(jnp.float32(0))
    lines = [(e.name, e.lineno) for e in caught.traceback]
    assert ("divides", divides.__code__.co_firstlineno + 1) in lines  # counted from 0
    with pytest.raises(ZeroDivisionError):  # as written, of a Python number
        f(0.0)


def test_a_map_over_devices_says_so():
    mesh = calque.make_mesh((1,), ("x",))
    spec = calque.P("x")
    f = calque.shard_map(lambda x: jnp.log(x**2), mesh=mesh, in_specs=spec, out_specs=spec)
    _, pull = calque.vjp(f, jnp.zeros(1))
    with calque.debug_nans(True), pytest.raises(FloatingPointError, match=r"^Invalid value .nan."):
        pull(jnp.ones(1))
