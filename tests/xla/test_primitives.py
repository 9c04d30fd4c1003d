"""Every primitive on XLA's CPU, against its NumPy meaning."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from calque.core.arrays import to_numpy
from calque.core.backends import Options
from calque.core.config import config
from calque.core.trace import trace_to_jaxpr, typeof
from calque.xla.engine import Executable
from tests.native import cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce
from tests.native.cases import TABLE, Case, meaning, program, programs, split_results
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
MODULES = (cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce)
CASES = 12  # of each primitive, spread over all
WIDE = {"bool", "int8", "int32", "int64", "uint8", "uint32", "float32", "float64", "complex64"}
# XLA's CPU takes denormal numbers for zero, and its own approximations are its own.
# SciPy's functions at extreme operands, called in a thread of XLA that has no denormal numbers.
ON_HOST_WITHOUT_DENORMALS = ("igamma", "igamma_grad_a")
AT_POLES = (
    "polygamma",
    "zeta",
    "rem",
    "digamma",
    "lgamma",
    "igamma",
    "igamma_grad_a",
)  # infinities or NaN as XLA has them
TOLERANCE = {"float32": 2e-4, "float64": 1e-9, "complex64": 2e-4}


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def plain(c: Case) -> bool:
    """Whether all arrays are of types that all machines have."""
    outs = c.prim.shape(*map(typeof, c.args), **c.params)
    avals = [*map(typeof, c.args), *(outs if c.prim.multiple_results else [outs])]
    if c.prim.name in ON_HOST_WITHOUT_DENORMALS and any(a.dtype == np.float64 for a in avals):
        return False
    return all(a.dtype.name in WIDE or a.dtype.name.startswith("key") for a in avals)


def flushed(x: Any) -> Any:
    """Denormal numbers are zero."""
    if getattr(getattr(x, "dtype", None), "name", "") not in ("float32", "float64"):
        return x
    x = np.asarray(x)
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x).astype(x.dtype)


def close(c: Case, got: np.ndarray, want: np.ndarray) -> bool:
    if want.dtype.names is not None:
        return got.tobytes() == want.tobytes()
    if want.dtype.name not in TOLERANCE:
        return bool(np.array_equal(got, want))
    tolerance = TOLERANCE[want.dtype.name]
    size = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
    scale = min(float(size), 1e6) if np.isfinite(size) else 1.0
    with np.errstate(all="ignore"):
        near = np.isclose(got, want, tolerance, tolerance * scale, equal_nan=True)
        strange = ~np.isfinite(want) | ~np.isfinite(got)
    if c.prim.name in AT_POLES or want.dtype.kind == "c":
        near = near | strange
    return bool(near.all())


def verify(part: Sequence[Case], outs: Sequence[Any]) -> None:
    for c, found in split_results(part, outs):
        if c.check is not None:
            c.check(c, [np.asarray(to_numpy(x)) for x in found])
            continue
        for got, want in zip(found, meaning(c), strict=True):
            x = flushed(np.asarray(to_numpy(got)))
            assert (x.shape, x.dtype) == (want.shape, want.dtype), str(c)
            assert close(c, x, flushed(want)), f"{c}: {x} in place of {want}"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_on_xla(name: str) -> None:
    cases = [c._replace(args=tuple(map(flushed, c.args))) for c in TABLE[name]() if plain(c)]
    assert cases
    for part in programs(cases[:: max(1, len(cases) // CASES)]):
        fun, args = program(part)
        closed = trace_to_jaxpr(fun, [typeof(a) for a in args])
        verify(part, Executable(closed, Options(name)).call(args))
