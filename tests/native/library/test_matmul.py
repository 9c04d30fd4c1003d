"""Products of matrices with free sizes: panels that are packed or read where they stand, tiles at
the edges."""

from itertools import product

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.machine.code.target import describe
from calque.native.library import matmul, tiles, turned_panels
from calque.native.plan.steps import Switch
from calque.transforms.jit.function import function_of

NEAR = matmul.NEAR // 4  # float32 elements of a right side that is read where it stands


def normal(*shape, dtype=np.float32):
    return (4 * np.random.default_rng(sum(shape)).standard_normal(shape)).astype(dtype)


def both(f, ranks):
    """A function with all its sizes free, and the same with fixed ones; with the list of what was
    traced."""
    traces = []

    def counted(*args):
        traces.append(tuple(a.shape for a in args))
        return f(*args)

    free = calque.jit(counted, dynamic={i: tuple(range(n)) for i, n in enumerate(ranks)})
    return free, calque.jit(lambda *args: f(*args), dynamic="never"), traces


def entry_of(free):
    (family,) = function_of(free).cache.families.values()
    return family.programs[0]


def chooses(free):
    """Does its program choose while running whether to pack?"""
    return any(isinstance(s, Switch) for s in entry_of(free).executable.steps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32], ids=str)
def test_the_bits_of_fixed_sizes(dtype):
    """Every kind of edge: fewer rows than a tile, one more than two tiles, whole and ragged
    columns."""
    free, fixed, traces = both(lambda x, y: x @ y, (2, 2))
    free(normal(5, 6, dtype=dtype), normal(6, 7, dtype=dtype))
    for m, k, n in (
        (3, 4, 64),
        (17, 33, 9),
        (29, 20, 32),
        (40, 50, 70),
        (16, 64, 33),
        (9, 200, 96),
        (1, 40, 65),
    ):
        x, y = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
        np.testing.assert_array_equal(free(x, y), fixed(x, y))
    assert len(traces) == 1 and chooses(free)


@pytest.mark.parametrize("masks", [True, False])
def test_near_and_far_right_sides(masks, monkeypatch):
    """Just small enough to be read where it stands, and just too large; with processors that have
    masks or none."""
    monkeypatch.setattr(tiles, "MASKED", describe().vector_bytes if masks else -1)
    free, fixed, traces = both(lambda x, y: jnp.tanh(x @ y * 0.1), (2, 2))
    free(normal(12, 13), normal(13, 15))
    for k, n in (
        (NEAR // 64, 64),
        (NEAR // 64 + 1, 64),
        (NEAR // 72, 72),
        (NEAR // 72 + 1, 72),
        (50, NEAR // 50 + 1),
    ):
        x, y = normal(20, k), normal(k, n)
        np.testing.assert_array_equal(free(x, y), fixed(x, y))
    assert len(traces) == 1 and chooses(free)


def test_many_products():
    free, fixed, traces = both(lambda x, y: x @ y, (3, 3))
    free(normal(2, 20, 24), normal(2, 24, 28))
    for b, m, k, n in product((1, 5), (3, 30), (33,), (32, 40, 300)):
        x, y = normal(b, m, k), normal(b, k, n)
        np.testing.assert_array_equal(free(x, y), fixed(x, y))
    assert len(traces) == 1 and chooses(free)


def test_what_does_not_stand_well_is_packed():
    """A transposed right side, and one that is computed."""
    for f, (p, q) in ((lambda x, y: x @ y.T, (1, 0)), (lambda x, y: x @ (y + 1), (0, 1))):
        free, fixed, _ = both(f, (2, 2))
        free(normal(20, 24), normal((24, 28)[p], (24, 28)[q]))
        for m, k, n in ((30, 33, 40), (9, 60, 64)):
            x, y = normal(m, k), normal((k, n)[p], (k, n)[q])
            np.testing.assert_array_equal(free(x, y), fixed(x, y))


def test_results_that_are_operands_of_what_follows():
    """Rows that two tiles compute are the same, whatever the epilogue reads: also a donated operand
    of the result's size."""

    def f(x, y, z):
        return jnp.tanh(x @ y) + z * 2

    for m in (15, 20, 29):
        x, y, z = normal(m, 40), normal(40, 50), jnp.asarray(normal(m, 50))
        expected = np.tanh(x @ y) + np.asarray(z) * 2
        np.testing.assert_allclose(calque.jit(f, donate_argnums=2)(x, y, z), expected, atol=1e-4)


def test_products_in_loops_keep_their_buffers_apart():
    """The right side changes places with the result in each round."""

    def step(c, _):
        return (jnp.tanh(c @ c * 0.1) + c, None)

    free, fixed, _ = both(lambda x: lax.scan(step, x, None, length=3)[0], (2,))
    free(normal(21, 21))
    for n in (22, 32, 90, 91):
        np.testing.assert_array_equal(free(normal(n, n)), fixed(normal(n, n)))


def test_long_sums():
    free, fixed, _ = both(lambda x, y: x @ y, (2, 2))
    free(normal(20, 700), normal(700, 24))
    for m, k, n in ((29, 600, 33), (15, 1100, 32), (9, 100, 64)):
        x, y = normal(m, k), normal(k, n)
        np.testing.assert_array_equal(free(x, y), fixed(x, y))


@pytest.mark.parametrize("depth", [700, 1024], ids=str)
@pytest.mark.parametrize("follow", [lambda p: p, lambda p: jnp.tanh(p) + 1], ids=["bare", "then"])
def test_the_rounds_of_a_long_sum_are_written_once(depth, follow):
    """Its tile stands once in the code, whether the last round is shorter or ends in more."""
    x, y = normal(40, depth), normal(depth, 48)
    compiled = calque.jit(lambda a, b: follow(a @ b)).lower(x, y).compile()
    loops = compiled.as_text("loops")
    assert loops.count("sequential sum") == 1 and loops.count("@rows:") == 1
    expected = follow(jnp.asarray(x.astype(np.float64) @ y, "float32"))
    np.testing.assert_allclose(compiled(x, y), expected, rtol=1e-4, atol=2e-3)


def test_small_right_sides_of_ragged_width_are_not_packed():
    """Of fixed size: where the processor has masks."""
    e = calque.jit(lambda x, y: x @ y).lower(normal(50, 60), normal(60, 70)).compile()
    assert ("panels" in e.as_text("loops")) == (not tiles.has_masks())


@pytest.mark.parametrize("rows", [1791, 1792, 1807, 3700], ids=str)
def test_high_blocks_of_many_rows_have_the_same_bits(rows, monkeypatch):
    """From so many rows on a block has twice as many tiles; each sum stays in the order of k."""
    x, y = normal(rows, 1100), normal(1100, 48)
    high = calque.jit(lambda a, b: jnp.dot(a, b))(x, y)
    monkeypatch.setattr(tiles, "MANY_ROWS", 10**9)
    low = calque.jit(lambda a, b: jnp.matmul(a, b))(x, y)
    assert np.array_equal(high, low)
    np.testing.assert_allclose(high, x.astype(np.float64) @ y, rtol=1e-4, atol=2e-2)


@pytest.mark.parametrize("rows, high", [(280, 4), (1500, None), (4200, 8)], ids=str)
def test_many_rows_make_high_blocks(rows, high):
    """Few rows are shared by threads in low blocks."""
    extents = tiles.Extents(None, rows, 48, 1100)
    tile = tiles.tile_for(extents, "f32")
    block = tiles.tiles_of_block(extents, tile.rows)
    f = calque.jit(lambda a, b: a @ b)
    compiled = f.lower(jnp.ones((rows, 1100)), jnp.ones((1100, 48))).compile()
    assert f"for t < min({block}," in compiled.as_text("loops")
    assert high in (None, block)


@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=str)
@pytest.mark.parametrize(
    "m, k, n",
    [(1, 700, 33), (2, 1100, 300), (4, 1100, 4096), (13, 3000, 17), (16, 513, 64), (57, 1030, 129)],
    ids=str,
)
def test_few_rows_have_the_bits_of_many(m, k, n, dtype):
    """Nothing is packed for few rows; the order of the sums does not tell."""
    x, y = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    f = lambda x, y: jnp.matmul(x, y) + 1  # noqa: E731
    few = calque.jit(f, dynamic="never")
    many = np.asarray(few(np.concatenate([x] * 71), y))
    got = np.asarray(few(x, y))
    if tiles.has_masks():
        assert "panels" not in few.lower(x, y).compile().as_text("loops")
    assert got.tobytes() == many[:m].tobytes()
    turned = calque.jit(lambda x, y: jnp.matmul(x, y.T) + 1, dynamic="never")
    assert got.tobytes() == np.asarray(turned(x, np.ascontiguousarray(y.T))).tobytes()
    free = calque.jit(f, dynamic={0: (0, 1), 1: (0, 1)})
    assert got.tobytes() == np.asarray(free(x, y)).tobytes()


@pytest.mark.parametrize("n", [24, 40, 72])
def test_small_right_sides_of_half_a_panel_more(n):
    """They are read where they stand, in narrower tiles; transposed ones are turned in squares, of
    which the last panel has fewer."""
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=s).astype(np.float32) for s in ((7, 10, 40), (7, 40, n)))
    standing = calque.jit(lambda x, y: x @ y, dynamic="never")
    loops = standing.lower(x, y).compile().as_text("loops")
    assert "panels" not in loops
    turned = calque.jit(lambda x, y: x @ jnp.swapaxes(y, 1, 2), dynamic="never")
    z = np.ascontiguousarray(np.swapaxes(y, 1, 2))
    squares = n % (min(describe().vector_bytes, turned_panels.SQUARE) // 4) == 0
    assert turned.lower(x, z).compile().as_text("loops").count("@tile") == squares
    got = np.asarray(standing(x, y))
    np.testing.assert_allclose(got, x.astype("f8") @ y, rtol=1e-4, atol=1e-4)
    assert got.tobytes() == np.asarray(turned(x, z)).tobytes()
    many = calque.jit(lambda x, y: x @ y, dynamic="never")(np.concatenate([x] * 9, 1), y)
    assert got.tobytes() == np.asarray(many)[:, :10].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=str)
@pytest.mark.parametrize(
    "m, k", [(1024, 1024), (100, 700), (33, 1100), (17, 40), (5, 3000), (1000, 31)], ids=str
)
def test_a_single_column_has_the_bits_of_two(m, k, dtype):
    """Rows times a vector are summed beside each other, and read in squares."""
    x, y = normal(m, k, dtype=dtype), normal(k, 1, dtype=dtype)
    f = lambda x, y: jnp.matmul(x, y)  # noqa: E731
    one = calque.jit(f, dynamic="never")
    got = np.asarray(one(x, y))
    two = np.asarray(calque.jit(f, dynamic="never")(x, np.concatenate([y, y], 1)))
    assert got.tobytes() == two[:, :1].tobytes()
    from_left = calque.jit(lambda x, y: y.T @ x.T, dynamic="never")
    assert got.tobytes() == np.asarray(from_left(x, y)).tobytes()
    square = m >= 2 * describe().vector_bytes // 4 and k > 4
    assert ("read in squares" in one.lower(x, y).compile().as_text("loops")) == square


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("qd,qxy->dxy", ((9, 20), (9, 40, 50))),
        ("ij,bjn->bin", ((8, 8), (5, 8, 96))),
        ("ij,bjxy->bixy", ((8, 8), (3, 8, 24, 64))),
    ],
)
def test_merged_columns_are_read_as_vectors(equation, shapes):
    """Where no panel crosses the rows that its columns were merged of, and where these lie one
    behind the other."""
    a, b = (normal(*s) for s in shapes)
    f = calque.jit(lambda a, b: jnp.einsum(equation, a, b))
    program = f.lower(a, b).compile()
    assert "sequential sum" in program.as_text("steps")
    assert "gather" not in program.as_text("llvm")
    want = np.einsum(equation, a.astype("f8"), b.astype("f8"))
    np.testing.assert_allclose(f(a, b), want, rtol=1e-4, atol=1e-3)


def test_merged_columns_whose_rows_end_inside_of_panels():
    a, b = normal(8, 8), normal(5, 8, 90)
    want = np.einsum("ij,bjn->bin", a.astype("f8"), b.astype("f8"))
    got = calque.jit(lambda a, b: jnp.einsum("ij,bjn->bin", a, b))(a, b)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def test_tiles_of_a_turned_panel_are_one_loop():
    """However many stand beside each other, the code of one is compiled."""
    w = np.random.default_rng(0).normal(size=(640, 320)).astype(np.float32)
    f = calque.jit(lambda x, w: x @ w.T, dynamic="never")
    x = w[:130]
    loops = f.lower(x, w).compile().as_text("loops")
    assert loops.count("@tile") == 1
    np.testing.assert_allclose(f(x, w), x.astype("f8") @ w.T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("heads, width", [(8, 32), (4, 48), (3, 7)])
def test_rows_in_stretches_are_copied_near(heads, width):
    """What attention gives, head by head, times a matrix: a row is read by stretches where these
    fill vectors, and not place by place with divisions."""
    t, w = normal(3, heads, 50, width), normal(heads * width, 256)
    f = calque.jit(lambda t, w: t.transpose(0, 2, 1, 3).reshape(150, -1) @ w, dynamic="never")
    loops = f.lower(t, w).compile().as_text("loops")
    assert ("rows[t, m, ((p * 32)" in loops or "rows[t, m, ((p * 16)" in loops) == (width > 7)
    rows = np.ascontiguousarray(t.transpose(0, 2, 1, 3)).reshape(150, -1)
    plain = calque.jit(lambda a, b: a @ b, dynamic="never")(rows, w)
    np.testing.assert_array_equal(f(t, w), plain)


@pytest.mark.parametrize("m", [8192, 8200])
def test_far_rows_are_copied_near(m):
    a, b = normal(m, 40), normal(40, 20)
    f = calque.jit(lambda a, b: jnp.tanh(a @ b), dynamic="never")
    assert "rows[t, m, kc]" in f.lower(a, b).compile().as_text("loops")
    few = calque.jit(lambda a, b: jnp.tanh(a @ b), dynamic="never")
    assert "rows[" not in few.lower(a[:500], b).compile().as_text("loops")
    np.testing.assert_array_equal(np.asarray(f(a, b))[-500:], few(a[-500:], b))
