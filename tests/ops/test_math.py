"""Elementary functions: values against float64, derivatives, JAX."""

import math as python_math

import ml_dtypes
import numpy as np
import pytest

from calque.core.primitives import REGISTRY
from calque.ops import math as M
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

NAMES = {
    "exp": python_math.exp,
    "exp2": lambda x: 2.0**x,
    "expm1": python_math.expm1,
    "sin": python_math.sin,
    "cos": python_math.cos,
    "tan": python_math.tan,
    "sinh": python_math.sinh,
    "cosh": python_math.cosh,
    "tanh": python_math.tanh,
    "asinh": python_math.asinh,
    "atan": python_math.atan,
    "cbrt": python_math.cbrt,
    "logistic": lambda x: 1 / (1 + python_math.exp(-x)),
    "log": python_math.log,
    "log1p": python_math.log1p,
    "sqrt": python_math.sqrt,
    "rsqrt": lambda x: 1 / python_math.sqrt(x),
    "asin": python_math.asin,
    "acos": python_math.acos,
    "atanh": python_math.atanh,
    "acosh": python_math.acosh,
}
DOMAIN = {"asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.1, 3)}
POSITIVE = {"log", "log1p", "sqrt", "rsqrt"}


def domain(name):
    return DOMAIN.get(name, (0.1, 3) if name in POSITIVE else (-3, 3))


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    for dtype, rtol in (
        ("float64", 1e-14),
        ("float32", 1e-7),
        ("float16", 5e-4),
        (ml_dtypes.bfloat16, 4e-3),
    ):
        with x64():
            x = values(dtype, (2, 4), *domain(name))
            want = np.array([NAMES[name](float(v)) for v in x.ravel()]).reshape(x.shape)
            same(call(REGISTRY[name], x)[0], want.astype(x.dtype), rtol=rtol)
            assert call(REGISTRY[name], x[:0])[0].shape == (0, 4)
            assert call(REGISTRY[name], x[0, 0])[0].shape == ()


@pytest.mark.parametrize("name", NAMES)
def test_rules(name):
    x = values("float64", (4,), *domain(name))
    check_jvp(REGISTRY[name], x)
    check_batch(REGISTRY[name], x)
    if name != "cbrt":
        check_jvp(
            REGISTRY[name],
            0.4 * values("float64", (4,)) + 0.5j + 0.3j * values("float64", (4,), 0.2, 1),
        )


def test_atan2():
    x, y = values("float64", (6,)), values("float64", (6,), seed=1)
    with x64():
        want = np.array([python_math.atan2(a, b) for a, b in zip(x, y)])
        same(call(M.atan2_p, x, y)[0], want, rtol=1e-15)
    check_jvp(M.atan2_p, x, y)
    check_jvp(M.atan2_p, x, np.array(0.5))
    check_batch(M.atan2_p, x, y)
    check_jvp(M.atan2_p, x + 0.3j, y + 1j * x)


def test_small_arguments_keep_their_digits():
    x = np.array([1e-30, -1e-20], np.float32)
    same(call(M.expm1_p, x)[0], x)
    same(call(M.log1p_p, x)[0], x)
    z = np.array([1e-18 + 1e-19j])
    with x64():
        same(call(M.expm1_p, z)[0], z, rtol=1e-15)
        same(call(M.log1p_p, z)[0], z, rtol=1e-15)


def test_logistic_does_not_overflow():
    same(
        call(M.logistic_p, np.array([-1e4, 1e4, -np.inf, np.inf], np.float32))[0],
        np.array([0, 1, 0, 1], np.float32),
    )


def test_accuracy_is_accepted_and_checked():
    x = np.ones(2, np.float32)
    for accuracy in (None, M.AccuracyMode.HIGHEST, M.Tolerance(ulps=2)):
        run(lambda v, a=accuracy: M.exp(v, accuracy=a), x)
    with pytest.raises(TypeError, match="accuracy must be None"):
        traced(lambda v: M.exp(v, accuracy=3), x)


def test_integers_are_refused():
    with pytest.raises(
        TypeError,
        match=r"sin does not accept dtype int32\. Accepted dtypes are subtypes of floating.*astype",
    ):
        traced(M.sin, np.ones(2, np.int32))


@pytest.mark.peer
@pytest.mark.parametrize("name", [*NAMES, "atan2"])
def test_peer(name):
    s = specials("float32")
    args = [s] if name != "atan2" else [np.repeat(s, len(s)), np.tile(s, len(s))]
    check_peer(name, *args, rtol=2e-6, atol=1e-6)
    x = values("float32", (9,), *domain(name))
    check_peer(name, *([x] if name != "atan2" else [x, x[::-1].copy()]), rtol=2e-6)
    if name not in ("cbrt",):
        z = values("complex64", (9,), -1, 1)
        check_peer(name, *([z] if name != "atan2" else [z, z[::-1] + 2]), rtol=1e-4, atol=1e-6)
