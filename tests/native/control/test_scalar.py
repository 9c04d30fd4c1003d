"""Small arrays taken apart into scalars that are known by name."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.native.control import scalar
from calque.native.control.emitters import EMITTERS
from calque.native.lower.graph import graph_of
from calque.native.lower.rules import View, buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.blocks import Planner
from calque.native.plan.steps import Repeat, walk
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import ZERO, const, ref
from tests.native.programs import check, normal, traced


def test_all_indices_in_order() -> None:
    found = [tuple(e.attr for e in at) for at in scalar.elements((2, 3))]
    assert found == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert list(scalar.elements(())) == [()] and list(scalar.elements((2, 0))) == []


def test_names_of_real_and_complex_scalars() -> None:
    v = scalar.symbol("c", "f32")
    assert v is ref("c", "f32") and scalar.pieces(v) == [v]
    z = scalar.symbol("c", "c128")
    assert isinstance(z, Cx) and scalar.pieces(z) == [ref("c.re", "f64"), ref("c.im", "f64")]
    assert scalar.symbol("c", "float8_e5m2").dtype == "u8"


def test_stores_of_both_parts() -> None:
    home = View(buffer_of("y", (const(3),), "c64"), (const(2),))
    z = scalar.symbol("c", "c64")
    re, im = scalar.store(home, (), z)
    assert (re.idx, im.idx) == ((const(2), ZERO), (const(2), const(1)))
    assert (re.value, im.value) == (z.re, z.im)
    plain = View(buffer_of("y", (const(3), const(4)), "f32"), (const(1),))
    (s,) = scalar.store(plain, (const(3),), ref("v", "f32"))
    assert s.idx == (const(1), const(3))


def test_which_nodes_are_expressions() -> None:
    """Short sums and updates are; long ones, sorting and products of matrices are not."""

    def inline(f, *args) -> dict[str, bool]:  # type: ignore[no-untyped-def]
        g = graph_of(run_passes(traced(f, *args)))
        p = Planner(Sizes(), EMITTERS)
        return {n.op: scalar.inline(p, n) for n in g.nodes if n.op not in ("input", "literal")}

    assert inline(lambda x: jnp.sin(x).sum(), normal(3)) == {"sin": True, "reduce_sum": True}
    assert not inline(lambda x: x.sum(), normal(40))["reduce_sum"]
    assert inline(lambda x: x.at[1].set(2.0), normal(3)).get("dynamic_update_slice", True)
    assert not inline(jnp.cumsum, normal(3))["cumsum"]
    assert not any(v for k, v in inline(jnp.sort, normal(3)).items() if "sort" in k)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.bool_])
def test_carries_of_every_kind(dtype: type) -> None:
    """Each scalar is a state; all change at once."""
    x = np.array([1, 0, 1]).astype(dtype)

    def f(x):  # type: ignore[no-untyped-def]
        return lax.fori_loop(0, 5, lambda i, c: (c[1], c[0][::-1]), (x, x[::-1]))

    e = check(f, x)
    assert not any(isinstance(s, Repeat) for s in walk(e.steps))
