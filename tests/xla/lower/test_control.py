"""Loops, branches and calls on XLA."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.xla.lower.control import _attribute
from calque.xla.text.tree import symbol
from tests.xla.lower.shared import on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)


@needs_jaxlib
def test_lanes_of_a_while_end_one_by_one() -> None:
    def halved(v: Any) -> Any:
        return lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (v, 0))

    starts = np.float32([0.5, 1, 5, 64])
    rest, rounds = on_both(jax.vmap(halved), starts)
    assert rounds.tolist() == [0, 0, 3, 6] and rest.tolist() == [0.5, 1, 0.625, 1]
    assert operations(text_of(halved, np.float32(3)))["select"] == 0


@needs_jaxlib
def test_values_captured_by_conditions_and_bodies() -> None:
    def until(limit: Any, step: Any) -> Any:
        return lax.while_loop(lambda c: c < limit, lambda c: c + step, jnp.zeros_like(limit))

    assert on_both(until, np.float32(10), np.float32(4))[0] == 12


@needs_jaxlib
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 4, True])
def test_scans(unroll: Any, reverse: bool) -> None:
    rows = np.arange(14, dtype=np.float32).reshape(7, 2)

    def scanned(x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            new = 2 * c + row.sum()
            return new, (c, row[::-1])

        return lax.scan(body, np.float32(1), x, unroll=unroll, reverse=reverse)

    last, carries, turned = on_both(scanned, rows)
    c, want = np.float32(1), np.zeros(7, np.float32)
    for i in reversed(range(7)) if reverse else range(7):
        want[i] = c
        c = 2 * c + rows[i].sum()
    assert last == c
    np.testing.assert_array_equal(carries, want)
    np.testing.assert_array_equal(turned, rows[:, ::-1])


def test_how_often_the_body_of_a_scan_stands() -> None:
    def rounds(unroll: Any, n: int = 7) -> tuple[int, int]:
        f = lambda x: lax.scan(lambda c, r: (c * r, None), np.float32(1), x, unroll=unroll)  # noqa: E731
        found = operations(text_of(f, np.ones(n, np.float32)))
        return found["while"], found["multiply"]

    assert rounds(1) == (1, 1) and rounds(3) == (1, 3 + 1)
    assert rounds(7) == rounds(True) == (0, 7)
    assert rounds(1, 1) == (0, 1)


@needs_jaxlib
def test_a_scan_over_nothing() -> None:
    def scanned(x: Any) -> Any:
        return lax.scan(lambda c, r: (c + r, c), np.float32(3), x)

    last, rows = on_both(scanned, np.zeros(0, np.float32))
    assert last == 3 and rows.shape == (0,)


@needs_jaxlib
def test_loops_of_a_number_of_rounds_and_their_gradients() -> None:
    def powered(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: y * x + i, x)

    for n in (0, 1, 4):
        on_both(lambda x, n: powered(x, n), np.float32(1.5), np.int32(n))
    grad = jax.grad(lambda x: lax.fori_loop(0, 4, lambda i, y: jnp.sin(y) * x, x))
    (found,) = on_both(grad, np.float32(1.5), rtol=1e-6)
    assert np.isfinite(found)


@needs_jaxlib
def test_branches_outside_are_the_nearest() -> None:
    arms = [lambda x: x, lambda x: -x, lambda x: 2 * x]
    for i, want in ((-5, x), (0, x), (1, -x), (2, 2 * x), (9, 2 * x)):
        (found,) = on_both(lambda i, x: lax.switch(i, arms, x), np.int32(i), x)
        np.testing.assert_array_equal(found, want)


@needs_jaxlib
def test_a_clamp_of_the_user_is_not_the_one_of_the_branches() -> None:
    arms = [lambda x: x, lambda x: -x]

    def chosen(i: Any, x: Any) -> Any:
        return lax.switch(lax.clamp(0, i, 100), arms, x)

    (found,) = on_both(chosen, np.int32(50), x)
    np.testing.assert_array_equal(found, -x)


def test_an_index_is_clamped_once() -> None:
    arms = [lambda x: x, lambda x: -x]
    found = operations(text_of(lambda i, x: lax.switch(i, arms, x), np.int32(1), x))
    assert (found["clamp"], found["case"]) == (1, 1)
    truth = operations(text_of(lambda p, x: lax.cond(p, *arms, x), np.bool_(1), x))
    assert (truth["clamp"], truth["case"]) == (0, 1)


@needs_jaxlib
def test_branches_of_lanes() -> None:
    def chosen(p: Any, x: Any) -> Any:
        return lax.cond(p, jnp.sum, lambda x: x[0] - x[1], x)

    (found,) = on_both(jax.vmap(chosen), np.array([True, False, True]), x)
    assert found.tolist() == [3, -1, 11]


@pytest.mark.parametrize(
    ("name", "written"),
    [("f", "f"), ("<lambda>", "_lambda_"), ("a.b$c_1", "a.b$c_1"), ("a b-c", "a_b_c"), ("", "_")],
)
def test_names_that_need_no_quotes(name: str, written: str) -> None:
    assert symbol(name) == written


def test_what_is_computed_again_is_behind_a_barrier() -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(jnp.sin(jnp.sin(x)))

    def barriers(f: Any) -> int:
        return operations(text_of(f, x))["optimization_barrier"]

    assert barriers(jax.grad(jax.checkpoint(loss))) == 1
    assert barriers(jax.grad(jax.checkpoint(loss, prevent_cse=False))) == 0
    assert barriers(jax.checkpoint(loss)) == 0


def test_a_barrier_is_before_the_arguments_that_are_kept_apart() -> None:
    def operands(w: bool, x: bool) -> int:
        f = jax.checkpoint(lambda w, x: jnp.sin(w @ x), prevent_cse=(w, x))
        text = text_of(jax.grad(lambda w, x: jnp.sum(f(w, x)), (0, 1)), jnp.eye(3), jnp.ones(3))
        (line,) = [s for s in text.splitlines() if "optimization_barrier" in s]
        return line.split(" : ")[0].split("=", 1)[1].count("%")

    assert operands(False, False) == 1  # the cotangent
    assert operands(False, True) == operands(True, False) == 2
    assert operands(True, True) == 3


@needs_jaxlib
def test_composites_say_their_attributes() -> None:
    plain = lax.composite(lambda x: x * 2, "plain")  # no name of an operation

    def named(x: Any, *, scale: Any, axes: Any, mode: Any) -> Any:
        return x * scale

    own = lax.composite(named, name="my.scaled", version=3)

    def both(x: Any) -> Any:
        third = own(plain(x), scale=1 / 3, axes=(1 / 3, np.inf), mode=2)
        return own(plain(x), scale=2.0, axes=(0, 1), mode="fast"), third

    text = text_of(both, x)
    assert "@plain(" in text and text.count("stablehlo.composite") == 2
    assert 'stablehlo.composite "my.scaled"' in text and "version = 3 : i32" in text
    assert "axes = [0, 1]" in text and 'mode = "fast"' in text
    assert "scale = 2.000000e+00 : f64" in text
    found, _ = on_both(both, x, rtol=1e-6)
    np.testing.assert_array_equal(found, 4 * x)


def test_attributes_of_every_kind() -> None:
    one = jax.tree.structure(0)
    assert _attribute([True], one) == "true" and _attribute([3], one) == "3 : i64"
    assert _attribute([1 / 3], one) == "0.33333333333333331 : f64"
    two = jax.tree.structure((0, 0))
    assert _attribute([1.5, 2], two) == "[1.500000e+00, 2]"
    assert _attribute([np.inf, 0.1], two) == "[0x7FF0000000000000 : f64, 1.000000e-01]"
    assert _attribute(['a"b'], one) == '"a\\"b"'
    assert _attribute([np.int8([1, 2])], one) == "dense<[1, 2]> : tensor<2xi8>"
    with pytest.raises(TypeError, match="no attribute for None, a NoneType"):
        _attribute([None], one)


@needs_jaxlib
def test_calls_with_rules_of_their_own_are_their_values() -> None:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return jnp.minimum(x, 3)

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (ct,))

    def mixed(x: Any) -> Any:
        matrix = jnp.diag(x[0])
        solved = lax.custom_linear_solve(
            lambda v: matrix @ v, x[1], lambda _, b: b / x[0], lambda _, b: b / x[0]
        )
        return clipped(x), jax.nn.silu(x), solved, jax.vmap(jax.checkpoint(jnp.sum))(x)

    out, _, solved, sums = on_both(mixed, x, rtol=1e-6)
    np.testing.assert_array_equal(out, np.minimum(x, 3))
    np.testing.assert_allclose(solved, x[1] / x[0], rtol=1e-6)
    np.testing.assert_array_equal(sums, x.sum(1))
