"""Tables of calls, each a line of text that is evaluated with calque.numpy, with NumPy and with JAX
in the place of `jnp`."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.compare import compare, values

_X = values((3, 4), "float32")
_Y = _X.copy()
_Y[0, 1] = np.nan
_Y[2] = np.nan
_G = values((5, 5), "float32", 3)

ARRAYS: dict[str, Any] = {
    "X": _X,
    "Y": _Y,  # with nan
    "I": np.array([[1, 2, 3], [4, 5, 9]]),
    "C": (_X + 1j * _X[::-1]).astype(np.complex64),
    "C4": (_G[:4, :4] + 1j * _G[1:, 1:].T).astype(np.complex64),
    "A": np.array([5, 1, 3, 3, 7, 1]),
    "B": values((2, 3, 3), "float32", 1),
    "F": np.array([1.0, np.nan, 2, np.nan, 1], np.float32),
    "G": _G,
    "R": np.array([[1, 2], [0, 5], [1, 2], [0, 4]]),
    "T": values((2, 3, 4), "float32", 2),
    "U": np.arange(12, dtype=np.uint8).reshape(3, 4) * 20,
    "W": values((4, 5, 6), "float32", 4),
    "SPECIAL": np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38], np.float32),
}

DIFFERENT = (
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    IndexError,
    NotImplementedError,
    RuntimeError,
    np.linalg.LinAlgError,
)


def lines(text: str) -> list[str]:
    return [c for c in text.strip().splitlines() if c]


def evaluate(case: str, namespace: Any, data: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(case, {"np": np, "jnp": namespace, **data})


def room(namespace: Any, module: str | None) -> Any:
    return namespace if module is None else getattr(namespace, module)


def outcome(case: str, namespace: Any, data: Mapping[str, Any]) -> tuple[Any, BaseException | None]:
    try:
        return evaluate(case, namespace, data), None
    except Exception as e:
        return None, e


def check_numpy(
    case: str, data: Mapping[str, Any], tol: float = 1e-5, module: str | None = None
) -> None:
    """Our values are NumPy's, where NumPy has the function with these parameters and does not
    refuse them."""
    try:
        want = evaluate(case, room(np, module), data)
    except DIFFERENT:
        return
    got, error = outcome(case, room(jnp, module), data)
    if isinstance(error, (TypeError, ValueError, NotImplementedError, IndexError)):
        return  # JAX takes less than NumPy; the comparison with JAX decides
    if error:
        raise error
    if case in NUMPY_DIFFERS:
        return
    compare(got, want, tol)


def check_jit(
    case: str, data: Mapping[str, Any], tol: float = 1e-5, module: str | None = None
) -> None:
    """The same values under jit, unless the values must be known."""
    want, error = outcome(case, room(jnp, module), data)
    if error:
        return
    used = {k: v for k, v in data.items() if k in case}
    try:
        got = calque.jit(lambda d: evaluate(case, room(jnp, module), {**data, **d}))(used)
    except (calque.errors.ConcretizationTypeError, calque.errors.NonConcreteBooleanIndexError):
        return
    except (TypeError, calque.errors.TracerArrayConversionError) as e:
        if "traced" in str(e) or "not a valid" in str(e) or "type" in str(e):
            return  # a NumPy expression in the case itself, or a result that is no array
        raise
    compare(got, want, tol)


def check_jax(
    case: str, data: Mapping[str, Any], tol: float = 1e-5, module: str | None = None
) -> None:
    """The same values, shapes, dtypes and weak types as JAX's, or an exception of the same
    class."""
    jax = pytest.importorskip("jax")
    theirs = room(jax.numpy, module)
    want, refused = _of_jax(jax, case, theirs, data)
    ours = {k: jnp.asarray(v) if k in case else v for k, v in data.items()}
    got, error = outcome(case, room(jnp, module), ours)
    if case in JAX_DIFFERS:
        return
    if refused or error:
        assert type(error).__name__ == type(refused).__name__, (error, refused)
        return
    same(got, want, tol)


def _of_jax(
    jax: Any, case: str, theirs: Any, data: Mapping[str, Any]
) -> tuple[Any, BaseException | None]:
    """Shapes and types by abstract evaluation, which compiles nothing; values where those must be
    known."""
    used = {k: jax.numpy.asarray(v) for k, v in data.items() if k in case}
    data = {**data, **used}
    needs_values = any(word in case for word in ("size=", "fill_value"))
    if not needs_values:
        try:
            return jax.eval_shape(lambda d: evaluate(case, theirs, {**data, **d}), used), None
        except Exception:
            pass
    return outcome(case, theirs, data)


def same(got: Any, want: Any, tol: float) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, tol)
        return
    if not hasattr(want, "dtype"):
        assert got == want
        return
    if not hasattr(got, "dtype"):  # a Python number, of which abstract evaluation made an array
        assert isinstance(got, (bool, int, float, complex)) and tuple(want.shape) == ()
        return
    assert np.shape(got) == tuple(want.shape)
    assert np.asarray(got).dtype == want.dtype
    assert getattr(got, "weak_type", False) == getattr(want, "weak_type", False)
    if not hasattr(want, "addressable_shards"):
        return
    compare(got, np.asarray(want), tol)


# where NumPy's answer is another one, on purpose of JAX
NUMPY_DIFFERS = {
    "jnp.einsum('ij,jk,kl->il',A,B,C,optimize='x')",
    "jnp.einsum_path('ij,jk,kl->il',A,B,C)[0]",  # NumPy's begins with a name
    "jnp.issubdtype('bfloat16',np.floating)",
    "jnp.issubdtype('int4',np.integer)",
    "jnp.lstsq(R1,A)",  # NumPy gives no residuals for fewer than full rank
    "jnp.lstsq(X.T,X.T)",
    "jnp.pinv(R1)",  # of rank 1, which NumPy's tolerance takes for more
    "jnp.polydiv(p,np.array([1.,2]))",  # NumPy trims the remainder
    "jnp.promote_types('int32','float16')",
    "jnp.promote_types(float,'bfloat16')",
    "jnp.result_type('int8',2.0)",
    "jnp.result_type(2,np.float32(1))",
    "jnp.setdiff1d(A,B,True)",  # which assumes what is not so
    "jnp.unique_values(A)",  # NumPy's are in no order
}

# where we keep to NumPy, or to mathematics, or refuse what JAX lets pass
JAX_DIFFERS = {
    "jnp.cholesky(X)",
    "jnp.cond(Z)",
    "jnp.einsum('i$->i',A)",
    "jnp.einsum('ij,jk->ik',A,[1])",
    "jnp.einsum_path('ij,jk,kl->il',A,B,C)[0]",
    "jnp.ix_(np.array([1,2]),np.array([True,False,True]))",
    "jnp.matrix_rank(X,rtol=.9)",
    "jnp.pad(X,{0:1,-1:2})",
    "jnp.pad(X,{1:(1,2)})",
    "jnp.pad(np.float32(3),())",
    "jnp.roots(np.array([0,0,1,2,0.]))",
    "jnp.trim_zeros(A,'x')",
}
