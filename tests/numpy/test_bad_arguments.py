"""Arguments at the edge of what functions take, and beyond: the values are NumPy's, the exceptions JAX's."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

F = np.array([[0.5, -1.5, 2.0], [3.0, 0.0, -0.5]], np.float32)
V = np.array([3, 1, 0, -2], np.int32)
B = np.array([[True, False, False], [True, True, False]])
EMPTY = np.zeros((0,), np.float32)

SAME = {
    "digitize falling": lambda m, a: m.digitize(a(V), a(np.array([2.0, 1.0, 0.0]))),
    "digitize falling right": lambda m, a: m.digitize(a(V), a(np.array([2, 1, 0])), right=True),
    "sort_complex": lambda m, a: m.sort_complex(a(F)),
    "insert at the end": lambda m, a: m.insert(a(V), 4, 9),
    "pad mean of bools": lambda m, a: m.pad(a(B), 1, "mean"),
    "pad median of bools": lambda m, a: m.pad(a(B), 1, "median"),
    "take bools": lambda m, a: m.take(a(V), True),
    "cov of nothing": lambda m, a: m.cov(a(EMPTY)),
    "max of no complex numbers": lambda m, a: m.max(a(np.zeros((2, 0), np.complex64)), axis=0),
    "size along an axis": lambda m, a: m.size(a(F), -1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAME)
def test_as_numpy(name):
    want = np.asarray(SAME[name](np, np.asarray))
    for _ in range(3):  # from the second call on by machine code
        got = np.asarray(SAME[name](jnp, jnp.asarray))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_inserting_beyond_the_end_inserts_there():
    assert jnp.insert(jnp.arange(3), 99, 7).tolist() == [0, 1, 2, 7]


def test_means_of_integer_dtypes_divide_as_integers():
    assert jnp.mean(jnp.array([1, 2, 4, 127], "int8"), dtype="int8") == -122 // 4 + 1  # the sum wraps around
    assert jnp.mean(jnp.array([1.5, -2, -4]), dtype="int32") == -1
    with pytest.raises(TypeError, match="bool"):
        jnp.var(jnp.ones(3), dtype=bool)


REFUSED = {
    "split": (ValueError, lambda: jnp.split(jnp.ones(4), 0)),
    "array_split": (ValueError, lambda: jnp.array_split(jnp.ones(4), -2)),
    "repeat": (TypeError, lambda: jnp.repeat(jnp.ones(4), -1)),
    "round": (TypeError, lambda: jnp.round(jnp.ones(4), 1.5)),
    "reshape": (TypeError, lambda: jnp.reshape(jnp.ones(4), (-1, -1))),
    "transpose": (TypeError, lambda: jnp.transpose(jnp.ones((2, 2)), (0, 0))),
    "moveaxis": (TypeError, lambda: jnp.moveaxis(jnp.ones((2, 2)), (0, 0), (0, 1))),
    "flip": (TypeError, lambda: jnp.flip(jnp.ones((2, 2)), (0, 0))),
    "take": (ValueError, lambda: jnp.take(jnp.ones(4), 1.0)),
    "size": (ValueError, lambda: jnp.size(jnp.ones(4), 3)),
    "axis of no integer": (TypeError, lambda: jnp.cumsum(jnp.ones(4), 0.5)),
    "axis too large": (ValueError, lambda: jnp.sum(jnp.ones(4), 5)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    error, call = REFUSED[name]
    for _ in range(3):
        with pytest.raises(error):
            call()


def test_results_keep_their_weakness_when_calls_become_machine_code():
    assert [jnp.append(jnp.zeros(0), 1.5).weak_type for _ in range(3)] == [False] * 3


# ---------------------------------------------------------------- axes with names


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var", "std"])
@pytest.mark.parametrize("axis", ["i", ("i", 0), (0, "i")])
def test_axes_may_be_mapped_ones(name, axis):
    f = getattr(jnp, name)
    got = calque.vmap(lambda row: f(row, axis=axis), axis_name="i")(F)
    whole = getattr(np, name)(F, axis=0 if axis == "i" else None)
    np.testing.assert_allclose(got, np.broadcast_to(whole, got.shape), rtol=1e-6)
    masked = calque.vmap(lambda row: jnp.mean(row, axis=axis, where=row != 0), axis_name="i")(F)
    np.testing.assert_allclose(masked[0], np.mean(F, axis=0 if axis == "i" else None, where=F != 0), rtol=1e-6)


def test_mapped_axes_that_cannot_be_folded():
    with pytest.raises(NameError, match="unbound axis name"):
        jnp.sum(jnp.ones(3), axis="i")
    for f in (jnp.prod, jnp.all, jnp.any):
        with pytest.raises(NotImplementedError, match="mapped"):
            calque.vmap(lambda x, f=f: f(x, axis="i"), axis_name="i")(F)
