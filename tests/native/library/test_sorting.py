"""Sorting without Python: the same bits as the meaning of `sort`, `top_k` and `approx_top_k`, eager
and compiled, however it is done."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import to_numpy
from calque.machine import memory, threads
from calque.machine.routines.sort import records as sort_records
from calque.native.library import sorting
from calque.ops.sorting import approx_top_k_p, sort_p, top_k_p
from tests.native.programs import compiled, run
from tests.ops.helpers import x64

DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float32,
    np.float64, np.complex64, np.complex128, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fnuz, ml_dtypes.int4,
    ml_dtypes.uint4,
]  # fmt: skip
NAMES = [np.dtype(d).name for d in DTYPES]
ORDERED = [d for d in DTYPES if np.dtype(d).kind != "c"]
KINDS = ("bits", "few", "close", "normal", "sorted", "reversed", "constant")
SHAPES = (
    (0,),
    (1,),
    (2,),
    (7,),
    (16,),
    (17,),
    (100,),
    (257,),
    (700,),
    (3, 0),
    (0, 3),
    (4, 5),
    (3, 300),
    (300, 3),
    (2, 3, 4),
    (3, 600, 2),
)


def data(dtype: Any, shape: tuple[int, ...], kind: str, seed: int = 0) -> np.ndarray:
    """Elements of a type: any bits, few different ones with all special values, close together, and
    in some order."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    n = int(np.prod(shape))
    small = dtype.name in ("int4", "uint4")
    if kind == "bits":
        x = rng.integers(0, 256, n * dtype.itemsize, dtype=np.uint8)
        x = x & 1 if dtype.kind == "b" else x & 7 if small else x
        return (x.astype(dtype) if small else x.view(dtype)).reshape(shape)
    if kind == "few":
        whole = dtype.kind in "biu" or small
        pool = [0, 1, 2, 3] if whole else [0.0, -0.0, 1, 2, np.nan, -np.nan, np.inf, -np.inf, -1]
        x = rng.choice(np.array(pool), n).astype(dtype)
        if dtype.kind == "c":
            x.imag = rng.choice(np.array(pool), n)
        return x.reshape(shape)
    if kind == "close" and dtype == np.float64:
        return (1 + rng.integers(0, 5, n) * rng.integers(0, 1000, n) * 2.0**-52).reshape(shape)
    if kind == "close" and dtype.kind in "iu" and dtype.itemsize == 8:
        return (
            rng.integers(0, 3, n).astype(dtype) * dtype.type(1 << 50)
            + rng.integers(0, 999, n).astype(dtype)
        ).reshape(shape)
    return ordered(rng.standard_normal(n) * 100, dtype, kind, rng.standard_normal(n)).reshape(shape)


def ordered(x: np.ndarray, dtype: np.dtype, kind: str, imag: np.ndarray) -> np.ndarray:
    if kind in ("sorted", "reversed"):
        x = np.sort(x)[:: 1 if kind == "sorted" else -1]
    if kind == "constant":
        x, imag = x[:1].repeat(len(x)), imag[:1].repeat(len(x))
    if dtype.kind == "c":
        return (x + 1j * imag).astype(dtype)
    if dtype.kind in "ub" or dtype.name in ("int4", "uint4"):
        x = np.abs(x) % 8
    return x.astype(dtype)


def same_bits(got: Any, want: np.ndarray) -> None:
    got = to_numpy(got)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(
        np.ascontiguousarray(got).view(np.uint8), np.ascontiguousarray(want).view(np.uint8)
    )


def agrees(primitive: Any, *args: np.ndarray, **params: Any) -> None:
    """What is there without compiling has the bits of the meaning."""
    with np.errstate(all="ignore"):
        want = primitive.meaning(*args, **params)
    for g, w in zip(primitive.bind(*map(jnp.asarray, args), **params), want, strict=True):
        same_bits(g, w)


def positions(shape: tuple[int, ...], axis: int) -> np.ndarray:
    return np.indices(shape, np.int32)[axis]


@pytest.fixture(params=["pivots", "digits"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Long rows are split at pivots, or sorted by digits as on processors that split slowly."""
    sort_records.unit.compile()
    before = sort_records._splits.read()
    if request.param == "pivots" and not before:
        pytest.skip("this processor does not pack the lanes of vectors")
    sort_records._splits.write(int(request.param == "pivots"))
    yield request.param
    sort_records._splits.write(before)


# ---------------------------------------------------------------- every type, shape and axis


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_one_operand(dtype: Any) -> None:
    with x64():
        for k, shape in enumerate(SHAPES):
            for axis in range(len(shape)):
                for j, kind in enumerate(KINDS):
                    x = data(dtype, shape, kind, seed=k + j)
                    agrees(sort_p, x, dimension=axis, is_stable=bool(j % 2), num_keys=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_places(dtype: Any) -> None:
    with x64():
        for k, shape in enumerate(SHAPES):
            for axis in range(len(shape)):
                for j, kind in enumerate(KINDS):
                    x = data(dtype, shape, kind, seed=k + j)
                    agrees(
                        sort_p,
                        x,
                        positions(shape, axis),
                        dimension=axis,
                        is_stable=True,
                        num_keys=1,
                    )


def test_several_keys() -> None:
    rng = np.random.default_rng(5)
    with x64():
        for turn in range(150):
            shape = SHAPES[int(rng.integers(len(SHAPES)))]
            count = int(rng.integers(2, 5))
            kinds = [KINDS[int(rng.integers(len(KINDS)))] for _ in range(count)]
            xs = [
                data(DTYPES[int(rng.integers(len(DTYPES)))], shape, k, turn + i)
                for i, k in enumerate(kinds)
            ]
            axis, keys = int(rng.integers(len(shape))), int(rng.integers(1, count + 1))
            agrees(sort_p, *xs, dimension=axis, is_stable=True, num_keys=keys)


@pytest.mark.parametrize("dtype", ORDERED, ids=[np.dtype(d).name for d in ORDERED])
def test_largest(dtype: Any) -> None:
    other = {"recall_target": 0.9, "reduction_input_size_override": -1, "aggregate_to_topk": True}
    with x64():
        for n, shape in enumerate(SHAPES):
            for axis in range(len(shape)):
                for k in {0, min(1, shape[axis]), shape[axis] // 3, shape[axis]}:
                    x = data(dtype, shape, KINDS[(n + k) % len(KINDS)], n)
                    agrees(top_k_p, x, k=k, axis=axis)
                    agrees(
                        approx_top_k_p,
                        x,
                        k=k,
                        reduction_dimension=axis - len(shape),
                        is_max_k=bool(n % 2),
                        **other,
                    )


# ---------------------------------------------------------------- long rows


@pytest.mark.parametrize("count", [1, 3])
def test_long_rows(way: str, count: int) -> None:
    before = threads.get_num_threads()
    threads.set_num_threads(count)
    try:
        with x64():
            for dtype in (np.int16, np.uint32, np.float32, np.float64, np.int64):
                for kind in KINDS:
                    x = data(dtype, (70_000,), kind)
                    same_bits(
                        sort_p.bind(jnp.asarray(x), dimension=0, is_stable=True, num_keys=1)[0],
                        stable(x),
                    )
                    order = np.argsort(canonical(x), kind="stable")
                    same_bits(jnp.argsort(jnp.asarray(x)), order)
    finally:
        threads.set_num_threads(before)


def canonical(x: np.ndarray) -> np.ndarray:
    """Equal elements with equal bits, for NumPy's stable sort."""
    if x.dtype.kind != "f":
        return x
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(x), np.nan, x + 0).astype(x.dtype)


def stable(x: np.ndarray) -> np.ndarray:
    return x[np.argsort(canonical(x), kind="stable")]


def test_keys_that_agree_in_what_fits_in_a_record(way: str) -> None:
    rng = np.random.default_rng(0)
    n = 5000
    with x64():
        for spread in (2, 50, 10**9):
            high = rng.integers(0, 3, n).astype(np.int64) << 60
            x = high + rng.integers(0, spread, n)
            agrees(sort_p, x, positions((n,), 0), dimension=0, is_stable=True, num_keys=1)
            agrees(sort_p, x, dimension=0, is_stable=True, num_keys=1)
            groups = rng.integers(0, 3, n).astype(np.int8)
            agrees(sort_p, groups, x, positions((n,), 0), dimension=0, is_stable=True, num_keys=2)


def test_a_few_of_many(way: str) -> None:
    x = data(np.float32, (50_000,), "normal")
    y = data(np.float32, (50_000,), "few")
    for k in (1, 5, 300, 20_000, 50_000):
        agrees(top_k_p, x, k=k, axis=0)
        agrees(top_k_p, y, k=k, axis=0)


# ---------------------------------------------------------------- compiled programs


def test_compiled_programs_do_not_call_python() -> None:
    x, y = data(np.float32, (30, 50), "few"), data(np.int32, (30, 50), "few")

    def several(a, b):
        return list(lax.sort((a, b, a * 2), dimension=0, num_keys=2))

    for fun in (
        several,
        lambda a, b: jnp.argsort(a, axis=0) + jnp.sort(b),
        lambda a, b: list(lax.top_k(a.T, 20)),
    ):
        e = compiled(fun, x, y)
        assert not e.host_calls
        want = fun(jnp.asarray(x), jnp.asarray(y))
        for g, w in zip(run(e, x, y), want if isinstance(want, list) else [want], strict=True):
            same_bits(g, to_numpy(w))
    assert not compiled(
        lambda a, b: [jnp.median(a), jnp.percentile(a, 30), jnp.unique(b, size=4)], x, y
    ).host_calls
    assert "sort" in compiled(several, x, y).as_text("driver")


def test_numbers_of_places_are_not_made() -> None:
    x = data(np.float32, (40, 7), "normal")
    text = compiled(lambda a: jnp.argsort(a, axis=0), x).as_text("driver")
    assert text.count("call") == 1 and "arena 0 B" in text
    both = compiled(
        lambda a: list(lax.sort((lax.broadcasted_iota(np.int32, (40, 7), 0), a), dimension=0)), x
    )
    same_bits(run(both, x)[1], x)


def test_free_sizes() -> None:
    traces = []

    @jax.jit
    def f(x: Any) -> Any:
        traces.append(1)
        return jnp.sort(x, axis=0), jnp.argsort(x, axis=-1), lax.sort((x, x + 1), num_keys=2)[1]

    for shape in ((5, 8), (7, 9), (300, 40), (2, 2), (70, 600)):
        x = data(np.float32, shape, "few")
        out = f(x)
        same_bits(out[0], sort_p.meaning(x, dimension=0, is_stable=True, num_keys=1)[0])
        same_bits(out[1], np.argsort(canonical(x), axis=-1, kind="stable").astype(np.int32))
    assert len(traces) <= 2


def test_inside_loops_and_transformed() -> None:
    x = data(np.float32, (6, 20), "normal")

    def rolled(c, row):
        return (jnp.sort(c + row), jnp.argsort(row))

    last, places = jax.jit(lambda v: lax.scan(rolled, v[0], v))(x)
    want = x[0]
    for row in x:
        want = np.sort(want + row)
    same_bits(last, want)
    same_bits(places, np.argsort(x, axis=1).astype(np.int32))
    sorted_rows = jax.jit(
        lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sort(c[1])), (0, v))[
            1
        ]
    )
    same_bits(jax.vmap(sorted_rows)(x), np.sort(x))
    weights = jnp.arange(20.0)
    gradient = jax.jit(jax.grad(lambda v: jnp.sort(v) @ weights))(x[0])
    same_bits(gradient, np.argsort(np.argsort(x[0])).astype(np.float32))
    same_bits(
        jax.jit(jax.vmap(jnp.argsort, in_axes=1, out_axes=1))(x),
        np.argsort(x, axis=0).astype(np.int32),
    )


def test_typed_keys_go_along() -> None:
    keys = jax.random.split(jax.random.key(0), 5)
    order = jnp.array([3, 1, 4, 0, 2])
    moved = lax.sort((order, keys))[1]
    same_bits(jax.random.key_data(moved), to_numpy(jax.random.key_data(keys))[np.argsort(order)])


def test_rows_that_are_too_long_for_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "_LONGEST", 10)
    x = data(np.float32, (3, 11), "few")
    e = compiled(lambda a: [jnp.sort(a), jnp.argsort(a, axis=0)], x)
    assert e.host_calls == ["sort"]
    same_bits(run(e, x)[0], sort_p.meaning(x, dimension=1, is_stable=True, num_keys=1)[0])


@pytest.mark.usefixtures("no_garbage")
def test_memory_that_is_short() -> None:
    x = jnp.zeros(4_000_000, jnp.float32).at[0].set(1)
    f = jax.jit(jnp.argsort)
    f(x[:100])
    out = f(x)
    del out
    memory.trim(0)
    used = memory.stats().live_bytes
    memory.set_limit(used + (40 << 20))
    try:
        with pytest.raises(MemoryError):
            f(x)
    finally:
        memory.set_limit(memory.physical_memory())
    assert int(f(x)[-1]) == 0


@pytest.mark.peer
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8, np.bool_, np.complex64],
)
def test_peer(dtype: Any) -> None:
    peer = pytest.importorskip("jax")
    for kind in ("few", "normal"):  # XLA takes denormals for zero
        for shape, axis in (((300,), 0), ((20, 9), 0), ((9, 20), 1)):
            x = data(dtype, shape, kind)
            y = positions(shape, axis)
            got, want = lax.sort((x, y), dimension=axis), peer.lax.sort((x, y), dimension=axis)
            np.testing.assert_array_equal(to_numpy(got[1]), np.asarray(want[1]))
            if np.dtype(dtype).kind != "c":
                same_bits(jnp.sort(x, axis), np.asarray(peer.numpy.sort(x, axis)))
