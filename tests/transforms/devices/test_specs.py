"""Partition specs: what they say, that equal ones are one object, what they refuse."""

import copy
import pickle

import pytest

from calque.transforms.devices.specs import UNCONSTRAINED, P, names_in, names_of_spec


def test_partition_specs():
    assert [repr(s) for s in (P(), P("x"), P("x", ("x", "y"), None), P(("x",)), P(("x", "y")))] == [
        "P()", "P('x',)", "P('x', ('x', 'y'), None)", "P('x',)", "P(('x', 'y'),)",
    ]  # fmt: skip
    assert (
        repr(P("x", unreduced={"y"})) == "P('x', unreduced={'y'})"
        and repr(P(P.UNCONSTRAINED)) == "P(UNCONSTRAINED,)"
    )
    assert (
        P("x") == P(("x",)) != P("x", None) and P("x") != ("x",) and hash(P("x")) == hash(P(("x",)))
    )
    assert (
        len(P("x", None)) == 2
        and P("x", "y")[1] == "y"
        and tuple(P("x")) == ("x",)
        and P("x") + P("y") == P("x", "y")
    )
    assert P("x", "y").index("y") == 1 and pickle.loads(pickle.dumps(P("x", None))) == P("x", None)


def test_partition_specs_are_one_object_and_frozen():
    assert P("x", ()) is P("x", None) and P(("x",)) is P("x")
    assert P("x", unreduced={"y"}) + P("z") == P("x", "z", unreduced={"y"})
    with pytest.raises(AttributeError, match="immutable"):
        P("x").partitions = ()
    with pytest.raises(ValueError, match="partitions cannot overlap with unreduced"):
        P("x", unreduced={"x"})
    with pytest.raises(ValueError, match="cannot contain a nested tuple"):
        P(("x", ("y",)))
    with pytest.raises(ValueError, match="would lose"):
        tuple(P("x", reduced={"y"}))


def test_copies_and_pickles_are_the_same_object():
    spec = P("x", ("y", "z"), unreduced={"u"}, reduced={"r"})
    for same in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert same is spec
    assert pickle.loads(pickle.dumps(UNCONSTRAINED)) is UNCONSTRAINED


def test_axes_named_by_entries():
    assert [names_in(e) for e in (None, UNCONSTRAINED, "x", ("x", "y"))] == [
        (), (), ("x",), ("x", "y"),
    ]  # fmt: skip
    assert names_of_spec(P("x", None, ("y", "z"), UNCONSTRAINED, unreduced={"u"})) == {
        "x", "y", "z",
    }  # fmt: skip


def test_specs_change_into_others():
    spec = P("x", unreduced={"u"}, reduced={"r"})
    assert spec.padded(3) == ("x", None, None) and spec.padded(1) == ("x",)
    assert spec.update(partitions=("y", None)) == P("y", None, unreduced={"u"}, reduced={"r"})
    assert spec.update(reduced=set()) == P("x", unreduced={"u"})
    assert spec.to_ct_spec() == P("x", unreduced={"r"}, reduced={"u"})
    assert spec.to_ct_spec().to_ct_spec() is spec
    assert ("y", None) + P("x") == P("y", None, "x") and P("x") + ("y",) == P("x", "y")
    assert P(("x", "y"), "z").count(["x", "y"]) == 1 and P("x", ("z",)).index("z") == 1


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: P(unreduced="x"), TypeError, "unreduced must be a set of mesh axes, got 'x'"),
        (lambda: P(reduced=["x"]), TypeError, "reduced must be a set"),
        (lambda: P(unreduced={None}), ValueError, "unreduced cannot contain None"),
        (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "cannot overlap"),
        (lambda: P(("x", "y"), reduced={"y"}), ValueError, "cannot overlap with reduced"),
        (lambda: P(unreduced={"x"}) + ("y",), TypeError, "has unreduced in `__add__`"),
        (lambda: ("y",) + P(reduced={"x"}), TypeError, "has reduced in `__radd__`"),
        (lambda: P("x") + ["y"], TypeError, "unsupported operand"),
        (lambda: P("x", unreduced={"y"})[0], ValueError, "would lose its unreduced"),
        (lambda: type("Mine", (P,), {}), TypeError, "prohibited"),
        (lambda: P("x").index("y"), ValueError, "not in tuple"),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make()
