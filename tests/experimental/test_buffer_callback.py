"""Python functions that write to the memory of their results."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import ShapeDtypeStruct
from calque.experimental.buffer_callback import ExecutionStage, buffer_callback

VECTOR = ShapeDtypeStruct((3,), np.float32)


def double(context, out, x):
    assert context.stage is ExecutionStage.EXECUTE and out.writeable and not x.writeable
    assert out.dtype == np.float32 and out.shape[-1:] == (3,) and out.ndim == len(out.shape)
    np.asarray(out)[...] = 2 * np.asarray(x)


def test_results_are_written():
    f = buffer_callback(double, VECTOR)
    assert calque.jit(f)(jnp.arange(3.0)).tolist() == [0, 2, 4] and f.__name__ == "double"
    assert np.from_dlpack(calque.jit(f)(jnp.ones(3))).tolist() == [2, 2, 2]


def test_trees_and_effects():
    calls = []

    def both(context, out, args):
        calls.append(1)
        np.asarray(out["a"])[...] = np.asarray(args["x"])
        np.from_dlpack(out["b"])[...] = 7

    f = buffer_callback(both, {"a": VECTOR, "b": VECTOR}, has_side_effect=True)
    out = calque.jit(lambda x: f({"x": x}) and x)(jnp.ones(3))
    assert out.tolist() == [1, 1, 1] and calls == [1]
    assert f({"x": jnp.ones(3)})["b"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_batches(method):
    def add(context, out, x, y):
        np.asarray(out)[...] = np.asarray(x) + np.asarray(y)

    f = buffer_callback(add, VECTOR, vmap_method=method)
    xs = jnp.arange(6.0).reshape(2, 3)
    assert (calque.vmap(f, (0, None))(xs, jnp.ones(3)) == xs + 1).all()
    twice = calque.vmap(calque.vmap(f, (0, None)), (None, 0))(xs, jnp.ones((4, 3)))
    assert twice.shape == (4, 2, 3) and (twice == xs + 1).all()


def test_a_result_may_begin_as_an_argument():
    def add_one(context, out, x):
        view = np.asarray(out)
        view += 1

    f = buffer_callback(add_one, VECTOR, input_output_aliases={0: 0})
    x = jnp.zeros(3)
    assert f(x).tolist() == [1, 1, 1] and x.tolist() == [0, 0, 0]


def test_refusals():
    with pytest.raises(ValueError, match="vmap_method='sequential' is for functions without"):
        buffer_callback(double, VECTOR, has_side_effect=True, vmap_method="sequential")
    with pytest.raises(Exception, match="must write to `out` and return nothing"):
        buffer_callback(lambda context, out, x: 3, VECTOR)(jnp.ones(3))
