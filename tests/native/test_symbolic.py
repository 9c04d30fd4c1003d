"""Programs for every size: one plan, other words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.arrays import to_numpy
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.symbols import Symbols
from calque.core.trace import trace_to_jaxpr
from calque.native import symbolic
from calque.native.emit import kernels
from calque.native.scalars.expr import Buffer, const, ex, var
from calque.native.symbolic import SymbolicExecutable

F32 = np.dtype("float32")


def program(f: Any, *shapes: Sequence[Any], hints: Sequence[int] = (7,)) -> SymbolicExecutable:
    """`f` of arrays whose sizes named n, m, ... are free."""
    symbols = Symbols(hints)
    sizes = dict(zip("nmk", symbols.sizes()))

    def flat(*xs: Any) -> list[Any]:
        return list(calque.tree.leaves(f(*xs)))

    avals = [ShapedArray(tuple(sizes.get(d, d) for d in s), F32) for s in shapes]
    closed = trace_to_jaxpr(flat, avals)
    symbols.lenient = True
    return SymbolicExecutable(closed, Options(), symbols)


def call(e: SymbolicExecutable, sizes: Sequence[int], *args: Any) -> list[np.ndarray]:
    return [to_numpy(y) for y in e.resized(tuple(sizes)).call(args)]


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).random(shape, np.float32)


def test_one_plan_serves_every_size() -> None:
    """No kernel is compiled for another size; the shapes of results follow."""
    e = program(lambda x: (jnp.exp(x) * 2, x.sum(0), x[::-1], x.reshape(-1)), ("n", 3))
    before = kernels.stats.compiled
    for n in (7, 1, 2, 30, 5000):
        x = some(n, 3)
        got = call(e, (n,), x)
        for g, w in zip(got, (np.exp(x) * 2, x.sum(0), x[::-1], x.reshape(-1)), strict=True):
            assert g.shape == w.shape
            np.testing.assert_allclose(g, w, rtol=1e-4)
    assert kernels.stats.compiled == before


def test_several_sizes_and_their_arithmetic() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.concatenate([x.T, y.T]) * x.shape[0] + y.shape[0] // 2

    e = program(f, ("n", "k"), ("n", "m"), hints=(5, 6, 4))
    for n, m, k in ((5, 6, 4), (1, 9, 3), (8, 1, 1)):
        x, y = some(n, k), some(n, m)
        (got,) = call(e, (n, m, k), x, y)
        np.testing.assert_allclose(got, np.concatenate([x.T, y.T]) * n + n // 2, rtol=1e-6)


def test_temporaries_of_one_size_share_their_part_of_the_arena() -> None:
    def f(x: Any) -> Any:
        for _ in range(6):
            x = jnp.cumsum(x[::-1])
        return x

    e = program(f, ("n",))
    for n in (7, 100, 10_000):
        made = e.resized((n,)).program
        assert made.arena_bytes % symbolic.ALIGN == 0
        assert 4 * n <= made.arena_bytes <= 3 * (4 * n + symbolic.ALIGN)
        x = some(n) / n
        want = x
        for _ in range(6):
            want = np.cumsum(want[::-1])
        np.testing.assert_allclose(call(e, (n,), x)[0], want, rtol=1e-3)


def test_python_is_called_with_the_sizes_of_the_call() -> None:
    """Its arguments have their shapes, and parameters that depend on sizes their numbers."""
    seen: list[tuple[int, ...]] = []

    def look(x: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return x * 2

    def f(x: Any) -> Any:
        return calque.pure_callback(look, jax_type(x), x) + 1

    def jax_type(x: Any) -> Any:
        return calque.ShapeDtypeStruct(x.shape, x.dtype)

    e = program(f, ("n", 2))
    for n in (7, 3, 12):
        x = some(n, 2)
        np.testing.assert_allclose(call(e, (n,), x)[0], x * 2 + 1, rtol=1e-6)
    assert seen == [(7, 2), (3, 2), (12, 2)]


def test_constants_that_depend_on_sizes_are_made_for_each() -> None:
    """Twiddle factors of a Fourier transform, say."""
    e = program(lambda x: jnp.abs(jnp.fft.fft(x)), ("n",), hints=(8,))
    for n in (8, 5, 16, 31):
        x = some(n)
        np.testing.assert_allclose(call(e, (n,), x)[0], np.abs(np.fft.fft(x)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 5, 9])
def test_sizes_that_the_program_finds(count: int) -> None:
    """Blocks are allocated when they are known, and the results have them."""
    x = np.where(np.arange(9) < count, np.arange(9, dtype=np.float32), -1)

    @calque.jit
    def f(x: Any) -> Any:
        chosen = x[x >= 0]
        return chosen * 2, chosen.sum(), x

    got, total, same = f(x)
    assert got.shape == (count,) and got.tolist() == (2 * x[:count]).tolist()
    assert float(total) == x[:count].sum() and np.array_equal(same, x)


def test_bytes_of_buffers_and_places_of_rooms() -> None:
    n = var("n0")
    b = Buffer("b", (n, const(3)), "f64")
    assert symbolic.bytes_expr(b) is ex("mul", n, const(24))
    assert symbolic.bytes_expr(Buffer("s", (), "i1")) is const(1)
    assert symbolic.places([1, 64, 65, 0, 3]) == ([0, 64, 128, 256, 256], 320)
    assert symbolic.places([]) == ([], 0)


def test_sizes_as_python() -> None:
    """What evaluates the words of a size: the same numbers as the expression."""
    n, m = var("n0"), var("n1")
    e = ex("add", ex("mul", ex("floordiv", n, m), const(4)), ex("mod", ex("sub", n, m), const(5)))
    e = ex("min", e, ex("max", m, const(9)))
    for a, b in ((7, 3), (100, 7), (9, 1)):
        want = min(a // b * 4 + (a - b) % 5, max(b, 9))
        assert eval(symbolic.python_text(e), {"n0": a, "n1": b, "min": min, "max": max}) == want


def test_a_found_size_before_it_is_found_is_refused() -> None:
    e = program(lambda x: x * 2, ("n",))
    assembler = e.resizable.assembler
    assembler.sizes.found["f0"] = 10
    with pytest.raises(AssertionError, match="before the program has found it: f0"):
        assembler.word(ex("add", var("f0"), const(1)))
