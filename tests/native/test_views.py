"""Every form of small programs as golden files (`--update-golden` writes them anew), and the texts
that users ask for."""

import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, nn
from calque.machine.code.target import describe
from calque.native.library import matmul, near_rows, tiles
from calque.native.schedule import vectors
from tests.native.programs import compiled, normal

GOLDENS = pathlib.Path(__file__).parent / "goldens" / "stages"
FORMS = ("passes", "graph", "homes", "stages", "nests", "steps")


def collatz(n: Any) -> Any:
    def step(c: Any) -> Any:
        m, k = c
        return jnp.where(m % 2 == 0, m // 2, 3 * m + 1), k + 1

    return lax.while_loop(lambda c: c[0] > 1, step, (n, 0))[1]


def recurrence(w: Any, h: Any, xs: Any) -> Any:
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h.sum()), h, xs)


def layer_norm(x: Any) -> Any:
    y = x - x.mean(-1, keepdims=True)
    return y / jnp.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)


def mlp(w: Any, v: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ w) @ v) ** 2).sum()


def strided(x: Any, w: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return (y * y).sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x: jnp.tanh(x) * 2.0 + 1.0, (normal(100),)),
    "sum": (lambda x: (x * x).sum(), (normal(100),)),
    "long_sum": (lambda x: x.sum(), (normal(40_000),)),
    "columns": (lambda x: x.sum(0), (normal(300, 50),)),
    "softmax": (lambda x: nn.softmax(x, axis=-1), (normal(40, 50),)),
    "layer_norm": (layer_norm, (normal(40, 50),)),
    "sum_of_row_sums": (lambda x: jnp.exp(x.sum(1)).sum(0), (normal(200, 100),)),
    "transpose": (lambda x: x.T + 1.0, (normal(100, 130),)),
    "cumsum": (lambda x: jnp.cumsum(x), (normal(100),)),
    "cumsum_of_columns": (lambda x: jnp.cumsum(x, axis=0), (normal(40, 50),)),
    "small_product": (lambda x, y: x @ y, (normal(4, 8), normal(8, 4))),
    "product": (lambda x, y: x @ y, (normal(17, 5), normal(5, 19))),
    "dense": (
        lambda x, w, b: jnp.tanh(x @ w + b),
        (normal(64, 48), normal(48, 96), normal(96)),
    ),
    "product_of_a_batch_of_one": (
        lambda x, w, b: jnp.einsum("bij,bjk->bik", x, w) + b,
        (normal(1, 33, 20), normal(1, 20, 40), normal(40)),
    ),
    "mlp_gradient": (calque.grad(mlp), (normal(20, 24), normal(24, 8), normal(32, 20))),
    "gradient_of_a_strided_convolution": (
        calque.grad(strided),
        (normal(2, 9, 9, 4), normal(3, 3, 4, 8)),
    ),
    "updates": (
        lambda x, i: (jnp.cumsum(x).at[i].set(1.0).at[i + 1].add(2.0), x),
        (normal(100), np.int32(3)),
    ),
    "scatter_add": (
        lambda x, i, u: x.at[i].add(u),
        (normal(100), np.arange(30) % 7, normal(30)),
    ),
    "update_slice": (lambda x, u: lax.dynamic_update_slice(x, u, (3,)), (normal(100), normal(20))),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x, y]), (normal(30), normal(20))),
    "argmax": (lambda x: x.argmax(), (normal(100),)),
    "complex_product": (lambda x: x.prod(), (normal(40, dtype="complex64"),)),
    "sort": (lambda x: jnp.sort(x) * 2.0, (normal(100),)),
    "scan_in_registers": (
        lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c), 0.0, x),
        (normal(100),),
    ),
    "scan_of_products": (recurrence, (normal(24, 24), normal(24), normal(30, 24))),
    "lanes": (calque.vmap(collatz), (np.arange(1, 40),)),
    "while_of_arrays": (
        lambda x: lax.while_loop(
            lambda c: (c[1] < 20) & (c[0].max() > 1.0), lambda c: (c[0] * 0.5, c[1] + 1), (x, 0)
        )[0],
        (normal(100),),
    ),
    "cond": (
        lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, lambda x: jnp.cumsum(x)], x),
        (np.int32(1), normal(100)),
    ),
    "counted_in_place": (
        lambda x: lax.fori_loop(0, 50, lambda i, x: x.at[i].set(x[i] + 1.0), x),
        (normal(100),),
    ),
    "host_call": (
        lambda x: calque.pure_callback(np.sin, calque.ShapeDtypeStruct((30,), "float32"), x) + 1.0,
        (normal(30),),
    ),
    "checks": (lambda x: jnp.isnan(x).any(), (normal(100),)),
}


@pytest.fixture
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules of a machine with vectors of 32 bytes, whatever this one has."""
    described = describe()._replace(vector_bytes=32, vector_registers=16)
    for module in (vectors, matmul, near_rows, tiles):
        monkeypatch.setattr(module, "describe", lambda: described)


@pytest.mark.parametrize("name", PROGRAMS)
def test_goldens(name: str, known_machine: None) -> None:
    f, args = PROGRAMS[name]
    executable = compiled(lambda *xs: calque.tree_util.tree_leaves(f(*xs)), *args)
    text = "\n\n".join(f"-- {form} --\n{executable.as_text(form)}" for form in FORMS) + "\n"
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("CALQUE_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def test_every_form_can_be_asked_for() -> None:
    made = calque.jit(lambda x: jnp.exp(x).sum()).lower(normal(100)).compile()
    for form in ("jaxpr", *FORMS, "loops", "llvm", "driver"):
        assert made.as_text(form)
    assert "reduce_sum" in made.as_text("graph")
    assert "folding" in made.as_text("stages")
    assert "@vector" not in made.as_text("nests") and "@vector" in made.as_text("steps")
    with pytest.raises(ValueError, match="the native backend has jaxpr, passes, graph"):
        made.as_text("hlo")


def test_programs_of_free_sizes_show_their_forms() -> None:
    f = calque.jit(lambda x: (x * 2.0).sum(0), dynamic={0: (0,)})
    text = f.lower(normal(30, 40)).compile()
    for form in FORMS:
        assert text.as_text(form)
