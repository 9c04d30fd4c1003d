"""Products of large matrices bring near what they read next, and nothing else changes."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.library import ahead, matmul, shared_rounds
from calque.native.scalars.expr import const, load


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def loops(f, *args):
    return calque.jit(f, dynamic="never").lower(*args).compile().as_text("loops")


def nearby(text):
    """What is brought near, by buffer."""
    lines = [x.strip() for x in text.splitlines() if x.strip().startswith("ahead ")]
    return [x.removeprefix("ahead ").split("[")[0].rstrip("0123456789") for x in lines]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_the_next_panel_and_the_result_of_a_long_product(dtype):
    with calque.enable_x64(True):
        x, y = jnp.zeros((300, 1100), dtype), jnp.zeros((1100, 2000), dtype)
        assert nearby(loops(lambda a, b: a @ b, x, y)) == ["panels", "out"]


def test_a_product_of_one_round_adds_to_no_result():
    x, y = jnp.zeros((20_000, 300)), jnp.zeros((300, 4000))
    assert nearby(loops(lambda a, b: a @ b, x, y)) == ["panels"]


@pytest.mark.parametrize("m, k, n", [(300, 1100, 900), (20_000, 300, 200), (40, 30, 20)], ids=str)
def test_a_right_side_that_stays_near_is_not_brought(m, k, n):
    assert nearby(loops(lambda a, b: a @ b, jnp.zeros((m, k)), jnp.zeros((k, n)))) == []


@pytest.mark.parametrize(
    "m, k, n",
    [(260, 513, 333), (217, 1100, 65), (140, 2000, 31), (230, 1024, 96), (1900, 520, 17)],
    ids=str,
)
@pytest.mark.parametrize("after", [lambda x: x, jnp.tanh, jnp.transpose], ids=["", "tanh", "T"])
def test_no_bit_depends_on_it(m, k, n, after, monkeypatch):
    """Edges of rows, columns and rounds: what is brought near lies inside of its array, or the
    verifier would tell."""
    x, y = normal(m, k), normal(k, n)
    plain = calque.jit(lambda a, b: after(a @ b))(x, y)
    monkeypatch.setattr(ahead, "FAR", 0)
    f = calque.jit(lambda a, b: after(jnp.matmul(a, b)))
    assert "panels" in nearby(loops(f, x, y))
    assert np.array_equal(plain, f(x, y))


FORMS = {
    "packed": ((4000, 1024), (1024, 2048), lambda a, b: a @ b),
    "few rows": ((24, 1024), (1024, 2048), lambda a, b: a @ b),
    "shared columns": ((150, 1024), (1024, 2048), lambda a, b: a @ b),
    "turned": ((150, 1024), (2048, 1024), lambda a, b: a @ b.T),
    "turned for one tile": ((2, 1024), (2048, 1024), lambda a, b: a @ b.T),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_line_of_a_panel_and_of_a_tile(form, monkeypatch):
    """The lines that the turns of all tiles of a block bring are those of the next panel; those of
    one tile are those of its result."""
    seen = []

    def remembered(p, at, k):
        found = ahead.next_panel(p, at, k), ahead.result(p, at, k)
        seen.append((p, at, found))
        return (*found[0], found[1])

    monkeypatch.setattr(matmul, "ahead", remembered)
    left, right, f = FORMS[form]
    calque.jit(lambda a, b: f(a, b), dynamic="never").lower(
        jnp.zeros(left), jnp.zeros(right)
    ).compile()
    ((p, at, (panel, result)),) = seen
    names = {"g": 1, "i": 0, "r": 1, "q": 3, "t": 2}  # in the second round
    q = number(at.q, names) + 1
    inside = [(k, j) for k in range(p.depth, 2 * p.depth) for j in range(p.tile.columns)]
    wanted = {
        line_of(ahead.of_right_side(p, const(q), const(k), const(j)), names) for k, j in inside
    }
    brought = set()
    for tile in range(at.tiles):
        for k in range(p.depth):
            here = {**names, at.tile.attr[0]: tile, "k": k}
            brought |= {line_of(e, here) for e in panel}
    assert brought == wanted
    here = {**names, at.tile.attr[0]: 1 if at.tiles > 1 else 0}
    first, columns = number(at.i, here) * p.tile.rows, (q - 1) * p.tile.columns
    rows = range(first, min(first + p.tile.rows, left[0]))
    wanted = {
        line_of(load(result.attr, (const(m), const(columns + j))), here)
        for m in rows
        for j in range(p.tile.columns)
    }
    assert {line_of(result, {**here, "k": k}) for k in range(p.depth)} == wanted


@pytest.mark.parametrize("m, n", [(64, 64), (128, 64), (64, 100), (100, 64)], ids=str)
def test_rounds_that_threads_share_bring_the_next_one(m, n, monkeypatch):
    """Every line of both sides, by the turns of all tiles."""
    seen = []

    def remembered(p, r, *others):
        found = ahead.next_round(p, r, *others)
        seen.append((p, (r, *others), found))
        return found

    monkeypatch.setattr(shared_rounds, "next_round", remembered)
    calque.jit(lambda a, b: a.T @ b, dynamic="never").lower(
        jnp.zeros((40_000, m)), jnp.zeros((40_000, n))
    ).compile()
    ((p, (r, i, q, k), elements),) = seen
    sides = {}
    for tile in range(-(-m // p.tile.rows)):
        for panel in range(-(-n // p.tile.columns)):
            names = {"r": 3, "i": 0, "t": tile, "q": panel}
            for turn in (0, 5, p.depth - 1):
                for e in elements:
                    row, column = [number(x, {**names, k.attr[0]: turn}) for x in e.args[:2]]
                    assert row == 4 * p.depth + turn
                    sides.setdefault(e.attr, set()).add(column * 4 // ahead.LINE)
    lines = {len(s) for s in sides.values()}
    assert len(sides) == 2 and lines == {-(-m * 4 // ahead.LINE), -(-n * 4 // ahead.LINE)}


def test_rounds_that_multiply_much_bring_nothing():
    x = jnp.zeros((8192, 256))
    text = loops(lambda a, b: a.T @ b, x, x)
    assert "near[" in text and nearby(text) == []


def line_of(e, known):
    """In which line of its array an element lies."""
    shape = [number(n, known) for n in e.attr.shape]
    at = [number(i, known) for i in e.args[: len(shape)]]
    return int(np.ravel_multi_index(at, shape)) * 4 // ahead.LINE


def number(e, known):
    """What an expression is where some variables are known; a size says it by its name."""
    if e.op == "const":
        return e.attr
    if e.op == "var":
        name = e.attr[0]
        return known[name] if name in known else int(name.removeprefix("s"))
    args = [number(a, known) for a in e.args]
    rules = {"add": sum, "min": min, "max": max}
    rules |= {"sub": lambda v: v[0] - v[1], "mul": lambda v: v[0] * v[1]}
    rules |= {"floordiv": lambda v: v[0] // v[1], "mod": lambda v: v[0] % v[1]}
    return rules[e.op](args)
