"""What is drawn has the distribution that its name says, at fixed keys: by Kolmogorov and Smirnov's
test where it is continuous, by the chi-squared test where it is discrete.

That values are JAX's is tested elsewhere; a fault that both share is seen here. A right sampler
gives a smaller p-value than `FEWEST` for one key in ten thousand: a failure at these is a fault."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import calque
import calque.numpy as jnp
from calque import random

FEWEST = 1e-4
N = 20_000
Cdf = Callable[[Any], Any]


def key(seed: int = 2024) -> Any:
    return random.key(seed)


def continuous(x: Any, cdf: Cdf, low: float = -np.inf, high: float = np.inf) -> float:
    """The p-value of values under a distribution. What is not between `low` and `high` counts as
    that many values and is not looked at: there the dtype has no numbers to tell them apart."""
    x = np.sort(np.asarray(x, np.float64).ravel())
    n = x.size
    assert np.isfinite(x).all()
    seen = (x > low) & (x < high)
    rank, expected = np.arange(n)[seen], cdf(x[seen])
    assert rank.size > 100
    distance = max(np.max((rank + 1) / n - expected), np.max(expected - rank / n))
    return float(stats.kstwo.sf(distance, n))


def discrete(counts: Any, probabilities: Any) -> float:
    """The p-value of how often each outcome was seen; rare ones are put together."""
    counts, expected = np.asarray(counts, float), np.asarray(probabilities, float)
    expected = expected * counts.sum()
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert not counts[expected == 0].any()
    counts, expected = counts[expected > 0], expected[expected > 0]
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), counts.size - 1))


def counted(x: Any, outcomes: int) -> Any:
    """How often each of the numbers from 0 on was drawn; the last one stands for all above."""
    x = np.asarray(x).ravel().astype(np.int64)
    assert x.min() >= 0
    return np.bincount(np.minimum(x, outcomes - 1), minlength=outcomes)


def of_counts(distribution: Any, outcomes: int) -> Any:
    """Probabilities of the numbers from 0 on; the last one stands for all above."""
    p = distribution.pmf(np.arange(outcomes - 1))
    return np.append(p, max(1 - p.sum(), 0))


# ---------------------------------------------------------------- continuous distributions


def loggamma_cdf(a: float) -> Cdf:
    """The logarithm of what is so small that it is no number itself follows x^a / a!."""

    def cdf(x: Any) -> Any:
        small = np.exp(a * np.minimum(x, -30) - special.gammaln(a + 1))
        return np.where(x < -30, small, special.gammainc(a, np.exp(np.maximum(x, -30))))

    return cdf


def two_sided_maxwell(loc: float, scale: float) -> Cdf:
    def cdf(x: Any) -> Any:
        z = (x - loc) / scale
        return 0.5 + np.sign(z) * stats.maxwell.cdf(np.abs(z)) / 2

    return cdf


# name, parameters of several draws, and the cdf for them
CONTINUOUS: list[tuple[str, list[tuple[float, ...]], Callable[..., Cdf]]] = [
    ("uniform", [(), (-3.0, 5.0)], lambda a=0.0, b=1.0: stats.uniform(a, b - a).cdf),
    ("normal", [()], lambda: stats.norm.cdf),
    ("truncated_normal", [(-1.0, 2.0), (1.5, 4.0)], lambda a, b: stats.truncnorm(a, b).cdf),
    ("exponential", [()], lambda: stats.expon.cdf),
    ("gumbel", [()], lambda: stats.gumbel_r.cdf),
    ("laplace", [()], lambda: stats.laplace.cdf),
    ("logistic", [()], lambda: stats.logistic.cdf),
    ("cauchy", [()], lambda: stats.cauchy.cdf),
    ("pareto", [(0.7,), (5.0,)], lambda b: stats.pareto(b).cdf),
    ("rayleigh", [(0.3,), (4.0,)], lambda s: stats.rayleigh(scale=s).cdf),
    (
        "weibull_min",
        [(1.0, 0.4), (3.0, 2.5)],
        lambda scale, c: stats.weibull_min(c, scale=scale).cdf,
    ),
    ("maxwell", [()], lambda: stats.maxwell.cdf),
    ("double_sided_maxwell", [(0.0, 1.0), (-2.0, 3.0)], two_sided_maxwell),
    ("wald", [(0.2,), (1.0,), (20.0,)], lambda mean: stats.invgauss(mean).cdf),
    (
        "triangular",
        [(0.0, 0.2, 1.0), (-2.0, 2.0, 3.0)],
        lambda a, m, b: stats.triang((m - a) / (b - a), a, b - a).cdf,
    ),
    ("lognormal", [(0.25,), (1.5,)], lambda s: stats.lognorm(s).cdf),
    ("gamma", [(0.03,), (0.3,), (1.0,), (2.5,), (700.0,)], lambda a: stats.gamma(a).cdf),
    ("loggamma", [(0.001,), (0.2,), (1.0,), (30.0,)], loggamma_cdf),
    (
        "beta",
        [(0.05, 0.08), (0.5, 0.5), (1.0, 3.0), (40.0, 7.0)],
        lambda a, b: stats.beta(a, b).cdf,
    ),
    ("chisquare", [(0.4,), (1.0,), (9.0,)], lambda df: stats.chi2(df).cdf),
    ("f", [(1.5, 3.0), (10.0, 20.0)], lambda a, b: stats.f(a, b).cdf),
    ("t", [(0.8,), (3.0,), (50.0,)], lambda df: stats.t(df).cdf),
    ("generalized_normal", [(0.5,), (2.0,), (8.0,)], lambda p: stats.gennorm(p).cdf),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name, _, _ in CONTINUOUS])
def test_continuous(name: str, dtype: str) -> None:
    ((_, given, cdf_of),) = [case for case in CONTINUOUS if case[0] == name]
    sampler = getattr(random, name)
    info = np.finfo(dtype)
    high = 1 - float(info.eps) if name == "beta" else np.inf
    low = -np.inf if (cdf_of() if not given[0] else cdf_of(*given[0]))(-0.01) > 0 else info.tiny
    with calque.enable_x64(dtype == "float64"):
        for turn, values in enumerate(given):
            k = random.fold_in(key(), turn)
            if name == "uniform":
                x = sampler(k, (N,), dtype, *values)
            else:
                x = sampler(k, *(jnp.asarray(v, dtype) for v in values), shape=(N,), dtype=dtype)
            assert x.dtype == dtype
            p = continuous(x, cdf_of(*values), float(low), high)
            assert p > FEWEST, (values, p)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_uniform_numbers_and_normal_ones(dtype: str) -> None:
    """On the grid of what the dtype can say: in eight parts of the same probability."""
    for name, distribution in (("uniform", stats.uniform), ("normal", stats.norm)):
        x = np.asarray(getattr(random, name)(key(), (N,), dtype), np.float64)
        ends = distribution.ppf(np.arange(1, 8) / 8)
        step = 2.0**-7  # a rounded end moves a part by no more than a step of the grid
        at = np.searchsorted(ends, x + step / 4)
        assert np.abs(np.bincount(at, minlength=8) / N - 1 / 8).max() < 0.012


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_normal_numbers(dtype: str) -> None:
    with calque.enable_x64(dtype == "complex128"):
        z = np.asarray(random.normal(key(), (N,), dtype))
    assert continuous(np.abs(z) ** 2, stats.expon.cdf) > FEWEST
    assert continuous(np.angle(z), stats.uniform(-np.pi, 2 * np.pi).cdf) > FEWEST


def test_several_numbers_at_once() -> None:
    """What depends on each other: each coordinate by itself, and their sums and lengths."""
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    for method in ("cholesky", "eigh", "svd"):
        x = np.asarray(random.multivariate_normal(key(), mean, cov, (N,), method=method))
        z = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
        assert continuous(z, stats.norm.cdf) > FEWEST
        assert continuous((z**2).sum(0), stats.chi2(2).cdf) > FEWEST
        assert continuous(z.sum(0) / np.sqrt(2), stats.norm.cdf) > FEWEST
    alpha = np.array([0.3, 1.0, 4.0])
    d = np.asarray(random.dirichlet(key(), alpha, (N,)))
    np.testing.assert_allclose(d.sum(1), 1, rtol=1e-5)
    for k, a in enumerate(alpha):
        assert continuous(d[:, k], stats.beta(a, alpha.sum() - a).cdf, 1e-30, 1 - 1e-6) > FEWEST
    for d_, p in ((2, 2.0), (5, 2.0), (3, 1.0)):
        b = np.asarray(random.ball(key(), d_, p, (N,)))
        lengths = (np.abs(b) ** p).sum(1) ** (1 / p)
        assert continuous(lengths**d_, stats.uniform.cdf) > FEWEST
        assert discrete(counted((b > 0) @ 2 ** np.arange(d_), 2**d_), np.full(2**d_, 2.0**-d_)) > (
            FEWEST
        )


def test_orthogonal_matrices() -> None:
    q = np.asarray(random.orthogonal(key(), 4, (3000,)))
    np.testing.assert_allclose(
        q @ q.transpose(0, 2, 1), np.eye(4) * np.ones((3000, 1, 1)), atol=1e-5
    )
    for i in range(4):
        for j in range(4):
            assert continuous(q[:, i, j] ** 2, stats.beta(0.5, 1.5).cdf) > FEWEST
    assert discrete(counted(np.linalg.det(q) > 0, 2), [0.5, 0.5]) > FEWEST
    assert discrete(counted(q[:, 0, 0] > 0, 2), [0.5, 0.5]) > FEWEST


# ---------------------------------------------------------------- discrete distributions


def test_yes_or_no() -> None:
    for turn, p in enumerate((0.5, 0.01, 0.93)):
        for mode in ("low", "high"):
            x = random.bernoulli(random.fold_in(key(), turn), p, (N,), mode=mode)
            assert discrete(counted(x, 2), [1 - p, p]) > FEWEST
    x = np.asarray(random.rademacher(key(), (N,)))
    assert discrete(counted((x + 1) // 2, 2), [0.5, 0.5]) > FEWEST
    assert set(np.unique(x)) == {-1, 1}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_integers(dtype: str) -> None:
    """In ranges that are no powers of two, and in the largest ones."""
    with calque.enable_x64("64" in dtype):
        x = random.randint(key(), (N,), 3, 104, dtype)
        assert discrete(counted(np.asarray(x, np.int64) - 3, 101), np.full(101, 1 / 101)) > FEWEST
        info = np.iinfo(dtype)
        x = random.randint(key(7), (N,), *np.array([info.min, info.max], dtype), dtype)
        parts = (np.asarray(x).astype(float) - info.min) / (float(info.max) - info.min)
        assert continuous(parts, stats.uniform.cdf, 0.02, 0.98) > FEWEST or info.bits == 8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, p", [(7, 0.3), (40, 0.02), (100, 0.5), (1000, 0.98), (100_000, 0.001)])
def test_binomial(n: int, p: float, dtype: str) -> None:
    with calque.enable_x64(dtype == "float64"):
        x = random.binomial(key(), n, p, (N,), dtype)
    assert discrete(counted(x, n + 1), stats.binom(n, p).pmf(np.arange(n + 1))) > FEWEST


@pytest.mark.parametrize("rate", [0.05, 1.0, 9.5, 10.5, 300.0, 3e4, 1e6])
def test_poisson(rate: float) -> None:
    x = np.asarray(random.poisson(key(), rate, (N,)))
    middle = int(max(0, rate - 2000))  # numbers of a million are counted in hundreds
    wide = 100 if rate > 1e4 else 1
    outcomes = int(rate - middle + 10 * rate**0.5) // wide + 8
    ends = middle + wide * np.arange(1, outcomes)
    cdf = stats.poisson(rate).cdf(ends - 1)
    assert (
        discrete(counted(np.maximum(x - middle, 0) // wide, outcomes), np.diff([0, *cdf, 1]))
        > FEWEST
    )


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_geometric(p: float) -> None:
    outcomes = int(20 / p) + 2
    x = random.geometric(key(), p, (N,))
    assert discrete(counted(x, outcomes), of_counts(stats.geom(p), outcomes)) > FEWEST


def test_multinomial() -> None:
    p = np.array([0.1, 0.25, 0.05, 0.6])
    x = np.asarray(random.multinomial(key(), 12, p, shape=(N, 4)))
    assert (x.sum(1) == 12).all()
    for k in range(4):
        assert discrete(counted(x[:, k], 13), stats.binom(12, p[k]).pmf(np.arange(13))) > FEWEST
    assert discrete(x.sum(0), p) > FEWEST


@pytest.mark.parametrize("rate", [2e4, 1e5, 1e6, 1e7, 1e8])
def test_poisson_of_large_rates(rate: float) -> None:
    """The variance, which a rounded test of acceptance changes; of a normal distribution nearly."""
    n = 200_000
    z = (np.asarray(random.poisson(key(), rate, (n,)), float) - rate) / rate**0.5
    assert abs(z.mean()) * n**0.5 < 4
    assert abs(z.var() - 1) * (n / 2) ** 0.5 < 4


P = np.array([0.05, 0.2, 0.45, 0.3])


def pairs_without_replacement(p: Any) -> Any:
    """Probabilities of the first two, drawn one after the other."""
    return [p[i] * p[j] / (1 - p[i]) if i != j else 0.0 for i in range(4) for j in range(4)]


def test_categories() -> None:
    logits = np.log(P)
    for mode in ("low", "high"):
        x = random.categorical(key(), logits, shape=(N,), mode=mode)
        assert discrete(counted(x, 4), P) > FEWEST
    x = np.asarray(random.categorical(key(), np.tile(logits, (N, 1)), shape=(2, N), replace=False))
    assert discrete(counted(4 * x[0] + x[1], 16), pairs_without_replacement(P)) > FEWEST


def test_choices() -> None:
    assert discrete(counted(random.choice(key(), 37, (N,)), 37), np.full(37, 1 / 37)) > FEWEST
    assert discrete(counted(random.choice(key(), 4, (N,), p=P), 4), P) > FEWEST
    keys = random.split(key(), N)
    for p in (None, P):
        x = calque.vmap(lambda k: random.choice(k, 4, (2,), replace=False, p=p))(keys)
        expected = pairs_without_replacement(np.full(4, 0.25) if p is None else P)
        assert discrete(counted(4 * x[:, 0] + x[:, 1], 16), expected) > FEWEST


def test_permutations() -> None:
    """Each of 24 is as likely as the others, and so is each place of a longer one."""
    x = np.asarray(calque.vmap(lambda k: random.permutation(k, 4))(random.split(key(), N)))
    number = counted(x @ np.array([64, 16, 4, 1]), 256)
    seen = number[number > 0]
    assert seen.size == 24 and discrete(seen, np.full(24, 1 / 24)) > FEWEST
    x = np.asarray(calque.vmap(lambda k: random.permutation(k, 50))(random.split(key(3), 4000)))
    for place in (0, 17, 49):
        assert discrete(counted(x[:, place], 50), np.full(50, 1 / 50)) > FEWEST
    rows = np.asarray(random.permutation(key(), np.tile(np.arange(4), (N, 1)), 1, independent=True))
    assert discrete(
        counted(rows @ np.array([64, 16, 4, 1]), 256)[number > 0], np.full(24, 1 / 24)
    ) > (FEWEST)


# ---------------------------------------------------------------- bits and keys


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_every_bit_is_one_half_of_the_time(width: int, impl: str) -> None:
    """And so is the parity of every two neighbours, and every byte."""
    with calque.enable_x64(width == 64):
        x = np.asarray(random.bits(random.key(5, impl=impl), (N,), f"uint{width}"))
    bits = np.unpackbits(x.view(np.uint8).reshape(N, -1), axis=1)
    for each in (bits, bits[:, 1:] ^ bits[:, :-1], bits[1:] ^ bits[:-1]):
        ones, n = each.sum(0, dtype=np.int64), each.shape[0]
        assert (2 * stats.norm.sf(np.abs(ones - n / 2) / np.sqrt(n / 4))).min() > FEWEST / width
    assert discrete(counted(x.view(np.uint8), 256), np.full(256, 1 / 256)) > FEWEST


def independent(rows: Sequence[Any]) -> None:
    """Uniform numbers of several streams: none goes with another one, at the same place, at the
    next, or as a pair in the square."""
    u = np.array(rows, np.float64)
    z = stats.norm.ppf(np.clip(u, 1e-9, 1 - 1e-9))
    n = z.shape[1]
    tests = u.shape[0] ** 2
    for shift in (0, 1):
        r = (z @ np.roll(z, shift, 1).T) / n
        if shift == 0:
            r -= np.eye(len(r)) * r
        assert (2 * stats.norm.sf(np.abs(r) * np.sqrt(n))).min() > FEWEST / tests
    for a, b in itertools.pairwise(u):
        assert discrete(
            counted((8 * a).astype(int) * 8 + (8 * b).astype(int), 64), np.full(64, 1 / 64)
        ) > (FEWEST / len(u))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_streams_of_different_keys_are_independent(impl: str) -> None:
    root = random.key(11, impl=impl)
    split = list(random.split(root, 8))
    folded = [random.fold_in(root, k) for k in (0, 1, 2, 255, 256, 2**31)]
    seeds = [random.key(s, impl=impl) for s in (0, 1, 2, 3, 2**16, 2**31)]
    children = [random.split(k)[1] for k in split[:3]]
    independent([random.uniform(k, (4000,)) for k in (root, *split, *children)])
    independent([random.uniform(k, (4000,)) for k in (root, *folded)])
    independent([random.uniform(k, (4000,)) for k in seeds])


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("made", ["split", "fold_in", "key", "chain"])
def test_one_number_of_many_keys_is_uniform(made: str, impl: str) -> None:
    """As programs draw that have a key for each step or each lane."""
    root = random.key(0, impl=impl)
    if made == "split":
        keys = random.split(root, N)
    elif made == "fold_in":
        keys = calque.vmap(lambda k: random.fold_in(root, k))(jnp.arange(N))
    elif made == "key":
        keys = calque.vmap(lambda s: random.key(s, impl=impl))(jnp.arange(N))
    else:
        step = lambda k, _: tuple(random.split(k))  # noqa: E731
        keys = calque.lax.scan(step, root, length=N)[1]
    u = np.asarray(calque.vmap(random.uniform)(keys))
    assert continuous(u, stats.uniform.cdf) > FEWEST
    independent(u.reshape(-1, 4).T)


def test_numbers_of_one_stream_are_independent() -> None:
    z = np.asarray(random.normal(key(), (64_000,)), np.float64)
    spectrum = np.abs(np.fft.fft(z)) ** 2
    lags = np.fft.ifft(spectrum).real[1:200] / z.size
    assert (2 * stats.norm.sf(np.abs(lags) * np.sqrt(z.size))).min() > FEWEST / 200
    assert continuous(spectrum[1 : z.size // 2] / z.size, stats.expon.cdf) > FEWEST
