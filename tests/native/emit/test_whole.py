"""Sizes that are multiples: loops without a rest, and who may use their code."""

import numpy as np
import pytest

from calque.machine.caches import Entries
from calque.native.emit import kernels, making, objects, whole
from calque.native.emit.making import compile_kernels
from calque.native.loops.tree import Acc, For, Store
from calque.native.scalars.expr import Buffer, const, ex, load, param, ref, var
from tests.native.run_kernel import call, words

n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)


def body(extra: float, width: int = 64):
    """Rows of x are scaled, and summed."""
    x, y, z = Buffer("x", (n, m), "f32"), Buffer("y", (n, m), "f32"), Buffer("z", (n,), "f32")
    scaled = ex("mul", ex("add", load(x, (i, j)), const(extra, "f32")), param("p", "f32"))
    columns = For(j, (Store(y, (i, j), scaled),), (), "vector", width)
    sums = For(j, (), (Acc("s", "sum", load(x, (i, j))),), "vector", 64)
    return (For(i, (columns, sums, Store(z, (i,), ref("s", "f32")))),)


def run(k, rows, columns):
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype("f4")
    y, z = np.zeros_like(x), np.zeros(rows, "f4")
    named = {"x": x, "y": y, "z": z, "n": rows, "m": columns}
    values = {b: named[b.name] for b in k.buffers} | {s: named[s] for s in k.sizes}
    call(k.address, words(k, values | dict.fromkeys(k.params, 3.0)))
    return y.tobytes() + z.tobytes()


@pytest.fixture
def much(monkeypatch):
    """Everything is much to compile, and nothing is known."""
    monkeypatch.setattr(making, "_MUCH", 0)
    monkeypatch.setattr(kernels, "_codes", Entries(100))
    monkeypatch.setattr(objects, "from_disk", lambda symbol, opt: None)


def test_powers_of_two_that_divide_sizes() -> None:
    known = {"n": 64, "m": 16}
    for e, expected in [
        (n, 64),
        (var("k"), 1),
        (const(48), 16),
        (ex("mul", n, m), 1024),
        (ex("mul", n, var("k")), 64),
        (ex("min", const(512), ex("sub", n, ex("mul", var("b", m), const(512)))), 64),
        (ex("add", n, const(8)), 8),
        (ex("floordiv", n, const(3)), 1),
    ]:
        assert whole.divisor(e, known) == expected, e


def test_as_little_is_taken_for_granted_as_will_do() -> None:
    """Sizes that decide no rest do not count; the smallest one that is even enough does."""
    product = ex("mul", n, m)
    flat = (For(var("k", product), (), (Acc("s", "sum", const(1.0, "f32")),), "vector", 64),)
    assert whole.multiples(body(1.0), {"n": 64, "m": 128}) == {"m": 64}
    assert whole.multiples(body(1.0), {"n": 64, "m": 32}) == {}
    assert whole.multiples(body(1.0, 32), {"n": 7, "m": 96}) == {"m": 32}
    assert whole.multiples(flat, {"n": 256, "m": 64}) == {"m": 64}
    assert whole.multiples(flat, {"n": 8, "m": 24}) == {"n": 8, "m": 8}
    assert whole.multiples(flat, {"n": 5, "m": 24}) == {}
    assert whole.multiples(flat, {"m": 24}) == {}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("columns", [64, 192])
def test_without_a_rest_the_bits_are_the_same(much, rows: int, columns: int) -> None:
    (a,) = compile_kernels([body(0.5)])
    kernels._codes.clear()
    (b,) = compile_kernels([body(0.5)], values={"n": rows, "m": columns})
    assert a.symbol != b.symbol
    assert len(b.text("llvm")) < len(a.text("llvm")) * 0.7
    assert run(a, rows, columns) == run(b, rows, columns)


def test_who_may_use_code_that_takes_sizes_for_granted(much) -> None:
    (a,) = compile_kernels([body(1.5)], values={"n": 3, "m": 64})
    made = kernels.stats.compiled
    for n_, m_ in [(4, 64), (3, 128), (64, 64)]:
        assert compile_kernels([body(1.5)], values={"n": n_, "m": m_})[0].code is a.code
    assert kernels.stats.compiled == made
    (b,) = compile_kernels([body(1.5)], values={"n": 3, "m": 65})
    assert kernels.stats.compiled == made + 1 and b.code is not a.code
    # it serves all sizes, also free ones, so that nothing else is made from now on
    for values in ({"n": 3, "m": 66}, {"n": 3}, {}, {"n": 3, "m": 64}):
        assert compile_kernels([body(1.5)], values=values)[0].code is b.code
    assert kernels.stats.compiled == made + 1


def test_one_program_with_unlike_sizes_has_one_kernel_for_them(much) -> None:
    k, h = var("k"), var("h")
    x, y = Buffer("u", (k,), "f32"), Buffer("v", (h,), "f32")

    def doubled(b: Buffer, size):
        at = var("i", size)
        return (
            For(
                at,
                (Store(b, (at,), ex("add", load(b, (at,)), const(2.5, "f32"))),),
                (),
                "vector",
                64,
            ),
        )

    a, b = compile_kernels([doubled(x, k), doubled(y, h)], values={"k": 64, "h": 65})
    assert a.code is b.code and not a.code.multiples


def test_little_code_serves_all_sizes(much, monkeypatch) -> None:
    monkeypatch.setattr(making, "_MUCH", 1 << 30)
    (a,) = compile_kernels([body(2.5)], values={"n": 3, "m": 64})
    assert not a.code.multiples
    assert compile_kernels([body(2.5)], values={"n": 3, "m": 65})[0].code is a.code
