"""The options of `x.at[index]`: negative positions that do not count from the end, and where
results live."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.peers import jax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
INDICES = [-1, -7, np.array([-1, 1]), np.array([-1, 0], np.int8), slice(-1, None), (np.array([0,
1]), -1), (-1, np.array([-1, 1])), (0, -1), np.array([1], np.uint8)]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_as_jax(index):
    theirs = jax().numpy
    for mode in (None, "clip", "fill", "drop"):
        options = {"mode": mode, "wrap_negative_indices": False}
        want = theirs.asarray(X).at[index].get(**options)
        for run in (lambda f: f, calque.jit):
            np.testing.assert_array_equal(
                run(lambda x: x.at[index].get(**options))(jnp.asarray(X)), want
            )
        for name in ("set", "add", "multiply"):
            want = getattr(theirs.asarray(X).at[index], name)(9.0, **options)
            np.testing.assert_array_equal(
                getattr(jnp.asarray(X).at[index], name)(9.0, **options), want
            )
        want = theirs.asarray(X).at[index].apply(lambda v: -v, **options)
        np.testing.assert_array_equal(jnp.asarray(X).at[index].apply(lambda v: -v, **options), want)


def test_results_live_where_asked():
    s = calque.sharding.NamedSharding(
        calque.make_mesh((1,), ("x",)), calque.sharding.PartitionSpec("x")
    )
    place = jnp.asarray(X).at[jnp.array([0])]
    for out in (
        place.get(out_sharding=s),
        place.set(1.0, out_sharding=s),
        place.apply(jnp.sin, out_sharding=s),
    ):
        assert out.sharding.is_equivalent_to(s, out.ndim)
    with pytest.raises((TypeError, ValueError)):
        place.get(out_sharding="nowhere")
    with pytest.raises(TypeError):
        place.apply(jnp.sin, no_such_option=1)


@pytest.mark.parametrize("index", [0, np.array(0)])
def test_empty_axes_have_no_elements(index):
    for run in (lambda f: f, calque.jit):
        with pytest.raises(IndexError, match="size 0"):
            run(lambda x: x[index])(jnp.zeros((0, 2)))
    with pytest.raises(IndexError, match="size 0"):
        calque.jit(lambda x, i: x[i])(jnp.zeros(0), 0)
    with pytest.raises(TypeError, match="size 0"):
        jnp.zeros(0)[jnp.array([0, 1])]
    assert jnp.zeros((0, 2))[jnp.zeros((0,), int)].shape == (0, 2)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("how", "value", "want"),
    [("multiply", 0.5, [5, 7, 0]), ("add", 2.75, [12, 7, 8]), ("subtract", 0.5, [9, 7, 2])],
)
def test_an_update_of_another_dtype_is_made_before_it_is_rounded(
    how: str, value: float, want: list[int], jitted: bool
) -> None:
    """Half of an integer is half of it, and not nothing; a place named twice is rounded once."""

    def f(x: Any) -> Any:
        return getattr(x.at[jnp.array([0, 2, 2])], how)(value)

    with pytest.warns(FutureWarning, match="keeps the dtype of the array, int16"):
        got = (calque.jit(f) if jitted else f)(jnp.array([10, 7, 3], "int16"))
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, want)


def test_updates_of_truth_values_by_numbers() -> None:
    x = jnp.array([True, False, True])
    with pytest.warns(FutureWarning):
        np.testing.assert_array_equal(x.at[0].add(-1), [False, False, True])
    with pytest.warns(FutureWarning):
        np.testing.assert_array_equal(x.at[:2].multiply(2), [True, False, True])
    mask = jnp.array([True, True, False])
    with pytest.warns(FutureWarning):
        got = calque.jit(lambda x, m: x.at[m].multiply(0))(x, mask)
    np.testing.assert_array_equal(got, [False, False, True])


def test_integers_divided_at_places_are_floats() -> None:
    got = jnp.array([3, 4]).at[0].divide(2)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [1.5, 4])


@pytest.mark.parametrize("value", [1, 2.5])
@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "power", "divide"])
@pytest.mark.parametrize("index", [(), 0, slice(2), [0, 1]])
def test_updates_keep_the_weak_type(index, name, value):
    x = jnp.asarray(2.5) if index == () else jnp.broadcast_to(jnp.asarray(2.5), (3,))
    index = jnp.array(index) if isinstance(index, list) else index
    for array in (x, x.astype(jnp.float32)):
        updated = calque.jit(lambda a: getattr(a.at[index], name)(value))(array)
        assert updated.aval is getattr(array.at[index], name)(value).aval is array.aval
        assert (updated * jnp.float16(1)).dtype == (
            np.float16 if array.aval.weak_type else np.float32
        )
