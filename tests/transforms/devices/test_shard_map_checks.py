"""What shard_map refuses, asked without a map."""

import numpy as np
import pytest

from calque.core.avals import ShapedArray
from calque.sharding import AbstractMesh, AxisType, ManualAxisType, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices import shard_map_checks as checks

EXPLICIT = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
AUTO = AbstractMesh((2, 4), ("x", "y"))


def aval(shape, spec=None):
    found = ShapedArray(shape, np.float32)
    return found if spec is None else found.update(sharding=NamedSharding(EXPLICIT, spec))


def test_specs_speak_of_mapped_axes():
    checks.check_specs("in_specs", (P("x"), None, {"a": P(("x", "y"))}), ("x", "y"))
    with pytest.raises(ValueError, match="in_specs refers to 'y'"):
        checks.check_specs("in_specs", (P("x"), {"a": P(None, "y")}), ("x",))
    with pytest.raises(TypeError, match=r"must be a pytree of .* out_specs has the value 'x'"):
        checks.check_specs("out_specs", {"a": "x"}, ("x",))
    with pytest.raises(ValueError, match="duplicate"):
        checks.check_specs("in_specs", P("x", "x"), ("x",))


def test_only_types_leave_specs_out():
    checks.check_inferred(True, EXPLICIT, ("x",))
    checks.check_inferred(False, AUTO, ("x",))
    with pytest.raises(TypeError, match=r"axis_name=x, y was of type .*Auto"):
        checks.check_inferred(True, AUTO, ("x", "y"))


def test_axes_that_a_vmap_uses_are_used_up():
    checks.check_not_split((P("x"),), P("x"), ("y",))
    with pytest.raises(ValueError, match=r"cannot appear in shard_map out_specs: \['y'\]"):
        checks.check_not_split((P("x"),), (P("x"), P(("x", "y"))), ("y",))


def test_sums_are_spoken_of_where_all_axes_are_mapped():
    s = P(unreduced={"x"})
    checks.check_sums("in_specs", (s, P("x")), EXPLICIT, ("x", "y"))
    checks.check_sums("in_specs", P("x"), AUTO, ("x",))
    with pytest.raises(NotImplementedError, match=r"passed to in_specs when .* full manual mode"):
        checks.check_sums("in_specs", s, EXPLICIT, ("x",))
    with pytest.raises(ValueError, match=r"unreduced in out_specs .* all of type `Explicit`"):
        checks.check_sums("out_specs", s, AUTO, ("x", "y"))


def test_types_say_how_arguments_are_cut():
    placed = aval((4, 8), P("x", "y"))
    assert checks.own_spec(placed, ("y",)) == P(None, "y")
    assert checks.own_spec(aval((4,)), ("x",)) == P()
    checks.check_types(EXPLICIT, ("x", "y"), placed, P("x", "y"))
    checks.check_types(EXPLICIT, ("x",), placed, P("x"))
    cut = r"does not match the specs of the input: P\('x', 'y'\) for arg: float32\[4@x,8@y\]\."
    with pytest.raises(ValueError, match=cut):
        checks.check_types(EXPLICIT, ("x", "y"), placed, P("x"))
    with pytest.raises(ValueError, match=r"in_specs containing reduced .* float32|f32"):
        checks.check_types(EXPLICIT, ("x", "y"), placed, P("x", reduced={"y"}))


def test_sums_of_outputs():
    checks.check_sums_of_output(ManualAxisType(varying={"x"}), P(unreduced={"x"}))
    checks.check_sums_of_output(ManualAxisType(unreduced={"x"}), P(unreduced={"x"}))
    with pytest.raises(ValueError, match=r"Varying->Unreduced .*over \['x'\]"):
        checks.check_sums_of_output(ManualAxisType(varying={"y"}), P(unreduced={"x"}))
    with pytest.raises(ValueError, match="equal to the unreduced present on the out_aval"):
        checks.check_sums_of_output(ManualAxisType(unreduced={"x"}), P())
    for said, own in ((set(), {"x"}), ({"x"}, set())):
        with pytest.raises(ValueError, match="equal to the reduced present on the out_aval"):
            checks.check_sums_of_output(ManualAxisType(reduced=own), P(reduced=said))


def test_arguments_have_the_dimensions_of_their_specs():
    def f(v):
        return v

    def look(shape, spec):
        checks.check_input(f, AUTO, [0], 0, aval(shape), spec)

    look((8, 4), P(("x", "y"), None))
    with pytest.raises(ValueError, match=r"(?s)v has shape float32\[\], .* entry of `P\(\)`"):
        look((), P("x"))
    with pytest.raises(ValueError, match=r"axis 1 \(of size 6\) to mesh axis 'y' \(of size 4"):
        look((2, 6), P("x", "y"))
    with pytest.raises(ValueError, match=r"mesh axes \('x', 'y'\) \(of size 8\), but 8 does not"):
        look((4,), P(("x", "y")))


def test_trees_of_specs():
    assert checks.flat_specs("in_specs", (P("x"), None), ({"a": 1, "b": 2}, 3)) == [
        P("x"), P("x"), None,
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"shard_map in_specs"):
        checks.flat_specs("in_specs", (P("x"),), (1, 2))


def test_results_that_vary_where_specs_call_them_the_same():
    with pytest.raises(ValueError, match=r"only varying across mesh axes {x} and not {y}.*{x,y}"):
        checks.refuse_varying(lambda v: v, AUTO, P("x"), ["y"], {"x", "y"})
