"""The collectives as users call them: trees, Python numbers, own dimensions, refusals."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.devices import collective_functions as c
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.vmap import vmap
from tests.transforms.programs import check, close, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.arange(4, dtype=np.float32)
M = np.arange(16, dtype=np.float32).reshape(4, 4)


def over(f, x=X, **kw):
    return vmap(f, axis_name="i", **kw)(x)


def test_reductions():
    close(
        [over(lambda x: c.psum(x, "i")), over(lambda x: c.pmean(x, "i"))],
        [np.full(4, 6, "f"), np.full(4, 1.5, "f")],
    )
    close(
        [over(lambda x: c.pmax(x, "i")), over(lambda x: c.pmin(x, "i"))],
        [np.full(4, 3, "f"), np.zeros(4, "f")],
    )
    close(over(lambda x: x / c.psum(1, "i")), X / 4)
    close(
        over(lambda x: c.psum({"a": x, "n": 2}, "i")), {"a": np.full(4, 6, "f"), "n": np.full(4, 8)}
    )
    close(over(lambda x: c.psum(jnp.float32(2.0), "i") + x), X + 8)
    close(over(lambda x: c.psum(x > 1, "i")), np.full(4, 2, np.int32))


def test_truth_is_counted():
    """Python's and NumPy's bools are counted as int32, and their mean is a float32, whatever the
    widest types are."""
    for wide in (False, True):
        with calque.enable_x64(wide):
            for true in (True, np.True_):
                close(over(lambda x: c.psum(true, "i")), np.full(4, 4, np.int32))
                close(over(lambda x: c.pmean(true, "i")), np.ones(4, np.float32))
                parts = [[0, 1, 2], [3]]
                close(
                    over(lambda x: c.psum(true, "i", axis_index_groups=parts)),
                    np.array([3, 3, 3, 1], np.int32),
                )


def test_positions():
    close(over(lambda x: c.axis_index("i")), np.arange(4, dtype=np.int32))
    assert int(over(lambda x: c.axis_size("i") * jnp.int32(1))[0]) == 4

    def inner(y):
        return vmap(lambda x: c.axis_index(("i", "j")), axis_name="j")(y)

    close(over(inner, M[:, :3]), np.arange(12, dtype=np.int32).reshape(4, 3))


def test_movement():
    close(over(lambda x: c.all_gather(x, "i")), np.tile(X, (4, 1)))
    close(over(lambda x: c.all_gather(x, "i", axis=1), M), np.tile(M.T, (4, 1, 1)))
    close(over(lambda x: c.all_gather(x, "i", tiled=True), M), np.tile(M.reshape(-1), (4, 1)))
    close(over(lambda x: c.ppermute(x, "i", [(0, 1), (1, 2)])), np.float32([0, 0, 1, 0]))
    close(over(lambda x: c.pshuffle(x, "i", [1, 0, 3, 2])), np.float32([1, 0, 3, 2]))
    close(over(lambda x: c.all_to_all(x, "i", 0, 0), M), M.T)
    close(over(lambda x: c.all_to_all(x, "i", 0, 0, tiled=True), M), M.T)
    close(over(lambda x: c.pswapaxes(x, "i", 0), M), M.T)
    close(over(lambda x: c.psum_scatter(x, "i"), M), M.sum(0))
    close(over(lambda x: c.psum_scatter(x, "i", tiled=True), M), M.sum(0)[:, None])


def test_broadcast_from_one_member():
    close(over(lambda x: c.pbroadcast({"a": x}, "i", 2)), {"a": np.full(4, 2, "f")})
    close(
        over(grad(lambda x: c.pbroadcast(x * x, "i", 2) * x)), np.float32([4, 4, 4 + 2 * 2 * 6, 4])
    )
    check(
        lambda x: vmap(lambda v: c.pbroadcast(v * v, "i", 1) * v, axis_name="i")(x), np.arange(3.0)
    )
    with pytest.raises(ValueError, match="no position of the axis 'i' of size 4"):
        over(lambda x: c.pbroadcast(x, "i", 4))
    with pytest.raises(NotImplementedError, match="ppermute"):
        over(lambda x: c.psend(x, "i", [(0, 1)]))


def test_bad_arguments():
    with pytest.raises(
        NameError, match=r"unbound axis name: k\..* The axis names in scope are: 'i'"
    ):
        over(lambda x: c.psum(x, "k"))
    with pytest.raises(ValueError, match="they are 4 and 3 respectively"):
        over(lambda x: c.all_to_all(x[:3], "i", 0, 0), M)
    with pytest.raises(ValueError, match="unique"):
        over(lambda x: c.ppermute(x, "i", [(0, 1), (2, 1)]))
    with pytest.raises(ValueError, match="permutation"):
        over(lambda x: c.pshuffle(x, "i", [0, 0, 1, 2]))


def test_own_dimensions_among_the_axes():
    close(over(lambda x: c.psum(x, ("i", 0)), M), np.full(4, M.sum()))
    close(over(lambda x: c.pmean(x, ("i", 0)), M), np.full(4, M.mean()))
    close(over(lambda x: c.pmax(x, (0, "i")), M), np.full(4, 15, "f"))
    close(over(lambda x: c.pmin(x, -1), M), M.min(1))
    close(c.psum(M, (0, 1)), M.sum())
    check(
        lambda x: vmap(lambda v: c.psum(v * v, ("i", 0)) * v, axis_name="i")(x),
        np.arange(6.0).reshape(2, 3),
    )


def test_python_numbers_are_counted_not_summed():
    seen = {}

    def f(x):
        seen.update(total=c.psum(3, "i"), mean=c.pmean(3.0, "i"), size=c.axis_size("i"))
        seen["pairs"] = c.psum(1, "i", axis_index_groups=[[0, 3], [1, 2]])
        return c.psum(2.0, "i", axis_index_groups=[[0], [1, 2, 3]]) + x

    close(over(f), np.float32([2, 6, 6, 6]) + X)
    assert seen == {"total": 12, "mean": 3.0, "size": 4, "pairs": 2}
    assert all(type(v) in (int, float) for v in seen.values())


def test_means_of_integers_are_not_integers():
    got = over(lambda x: c.pmean(x, "i"), np.arange(4))
    close(got, np.full(4, 1.5, np.float32))
    close(
        over(lambda x: c.pmean(x, "i", axis_index_groups=[[0], [1, 2, 3]])),
        np.float32([0, 2, 2, 2]),
    )


@pytest.mark.parametrize(
    "f, error, text",
    [
        (lambda x: c.all_gather(x, "i", to="all"), ValueError, "unexpected `to` value"),
        (lambda x: c.precv(x, x, "i", [(0, 1)]), NotImplementedError, "precv: members that wait"),
        (lambda x: c.pbroadcast(x, ("i", "j"), 0), NotImplementedError, "one axis after the"),
        (lambda x: c.psum(x, "k"), NameError, "unbound axis name: k"),
    ],
)
def test_refusals(f, error, text):
    with pytest.raises(error, match=text):
        vmap(lambda row: over(f, row), axis_name="j")(M)
