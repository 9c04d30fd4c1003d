"""Systems of equations, inverses and determinants, held against NumPy."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)


@pytest.mark.parametrize(
    "name, args",
    [
        ("solve", (A, B)),
        ("solve", (A[0], B[0, :, 0])),
        ("inv", (A,)),
        ("det", (A,)),
        ("det", (A[:, :2, :2],)),
        ("det", (A[:, :3, :3],)),
        ("pinv", (B,)),
        ("tensorinv", (A[0].reshape(2, 2, 4), 2)),
        ("tensorsolve", (A[0].reshape(2, 2, 2, 2), B[0, :, 0].reshape(2, 2))),
    ],
)
def test_as_numpy(name, args):
    want = getattr(np.linalg, name)(*args)
    np.testing.assert_allclose(getattr(jnp.linalg, name)(*args), want, rtol=2e-3, atol=1e-4)


def test_signs_and_logarithms():
    sign, log = jnp.linalg.slogdet(-A)
    want = np.linalg.slogdet(-A)
    np.testing.assert_allclose(sign, want[0])
    np.testing.assert_allclose(log, want[1], rtol=1e-4)
    sign, log = jnp.linalg.slogdet(jnp.zeros((2, 2)))
    assert float(sign) == 0 and float(log) == -np.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_determinants_of_halves(dtype: str) -> None:
    """No factors are computed in these: up to two rows need none."""
    a = jnp.array([[[2.0, 1], [1, 3]], [[1, 2], [1, 2]], [[-1, 0], [0, 1]]], dtype)
    sign, log = jnp.linalg.slogdet(a)
    assert sign.dtype == log.dtype == dtype and sign.tolist() == [1, 0, -1]
    np.testing.assert_allclose(log.astype("float32"), [np.log(5), -np.inf, 0], rtol=1e-2)
    one = jnp.linalg.slogdet(jnp.full((1, 1), -1, dtype))
    assert (one.sign, one.logabsdet) == (-1, 0)
    slopes = calque.grad(lambda a: jnp.linalg.slogdet(a)[1])(a[0]).astype("float32")
    np.testing.assert_allclose(slopes, [[0.6, -0.2], [-0.2, 0.4]], atol=1e-2)
    with pytest.raises(NotImplementedError, match="lu does not accept"):
        jnp.linalg.slogdet(jnp.eye(3, dtype=dtype))


@pytest.mark.parametrize("m, n", [(6, 3), (3, 6), (4, 4)])
def test_least_squares(m, n):
    a, b = RNG.normal(size=(m, n)).astype(np.float32), RNG.normal(size=(m, 2)).astype(np.float32)
    x, residuals, rank, s = jnp.linalg.lstsq(a, b, numpy_resid=True)
    want = np.linalg.lstsq(a, b, rcond=None)
    np.testing.assert_allclose(x, want[0], rtol=1e-2, atol=1e-3)
    assert residuals.shape == want[1].shape and int(rank) == want[2]
    np.testing.assert_allclose(residuals, want[1], rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(s, want[3], rtol=1e-3)


def test_residuals_of_complex_systems_are_real():
    a = (RNG.normal(size=(5, 2)) + 1j * RNG.normal(size=(5, 2))).astype(np.complex64)
    b = (RNG.normal(size=5) + 1j * RNG.normal(size=5)).astype(np.complex64)
    got, want = jnp.linalg.lstsq(a, b), np.linalg.lstsq(a, b, rcond=None)
    assert got[1].dtype == jnp.float32
    np.testing.assert_allclose(got[1], want[1], rtol=1e-3)


def test_derivatives():
    def f(a):
        return jnp.linalg.slogdet(a)[1]

    np.testing.assert_allclose(calque.grad(f)(A[0]), np.linalg.inv(A[0]).T, rtol=1e-2, atol=1e-4)
    det = calque.grad(jnp.linalg.det)(A[0, :2, :2])
    (a, b), (c, d) = A[0, :2, :2]
    np.testing.assert_allclose(det, [[d, -c], [-b, a]], rtol=1e-4)
    singular = calque.grad(jnp.linalg.det)(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    np.testing.assert_allclose(singular, [[4, -2], [-2, 1]], atol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.linalg.inv(B),
        lambda: jnp.linalg.solve(A, B[:, :2]),
        lambda: jnp.linalg.det(A[0, 0]),
    ],
)
def test_shapes_that_do_not_fit(call):
    with pytest.raises((ValueError, TypeError)):
        call()


def test_least_squares_of_nothing():
    """Singular values that are 0 count for nothing, whatever the limit."""
    x, _, rank, _ = jnp.linalg.lstsq(np.zeros((3, 2), np.float32), np.ones((3, 1), np.float32))
    assert x.tolist() == [[0], [0]]
    assert int(rank) == 0


def test_residuals_of_no_unknowns():
    """As NumPy has them: the squares of the right side."""
    a, b = np.zeros((3, 0), np.float32), np.arange(3, dtype=np.float32)
    ours = jnp.linalg.lstsq(a, b, numpy_resid=True)
    theirs = np.linalg.lstsq(a, b, rcond=None)
    assert [np.shape(x) for x in ours] == [np.shape(x) for x in theirs]
    np.testing.assert_allclose(ours[1], theirs[1])


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
def test_slopes_of_pseudo_inverses(shape, hermitian):
    """Of Hermitian ones along any direction: the Hermitian part of the matrix is what is read."""
    if hermitian and shape != (4, 4):
        return
    rng = np.random.default_rng(3)
    a, t = ((rng.normal(size=shape) + 1j * rng.normal(size=shape)) for _ in "at")

    def read(m):
        return (m + m.conj().T) / 2 if hermitian else m

    with calque.enable_x64(True):
        _, got = calque.jvp(lambda x: jnp.linalg.pinv(x, hermitian=hermitian), (read(a),), (t,))
    e = 1e-6
    want = (np.linalg.pinv(read(a + e * t)) - np.linalg.pinv(read(a - e * t))) / (2 * e)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(200_000, 2), (2, 200_000)])
def test_slopes_of_pseudo_inverses_of_long_matrices_need_no_large_squares(shape):
    x = RNG.normal(size=shape).astype(np.float32)
    p, t = calque.jvp(jnp.linalg.pinv, (x,), (x,))
    np.testing.assert_allclose(t, -p, rtol=1e-3, atol=1e-6 * float(abs(p).max()) * 10)
    assert calque.grad(lambda x: jnp.linalg.pinv(x).sum())(x).shape == shape


@pytest.mark.parametrize("n", [4, 5, 10, 40])
@pytest.mark.parametrize(
    "order, dtype", [("apart", "float32"), ("in turn", "float32"), ("in turn", "complex64")]
)
def test_determinants_of_large_and_small_elements(n: int, order: str, dtype: str) -> None:
    """What overflows on the way is no infinity at the end."""
    large, small = [1e30] * (n // 2), [1e-30] * (n // 2)
    d = large + small if order == "apart" else [v for pair in zip(large, small) for v in pair]
    a = np.diag(np.array(d + [-2.0] * (n % 2), dtype))
    want = -2.0 if n % 2 else 1.0
    for f in (jnp.linalg.det, calque.jit(jnp.linalg.det)):
        np.testing.assert_allclose(f(a), want, rtol=1e-3)
    assert jnp.linalg.det(a * 0) == 0
    assert not jnp.isfinite(jnp.linalg.det(np.eye(n, dtype=dtype) * 1e30))


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_signs_of_determinants_that_are_not_finite(bad: float) -> None:
    for a in (np.array([[bad]]), np.diag([2.0, bad, -3.0]), np.diag([bad] * 5)):
        with np.errstate(invalid="ignore"):
            want = np.linalg.slogdet(a)
        for f in (jnp.linalg.slogdet, calque.jit(jnp.linalg.slogdet)):
            got = f(a.astype("float32"))
            np.testing.assert_array_equal(got.sign, want.sign)
            np.testing.assert_allclose(got.logabsdet, want.logabsdet)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("exact", [True, False])
def test_slopes_of_least_squares_where_singular_values_are_equal(
    shape: tuple[int, int], exact: bool
) -> None:
    """Orthogonal columns have equal singular values, whose vectors have no derivative; the solution
    has one."""
    rng = np.random.default_rng(5)
    a = (
        np.eye(*shape)
        if exact
        else np.linalg.qr(rng.normal(size=(6, 6)))[0][: shape[0], : shape[1]]
    )
    b, t, step = rng.normal(size=(shape[0], 2)), rng.normal(size=shape), 1e-6

    def solution(a):
        return jnp.linalg.lstsq(a, b)[0]

    with calque.enable_x64(True):
        got = calque.jvp(solution, (a,), (t,))[1]
        slope = calque.grad(lambda a: (solution(a) ** 2).sum())(a)
        ends = [np.linalg.lstsq(a + h * t, b, rcond=None)[0] for h in (-step, step)]
    np.testing.assert_allclose(got, (ends[1] - ends[0]) / (2 * step), rtol=1e-6, atol=1e-7)
    change = ((ends[1] ** 2).sum() - (ends[0] ** 2).sum()) / (2 * step)
    np.testing.assert_allclose((slope * t).sum(), change, rtol=1e-6)


def test_the_determinant_of_nothing_is_an_array():
    out = jnp.linalg.det(jnp.zeros((0, 0)))
    assert isinstance(out, jnp.ndarray) and out == 1
