"""Indices out of range, where a flag asks for an error."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.numpy.indexing.checks import check_static, outside_of

X = jnp.arange(12.0).reshape(4, 3)


@pytest.fixture
def checked():
    with config.override("debug_index", True):
        yield


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize("n", [0, 1, 5, 100, 200, 70_000])
def test_which_indices_lie_outside(dtype, n):
    """Concrete and traced, at every border."""
    info = np.iinfo(dtype)
    near = {info.min, info.max, 0, 1, -1, n - 1, n, n + 1, -n, -n - 1, -n + 1}
    i = np.array([v for v in sorted(near) if info.min <= v <= info.max], dtype)
    want = (i.astype(np.int64) < -n) | (i.astype(np.int64) >= n)
    np.testing.assert_array_equal(outside_of(i, n), want)
    traced = calque.jit(lambda i: jnp.broadcast_to(outside_of(i, n), i.shape))(i)
    np.testing.assert_array_equal(traced, want)


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x, i: x[i], "index 4 is out of bounds for axis 0 with size 4"),
        (lambda x, i: x[:, i - 1], "index 3 is out of bounds for axis 1 with size 3"),
        (lambda x, i: x[jnp.array([0, 1]) - i - 1], "index -5 is out of bounds for axis 0"),
        (lambda x, i: x.at[i].set(0.0), "index 4 is out of bounds for axis 0"),
    ],
)
def test_errors_name_index_axis_and_line(checked, f, words):
    for g in (f, calque.jit(f)):
        with pytest.raises(IndexError, match=rf"{words}.*test_checks.py:\d+"):
            g(X, 4)
        g(X, 2)


def test_slices_and_indices_in_range_are_no_business_of_it(checked):
    assert calque.jit(lambda x: x[10:])(X).shape == (0, 3)
    assert float(calque.jit(lambda x, i: x[i, -i])(X, 2)) == 7
    assert "check" not in str(calque.make_jaxpr(lambda x: x[1, -3])(X))


def test_only_python_numbers_are_static():
    check_static((4, 3), (None, 3, slice(9)))
    check_static((4, 3), (slice(9), None, -3))
    with pytest.raises(IndexError, match="index 3 out of bounds for axis 1 with size 3"):
        check_static((4, 3), (slice(None), None, 3))
    with config.override("check_static_indices", True):
        with pytest.raises(IndexError, match=r"index -5 out of bounds for axis 0 .*test_checks"):
            X[-5]
        assert X[jnp.array(9)].tolist() == X[3].tolist()
