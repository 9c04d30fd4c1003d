"""Reductions in simpler terms: which axes go together, the tree of a short one, what nothing
gives."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque import disable_jit, explain, jit, lax
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, do
from calque.native.lower import reductions
from calque.native.lower.graph import Node
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import const, param, ref, show
from calque.ops.reductions import largest, smallest
from tests.native.lower.shared import Elements, check
from tests.native.programs import normal

ALL = ("sum", "prod", "max", "min", "and", "or", "xor")


def reduced(kind: str, axes: tuple[int, ...]):  # type: ignore[no-untyped-def]
    extra = {"out_sharding": None} if "sharding" in str(REGISTRY[f"reduce_{kind}"]) else {}

    def f(x):  # type: ignore[no-untyped-def]
        if kind in ("sum", "max", "min", "prod"):
            return getattr(jnp, {"sum": "sum", "prod": "prod", "max": "max", "min": "min"}[kind])(
                x, axes
            )
        return REGISTRY[f"reduce_{kind}"].bind(x, axes=axes, **extra)

    return f


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_all_axes(axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 3, 4)).astype(np.float32)
    for kind in ("sum", "prod", "max", "min"):
        check(reduced(kind, axes), x)
    check(reduced("and", axes), x > 0)
    check(reduced("xor", axes), x.astype(np.int32))


def test_neighbours_are_one_axis() -> None:
    assert reductions.runs([3, 0, 1]) == [[0, 1], [3]] and reductions.runs([]) == []
    e = Elements(lambda x: jnp.sum(x, (0, 1)), normal(2, 3, 4))
    assert [n.op for n in e.graph.nodes if n.op.startswith("reduce")] == ["reduce_sum"]
    e = Elements(lambda x: jnp.sum(x, (0, 2)), normal(2, 3, 4))
    assert [n.params["axes"] for n in e.graph.nodes if n.op == "reduce_sum"] == [(2,), (0,)]


def test_long_extents_are_cut_into_chunks_of_chunks() -> None:
    chunk = reductions.CHUNK
    for size, shapes in (
        (chunk, []),
        (chunk + 1, [(2,)]),
        (chunk * chunk + 1, [(chunk + 1,), (2,)]),
    ):
        x = ShapedArray((size,), np.dtype("f4"))
        g = reductions.GraphBuilder()
        node = g.add("input", (), {}, x)
        expand = reductions.expand_reduce("sum")
        expand(g, [node], {"axes": (0,)}, [ShapedArray((), np.dtype("f4"))])
        assert [n.shape for n in g.nodes if n.op == "reduce_chunks"] == shapes


@pytest.mark.parametrize("size", range(1, 17))
def test_a_tree_of_halves(size: int) -> None:
    """The order in which a vector loop adds: low half and high half, as if filled up with zeros."""
    x = normal(size)
    width = 1 << (size - 1).bit_length()
    want = np.zeros(width, np.float32)
    want[:size] = x
    while width > 1:
        width //= 2
        want = want[:width] + want[width:]
    assert Elements(lambda x: jnp.sum(x), x).result().tobytes() == (want[0] + 0).tobytes()


def test_a_tree_by_its_text() -> None:
    names = [ref(n, "f32") for n in "abcde"]
    assert show(reductions.tree("sum", names)) == "(((a + e) + c) + (b + d))"
    assert reductions.tree("max", names[:1]) is names[0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "complex64"])
@pytest.mark.parametrize("kind", ALL)
def test_what_nothing_gives(kind: str, dtype: str) -> None:
    """The value that changes nothing that it is combined with."""
    t = np.dtype(dtype)
    if (t.kind in "fc" and kind in ("and", "or", "xor")) or (
        t.kind == "c" and kind in ("max", "min")
    ):
        return
    node = Node("input", (), {}, ShapedArray((3,), t), 0)
    start = reductions.identity_of(kind, node)
    assert np.asarray(start).dtype == t
    f = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}.get(kind)
    f = f or getattr(np, f"bitwise_{kind}")
    x = np.array([0, 1, 1 if t.kind == "b" else 100], t)
    np.testing.assert_array_equal(f(x, start), x)
    np.testing.assert_array_equal(
        f(-x if t.kind in "ifc" else x, start), -x if t.kind in "ifc" else x
    )


def test_sums_start_from_zero() -> None:
    """Only -0.0 notices."""
    x = np.array([-0.0], np.float32)
    for f in (jnp.sum, lambda x: x[:1] @ x[:1] * 0 + jnp.sum(x)):
        assert not np.signbit(Elements(f, x).result())
    assert np.signbit(Elements(jnp.max, x).result())
    z = reductions.started("sum", Cx(ref("a", "f32"), ref("b", "f32")), node_of("complex64"))
    assert (z.re.op, z.im.op) == ("add", "add")
    k = param("k", "i32")
    assert reductions.started("sum", k, node_of("int32")) is k


def node_of(dtype: str) -> Node:
    return Node("input", (), {}, ShapedArray((), np.dtype(dtype)), 0)


@pytest.mark.parametrize("dtype", ["int2", "int4", "uint4", "float8_e4m3fn", "float8_e5m2"])
def test_maxima_of_nothing_are_those_of_the_narrow_type(dtype: str) -> None:
    """Narrow numbers are reduced in a wider type, which has smaller and larger ones."""
    least, most = smallest(jnp.dtype(dtype)), largest(jnp.dtype(dtype))
    for x in (jnp.zeros((0, 3), dtype), jnp.zeros((3, 0), dtype).T):
        for f, want in ((lax.reduce_max, least), (lax.reduce_min, most)):
            for got in (f(x, (0,)), jit(lambda x, f=f: f(x, (0,)))(x)):
                assert got.shape == (3,)
                np.testing.assert_array_equal(np.asarray(got, np.float32), np.float32(want))
    free = jit(lambda x: lax.reduce_max(x, (0,)), dynamic={0: 0})
    for n, want in ((3, 1), (5, 1), (0, least)):
        np.testing.assert_array_equal(np.float32(free(jnp.ones((n, 2), dtype))), np.float32(want))


def test_halves_are_summed_in_float32() -> None:
    x = np.full(16, 0.1, np.float16)
    want = np.float16(x.astype(np.float32).reshape(2, 8).sum(0).sum())
    assert Elements(jnp.sum, x).result() == want
    dtypes = {n.dtype for n in Elements(jnp.max, x).graph.nodes if n.op == "reduce_max"}
    assert dtypes == {"f16"}


def test_combining_pairs() -> None:
    a, b = (Cx(ref(f"{n}r", "f32"), ref(f"{n}i", "f32")) for n in "ab")
    assert show(reductions.combine("prod", a, b).im) == "((ar * bi) + (ai * br))"
    before = "((ar > br) | ((ar == br) & (ai > bi)))"
    assert show(reductions.combine("max", a, b).re) == f"select({before}, ar, br)"
    p, q = ref("p", "i1"), ref("q", "i1")
    assert (
        reductions.combine("max", p, q).op == "or" and reductions.combine("prod", p, q).op == "and"
    )


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 1), (1, 2), (0, 2), (2, 0), None])
def test_the_greatest_complex_number(axes: Any) -> None:
    """One after the other, in the order of the axes: beside NaN it depends on that. No chunks, and
    no call of Python."""
    r = np.random.default_rng(4)

    def some(*shape: int) -> np.ndarray:
        x = (r.integers(-3, 3, shape) + 1j * r.integers(-3, 3, shape)).astype(np.complex64)
        return np.where(r.random(shape) < 0.05, complex(np.nan, 1), x).astype(np.complex64)

    for x in (some(7, 33, 5), some(2, 1, 3), some(1, 20_000, 1)):
        for f in (jnp.max, jnp.min):
            g = jit(lambda x, f=f: f(x, axis=axes))
            with disable_jit():
                want = f(jnp.asarray(x), axis=axes)
            assert np.asarray(g(x)).tobytes() == np.asarray(want).tobytes()
            assert not explain(g, x).host_calls


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_the_first_of_the_best(kind: str) -> None:
    """A nan is better than everything; of equal ones the first."""
    x = np.array([[1, 3, 3, -1], [np.nan, 5, np.nan, 0], [-0.0, 0, 0, -0.0], [2, 2, 2, 2]], "f4")
    for axis in (0, 1):
        for dtype in (np.int32, np.uint8):
            check(lambda x: getattr(do, kind)(x, axes=(axis,), index_dtype=np.dtype(dtype)), x)
    check(lambda x: getattr(do, kind)(x, axes=(0,), index_dtype=np.dtype(np.int32)), x[:, 0] > 0)


def test_sums_of_exponentials_in_logarithms() -> None:
    values = [0.0, 1.0, -3.0, 80.0, -np.inf, np.inf, np.nan]
    e = Elements(lambda x: x, np.zeros(1, "f4"))
    for a, b in itertools.product(values, values):
        x = reductions.logaddexp(const(a, "f32"), const(b, "f32"))
        with np.errstate(invalid="ignore"):
            want = np.logaddexp(np.float32(a), np.float32(b))
        got = e.value(x, {})
        assert got == pytest.approx(want, rel=1e-6, nan_ok=True), (a, b)
