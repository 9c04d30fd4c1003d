"""Programs over several devices tell where XLA puts their values.

The tests of this file run in a process of their own, which has eight devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque as jax
from calque import lax
from calque.sharding import AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from tests.xla.many_devices import in_many
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
of_eight, test_with_many_devices = in_many(8, __file__)
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh() -> Mesh:
    devices = np.array(jax.devices("xla_cpu")[:8]).reshape(4, 2)
    return Mesh(devices, ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def told(f: Any, *args: Any) -> list[Any]:
    """The specs that a program tells of the values that `f` gives to its first argument."""
    found: list[Any] = []

    def look(v: Any) -> None:
        jax.debug.inspect_array_sharding(v, callback=lambda s: found.append(s.spec))

    g = jax.jit(lambda *xs: f(look, *xs))
    for _ in range(3):  # it is compiled once
        jax.block_until_ready(g(*args))
    return found


@of_eight
def test_xla_tells_where_values_are() -> None:
    x = jax.device_put(X, NamedSharding(mesh(), P("x", "y")))

    def whole(look: Any, v: Any) -> Any:
        look(v.T)
        look(v.sum(0))
        return v.sum(0)

    def loop(look: Any, v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: (look(c), c * 2)[1], v)

    def constrained(look: Any, v: Any) -> Any:
        look(lax.with_sharding_constraint(v, NamedSharding(mesh(), P("y"))))
        return v

    def part(look: Any, v: Any) -> Any:
        f = jax.shard_map(
            lambda p: (look(p), p * 2)[1], mesh=mesh(), in_specs=P("x"), out_specs=P("x")
        )
        return f(v)

    assert told(whole, x) == [P("y", "x"), P("y")]
    assert told(loop, x) == [P("x", "y")]
    assert told(constrained, x) == [P("y")]
    assert told(part, x) == [P()]


@of_eight
def test_a_picture_of_a_traced_array_shows_all_devices(capsys: pytest.CaptureFixture[str]) -> None:
    x = jax.device_put(X, NamedSharding(mesh(), P("x", "y")))
    f = jax.jit(lambda v: (jax.debug.visualize_array_sharding(v), v + 1)[1])
    assert "InspectSharding" not in f.lower(x).as_text()
    np.testing.assert_array_equal(f(x), X + 1)
    shown = capsys.readouterr().out
    assert [shown.count(f"CPU {k}") for k in range(8)] == [1] * 8
