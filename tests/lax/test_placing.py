"""`out_sharding` of the functions of lax, and the other arguments that say where values live."""

import inspect

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.lax.placing import NAMES
from calque.sharding import NamedSharding
from calque.sharding import PartitionSpec as P

A = np.ones((2, 2), np.float32)
CONTRACT = (((1,), (0,)), ((), ()))
CALLS = {
    "broadcast": lambda **s: lax.broadcast(A[0], (2,), **s),
    "broadcast_in_dim": lambda **s: lax.broadcast_in_dim(A[0], (2, 2), (1,), **s),
    "broadcasted_iota": lambda **s: lax.broadcasted_iota("int32", (2, 2), 0, **s),
    "conv_general_dilated": lambda **s: lax.conv_general_dilated(
        A[None, None], A[None, None], (1, 1), "SAME", **s
    ),
    "dot": lambda **s: lax.dot(A, A, **s),
    "dot_general": lambda **s: lax.dot_general(A, A, CONTRACT, **s),
    "empty": lambda **s: lax.empty((2, 2), "float32", **s),
    "full": lambda **s: lax.full((2, 2), 1.0, **s),
    "full_like": lambda **s: lax.full_like(A, 1.0, **s),
    "ragged_dot": lambda **s: lax.ragged_dot(A, A[None], np.array([2]), **s),
    "ragged_dot_general": lambda **s: lax.ragged_dot_general(
        A, A[None], np.array([2]), RAGGED, **s
    ),
    "reduce": lambda **s: lax.reduce(A, np.float32(0), lax.add, (0,), **s),
    "reduce_sum": lambda **s: lax.reduce_sum(A, (0,), **s),
    "reshape": lambda **s: lax.reshape(A, (4,), **s),
    "rng_bit_generator": lambda **s: lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), **s)[1],
}
RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])


def mesh():
    return calque.make_mesh((1,), ("x",))


def test_every_function_with_a_sharding_is_here():
    offered = [(n, getattr(lax, n)) for n in lax.__all__]
    public = [(n, f) for n, f in offered if inspect.isfunction(f)]
    found = {
        n for n, f in public if {"sharding", "out_sharding"} & set(inspect.signature(f).parameters)
    }
    assert found == set(NAMES) == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_results_live_where_asked(name):
    keyword = "sharding" if name.startswith("full") else "out_sharding"
    s = NamedSharding(mesh(), P("x"))
    for call in (CALLS[name], lambda **k: calque.jit(lambda: CALLS[name](**k))()):
        out = call(**{keyword: s})
        assert out.sharding.is_equivalent_to(s, out.ndim)
        np.testing.assert_array_equal(out, CALLS[name]())
    with pytest.raises(TypeError, match=keyword):
        CALLS[name](**{keyword: "nowhere"})


def test_a_sharding_may_be_positional():
    s = NamedSharding(mesh(), P("x"))
    for out in (
        lax.full_like(A, 1.0, None, None, sharding=s),
        lax.reduce(A, np.float32(0), lax.add, (0,), s),
    ):
        assert out.sharding.is_equivalent_to(s, out.ndim)


# ---------------------------------------------------------------- other arguments


def test_device_put_copies_and_checks_its_options():
    x = jnp.arange(3.0)
    same, other = calque.device_put(x, may_alias=True), calque.device_put(x, may_alias=False)
    assert (
        same.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() != other.unsafe_buffer_pointer()
    )
    assert other.tolist() == [0, 1, 2] and other.aval is x.aval
    tree = calque.device_put({"a": x, "b": x}, may_alias={"a": False, "b": None})
    assert [tree[k].unsafe_buffer_pointer() == x.unsafe_buffer_pointer() for k in "ab"] == [
        False,
        True,
    ]
    assert calque.device_put(x, donate=True).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="may_alias and donate"):
        calque.device_put(x, donate=True, may_alias=True)
    with pytest.raises(ValueError, match="donate"):
        calque.device_put(x, donate={"a": True})


def test_functions_of_the_process_know_their_backends():
    for f in (
        calque.process_index,
        calque.process_count,
        calque.process_indices,
        calque.local_devices,
        calque.device_count,
    ):
        f(backend="cpu")
        with pytest.raises(RuntimeError, match="gpu"):
            f(backend="gpu")
    for options in ({"process_index": 3}, {"host_id": 3}):
        with pytest.raises(ValueError, match="3"):
            calque.local_devices(**options)


def test_drawings_of_shardings_have_a_scale(capsys):
    s = NamedSharding(mesh(), P("x"))
    calque.debug.visualize_sharding((4,), s, scale=3.0, max_width=9)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and {len(line) for line in lines} == {11}
    with pytest.raises(NotImplementedError, match="color_map"):
        calque.debug.visualize_sharding((4,), s, color_map=lambda i: "red")


def test_full_arrays_on_meshes_of_the_compiler():
    auto = calque.make_mesh((1,), ("x",), axis_types=(calque.sharding.AxisType.Auto,))
    s = NamedSharding(auto, P("x"))
    assert lax.full((4,), 1.0, sharding=s).sharding == s
    assert lax.full_like(jnp.arange(4), 1, sharding=s).sharding == s
    assert calque.jit(lambda: lax.full((4,), 1.0, sharding=s))().sharding == s
