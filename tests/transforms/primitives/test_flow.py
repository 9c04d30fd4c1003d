"""What loops and branches do to the functions of users: staging, common types, messages."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.trace import eval_jaxpr
from calque.transforms.primitives import flow

F, W, I = (
    ShapedArray((), np.dtype(d), weak)
    for d, weak in (("float32", False), ("float32", True), ("int32", False))
)


def test_captured_values_become_arguments():
    def f(k):
        part = flow.staged(lambda x: {"y": x * k}, (1.0,), [F], "test")
        assert len(part.consts) == 1 and part.out_tree == pytrees.structure({"y": 0})
        assert len(part.closed.in_avals) == 2
        return eval_jaxpr(part.closed.jaxpr, part.closed.consts, k, 3.0)[0]

    assert float(calque.jit(f)(2.0)) == 6


def test_arguments_in_another_order():
    closed = calque.make_jaxpr(lambda x, y: (x - y, y))(1.0, 2.0)
    turned = flow.rearranged(closed, [1, 0], [1, 0])
    assert [float(v) for v in eval_jaxpr(turned.jaxpr, turned.consts, 10.0, 4.0)] == [10, -6]
    wider = flow.with_inputs(closed, [I, 0, 1])
    assert float(eval_jaxpr(wider.jaxpr, wider.consts, np.int32(0), 5.0, 1.0)[0]) == 4


def test_zeros():
    eqns, atom = flow.zeros_eqn(ShapedArray((2, 3), np.dtype("float32")))
    assert atom.aval.shape == (2, 3) and [e.primitive.name for e in eqns] == ["broadcast_in_dim"]
    assert flow.split([1, 2, 3, 4], 1, 2) == [[1], [2, 3], [4]]


def test_types_that_meet():
    assert flow.joined_type(F, W) is F and flow.joined_type(W, W) is W
    assert flow.joined_type(F, I) is None
    assert flow.same_type(F, W) and not flow.same_type(F, I)
    assert not flow.same_type(F, F.update(shape=(2,)))
    assert flow.convert(jnp.float32(1), W).weak_type and not flow.convert(1.0, F).weak_type
    assert "dtype" in flow.why_different(F, I) and "shape" in flow.why_different(
        F, F.update(shape=(2,))
    )
    assert flow.type_text(F) == "float32[]"


def test_results_of_common_types():
    closed = calque.make_jaxpr(lambda x: (x * 2, 1.0))(1.0)
    out = flow.converted_results(closed, [F, F])
    assert [a.weak_type for a in out.out_avals] == [False, False]
    same = flow.converted_results(closed, closed.out_avals)
    assert same.out_avals == closed.out_avals and len(same.eqns) == len(closed.eqns)


def test_what_trees_have_more():
    a, b = pytrees.structure({"x": 1, "y": 2}), pytrees.structure({"x": 1})
    text = flow.tree_difference(a, b, "the carry", "the result")
    assert "['y']" in text and "the carry" in text
    assert flow.paths(a) == ["['x']", "['y']"]
    assert flow.parameter_name(lambda i, carry: 0, 1, "c") == "carry"
    assert flow.parameter_name(max, 5, "default") == "default"


def test_a_carry_that_changes_is_told():
    tree = pytrees.structure((0, 0))

    def body(carry):
        return carry

    flow.check_carry("scan", body, 0, tree, tree, [F, F], [F, F])
    with pytest.raises(TypeError, match=r"scan.*carry\[1\]|carry\[1\].*int32"):
        flow.check_carry("scan", body, 0, tree, tree, [F, F], [F, I])
    with pytest.raises(TypeError, match="structure"):
        flow.check_carry("scan", body, 0, tree, pytrees.structure([0]), [F, F], [F])
