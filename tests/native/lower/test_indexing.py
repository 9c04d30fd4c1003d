"""Gathers and the places of scatters: in every mode, at every index, never outside."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.native.lower import indexing
from calque.native.lower.rules import Lower
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import TRUE, param, var
from tests.native.lower.shared import Elements, check
from tests.native.programs import normal

X = normal(6, 5)
PLACES = np.array([-100, -7, -6, -1, 0, 3, 5, 6, 100], np.int32)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_rows_at_every_place(mode: str) -> None:
    inside = PLACES if mode != "promise_in_bounds" else PLACES[4:7]
    check(lambda x, i: x.at[i].get(mode=mode), X, inside)
    check(lambda x, i: x.at[:, i].get(mode=mode), X, inside % 5)
    check(lambda x, i: x.at[i, i % 5].get(mode=mode), X, inside)


def test_gathers_with_windows_and_batches() -> None:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0, 1))
    starts = np.array([[0, 0], [5, 2], [9, 9], [-3, 1]], np.int32)
    for mode in ("clip", "fill"):
        check(
            lambda x, i, mode=mode: lax.gather(x, i, numbers, slice_sizes=(1, 3), mode=mode),
            X,
            starts,
        )
    check(lambda x, i: jnp.take_along_axis(x, i, 1), X, np.array([[0], [4], [2], [1], [0], [3]]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float32", "complex64"])
def test_what_stands_outside(dtype: str) -> None:
    x = np.ones(3, dtype)
    e = check(lambda x: x.at[jnp.array([1, 7])].get(mode="fill"), x)
    last = e.result()[1]
    want = {"b": True, "i": -128, "u": 255}.get(x.dtype.kind)
    assert np.isnan(last) if want is None else last == want
    check(lambda x: x.at[jnp.array([1, 7])].get(mode="fill", fill_value=0), x)


def test_nothing_is_read_of_an_array_without_elements() -> None:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    starts = np.array([[0], [2]], np.int32)
    for mode in ("clip", "fill"):
        e = Elements(
            lambda x, i, mode=mode: lax.gather(x, i, numbers, slice_sizes=(1, 0), mode=mode),
            np.zeros((3, 0), "f4"),
            starts,
        )
        assert all(r.attr.name != "x0" for r in e.loads()) and e.result().shape == (2, 0)


def test_modes_by_any_spelling() -> None:
    mode = lax.GatherScatterMode
    for found, spelled in (
        ("clip", (mode.CLIP, "clip", "CLIP")),
        ("fill", (mode.FILL_OR_DROP, "fill", "drop")),
        ("promise", (mode.PROMISE_IN_BOUNDS, None, "promise_in_bounds")),
    ):
        assert all(indexing.mode_of({"mode": s}) == found for s in spelled)


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8", "u32", "u64"])
def test_insides_of_every_type(dtype: str) -> None:
    """0 <= v <= top at the ends of the type, of the range, and beside them."""
    e = Elements(lambda x: x, np.zeros(1, "f4"))
    info = np.iinfo({"i": "i", "u": "u"}[dtype[0]] + str(int(dtype[1:]) // 8))
    for top in (0, 9, 100):
        cond = indexing.inside(e.low, param("k", dtype), e.low.sizes.dim(top))
        for v in (info.min, info.max, -1, 0, 1, top - 1, top, top + 1):
            if info.min <= v <= info.max:
                e.low.params["k"] = v
                assert bool(e.value(cond, {})) == (0 <= v <= top), (v, top)


def test_one_comparison_where_one_will_do() -> None:
    low = Lower(Sizes())
    top = low.sizes.dim(100)
    assert indexing.inside(low, param("k", "u8"), low.sizes.dim(300)) is TRUE
    assert indexing.inside(low, param("k", "u16"), top).op == "le"
    assert indexing.inside(low, param("k", "i32"), top).op == "le"  # without its sign
    assert indexing.inside(low, param("k", "i8"), low.sizes.dim(200)).op == "ge"
    assert indexing.inside(low, var("i", 50), top) is TRUE


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
def test_places_of_a_scatter(mode: str) -> None:
    """Each update goes where NumPy would put it, or nowhere: a broken promise as well."""
    e = Elements(lambda x, i, u: x.at[i].set(u, mode=mode), X, PLACES, normal(9, 5))
    (n,) = [n for n in e.graph.nodes if n.op == "scatter"]
    idx = (var("a", 9), var("b", 5))
    place = indexing.scatter_place(e.low, n, idx)
    for a, at in enumerate(PLACES.tolist()):
        env = {"a": a, "b": 2}
        row = at + 6 if at < 0 else at
        ok = bool(e.value(place.ok, env))
        if mode == "clip":
            assert ok and e.value(place.idx[0], env) == min(max(row, 0), 5)
        else:
            assert ok == (0 <= row < 6)
            assert not ok or e.value(place.idx[0], env) == row
        assert e.value(place.idx[1], env) == 2
