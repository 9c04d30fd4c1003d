"""Arrays put together."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.compare import compare, values

X = values((3, 4), "float32")


I = values((3, 4), "int32")


def test_joining():
    compare(jnp.concatenate([X, X[:1]]), np.concatenate([X, X[:1]]))
    compare(jnp.concatenate([X, I], axis=None), np.concatenate([X, I], axis=None))
    compare(jnp.stack([X, X], -1), np.stack([X, X], -1))
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        compare(getattr(jnp, name)([X, X]), getattr(np, name)([X, X]))
        compare(getattr(jnp, name)([X[0], X[1]]), getattr(np, name)([X[0], X[1]]))
    with pytest.raises(TypeError, match="shapes that differ"):
        jnp.concatenate([X, X.T])
    with pytest.raises(ValueError, match="at least one array"):
        jnp.concatenate([])


def test_a_float_that_is_differentiated_may_say_in_how_many_parts():
    def f(n, x):
        return jnp.split(x, n)[1].sum() + n

    x = np.arange(6.0, dtype="f")
    out, tangent = calque.jvp(lambda n: f(n, x), (2.0,), (1.0,))
    assert (float(out), float(tangent)) == (14.0, 1.0)
    with pytest.raises(calque.errors.ConcretizationTypeError, match="split cuts at integers"):
        calque.jit(f)(2.0, x)


def test_numbers_of_sections_are_integers_that_a_list_holds():
    assert [len(x) for x in jnp.array_split(jnp.arange(5), 2.9)] == [3, 2]
    with pytest.raises(TypeError, match="array_split: the number of sections must be an integer"):
        jnp.array_split(jnp.arange(5), float("nan"))
    with pytest.raises(MemoryError, match="cut into fewer"):
        jnp.array_split(jnp.arange(5), 2**40)


def test_parts_stand_in_anything_with_a_length() -> None:
    arrays = {"a": jnp.arange(2), "b": jnp.arange(2, 4)}
    assert jnp.stack(arrays.values()).tolist() == [[0, 1], [2, 3]]
    assert jnp.concatenate(arrays.values()).tolist() == [0, 1, 2, 3]
    assert jnp.hstack(range(3)).tolist() == [0, 1, 2]
    assert jnp.vstack(memoryview(np.arange(2))).tolist() == [[0], [1]]
    for refused in (iter([1, 2]), "ab", np.array([1, None], object)):
        with pytest.raises(TypeError, match="stack requires ndarray"):
            jnp.stack(refused)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 4), (3, 1), (2, 3, 4), (2, 2, 3, 2), (3, 0)])
def test_slices_of_one_array_are_joined_at_once(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape)), dtype="float32").reshape(shape)
    for name in ("vstack", "hstack", "dstack", "column_stack", "stack", "concatenate"):
        if name == "concatenate" and len(shape) == 1:
            continue
        f, want = getattr(jnp, name), getattr(np, name)(list(x))
        for got in (f(x), f(jnp.array(x)), calque.jit(f)(x)):
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, want)
        assert len(calque.make_jaxpr(f)(x).eqns) <= 4
        if name != "column_stack":
            assert f(x, dtype="int32").dtype == np.int32
    for axis in range(-len(shape), len(shape)):
        np.testing.assert_array_equal(jnp.stack(x, axis), np.stack(list(x), axis))
        if axis < len(shape) - 1 and axis > -len(shape):
            np.testing.assert_array_equal(jnp.concatenate(x, axis), np.concatenate(list(x), axis))
    np.testing.assert_array_equal(jnp.concatenate(x, None), x.ravel())


def test_no_slices_cannot_be_joined() -> None:
    for f in (jnp.stack, jnp.vstack, jnp.concatenate):
        with pytest.raises(ValueError, match="at least one array"):
            f(jnp.ones((0, 3)))
        with pytest.raises(TypeError, match="zero-dimensional"):
            f(jnp.ones(()))


def test_sections_may_be_a_whole_float() -> None:
    assert [v.tolist() for v in jnp.split(jnp.arange(4), 2.0)] == [[0, 1], [2, 3]]
    assert len(jnp.array_split(jnp.arange(5), np.float32(2))) == 2
