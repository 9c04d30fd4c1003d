import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.functions.shapes import ShapeDtypeStruct, eval_shape, make_jaxpr
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_shape_dtype_struct():
    s = ShapeDtypeStruct((2, 3), "float32")
    assert (
        repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
        and len(s) == 2
        and s.size == 6
        and s.ndim == 2
    )
    assert s == ShapeDtypeStruct([2, 3], np.float32) and hash(s) == hash(
        ShapeDtypeStruct((2, 3), jnp.float32)
    )
    assert s.update(shape=(4,)).shape == (4,) and s != s.update(dtype=np.int32)
    with pytest.raises(ValueError, match="dtype must be specified"):
        ShapeDtypeStruct((2,), None)


def test_eval_shape():
    out = eval_shape(
        lambda p, *, k: {"o": p["w"] @ k},
        {"w": ShapeDtypeStruct((2, 3), "float32")},
        k=np.ones(3, np.float32),
    )
    assert out == {"o": ShapeDtypeStruct((2,), np.float32)}
    with pytest.raises(TypeError, match=r"argument p\['w'\] of f is 'a'"):

        def f(p):
            return p

        eval_shape(f, {"w": "a"})


def test_make_jaxpr():
    closed = make_jaxpr(lambda x: 2 * x + 1)(3.0)
    assert (
        " ".join(str(closed).split())
        == "{ lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a c:f32[] = add b 1.0:f32[] in (c,) }"
    )
    assert len(make_jaxpr(lambda x: x)(ShapeDtypeStruct((3,), "int32")).in_avals) == 1


def test_jitted_calls_keep_their_name():
    def poly(x):
        return x * x

    assert "jit[" in str(make_jaxpr(jit(poly))(1.0)) and "name=poly" in str(
        make_jaxpr(jit(poly))(1.0)
    )


def test_static_arguments_and_shapes():
    made = make_jaxpr(lambda n, x: x * n, static_argnums=(0,), return_shape=True)
    closed, shape = made(3, np.ones(2, np.float32))
    assert len(closed.jaxpr.invars) == 1 and shape == ShapeDtypeStruct((2,), np.float32)


def test_captured_arrays_are_constants():
    bias = jnp.array([1, 2, 3])
    closed = make_jaxpr(lambda x: x + bias)(np.arange(3))
    assert len(closed.consts) == 1 and str(closed).startswith("{ lambda a:i32[3]; b:i32[3]. let")


def test_bad_arguments():
    with pytest.raises(TypeError, match="Expected a callable"):
        make_jaxpr(3)
    with pytest.raises(TypeError, match="argument x of f is"):

        def f(x):
            return x

        make_jaxpr(f)(object())


def test_types_inside_a_map_say_along_which_axes_values_vary():
    m = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    P = calque.sharding.PartitionSpec

    @calque.jit
    @functools.partial(calque.shard_map, mesh=m, in_specs=P("x"), out_specs=P("x"))
    def f(v):
        assert calque.typeof(calque.eval_shape(jnp.sin, v)).vma == {"x"}
        return v

    f(jnp.ones(2))


def test_a_shape_is_a_sequence():
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        ShapeDtypeStruct(4, "float32")


def test_words_that_it_does_not_know_are_refused() -> None:
    with pytest.raises(TypeError, match="wek_type"):
        calque.ShapeDtypeStruct((2,), "float32", wek_type=True)
    with pytest.raises(TypeError, match="shpae"):
        calque.ShapeDtypeStruct((2,), "float32").update(shpae=(3,))
    with pytest.raises(NotImplementedError, match="is_ref=True"):
        calque.ShapeDtypeStruct((2,), "float32", is_ref=True)
    assert calque.ShapeDtypeStruct((2,), "float32", manual_axis_type=None).shape == (2,)


def test_partition_specs_in_types_refer_to_the_mesh_that_is_set_when_they_are_asked():
    s = ShapeDtypeStruct((4,), "float32", sharding=calque.P("x"))
    assert s.shape == (4,) and s == ShapeDtypeStruct((4,), "float32", sharding=calque.P("x"))
    with pytest.raises(TypeError, match="the context mesh cannot be empty"):
        s.sharding
    mesh = calque.make_mesh((1,), ("x",))
    with calque.set_mesh(mesh):
        assert s.sharding == calque.NamedSharding(mesh, calque.P("x"))
        out = jit(lambda x: x * 2).lower(s).compile()(np.ones(4, np.float32))
    assert out.sharding == calque.NamedSharding(mesh, calque.P("x"))
