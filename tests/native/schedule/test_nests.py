"""A nest as it runs: the same results as turn by turn, with its reasons."""

from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque.native.loops.tree import Acc, For, Store, statements
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, ex, load, ref, var
from calque.native.schedule.nests import distributed, schedule
from tests.native.programs import compiled, normal
from tests.native.run_kernel import run


def test_every_schedule_has_a_reason() -> None:
    e = compiled(lambda x: jnp.exp(x).sum(0), normal(100, 60))
    assert all(c.schedule.reasons for c in e.calls)
    assert "vector" in e.as_text("loops")


def nests(sizes: Sizes, rows: int, columns: int) -> dict[str, Any]:
    n, m = sizes.dim(rows), sizes.dim(columns)
    i, j = var("i", n), var("j", m)
    x, y, z = Buffer("x", (n, m), "i32"), Buffer("y", (n, m), "i32"), Buffer("z", (n,), "i32")
    v = load(x, (i, j))
    return {
        "map": (x, y, (For(i, (For(j, (Store(y, (i, j), ex("mul", v, v)),)),)),)),
        "rows": (x, z, (For(i, (For(j, (), (Acc("s", "sum", v),)), Store(z, (i,),
        ref("s", "i32")))),)),
        "columns": (x, z, (For(var("c", n), (For(var("d", n), (), (Acc("s", "sum", load(x,
        (var("d", n), var("c", n)))),)), Store(z, (var("c", n),), ref("s", "i32")))),)),
        "turned": (x, y, (For(i, (For(j, (Store(y, (i, j), load(x, (j, i))),)),)),)),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["map", "rows", "columns", "turned"])
@pytest.mark.parametrize("size", [1, 7, 40, 130])
def test_the_results_of_the_nest(name: str, size: int) -> None:
    """Whole numbers: any order gives the same."""
    sizes = Sizes()
    x, y, nest = nests(sizes, size, size)[name]
    made = schedule(nest, sizes)
    a = np.random.default_rng(0).integers(-9, 9, (size, size)).astype("i4")
    shape = (size,) * len(y.shape)
    got, want = np.zeros(shape, "i4"), np.zeros(shape, "i4")
    values = dict(sizes.values)
    turns = size if made.extent is None else sizes.value(made.extent)
    run(made.body, {x: a, y: got, **values}, end=turns)
    run(nest, {x: a, y: want, **values})
    np.testing.assert_array_equal(got, want)
    assert made.ns > 0 and made.reasons


def test_long_nests_are_shared_out_and_say_so() -> None:
    sizes = Sizes()
    x, y, nest = nests(sizes, 4000, 4000)["map"]
    made = schedule(nest, sizes)
    (loop,) = made.body
    assert isinstance(loop, For) and loop.kind == "parallel" and made.extent is loop.extent
    assert any("threads" in r for r in made.reasons) and made.grain > 0
    short = distributed(nest, Sizes(known=False))
    assert short.extent is None and short.grain == 0


def test_slower_kernels_are_shared_sooner() -> None:
    """What takes longer than its operations say is worth threads earlier."""
    sizes = Sizes()
    _, _, nest = nests(sizes, 300, 40)["map"]
    plain, slow = distributed(nest, sizes), distributed(nest, sizes, 1000.0)
    assert plain.extent is None and slow.extent is not None
    assert slow.ns == pytest.approx(1000 * plain.ns)
    assert not any(s.kind == "vector" for s in statements(slow.body) if isinstance(s, For))
