"""Programs as modules: golden texts, arguments, donation, calls, effects, places."""

import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from tests.xla.mlir import assert_canonical, needs_jaxlib

GOLDENS = pathlib.Path(__file__).parent.parent / "goldens"
x = np.arange(6, dtype=np.float32).reshape(2, 3)


def loop(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, lax.mul(c[1], c[1])), (0, x))


def scanned(x: Any) -> Any:
    def body(c: Any, row: Any) -> Any:
        return lax.add(c, lax.reduce_sum(row, (0,))), {"sum": c}

    return lax.scan(body, np.float32(0), x)


def effects(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        jax.debug.print("{}", y, ordered=True)
        return lax.sin(y)

    jax.debug.print("{}", x)
    return lax.fori_loop(0, 3, body, x)


def indexing(x: Any, i: Any) -> Any:
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    places = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    taken = lax.gather(x, i, rows, (1, 3), mode="clip")
    filled = lax.gather(x, i, rows, (1, 3), mode="fill")
    added = lax.scatter_add(x, i, taken, places, mode="drop")
    return filled, added, lax.dynamic_slice(x, (i[0, 0], 0), (1, 2))


def products(x: Any) -> Any:
    image = lax.reshape(x, (1, 1, 2, 3))
    return lax.dot(x, lax.transpose(x, (1, 0))), lax.conv(image, image, (1, 1), "SAME")


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda x: lax.add(lax.sin(x), np.full((2, 3), 1 / 3, np.float32)), (x,)),
    "reductions": (
        lambda x: (lax.reduce_sum(x, (0,)), lax.argmax(x, 1, np.int32), lax.cumsum(x, 1)),
        (x,),
    ),
    "while": (loop, (x,)),
    "scan": (scanned, (x,)),
    "branches": (lambda i, x: lax.switch(i, [lax.sin, lax.cos, lax.tan], x), (np.int32(1), x)),
    "effects": (effects, (x,)),
    "indexing": (indexing, (x, np.int32([[0], [1]]))),
    "sorting": (lambda x: (lax.sort(x), lax.top_k(x, 2)), (x,)),
    "random": (lambda k: jax.random.bits(k, (3,)), (np.uint32([0, 1]),)),
    "products": (products, (x,)),
    "fourier": (lambda x: lax.fft(x, "RFFT", (3,)), (x,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_goldens(name: str) -> None:
    f, args = PROGRAMS[name]
    text = jax.jit(f).lower(*args).as_text()
    path = GOLDENS / f"{name}.mlir"
    if os.environ.get("CALQUE_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


@needs_jaxlib
@pytest.mark.parametrize("name", PROGRAMS)
def test_mlir_prints_the_same(name: str) -> None:
    f, args = PROGRAMS[name]
    assert_canonical(jax.jit(f).lower(*args).as_text())


def test_arguments_that_nobody_reads_are_left_out() -> None:
    f = lambda x, y: y + 1  # noqa: E731
    assert "%arg1" not in jax.jit(f).lower(1.0, 2.0).as_text()
    assert "%arg1" in jax.jit(f, keep_unused=True).lower(1.0, 2.0).as_text()


def test_donated_arguments_name_the_result_that_takes_their_memory() -> None:
    f = lambda x, y: (y * 2, x + 1)  # noqa: E731
    both = jax.jit(f, donate_argnums=(0, 1)).lower(x, x).as_text()
    assert "%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}" in both
    assert "%arg1: tensor<2x3xf32> {tf.aliasing_output = 1 : i32}" in both
    assert "aliasing" not in jax.jit(f).lower(x, x).as_text()


def test_results_are_named_by_their_place() -> None:
    text = jax.jit(lambda x: {"a": x, "b": [x + 1]}).lower(x).as_text()
    assert """{jax.result_info = "result['a']"}""" in text
    assert """{jax.result_info = "result['b'][0]"}""" in text
    assert '{jax.result_info = "result"}' in jax.jit(jnp.sin).lower(x).as_text()


def test_places_are_told_when_asked_for() -> None:
    def named(weights: Any) -> Any:
        with jax.named_scope("layer"):
            return jnp.sin(weights)

    lowered = jax.jit(named).lower(x)
    text = lowered.as_text(debug_info=True)
    assert 'loc("weights")' in text and '"jit(named)/layer/sin"' in text
    assert "test_module.py" in text and "loc(" not in lowered.as_text()


def test_one_program_called_twice_is_one_function() -> None:
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    text = jax.jit(lambda x: inner(inner(x))).lower(x).as_text()
    assert text.count("func.func private") == 1 and text.count("call @") == 2


def test_large_constants_are_written_as_their_bytes() -> None:
    data = np.arange(500, dtype=np.float32)
    text = jax.jit(lambda x: x + data).lower(1.0).as_text()
    assert 'dense<"0x0000000' in text


def test_found_sizes_are_refused_with_the_remedy() -> None:
    lowered = jax.jit(lambda x: x[x > 0].sum()).lower(x)
    with pytest.raises((NotImplementedError, TypeError), match="size="):
        lowered.as_text()
    assert "let_size" in lowered.as_text("jaxpr")
