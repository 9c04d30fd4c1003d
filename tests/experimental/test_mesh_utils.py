"""Grids of devices."""

import pytest

import calque


def test_grids_by_kind_of_device():
    from calque.experimental import mesh_utils

    calls = []
    mesh_utils.device_kind_handler_dict["cpu"] = lambda shape, devices, **options: calls.append(
        (shape, options)
    )
    try:
        assert mesh_utils.create_device_mesh((1,), calque.devices()[:1]).shape == (1,)
    finally:
        del mesh_utils.device_kind_handler_dict["cpu"]
    assert calls == [((1,), {"contiguous_submeshes": False})]


def test_groups_of_devices_as_blocks_of_a_grid():
    """Groups are processes, here made up."""
    from types import SimpleNamespace

    from calque.experimental import mesh_utils

    devices = [
        SimpleNamespace(id=i, process_index=process, device_kind="made up")
        for i, process in enumerate((1, 0, 0, 1, 1, 0, 0, 1))
    ]

    def ids(mesh_shape, groups, **options):
        grid = mesh_utils.create_hybrid_device_mesh(mesh_shape, groups, devices, **options)
        return [[d.id for d in row] for row in grid.tolist()]

    by_process = {"process_is_granule": True}
    assert ids((2, 2), (2, 1), **by_process) == [[1, 2], [5, 6], [0, 3], [4, 7]]
    assert ids((2, 2), (1, 2), **by_process) == [[1, 2, 0, 3], [5, 6, 4, 7]]
    as_they_come = {**by_process, "should_sort_granules_by_key": False}
    assert ids((2, 2), (2, 1), **as_they_come) == [[0, 3], [4, 7], [1, 2], [5, 6]]
    assert ids((2, 4), (1, 1)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(ValueError, match="Number of slices 2 must equal"):
        ids((2, 2), (1, 1), **by_process)
