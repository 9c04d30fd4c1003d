"""Pieces of programs: stages collected into steps, results where they must go."""

import numpy as np

import calque
import calque.numpy as jnp
from calque.native.plan.steps import Call, Copy, Host, walk
from tests.native.programs import compiled, normal, run

X = normal(100)


def kinds(e) -> list[str]:
    return [type(s).__name__ for s in walk(e.steps)]


def test_results_that_live_elsewhere_are_copied() -> None:
    """An argument, a constant, and one result that is wanted twice."""
    table = jnp.arange(100.0)

    def f(x):
        y = jnp.sin(x)
        return x, table, y, y, y[::-1]

    e = compiled(f, X)
    assert sum(isinstance(s, Copy) for s in walk(e.steps)) >= 2
    got = run(e, X)
    for g, w in zip(got, (X, np.arange(100, dtype="f4"), np.sin(X), np.sin(X), np.sin(X)[::-1])):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_stages_are_collected_until_something_else_stands_between() -> None:
    """A step that no stage can make parts what is before it from what is behind."""
    assert kinds(compiled(lambda x: (jnp.sin(x), jnp.cos(x)), X)) == ["Call"]
    e = compiled(lambda x: jnp.sort(jnp.sin(x)) * 2, X)
    assert kinds(e) == ["Call", "Routine", "Call"]


def test_what_has_no_native_form_is_a_host_call() -> None:
    z = (X + 1j * X).astype(np.complex64)
    e = compiled(lambda z: jnp.linalg.eigvals(z.reshape(10, 10))[0] * 2, z)
    hosts = [s.op for s in walk(e.steps) if isinstance(s, Host)]
    assert hosts == e.host_calls and all(not isinstance(s, Call) or s.body for s in walk(e.steps))


def test_effects_run_though_nobody_reads_them() -> None:
    seen: list[float] = []

    def f(x):
        calque.debug.callback(lambda v: seen.append(float(v)), x[3])
        return x * 2

    run(compiled(f, X), X)
    assert seen == [float(X[3])]
