"""Arrays of 64 bits that were made where these are on, in functions that are called where they are
off: the numbers are those of a call that is made where they are on."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, scipy

with calque.enable_x64(True):
    X = jnp.array([1.5, -0.25, 3.0])
    I = jnp.array([2, 0, 1])
    C = X + 1j * X[::-1]
    M = jnp.array([[4.0, 1.0, 0.0], [1.0, 5.0, 2.0], [0.0, 2.0, 6.0]])

KEPT = {
    "zeros_like": lambda: jnp.zeros_like(X),
    "ones_like": lambda: jnp.ones_like(I),
    "full_like": lambda: jnp.full_like(C, 2),
    "array": lambda: jnp.array(X),
    "var": lambda: jnp.var(X),
    "var, too few": lambda: jnp.var(X[:1], ddof=2),
    "var where": lambda: jnp.var(C, where=X > 0, ddof=1),
    "std": lambda: jnp.std(M, axis=0),
    "nanmean": lambda: jnp.nanmean(X),
    "nanvar": lambda: jnp.nanvar(X),
    "log2": lambda: jnp.log2(C),
    "log10": lambda: jnp.log10(abs(X)),
    "modf": lambda: jnp.modf(X),
    "frexp": lambda: jnp.frexp(X)[0],
    "ldexp": lambda: jnp.ldexp(X, I),
    "tril": lambda: jnp.tril(M),
    "triu": lambda: jnp.triu(M),
    "diag": lambda: jnp.diag(X),
    "where": lambda: jnp.where(X, X, X),
    "max where": lambda: jnp.max(X, where=X < 2, initial=-1),
    "unique": lambda: jnp.unique(C),
    "cholesky": lambda: jnp.linalg.cholesky(M),
    "eigh": lambda: jnp.linalg.eigvalsh(M),
    "derivative of eigh": lambda: calque.grad(lambda m: jnp.linalg.eigvalsh(m).max())(M),
    "cond": lambda: jnp.linalg.cond(M),
    "hypot": lambda: jnp.hypot(X, X),
    "copysign": lambda: jnp.copysign(X, -X),
    "logaddexp": lambda: jnp.logaddexp(C, C),
}
OTHERS = {
    "any": lambda: jnp.any(I),
    "all": lambda: jnp.all(C),
    "isinf": lambda: jnp.isinf(C),
    "isneginf": lambda: jnp.isneginf(X),
    "signbit": lambda: jnp.signbit(X),
    "signbit of integers": lambda: jnp.signbit(I),
    "astype": lambda: X.astype(bool),
    "nan_to_num": lambda: jnp.nan_to_num(X),
    "linspace": lambda: jnp.linspace(X, 2 * X, 3),
    "select": lambda: jnp.select([I != 0], [X], X),
    "count_nonzero": lambda: jnp.count_nonzero(X),
    "fft": lambda: jnp.fft.ifft(X, norm="ortho"),
    "polar": lambda: scipy.linalg.polar(M),
    "lanes of slices": lambda: calque.vmap(lambda m: lax.dynamic_slice(m, (I[2],), (2,)))(M),
    "lanes of updates": lambda: calque.vmap(lambda m: lax.dynamic_update_slice(m, X, (I[1],)))(M),
    "poisson": lambda: scipy.stats.poisson.cdf(I, abs(X)),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", [*KEPT, *OTHERS])
def test_functions_of_wide_arrays_where_64_bits_are_off(name, compiled):
    f = KEPT.get(name) or OTHERS[name]
    found = calque.tree.leaves((calque.jit(f) if compiled else f)())
    with calque.enable_x64(True):
        wanted = calque.tree.leaves(f())
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6, atol=1e-6)
        assert name in OTHERS or x.dtype == y.dtype
