"""Temporaries lie as loops like it: the axes of vectors in space before the long one."""

from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.native.loops.tree import For, Store, loaded, stored
from calque.native.lower.sizes import Sizes
from calque.native.plan.layouts import better_order, fitting, laid_out
from calque.native.plan.steps import Copy, Nest, Repeat
from calque.native.scalars.expr import Buffer, const, ex, load, var
from tests.native.programs import check, compiled, normal

SIZES = Sizes()
N = SIZES.dim(40)
I, J, C = var("d0", N), var("d1", N), var("d2", const(3))
X, T, Y = (Buffer(n, (N, N, const(3)), "f32") for n in "xty")
ORDERS = {T: (0, 2, 1)}


def nests() -> list[Nest]:
    """t = x + x; y = t + t"""
    at = (I, J, C)

    def double(to: Buffer, of: Buffer) -> Nest:
        body = Store(to, at, ex("add", load(of, at), load(of, at)))
        return Nest((For(I, (For(J, (For(C, (body,)),)),)),))

    return [double(T, X), double(Y, T)]


@pytest.mark.parametrize(
    "shape,order",
    [
        ((40, 3), (1, 0)),
        ((40, 41, 3), (0, 2, 1)),
        ((40, 4), (1, 0)),
        ((40, 3, 3), (1, 2, 0)),
        ((40, 2), None),  # as pairs are, which may be complex numbers
        ((40, 5), None),
        ((5, 3), None),
        ((3, 3), None),
        ((40, 8, 3), None),
        ((40, 41), None),
        ((3, 40), None),
        ((3,), None),
        ((), None),
    ],
)
def test_short_axes_at_the_end_move_before_the_long_one(shape: Any, order: Any) -> None:
    assert better_order(Buffer("t", [SIZES.dim(n) for n in shape], "f32"), SIZES) == order


def test_a_nest_stores_and_reads_in_the_new_order() -> None:
    temporaries, nbytes = {T}, {T: 40 * 40 * 3 * 4}
    first, second = laid_out(nests(), temporaries, nbytes, SIZES)
    (new,) = temporaries
    assert new.shape == (N, const(3), N) and nbytes == {new: 40 * 40 * 3 * 4}
    assert isinstance(first, Nest) and isinstance(second, Nest)
    assert stored(first.body) == {new} and loaded(second.body) == {new}
    assert stored(second.body) == {Y} and loaded(first.body) == {X}


def test_what_others_than_loops_touch_stays() -> None:
    made = nests()
    assert fitting(made, ORDERS) == ORDERS
    other = Buffer("u", T.shape, "f32")
    assert not fitting([*made, Copy(other, T)], ORDERS)
    assert not fitting([Repeat(made, [(T, other)], count=N)], ORDERS)
    assert fitting([Repeat(made, [(X, other)], count=N)], ORDERS) == ORDERS
    chosen = [Nest(made[0].body, vectors=True), made[1]]
    assert not fitting(chosen, ORDERS)
    temporaries = set[Buffer]()
    assert laid_out(made, temporaries, {}, SIZES) is made and not temporaries
    free = Sizes(known=False)
    assert laid_out(made, {T}, {T: 1}, free) is made


def test_what_is_read_as_one_long_row_stays() -> None:
    write, _ = nests()
    k = var("d0", ex("mul", ex("mul", N, N), const(3)))
    row = ex("floordiv", k, const(3))
    at = (ex("floordiv", row, N), ex("mod", row, N), ex("mod", k, const(3)))
    flat = Buffer("z", (k.attr[1],), "f32")
    assert not fitting([write, Nest((For(k, (Store(flat, (k,), load(T, at)),)),))], ORDERS)


def test_what_is_found_by_indices_in_memory_stays() -> None:
    write, _ = nests()
    where = Buffer("w", (N,), "i64")
    value = load(T, (load(where, (I,)), J, C))
    gather = For(I, (For(J, (For(C, (Store(Y, (I, J, C), value),)),)),))
    assert not fitting([write, Nest((gather,))], ORDERS)


def pairwise(x: Any) -> Any:
    d = x[:, None] - x[None]
    d = d - 3 * jnp.round(d / 3)
    f = d / ((d**2).sum(-1) + 1)[..., None] ** 2
    return f.sum(1) - f.sum(0)


def test_forces_of_pairs_are_stored_component_by_component() -> None:
    x = normal(70, 3)
    check(pairwise, x)
    check(lambda x: lax.scan(lambda x, _: (x + 0.01 * pairwise(x), None), x, None, length=3)[0], x)
    e = compiled(pairwise, x)
    sums = [c for c in e.calls if any("vector: rows beside" in r for r in c.schedule.reasons)]
    assert sums, e.as_text("loops")
    assert any(
        b.shape[1:2] == (const(3),) and len(b.shape) == 3 for c in e.calls for b in c.writes()
    )


def test_results_and_constants_keep_their_layout() -> None:
    x = normal(50, 3)
    check(lambda x: (jnp.sin(x), jnp.sin(x).sum(0), jnp.flip(jnp.cumsum(x, 0), 0)), x)
    check(lambda x: jnp.sort(jnp.sin(x), 0) + jnp.sin(x), x)
    check(lambda x: (jnp.sin(x).reshape(-1)[::2], jnp.sin(x).sum(0)), x)
    check(lambda x: jnp.sin(x)[jnp.argsort(x[:, 0])] + jnp.sin(x).sum(0), x)
    np.testing.assert_array_equal(compiled(lambda x: x + 1, x).call([x])[0], x + 1)
