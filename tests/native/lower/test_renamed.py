"""Operations under other names, and windows as views."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.primitives import REGISTRY, do
from calque.native.lower import renamed
from tests.native.lower.shared import Elements, check
from tests.native.programs import normal

X = normal(5, 4)


def test_names_are_gone() -> None:
    """The graph has what they stand for."""
    for f, ops in (
        (lambda x: do.add_any(x, x), {"add"}),
        (lambda x: lax.stop_gradient(x), set()),
        (lambda x: lax.optimization_barrier((x, x * 2))[1], {"mul"}),
        (lambda x: jnp.split(x, 5)[3], {"slice"}),
    ):
        e = check(f, X)
        assert {n.op for n in e.graph.nodes} - {"input", "literal"} <= ops
    assert set(renamed.NAMES) <= set(REGISTRY) | {"empty"}


def test_parts_and_wholes() -> None:
    check(lambda x: list(do.split(x, sizes=(1, 0, 3), axis=1)), X)
    check(lambda x: do.stack(x, x * 2, axis=1), X)
    check(lambda x: list(do.unstack(x, axis=0)), X)
    check(lambda x: do.tile(x, reps=(2, 3)), X)


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize(
    "window, strides, pads, base, dilation",
    [
        ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
        ((2, 2), (2, 3), ((1, 0), (2, 2)), (1, 1), (1, 1)),
        ((1, 3), (2, 1), ((0, 0), (1, 1)), (1, 2), (1, 2)),
        ((3, 1), (1, 2), ((-1, 2), (0, -1)), (2, 1), (2, 1)),
        ((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
        ((5, 4), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
        ((2, 2), (1, 1), ((-9, 4), (0, 0)), (1, 1), (1, 1)),
    ],
)
def test_windows(kind, window, strides, pads, base, dilation) -> None:  # type: ignore[no-untyped-def]
    """One axis after another: any order of sums of whole numbers is exact."""
    x = np.round(X * 4)
    p = {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": pads,
        "base_dilation": base,
        "window_dilation": dilation,
    }
    e = check(lambda x: REGISTRY[f"reduce_window_{kind}"].bind(x, **p), x)
    assert all("reduce_window" not in n.op for n in e.graph.nodes)


def test_windows_of_what_has_no_order_stay() -> None:
    p = {
        "window_dimensions": (2,),
        "window_strides": (1,),
        "padding": ((0, 0),),
        "base_dilation": (1,),
        "window_dilation": (1,),
    }
    z = np.arange(5).astype(np.complex64)
    kept = Elements(lambda x: x, z)
    assert kept.graph.outputs
    check(lambda x: REGISTRY["reduce_window_sum"].bind(x, **p), z)


def test_an_axis_without_a_window_is_not_touched() -> None:
    e = Elements(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2), "VALID"), X)
    assert [n.params["axis"] for n in e.graph.nodes if n.op == "windows"] == [1]
    assert sum(n.op == "pad" for n in e.graph.nodes) == 0
