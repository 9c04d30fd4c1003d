"""Grids of devices."""

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
