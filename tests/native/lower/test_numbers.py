"""Programs that differ in numbers alone share what was planned, and each has its own numbers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.backends import Options
from calque.core.jaxprs import Literal
from calque.core.trace import typeof
from calque.native import backend, executable, stored
from calque.native.lower.graph import graph_of
from calque.native.lower.numbers import APART, is_baked, is_open, word_of
from calque.native.passes.pipeline import run as run_passes
from tests.native.caching import private_cache  # noqa: F401

X = np.linspace(-1, 1, 48, dtype="f")


pytestmark = pytest.mark.usefixtures("private_cache")


def found(make: Callable[..., Any], *numbers: tuple[Any, ...], x: np.ndarray = X) -> list[bool]:
    """Whether each program, of these numbers, was found; all give what NumPy's meanings give."""
    out = []
    for given in numbers:
        f = make(*given)
        closed = calque.make_jaxpr(f)(x)
        e = backend.compile(closed, Options())
        with calque.disable_jit():
            want = calque.tree.leaves(f(jnp.asarray(x)))
        for a, b in zip(e.call([x]), want, strict=True):
            np.testing.assert_allclose(
                np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=1e-2 if x.itemsize < 4 else 2e-5
            )
        out.append(type(e) is backend.Found)
    return out


def literal(x: Any, dtype: Any = "float32") -> Literal:
    value = np.asarray(x, dtype)
    return Literal(value, typeof(value))


def test_what_is_baked_and_what_is_open() -> None:
    for x in (0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan):
        assert is_baked(np.float32(x)) and not is_open(literal(x))
    with calque.enable_x64():
        for dtype in ("float16", "float32", "float64", ml_dtypes.bfloat16):
            assert is_open(literal(3.25, dtype)), dtype
    for x, dtype in ((3, "int32"), (1000, "int64"), (True, "bool"), (3.5j, "complex64")):
        assert not is_open(literal(x, dtype)), dtype
    assert not is_open(literal(3.25, ml_dtypes.float8_e4m3fn))
    assert is_baked(np.int32(7)) and not is_baked(np.int32(300)) and is_baked(np.bool_(1))


def test_numbers_are_words() -> None:
    floats = (np.float32(-3.5), np.float64(-0.0), np.float16(7), ml_dtypes.bfloat16(-2.75))
    for x in (*floats, np.int8(-1), np.bool_(True), np.uint64(2**64 - 1), np.complex64(2j)):
        data = np.asarray(x).tobytes()
        word = word_of(data)
        assert word.to_bytes(8, "little", signed=True)[: len(data)] == data


def test_a_changed_number_is_put_in_its_place() -> None:
    def make(a: float, b: float, c: float) -> Any:
        def f(x: Any) -> Any:
            y = jnp.where(x > a, jnp.sin(x) * b, c) + jnp.full((48,), b, "float32")
            y = jnp.maximum(y, a) ** 2 / b - c
            return jnp.pad(y, 2, constant_values=c).reshape(4, 13).sum(0), x % b

        return f

    numbers = ((0.3, 1.7, 0.9), (0.25, 3.1, 0.7), (0.125, 1.75, 1e6), (0.125, -1.75, 1e6))
    # whether the divisor of a remainder is negative is found out beforehand
    assert found(make, *numbers) == [False, True, True, False]


def test_numbers_may_be_equal_by_chance() -> None:
    def make(a: float, b: float) -> Any:
        return lambda x: jnp.cos(x * a) + b

    numbers = ((1.5, 2.5), (3.5, 4.5), (3.5, 3.5), (7.5, 7.5), (1.5, 1.0), (3.5, 1.0))
    assert found(make, *numbers) == [False, True, True, True, False, True]
    numbers = ((9.5, 9.5), (9.5, 3.5))
    stored.recent.clear()
    with calque.enable_x64():  # another key, so that the equal ones come first
        assert found(make, *numbers, x=X.astype("f8")) == [False, True]


def test_a_number_is_where_it_was_written() -> None:
    """One that is read twice is one; two that are equal are two, so that one may change."""

    def make(a: float, b: float) -> Any:
        inner = calque.jit(lambda x: jnp.sin(x) * a)
        return lambda x: inner(inner(x)) + jnp.cos(x) * b

    assert found(make, (3.25, 3.25), (3.25, 7.5)) == [False, True]
    assert values_in_key(make(3.25, 3.25)) == [3.25, 3.25]


def test_many_numbers_are_told_apart_by_value() -> None:
    """A kernel with a parameter for each of hundreds of places would be slow to make and to run."""

    def make(n: int, a: float) -> Any:
        def f(x: Any) -> Any:
            for k in range(n):
                x = jnp.tanh(jnp.minimum(x, a) + (0.25, 0.75)[k % 2])
            return x

        return f

    assert len(values_in_key(make(APART // 2, 3.25))) == APART
    assert values_in_key(make(APART // 2 + 1, 3.25)) == [3.25, 0.25, 0.75]
    assert found(lambda a: make(40, a), (3.25,), (0.25,), (0.75,)) == [False, False, False]
    assert found(lambda a: make(40, a), (7.25,), (9.5,)) == [True, True]


def values_in_key(f: Callable[..., Any]) -> list[float]:
    """The open numbers of a program."""
    key = stored.key_of(run_passes(calque.make_jaxpr(f)(X)), Options())
    assert key is not None
    return [float(n.value) for n in key.numbers]


def test_zeros_of_both_signs_and_other_baked_numbers_are_told() -> None:
    def make(a: float) -> Any:
        return lambda x: jnp.arctan2(x * 3.25, a)

    numbers = ((0.0,), (-0.0,), (2.0,), (3.0,), (4.0,), (np.inf,))
    assert found(make, *numbers) == [False, False, False, False, True, False]


def test_a_number_of_the_compilers_own_keeps_its_value() -> None:
    """A mean divides by how many there are, which is no number of the user's."""

    def make(a: float) -> Any:
        return lambda x: jnp.mean(x * a) + a

    assert found(make, (48.0,), (3.5,), (7.25,), (48.0,)) == [False, True, True, True]


def test_numbers_that_decide_something_are_part_of_the_key() -> None:
    def whiled(a: float) -> Any:
        def go(c: Any) -> Any:
            return c[0] + 1, c[1] * a

        return lambda x: lax.while_loop(lambda c: c[0] < 3, go, (0, x))[1]

    def cond(a: float) -> Any:
        return lambda x: lax.cond(x[0] > 0, lambda y: y * a, lambda y: y - a, x)

    def folded(a: float) -> Any:
        return lambda x: lax.reduce_window(x, a, lax.max, (3,), (1,), "SAME")

    for make in (whiled, cond, folded):
        assert found(make, (1.25,), (1.75,)) == [False, False], make.__name__

    def sizes(n: float) -> Any:
        return lambda x: lax.slice(x * 1.25, (int(n),), (int(n) + 4,))

    assert found(sizes, (3,), (4,)) == [False, False]


def test_loops_of_known_length_open_their_numbers() -> None:
    def loop(a: float, b: float) -> Any:
        return lambda x: lax.fori_loop(0, 3, lambda i, c: c * a + x, x * b)

    numbers = ((1.25, 1.75), (1.75, 1.5), (1.5, 1.5), (3.5, 3.5), (3.5, 2.0))
    assert found(loop, *numbers) == [False, True, True, True, False]

    def nested(a: float, b: float, c: float) -> Any:
        def outer(x: Any, t: Any) -> Any:
            y = lax.fori_loop(0, 4, lambda i, y: jnp.sin(y * a) - t, x + b)
            return y, jnp.where(y > c, y, c)

        return lambda x: lax.scan(outer, x, jnp.arange(5.0))

    numbers = ((1.25, 1.75, 0.375), (0.75, 3.5, -0.25), (0.75, 3.5, 3.5), (1.5, 7.5, 7.5))
    assert found(nested, *numbers) == [False, True, True, True]

    def steps(rate: float) -> Any:
        def step(w: Any, _: Any) -> Any:
            g = calque.grad(lambda w: ((jnp.tanh(w) - 0.25) ** 2).mean())(w)
            return w - rate * g, (g**2).sum()

        return lambda w: lax.scan(step, w, None, 10)

    assert found(steps, (0.3,), (0.7,), (3.1,)) == [False, True, True]


def test_one_body_in_a_loop_and_where_its_numbers_decide() -> None:
    """Programs whose loop has another number than their branch."""

    def make(a: float, b: float) -> Any:
        def f(x: Any) -> Any:
            y = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * a, x)
            return lax.cond(x[0] > 0.5, lambda y: y, lambda y: jnp.sin(y) * b, y)

        return f

    numbers = ((1.25, 1.25), (1.75, 1.25), (1.25, 1.75), (3.5, 1.75))
    assert found(make, *numbers) == [False, True, False, True]


@pytest.mark.parametrize("dtype", ["float16", "float64", ml_dtypes.bfloat16])
def test_other_floats(dtype: Any) -> None:
    with calque.enable_x64():
        x = np.linspace(0.5, 1, 20).astype(dtype)

        def make(a: float) -> Any:
            return lambda x: jnp.tanh(x * jnp.asarray(a, dtype)) - jnp.asarray(-a, dtype)

        assert found(make, (1.75,), (0.75,), (-0.375,), x=x) == [False, True, True]


def test_donated_and_found_programs_of_other_numbers() -> None:
    def make(rate: float) -> Any:
        def step(p: Any, m: Any, g: Any) -> Any:
            m = 0.75 * m + g
            return p - rate * m / (jnp.abs(m) + 1e-3), m

        return step

    p, m, g = (np.random.default_rng(k).normal(size=(40, 40)).astype("f") for k in range(3))
    kinds = []
    for rate in (0.1, 0.01):
        closed = calque.make_jaxpr(make(rate))(p, m, g)
        e = backend.compile(closed, Options(donated=(0, 1)))
        kinds.append(type(e))
        got = e.call([jnp.array(p), jnp.array(m), g])
        for a, b in zip(got, make(np.float32(rate))(p, m, g), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert kinds == [executable.NativeExecutable, backend.Found]


def test_the_plan_of_a_found_program_speaks_of_its_own_numbers() -> None:
    def make(a: float) -> Any:
        return lambda x: jnp.sin(x) * a

    assert found(make, (3.25,), (7.75,)) == [False, True]
    e = backend.compile(calque.make_jaxpr(make(7.75))(X), Options())
    assert "7.75" in e.as_text("graph") and "3.25" not in e.as_text("graph")


def test_numbers_are_opened_where_the_program_is() -> None:
    closed = run_passes(calque.make_jaxpr(lambda x: jnp.exp(x * 3.25) + 2.0)(X))
    marks = [n.params for n in graph_of(closed, opens=True).nodes if n.op == "literal"]
    assert [("open" in p, float(p["value"])) for p in marks] == [(True, 3.25), (False, 2.0)]
    assert not any("open" in n.params for n in graph_of(closed).nodes)


def test_jitted_functions_with_changing_numbers_plan_once() -> None:
    before = stored.stats.found
    for k in range(5):
        rate = 0.0625 + k / 7

        def f(x: Any, rate: float = rate) -> Any:
            return jnp.exp(x * rate) - rate

        np.testing.assert_allclose(calque.jit(f)(X), np.exp(X * rate) - rate, rtol=1e-5, atol=1e-6)
    assert stored.stats.found - before >= 4
