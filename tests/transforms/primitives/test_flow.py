"""What loops and branches do to the functions of users: staging, common types, messages."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
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


# ---------------------------------------------------------------- functions of eager loops

SCALE = 2.0


def counted(f):
    times = []

    def body(c, x):
        times.append(1)
        return f(c, x), None

    return body, times


def last(body, start=1.0):
    return float(lax.scan(body, start, None, length=2)[0])


def test_a_function_is_recorded_once_for_each_type():
    body, times = counted(lambda c, _: c * 2)
    assert last(body) == last(body) == 4 and len(times) == 1
    assert last(body, 1) == 4 and len(times) == 2
    with calque.enable_x64():
        assert last(body) == 4
    assert len(times) == 3
    calque.clear_caches()
    assert last(body) == 4 and len(times) == 4


def test_what_a_function_reads_may_change(monkeypatch):
    factor = 3.0
    body, times = counted(lambda c, _: c * SCALE * factor)
    assert last(body) == 36
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    assert last(body) == 9
    factor = 2.0
    assert last(body) == last(body) == 4 and len(times) == 3


def test_what_cannot_be_seen_is_read_at_every_call():
    class Model:
        w = 2.0

    def apply(m, c):
        return c * m.w

    model = Model()
    body, times = counted(lambda c, _: apply(model, c))
    assert last(body) == 4
    model.w = 3.0
    assert last(body) == 9 and len(times) == 2


def test_derivatives_record_anew():
    kept = {}

    class Model:
        def step(self, c, _):
            return c * kept["w"], None

    def loss(w):
        kept["w"] = w
        return last_of(Model().step)

    def last_of(body):
        return lax.scan(body, 1.0, None, length=3)[0]

    def read(c, _):
        return c * kept["w"], None

    def loss_of_same(w):
        kept["w"] = w
        return last_of(read)

    assert loss_of_same(2.0) == 8 and loss_of_same(3.0) == 27
    assert calque.grad(loss)(2.0) == 12 and calque.grad(loss_of_same)(2.0) == 12
    assert loss_of_same(2.0) == 8


def test_all_loops_and_branches_keep_their_functions():
    times = []

    def note(f):
        def noted(*args):
            times.append(1)
            return f(*args)

        return noted

    small, double, add = note(lambda x: x < 9), note(lambda x: x * 2), note(lambda i, x: x + i)
    counts = []
    for _ in range(3):
        assert lax.while_loop(small, double, 1) == 16
        assert lax.fori_loop(0, 4, add, 0) == 6
        assert lax.cond(True, double, double, 4) == 8
        counts.append(len(times))
    assert counts[0] and counts == counts[:1] * 3
