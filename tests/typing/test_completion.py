"""What editors built on jedi show: names, signatures and documentation."""

import pytest

jedi = pytest.importorskip("jedi", reason="jedi is not installed: pip install -e '.[dev]'")

PROGRAM = """\
import calque as jax
import calque.numpy as jnp
from calque import lax, random

x = jnp.ones(3)
"""


def at_end(line: str) -> tuple["jedi.Script", int, int]:
    script = PROGRAM + line
    return jedi.Script(script), len(script.splitlines()), len(line)


@pytest.mark.parametrize(
    "line, names",
    [
        ("jax.", ["grad", "jit", "vmap", "numpy", "tree", "Array"]),
        ("jnp.", ["sum", "einsum", "float32", "linalg", "fft", "where", "add"]),
        ("x.", ["sum", "reshape", "at", "T", "shape", "dtype", "astype", "__add__"]),
        ("x.at[0].", ["set", "add", "multiply", "get"]),
        ("(x @ x + 1).", ["mean", "item"]),
        ("jnp.linalg.", ["solve", "svd"]),
        ("jax.tree.", ["map", "leaves"]),
        ("jax.scipy.", ["special", "stats", "linalg"]),
        ("jax.jit(jnp.sin).", ["lower", "trace", "clear_cache"]),
        ("random.", ["normal", "split", "key"]),
        ("lax.", ["scan", "cond", "psum"]),
    ],
)
def test_names_are_completed(line: str, names: list[str]) -> None:
    script, row, column = at_end(line)
    found = {c.name for c in script.complete(row, column)}
    assert set(names) <= found


@pytest.mark.parametrize(
    "line, parameters",
    [
        ("jnp.sum(", ["a", "axis", "dtype", "keepdims"]),
        ("jnp.einsum(", ["subscripts", "operands"]),
        ("x.reshape(", ["shape", "order"]),
        ("x.at[0].set(", ["values", "mode"]),
        ("jax.vmap(", ["fun", "in_axes", "out_axes"]),
        ("jax.nn.relu(", ["x"]),
        ("random.normal(", ["key", "shape", "dtype"]),
        ("jnp.linalg.norm(", ["x", "ord", "axis"]),
        ("lax.dynamic_slice(", ["operand", "start_indices", "slice_sizes"]),
    ],
)
def test_signatures_are_shown_with_documentation(line: str, parameters: list[str]) -> None:
    script, row, column = at_end(line)
    (signature,) = script.get_signatures(row, column)
    assert [p.name for p in signature.params if p.name in parameters] == parameters
    assert signature.docstring(raw=True)


@pytest.mark.parametrize("name", ["jax.jit", "jax.grad", "lax.scan", "jnp.add", "jax.custom_vjp"])
def test_names_show_their_documentation(name: str) -> None:
    """Of functions with several signatures, too."""
    script, row, column = at_end(name)
    (shown,) = script.help(row, column - 1)
    assert shown.docstring(raw=True)
    script, row, column = at_end(name + "(")
    assert script.get_signatures(row, column)
