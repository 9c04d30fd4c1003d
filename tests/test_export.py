"""The names of `calque.export`: what they do with programs is tested in tests/xla/exporting."""

import collections

import numpy as np
import pytest

from calque import export


def test_sizes_that_stand_for_any_number():
    a, three, both = export.symbolic_shape("(a, 3, 2*a + b)")
    assert [export.is_symbolic_dim(d) for d in (a, three, both)] == [True, False, True]
    assert str(both) == "b + 2*a" and str((a + 1) // 2) == "floordiv(a + 1, 2)"
    scope = export.SymbolicScope(["n >= 4"])
    (n,) = export.symbolic_shape("n", scope=scope)
    assert n >= 4 and n + 1 > 4 and export.symbolic_shape("n", scope=scope)[0] == n
    assert export.symbolic_shape("_, m", scope=scope, like=(2, 5))[0] == 2
    assert export.symbolic_shape(None, like=np.ones((2, 3))) == (2, 3)
    with pytest.raises(ValueError, match="either constraints or a scope"):
        export.symbolic_shape("n", scope=scope, constraints=["n >= 1"])


def test_shapes_of_trees_of_arguments():
    args = ({"x": np.ones((2, 3), np.float32)}, np.ones(4, np.int32))
    first, second = export.symbolic_args_specs(args, ("a, _", None))
    assert str(first["x"].shape) == "(a, 3)" and second.shape == (4,)
    assert first["x"].dtype == np.float32 and second.dtype == np.int32
    every = export.symbolic_args_specs(args, "a, ...")
    assert every[0]["x"].shape[0] == every[1].shape[0]
    with pytest.raises(ValueError, match="either constraints or a scope"):
        scope = export.SymbolicScope()
        export.symbolic_args_specs(args, "a, ...", constraints=["a >= 1"], scope=scope)


def test_what_is_known():
    assert export.default_export_platform() == "cpu" and not export.is_symbolic_dim(3)
    assert export.minimum_supported_calling_convention_version == 9
    assert export.maximum_supported_calling_convention_version == 10


def test_named_tuples_are_registered_by_name():
    Point = collections.namedtuple("Point", "x y")
    assert export.register_namedtuple_serialization(Point, serialized_name="Point2") is Point
    with pytest.raises(ValueError, match="Duplicate serialization registration"):
        export.register_namedtuple_serialization(Point, serialized_name="Point3")
    with pytest.raises(ValueError, match="for types other than"):
        export.register_namedtuple_serialization(list, serialized_name="list")


def test_checks():
    platform, call = export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call
    assert call("f").is_custom_call() == "f" and platform.is_custom_call() is None
    assert call("f") == call("f") != call("g") and repr(call("f")) == "custom_call:f"
    assert len({platform, export.DisabledSafetyCheck.platform()}) == 1
