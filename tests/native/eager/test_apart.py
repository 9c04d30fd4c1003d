"""Programs that run one equation after the other, with the bits that each has by itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import to_array, to_numpy
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.trace import trace_to_jaxpr
from calque.native.eager import apart
from calque.native.eager.apart import EquationsApart, TooLargeError
from calque.native.plan.steps import Call, Copy, walk

Function = Callable[..., Any]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed + sum(shape)).standard_normal(shape)
    return made.astype(np.float32)


def program_of(f: Function, *xs: np.ndarray) -> EquationsApart:
    def flat(*xs: Any) -> list[Any]:
        return cq.tree.leaves(f(*xs))

    avals = [ShapedArray(x.shape, x.dtype) for x in xs]
    return EquationsApart(trace_to_jaxpr(flat, avals), Options("f"))


def moments(x: Any) -> tuple[Any, ...]:
    centred = x - x.mean(0)
    return centred.T @ centred / 7.0, centred.std(), x


def updated(x: Any) -> tuple[Any, ...]:
    """What an update would overwrite if nobody else read it."""
    y = x * 2.0
    z = y.at[1].set(0.0)
    w = z.at[jnp.array([0, 2])].add(y[1:3])
    return y, z, w, lax.dynamic_update_slice(w, y[:2], (2, 0))


def looped(x: Any) -> tuple[Any, ...]:
    a = lax.fori_loop(0, 5, lambda i, v: v * 1.1 + 0.3, x)
    b = lax.while_loop(lambda v: v.sum() < 100.0, lambda v: v * 1.3 + 0.1, jnp.abs(x) + 1)
    c, d = lax.scan(lambda c, r: (c * 0.9 + r, c.sum()), x[0], x)
    return a, b, c, d, lax.cond(x[0, 0] > 0, lambda v: v @ v.T, lambda v: v @ v.T + 1, a)


def solved(x: Any) -> tuple[Any, ...]:
    m = x[:6, :6] @ x[:6, :6].T + 6 * jnp.eye(6)
    u, s, vt = jnp.linalg.svd(m)
    return jnp.linalg.inv(m), jnp.linalg.solve(m, x[:6, 0]), s, u @ jnp.diag(s) @ vt


def named_twice(x: Any) -> tuple[Any, ...]:
    y = jnp.exp(x)
    return y, y, x, jnp.float32(2.5), y.T.T


FUNCTIONS: dict[str, Function] = {
    "moments": moments,
    "updates": updated,
    "loops": looped,
    "solutions": solved,
    "results": named_twice,
    "convolution": lambda x: (jnp.convolve(x[0], x[1]), jnp.fft.rfft(x[:, 0]), jnp.sort(x, 0)),
    "drawn": lambda x: (cq.random.gamma(cq.random.key(3), jnp.abs(x) + 0.1), cq.random.key(2)),
    "constants": lambda x: (x @ jnp.asarray(normal(8, 3)), x[jnp.array([1, 0])] @ x.T),
    "nothing to do": lambda x: (x,),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bits_of_eager_calls(name: str) -> None:
    f, x = FUNCTIONS[name], normal(9, 8)
    wanted = cq.tree.leaves(f(jnp.asarray(x)))
    e = program_of(f, x)
    for _ in range(2):
        for g, w in zip(e.call([to_array(x)]), wanted, strict=True):
            if cq.dtypes.issubdtype(w.dtype, cq.dtypes.prng_key):
                g, w = cq.random.key_data(g), cq.random.key_data(w)
            assert to_numpy(g).dtype == np.asarray(w).dtype
            assert to_numpy(g).tobytes() == np.asarray(w).tobytes()


def test_nothing_is_fused() -> None:
    """Each equation writes its results, and what is rounded between them stays so."""

    def f(x: Any, y: Any) -> Any:
        return (x * y + y) * x

    x, y = normal(40), normal(40, seed=1)
    e = program_of(f, x, y)
    assert len([s for s in walk(e.steps) if isinstance(s, Call)]) == 3
    assert to_numpy(e.call([to_array(x), to_array(y)])[0]).tobytes() == ((x * y + y) * x).tobytes()


def test_results_that_no_equation_makes_are_copied() -> None:
    e = program_of(named_twice, normal(3, 3))
    assert len([s for s in e.steps if isinstance(s, Copy)]) >= 3


def test_what_is_not_small_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MOST_BYTES", 100)
    with pytest.raises(TooLargeError):
        program_of(lambda x: jnp.tanh(x @ x.T) @ x, normal(9, 9))
