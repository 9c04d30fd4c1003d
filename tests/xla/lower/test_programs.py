"""Programs equation by equation, and the functions that they share."""

from typing import Any

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.dtypes import float0
from calque.core.trace import trace_to_jaxpr, typeof
from calque.xla.lower.programs import (
    host_data,
    location_of,
    lower_program,
    ordered_inside,
)
from tests.xla.lower.shared import blank, f32, on_both, operations, text_of, written
from tests.xla.mlir import needs_jaxlib

x = np.arange(4, dtype=np.float32)


def program(f: Any) -> Any:
    return trace_to_jaxpr(lambda x: jax.tree.leaves(f(x)), [typeof(x)])


def test_operations_stand_where_the_program_has_them() -> None:
    b, args = blank(f32(4))
    closed = program(lambda x: lax.mul(lax.sin(x), np.float32([1, 2, 3, 4])))
    (out,) = lower_program(b, closed, args)
    text = written(b, out)
    assert list(operations(text)) == ["constant", "sine", "multiply"]
    assert b.location is None and out.type == f32(4)


def test_inputs_and_numbers_may_be_results() -> None:
    b, args = blank(f32(4))
    out = lower_program(b, program(lambda x: (x, np.float32(2), x)), args)
    assert out[0] is args[0] is out[2] and out[1].shape == ()


def test_data_of_constants() -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    words = host_data(keys)
    assert (words.shape, words.dtype) == ((3, 2), np.uint32)
    np.testing.assert_array_equal(words, jax.random.key_data(keys))
    nothing = host_data(np.zeros((2, 3), float0))
    assert (nothing.shape, nothing.dtype) == ((2, 3), np.bool_)
    assert host_data(jnp.arange(3)).tolist() == [0, 1, 2] and host_data(2.5).shape == ()


def test_places_name_the_path_and_the_line() -> None:
    def named(x: Any) -> Any:
        with jax.named_scope("layer"):
            return jnp.sin(x)

    (e,) = program(named).eqns
    b, _ = blank()
    b.path = ("jit(f)",)
    place = location_of(b, e)
    assert place.path == "jit(f)/layer/sin" and place.function.endswith("named")
    assert place.file == __file__ and place.line == named.__code__.co_firstlineno + 2


def test_order_is_found_at_any_depth() -> None:
    def effect(ordered: bool) -> Any:
        def body(i: Any, x: Any) -> Any:
            jax.debug.print("{}", i, ordered=ordered)
            return x

        return program(lambda x: lax.fori_loop(0, 2, body, x)).jaxpr

    assert ordered_inside(effect(True)) and not ordered_inside(effect(False))
    assert not ordered_inside(program(jnp.sin).jaxpr)


def test_a_program_is_written_once_for_all_its_calls() -> None:
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    other = jax.jit(lambda x: jnp.cos(x) * 2)
    text = text_of(lambda x: inner(inner(x)) + other(x) + lax.cond(x[0] > 0, inner, other, x), x)
    assert text.count("func.func private") == 2
    assert text.count(" call @") == 3 and text.count("func.call @") == 2


def test_two_functions_of_one_name_are_two() -> None:
    def made(f: Any) -> Any:
        def step(x: Any) -> Any:
            return f(x) + 1

        return jax.jit(step)

    text = text_of(lambda x: made(jnp.sin)(made(jnp.cos)(x)), x)
    assert "@step(" in text and "@step_0(" in text


def test_calls_whose_effects_have_an_order_hand_on_a_token() -> None:
    @jax.jit
    def shown(x: Any) -> Any:
        jax.debug.print("{}", x[0], ordered=True)
        return x + 1

    text = text_of(lambda x: shown(shown(x)), x)
    assert operations(text)["create_token"] == 1 and text.count("call @shown(") == 2
    assert "-> (!stablehlo.token, tensor<4xf32>)" in text
    assert "token" not in text_of(lambda x: jax.jit(jnp.sin)(x), x)


@needs_jaxlib
def test_primitives_without_a_rule_are_written_as_functions_of_others_or_run_on_the_host() -> None:
    def mixed(x: Any) -> Any:
        return (
            jax.scipy.special.gammainc(x + 1, x + 2),
            jax.nn.relu(x),
            jnp.linalg.matrix_rank(jnp.outer(x, x)),
        )

    on_both(mixed, x, rtol=1e-5)
