"""Random keys: their printed form, what can be done with arrays of them, splitting and folding."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import dtypes, random


def test_printing() -> None:
    assert repr(random.PRNGKey(0)) == "Array([0, 0], dtype=uint32)"
    assert repr(random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert repr(random.split(random.key(0))).startswith(
        "Array((2,), dtype=key<fry>) overlaying:\n[[1797259609 2579123966]\n"
    )
    assert str(random.key(0).dtype) == "key<fry>"
    assert (
        repr(random.fold_in(random.PRNGKey(0), 1))
        == "Array([ 928981903, 3453687069], dtype=uint32)"
    )


def test_seeds() -> None:
    assert random.PRNGKey(-1).tolist() == [0, 2**32 - 1]
    assert random.PRNGKey(0x123456789).tolist() == [0, 0x23456789]
    assert random.PRNGKey(np.int32(7)).tolist() == calque.jit(random.PRNGKey)(7).tolist() == [0, 7]
    for bad, error in ((1.5, TypeError), ("a", TypeError), (jnp.ones(2, int), TypeError)):
        with pytest.raises(error, match="seed"):
            random.key(bad)


def test_dtypes_and_algorithms() -> None:
    key = random.key(0)
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key)
    assert not dtypes.issubdtype(random.PRNGKey(0).dtype, dtypes.prng_key)
    assert random.key_dtype("rbg") == random.key(0, impl="rbg").dtype != key.dtype
    assert random.key(0, dtype=random.key_dtype("rbg")).dtype == random.key_dtype("rbg")
    names = ["threefry2x32", "rbg", "unsafe_rbg"]
    assert [random.key_impl(random.key(0, impl=i)) for i in names] == names
    with pytest.raises(ValueError, match="mersenne"):
        random.key(0, impl="mersenne")
    with pytest.raises(ValueError, match="both"):
        random.key(0, impl="rbg", dtype=key.dtype)


def test_raw_and_typed_keys_agree() -> None:
    raw, typed = random.PRNGKey(3), random.key(3)
    assert random.key_data(typed).tolist() == raw.tolist()
    assert random.wrap_key_data(raw) == typed
    assert random.split(raw, 3).tolist() == random.key_data(random.split(typed, 3)).tolist()
    assert random.split(typed, (2, 3)).shape == (2, 3) and random.split(raw, (2, 3)).shape == (
        2,
        3,
        2,
    )
    assert random.uniform(raw).tolist() == random.uniform(typed).tolist()
    assert random.clone(typed) == typed


def test_arrays_of_keys() -> None:
    keys = random.split(random.key(0), 6)
    data = random.key_data(keys)

    def look(k):
        return random.key_data(k).tolist()

    assert look(keys[2]) == data[2].tolist() and look(keys[1:5:2]) == data[1:5:2].tolist()
    assert look(keys[jnp.array([4, 0])]) == data[jnp.array([4, 0])].tolist()
    assert look(keys.reshape(2, 3)[1]) == data[3:].tolist() and keys.reshape(2, 3).T.shape == (3, 2)
    assert look(jnp.stack([keys[0], keys[5]])) == data[jnp.array([0, 5])].tolist()
    assert look(jnp.concatenate([keys[:1], keys[4:]])) == data[jnp.array([0, 4, 5])].tolist()
    assert (
        look(jnp.where(jnp.array([True, False]), keys[:2], keys[2:4]))
        == data[jnp.array([0, 3])].tolist()
    )
    assert [look(k) for k in keys] == data.tolist()
    assert look(calque.jit(lambda k: k[1])(keys)) == data[1].tolist()
    assert calque.vmap(random.uniform)(keys).tolist() == [random.uniform(k).item() for k in keys]
    assert (keys == keys).all() and keys[0] != keys[1]
    assert keys.shape == (6,) and keys.ndim == 1 and keys.size == 6


def test_keys_are_no_numbers() -> None:
    key = random.key(0)
    for bad in (lambda: key + 1, lambda: jnp.sin(key), lambda: np.asarray(key)):
        with pytest.raises(TypeError):
            bad()


def test_loops_over_keys() -> None:
    def step(key, _):  # type: ignore[no-untyped-def]
        key, sub = random.split(key)
        return key, random.normal(sub)

    key, rows = calque.lax.scan(step, random.key(5), None, length=3)
    want, k = [], random.key(5)
    for _ in range(3):
        k, sub = random.split(k)
        want.append(random.normal(sub).item())
    np.testing.assert_allclose(rows, want, rtol=1e-6)
    assert key == k


def test_shape_and_result_of_evaluation() -> None:
    out = calque.eval_shape(lambda k: random.split(k, 3), random.key(0))
    assert out.shape == (3,) and out.dtype == random.key(0).dtype


def test_keys_are_made_and_copied_as_arrays_are() -> None:
    keys = random.split(random.key(3), (2, 3))
    dtype = keys.dtype
    for f in (lambda f: f, calque.jit):
        for n, made in (
            (0, f(jnp.zeros_like)(keys)),
            (1, f(jnp.ones_like)(keys)),
            (0, f(jnp.empty_like)(keys)),
            (0, f(lambda k: jnp.zeros(k.shape, k.dtype))(keys)),
            (7, f(lambda k: jnp.full(k.shape, 7, k.dtype))(keys)),
        ):
            assert (made.shape, made.dtype) == ((2, 3), dtype)
            assert (np.asarray(random.key_data(made)) == n).all()
        for copied in (f(jnp.array)(keys), f(lambda k: jnp.array([k[0], k[1]]))(keys)):
            assert copied.dtype == dtype and (copied == keys).all()


def test_numbers_folded_in_are_learned_once() -> None:
    """Each number gives what an array of it gives, whatever calls came before, and is refused as
    ever."""
    for key in (random.key(5), random.PRNGKey(5)):
        for i in (*range(40), 2**31 - 1, 2**31, 2**32 - 1):
            got = random.fold_in(key, i)
            wanted = random.fold_in(key, np.uint32(i))
            assert np.array_equal(random.key_data(got), random.key_data(wanted))
        for i in (-1, 2**32):
            with pytest.raises(OverflowError, match="out of bounds"):
                random.fold_in(key, i)
