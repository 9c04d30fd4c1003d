"""Products of matrices in simpler terms: which form each takes, and that all give the sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.avals import ShapedArray
from calque.native.lower import dot
from calque.native.lower.graph import GraphBuilder
from tests.native.lower.shared import Elements, check
from tests.native.programs import compiled, normal, run


def whole(*shape: int, seed: int = 0) -> np.ndarray:
    """Small whole numbers: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def form(f, *args) -> list[str]:  # type: ignore[no-untyped-def]
    return [n.op for n in Elements(f, *args).graph.nodes if n.op in FORMS]


FORMS = ("matmul", "matmul_tiled", "reduce_sum", "mul", "and", "reduce_or")
NUMBERS = [
    ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
    ((3, 2), (4, 3), (((0,), (1,)), ((), ()))),
    ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    ((2, 5, 3), (3, 4, 5), (((2,), (0,)), ((1,), (2,)))),
    ((2, 3, 4), (4, 3, 5), (((1, 2), (1, 0)), ((), ()))),
    ((3,), (3,), (((0,), (0,)), ((), ()))),
    ((2, 3), (3,), (((1,), (0,)), ((), ()))),
    ((2, 3), (4, 5), (((), ()), ((), ()))),
    ((2, 1), (1, 5), (((1,), (0,)), ((), ()))),
    ((2, 0), (0, 5), (((1,), (0,)), ((), ()))),
    ((4, 3), (4, 3), (((1,), (1,)), ((0,), (0,)))),
]


@pytest.mark.parametrize("a, b, numbers", NUMBERS)
def test_all_dimension_numbers(a, b, numbers) -> None:  # type: ignore[no-untyped-def]
    for dtype in (np.float32, np.int32, np.complex64):
        x, y = whole(*a).astype(dtype), whole(*b, seed=1).astype(dtype)
        check(lambda x, y: lax.dot_general(x, y, numbers), x, y)


SHORT = ("int8", "uint8", "int16")


@pytest.mark.parametrize("left", SHORT)
@pytest.mark.parametrize("right", SHORT)
def test_short_integers_are_multiplied_in_pairs(left: str, right: str) -> None:
    """Their extremes, depths of both kinds, either side turned, batches; sums modulo 2**32."""
    r = np.random.default_rng(0)

    def draw(dtype: str, *shape: int) -> np.ndarray:
        ends = np.iinfo(dtype)
        x = r.integers(ends.min, ends.max + 1, shape).astype(dtype)
        x[..., :3, :3] = ends.min
        return x

    for wide in ("int32", "uint32"):
        for m, k, n in ((70, 64, 130), (33, 37, 65), (9, 1025, 40), (300, 3, 20), (64, 2, 64)):
            x, y = draw(left, m, k), draw(right, k, n)
            want = (x.astype(np.int64) @ y.astype(np.int64)).astype(wide)
            for a, b, dims in ((x, y, ((1,), (0,))), (x.T.copy(), y.T.copy(), ((0,), (1,)))):

                def f(a, b, dims=dims):  # type: ignore[no-untyped-def]
                    numbers = (dims, ((), ()))
                    return lax.dot_general(a, b, numbers, preferred_element_type=wide)

                e = compiled(f, a, b)
                assert "dot2" in e.as_text()
                np.testing.assert_array_equal(run(e, a, b)[0], want)
    x, y = draw(left, 3, 40, 51), draw(right, 3, 51, 60)
    many = compiled(
        lambda x, y: lax.dot_general(
            x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type="int32"
        ),
        x,
        y,
    )
    want = (x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(run(many, x, y)[0], want)


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_longer_integers_are_not(dtype: str) -> None:
    x = np.full((40, 50), np.iinfo(dtype).max, dtype)

    def f(x):  # type: ignore[no-untyped-def]
        return lax.dot(x, x.T, preferred_element_type="int32")

    e = compiled(f, x)
    assert "dot2" not in e.as_text()
    want = (x.astype(np.int64) @ x.T.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(run(e, x)[0], want)


def test_which_form_a_product_takes() -> None:
    def product(x, y):  # type: ignore[no-untyped-def]
        return x @ y

    assert form(product, normal(3, 4), normal(4, 5)) == ["matmul"]
    assert form(product, normal(30, 40), normal(40, 50)) == ["matmul_tiled"]
    assert form(product, normal(30, 40), normal(40)) == ["mul", "reduce_sum"]
    assert form(jnp.outer, normal(30), normal(40)) == ["mul"]
    numbers = (((1,), (0,)), ((), ()))
    flags = np.ones((2, 3), bool), np.ones(3, bool)
    assert form(lambda x, y: lax.dot_general(x, y, numbers), *flags) == ["and", "reduce_or"]
    long = 20**3
    assert form(product, normal(1, long), normal(long, 2)) == ["matmul"]  # no row to share


def test_halves_and_bytes_are_added_in_wider_types() -> None:
    for dtype, wide in (("float16", "float32"), ("float32", "float32"), ("int8", "int8")):
        assert dot.compute_dtype(*[np.dtype(dtype)] * 3) == np.dtype(wide)
    ones = np.full((1, 16), 0.1, np.float16)
    got = Elements(lambda x: x @ x.T, ones).result()
    assert got[0, 0] == np.float16(np.sum((ones.astype(np.float32) ** 2)[0]))


def test_small_products_add_in_the_order_of_the_index() -> None:
    """Of numbers whose sums depend on it: the first against the last is the largest."""
    x = np.array([[1e8, 1, -1e8, 1]], np.float32)
    y = np.ones((4, 2), np.float32)
    assert Elements(lambda x, y: x @ y, x, y).result().tolist() == [[1, 1]]
    e = Elements(lambda x, y: x @ y, x, y)
    (n,) = [n for n in e.graph.nodes if n.op == "matmul"]
    assert dot.small(n)
    big = next(
        n for n in Elements(lambda x, y: x @ y, normal(3, 17), normal(17, 2)).graph.nodes
        if n.op == "matmul"
    )  # fmt: skip
    assert not dot.small(big)


def test_nothing_summed_is_a_sum_from_zero() -> None:
    """-0.0 times 1 is -0.0; added to the zero that a sum starts from, 0.0."""
    x = np.array([[-0.0], [2.0]], np.float32)
    y = np.array([[1.0, -1.0]], np.float32)
    got = run(compiled(lambda x, y: x @ y, x, y), x, y)[0]
    assert not np.signbit(got[0]).any() and got.tolist() == [[0, 0], [2, -2]]
    np.testing.assert_array_equal(
        np.signbit(Elements(lambda x, y: x @ y, x, y).result()), np.signbit(got)
    )


def test_layout_that_is_none_is_not_written() -> None:
    g = dot.GraphBuilder()
    x = g.add("input", (), {}, Elements(lambda x: x, normal(2, 3)).graph.inputs[0].aval)
    assert dot.transposed(g, x, (0, 1)) is x and dot.spread(g, x, (2, 3), (0, 1)) is x
    assert dot.transposed(g, x, (1, 0)).shape == (3, 2)
    assert dot.flat(g, x, (1, 0), 2).shape == (6,) and len(g.nodes) == 4


@pytest.mark.parametrize("m, k, n", [(1, 16, 1), (2, 8, 2), (3, 4, 5), (4, 16, 4), (1, 2, 1)])
def test_small_products_of_computed_operands_have_the_bits_of_free_sizes(m, k, n) -> None:  # type: ignore[no-untyped-def]
    """The first two terms are not fused with each other, whichever way the compiler would."""
    for f in (lambda x, v: (x * 3) @ v, lambda x, v: ((x * v.sum()) * (v[:, 0] * 3)).sum(1)):
        for seed in range(9):
            r = np.random.default_rng(seed)
            x, v = [(r.normal(size=s) * 9).astype("f") for s in ((m, k), (k, n))]
            fixed = calque.jit(f, dynamic="never")(x, v)
            free = calque.jit(f, dynamic={0: (0, 1), 1: (0, 1)})(x, v)
            assert np.asarray(fixed).tobytes() == np.asarray(free).tobytes()


@pytest.mark.parametrize("compile", [lambda f: f, calque.jit])
@pytest.mark.parametrize(
    "x, dtype, want",
    [
        (np.array([1.6, 1.6], np.float32), "int32", 5),
        (np.array([1.6, 1.6], np.float16), "int8", 5),
        (np.array([1 + 2j, 3], np.complex64), "float32", 6),
        (np.array([1 + 2j, 3], np.complex64), "int32", 6),
        (np.array([True, True]), "int32", 2),
    ],
)
def test_a_narrower_result_is_cut_after_the_sum(compile, x, dtype, want) -> None:  # type: ignore[no-untyped-def]
    numbers = (((0,), (0,)), ((), ()))
    f = compile(lambda x: lax.dot_general(x, x, numbers, preferred_element_type=dtype))
    assert f(x) == want and f(x).dtype == dtype
    rows = compile(lambda x: lax.dot(x, x.T, preferred_element_type=dtype))
    np.testing.assert_array_equal(rows(np.stack([x] * 30)), np.full((30, 30), want))


# subscripts, and the other dimensions of both sides
LONG = {
    "vector": ("k,k->", (), ()),
    "rows": ("mk,k->m", (3,), ()),
    "columns": ("k,kn->n", (), (3,)),
    "batch": ("bk,bk->b", (2,), (2,)),
}


@pytest.mark.parametrize("form", LONG)
def test_long_products_with_a_vector_add_as_long_sums_do(form: str) -> None:
    """Sums of chunks are summed: positive numbers lose no digits."""
    k, (subscripts, left, right) = 200_003, LONG[form]
    r = np.random.default_rng(0)
    x = (r.random((*left, k)) + 0.1).astype(np.float32)
    y = (r.random((*right, k)) + 0.1).astype(np.float32)
    if form == "columns":
        y = y.T
    got = np.asarray(calque.jit(lambda x, y: jnp.einsum(subscripts, x, y))(x, y))
    want = np.einsum(subscripts, x.astype(np.float64), y.astype(np.float64))
    assert np.allclose(got, want, rtol=1e-6, atol=0)


def test_rows_that_are_added_lie_one_behind_the_other() -> None:
    """Chunks of the contracted dimension stand where it stands in memory, or every sum would go
    down a column."""
    v, m = normal(40_000), normal(40_000, 3)
    for f, args in (
        (lambda v, m: v @ m, (v, m)),
        (lambda m, v: m.T @ v, (m, v)),
        (lambda m, v: v @ m, (m, v)),
    ):
        chunks = [n for n in Elements(f, *args).graph.nodes if n.op == "reduce_chunks"]
        assert [n.shape for n in chunks] == [(3, 3)] and chunks[0].params["axes"] == (0,)
    rows = Elements(lambda m, v: m @ v, m.T.copy(), v).graph.nodes
    assert [n.params["axes"] for n in rows if n.op == "reduce_chunks"] == [(1,)]


def test_products_with_few_columns_are_plain_nests() -> None:
    """Long left sides that are read along their rows; others fill tiles, or are turned."""

    def tiled(m: int, k: int, n: int) -> bool:
        text = str(compiled(lambda x, y: x @ y, np.ones((m, k), "f"), np.ones((k, n), "f"))
        .as_text("loops"))  # fmt: skip
        return "@rows" in text

    assert not tiled(1000, 64, dot.FEW) and tiled(1000, 64, dot.FEW + 1)
    assert tiled(dot.MANY - 8, 640, 4)
    turned = compiled(lambda x, y: x.T @ y, np.ones((64, 1000), "f"), np.ones((64, 4), "f"))
    assert "@rows" in turned.as_text("loops")


def turned(x: Any, g: Any, axes: Sequence[int]) -> Any:
    """Some axes of an array, turned by the numbers of a matrix, in their places."""
    k = len(axes)
    return jnp.moveaxis(jnp.tensordot(g, x, (range(g.ndim - k, g.ndim), axes)), range(k), axes)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16", "int32", "bool"])
@pytest.mark.parametrize("axes", [(0,), (3,), (6,), (1, 4), (5, 2)])
def test_few_numbers_turn_short_axes_where_they_are(axes: tuple[int, ...], dtype: str) -> None:
    """Nothing is moved, and the bits are those of a product of matrices."""
    rng = np.random.default_rng(len(axes))
    x = (4 * rng.standard_normal((2, 3, 2, 2, 3, 2, 5))).astype(dtype)
    x = np.moveaxis(x, [d for d in range(7) if x.shape[d] == 2][: len(axes)], axes)
    inner = [x.shape[d] for d in axes]
    assert inner == [2] * len(axes)
    g = (4 * rng.standard_normal([2] * len(axes) + inner)).astype(dtype)
    e = compiled(lambda x, g: turned(x, g, axes), x, g)
    assert [n.op for n in Elements(lambda x, g: turned(x, g, axes), x, g).graph.nodes].count(
        "matmul_axes"
    ) == 1
    rows = np.moveaxis(x, axes, range(len(axes))).reshape(int(np.prod(inner)), -1)
    matrix = g.reshape(rows.shape[0], rows.shape[0])
    want = np.asarray(calque.jit(lambda g, x: g @ x)(matrix, rows.copy()))
    got = np.moveaxis(run(e, x, g)[0], axes, range(len(axes))).reshape(want.shape)
    assert got.tobytes() == want.tobytes()


def test_batches_of_axes_are_turned() -> None:
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((4, 2, 3, 50)), rng.standard_normal((4, 3, 3))
    e = compiled(lambda g, x: jnp.einsum("bij,bajc->baic", g, x), g, x)
    got = run(e, g.astype("f"), x.astype("f"))[0]
    want = np.einsum("bij,bajc->baic", g.astype("f"), x.astype("f"))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    for dtype in (np.float32, np.complex64, np.bool_):  # nothing is added
        none, wide = np.ones((2, 0), dtype), np.ones((3, 0, 4), dtype)
        e = compiled(lambda g, x: jnp.einsum("ij,ajb->aib", g, x), none, wide)
        assert not run(e, none, wide)[0].any() and run(e, none, wide)[0].shape == (3, 2, 4)
    assert dot.is_gate(*gate((3, 3), (7, 3, 50), (0,), (1,)))
    assert not dot.is_gate(*gate((3, 3), (3, 50), (1,), (0,)))  # rows of a matrix
    assert not dot.is_gate(*gate((5, 5), (7, 5, 50), (0,), (1,)))  # long
    assert not dot.is_gate(*gate((50, 3), (7, 3, 50), (1,), (1,)))  # many numbers
    assert dot.is_gate(*gate((2, 2), (2, 2, 2, 2, 2), (1,), (0,)))
    x, y, few, turned = gate((4, 4, 4, 2, 2), (4, 4, 4, 2, 2), (4,), (3,))
    batch = (0, 1, 2)  # of matrices
    assert not dot.is_gate(x, y, (batch, (3,), few[2]), (batch, (4,), turned[2]))


def gate(few: tuple[int, ...], x: tuple[int, ...], cf: Any, cx: Any) -> Any:
    """Two nodes of these shapes, and their dimensions by what becomes of them."""
    g = GraphBuilder()
    nodes = [g.add("input", (), {}, ShapedArray(s, np.dtype("f"))) for s in (few, x)]
    free = [tuple(d for d in range(len(s)) if d not in c) for s, c in ((few, cf), (x, cx))]
    return (*nodes, ((), free[0], cf), ((), free[1], cx))


@pytest.mark.parametrize("k", [1000, 70_000])
@pytest.mark.parametrize("m, n", [(2, 2), (3, 3), (4, 4), (2, 3)])
def test_a_few_long_sums_fill_no_tiles(m: int, n: int, k: int) -> None:
    """Their bits do not depend on the form, or on how many threads share their rounds."""
    rng = np.random.default_rng(k)
    x, y = rng.standard_normal((m, k)).astype("f"), rng.standard_normal((n, k)).astype("f")
    e = compiled(lambda x, y: x @ y.T, x, y)
    text = e.as_text("loops")
    assert "@rows" not in text
    got = run(e, x, y)[0]
    np.testing.assert_allclose(got, x.astype("d") @ y.astype("d").T, rtol=1e-4, atol=1e-2)
    assert ("adds up partial sums" in text) == (k > 1000)
    wide = np.concatenate([y, np.zeros((20, k), "f")])
    tiles = compiled(lambda x, y: x @ y.T, x, wide)
    assert "@rows" in tiles.as_text("loops")
    assert run(tiles, x, wide)[0][:, :n].tobytes() == got.tobytes()
    before = calque.get_num_threads()
    try:
        calque.set_num_threads(1 + before % 2)
        assert run(e, x, y)[0].tobytes() == got.tobytes()
    finally:
        calque.set_num_threads(before)
