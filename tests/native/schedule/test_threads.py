"""Loops that threads share: when, in which pieces, and that the pieces cover all turns once."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.machine.records import replace
from calque.native.loops.tree import Acc, For, If, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var
from calque.native.schedule import threads
from tests.native.programs import check, normal
from tests.native.run_kernel import run

LONG_NS = 100 * threads.PARALLEL_NS


def test_large_kernels_run_on_several_threads() -> None:
    e = check(lambda x: jnp.sin(x) * jnp.exp(x), normal(1_000_000), tol=1e-4)
    assert e.calls[0].schedule.extent is not None
    e = check(lambda x: jnp.sin(x), normal(100))
    assert e.calls[0].schedule.extent is None
    check(lambda x: (x * 2.0).sum(), normal(1_000_001), tol=0.5)
    check(lambda x: x.T + 1.0, normal(1000, 1001))


def mapped(sizes: Sizes, n: int, kind: str = "serial", width: int = 1) -> For:
    i = var("i", sizes.dim(n))
    y = Buffer("y", (i.attr[1],), "i64")
    return For(i, (Store(y, (i,), ex("mul", i, const(3))),), kind=kind, width=width)  # type: ignore[arg-type]


def test_what_one_thread_runs() -> None:
    """What is short, folds, collides, has one turn, or is of sizes that nobody knows."""
    sizes = Sizes()
    f = mapped(sizes, 100_000)
    assert threads.shared_out(f, LONG_NS, sizes) is not None
    assert threads.shared_out(f, threads.PARALLEL_NS, sizes) is None
    assert threads.shared_out(f, threads.PARALLEL_NS, sizes, threads.AWAKE_NS) is not None
    assert threads.shared_out(f, threads.AWAKE_NS, sizes, threads.AWAKE_NS) is None
    assert threads.shared_out(replace(f, colliding=True), LONG_NS, sizes) is None
    total = Acc("s", "sum", ref("v", "i32"))
    assert threads.shared_out(replace(f, accs=(total,)), LONG_NS, sizes) is None
    assert threads.shared_out(mapped(sizes, 1), LONG_NS, sizes) is None
    assert threads.shared_out(f, LONG_NS, Sizes(known=False)) is None
    assert threads.shared_out(mapped(sizes, 16, "vector", 16), LONG_NS, sizes) is None


def test_few_elements_with_much_to_do_are_shared() -> None:
    """A block is as much work as is worth a thread, however few elements that is."""
    sizes = Sizes()
    f = mapped(sizes, 2 * threads.SPLIT + 100, "vector", 16)
    made = threads.shared_out(f, LONG_NS, sizes)
    assert made is not None and sizes.value(made.loop.extent) >= 4
    light = mapped(sizes, 3 * threads.SPLIT, "vector", 16)
    assert threads.shared_out(light, 2 * threads.GRAIN_NS, sizes, threads.GRAIN_NS) is None


@pytest.mark.parametrize("turns", [2, 10, 999, 100_000])
def test_pieces_are_worth_a_thread_and_of_one_size(turns: int) -> None:
    sizes = Sizes()
    f = mapped(sizes, turns)
    made = threads.shared_out(f, LONG_NS, sizes)
    assert made is not None and made.loop.kind == "parallel" and "threads" in made.reason
    grain = made.grain
    assert isinstance(grain, int) and grain * (LONG_NS / turns) >= threads.GRAIN_NS * 0.999
    pieces = -(-turns // grain)
    assert pieces == 1 or (pieces - 1) * grain < turns <= pieces * grain


@pytest.mark.parametrize("n", [100, 4096, 5000, 3 * 4096])
@pytest.mark.parametrize("size", [16, 100, 4096])
def test_a_loop_in_blocks_covers_every_turn_once(n: int, size: int) -> None:
    sizes = Sizes()
    f = mapped(sizes, n, "vector", 16)
    made = threads.split(f, size, sizes)
    (inner,) = made.body
    assert isinstance(inner, For) and inner.kind == "vector" and inner.width == 16
    assert (inner.extent is const(size)) == (n % size == 0) or size > n
    y = next(s.buf for s in f.body if isinstance(s, Store))
    out = np.zeros(n, "i8")
    run((made,), {y: out, **sizes.values})
    np.testing.assert_array_equal(out, 3 * np.arange(n))


def test_blocks_are_small_where_loops_inside_are_long() -> None:
    sizes = Sizes()
    i, k = var("i", sizes.dim(10_000)), var("k", sizes.dim(3000))
    x, y = Buffer("x", (k.attr[1], i.attr[1]), "f32"), Buffer("y", (i.attr[1],), "f32")
    total = For(k, (), (Acc("s", "max", load(x, (k, i))),))
    store = Store(y, (i,), ref("s", "f32"))
    deep = For(i, (total, store), kind="vector", width=64)
    flat = For(i, (replace(store, value=const(1.0, "f32")),), kind="vector", width=64)
    assert threads.block_size(flat, sizes) == threads.SPLIT
    assert 64 <= threads.block_size(deep, sizes) < threads.SPLIT
    parting = replace(flat, body=(If(ex("lt", i, const(3)), flat.body),))
    assert threads.block_size(parting, sizes) == 64
    assert threads.block_size(replace(flat, kind="tile", width=16), sizes) == threads.TILES


def test_free_extents_inside_count_as_they_are_called() -> None:
    """The nest that runs longest says how few turns are worth a thread."""
    sizes = Sizes()
    for name, hint in (("n0", 5), ("n1", 900)):
        sizes.free.add(name)
        sizes.values[name] = hint
    n, m = var("n0"), var("n1")
    i, j, k = var("i", n), var("j", m), var("k", n)
    y = Buffer("y", (n,), "f32")
    s = Store(y, (k,), const(1.0, "f32"))
    body = (For(k, (s,)), For(j, (For(k, (s,)),)))
    inner = threads.growing_turns(body, sizes)
    assert inner is not None and inner.names == {"n0", "n1"}
    assert threads.growing_turns((For(var("q", 7), (s,)),), sizes) is None
    made = threads.shared_out(For(i, body), 10.0, sizes)  # though it seems short: it may grow
    assert made is not None and not isinstance(made.grain, int) and made.grain.names == inner.names
