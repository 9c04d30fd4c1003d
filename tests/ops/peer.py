"""Comparison with JAX: the same lax program through both, value, dtype, shape and printed
program."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from calque.core import printing
from calque.core.primitives import UndefinedPrimal
from calque.core.trace import trace_to_jaxpr, typeof
from tests.ops.helpers import run_jaxpr

NAMES = [
    "arithmetic",
    "associative",
    "bits",
    "broadcasting",
    "compare",
    "complexes",
    "products.convolution",
    "convert",
    "creation",
    "products.convolution_functions",
    "products.convolution_shapes",
    "dimension_numbers",
    "products.dot",
    "fft",
    "indexing",
    "joining",
    "layout",
    "linalg.factors",
    "linalg.orthogonal",
    "linalg.spectral",
    "math",
    "cumulative",
    "padding",
    "products.ragged",
    "reductions",
    "rounding",
    "scatter",
    "scatter_functions",
    "select_windows",
    "slicing",
    "slicing_functions",
    "windows",
]


class Lax:
    """calque's lax functions, gathered from the rooms of ops by name."""

    def __init__(self, *modules: Any):
        self.modules = modules

    def __getattr__(self, name: str) -> Any:
        for m in self.modules:
            if getattr(getattr(m, name, None), "__module__", m.__name__) == m.__name__ and hasattr(
                m, name
            ):
                return getattr(m, name)
        raise AttributeError(name)


ROOMS = [importlib.import_module(f"calque.ops.{name}") for name in NAMES]
ours = Lax(*ROOMS)


def compare(
    cases: Sequence[tuple[Any, ...]], rtol: float = 1e-5, atol: float = 1e-5, printed: bool = True
) -> None:
    """Each case is (program of a lax module and arrays, *arrays)."""
    jax = pytest.importorskip("jax")
    for k, (fun, *args) in enumerate(cases):
        theirs = jax.make_jaxpr(lambda *xs: fun(jax.lax, *xs))(*args)
        want = [
            np.asarray(x)
            for x in jax.tree_util.tree_leaves(fun(jax.lax, *map(jax.numpy.asarray, args)))
        ]
        closed = trace_to_jaxpr(lambda *xs: flat(fun(ours, *xs)), [typeof(a) for a in args])
        got = run_jaxpr(closed, *args)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert (g.shape, g.dtype) == (
                w.shape,
                w.dtype,
            ), f"case {k}: {g.dtype}{g.shape}, JAX {w.dtype}{w.shape}"
            wide = np.complex128 if g.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(
                g.astype(wide), w.astype(wide), rtol=rtol, atol=atol, err_msg=f"case {k}"
            )
        if printed:
            assert squashed(printing.print_jaxpr(closed.jaxpr)) == squashed(theirs), f"case {k}"


def flat(out: Any) -> list[Any]:
    return [y for x in out for y in flat(x)] if isinstance(out, (list, tuple)) else [out]


def squashed(jaxpr: Any) -> str:
    """The printed form without layout."""
    return (
        "".join((jaxpr if isinstance(jaxpr, str) else str(jaxpr)).split())
        .replace("([", "((")
        .replace("])", "))")
    )


def undefined(x: Any) -> UndefinedPrimal:
    """The mark of a linear operand in a transpose rule."""
    return UndefinedPrimal(typeof(x))
