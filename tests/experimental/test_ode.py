"""odeint: solutions against closed forms, SciPy and JAX; trees, dtypes, limits; gradients against
finite differences; the parts of a step."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import calque
import calque.numpy as jnp
from calque.experimental import ode
from calque.experimental.ode import odeint
from calque.test_util import check_vjp
from tests.ops.helpers import x64
from tests.peers import compare, jax

T = np.linspace(0, 2, 5)


def close(got: Any, want: Any, tol: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tol, atol=tol)


def pendulum(y: Any, t: Any, damping: Any, length: Any) -> Any:
    angle, speed = y
    return jnp.stack([speed, -damping * speed - 9.8 / length * jnp.sin(angle)])


def test_solutions() -> None:
    close(odeint(lambda y, t: -y, 1.0, jnp.asarray(T, "float32")), np.exp(-T))
    close(
        odeint(lambda y, t: t * jnp.ones(2), jnp.zeros(2), jnp.asarray(T, "float32")),
        np.stack([T**2 / 2] * 2, 1),
    )
    close(
        odeint(lambda y, t: 1j * y, jnp.ones(2) + 0j, jnp.asarray(T, "float32")),
        np.stack([np.exp(1j * T)] * 2, 1),
    )
    with x64():
        got = odeint(pendulum, jnp.array([2.0, 0.0]), T, 0.3, 1.5)

        def rhs(t, y):
            return [y[1], -0.3 * y[1] - 9.8 / 1.5 * np.sin(y[0])]

        want = scipy.integrate.solve_ivp(
            rhs, (0, 2), [2.0, 0.0], t_eval=T, rtol=1e-11, atol=1e-11
        ).y.T
        close(got, want, 1e-6)
        close(
            calque.jit(lambda y, a: odeint(pendulum, y, T, a, 1.5, rtol=1e-10, atol=1e-10))(
                jnp.array([2.0, 0.0]), 0.3
            ),
            want,
            1e-8,
        )


def test_trees_and_dtypes() -> None:
    t = jnp.asarray(T, "float32")
    got = odeint(
        lambda y, t, k: {"a": -k * y["a"], "b": (y["a"].sum(),)},
        {"a": jnp.ones((2, 2)), "b": (jnp.zeros(()),)},
        t,
        2,
    )
    close(got["a"], np.exp(-2 * T)[:, None, None] * np.ones((2, 2)))
    close(got["b"][0], 2 - 2 * np.exp(-2 * T))
    half = odeint(lambda y, t: -y, jnp.ones(2, "float16"), t, rtol=1e-3, atol=1e-3)
    assert half.dtype == np.float16 and half.shape == (5, 2)
    assert odeint(lambda y, t: -y, 1, t).dtype == np.float32
    assert odeint(lambda y, t: -y, jnp.ones(2), t[:1]).tolist() == [[1, 1]]
    assert np.isnan(odeint(lambda y, t: -y, 1.0, t[::-1])[1:]).all()  # times must increase


def test_limits_of_steps() -> None:
    t = jnp.array([0.0, 1.0])
    exact, one = (
        odeint(lambda y, t: -y, jnp.ones(1), t),
        odeint(lambda y, t: -y, jnp.ones(1), t, mxstep=1),
    )
    assert abs(float(exact[1, 0]) - np.exp(-1)) < 1e-6 < abs(float(one[1, 0]) - np.exp(-1))

    # a pulse that long steps do not see
    def pulse(y, t):
        return jnp.exp(-jnp.square((t - 0.7) * 200)) * 200 / np.sqrt(np.pi)

    assert abs(float(odeint(pulse, 0.0, t, hmax=0.01, rtol=1e-5, atol=1e-5)[1]) - 1) < 1e-3


def test_batches() -> None:
    rates = jnp.array([0.5, 1.0, 3.0])
    got = calque.vmap(lambda k: odeint(lambda y, t: -k * y, 1.0, jnp.asarray(T, "float32")))(rates)
    close(got, np.exp(-np.asarray(rates)[:, None] * T))


def test_gradients() -> None:
    with x64():

        def f(y, t, a, l):
            return odeint(pendulum, y, t, a, l, rtol=1e-11, atol=1e-11)

        args = (jnp.array([2.0, 0.1]), jnp.asarray(T[:3] + 0.1), jnp.asarray(0.3), jnp.asarray(1.5))
        check_vjp(f, lambda *a: calque.vjp(f, *a), args, atol=1e-5, rtol=1e-5)

        # through what func closes over, with an integer argument, and for trees
        def loss(k):
            return odeint(
                lambda y, t, n: {"u": -n * k * y["u"]}, {"u": jnp.ones(2)}, jnp.asarray(T), 2
            )["u"][-1].sum()

        assert float(calque.grad(loss)(0.5)) == pytest.approx(-8 * np.exp(-2), rel=1e-6)
        assert float(calque.jit(calque.grad(loss))(0.5)) == pytest.approx(-8 * np.exp(-2), rel=1e-6)

        def twist(w):
            return jnp.abs(
                odeint(lambda y, t: 1j * w * y + w * y, jnp.ones(1) + 0j, jnp.array([0.0, 1.0]))[
                    -1, 0
                ]
            )

        assert float(calque.grad(twist)(0.7)) == pytest.approx(np.exp(0.7), rel=1e-5)
        slopes = calque.vmap(
            calque.grad(lambda k: odeint(lambda y, t: -k * y, 1.0, jnp.array([0.0, 1.0]))[-1])
        )(jnp.array([0.5, 2.0]))
        close(slopes, -np.exp([-0.5, -2.0]), 1e-6)


def test_refusals() -> None:
    def f(y, t, *args):
        return -y

    t = jnp.asarray(T, "float32")
    for bad, text in (
        (lambda: odeint(f, 1.0, jnp.arange(3)), "t must be an array of floats"),
        (lambda: odeint(f, 1.0, t, "a"), r"\*args must be arrays"),
        (lambda: odeint(lambda y, t: y[:1], jnp.ones(2), t), "func must give"), (lambda: odeint(f,
        1.0, t[None]), "vector"),
        (lambda: odeint(lambda y, t: (y, y), 1.0, t), "func must give"), (lambda: odeint(f, 1.0,
        t[:0]), "at least one"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            bad()


def test_any_tree_may_hold_the_derivatives() -> None:
    t = jnp.asarray(T, "float32")
    want = odeint(lambda y, t: jnp.array([y[1], -y[0]]), jnp.array([1.0, 0.0]), t)
    as_list = odeint(lambda y, t: [y[1], -y[0]], jnp.array([1.0, 0.0]), t)
    close(as_list, want, 1e-6)
    pair = odeint(lambda y, t: jnp.array([y[1], -y[0]]), [1.0, 0.0], t)
    close(jnp.stack(pair, 1), want, 1e-6)


def test_lists_of_one_length() -> None:
    assert ode.safe_map(lambda a, b: a + b, [1, 2], [3, 4]) == [4, 6] and ode.safe_zip(
        [1], [2]
    ) == [(1, 2)]
    for bad in (lambda: ode.map(lambda a, b: a, [1], []), lambda: ode.zip([1], [])):
        with pytest.raises(ValueError, match="zip"):
            bad()


@pytest.mark.peer
def test_parts_of_a_step() -> None:
    theirs = (
        jax().experimental.ode
        if hasattr(jax().experimental, "ode")
        else __import__("jax.experimental.ode", fromlist=["ode"])
    )
    y0, y1, mid, f0, f1 = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    dt = np.float32(0.1)

    def rhs(lib):
        return lambda y, t: lib.sin(y) + t

    k = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    cases = (
        lambda m, lib: m.fit_4th_order_polynomial(y0, y1, mid, f0, f1, lib.asarray(dt)),
        lambda m, lib: m.interp_fit_dopri(lib.asarray(y0), y1, lib.asarray(k), lib.asarray(dt)),
        lambda m, lib: m.runge_kutta_step(
            rhs(lib), lib.asarray(y0), lib.asarray(f0), lib.float32(0.2), lib.asarray(dt)
        ),
        lambda m, lib: m.initial_step_size(rhs(lib), 0.2, y0, 4, 1e-3, 1e-4, f0),
        lambda m, lib: m.mean_error_ratio(lib.asarray(mid), 1e-3, 1e-4, y0, y1),
        lambda m, lib: m.optimal_step_size(lib.asarray(dt), lib.float32(0.3)),
        lambda m, lib: m.optimal_step_size(lib.asarray(dt), lib.float32(30.0)),
        lambda m, lib: m.optimal_step_size(lib.asarray(dt), lib.float32(0.0)),
        lambda m, lib: m.abs2(lib.asarray(1 + 2j)),
    )
    numpy = jax().numpy
    for got, want in zip(
        [c(ode, jnp) for c in cases],
        jax().jit(lambda: [c(theirs, numpy) for c in cases])(),
        strict=True,
    ):
        compare(
            tuple(got) if isinstance(got, tuple) else got,
            tuple(want) if isinstance(want, (tuple, list)) else want,
            2e-5,
        )


def test_gradients_of_gradients() -> None:
    """The adjoint equation has an adjoint equation: nothing differentiates the choice of steps."""
    times = np.linspace(0.0, 1.0, 3).astype(np.float32)

    def last(y0: Any, rate: Any) -> Any:
        return odeint(lambda y, t, r: -r * y, y0, times, rate)[-1]

    def slope(y0: Any, rate: Any) -> Any:  # of y0 exp(-rate) by the rate
        return calque.grad(last, 1)(y0, rate)

    by_both = calque.grad(slope, (0, 1))(2.0, 0.5)
    np.testing.assert_allclose(by_both[0], -np.exp(-0.5), rtol=1e-4)
    np.testing.assert_allclose(by_both[1], 2 * np.exp(-0.5), rtol=1e-4)
    still = calque.grad(lambda y: calque.grad(last, 0)(y, 0.0))(1.0)  # no step has any error
    assert float(still) == 0.0


def test_times_that_are_the_first() -> None:
    """The state at the first time may be asked for again."""
    times = np.array([0.5, 0.5, 1.0, 1.0, 1.5])

    def solution(rate: Any, start: Any) -> Any:
        return odeint(lambda y, t, a: -a * y, start, times, rate)

    with x64():
        close(solution(2.0, 3.0), 3 * np.exp(-2 * (times - 0.5)))
        slopes = calque.grad(lambda *args: solution(*args).sum(), (0, 1))(2.0, 3.0)
    terms = np.exp(-2 * (times - 0.5))
    close(slopes, (-(3 * (times - 0.5) * terms).sum(), terms.sum()))
