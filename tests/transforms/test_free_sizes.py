"""A sample of `tests.free_sizes`: programs for every size against programs for one."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from tests.free_sizes import FUNCTIONS, chain, compare

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
    compare(chain(rng)[1], 1, rng, FEW)


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
    lambda x: (jnp.asarray(x.shape[0]), jnp.array([x.shape[0], 1]), jnp.float32(0) + jnp.asarray(x.shape[0], "int16")),
    lambda x: lax.dynamic_slice(x, (jnp.argmax(x),), (x.shape[0] // 2,)),
    lambda x: lax.dynamic_slice_in_dim(x, -3, 2),
    lambda x: jax.random.permutation(jax.random.key(1), x),
    lambda x: jnp.take_along_axis(jnp.outer(x, x), jnp.argsort(x)[:, None], 0),
    lambda x: jnp.fill_diagonal(jnp.outer(x, x), x[:2], inplace=False),
    lambda x: jax.nn.dot_product_attention(*[x[None, :, None, None]] * 3, is_causal=True),
    lambda x: jnp.interp(x, jnp.sort(x), x),
]


@pytest.mark.parametrize("f", STAYS_FREE)
def test_what_needs_no_number_is_traced_twice(f):
    both = compare(lambda x, y: f(x), 1, np.random.default_rng(0), (20, 33, 64, 100, 7))
    assert both.traces == 2 and both.entries() == 1
