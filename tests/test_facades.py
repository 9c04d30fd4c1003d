"""The small modules: dtypes, flatten_util, test_util, debug, errors, dlpack, typing and others."""

import functools
import importlib
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import debug, dlpack, dtypes, errors, flatten_util, test_util, typing

MODULES = [
    "ad_checkpoint",
    "custom_derivatives",
    "debug",
    "dlpack",
    "dtypes",
    "errors",
    "flatten_util",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
]


@pytest.mark.parametrize("name", MODULES)
def test_modules_have_what_they_list(name: str) -> None:
    module = importlib.import_module(f"calque.{name}")
    missing = (
        [n for n in module.__all__ if not hasattr(module, n)] if hasattr(module, "__all__") else []
    )
    assert not missing


def test_dtypes() -> None:
    key = calque.random.key(0)
    for a, b, want in (
        (key.dtype, dtypes.prng_key, True),
        (key.dtype, dtypes.extended, True),
        (dtypes.prng_key, dtypes.extended, True),
        (np.float32, dtypes.extended, False),
        (dtypes.bfloat16, np.floating, True),
        ("float8_e4m3fn", np.floating, True),
        ("int4", np.signedinteger, True),
        (float, np.inexact, True),
        (key.dtype, np.floating, False),
        (np.int8, np.floating, False),
    ):
        assert dtypes.issubdtype(a, b) is want, (a, b)
    assert [dtypes.scalar_type_of(x) for x in (3, np.float32(3), True, 1j)] == [
        int,
        float,
        bool,
        complex,
    ]
    assert [dtypes.itemsize_bits(d) for d in ("int4", "float32", bool, "complex64")] == [
        4,
        32,
        8,
        64,
    ]
    assert dtypes.result_type(1, np.int8) == np.int8 and dtypes.result_type(
        1, 2.0, return_weak_type_flag=True
    ) == (
        np.float32,
        True,
    )
    assert dtypes.canonicalize_dtype("float64") == np.float32
    with pytest.raises(ValueError, match="extended"):
        dtypes.canonicalize_dtype(key.dtype)
    assert dtypes.canonicalize_dtype(key.dtype, allow_extended_dtype=True) == key.dtype


def test_ravel_pytree() -> None:
    tree = {"a": jnp.arange(3), "b": (jnp.ones((2, 2)), 1.5)}
    flat, unravel = flatten_util.ravel_pytree(tree)
    assert flat.dtype == np.float32 and flat.tolist() == [0, 1, 2, 1, 1, 1, 1, 1.5]
    back = unravel(flat * 2)
    assert (
        back["a"].dtype == np.int32
        and back["a"].tolist() == [0, 2, 4]
        and back["b"][0].shape == (2, 2)
    )
    assert calque.grad(lambda v: unravel(v)["b"][0].sum())(flat).tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
        1,
        0,
    ]
    assert calque.jit(lambda t: flatten_util.ravel_pytree(t)[0])(tree).tolist() == flat.tolist()
    with pytest.raises(ValueError, match=r"shape \(8,\)"):
        unravel(flat[1:])
    with pytest.raises(TypeError, match="dtype"):
        unravel(jnp.arange(8))
    empty, unravel = flatten_util.ravel_pytree([])
    assert empty.shape == (0,) and unravel(empty) == []
    assert flatten_util.ravel_pytree(tree)[1] == flatten_util.ravel_pytree(tree)[1]


def test_checks_of_derivatives() -> None:
    def f(x, n):
        return {"s": jnp.sin(x) * n, "p": (x**2).sum()}

    test_util.check_grads(f, (jnp.array([0.3, 1.0]), 2), order=2, rtol=2e-2, atol=2e-2)
    test_util.check_grads(lambda z: z * z, (jnp.array(1 + 2j),), order=1, atol=5e-2)

    @calque.custom_jvp
    def wrong(x: Any) -> Any:
        return x**2

    wrong.defjvp(lambda primals, tangents: (wrong(*primals), 5 * tangents[0]))
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError):
            test_util.check_grads(wrong, (1.0,), order=1, modes=[mode])
    with pytest.raises(AssertionError):
        test_util.check_vjp(wrong, functools.partial(calque.vjp, wrong), (1.0,))
    with pytest.raises(ValueError, match="modes"):
        test_util.check_grads(wrong, (1.0,), order=1, modes=["back"])


def test_printing_of_values(capsys: pytest.CaptureFixture[str]) -> None:
    debug.print("x = {x}", x=jnp.arange(2))
    calque.jit(lambda x: debug.callback(print, x + 1))(1)
    assert capsys.readouterr().out.splitlines() == ["x = [0 1]", "2"]


def test_visualising(capsys: pytest.CaptureFixture[str]) -> None:
    debug.visualize_array_sharding(jnp.ones((4, 4)))
    assert "CPU 0" in capsys.readouterr().out
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        debug.visualize_array_sharding(jnp.ones((2, 2, 2)))


def test_errors_are_types_as_in_jax() -> None:
    for name in (
        "ConcretizationTypeError",
        "TracerArrayConversionError",
        "TracerIntegerConversionError",
        "UnexpectedTracerError",
        "KeyReuseError",
    ):
        assert issubclass(getattr(errors, name), errors.JAXTypeError) and issubclass(
            getattr(errors, name), TypeError
        )
    assert issubclass(errors.NonConcreteBooleanIndexError, errors.JAXIndexError)


def test_dlpack() -> None:
    assert [dlpack.is_supported_dtype(d) for d in ("float32", "bfloat16", bool, "int4")] == [
        True,
        True,
        True,
        False,
    ]
    assert dlpack.from_dlpack(np.arange(3, dtype=np.float32)).tolist() == [0, 1, 2]


def test_types_for_annotations() -> None:
    assert isinstance(jnp.ones(2), typing.ArrayLike) and isinstance(1.0, typing.ArrayLike)
