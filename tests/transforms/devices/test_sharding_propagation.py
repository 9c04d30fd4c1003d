"""Shardings follow values through primitives and programs."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.avals import ShapedArray
from calque.experimental import checkify
from calque.sharding import Mesh, NamedSharding, SingleDeviceSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.sharding_propagation import RULES, propagate
from tests.transforms.devices.four_devices import four_devices


def square():
    return Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))


@four_devices
def test_shardings_follow_values():
    x = calque.device_put(jnp.arange(16.0).reshape(4, 4), NamedSharding(square(), P("x", None)))
    f = calque.jit(lambda v: (jnp.sin(v) + 1, v.sum(0), v.T))
    cases = [
        (jnp.sin(x), P("x", None)), (x.sum(), P()), (x.sum(1), P("x")), (x @ x.T, P("x", None)),
        (x.T, P(None, "x")), (x[0], P()),
        (x.reshape(16), P("x")), (x.reshape(2, 2, 4), P("x")), (x + 1, P("x", None)),
        (x * x, P("x", None)),
        (x[:, 1:], P("x", None)), (jnp.where(x > 1, x, 0.0), P("x", None)), (jnp.sort(x, 0), P()),
        (x[:, None], P("x")),
        (f(x)[0], P("x", None)), (f(x)[1], P()), (f(x)[2], P(None, "x")), (x.astype(int), P("x",
        None)),
    ]  # fmt: skip
    for i, (y, want) in enumerate(cases):
        assert y.sharding.spec == want, (i, y.sharding)
    assert f(jnp.ones((4, 4)))[0].sharding == SingleDeviceSharding(calque.devices()[0])
    compiled = f.lower(x).compile()
    assert compiled(x)[0].sharding.spec == P("x", None)


@four_devices
def test_placed_values_may_be_looked_at_by_what_has_no_results():
    x = calque.device_put(jnp.arange(4.0), NamedSharding(square(), P("x")))
    checkify.check(x[0] == 0, "the first is {}", x)  # its payload is placed
    with pytest.raises(ValueError, match="the first is"):
        checkify.check(x[0] == 1, "the first is {}", x)


def blocks(shape, dim, parts):
    """For each element of an array of this shape, which of the parts along `dim` it lies in."""
    at = np.arange(shape[dim]) * parts // shape[dim]
    return np.broadcast_to(np.expand_dims(at, [d for d in range(len(shape)) if d != dim]), shape)


def moved(f, shapes):
    """The primitive that `f` records, and the types of its operands and of its result."""
    closed = calque.make_jaxpr(f)(*[jnp.zeros(s) for s in shapes])
    (eqn,) = closed.eqns
    return eqn, [ShapedArray(s, np.float32) for s in shapes], eqn.outvars[0].aval


MOVES = {
    "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), (4, 2, 6)),
    "squeeze": (lambda x: lax.squeeze(x, (1,)), (4, 1, 6)),
    "merging": (lambda x: lax.reshape(x, (8, 6)), (4, 2, 6)),
    "cutting": (lambda x: lax.reshape(x, (2, 2, 3, 4)), (4, 12)),
    "mixing": (lambda x: lax.reshape(x, (6, 4)), (4, 6)),
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (3, 4, 6), (1, 2)), (4, 6)),
    "repeated": (lambda x: lax.broadcast_in_dim(x, (4, 6), (0, 1)), (1, 6)),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_stays_split_moves_no_elements(name):
    """Where a rule keeps a dimension split, each part of the result comes from the same part of
    the operand."""
    f, shape = MOVES[name]
    eqn, avals, out = moved(f, [shape])
    for dim, n in enumerate(shape):
        if n % 2:
            continue
        entries = [None] * len(shape)
        entries[dim] = "x"
        found = RULES[eqn.primitive.name]([entries], avals, out, eqn.params)
        assert len(found) == out.ndim
        for k in [k for k, e in enumerate(found) if e == "x" and out.shape[k] % 2 == 0]:
            came_from = np.asarray(f(jnp.asarray(blocks(shape, dim, 2))))
            np.testing.assert_array_equal(came_from, blocks(out.shape, k, 2))


def test_entries_by_primitive():
    def found(f, shapes, *ins):
        eqn, avals, out = moved(f, shapes)
        return RULES[eqn.primitive.name]([list(i) for i in ins], avals, out, eqn.params)

    dot = (((1,), (1,)), ((0,), (0,)))
    assert found(
        lambda a, b: lax.dot_general(a, b, dot), [(2, 3, 4), (2, 3, 5)], "bcm", (None, None, "n")
    ) == ["b", "m", "n"]
    assert found(lambda a: lax.reduce_max(a, (1,)), [(2, 3, 4)], "abc") == ["a", "c"]
    assert found(lambda a: lax.cumsum(a, 1), [(2, 3)], "ab") == ["a", None]
    assert found(lambda a: lax.slice(a, (0, 1), (2, 3)), [(2, 4)], "ab") == ["a", None]
    assert found(lambda a: lax.reshape(a, (6,)), [(2, 3)], "ab") == ["a"]
    assert found(lambda a: lax.reshape(a, (3, 2)), [(2, 3)], "ab") == ["a", None]


@four_devices
def test_parts_that_do_not_fit_are_whole():
    x = calque.device_put(jnp.ones((4, 4)), NamedSharding(square(), P("x", "y")))
    assert x.reshape(2, 8).sharding.spec == P("x")  # two rows of one device
    assert (x @ x).sharding.spec == P("x", "y")
    assert jnp.einsum("ij,kj->ik", x, x).sharding.spec == P("x")  # an axis stands once
    assert x[:3].sharding.spec == P(None, "y")


@four_devices
def test_programs_of_operands_on_different_devices_are_refused():
    a, b = (calque.device_put(jnp.ones(3), d) for d in calque.devices()[:2])
    for add in (jnp.add, calque.jit(lambda v, w: v + w)):
        with pytest.raises(ValueError, match=r"device ids \[0\](.|\n)*device ids \[1\]"):
            add(a, b)


@four_devices
def test_programs_are_asked_once_for_each_choice_of_shardings():
    s = NamedSharding(square(), P("x"))
    closed = calque.make_jaxpr(lambda a, b: (calque.jit(jnp.sin)(a) + b, b))(
        jnp.ones(4), jnp.ones(4)
    )
    first = propagate(closed, (s, None), "f")
    assert first == [s, None] and propagate(closed, (s, None), "f") is first
    assert propagate(closed, (None, s), "f") == [s, s]


@four_devices
def test_parts_of_a_map_say_how_they_are_split_over_the_other_axes():
    m = square()
    inner = NamedSharding(m, P("x"))
    f = calque.jit(
        calque.shard_map(
            lambda v: lax.with_sharding_constraint(v * v, inner),
            mesh=m, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"},
        )
    )  # fmt: skip
    assert f(jnp.ones((4, 4))).sharding == NamedSharding(m, P("x", "y"))


@four_devices
def test_what_is_drawn_from_keys_is_where_the_keys_are():
    s = NamedSharding(square(), P("x"))
    keys = calque.device_put(calque.random.split(calque.random.key(0), 4), s)
    assert calque.random.key_data(keys).sharding == s.update(spec=P("x", None))
    assert calque.jit(calque.vmap(calque.random.normal))(keys).sharding == s
    seeds = calque.device_put(jnp.arange(4, dtype="uint32"), s)
    assert calque.jit(calque.vmap(calque.random.key))(seeds).sharding == s


def _said(spec):
    return lambda v: lax.with_sharding_constraint(v, NamedSharding(square(), spec))


@four_devices
@pytest.mark.parametrize(
    ("asked", "short"),
    [
        (P("x", None), P("x")), (P(None), P()), (P(None, None), P()), (P(None, "y"), P(None, "y")),
        (P(("x",), None), P("x")), (P(("y", "x"), None), P(("y", "x"))),
    ],
)  # fmt: skip
def test_results_are_described_in_the_fewest_words(asked, short):
    x = jnp.ones((4, 4))
    assert calque.jit(_said(asked))(x).sharding.spec == short
    assert calque.jit(_said(asked)).lower(x).compile().output_shardings.spec == short
    added = calque.jit(lambda v: v + 1, in_shardings=NamedSharding(square(), asked))(x)
    assert added.sharding.spec == short
    assert _said(asked)(x).sharding.spec == asked


@four_devices
def test_results_that_lie_as_an_argument_are_described_as_it_is():
    x = jnp.ones((4, 4))
    long, short = (calque.device_put(x, NamedSharding(square(), s)) for s in (P("x", None), P("x")))
    other = calque.device_put(x, NamedSharding(square(), P(None, "y")))
    assert calque.jit(_said(P("x")))(long).sharding.spec == P("x", None)
    assert calque.jit(_said(P("x", None)))(short).sharding.spec == P("x")
    assert calque.jit(_said(P("x", None)))(other).sharding.spec == P("x")
    unread = calque.jit(lambda a, b: _said(P("x", None))(a))
    assert unread(other, long).sharding.spec == P("x")
    assert [calque.jit(jnp.add)(*xs).sharding.spec for xs in ((long, short), (short, long))] == [
        P("x", None), P("x"),
    ]  # fmt: skip


@four_devices
def test_results_whose_shardings_were_chosen_are_described_in_the_words_of_the_choice():
    long = NamedSharding(square(), P("x", None))
    f = calque.jit(lambda v: (_said(P("x", None))(v), v * 2), out_shardings=(None, long))
    assert [y.sharding.spec for y in f(jnp.ones((4, 4)))] == [P("x"), P("x", None)]
    inner = calque.jit(lambda v: v * 2, out_shardings=long)
    assert calque.jit(lambda v: inner(v))(jnp.ones((4, 4))).sharding.spec == P("x")
