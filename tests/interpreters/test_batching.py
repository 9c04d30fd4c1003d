"""Rules of batching of a library's own primitives."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.extend.core import Primitive
from calque.interpreters import batching

X = np.array([0.5, -1.0, 2.0], np.float32)
_numbers = itertools.count()


def _name(base: str) -> str:
    return f"{base}_{next(_numbers)}"


def core_aval(shape: Any, dtype: Any) -> Any:
    return calque.core.ShapedArray(shape, dtype)


def test_batching_of_reductions_and_axes() -> None:
    total = Primitive(_name("total"))
    total.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    total.def_abstract_eval(
        lambda x, *, axes: core_aval(
            tuple(n for i, n in enumerate(x.shape) if i not in axes), x.dtype
        )
    )
    batching.defreducer(total)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    for dim in range(3):
        got = calque.vmap(lambda v: total.bind(v, axes=(1,)), dim)(x)
        np.testing.assert_allclose(
            got, np.stack([np.asarray(v).sum(1) for v in np.moveaxis(np.asarray(x), dim, 0)])
        )
    sized = Primitive(_name("sized"))
    sized.def_impl(lambda x: x)
    sized.def_abstract_eval(lambda x: x)
    batching.fancy_primitive_batchers[sized] = lambda axis, args, dims: (
        args[0] * axis.size,
        dims[0],
    )
    np.testing.assert_allclose(calque.vmap(sized.bind)(x), x * 2)
    added = Primitive(_name("added"))
    added.def_impl(jnp.add)
    added.def_abstract_eval(lambda x, y: x)
    batching.defbroadcasting(added)
    np.testing.assert_allclose(calque.vmap(added.bind, (0, None))(x, x[0]), x + x[0])
    assert batching.broadcast(jnp.ones(2), 3, 0).shape == (3, 2)
    assert batching.bdim_at_front(jnp.ones((2, 3)), 1, 3).shape == (3, 2)
    assert batching.bdim_at_front(jnp.ones(2), None, 3).shape == (3, 2)


def added(several: bool = False) -> Any:
    p = Primitive(_name("added"))
    p.multiple_results = several
    p.def_impl(lambda x, y: [jnp.add(x, y), jnp.subtract(x, y)] if several else jnp.add(x, y))
    p.def_abstract_eval(
        lambda x, y: (
            [core_aval(np.broadcast_shapes(x.shape, y.shape), x.dtype)] * 2
            if several
            else core_aval(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        )
    )
    return p


@pytest.mark.parametrize("in_axes", [0, 1, (0, 1), (0, None), (None, 1)])
@pytest.mark.parametrize("define", [batching.defvectorized, batching.defbroadcasting])
@pytest.mark.parametrize("several", [False, True])
def test_elementwise_primitives(in_axes: Any, define: Any, several: bool) -> None:
    p = added(several)
    define(p)
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes, in_axes)
    ys = [x if a is not None else x[0] for a in axes]
    got = calque.vmap(p.bind, in_axes)(*ys)
    rows = [[np.take(y, i, a) if a is not None else y for y, a in zip(ys, axes)] for i in range(3)]
    want = np.stack([a + b for a, b in rows]), np.stack([a - b for a, b in rows])
    np.testing.assert_array_equal(got[0] if several else got, want[0])
    if several:
        np.testing.assert_array_equal(got[1], want[1])


def test_the_older_form_of_rules_with_a_size() -> None:
    p = Primitive(_name("sized"))
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    seen = []

    def rule(size: int, name: Any, main: Any, args: Any, dims: Any) -> Any:
        seen.append((size, name, main, dims))
        return args[0], dims[0]

    batching.axis_primitive_batchers[p] = rule
    x = jnp.ones((2, 5))
    assert calque.vmap(p.bind, 1, 1)(x).shape == (2, 5) and seen == [(5, None, None, (1,))]


def test_dimensions_are_moved() -> None:
    x = jnp.ones((2, 3, 4))
    assert batching.moveaxis(x, 0, -1).shape == (3, 4, 2)
    assert batching.moveaxis(x, -1, 0).shape == (4, 2, 3)
    assert batching.broadcast(x, 5, 1).shape == (2, 5, 3, 4)
    assert batching.bdim_at_front(x, 2, 4).shape == (4, 2, 3)
    for call in (
        lambda: batching.broadcast(x, 2, 0, "axis"),
        lambda: batching.bdim_at_front(x, 0, 2, "axis"),
    ):
        with pytest.raises(NotImplementedError, match="mesh_axis"):
            call()
    with pytest.raises(KeyError):
        batching.unregister_vmappable(int)
