"""Parts of complex numbers."""

import numpy as np
import pytest

import calque
from calque.ops import complexes as C
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    check_transpose,
    run,
    same,
    traced,
    values,
    x64,
)

X, Y = values("float64", (2, 3)), values("float64", (2, 3), seed=1)
Z = X + 1j * Y


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts(dtype):
    z = Z.astype(dtype)
    with x64():
        for x in (z, z[:0], z[0, 0]):
            same(call(C.real_p, x)[0], np.real(x))
            same(call(C.imag_p, x)[0], np.imag(x))
            same(call(C.conj_p, x, input_dtype=x.dtype)[0], np.conj(x))
            same(call(C.complex_p, np.real(x), np.imag(x))[0], x)
        same(call(C.conj_p, z.real, input_dtype=z.real.dtype)[0], z.real.astype(dtype))
        same(call(C.complex_p, z.real, np.zeros((), z.real.dtype))[0], z.real.astype(dtype))


def test_rules():
    for prim in (C.real_p, C.imag_p):
        check_jvp(prim, Z)
        check_transpose(prim, Z)
        check_batch(prim, Z)
    for x in (Z, X):
        check_jvp(C.conj_p, x, input_dtype=x.dtype)
        check_transpose(C.conj_p, x, input_dtype=x.dtype)
        check_batch(C.conj_p, x, input_dtype=x.dtype)
    check_jvp(C.complex_p, X, Y)
    check_jvp(C.complex_p, X, np.array(2.0))
    check_transpose(C.complex_p, X, Y, linear=(0, 1))
    check_transpose(C.complex_p, X, np.array(2.0), linear=(0, 1))
    check_batch(C.complex_p, X, Y)


def test_real_numbers_have_no_parts():
    with pytest.raises(
        TypeError,
        match=(
            r"real does not accept dtype float32. Accepted dtypes are subtypes of complexfloating"
        ),
    ):
        traced(C.real, np.ones(2, np.float32))
    with pytest.raises(TypeError, match="complex does not accept dtype float16"):
        traced(C.complex, np.ones(2, np.float16), np.ones(2, np.float16))
    assert run(C.conj, np.ones(2, np.float32))[0].dtype == np.complex64


@pytest.mark.peer
def test_peer():
    z = Z.astype("complex64")
    for name in ("real", "imag", "conj"):
        check_peer(name, z)
    check_peer("conj", z.real)
    check_peer("complex", z.real, z.imag)


def test_gradients_by_parts_are_not_weak():
    """A part alone is completed by zeros of its type, also where the number came from Python."""
    for f in (calque.numpy.real, calque.numpy.imag, abs, lambda z: calque.numpy.real(z * z)):
        assert not calque.grad(f)(3.0 + 4j).weak_type
    assert calque.grad(calque.numpy.real)(3.0 + 4j) == 1.0
