"""Keys that a program uses twice, found without running it; tests/transforms/functions/test_checks
has those that are found while programs run."""

import inspect

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax, random
from calque.core.config import config
from calque.errors import KeyReuseError
from calque.experimental.key_reuse._core import (
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    assert_consumed,
    assert_unconsumed,
    check_key_reuse,
    consume,
    function_type_signature,
)

KEY = random.key(0)
KEYS = random.split(KEY, 3)


@pytest.mark.parametrize(
    ("f", "signature"),
    [
        (lambda k: random.bits(k), [Sink(0)]),
        (lambda k: random.normal(k) + random.uniform(random.clone(k)), [Sink(0)]),
        (lambda k: random.split(k), [Sink(0), Source(0)]),
        (lambda k: (k, random.fold_in(k, 1)), [Forward(0, 0), Source(1)]),
        (lambda k: consume(k)[None], [Sink(0), Forward(0, 0)]),
        (lambda k: random.gamma(k, 2.0), [Sink(0)]),
        (lambda k: random.dirichlet(k, jnp.ones(3)), [Sink(0)]),
        (lambda k: jax.jit(random.split)(k), [Sink(0), Source(0)]),
        (lambda k: jax.checkpoint(random.normal)(k), [Sink(0)]),
        (lambda k: jax.grad(lambda x: jax.checkpoint(random.gamma)(k, x))(2.0), [Sink(0)]),
        (lambda k: lax.cond(True, random.normal, lambda k: 0.0, k), [Sink(0)]),
        (lambda k: lax.cond(True, lambda k: k, random.clone, k), [Source(0)]),
        (lambda k: lax.fori_loop(0, 3, lambda i, k: random.split(k)[0], k), [Sink(0), Source(0)]),
        (lambda k: lax.map(lambda i: random.normal(random.fold_in(k, i)), jnp.arange(3)), []),
    ],
)
def test_what_functions_do_to_a_key(f, signature):
    assert function_type_signature(f, KEY) == KeyReuseSignature(*signature)


@pytest.mark.parametrize(
    ("f", "mask"),
    [
        (lambda ks: random.normal(ks[1]), [False, True, False]),
        (lambda ks: random.normal(ks[0]) + random.normal(ks[-1]), [True, False, True]),
        (lambda ks: jax.vmap(random.normal)(ks[1:]), [False, True, True]),
        (lambda ks: lax.map(random.normal, ks), True),
        (lambda ks: lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, ks)[0], True),
    ],
)
def test_elements_of_an_array_of_keys_are_used_one_by_one(f, mask):
    assert function_type_signature(f, KEYS) == KeyReuseSignature(Sink(0, mask))
    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda ks: (f(ks), f(ks)), KEYS)


@pytest.mark.parametrize("make", [random.key, random.PRNGKey])
@pytest.mark.parametrize(
    "f",
    [
        lambda k: random.normal(k) + random.uniform(k),
        lambda k: (random.split(k), random.bits(k)),
        lambda k: jax.jit(random.bits)(k) + random.bits(k),
        lambda k: (
            lax.cond(True, lambda k: random.bits(k), lambda k: jnp.uint32(0), k) + random.bits(k)
        ),
        lambda k: jax.checkpoint(lambda k: random.bits(k) + random.bits(k))(k),
        lambda k: lax.scan(lambda k, _: (k, random.bits(k)), k, None, length=2),
        lambda k: lax.map(lambda x: x + random.bits(k), jnp.ones(3, "uint32")),
        lambda k: lax.while_loop(lambda x: x < random.uniform(k), lambda x: x + 1, 0.0),
        lambda k: lax.fori_loop(0, 3, lambda i, x: x + random.bits(k), jnp.uint32(0)),
    ],
)
def test_reuse_is_found_without_running(make, f):
    with pytest.raises(KeyReuseError, match=r"already consumed.*random\.split"):
        check_key_reuse(f, make(0))


def test_views_of_a_key_are_that_key():
    def f(key):
        views = key[None], key.reshape(1, 1), lax.squeeze(key[None], (0,)), jnp.array(key)
        assert_unconsumed(key)
        consume(views[1])
        for view in (key, *views):
            assert_consumed(view)

    check_key_reuse(f, KEY)
    with pytest.raises(AssertionError, match="used up are"):
        check_key_reuse(lambda key: assert_consumed(key), KEY)


def test_one_round_may_use_what_every_round_may_not():
    def once(key, n):
        return lax.scan(lambda c, _: (c + random.normal(key), None), 0.0, None, length=n)

    check_key_reuse(lambda key: once(key, 1), KEY)
    with pytest.raises(KeyReuseError, match="scan body function leads to key reuse"):
        check_key_reuse(lambda key: once(key, 2), KEY)


PLAIN = {"PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl"}
ARGUMENTS = {
    "beta": (1.0, 2.0), "binomial": (3.0, 0.5), "categorical": (jnp.zeros(3),),
    "chisquare": (2.0,), "choice": (jnp.arange(4),), "dirichlet": (jnp.ones(3),),
    "double_sided_maxwell": (0.0, 1.0), "f": (2.0, 3.0), "gamma": (2.0,),
    "generalized_normal": (2.0,), "geometric": (0.5,), "loggamma": (2.0,), "ball": (3,),
    "multinomial": (jnp.float32(3), jnp.ones(2) / 2), "orthogonal": (2,), "pareto": (2.0,),
    "multivariate_normal": (jnp.zeros(2), jnp.eye(2)), "permutation": (jnp.arange(4),),
    "poisson": (2.0,), "randint": ((), 0, 9), "rayleigh": (1.0,), "t": (2.0,),
    "triangular": (0.0, 0.5, 1.0), "truncated_normal": (0.0, 1.0), "wald": (1.0,),
    "weibull_min": (1.0, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(random.__all__) - PLAIN - {"wrap_key_data"}))
def test_every_distribution_uses_its_key_up_and_none_twice(name):
    f = getattr(random, name)
    assert inspect.isfunction(f) or callable(f)
    found = function_type_signature(lambda key: f(key, *ARGUMENTS.get(name, ())), KEY)
    assert Sink(0) in found.sinks


def test_gamma_is_one_operation_of_many_values():
    alphas = jnp.array([0.5, 2.0, 30.0])
    jaxpr = jax.make_jaxpr(jax.vmap(random.gamma))(KEYS, alphas)
    names = [e.primitive.name for e in jaxpr.eqns]
    assert [n for n in names if n != "optimization_barrier"] == ["random_gamma"]
    one_by_one = [random.gamma(k, a) for k, a in zip(KEYS, alphas)]
    np.testing.assert_array_equal(jax.vmap(random.gamma)(KEYS, alphas), np.stack(one_by_one))
    slopes = jax.grad(lambda a: jax.vmap(random.gamma)(KEYS, a).sum())(alphas)
    each = [jax.grad(random.gamma, argnums=1)(k, a) for k, a in zip(KEYS, alphas)]
    np.testing.assert_allclose(slopes, np.stack(each), rtol=1e-6)
    same_key = jax.vmap(random.gamma, in_axes=(None, 0))(KEY, alphas)
    np.testing.assert_array_equal(same_key, np.stack([random.gamma(KEY, a) for a in alphas]))


def test_keys_that_a_jitted_function_captures():
    def draws(i):
        return random.normal(KEY), random.uniform(KEYS[i]), KEYS[i]

    for got, want in zip(jax.jit(draws)(1), draws(1)):
        assert bool((got == want).all())
    with jax.config.override("calque_debug_key_reuse", True):
        key = random.key(3)
        draw = jax.jit(lambda: random.normal(key))
        draw()
        with pytest.raises(KeyReuseError, match="jit-compiled function at index 0"):
            draw()


def test_arrays_know_that_their_keys_are_used_up():
    with jax.config.override("calque_debug_key_reuse", True):
        key, again = random.key(1), random.clone(random.key(1))
        random.normal(key)
        assert key._consumed and not again._consumed
        with pytest.raises(KeyReuseError, match="Previously-consumed key passed to random_bits"):
            random.normal(key[None][0])
        jax.vmap(lambda k: random.normal(random.split(k)[0]))(random.split(again, 0))


def test_parts_of_split_words_are_used_one_by_one():
    """Keys as words have one dimension more than there are keys."""
    with config.override("calque_debug_key_reuse", True):
        key = random.PRNGKey(0)
        for _ in range(3):
            key, sub = random.split(key)
            random.normal(sub, (2,))
        parts = random.split(key, 3)
        random.normal(parts[2], (2,))
        random.normal(parts[0], (2,))
        with pytest.raises(KeyReuseError):
            random.normal(parts[2], (2,))


def test_distributions_are_named_as_they_were_called():
    def f(draw):
        def twice():
            key = random.key(0)
            return random.normal(key) + draw(key)

        return twice

    jitted = r"In jit, argument 0 is already consumed\..*random\.normal used it at .*test_key_reuse"
    with pytest.raises(KeyReuseError, match=jitted + r".*, and now random\.randint at "):
        check_key_reuse(f(lambda key: random.randint(key, (), 0, 9)))
    with pytest.raises(KeyReuseError, match=r"In random_bits, .*random\.normal .*now random_bits "):
        check_key_reuse(f(random.bits))
    with pytest.raises(KeyReuseError, match=r"In random_split, .*random\.normal .*random_split "):
        check_key_reuse(f(lambda key: random.uniform(random.split(key)[0])))
