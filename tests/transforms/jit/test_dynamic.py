"""One program for every size: traced at most twice, right for all lengths, without questions that
are not needed."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.transforms.jit.function import function_of
from tests.shared import OWN_ENGINE

VECTORS = {}
MATRICES = {}
LENGTHS = (5, 8, 300, 3, 64, 65, 1000, 17, 2)
SHAPES = ((5, 8), (7, 9), (30, 40), (64, 65), (3, 100), (70, 1), (99, 99), (2, 2))
MORE_TRACES = {"conv": 3, "eins": 6}  # what is asked of the sizes has several answers


def vectors(f):
    VECTORS[f.__name__] = f


def matrices(f):
    MATRICES[f.__name__] = f


def check(f, inputs, most, tol):
    traces = []

    @jax.jit
    def g(*args):
        traces.append(1)
        return f(*args)

    for args in inputs:
        got, want = g(*args), f(*[jnp.asarray(a) for a in args])
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=tol, atol=tol)
    assert len(traces) <= (most if OWN_ENGINE else len(inputs))


@vectors
def mean(x):
    return x.mean()


@vectors
def mx(x):
    return x.max()


@vectors
def std(x):
    return x.std()


@vectors
def sort(x):
    return jnp.sort(x)


@vectors
def cumsum(x):
    return jnp.cumsum(x)


@vectors
def softmax(x):
    e = jnp.exp(x - x.max())
    return e / e.sum()


@vectors
def last(x):
    return x[-1]


@vectors
def slices(x):
    return x[1:], x[:-1], x[::2], x[1:] - x[:-1]


@vectors
def half(x):
    return x[: x.shape[0] // 2]


@vectors
def conc(x):
    return jnp.concatenate([x, x, jnp.zeros(3)])


@vectors
def resh(x):
    return jnp.concatenate([x, x]).reshape(2, -1), x[:, None] * x[None, :]


@vectors
def arange(x):
    return x + jnp.arange(x.shape[0])


@vectors
def outer_sum(x):
    return (x[:, None] * x[None, :]).sum(0)


@vectors
def dot(x):
    return x @ x


@vectors
def flip(x):
    return x[::-1], jnp.roll(x, 1), jnp.pad(x, (1, 2))


@vectors
def argmax(x):
    return x.argmax(), jnp.argsort(x)


@vectors
def fori(x):
    return jax.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0)


@vectors
def scan(x):
    return jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x)


@vectors
def grad(x):
    return jax.grad(lambda v: (jnp.sin(v) ** 2).sum())(x)


@vectors
def gradmean(x):
    return jax.grad(lambda v: (jnp.tanh(v)).mean())(x)


@vectors
def vmap(x):
    return jax.vmap(lambda v: v * 2 + 1)(x)


@vectors
def where(x):
    return jnp.where(x > 0, x, 0.0), jnp.clip(x, -1, 1)


@vectors
def setat(x):
    return x.at[0].set(5.0), x.at[1:].add(1.0)


@vectors
def lse(x):
    return jax.nn.logsumexp(x), jax.nn.softmax(x), jax.nn.log_softmax(x)


@vectors
def linspace(x):
    return x + jnp.linspace(0, 1, x.shape[0])


@vectors
def take(x):
    return jnp.take(x, jnp.array([0, 1])), x[jnp.array([0, -1])]


@vectors
def norm(x):
    return jnp.linalg.norm(x), x / jnp.linalg.norm(x)


@vectors
def var(x):
    return jnp.var(x), jnp.median(x)


@vectors
def conv(x):
    return jnp.convolve(x, jnp.ones(3) / 3, mode="same")


@vectors
def fft(x):
    return jnp.abs(jnp.fft.rfft(x))


@vectors
def stack(x):
    return jnp.stack([x, x * 2]), jnp.tile(x, 2), jnp.repeat(x, 2)


@vectors
def eye(x):
    return jnp.eye(x.shape[0]) * x, jnp.diag(x), jnp.tril(x[:, None] * x)


@vectors
def onehot(x):
    return jax.nn.one_hot(jnp.argmax(x), x.shape[0])


@matrices
def mm(x, w):
    return jnp.tanh(x @ w).sum(axis=0)


@matrices
def mmt(x, w):
    return (x.T @ x, x @ x.T)


@matrices
def mlpgrad(x, w):
    return jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)


@matrices
def vm(x, w):
    return jax.vmap(lambda r: r @ w)(x)


@matrices
def soft(x, w):
    return jax.nn.softmax(x, -1), jax.nn.softmax(x, 0)


@matrices
def ln(x, w):
    mu = x.mean(-1, keepdims=True)
    v = x.var(-1, keepdims=True)
    return (x - mu) / jnp.sqrt(v + 1e-5)


@matrices
def tr(x, w):
    return x.T.reshape(-1), x.reshape(-1), x.sum(0), x.max(1), x[::-1, 1:]


@matrices
def rnn(x, w):
    return jax.lax.scan(lambda c, a: (jnp.tanh(c * 0.5 + a), c.sum()), jnp.zeros(x.shape[1]), x)


@matrices
def eins(x, w):
    return jnp.einsum("ij,jk->ik", x, w), jnp.einsum("ij,ij->i", x, x)


@matrices
def srt(x, w):
    return jnp.sort(x, 0), jnp.argsort(x, 1), jnp.cumsum(x, 1), jnp.cumsum(x, 0)


@matrices
def attn(x, w):
    s = x @ x.T / np.sqrt(8.0)
    mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    s = jnp.where(mask, s, -jnp.inf)
    return jax.nn.softmax(s) @ x


@matrices
def gsc(x, w):
    return jax.grad(
        lambda x: jax.lax.scan(
            lambda c, a: (jnp.tanh(c * 0.5 + a), c.sum()), jnp.zeros(x.shape[1]), x
        )[1].sum()
    )(x)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    rng = np.random.default_rng(0)
    check(
        VECTORS[name],
        [[rng.normal(size=n).astype(np.float32)] for n in LENGTHS],
        MORE_TRACES.get(name, 2),
        2e-5,
    )


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    rng = np.random.default_rng(0)
    inputs = [
        [rng.normal(size=s).astype(np.float32), rng.normal(size=(s[1], 8)).astype(np.float32)]
        for s in SHAPES
    ]
    check(MATRICES[name], inputs, MORE_TRACES.get(name, 2), 2e-4)


def traced(f):
    """`f` jitted, and the list of its traces."""
    log = []

    def g(*args):
        log.append(1)
        return f(*args)

    return jax.jit(g), log


def test_sizes_0_and_1():
    f, log = traced(lambda x: (x * 2, x.sum(), x[None, :] + x[:, None]))
    for n in (5, 9, 0, 1, 0, 1, 7, 2):
        x = np.arange(n, dtype=np.float32)
        double, total, table = f(x)
        np.testing.assert_array_equal(double, 2 * x)
        assert float(total) == x.sum()
        np.testing.assert_array_equal(table, x[None, :] + x[:, None])
    assert len(log) <= 4


def test_equal_sizes_are_known_to_be_equal():
    f, log = traced(lambda x, y: x + y)
    for n in (4, 6, 10, 3):
        assert f(np.ones(n), np.ones(n)).shape == (n,)
    assert len(log) == 2
    with pytest.raises(TypeError, match="incompatible shapes"):
        f(np.ones(4), np.ones(5))
    assert f(np.ones(4), np.ones(1)).shape == (4,)


def test_broadcasting_is_asked():
    f, _ = traced(lambda x, y: x * y)
    for m, n in ((3, 3), (4, 4), (1, 4), (5, 1), (1, 1), (6, 6)):
        assert f(np.ones(m), np.ones(n)).shape == (max(m, n),)


def test_python_that_looks_at_the_size_is_obeyed():
    f, _ = traced(lambda x: x.sum() if x.shape[0] > 10 else -x.sum())
    for n in (3, 20, 10, 11, 500, 1, 2):
        assert float(f(np.ones(n))) == (n if n > 10 else -n)


def test_python_that_needs_the_number_stays_static():
    def f(x):
        total = 0.0
        for i in range(x.shape[0]):
            total = total + x[i] * i
        return total

    g, log = traced(f)
    for n in (3, 4, 5, 6, 3, 4):
        assert float(g(np.ones(n))) == sum(range(n))
    assert len(log) <= 6


def test_squeeze_sees_a_size_of_1():
    f, _ = traced(lambda x: jnp.squeeze(x))
    for n in (3, 4, 1, 5):
        assert f(np.ones((n, 2))).shape == ((2,) if n == 1 else (n, 2))


def test_rolling_by_more_and_less():
    f, _ = traced(lambda x: [jnp.roll(x, k) for k in (1, -1, 3, -5)])
    for n in (8, 9, 300, 4, 2, 1):
        x = np.arange(n, dtype=np.float32)
        for got, k in zip(f(x), (1, -1, 3, -5)):
            np.testing.assert_array_equal(got, np.roll(x, k))


def test_sizes_as_numbers():
    f, log = traced(lambda x: (x / x.shape[0], x.sum() * (x.shape[0] - 1), x.shape[0] * 1.5 + x))
    for n in (3, 4, 9, 100):
        x = np.arange(n, dtype=np.float32)
        for got, want in zip(f(x), (x / n, x.sum() * (n - 1), n * 1.5 + x)):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert len(log) == 2


def test_large_sums_keep_their_order():
    f, g = jax.jit(lambda x: x.sum()), jax.jit(lambda x: x.sum() + 0)
    rng = np.random.default_rng(0)
    for n in (20_000, 40_000, 100_001, 16_384, 16_385):
        x = rng.normal(size=n).astype(np.float32)
        assert float(f(x)) == float(jnp.sum(x)) == float(g(x))


def test_from_large_to_small():
    """What was split among threads for large sizes writes no more than there is."""
    f, log = traced(lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])))
    for n in (100_000, 50_000, 3, 20_000, 4097, 1):
        x = np.linspace(-2, 2, n, dtype=np.float32)
        np.testing.assert_array_equal(f(x), np.digitize(x, [-1.0, 0.0, 1.0]))
    (family,) = function_of(f).cache.families.values()
    assert "min(4096" in family.programs[0].executable.as_text("loops")


def test_products_from_long_to_short_sums():
    f, _ = traced(lambda a: a @ a.T)
    rng = np.random.default_rng(0)
    for shape in ((5, 900), (6, 1000), (1000, 3), (2, 2), (600, 1), (1, 700), (33, 513)):
        a = rng.normal(size=shape).astype(np.float32)
        np.testing.assert_allclose(f(a), a @ a.T, rtol=1e-4, atol=1e-3)


def test_a_host_call_follows_the_size():
    f, log = traced(lambda x: jnp.linalg.cholesky(x @ x.T + 10 * jnp.eye(x.shape[0])))
    for n in (2, 3, 7, 4):
        x = np.random.default_rng(n).normal(size=(n, n)).astype(np.float32)
        np.testing.assert_allclose(
            f(x), np.linalg.cholesky(x @ x.T + 10 * np.eye(n)), rtol=1e-4, atol=1e-4
        )
    assert len(log) == 2


def test_one_thousand_sizes_compile_nothing():
    f, log = traced(lambda x: jnp.tanh(x) * 2 + x.max())
    f(np.ones(3)), f(np.ones(4))
    family = next(iter(function_of(f).cache.families.values()))
    entries = len(family.programs)
    for n in range(5, 1005, 7):
        f(np.ones(n))
    assert len(log) == 2 and len(family.programs) == entries == 1


def test_trees_and_keywords():
    f = jax.jit(lambda p, *, scale: {"y": p["w"] * scale, "n": p["b"].sum()})
    for n in (3, 5, 8, 9):
        out = f({"w": np.ones((n, 2)), "b": np.ones(n)}, scale=2.0)
        assert out["y"].shape == (n, 2) and float(out["n"]) == n


def test_an_error_is_that_of_static_sizes():
    f = jax.jit(lambda x: x.reshape(3, 4))
    assert f(np.ones(12)).shape == (3, 4)
    with pytest.raises(TypeError, match=r"cannot reshape array of shape \(13,\)"):
        f(np.ones(13))
