"""The values of every distribution: the same as JAX's for the same key."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random
from tests.peers import compare, jax, processor_flags


def F(*x):
    return np.array(x, np.float32)


def I(*x):
    return np.array(x, np.int32)


GRID = np.arange(12, dtype=np.float32).reshape(4, 3)
COV = F([2, 0.5], [0.5, 1])

CASES: list[tuple[str, dict[str, Any]]] = [
    ("uniform", {"shape": (3, 2)}),
    ("uniform", {"shape": (5,), "dtype": "float16"}),
    ("uniform", {"shape": (5,), "dtype": "bfloat16"}),
    ("uniform", {"minval": 2, "maxval": 5.0}),
    ("uniform", {"shape": (2, 3), "minval": F(1, 2, 3), "maxval": 10}),
    ("normal", {"shape": (7,)}),
    ("normal", {"shape": (4,), "dtype": "complex64"}),
    ("bits", {"shape": (5,)}),
    ("bits", {"shape": (5,), "dtype": "uint8"}),
    ("bits", {"shape": (3, 3), "dtype": "uint16"}),
    ("randint", {"shape": (9,), "minval": 0, "maxval": 10}),
    ("randint", {"shape": (9,), "minval": -1000, "maxval": 1000, "dtype": "int8"}),
    ("randint", {"shape": (9,), "minval": 0, "maxval": 256, "dtype": "uint8"}),
    ("randint", {"shape": (2, 3), "minval": I(0, 5, 9), "maxval": I(10, 6, 8)}),
    ("randint", {"shape": (9,), "minval": 0, "maxval": 2**31 - 1}),
    ("randint", {"shape": (4,), "minval": 0, "maxval": 10, "dtype": "uint32"}),
    ("permutation", {"x": 10}),
    ("permutation", {"x": 0}),
    ("permutation", {"x": GRID}),
    ("permutation", {"x": GRID, "axis": 1, "independent": True}),
    ("choice", {"a": 5, "shape": (4,)}),
    ("choice", {"a": 5, "shape": (4,), "replace": False}),
    ("choice", {"a": 5, "shape": (4,), "p": F(0.1, 0.2, 0.3, 0.2, 0.2)}),
    ("choice", {"a": 5, "shape": (2,), "replace": False, "p": F(0.1, 0.2, 0.3, 0.2, 0.2)}),
    ("choice", {"a": GRID, "shape": (2, 2)}),
    ("choice", {"a": GRID, "shape": (2,), "axis": 1, "replace": False}),
    ("bernoulli", {"shape": (9,)}),
    ("bernoulli", {"p": F(0.1, 0.5, 0.9)}),
    ("bernoulli", {"p": 0.3, "shape": (6,), "mode": "high"}),
    ("categorical", {"logits": F([0, 1, 2], [1, 1, 1]), "axis": 0, "shape": (4, 3)}),
    ("categorical", {"logits": F([0, 1, 2], [1, 1, 1]), "shape": (2, 2), "replace": False}),
    ("categorical", {"logits": F(0, 1, 2), "shape": (5,), "mode": "high"}),
    ("gumbel", {"shape": (6,)}),
    ("gumbel", {"shape": (6,), "mode": "high"}),
    ("gumbel", {"shape": (6,), "dtype": "bfloat16", "mode": "high"}),
    ("gumbel", {"shape": (40,), "mode": "highest"}),
    ("gumbel", {"shape": (6,), "dtype": "bfloat16", "mode": "highest"}),
    ("categorical", {"logits": F(0, 1, 2), "shape": (5,), "mode": "highest"}),
    ("exponential", {"shape": (6,)}),
    ("laplace", {"shape": (6,)}),
    ("logistic", {"shape": (6,)}),
    ("cauchy", {"shape": (6,)}),
    ("pareto", {"b": F(1, 2), "shape": (3, 2)}),
    ("rayleigh", {"scale": I(1, 2)}),
    ("weibull_min", {"scale": 2.0, "concentration": 3.0, "shape": (3,)}),
    ("truncated_normal", {"lower": F(-1, 0), "upper": 2}),
    ("rademacher", {"shape": (5,)}),
    ("gamma", {"a": F(0.1, 0.5, 1, 3, 50)}),
    ("gamma", {"a": I(1, 2), "shape": (3, 2)}),
    ("gamma", {"a": 2.5, "shape": (3,), "dtype": "float16"}),
    ("loggamma", {"a": F(0.001, 0.5, 1, 3, 50)}),
    ("beta", {"a": 1.5, "b": F(0.2, 3), "shape": (4, 2)}),
    ("dirichlet", {"alpha": F(0.5, 1, 2), "shape": (2,)}),
    ("poisson", {"lam": F(0, 0.5, 3, 20, 1000)}),
    ("poisson", {"lam": 25.0, "shape": (9,)}),
    ("t", {"df": 3.0, "shape": (4,)}),
    ("chisquare", {"df": F(1, 4)}),
    ("f", {"dfnum": 2.0, "dfden": F(3, 5)}),
    ("geometric", {"p": F(0.1, 0.9)}),
    ("binomial", {"n": F(5, 100, 1000, 0), "p": F(0.9, 0.5, 0.2, 0.3)}),
    ("binomial", {"n": F(5, -1, np.nan, np.inf), "p": F(-1, 0.5, 0.2, 0.3)}),
    ("multinomial", {"n": F(4, 9), "p": F([0.2, 0.3, 0.5], [0.1, 0.1, 0.8])}),
    ("multivariate_normal", {"mean": F(1, 2), "cov": COV, "shape": (3,)}),
    ("multivariate_normal", {"mean": F(1, 2), "cov": COV, "method": "eigh"}),
    ("multivariate_normal", {"mean": F(1, 2), "cov": COV, "method": "svd"}),
    ("ball", {"d": 3, "p": 1.5, "shape": (2,)}),
    ("orthogonal", {"n": 3, "shape": (2,)}),
    ("orthogonal", {"n": 2, "m": 3, "dtype": "complex64"}),
    ("double_sided_maxwell", {"loc": F(1, 2), "scale": 2.0, "shape": (3,)}),
    ("maxwell", {"shape": (4,)}),
    ("wald", {"mean": F(1, 2)}),
    ("triangular", {"left": 0.0, "mode": 0.25, "right": 1.0, "shape": (5,)}),
    ("lognormal", {"sigma": 0.5, "shape": (4,)}),
    ("generalized_normal", {"p": 1.5, "shape": (4,)}),
]
CASES = [c for c in CASES if hasattr(random, c[0])]


@pytest.fixture(params=[True, False], ids=["partitionable", "sequential"])
def partitionable(request: pytest.FixtureRequest) -> Iterator[bool]:
    peer = jax()
    before = peer.config.jax_threefry_partitionable
    peer.config.update("jax_threefry_partitionable", request.param)
    with calque.config.override("calque_threefry_partitionable", request.param):
        yield request.param
    peer.config.update("jax_threefry_partitionable", before)


SEQUENTIAL = {"bits", "uniform", "permutation", "randint", "poisson"}


@pytest.mark.peer
@pytest.mark.parametrize("name, kw", CASES, ids=[f"{n}-{'-'.join(kw)}" for n, kw in CASES])
def test_values(name: str, kw: dict[str, Any], partitionable: bool) -> None:
    if not partitionable and name not in SEQUENTIAL:
        pytest.skip("the order of bits is tested with few distributions")
    want = getattr(jax().random, name)(jax().random.key(42), **kw)
    compare(getattr(random, name)(random.PRNGKey(42), **kw), want, 1e-5, weak=True)
    arrays = {k: v for k, v in kw.items() if isinstance(v, np.ndarray)} if partitionable else {}
    rest = {k: v for k, v in kw.items() if k not in arrays}
    draw = calque.jit(lambda key, arrays: getattr(random, name)(key, **arrays, **rest))
    compare(draw(random.key(42), arrays), want, 1e-5)


@pytest.mark.peer
@pytest.mark.skipif("fma" not in processor_flags(), reason="XLA has other bits without FMA")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_normal_numbers_are_the_same_bits(dtype: str) -> None:
    for seed, shape in ((0, (100_003,)), (1, (30, 31)), (2, (5,))):
        want = np.asarray(jax().random.normal(jax().random.key(seed), shape, dtype))
        draw = calque.jit(lambda key, shape=shape: random.normal(key, shape, dtype))
        for got in (random.normal(random.key(seed), shape, dtype), draw(random.key(seed))):
            assert np.asarray(got).tobytes() == want.tobytes()


@pytest.mark.peer
@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_generators(impl: str) -> None:
    peer = jax().random
    ours, theirs = random.key(7, impl=impl), peer.key(7, impl=impl)
    compare(random.key_data(random.split(ours, 3)), peer.key_data(peer.split(theirs, 3)))
    compare(random.key_data(random.fold_in(ours, 5)), peer.key_data(peer.fold_in(theirs, 5)))
    for name, kw in (
        ("uniform", {"shape": (5,)}),
        ("bits", {"shape": (3,), "dtype": "uint8"}),
        ("gamma", {"a": 2.0, "shape": (3,)}),
    ):
        compare(getattr(random, name)(ours, **kw), getattr(peer, name)(theirs, **kw), 1e-5)


@pytest.mark.peer
def test_derivatives() -> None:
    peer, a = jax(), F(0.3, 1, 5)
    for name in ("gamma", "loggamma", "beta"):
        more = (2.0,) if name == "beta" else ()
        ours = calque.grad(
            lambda a, n=name, m=more: (getattr(random, n)(random.key(3), a, *m) ** 2).sum()
        )(a)
        want = peer.grad(
            lambda a, n=name, m=more: (
                getattr(peer.random, n)(peer.random.key(3), a, *m) ** 2
            ).sum()
        )(a)
        compare(ours, want, 2e-4)


@pytest.mark.peer
def test_many_keys_at_once() -> None:
    peer = jax()
    keys, theirs = random.split(random.key(1), 4), peer.random.split(peer.random.key(1), 4)
    for name, args in (
        ("normal", ((2,),)),
        ("gamma", (2.0,)),
        ("poisson", (3.0,)),
        ("permutation", (5,)),
        ("randint", ((2,), 0, 9)),
    ):
        got = calque.vmap(lambda k, n=name, a=args: getattr(random, n)(k, *a))(keys)
        compare(
            got, peer.vmap(lambda k, n=name, a=args: getattr(peer.random, n)(k, *a))(theirs), 1e-5
        )


REFUSED: list[tuple[type[Exception], Any]] = [
    (ValueError, lambda k: random.uniform(k, (2,), int)),
    (ValueError, lambda k: random.normal(k, (2,), int)),
    (TypeError, lambda k: random.randint(k, (2,), 0, 5, float)),
    (ValueError, lambda k: random.bits(k, (2,), int)),
    (ValueError, lambda k: random.choice(k, 3, (5,), replace=False)),
    (ValueError, lambda k: random.choice(k, 3, (5,), p=np.ones(4, np.float32))),
    (TypeError, lambda k: random.permutation(k, 2.5)),
    (ValueError, lambda k: random.gumbel(k, (2,), mode="medium")),
    (ValueError, lambda k: random.bernoulli(k, 0.5, mode="medium")),
    (ValueError, lambda k: random.gamma(k, np.ones(3, np.float32), (2,))),
    (
        ValueError,
        lambda k: random.categorical(k, np.ones(3, np.float32), shape=(4,), replace=False),
    ),
    (ValueError, lambda k: random.uniform(random.split(k), (2,))),
    (TypeError, lambda k: random.uniform(3, (2,))),
    (TypeError, lambda k: random.uniform(k, "abc")),
    (ValueError, lambda k: random.dirichlet(k, 1.0)),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_bad_arguments(case: int) -> None:
    error, call = REFUSED[case]
    with pytest.raises(error):
        call(random.key(0))


def test_arguments_that_are_refused():
    key = random.key(0)
    with pytest.raises(TypeError, match="integer dtype"):
        random.randint(key, (3,), 0, 10, "float32")
    for p in (1, np.array([True])):
        with pytest.raises(TypeError, match="floating"):
            random.bernoulli(key, p)
    with pytest.raises(OverflowError, match="-1"):
        random.fold_in(key, -1)


@pytest.mark.parametrize(("shape", "parameters", "result"), [((), (), ()), ((2,), (), (2,)), ((),
(3,), (3, 3)), ((3,), (3,), (3, 3)), ((2,), (3,), (2, 3))])  # fmt: skip
def test_double_sided_maxwell_has_a_shape_for_each_parameter(shape, parameters, result):
    loc = np.zeros(parameters, np.float32)
    got = random.double_sided_maxwell(random.key(1), loc, 1.0, shape)
    assert got.shape == result
    peer = jax().random
    np.testing.assert_allclose(
        got, peer.double_sided_maxwell(peer.key(1), loc, 1.0, shape), rtol=1e-4
    )


def test_the_inverse_of_a_concentration_is_rounded_as_that() -> None:
    """A result of double numbers has JAX's for parameters of single ones."""
    scale, concentration = F(0.3, 1.7, 2.2, 0.9), F(0.9, 2.2, 1.7, 0.3)
    with calque.enable_x64(True):
        out = random.weibull_min(random.key(51), scale, concentration, dtype="float64")
    want = [
        "0x1.295fb0a1c9c82p-6", "0x1.14478c0646b30p-1",
        "0x1.fe3cf5f9b142fp-2", "0x1.a1fb45b10e835p-13",
    ]  # fmt: skip
    np.testing.assert_allclose(out, [float.fromhex(x) for x in want], rtol=1e-15)
    for nothing in (0, 0.0, jnp.array(0)):
        assert np.isinf(random.weibull_min(random.key(0), 1.0, nothing, (2,))).all()
