"""Tables of calls on a module of scipy, each a line of text evaluated with calque's, SciPy's and
JAX's module in the place of `m`."""

import importlib
import warnings
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.compare import compare
from tests.numpy.expressions import same


def evaluate(case: str, module: ModuleType, data: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(case, {"np": np, "m": module, **data})


def outcome(
    case: str, module: ModuleType, data: Mapping[str, Any]
) -> tuple[Any, BaseException | None]:
    try:
        return evaluate(case, module, data), None
    except Exception as e:
        return None, e


def used(case: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in data.items() if k in case and isinstance(v, np.ndarray)}


def check_scipy(case: str, name: str, data: Mapping[str, Any], tol: float = 1e-5) -> None:
    """Our values are SciPy's in double precision, eager and under jit."""
    ours, theirs = (
        importlib.import_module(f"{package}.{name}") for package in ("calque.scipy", "scipy")
    )
    wide = {"f": np.float64, "c": np.complex128}
    want = evaluate(
        case, theirs, {k: v.astype(wide.get(v.dtype.kind, v.dtype)) for k, v in data.items()}
    )
    arrays = {k: jnp.asarray(v) for k, v in used(case, data).items()}
    compare(evaluate(case, ours, {**data, **arrays}), want, tol)
    compare(calque.jit(lambda d: evaluate(case, ours, {**data, **d}))(arrays), want, tol)


def check_jax(
    case: str, name: str, data: Mapping[str, Any], tol: float = 1e-5, known: Collection[str] = ()
) -> None:
    """Shape, dtype and weak type of the result are JAX's (by abstract evaluation, which compiles
    nothing), or the class of the exception."""
    jax = pytest.importorskip("jax")
    ours, theirs = (
        importlib.import_module(f"calque.scipy.{name}"),
        importlib.import_module(f"jax.scipy.{name}"),
    )
    arrays = used(case, data)

    def given(asarray):
        return {k: asarray(v) for k, v in arrays.items()}

    got, error = outcome(case, ours, {**data, **given(jnp.asarray)})
    try:
        want = jax.eval_shape(
            lambda d: evaluate(case, theirs, {**data, **d}), given(jax.numpy.asarray)
        )
    except Exception as e:
        assert case in known or type(error).__name__ == type(e).__name__, (error, e)
        return
    if error:
        raise error
    same(got, want, tol)
