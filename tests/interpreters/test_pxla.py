"""Results of programs over several devices."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.interpreters.pxla import global_result_handlers, thread_resources


def test_pieces_of_a_result_become_one_array() -> None:
    mesh = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    s = calque.sharding.NamedSharding(mesh, calque.P("x"))
    handler = global_result_handlers[ShapedArray](ShapedArray((3,), np.float32), s, True)
    piece = calque.device_put(jnp.arange(3.0), calque.devices()[0])
    whole = handler([piece])
    assert whole.sharding == s and whole.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="per-device arrays"):
        handler([piece, piece])


def test_the_mesh_of_a_block() -> None:
    mesh = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    assert thread_resources.env.physical_mesh.empty
    with mesh:
        assert thread_resources.env.physical_mesh is mesh
    assert thread_resources.env.physical_mesh.empty
