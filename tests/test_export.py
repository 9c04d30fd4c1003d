"""The names of `calque.export`: what they do with programs is tested in tests/xla/exporting."""

import collections

import pytest

from calque import export


@pytest.mark.parametrize(
    "call",
    [
        lambda: export.symbolic_shape("a, b"),
        lambda: export.symbolic_args_specs((), "a"),
        lambda: export.SymbolicScope(),
    ],
)
def test_free_sizes_are_refused_with_the_remedy(call):
    with pytest.raises(NotImplementedError, match="export one for each size"):
        call()


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
