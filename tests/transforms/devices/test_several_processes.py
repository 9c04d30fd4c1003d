"""What is asked of arrays of which other processes have parts; here there is one process."""

import numpy as np

import calque
from calque.sharding import AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.several_processes import spans
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


def test_in_one_process_nothing_spans() -> None:
    mesh = Mesh(np.array(calque.devices()[:1]), ("x",), (AxisType.Auto,))
    assert not spans(None) and not spans(NamedSharding(mesh, P()))
    assert not spans(NamedSharding(mesh.abstract_mesh, P()))


@needs_jaxlib
def test_what_shardings_and_meshes_say_of_this_process() -> None:
    in_both("""
        mine = jax.local_devices()
        assert list(rows.addressable_devices_indices_map((4,))) == mine
        second = rows.addressable_devices_indices_map((4,))[mine[1]]
        assert second == (slice(2 * index + 1, 2 * index + 2),)
        assert rows._addressable_device_assignment == tuple(mine)
        assert rows.has_addressable_devices and not rows.is_fully_addressable
        other = jax.sharding.Mesh([d for d in jax.devices() if d not in mine], "x")
        assert not jax.NamedSharding(other, jax.P()).has_addressable_devices
        raises(lambda: other.local_mesh, ValueError, "no block of the mesh")
        given = {d: numbers[i] for d, i in rows.addressable_devices_indices_map((4,)).items()}
        made = jax.make_array_from_single_device_arrays(
            (4,), rows, [jax.device_put(v, d) for d, v in given.items()]
        )
        assert parts(made) == parts(x)
        assert [s.data is None for s in x.global_shards] == [d not in mine for d in jax.devices()]
        assert [d.local_hardware_id for d in mine] == [0, 1]
        assert [d.local_hardware_id for d in jax.local_devices(1 - index)] == [None] * 2

        assert mesh.local_mesh.devices.tolist() == mesh.local_devices == mine
        assert mesh.is_multi_process and not mesh.local_mesh.is_multi_process
        square = jax.make_mesh((2, 2), ("p", "d"), (jax.sharding.AxisType.Auto,) * 2)
        assert dict(square.local_mesh.shape) == {"p": 1, "d": 2}
        assert square.local_mesh.local_mesh is square.local_mesh
        torn = jax.sharding.Mesh(np.array(jax.devices())[[0, 2, 3, 1]].reshape(2, 2), ("p", "d"))
        raises(lambda: torn.local_mesh, ValueError, "no block of the mesh")
        elsewhere = jax.NamedSharding(other, jax.P())
        raises(
            lambda: jax.make_array_from_process_local_data(elsewhere, numbers),
            ValueError,
            "has no device of",
        )
        raises(
            lambda: jax.make_array_from_callback((4,), rows, lambda i: numbers[i], dtype=int),
            ValueError,
            "must match the dtype",
        )

        from calque.experimental import mesh_utils
        arranged = mesh_utils.create_hybrid_device_mesh
        grid = arranged((1, 2), (2, 1), process_is_granule=True)
        assert grid.tolist() == square.devices.tolist()
        back = jax.devices()[::-1]
        as_they_come = dict(process_is_granule=True, should_sort_granules_by_key=False)
        assert arranged((2,), (2,), back, **as_they_come).tolist() == back
        raises(lambda: arranged((1, 2), (2, 1)), ValueError, "Number of slices 1 must")
    """)
