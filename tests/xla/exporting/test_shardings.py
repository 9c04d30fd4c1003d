"""Shardings of exported programs: over meshes without devices, written and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export
from calque.sharding import AbstractMesh, AxisType, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.xla.exporting.flat_buffers import decoded, encoded
from calque.xla.exporting.shardings import device_count, on_mesh, portable, read, written
from calque.xla.exporting.written import FORMAT

MESH = AbstractMesh((2, 4), ("a", "b"), (AxisType.Auto, AxisType.Explicit))
OTHER = AbstractMesh((8,), ("z",), (AxisType.Auto,))


def test_written_and_read() -> None:
    split = NamedSharding(MESH, P("a", None, ("b",)))
    both = NamedSharding(MESH, P(("a", "b")))
    ins, outs = (split, None, both, split), (NamedSharding(OTHER, P()), None)
    fields = written(ins, outs)
    assert len(fields["unique_named_shardings"]) == 3
    assert len(fields["unique_abstract_meshes"]) == 2
    assert fields["in_shardings_idxs"] == [1, 0, 2, 1]
    table = decoded(FORMAT, "Exported", encoded(FORMAT, "Exported", fields))
    assert read(table, "in", 4) == ins and read(table, "out", 2) == outs
    earlier = {**table, "in_shardings_idxs": None, "unique_abstract_meshes": None}
    assert read(earlier, "in", 4) == ins  # as readers before the fields of unique things


def test_shardings_without_a_mesh_are_not_read() -> None:
    old = {"in_shardings": [{"hlo_sharding_proto": b"x"}], "in_shardings_idxs": None}
    empty = {"unique_abstract_meshes": None, "unique_named_shardings": None}
    with pytest.raises(NotImplementedError, match="export it again"):
        read({**old, **empty}, "in", 1)
    nothing = {"in_shardings": None, "in_shardings_idxs": None, **empty}
    assert read(nothing, "in", 2) == (None, None)


def test_on_the_mesh_of_a_caller() -> None:
    mesh = jax.make_mesh((1,), ("a",))
    found = portable([NamedSharding(mesh, P("a")), None])
    assert isinstance(found[0], NamedSharding) and isinstance(found[0].mesh, AbstractMesh)
    assert on_mesh(found, mesh) == (NamedSharding(mesh, P("a")), None)
    with pytest.raises(ValueError, match="does not match the mesh used for export"):
        on_mesh(found, jax.make_mesh((1,), ("b",)))
    assert on_mesh((None,), OTHER) == (None,)


def test_devices_that_a_program_speaks_of() -> None:
    def f(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(MESH, P("a")))

    jaxpr = jax.make_jaxpr(lambda x: jax.jit(f)(x) + 1)(np.ones(8, np.float32)).jaxpr
    assert device_count(jaxpr, [None]) == 8
    plain = jax.make_jaxpr(jnp.sin)(1.0).jaxpr
    assert device_count(plain, [None]) == 1
    assert device_count(plain, [NamedSharding(OTHER, P())]) == 8


def test_the_names_of_jax_for_shardings_that_are_hidden_in_meshes() -> None:
    pytest.importorskip("jaxlib")
    made = export.export(jax.jit(lambda x: (x, x + 1)))(np.ones(3, np.float32))
    assert made.in_shardings_hlo == (None,) and made.out_shardings_hlo == (None, None)
    assert made.in_shardings_jax(jax.make_mesh((1,), ("a",))) == (None,)
