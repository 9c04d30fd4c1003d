"""A sample of `tests.free_sizes`: programs for every size against programs for one."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.native.plan import program as plan_program
from calque.transforms.jit.function import function_of
from tests.free_sizes import FUNCTIONS, chain, compare
from tests.shared import OWN_ENGINE

FEW = (0, 1, 3, 17, 64)
SAMPLE = np.random.default_rng(7)
NAMES = [
    (rank, str(name))
    for rank, n in ((1, 14), (2, 8))
    for name in SAMPLE.choice(list(FUNCTIONS[rank]), n, replace=False)
]


@pytest.mark.parametrize(("rank", "name"), NAMES)
def test_functions(rank, name):
    compare(FUNCTIONS[rank][name], rank, np.random.default_rng(1), FEW)


@pytest.mark.parametrize("seed", range(8))
def test_chains(seed):
    rng = np.random.default_rng(seed)
    compare(chain(rng)[1], 1, rng, FEW, exact=True)


STAYS_FREE = [
    lambda x: jnp.pad(x, (2, 1), mode="wrap"),
    lambda x: jnp.pad(x, (2, 1), mode="symmetric"),
    lambda x: (jnp.trace(jnp.outer(x, x)), jnp.diag(jnp.outer(x, x))),
    lambda x: x.at[::2].set(0.0),
    lambda x: jnp.searchsorted(jnp.sort(x), x),
    lambda x: jnp.bincount(jnp.abs(x).astype(int), length=x.shape[0]),
    lambda x: jnp.fft.irfft(jnp.fft.rfft(x), x.shape[0]),
    lambda x: (jnp.fft.fftfreq(x.shape[0]), jnp.fft.rfftfreq(x.shape[0], 0.5)),
    lambda x: lax.top_k(x, 2),
    lambda x: jnp.split(x, [2, 3]),
    lambda x: jnp.cov(x),
    lambda x: jnp.polyval(x, 0.5),
    lambda x: jnp.polyval(jnp.array([1.0, 2.0]), x),
    lambda x: (
        jnp.asarray(x.shape[0]),
        jnp.array([x.shape[0], 1]),
        jnp.float32(0) + jnp.asarray(x.shape[0], "int16"),
    ),
    lambda x: lax.dynamic_slice(x, (jnp.argmax(x),), (x.shape[0] // 2,)),
    lambda x: lax.dynamic_slice_in_dim(x, -3, 2),
    lambda x: jax.random.permutation(jax.random.key(1), x),
    lambda x: jnp.take_along_axis(jnp.outer(x, x), jnp.argsort(x)[:, None], 0),
    lambda x: jnp.fill_diagonal(jnp.outer(x, x), x[:2], inplace=False),
    lambda x: jax.nn.dot_product_attention(*[x[None, :, None, None]] * 3, is_causal=True),
    lambda x: jnp.interp(x, jnp.sort(x), x),
    lambda x: jnp.linalg.slogdet(jnp.outer(x, x) + jnp.eye(x.shape[0])),
    lambda x: jnp.einsum("i,ij,jk->k", x, jnp.outer(x, x), jnp.outer(x, jnp.ones(3))),
]


@pytest.mark.parametrize("f", STAYS_FREE)
def test_what_needs_no_number_is_traced_twice(f):
    both = compare(lambda x, y: f(x), 1, np.random.default_rng(0), (20, 33, 64, 100, 7))
    assert not OWN_ENGINE or (both.traces == 2 and both.entries() == 1)


def test_programs_in_host_calls_follow_the_size():
    """`solve` is a host call with programs inside: each size runs its own."""
    both = compare(
        lambda x, y: jnp.linalg.solve(x @ x.T + 9 * jnp.eye(x.shape[0]), x),
        2,
        np.random.default_rng(0),
        FEW[2:],
    )
    assert both.entries()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 47, 48, 63, 64, 65, 100, 1000])
def test_sums_of_columns_keep_their_order(n):
    """The last, incomplete block of a sum down the columns, for every number of rows in it: bit for
    bit as with fixed sizes."""
    f, g = (
        jax.jit(lambda x: x.sum(0), dynamic={0: (0, 1)}),
        jax.jit(lambda x: x.sum(0), dynamic="never"),
    )
    f(np.ones((5, 300)))
    x = np.random.default_rng(n).normal(size=(n, 200)).astype(np.float32)
    np.testing.assert_array_equal(f(x), g(x))


def test_small_products_serve_large_ones():
    """What was traced small is still computed in tiles, and its loops can be shared out."""
    f = jax.jit(lambda x, y: jnp.tanh(x @ y), dynamic={0: (0, 1), 1: (0, 1)})
    f(np.ones((2, 3)), np.ones((3, 4)))
    (family,) = function_of(f).cache.families.values()
    text = family.programs[0].executable.as_text("loops")
    assert "panels" in text and "@parallel" in text
    x, y = np.random.default_rng(0).normal(size=(2, 300, 300)).astype(np.float32)
    np.testing.assert_allclose(f(x, y), np.tanh(x @ y), atol=1e-4)


def test_long_programs_are_run_in_pieces(monkeypatch):
    monkeypatch.setattr(plan_program, "PIECE_NS", 1000)
    f = jax.jit(lambda x: jnp.exp(jnp.sin(x)), dynamic={0: 0})
    for n in (200_000, 50_000, 300_001):
        x = np.linspace(0, 1, n, dtype=np.float32)
        np.testing.assert_allclose(f(x), np.exp(np.sin(x)), rtol=1e-5)


def test_sizes_that_divide_by_nothing_get_another_program():
    f = jax.jit(
        lambda x, y: (
            x[: x.shape[0] // (y.shape[0] - 3)] * 2
            if y.shape[0] > 3 and x.shape[0] // (y.shape[0] - 3) < 9
            else x
        )
    )
    for m, n in ((8, 5), (9, 6), (12, 8), (7, 3), (40, 4), (12, 7), (2, 3)):
        x = np.arange(m, dtype=np.float32)
        got = f(x, np.ones(n))
        np.testing.assert_array_equal(
            got, x[: m // (n - 3)] * 2 if n > 3 and m // (n - 3) < 9 else x
        )


def test_a_special_size_does_not_make_all_sizes_static():
    """Traced at 2, `x[:2]` is all of x, and the size is a number; at 7 it is not."""
    traces = []

    @jax.jit
    def f(x):
        traces.append(x.shape)
        return jnp.split(x, [2])

    for n in (1, 2, 7, 8, 9, 100, 7):
        head, tail = f(np.arange(n, dtype=np.float32))
        assert head.tolist() == [0, 1][:n] and tail.tolist() == list(range(2, n))
    assert [len(set(map(type, t)) & {int}) for t in traces] == [
        1,
        0,
        1,
        0,
    ]  # 1; 2 free, then fixed; 7 and all others free


def test_parts_of_nothing():
    """What a slice of nothing reads lies outside of its array, in a loop that makes no turn."""

    def f(x, y):
        part = (x * jnp.linspace(0, 1, x.shape[0]))[1:][::2][1:].reshape(1, -1, 1).sum((0, 2))
        return part, part.sum()

    compare(f, 1, np.random.default_rng(0), (2, 3, 4, 9), exact=True)
