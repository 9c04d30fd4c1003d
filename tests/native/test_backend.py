"""Every operation with a native form against its meaning: dtypes, odd, large, empty and scalar
shapes."""

import ml_dtypes
import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.primitives import do
from tests.native.programs import check, compiled, normal, run, same

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32)
DTYPES = (*FLOATS, np.int8, np.int32, np.uint8, np.uint32, np.bool_, np.complex64)
SHAPES = (
    (),
    (0,),
    (1,),
    (3,),
    (17,),
    (64,),
    (65,),
    (300,),
    (0, 3),
    (3, 0),
    (1, 5),
    (5, 1),
    (7, 70),
    (70, 7),
    (2, 3, 20),
)


def axes_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    n = len(shape)
    return (
        [(a,) for a in range(n)]
        + ([tuple(range(n))] if n > 1 else [])
        + ([(0, 2)] if n == 3 else [])
    )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "and", "or", "xor"])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.uint8, np.bool_, np.complex64], ids=str)
def test_reductions(name: str, dtype: type) -> None:
    kind = np.dtype(dtype).kind
    if name in ("and", "or", "xor") and kind not in "biu":
        pytest.skip("bits only")
    if (name in ("sum", "prod") and kind == "b") or (name in ("max", "min") and kind == "c"):
        pytest.skip("not defined")
    more = {"out_sharding": None} if name == "sum" else {}
    for shape in SHAPES[1:]:
        x = normal(*shape, dtype=dtype)
        if name == "prod" and kind in "fcV":
            x = (x * np.asarray(0.1).astype(x.dtype) + np.asarray(1).astype(x.dtype)).astype(
                x.dtype
            )
        for axes in axes_of(shape):
            check(lambda x: getattr(do, f"reduce_{name}")(x, axes=axes, **more), x, tol=2e-4)


@pytest.mark.parametrize("n", [16_384, 16_385, 40_000, 100_000])
def test_long_sums_are_cut_into_chunks(n: int) -> None:
    x = normal(n)
    check(lambda x: jnp.sum(x), x, tol=1e-3)
    check(lambda x: jnp.max(x), x)
    check(lambda x: jnp.sum(x, axis=0), normal(n, 2), tol=1e-3)


def test_order_of_a_sum_is_that_of_its_extent() -> None:
    """The same bits along rows and columns, inlined or stored, unrolled or in loops."""
    for k in (1, 2, 5, 16, 17, 63, 64, 65, 100, 130, 1000):
        x = normal(k, 33)
        columns = run(compiled(lambda x: jnp.sum(x, axis=0), x, exact=True), x)[0]
        rows = run(compiled(lambda x: jnp.sum(x, axis=1), x.T.copy(), exact=True), x.T.copy())[0]
        turned = run(compiled(lambda x: jnp.sum(x.T, axis=1), x, exact=True), x)[0]
        fused = run(compiled(lambda x: [jnp.sum(x, axis=0), x * 2.0], x, exact=True), x)[0]
        single = np.stack(
            [
                run(compiled(lambda v: jnp.sum(v), x[:, 0], exact=True), x[:, j].copy())[0]
                for j in range(3)
            ]
        )
        same(columns, rows)
        same(columns, turned)
        same(columns, fused)
        same(columns[:3], single)


def test_negative_zeros_sum_to_zero() -> None:
    for n in (1, 3, 20, 100):
        x = np.full((n,), -0.0, np.float32)
        assert not np.signbit(run(compiled(lambda x: jnp.sum(x), x), x)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_], ids=str)
def test_argmax(dtype: type) -> None:
    for shape in ((1,), (5,), (100,), (7, 70), (70, 7)):
        x = normal(*shape, dtype=dtype)
        for axis in range(len(shape)):
            check(lambda x: [jnp.argmax(x, axis), jnp.argmin(x, axis)], x)
    x = normal(50)
    x[[20, 30]] = np.nan
    assert run(compiled(lambda x: jnp.argmax(x), x), x)[0] == 20


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layout(dtype: type) -> None:
    x = normal(7, 20, dtype=dtype)
    zero = np.zeros((), dtype)
    for fun in (
        lambda x: x.T,
        lambda x: jnp.reshape(x, (4, 35)),
        lambda x: jnp.reshape(x.T, (10, 14)),
        lambda x: x[1:6:2, ::3],
        lambda x: x[::-1, ::-1],
        lambda x: jnp.concatenate([x, x[:2], x], 0),
        lambda x: jnp.concatenate([x, x, x, x, x], 1),
        lambda x: do.pad(x, zero, padding_config=((1, 2, 1), (-2, 3, 2))),
        lambda x: do.pad(x, zero, padding_config=((-1, -2, 0), (0, -3, 0))),
        lambda x: jnp.stack([x, x], 1),
        lambda x: jnp.split(x, [3, 4], 0),
        lambda x: jnp.roll(x, 3, 1),
        lambda x: jnp.broadcast_to(x[:, None, :], (7, 3, 20)),
        lambda x: jnp.tile(x, (2, 3)),
        lambda x: lax.dynamic_slice(x, (2, 30), (3, 4)),
        lambda x: lax.dynamic_update_slice(x, x[:2, :3], (4, 18)),
    ):
        check(fun, x)


def test_reshapes_keep_their_order() -> None:
    x = normal(4, 6, 10)
    for shape in (
        (240,),
        (24, 10),
        (2, 2, 60),
        (8, 3, 10),
        (40, 6),
        (6, 40),
        (1, 4, 6, 1, 10),
        (5, 48),
    ):
        check(lambda x: jnp.reshape(x, shape) + 1.0, x)
        check(lambda x: jnp.reshape(jnp.transpose(x, (2, 0, 1)), shape), x)


def test_indexing() -> None:
    x = normal(9, 20)
    i = np.array([0, 8, 3, 3, -1], np.int32)
    j = np.array([[1, 2], [19, 0]], np.int32)
    for fun in (
        lambda x, i, j: x[i],
        lambda x, i, j: x[:, i],
        lambda x, i, j: x[i[:2], j[0]],
        lambda x, i, j: x[:, j],
        lambda x, i, j: jnp.take(x, i + 6, axis=0, mode="fill"),
        lambda x, i, j: jnp.take(x, i + 6, axis=0, mode="clip"),
        lambda x, i, j: jnp.take_along_axis(x[:2], j, axis=1),
        lambda x, i, j: x[i[2]],
    ):
        check(fun, x, i, j)


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
def test_scatter(mode: str) -> None:
    x = normal(9, 4)
    i = np.array([0, 8, 3, 3, 1] + ([20, -30] if mode != "promise_in_bounds" else []), np.int32)
    u = normal(len(i), 4, seed=1)
    for how in ("set", "add", "multiply", "min", "max", "subtract"):
        check(lambda x, i, u: getattr(x.at[i], how)(u, mode=mode), x, i, u)
        check(lambda x, i, u: getattr(x[:, 0].at[i], how)(u[:, 0], mode=mode), x, i, u)


def test_scatter_of_complex_and_bool() -> None:
    check(
        lambda x, i: x.at[i].add(x[0]), normal(5, dtype=np.complex64), np.array([1, 1, 2], np.int32)
    )
    check(lambda x, i: x.at[i].set(True), normal(5, dtype=np.bool_), np.array([1, 1, 2], np.int32))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative(name: str) -> None:
    for shape in ((0,), (1,), (15,), (16,), (17,), (300,), (5, 40), (40, 5)):
        for axis in range(len(shape)):
            for reverse in (False, True):
                check(
                    lambda x: getattr(do, name)(x, axis=axis, reverse=reverse),
                    normal(*shape) * np.float32(0.3),
                    tol=1e-4,
                )
    check(lambda x: do.cumsum(x, axis=0, reverse=False), normal(100, dtype=np.int32))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.complex64, np.int8], ids=str)
def test_products(dtype: type) -> None:
    def a(*s):
        return normal(*s, dtype=dtype)

    tol = 2e-4
    for m, k, n in (
        (1, 1, 1),
        (3, 4, 5),
        (17, 33, 9),
        (40, 50, 70),
        (64, 64, 64),
        (2, 0, 3),
        (0, 4, 2),
    ):
        check(lambda x, y: x @ y, a(m, k), a(k, n), tol=tol)
    check(lambda x, y: x @ y, a(37, 50), a(50), tol=tol)
    check(lambda x, y: y @ x, a(37, 50), a(37), tol=tol)
    check(lambda x, y: x @ y, a(50), a(50), tol=tol)
    check(lambda x, y: x @ y, a(3, 20, 30), a(3, 30, 25), tol=tol)
    check(lambda x, y: x @ jnp.swapaxes(y, -1, -2), a(2, 3, 9, 40), a(2, 3, 33, 40), tol=tol)
    check(lambda x, y: x.T @ y, a(50, 37), a(50, 41), tol=tol)
    check(lambda x, y: x @ y.T, a(37, 50), a(64, 50), tol=tol)


def test_long_products_in_rounds() -> None:
    check(lambda x, y: x @ y, normal(20, 1100), normal(1100, 40), tol=1e-3)


def test_what_follows_a_product_is_fused() -> None:
    """Two steps, one of which packs the right side; one alone where rows are few."""
    for rows, steps in ((120, 2), (50, 1)):
        x, w, b = normal(rows, 100), normal(100, 96), normal(96)
        e = check(lambda x, w, b: jnp.maximum(x @ w + b, 0.0), x, w, b, tol=1e-4)
        assert len(e.steps) == steps, e.as_text()
        e = check(lambda x, w, b: jnp.tanh((x @ w).reshape(5, -1, 96) + b) * 2.0, x, w, b, tol=1e-4)
        assert len(e.steps) == steps, e.as_text()
    check(lambda x, w, b: [x @ w, x @ w + b], x, w, b, tol=1e-4)
    check(lambda x, w, b: (x @ w + b).sum(1), x, w, b, tol=1e-3)


def test_windows() -> None:
    x = normal(2, 9, 8, 3)
    for window, strides, padding in (
        ((1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        ((1, 3, 3, 1), (1, 2, 1, 1), "SAME"),
    ):
        for start, f in ((-np.inf, lax.max), (0.0, lax.add), (np.inf, lax.min)):
            check(lambda x: lax.reduce_window(x, start, f, window, strides, padding), x, tol=1e-4)


def test_results_that_need_no_work() -> None:
    x = normal(5, 3)
    check(lambda x: [x, x, x + 1.0, x + 1.0], x)
    check(lambda x: [jnp.float32(3), x], x)
    check(lambda x: jnp.zeros((3, 4)), x)
    check(lambda x: x + np.arange(15, dtype=np.float32).reshape(5, 3), x)


def test_many_stages_of_one_program() -> None:
    def block(x, g):
        mean = x.mean(-1, keepdims=True)
        centred = x - mean
        h = centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * g
        e = jnp.exp(h - h.max(-1, keepdims=True))
        return [e / e.sum(-1, keepdims=True), h.sum(0), mean]

    for shape in ((1, 1), (3, 20), (40, 70), (2, 300)):
        check(block, normal(*shape), normal(shape[-1], seed=1), tol=1e-4)


def test_sizes_are_no_part_of_kernels() -> None:
    def f(x):
        return jnp.exp(x - x.max(-1, keepdims=True)).sum(0)

    a, b = compiled(f, normal(40, 50)), compiled(f, normal(41, 70))
    assert [k.code for k in a.kernels] == [k.code for k in b.kernels]


def test_constants_are_no_part_of_kernels() -> None:
    a, b = (
        compiled(lambda x: jnp.sin(x) * 3.7, normal(40)),
        compiled(lambda x: jnp.sin(x) * 4.1, normal(40)),
    )
    assert [k.code for k in a.kernels] == [k.code for k in b.kernels]


def test_texts_and_analyses() -> None:
    e = compiled(lambda x: jnp.exp(x).sum(), normal(100))
    for stage in ("jaxpr", "passes", "loops", "llvm", "asm", "driver"):
        assert e.as_text(stage)
    assert e.cost_analysis()["flops"] > 0
    assert e.memory_analysis().argument_size_in_bytes == 400
    with pytest.raises(ValueError, match="no stage"):
        e.as_text("nonsense")


def test_impossible_sizes_are_memory_errors() -> None:
    with pytest.raises(MemoryError):
        run(compiled(lambda x: jnp.broadcast_to(x, (1 << 40,)) + 1.0, np.float32(1)), np.float32(1))


def test_wrong_operands_are_refused() -> None:
    e = compiled(lambda x: x + 1.0, normal(3))
    with pytest.raises(TypeError, match="compiled for"):
        e.call([normal(4)])
