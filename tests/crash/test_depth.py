"""Depth and length: containers in containers, calls in calls, many arguments, results and
equations."""

from tests.crash.child import check

START = """
import calque, calque.numpy as jnp
from calque import lax
def deepest(x):
    while isinstance(x, (tuple, list, dict)):
        x = x["a"] if isinstance(x, dict) else x[0]
    return x
def nested(n, x, wrap):
    for _ in range(n):
        x = wrap(x)
    return x
"""


def test_containers_in_containers() -> None:
    """JAX takes 300; beyond what the stack holds it is a RecursionError."""
    check(
        START
        + """
f = calque.jit(lambda t: calque.tree.map(lambda x: x + 1, t))
g = calque.jit(calque.grad(lambda t: deepest(t) ** 2))
for wrap in (lambda x: (x,), lambda x: [x], lambda x: {"a": x}):
    for n in (99, 101, 300):
        for _ in range(3):
            assert float(deepest(f(nested(n, jnp.ones(()), wrap)))) == 2.0
        assert float(deepest(g(nested(n, jnp.ones(()), wrap)))) == 2.0
    try:
        f(nested(20_000, jnp.ones(()), wrap))
    except RecursionError:
        pass
    else:
        raise AssertionError("no RecursionError")
"""
    )


def test_calls_in_calls() -> None:
    check(
        START
        + """
def jits(n, x):
    return x if n == 0 else calque.jit(lambda y: jits(n - 1, y) + 1)(x)
def conds(n):
    f = lambda x: x
    for _ in range(n):
        f = (lambda f: lambda x: lax.cond(x > 0, f, lambda y: -y, x))(f)
    return f
def wrapped(n, how):
    f = jnp.sin
    for _ in range(n):
        f = how(f)
    return f
assert float(jits(30, jnp.ones(()))) == 31.0
assert float(calque.jit(conds(20))(jnp.ones(()))) == 1.0
for deep in (
    lambda: jits(10_000, jnp.ones(())),
    lambda: calque.jit(conds(10_000))(jnp.ones(())),
    lambda: wrapped(10_000, calque.jit)(1.0),
    lambda: wrapped(10_000, calque.grad)(1.0),
    lambda: wrapped(10_000, calque.checkpoint)(1.0),
    lambda: wrapped(10_000, lambda f: calque.vmap(f, in_axes=None, axis_size=1))(1.0),
):
    try:
        deep()
    except RecursionError:
        continue
    raise AssertionError("no RecursionError")
""",
        timeout=600,
    )


def test_many_arguments_results_and_equations() -> None:
    check(
        START
        + """
n = 1500
assert float(calque.jit(lambda *a: sum(a))(*map(float, range(n)))) == n * (n - 1) / 2
out = calque.jit(lambda x: [x + i for i in range(n)])(jnp.ones(3))
assert len(out) == n and out[-1].tolist() == [float(n)] * 3
def chain(x):
    for _ in range(5000):
        x = x * 0.5 + 1
    return x
assert float(calque.jit(chain)(jnp.ones(()))) == 2.0
""",
        timeout=600,
    )


def test_a_hundred_thousand_equations() -> None:
    """A chain of them is traced, compiled and run, in memory that grows no more than it does."""
    check(
        START
        + """
import math, resource
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
def chain(x, sin):
    for i in range(100_000):
        x = sin(x) if i % 3 else x * (1 + i * 1e-9)
    return x
traced = lambda x: chain(x, jnp.sin)
assert len(calque.make_jaxpr(traced)(1.0).eqns) == 100_000
f, expected = calque.jit(traced), chain(1.0, math.sin)
assert abs(float(f(1.0)) / expected - 1) < 1e-3, (f(1.0), expected)
assert float(f(1.0)) == float(f(1.0))
""",
        timeout=600,
    )
