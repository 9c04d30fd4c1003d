"""Meshes: grids of devices with names, and which one is current."""

import copy
import pickle
import threading

import numpy as np
import pytest

import calque
from calque.sharding import (
    AbstractMesh,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_mesh,
)

DEVICE = calque.devices()[0]
GRID = np.array([[DEVICE]])


def test_equal_meshes_are_one_object():
    a, b = Mesh(GRID, ("x", "y")), Mesh(GRID, ("x", "y"))
    assert a == b and hash(a) == hash(b) and a != Mesh(GRID, ("y", "x"))
    assert pickle.loads(pickle.dumps(a)) == a == copy.deepcopy(a)
    assert dict(a.shape) == {"x": 1, "y": 1} and a.size == 1 and not a.empty
    assert a.update(axis_names=("p", "q")).axis_names == ("p", "q")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Mesh(GRID, ("x",)),
        lambda: Mesh(GRID, ("x", "x")),
        lambda: AbstractMesh((2,), ("x", "y")),
        lambda: calque.make_mesh((2, 2), ("x", "y"), devices=calque.devices()[:1]),
    ],
)
def test_what_is_no_mesh(make):
    with pytest.raises((ValueError, TypeError)):
        make()


def test_the_current_mesh_is_the_innermost():
    a, b = Mesh(GRID, ("x", "y")), Mesh(GRID, ("p", "q"))
    assert get_mesh().empty
    with use_mesh(a):
        with set_mesh(b):
            assert get_mesh() == b and get_abstract_mesh() == b.abstract_mesh
        assert get_mesh() == a
        with pytest.raises(KeyError), use_mesh(b):
            raise KeyError
        assert get_mesh() == a
    assert get_mesh().empty


def test_each_thread_has_its_own():
    seen = []
    with use_mesh(Mesh(GRID, ("x", "y"))):
        thread = threading.Thread(target=lambda: seen.append(get_mesh().empty))
        thread.start()
        thread.join()
    assert seen == [True]


def test_sizes_of_a_mesh_are_ints():
    assert calque.make_mesh((1, np.int64(1)), ("x", "y")).axis_sizes == (1, 1)
    for sizes in (((1,), 1), (1.5,), 3):
        with pytest.raises(ValueError, match="`axis_shapes` passed to `make_mesh` should be a seq"):
            calque.make_mesh(sizes, ("x", "y"))
