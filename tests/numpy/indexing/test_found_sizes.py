"""Arrays of sizes that only the running program knows, through the library: as eager, as NumPy."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax, nn, random

X = np.random.RandomState(0).rand(40).astype(np.float32)
MASKS = {"some": X > 0.6, "one": np.arange(40) == 7, "few": X > 0.95, "all": X > -1, "none": X > 2}

FUNCTIONS = {
    "identity": lambda y: y,
    "sum": lambda y: (y.sum(), y.prod(), jnp.nansum(y), jnp.count_nonzero(y > 0.5),
    jnp.all(y > 0), jnp.any(y > 0)),
    "mean": lambda y: (y.mean(), jnp.var(y), jnp.std(y), jnp.var(y, ddof=1), jnp.average(y,
    weights=y + 2)),
    "max": lambda y: (y.max(), y.min(), y.argmax(), y.argmin(), jnp.ptp(y)),
    "extremes from an initial value": lambda y: (y.min(initial=0.5), y.max(initial=0.5)),
    "norm": lambda y: (jnp.linalg.norm(y), y @ y, jnp.vdot(y, y)),
    "running": lambda y: (jnp.cumsum(y), jnp.cumprod(y), lax.cummax(y)),
    "order": lambda y: (jnp.sort(y), jnp.argsort(y), jnp.sort(y, descending=True)),
    "median": lambda y: (jnp.median(y), jnp.quantile(y, 0.3)),
    "reversed": lambda y: (y[::-1], jnp.flip(y)),
    "front": lambda y: (y[:3], y[1:], y[:-1], y[1:-1], y[2:5]),
    "back": lambda y: (y[-2:], y[:-3], y[-4:-1]),
    "steps": lambda y: (y[::2], y[1::3], y[::-2]),
    "neighbours": lambda y: (jnp.diff(y), y[1:] - y[:-1], jnp.roll(y, 1), jnp.roll(y, -7)),
    "an element": lambda y: (y[0], y[-1]),
    "far elements are clamped": lambda y: (y[5], jnp.take(y, jnp.array([0, 2]), mode="clip")),
    "outer": lambda y: (jnp.outer(y, y), jnp.outer(y, y).T, jnp.outer(y, y).ravel(),
    jnp.triu(jnp.outer(y, y))),
    "joined": lambda y: (jnp.concatenate([y, jnp.ones(3), y]), jnp.hstack([y, y]), jnp.append(y,
    3.0)),
    "stacked": lambda y: (jnp.stack([y, 2 * y]), jnp.stack([y, 2 * y], 1), jnp.vstack([y, y])),
    "repeated": lambda y: (jnp.tile(y, 2), jnp.repeat(y, 3), jnp.broadcast_to(y, (3, y.shape[0]))),
    "reshaped": lambda y: (y.reshape(-1, 1), jnp.concatenate([y, y]).reshape(2, -1), y[None, :,
    None], y[:, None].squeeze(1)),
    "chosen": lambda y: (jnp.where(y > 0.7, y, 0), jnp.clip(y, 0.2, 0.7), nn.relu(y - 0.7)),
    "masked again": lambda y: (y[y > 0.7], jnp.nonzero(y > 0.7)[0], jnp.compress(y > 0.7, y),
    jnp.extract(y > 0.7, y)),
    "unique": lambda y: jnp.unique(jnp.round(y, 1), return_counts=True),
    "sets": lambda y: (jnp.union1d(y, jnp.array([1.0])), jnp.setdiff1d(y, y[:1]),
    jnp.intersect1d(y, y), jnp.isin(y, y)),
    "softmax": lambda y: (nn.softmax(y), nn.logsumexp(y), (y - y.mean()) / (y.std() + 1)),
    "padded": lambda y: (jnp.pad(y, 2), jnp.pad(y, (1, 2), constant_values=3)),
    "products": lambda y: (jnp.outer(jnp.ones(4), y) @ jnp.outer(y, jnp.ones(3)),
    jnp.einsum("i,j->ij", y, y), jnp.kron(y, jnp.ones(2))),
    "sums of rows": lambda y: (jnp.outer(y, jnp.arange(5.0)).sum(0), jnp.outer(y,
    jnp.arange(5.0)).sum(1)),
    "updates": lambda y: (y.at[jnp.array([0, 0])].add(1.0), y.at[y > 0.7].set(0),
    y.at[:2].set(9.0)),
    "scan": lambda y: lax.scan(lambda c, a: (c + a, c * a), 0.0, y),
    "map": lambda y: (lax.map(lambda a: a * 2, y), jax.vmap(lambda a: (a * y).sum())(y)),
    "fori": lambda y: lax.fori_loop(0, y.shape[0], lambda i, c: c + i, 0),
    "cond": lambda y: lax.cond(y.sum() > 0, lambda: y * 2, lambda: y - 1),
    "sizes": lambda y: (jnp.ones(y.shape[0] * 2 + 1), jnp.arange(y.shape[0]), jnp.zeros_like(y),
    jnp.eye(y.shape[0])),
    "size as a number": lambda y: (jnp.asarray(y.shape[0]), y.shape[0] / 2, y.sum() / y.size),
    "counted": lambda y: (jnp.bincount((y * 3).astype(int)), jnp.histogram(y, 4, (0.0, 1.0))[0]),
    "searched": lambda y: jnp.searchsorted(jnp.sort(y), jnp.array([0.2, 0.7])),
    "transformed": lambda y: jnp.fft.fft(y),
    "convolved": lambda y: jnp.convolve(y, jnp.ones(3), "full"),
    "differentiated": lambda y: (jax.grad(lambda z: (z**2).sum())(y),
    jax.jvp(lambda z: (z**3).sum(), (y,), (y,))),
    "checkpointed": lambda y: (jax.checkpoint(lambda z: jnp.sin(z).sum())(y),
    jax.jit(lambda z: z * 2)(y)),
    "types": lambda y: ((y * 3).astype(jnp.int32), y.astype(jnp.bfloat16) * 2, (y + 1j) * 2,
    y > 0.5),
    "grids": lambda y: (jnp.meshgrid(y, jnp.arange(2.0)), jnp.polyval(jnp.ones(3), y),
    jnp.trapezoid(y)),
    "split": lambda y: (jnp.split(jnp.concatenate([y, y]), 2), jnp.array_split(jnp.concatenate([y,
    jnp.ones(4)]), [2])),
    "diagonals": lambda y: (jnp.diag(y), jnp.trace(jnp.outer(y, y))),
    "deleted": lambda y: jnp.delete(y, y > 0.7),
    "random": lambda y: random.normal(random.key(0), y.shape),
    "one hot": lambda y: nn.one_hot((y > 0.5).astype(int), 3),
    "a host call": lambda y: jax.pure_callback(lambda v: np.float32(v.sum()),
    jax.ShapeDtypeStruct((), np.float32), y),
}  # fmt: skip
EMPTY_IS_REFUSED = {"max": ValueError, "an element": IndexError,
"far elements are clamped": IndexError, "transformed": ValueError,
"convolved": ValueError}  # fmt: skip
OF_EMPTY = {"median": np.nan}  # eager refuses, or has a rule of its own


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eager(name):
    def f(x, m):
        return FUNCTIONS[name](x[m])

    jitted = jax.jit(f)
    x = jnp.array(X)
    for label, mask in MASKS.items():
        if label == "none" and name in EMPTY_IS_REFUSED:
            with pytest.raises(EMPTY_IS_REFUSED[name]):
                jitted(x, mask)
            continue
        got = jax.tree.leaves(jitted(x, mask))
        if label == "none" and name in OF_EMPTY:
            assert all(np.isnan(a) for a in got)
            continue
        for a, b in zip(got, map(np.asarray, jax.tree.leaves(f(x, mask))), strict=True):
            assert (a.shape, a.dtype) == (b.shape, jax.dtypes.canonicalize_dtype(b.dtype)), label
            wide = np.promote_types(b.dtype, np.float32) if b.dtype.kind in "fc" else b.dtype
            np.testing.assert_allclose(
                np.asarray(a).astype(wide), b.astype(wide), rtol=2e-5, atol=1e-5, err_msg=label
            )
    assert jitted._cache_size() == 1


@pytest.mark.parametrize(
    "index",
    [
        np.s_[:, None],
        np.s_[..., 0],
        np.s_[0],
        np.s_[None],
        np.s_[1:],
        np.s_[:, 1],
        np.s_[np.array([0, 1])],
    ],
    ids=str,
)
def test_indices_of_masked_rows(index):
    a, m = X.reshape(10, 4), X.reshape(10, 4)[:, 0] > 0.5
    np.testing.assert_array_equal(jax.jit(lambda a, m: a[m][index])(a, m), a[m][index])


def test_masks_among_other_indices():
    a = X.reshape(5, 8)
    m, rows = a[0] > 0.5, a[:, 1] > 0.5
    f = jax.jit(
        lambda a, m, rows: (
            a[:, m],
            a[1, m],
            a[rows, 2:5],
            a[rows][:, m],
            a[a > 0.5],
            a[rows, None],
            a[..., m],
        )
    )
    want = (a[:, m], a[1, m], a[rows, 2:5], a[rows][:, m], a[a > 0.5], a[rows, None], a[..., m])
    for got, b in zip(f(a, m, rows), want):
        np.testing.assert_array_equal(got, b)
    with pytest.raises(IndexError, match="boolean index did not match"):
        jax.jit(lambda a, m: a[m])(a, m)
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError, match="scalars"):
        jax.jit(lambda a, m: a[m])(a, True)


def test_arrays_selected_by_one_mask_have_one_size():
    f = jax.jit(lambda x, y: (lambda m: x[m] * y[m])(x > 0.5))
    np.testing.assert_array_equal(f(X, 2 * X), (X * 2 * X)[X > 0.5])
    g = jax.jit(lambda a: (a[a[:, 0] > 0.5].T @ a[a[:, 0] > 0.5], a[a > 0.5] - a[a > 0.5].mean()))
    a = X.reshape(10, 4)
    rows = a[a[:, 0] > 0.5]
    np.testing.assert_allclose(g(a)[0], rows.T @ rows, rtol=1e-5)
    np.testing.assert_allclose(g(a)[1], a[a > 0.5] - a[a > 0.5].mean(), rtol=1e-5)
    with pytest.raises(TypeError, match="one and the same mask"):
        jax.jit(lambda x: x[x > 0.5] + x[x < 0.5])(X)


@pytest.mark.parametrize("n", [0, 1, 3, 40, 60, -4, -60])
def test_traced_bounds_of_slices(n):
    f = jax.jit(
        lambda x, n: (
            x[:n],
            x[n:],
            x[n:-2],
            x[-3:n],
            x[n::-2],
            x[:n:3],
            x.at[:n].set(-1),
            x.at[n:].add(x[n:]),
        )
    )
    got = f(X, n)
    added = X.copy()
    added[n:] += X[n:]
    put = X.copy()
    put[:n] = -1
    want = (X[:n], X[n:], X[n:-2], X[-3:n], X[n::-2], X[:n:3], put, added)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def test_traced_bounds_along_axes():
    a = X.reshape(5, 8)
    f = jax.jit(lambda a, n: (a[1:n, :n], a[:n, None, 2], a[..., n:], a.at[0, :n].set(7.0)))
    put = a.copy()
    put[0, :3] = 7
    for got, want in zip(f(a, 3), (a[1:3, :3], a[:3, None, 2], a[..., 3:], put)):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexError, match="step"):
        jax.jit(lambda x, n: x[::n])(X, 2)
    with pytest.raises(TypeError, match="slice indices must be integers"):
        jax.jit(lambda x, n: x[:n])(X, 2.0)
    with pytest.raises(NotImplementedError, match="two steps"):
        jax.jit(lambda a, n: a.at[:n, :n].set(0))(a, 3)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_traced_sizes(n):
    f = jax.jit(
        lambda n: (
            jnp.ones((n,)), jnp.zeros((n, 2), int), jnp.full((2, n), n), jnp.empty((n,)),
            jnp.arange(n), jnp.eye(n), jnp.eye(3, n),
            jnp.linspace(0, 1, n), jnp.linspace(0, 1, n, endpoint=False), jnp.tile(jnp.arange(2),
            n), jnp.broadcast_to(1.0, (n, 3)),
            random.uniform(random.key(1), (n,)), jnp.arange(n, 5), jnp.arange(9, n, -2),
            jnp.repeat(jnp.arange(3), n), jnp.identity(n),
        )
    )  # fmt: skip
    want = (
        np.ones(n), np.zeros((n, 2), int), np.full((2, n), n), None, np.arange(n), np.eye(n),
        np.eye(3, n), np.linspace(0, 1, n),
        np.linspace(0, 1, n, endpoint=False), np.tile(np.arange(2), n), np.ones((n, 3)),
        random.uniform(random.key(1), (n,)),
        np.arange(n, 5), np.arange(9, n, -2), np.repeat(np.arange(3), n), np.eye(n),
    )  # fmt: skip
    for a, b in zip(f(n), want, strict=True):
        if b is None:
            assert a.shape == (n,)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_reshape_to_a_traced_size_is_checked():
    f = jax.jit(lambda x, n: x.reshape(n, 4))
    np.testing.assert_array_equal(f(X, 10), X.reshape(10, 4))
    with pytest.raises(TypeError, match="cannot reshape"):
        f(X, 9)
    np.testing.assert_array_equal(
        jax.jit(lambda x: x.reshape(jnp.array(x.shape).prod()))(jnp.ones((2, 3))), np.ones(6)
    )


def test_repeats_and_splits():
    counts = np.array([2, 0, 1, 3])
    f = jax.jit(lambda x, c: jnp.repeat(x, c, axis=0))
    for x in (X[:4], X.reshape(4, 10)):
        np.testing.assert_array_equal(f(x, counts), np.repeat(x, counts, axis=0))
    assert f(X[:4], 0 * counts).shape == (0,)
    with pytest.raises(ValueError, match="negative"):
        f(X[:4], -counts)
    with pytest.raises(TypeError, match="integers"):
        f(X[:4], counts * 1.0)
    for got, want in zip(jax.jit(jnp.split)(X, np.array([3, 9])), np.split(X, [3, 9]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_sets_and_places():
    a, b = np.array([5, 1, 2, 2, 9]), np.array([2, 9, 7])
    for name in ("union1d", "setdiff1d", "intersect1d", "setxor1d"):
        np.testing.assert_array_equal(jax.jit(getattr(jnp, name))(a, b), getattr(np, name)(a, b))
    asked = {"return_index": True, "return_inverse": True, "return_counts": True}
    for got, want in zip(jax.jit(lambda x: jnp.unique(x, **asked))(a), np.unique(a, **asked)):
        np.testing.assert_array_equal(got, want)
    rows = np.array([[1, 2], [0, 1], [1, 2]])
    np.testing.assert_array_equal(
        jax.jit(lambda x: jnp.unique(x, axis=0))(rows), np.unique(rows, axis=0)
    )
    grid = X.reshape(5, 8) > 0.5
    for f in (jnp.nonzero, jnp.where, jnp.argwhere, jnp.flatnonzero):
        np.testing.assert_array_equal(jax.jit(f)(grid), getattr(np, f.__name__)(grid))
    np.testing.assert_array_equal(
        jax.jit(jnp.delete)(X, np.array([1, 3, 3])), np.delete(X, [1, 3, 3])
    )
    np.testing.assert_array_equal(jax.jit(jnp.bincount)(a), np.bincount(a))
    for line in ([0, 1, 2, 0], [0, 0], [3]):
        for trim in ("fb", "f", "b"):
            got = jax.jit(lambda x, trim=trim: jnp.trim_zeros(x, trim))(np.array(line))
            np.testing.assert_array_equal(got, np.trim_zeros(np.array(line), trim))
    assert int(jax.jit(jnp.unique_counts)(a).counts[1]) == 2


def test_nan_is_one_value_or_many():
    x = np.array([np.nan, 1.0, np.nan], np.float32)
    assert jax.jit(jnp.unique)(x).shape == (2,)
    assert jax.jit(lambda x: jnp.unique(x, equal_nan=False))(x).shape == (3,)


def test_bad_sizes():
    ones = jax.jit(lambda n: jnp.ones(n))
    with pytest.raises(ValueError, match="negative"):
        ones(-3)
    with pytest.raises(TypeError, match="sequences of concrete values"):
        ones(2.0)
    with pytest.raises((MemoryError, OverflowError)):
        jax.jit(lambda n: jnp.ones((n, 1 << 20, 1 << 20)))(1 << 30)
    with pytest.raises(ZeroDivisionError):
        jax.jit(lambda s: jnp.arange(0, 5, s))(0)


def test_random_keys():
    keys = jax.jit(lambda x: random.split(random.key(0), 40)[x > 0.5])(X)
    np.testing.assert_array_equal(
        random.key_data(keys), random.key_data(random.split(random.key(0), 40))[X > 0.5]
    )


def test_wide_integers():
    with jax.enable_x64(True):
        f = jax.jit(lambda x, n: (jnp.nonzero(x)[0], x[:n], jnp.arange(n)))
        places, cut, line = f(np.array([0, 3, 4]), np.int64(2))
        assert places.dtype == line.dtype == np.int64
        np.testing.assert_array_equal(places, [1, 2])
        np.testing.assert_array_equal(cut, [0, 3])
        assert jax.jit(lambda x, n: x[:n])(np.array([0, 3, 4]), np.int64(2) ** 40).shape == (3,)
