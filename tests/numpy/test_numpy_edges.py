"""Values at the edges of functions, as NumPy has them."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
HALF = np.array([-1.0, -6e-8, 0.0, 1.0, 1000.0], np.float16)

SAME = {
    "grid without an end": lambda m, a: m.mgrid[3:],
    "open grid of nothing": lambda m, a: m.ogrid[:],
    "row of nothing": lambda m, a: m.r_[1::2],
    "matrix of a row": lambda m, a: np.asarray(m.r_["r", [1, 2], [3, 4]]),
    "matrix of a column": lambda m, a: np.asarray(m.r_["c", [1, 2], [3, 4]]),
    "matrix of columns": lambda m, a: np.asarray(m.c_["r", [1, 2], [3, 4]]),
    "spacing of float16": lambda m, a: m.spacing(a(HALF)),
    "spacing of float32": lambda m, a: m.spacing(a(HALF.astype(np.float32))),
    "trapezoid with widths": lambda m, a: m.trapezoid(a(X), dx=a(X[0, 1:]), axis=1),
    "trapezoid with one width each": lambda m, a: m.trapezoid(a(X), dx=a(X[0, :1]), axis=1),
    "product of batches of one": lambda m, a: m.matmul(a(X[:1]), a(X[:1, 0, :, None])),
    "products of some batches of one": lambda m, a: m.matmul(a(X[:1, None]), a(X[:1, :, :, None])),
    "folds over no pieces": lambda m, a: m.add.reduceat(a(X[0]), np.zeros(0, int), axis=1),
    "mean of one": lambda m, a: m.mean(a(HALF)),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.filterwarnings("ignore")  # NumPy would rather have no matrices
def test_as_numpy(name):
    want = np.asarray(SAME[name](np, np.asarray))
    made = [SAME[name](jnp, jnp.asarray)]
    if not name.startswith("matrix"):
        made.append(calque.jit(lambda: SAME[name](jnp, jnp.asarray))())
    for found in made:
        got = np.asarray(found)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3 if want.dtype == np.float16 else 1e-6)


def test_places_from_a_unit_matrix():
    i = np.array([[-1, 3, 9]])
    got = jnp.take_along_axis(X[0, :1], i, axis=1, mode="one_hot")
    np.testing.assert_array_equal(got, [[3, 3, 0]])


@pytest.mark.parametrize("mode", [None, "fill", "clip", "promise_in_bounds"])
def test_places_along_an_axis_without_elements(mode):
    nothing, i = np.zeros((2, 0, 3), np.int8), np.ones((2, 4, 1), int)
    f = lambda x, i: jnp.take_along_axis(x, i, 1, mode)  # noqa: E731
    for got in (f(nothing, i), calque.jit(f)(nothing, i)):
        assert got.dtype == np.int8 and got.shape == (2, 4, 3) and not got.any()
    assert jnp.take_along_axis(np.zeros(0), np.array([0, 5]), None).tolist() == [0, 0]
    grad = calque.grad(lambda x: jnp.take_along_axis(x, i, 1, mode).sum())(jnp.zeros((2, 0, 3)))
    assert grad.shape == (2, 0, 3)
    with pytest.raises(TypeError, match="broadcast"):
        jnp.take_along_axis(nothing, np.ones((3, 4, 3), int), 1, mode)


def test_places_that_are_promised_are_taken_as_they_are():
    def names(**options):
        f = lambda x, i: jnp.take_along_axis(x, i, 0, mode="promise_in_bounds", **options)  # noqa: E731
        return [e.primitive.name for e in calque.make_jaxpr(f)(X[0, 0], np.array([1])).eqns]

    assert "lt" not in names()
    assert "lt" in names(wrap_negative_indices=True)
    assert calque.jit(lambda i: jnp.take_along_axis(X[0, 0], i, 0, "promise_in_bounds"))(
        np.array([2, 0])
    ).tolist() == [2, 0]


def test_places_in_a_shape_that_the_program_knows():
    places = np.array([0, 5, -1, 99], np.int8)
    want = jnp.unravel_index(places, (2, 3))
    got = calque.jit(jnp.unravel_index)(places, (2, 3))
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype == np.int8
        assert a.tolist() == b.tolist()


def test_places_beyond_the_shape_are_ignored_when_asked():
    got = jnp.ravel_multi_index((jnp.array([1, 5]), jnp.array([2, 0])), (2, 3), mode="ignore")
    assert got.tolist() == [5, 15]


@pytest.mark.parametrize("mode", ["constant", "edge", "linear_ramp", "mean", "reflect", "wrap"])
def test_padding_keeps_the_weak_type(mode):
    assert jnp.pad(jnp.array(1.0)[None], 1, mode=mode).weak_type


def test_ufuncs_are_known_as_such():
    assert isinstance(jnp.add, jnp.ufunc)
    assert not isinstance(jnp.sin, jnp.ufunc)
    f = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    assert (f.nin, f.nout, f.nargs, f.identity) == (2, 1, 2, 0)
    for name in ("nin", "nout", "nargs", "identity"):
        with pytest.raises(AttributeError):
            setattr(f, name, 1)


def test_known_exponents_of_integers_are_multiplied_out():
    for p in (2, np.int32(2), jnp.int32(2)):
        program = calque.make_jaxpr(lambda x, p=p: jnp.power(x, p))(3)
        assert [e.primitive.name for e in program.eqns] == ["integer_pow"]
    assert calque.jit(lambda x: x ** np.int32(3))(jnp.arange(3)).tolist() == [0, 1, 8]


def test_a_fold_of_narrow_floats_is_one_when_the_dtype_is_given():
    program = calque.make_jaxpr(lambda x: jnp.sum(x, dtype=np.float16))(HALF)
    assert [e.primitive.name for e in program.eqns] == ["reduce_sum"]
    many = jnp.full(5000, 0.1, np.float16)  # summed in float32 all the same
    assert abs(float(jnp.sum(many, dtype=np.float16)) - 500) < 1
    assert jnp.sum(many) == jnp.sum(many, dtype=np.float16)


def test_a_transform_of_nothing_is_nothing():
    assert jnp.fft.fft(jnp.zeros((2, 0))).shape == (2, 0)
    with pytest.raises(ValueError, match="positive"):
        jnp.fft.fft(jnp.zeros((2, 0)), n=0)


def test_cuts_may_be_traced():
    parts = calque.jit(lambda x, i: [p.sum() for p in jnp.split(x, [1, i])])(jnp.arange(6), 4)
    assert [int(p) for p in parts] == [0, 6, 9]
    for places in (lambda i: i, lambda i: [2, i]):
        with pytest.raises(TypeError, match="Abstract tracer value"):
            calque.jit(lambda i: jnp.split(jnp.zeros(6), places(i)))(2.0)


def test_wide_types_meet_no_narrow_ones():
    """With 64-bit types, what the library counts with fits what it counts."""
    x = np.array([[0, 3, 0], [4, 0, 5]])
    with calque.enable_x64(True), calque.numpy_dtype_promotion("strict"):
        for f in (lambda v: jnp.nonzero(v, size=2), calque.jit(lambda v: jnp.nonzero(v, size=2))):
            assert [p.tolist() for p in f(x)] == [[0, 1], [1, 0]]
            assert {p.dtype.name for p in f(x)} == {"int64"}
        assert jnp.argwhere(x, size=2).tolist() == [[0, 1], [1, 0]]
        assert jnp.insert(jnp.asarray(x), slice(0, 1), x[0], axis=0).shape == (3, 3)
        assert jnp.nanvar(x.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_digits_that_no_number_has_are_kept(dtype):
    x = jnp.array([1.25, -3.5], dtype)
    for decimals in (60, 400):
        assert jnp.round(x, decimals).tolist() == [1.25, -3.5]
        assert jnp.round(x, -decimals).tolist() == [0, 0]


def test_one_point_has_no_step():
    a = np.zeros(2, np.float32)
    for num in (0, 1):
        want = np.linspace(a, a + 1, num, retstep=True)
        got = jnp.linspace(a, a + 1, num, retstep=True)
        assert got[0].shape == want[0].shape
        assert got[1].shape == np.shape(want[1])
        assert np.isnan(got[1])
