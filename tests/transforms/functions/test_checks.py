"""Checks that raise Python exceptions out of compiled code: `check`, indices out of range, keys
used twice."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.errors import KeyReuseError
from calque.machine.call import functions as callpath

X = np.array([0, 2, 4, 6])


@pytest.fixture
def index_checks():
    with jax.config.override("calque_debug_index", True):
        yield


@pytest.fixture
def key_checks():
    with jax.config.override("calque_debug_key_reuse", True):
        yield


def root(x):
    jax.check(x >= 0, "no root of {x}", x=x)
    return jnp.sqrt(x)


@pytest.mark.parametrize(
    "f",
    [
        root,
        jax.jit(root),
        jax.grad(root),
        jax.jit(jax.grad(root)),
        jax.jit(lambda x: jax.vmap(root)(x[None])[0]),
    ],
)
def test_check(f):
    f(jnp.float32(4.0))
    with pytest.raises(ValueError, match=r"no root of -1\.0"):
        f(jnp.float32(-1.0))


def test_check_in_loops():
    def f(xs):
        def body(c, x):
            jax.check(x < 3, "{x} at {c}", error=KeyError, x=x, c=c)
            return c + 1, x

        return jax.lax.scan(body, 0, xs)

    assert int(jax.jit(f)(jnp.arange(3))[0]) == 3
    with pytest.raises(KeyError, match="3 at 3"):
        jax.jit(f)(jnp.arange(5))


def test_check_names_the_line_and_refuses_nonsense():
    with pytest.raises(ValueError, match="broken") as e:
        jax.check(np.array([True, False]), "broken")
    assert "test_checks.py" in e.value.__notes__[0]
    with pytest.raises(TypeError, match="dtype bool"):
        jax.check(1.0, "x")
    with pytest.raises(TypeError, match="message must be a string"):
        jax.check(True, 3)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, i: x[i],
        lambda x, i: x[jnp.array([0, i])],
        lambda x, i: x.at[i].set(1),
        lambda x, i: x.at[jnp.array([i, 1])].add(1),
        lambda x, i: x.reshape(2, 2)[1, i],
    ],
)
@pytest.mark.parametrize("i", [4, -5, 10000])
def test_indices_out_of_range(index_checks, use, i):
    x = jnp.asarray(X)
    for f in (use, jax.jit(use), jax.jit(lambda x, i: use(x, i), static_argnums=1)):
        with pytest.raises(
            IndexError,
            match=rf"index {i} is out of bounds for axis \d with size \d, at .*test_checks.py",
        ):
            f(x, i)


def test_indices_in_range(index_checks):
    x = jnp.asarray(X)
    f = jax.jit(lambda x, i: (x[i], x.at[i].set(9), x[jnp.array([i, 0])]))
    for i in (0, 3, -1, -4):
        got = f(x, i)
        assert int(got[0]) == X[i] and int(got[1][i]) == 9 and got[2].tolist() == [X[i], 0]
    assert x.at[10].get(mode="clip") == 6 and int(x.at[10].get(mode="fill", fill_value=7)) == 7
    assert jax.vmap(lambda i: x[i])(jnp.arange(4)).tolist() == X.tolist()
    with pytest.raises(IndexError):
        jax.vmap(lambda i: x[i])(jnp.arange(5))


def test_clamped_without_the_checks():
    assert int(jnp.asarray(X)[10]) == 6 and int(jax.jit(lambda x, i: x[i])(X, 10)) == 6


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_a_key_is_used_once(key_checks, make):
    key = make(0)
    jax.random.normal(key)
    with pytest.raises(
        KeyReuseError,
        match=(
            r"(?s)reused: random_bits used it at .*test_checks.py:\d+.*now random_bits at .*test_"
        ),
    ):
        jax.random.uniform(key)
    key = make(0)
    jax.random.split(key)
    with pytest.raises(KeyReuseError, match="random_split used it"):
        jax.random.normal(key)


def test_a_key_in_jit(key_checks):
    def twice(key):
        return jax.random.normal(key) + jax.random.normal(key)

    with pytest.raises(KeyReuseError):
        jax.jit(twice)(jax.random.key(0))
    draw, key = jax.jit(lambda key: jax.random.normal(key)), jax.random.key(1)
    draw(key)
    with pytest.raises(KeyReuseError, match="<lambda> used it"):
        draw(key)
    draw(jax.random.key(1))


def test_programs_without_keys_are_served_by_machine_code(key_checks):
    f = jax.jit(lambda x: x * 2)
    draw = jax.jit(lambda key: jax.random.normal(key))
    for i in range(4):
        f(jnp.ones(3))
        draw(jax.random.key(i))
    assert callpath.entry_count(f) == 1 and callpath.entry_count(draw) == 0


def test_keys_are_used_up_at_every_size(key_checks):
    f = jax.jit(lambda key, x: jax.random.normal(key) + x)
    for n in (3, 4, 5, 6):
        f(jax.random.key(n), jnp.ones(n))
    key = jax.random.key(9)
    f(key, jnp.ones(7))
    with pytest.raises(KeyReuseError):
        f(key, jnp.ones(8))


@pytest.mark.parametrize(
    "loop",
    [
        lambda key: lax.map(lambda x: x + jax.random.normal(key), jnp.ones(3)),
        lambda key: lax.fori_loop(0, 3, lambda i, c: c + jax.random.normal(key), 0.0),
        lambda key: lax.while_loop(lambda c: c < 3, lambda c: c + jax.random.uniform(key), 0.0),
        lambda key: lax.scan(lambda k, _: (k, jax.random.normal(k)), key, None, length=3),
    ],
)
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f])
def test_a_key_in_every_round(key_checks, loop, wrap):
    with pytest.raises(KeyReuseError, match=r"in every round of a loop"):
        wrap(loop)(jax.random.key(0))


def test_loops_and_branches_that_use_keys_properly(key_checks):
    def step(state, _):
        key, x = state
        key, sub = jax.random.split(key)
        return (key, x + jax.random.normal(sub)), None

    lax.scan(step, (jax.random.key(0), 0.0), None, length=3)
    lax.scan(
        lambda c, k: (c + jax.random.normal(k), k), 0.0, jax.random.split(jax.random.key(1), 3)
    )
    key = jax.random.key(2)
    lax.fori_loop(0, 3, lambda i, c: c + jax.random.normal(jax.random.fold_in(key, i)), 0.0)
    lax.scan(lambda c, _: (c + jax.random.normal(jax.random.key(3)), None), 0.0, None, length=1)
    either = jax.random.key(4)
    lax.cond(True, lambda: jax.random.normal(either), lambda: jax.random.uniform(either))
    with pytest.raises(KeyReuseError, match=r"cond used it"):
        jax.random.normal(either)


def test_eager_indices_are_checked_beside_programs(index_checks):
    """Machine code that indexes arrays looks at nothing: it stands aside, programs that check
    themselves do not."""
    f, x = jax.jit(lambda x, i: x[i]), jnp.asarray(X)
    for _ in range(4):
        assert int(f(x, 2)) == 4
    assert callpath.entry_count(f) == 1
    for _ in range(3):
        with pytest.raises(IndexError):
            x[4]
        with pytest.raises(IndexError):
            f(x, 4)


def test_proper_use(key_checks):
    key = jax.random.key(0)
    for i in range(3):
        key, sub = jax.random.split(key)
        jax.random.dirichlet(jax.random.fold_in(sub, i), jnp.ones(3))
        jax.random.lognormal(sub)
    for f in (jax.random.beta, jax.random.gamma):
        f(jax.random.key(5), 2.0, *([3.0] if f is jax.random.beta else []))
    jax.random.multivariate_normal(jax.random.key(6), jnp.zeros(2), jnp.eye(2))
    jax.random.permutation(jax.random.key(7), 5)


def test_reuse_is_allowed_without_the_checks():
    key = jax.random.key(0)
    assert float(jax.random.normal(key)) == float(jax.random.normal(key))
