"""Free sizes as numbers of a module, and which operations are written for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from calque.xla import jaxlib
from calque.xla.buffers import Place
from calque.xla.devices import cpu_client, cpu_devices
from calque.xla.engine import result_of
from calque.xla.exporting.scopes import Scope, shape_of
from calque.xla.lower.rules import Builder, State
from calque.xla.lower.sizes import INT, is_free, shape_operand, size_of
from calque.xla.lower.table import MODULES
from calque.xla.text.printing import printed
from calque.xla.text.tree import Function, Module, Region, Value
from calque.xla.text.types import Tensor
from tests.xla.mlir import needs_jaxlib

assert MODULES


def built(text: str) -> tuple[Builder, Any, Module]:
    """A function of the sizes a and b, to which operations can be added, and sizes."""
    scope = Scope()
    sizes = shape_of(text, scope)
    module = Module("sizes")
    args = [Value(Tensor((), INT)) for _ in "ab"]
    function = Function("main", Region(args), [], public=True)
    module.functions.append(function)
    b = Builder(State(module), function.body)
    b.state.sizes = dict(zip("ab", args))
    return b, sizes, module


def test_what_is_free() -> None:
    _, sizes, _ = built("a, 3")
    assert is_free(sizes) and is_free((1, 2), sizes) and not is_free((3,), ())


def test_fixed_sizes_are_constants() -> None:
    b, _, module = built("a")
    row = shape_operand(b, (2, 3))
    b.returns()
    assert row.type == Tensor((2,), INT) and "dense<[2, 3]>" in printed(module)


@needs_jaxlib
@pytest.mark.parametrize(
    "text",
    ["a + 2*b, 7", "floordiv(a - b, 3)", "mod(b - a, 4)", "max(a, b), min(a, b)", "a*a*b - 3"],
)
def test_sizes_as_numbers(text: str) -> None:
    """What the module works out is what Python does."""
    b, sizes, module = built(text)
    found = [size_of(b, d) for d in sizes]
    b.returns(*found)
    module.functions[0].results = [v.type for v in found]
    for a, n in ((7, 2), (2, 9), (5, 5)):
        values = {"a": a, "b": n}
        expected = [d if type(d) is int else d.symbols.at_values(d.poly, values) for d in sizes]
        assert run(printed(module), a, n) == expected


def run(text: str, *numbers: int) -> list[int]:
    """The results of a module of numbers."""
    aval = jax.typeof(np.int32(0))
    (device, *_) = cpu_devices()
    count = text.split("-> ")[1].split("{")[0].count("tensor") if "-> " in text else 0
    results = [result_of(aval, None, [device]) for _ in range(count)]
    program = jaxlib.LoadedProgram(cpu_client(), [device.xla], text, ())
    program.gives(results)
    place = Place(aval, None, [device])
    found = program.run([place.put(np.int32(n), False) for n in numbers])
    return [int(jaxlib.parts_on_host(x)[0]) for x in found]


def test_operations_that_have_no_form() -> None:
    (size,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((size,), np.float32)
    with pytest.raises(NotImplementedError, match=r"export: fft at .*test_sizes.py:\d+ has no"):
        jax.export.export(jax.jit(lambda x: jnp.fft.fft(x)))(spec)


ROW = np.asarray([3, 0, 1, 0, 5, 2, 2, 7], np.float32)
KEY = np.asarray([0, 7], np.uint32)
OF_A_ROW: dict[str, Any] = {
    "top_k": lambda a: lax.top_k(a, 3),
    "top_k of a free number": lambda a: lax.top_k(a, a.shape[0] // 2),
    "top_k of bfloat16": lambda a: lax.top_k(a.astype(jnp.bfloat16), 3),
    "gradient of top_k": jax.grad(lambda a: lax.top_k(a, 3)[0].sum()),
    "approx_min_k": lambda a: lax.approx_min_k(a, 3),
    "nonzero": lambda a: jnp.nonzero(a, size=3),
    "nonzero filled": lambda a: jnp.nonzero(a > 2, size=5, fill_value=-1),
    "argwhere": lambda a: jnp.argwhere(a.reshape(2, -1) > 1, size=3),
    "unique": lambda a: jnp.unique(a, size=4),
    "searchsorted": lambda a: jnp.searchsorted(jnp.sort(a), a),
    "choice": lambda a: jax.random.choice(jax.random.wrap_key_data(KEY), a, (3,)),
    "randint": lambda a: jax.random.randint(jax.random.wrap_key_data(KEY), (3,), 0, a.shape[0]),
    "unravel_index": lambda a: jnp.unravel_index(jnp.asarray([3, -1, 99]), (2, a.shape[0])),
}


@needs_jaxlib
@pytest.mark.parametrize("name", OF_A_ROW)
@pytest.mark.parametrize("x64", [False, True])
def test_places_in_axes_of_free_sizes(name: str, x64: bool) -> None:
    sizes = export.symbolic_shape("2*n", constraints=["n >= 2"])
    with jax.enable_x64(x64):
        f = OF_A_ROW[name]
        exported = export.export(jax.jit(f))(jax.ShapeDtypeStruct(sizes, np.float32))
        found, expected = jax.tree.leaves(exported.call(ROW)), jax.tree.leaves(f(ROW))
        if not x64:  # else places in an axis that may be long are wide
            assert [x.dtype for x in found] == [x.dtype for x in expected]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)
