"""Batches of programs: where the batch dimensions are, held against single calls."""

import numpy as np
import pytest

import calque
from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.trace import eval_jaxpr
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import batch, batch_jaxpr, batched_aval, placed

X = np.arange(12, dtype=np.float32).reshape(3, 4)
AXIS = Axis(None, 3)


def f(x, y):
    return [do.sin(x), do.add(x, y), y]


@pytest.mark.parametrize("dims", [(0, None), (1, 0), (None, 1), (None, None)])
def test_results_know_their_batch_dimensions(dims):
    args = [X if d == 0 else X.T if d == 1 else X[0] for d in dims]
    outs, found = batch(f, AXIS, args, dims)
    for k in range(3):
        single = f(*(X[0] if d is None else X[k] for d in dims))
        for out, d, want in zip(outs, found, single):
            got = np.asarray(out) if d is None else np.take(np.asarray(out), k, d)
            np.testing.assert_array_equal(got, np.asarray(want))
    assert (found[2] is None) == (dims[1] is None)


def test_programs_over_whole_batches():
    closed = calque.make_jaxpr(lambda x, y: tuple(f(x, y)))(X[0], X[0])
    batched, dims = batch_jaxpr(closed, AXIS, (0, None))
    assert dims == (0, 0, None) and batched.in_avals[0].shape == (3, 4)
    again, _ = batch_jaxpr(closed, AXIS, (0, None))
    assert again is batched  # kept with the program
    forced, dims = batch_jaxpr(closed, AXIS, (0, None), True)
    assert dims == (0, 0, 0)
    outs = eval_jaxpr(forced.jaxpr, forced.consts, X, X[1])
    np.testing.assert_array_equal(np.asarray(outs[2]), np.stack([X[1]] * 3))


def test_a_value_with_its_batch_dimension_elsewhere():
    assert np.asarray(placed(X, 0, 1, 3)).tolist() == X.T.tolist()
    assert np.asarray(placed(X[0], None, 1, 3)).tolist() == np.stack([X[0]] * 3, 1).tolist()
    aval = ShapedArray((4,), np.dtype("float32"))
    assert (
        batched_aval(aval, 1, Axis(None, 3)).shape == (4, 3)
        and batched_aval(aval, None, Axis(None, 3)) is aval
    )


def test_values_that_do_not_vary_alike_are_refused_where_none_is_to_be_cast():
    mesh = calque.make_mesh((calque.device_count(),), ("i",))
    P = calque.P
    f = calque.shard_map(lambda x, y: x * y, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))
    x, y = np.ones(calque.device_count(), np.float32), np.ones(1, np.float32)
    assert f(x, y).shape == x.shape
    for g in (f, calque.jit(f)):
        with (
            calque.auto_pcast(False),
            pytest.raises(ValueError, match="mul requires varying manual axes to match"),
        ):
            g(x, y)
