"""How what types say of mesh axes follows through equations."""

import numpy as np
import pytest

import calque
from calque import lax
from calque import numpy as jnp
from calque.core.config import config
from calque.sharding import NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.type_rules import _dealt, _groups
from calque.transforms.devices.types import ShardingTypeError
from tests.transforms.devices.four_devices import four_devices


def put(shape, spec):
    x = jnp.arange(float(np.prod(shape))).reshape(shape)
    return calque.device_put(x, NamedSharding(calque.make_mesh((2, 2), ("x", "y")), spec))


def spec_of(f, *args):
    """The spec in the type of the traced result and on the computed one, which must agree."""
    (aval,) = calque.jit(f).trace(*args).jaxpr.out_avals
    got = calque.jit(f)(*args).sharding
    assert got.spec == aval.sharding.spec
    return aval.sharding.spec


@four_devices
def test_shardings_follow_through_programs():
    x = put((4, 8), P("x", "y"))
    assert calque.typeof(x).str_short() == "f32[4@x,8@y]"
    assert spec_of(lambda v: jnp.sin(v) * 2, x) == P("x", "y")
    assert spec_of(lambda v: v.T, x) == P("y", "x")
    assert spec_of(lambda v: v.sum(0), x) == P("y")
    assert spec_of(lambda v: v.reshape(4, 4, 2), x) == P("x", "y", None)
    assert spec_of(lambda v: v[:, :4], x) == P("x", "y")
    assert spec_of(lambda a, b: a @ b, put((4, 8), P("x", None)), put((8, 2), P(None, "y"))) == P(
        "x", "y"
    )
    assert (x + x).sharding.spec == P("x", "y")


@four_devices
def test_shardings_that_do_not_agree_are_errors():
    a, b = put((4, 4), P("x", "y")), put((4, 4), P("y", "x"))
    for add in (lambda v, w: v + w, calque.jit(lambda v, w: v + w)):
        with pytest.raises(ShardingTypeError, match="add got incompatible shardings"):
            add(a, b)
    with pytest.raises(ShardingTypeError, match="ambiguous how the output should be sharded"):
        calque.jit(lambda v, w: v @ w)(put((4, 4), P(None, "x")), put((4, 4), P("x", None)))


def test_dimensions_in_groups_of_the_same_elements():
    assert _groups((4, 6), (4, 6)) == [([0], [0]), ([1], [1])]
    assert _groups((4, 6), (24,)) == [([0, 1], [0])]
    assert _groups((4, 6), (2, 2, 6)) == [([0], [0, 1]), ([1], [2])]
    assert _groups((4, 6), (3, 8)) == [([0, 1], [0, 1])]
    for old, new in (((2, 6, 5), (3, 4, 5)), ((4, 1, 3), (2, 2, 3)), ((), (1,))):
        for rows, columns in _groups(old, new):
            assert np.prod([old[i] for i in rows]) == np.prod([new[j] for j in columns])


def test_axes_are_dealt_out_in_order():
    mesh = calque.sharding.AbstractMesh((2, 3), ("x", "y"))
    assert _dealt(["x", "y"], [2, 3], mesh) == [("x",), ("y",)]
    assert _dealt(["x", "y"], [12], mesh) == [("x", "y")]
    assert _dealt(["y"], [1, 3], mesh) == [(), ("y",)]
    assert _dealt(["x"], [3, 2], mesh) is None  # the parts would not be neighbours
    assert _dealt(["x", "y"], [4, 3], mesh) is None


def put_pair(first, second):
    return put((4, 4), first), put((4, 4), second)


@four_devices
@pytest.mark.parametrize(
    "f, specs, want",
    [
        (lambda a, b: lax.concatenate([a, b], 1), (P("x", None), P("x", None)), P("x", None)),
        (lambda a, b: jnp.where(a > 0, a, b), (P("x", "y"), P("x", "y")), P("x", "y")),
        (lambda a, b: a.reshape(16) + b.sum(), (P("x", None), P(None, None)), P("x")),
        (lambda a, b: a.reshape(2, 2, 4) * b[0], (P("x", None), P(None, None)), P("x", None, None)),
        (lambda a, b: lax.pad(a, 0.0, ((0, 4, 0), (0, 0, 0))) + b[:1], (P("x", "y"), P(None, "y")),
         P("x", "y")),
        (lambda a, b: lax.dynamic_update_slice(a, b[:2], (0, 0)), (P(None, "x"), P(None, "x")),
         P(None, "x")),
        (lambda a, b: a[jnp.array([2, 0])] + b[:2], (P(None, "x"), P(None, "x")), P(None, "x")),
    ],
)  # fmt: skip
def test_specs_of_results(f, specs, want):
    assert spec_of(f, *put_pair(*specs)) == want


@four_devices
@pytest.mark.parametrize(
    "f, specs, text",
    [
        (lambda a, b: lax.concatenate([a, b], 0), (P("x", None), P("y", None)), "same sharding"),
        (lambda a, b: jnp.where(a > 0, a, b), (P("x", None), P("y", None)), "select cases"),
        (lambda a, b: a @ b, (P(None, "x"), P("y", None)), "contracting dimensions to have"),
        (lambda a, b: a @ b.T, (P("x", None), P("x", None)), "illegally sharded result"),
        (lambda a, b: a[:3], (P("x", None), P()), "slice on sharded dims where out dim"),
        (lambda a, b: a.reshape(2, 8), (P("x", "y"), P()), "reshape is not supported"),
        (lambda a, b: a.reshape(16), (P(None, "x"), P()), "reshape is not supported"),
        (lambda a, b: a[jnp.array([0, 1])], (P("x", None), P()), "provide output PartitionSpec"),
        (
            lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)),
            (P("x", None), P("y", None)),
            "operand sharding must be equal to update",
        ),
    ],
)
def test_what_is_left_open_is_refused(f, specs, text):
    args = put_pair(*specs)
    for g in (f, calque.jit(f)):
        with pytest.raises(ShardingTypeError, match=text):
            g(*args)


@four_devices
def test_meshes_must_agree():
    other = calque.make_mesh((4,), ("z",))
    x, y = put((4,), P("x")), calque.device_put(jnp.ones(4), NamedSharding(other, P("z")))
    with pytest.raises(ValueError, match="Mesh for all inputs should be equal"):
        calque.make_jaxpr(lambda a, b: a + b)(x, y)


@four_devices
def test_branches_vary_where_one_of_them_does():
    seen = []

    def f(v, w):
        out = lax.cond(w[0] > 0, lambda: v, lambda: lax.pcast(w, "x", to="varying"))
        seen.append(calque.typeof(out).mat.varying)
        return out

    mesh = calque.make_mesh((4,), ("x",))
    run = calque.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    x = calque.device_put(jnp.arange(4.0), NamedSharding(mesh, P("x")))
    w = calque.device_put(jnp.zeros(1), NamedSharding(mesh, P(None)))
    np.testing.assert_array_equal(run(x, w), np.zeros(4))
    assert seen and all(v == {"x"} for v in seen)


@four_devices
def test_operands_are_made_to_vary_alike_where_that_is_allowed():
    mesh = calque.make_mesh((4,), ("x",))
    x = calque.device_put(jnp.arange(4.0), NamedSharding(mesh, P("x")))
    w = calque.device_put(jnp.ones(1), NamedSharding(mesh, P(None)))
    f = calque.shard_map(lambda a, b: a + b, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    text = str(calque.make_jaxpr(f)(x, w))
    assert text.count("pvary[axes=('x',)") == 1
    with (
        config.override("auto_pcast", False),
        pytest.raises(ValueError, match="add requires varying manual axes to match"),
    ):
        calque.make_jaxpr(f)(x, w)


@four_devices
def test_picking_out_of_a_split_dimension_offers_what_helps():
    x = put((8,), P("x"))
    fixed, found = r"at\[\.\.\.\]\.get\(out_sharding=\)", "a static size="
    with pytest.raises(ShardingTypeError, match=fixed) as error:
        calque.jit(lambda v: v[np.array([0, 3])])(x)
    assert found not in str(error.value)
    with pytest.raises(ShardingTypeError, match=f"{fixed}.*{found}"):
        calque.jit(lambda v: v[v > 2])(x)
    whole = x.sharding.update(spec=P(None))
    out = calque.jit(lambda v: v.at[v > 2].get(out_sharding=whole))(x)
    assert out.tolist() == [3, 4, 5, 6, 7]
