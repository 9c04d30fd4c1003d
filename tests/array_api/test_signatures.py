"""Every function, method, attribute and constant of the standard is there and is called as the
standard says."""

import inspect
import math

import numpy as np
import pytest

import calque.numpy as jnp
from tests.array_api.standard import ATTRIBUTES, METHODS, SIGNATURES

# Defaults in which JAX differs on purpose: arrays are immutable, so that a copy is of no use.
OTHER_DEFAULTS = {("astype", "copy"): False}
# JAX's ways to say the same.
EQUAL_DEFAULTS = {"norm": (None,), "correction": (0, None), "step": (None,), "keepdims": (None,)}


def signature_of(text):
    name, _, rest = text.partition("(")
    scope = {}
    exec(f"def f({rest}: ...", scope)
    return name, inspect.signature(scope["f"])


def function(name):
    found = jnp
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("text", SIGNATURES)
def test_functions_take_what_the_standard_says(text):
    name, want = signature_of(text)
    own = inspect.signature(function(name))
    check(name, want, own)


def check(name, want, own):
    parameters = list(own.parameters.values())
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:  # of a ufunc
        parameters = parameters[:1] * len(want.parameters)
    for i, p in enumerate(want.parameters.values()):
        if p.kind is p.VAR_POSITIONAL:
            assert parameters[i].kind is p.VAR_POSITIONAL
            continue
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            mine = parameters[i]
            assert mine.kind in (
                p.POSITIONAL_ONLY,
                p.POSITIONAL_OR_KEYWORD,
                p.VAR_POSITIONAL,
            ), f"{name}: {p.name} cannot be positional"
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD):
            mine = own.parameters[p.name]
            assert mine.kind in (
                p.KEYWORD_ONLY,
                p.POSITIONAL_OR_KEYWORD,
            ), f"{name}: {p.name} cannot be a keyword"
        if p.default is p.empty:
            continue
        allowed = (*EQUAL_DEFAULTS.get(p.name, ()), OTHER_DEFAULTS.get((name, p.name), p.default))
        assert mine.default in allowed, (
            f"{name}: {p.name}={mine.default!r}, the standard has {p.default!r}"
        )
    surplus = set(own.parameters) - set(want.parameters)
    needed = [
        own.parameters[n]
        for n in surplus
        if own.parameters[n].kind is inspect.Parameter.KEYWORD_ONLY
    ]
    assert all(p.default is not p.empty for p in needed), (
        f"{name} needs keywords that the standard does not know"
    )


@pytest.mark.parametrize("text", METHODS.replace(")", ")\n").split("\n"))
def test_methods(text):
    if not text.strip():
        pytest.skip("the last line")
    name, want = signature_of(text.strip())
    method = getattr(jnp.arange(3.0), name)
    try:
        own = inspect.signature(method)
    except (TypeError, ValueError):  # of machine code: known to be callable
        assert callable(method)
        return
    check(name, want, own)


def test_attributes():
    x = jnp.ones((2, 3))
    assert all(hasattr(x, name) for name in ATTRIBUTES)
    assert (x.ndim, x.shape, x.size, x.dtype) == (2, (2, 3), 6, jnp.float64)
    assert isinstance(x.shape, tuple) and isinstance(x.size, int) and isinstance(x.ndim, int)
    assert x.T.shape == x.mT.shape == (3, 2) and jnp.ones((4, 2, 3)).mT.shape == (4, 3, 2)
    with pytest.raises(ValueError):
        jnp.ones(3).mT
    assert jnp.zeros(()).size == 1 and jnp.zeros((3, 0)).size == 0


def test_constants():
    assert (jnp.e, jnp.pi, jnp.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(jnp.nan) and jnp.newaxis is None


def test_the_namespace():
    x = jnp.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is jnp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.01")
    assert jnp.__array_api_version__ == "2024.12"


def test_the_info_object():
    info = jnp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() is None or info.default_device() in info.devices()
    kinds = {
        "real floating": "float64",
        "complex floating": "complex128",
        "integral": "int64",
        "indexing": "int64",
    }
    assert info.default_dtypes() == info.default_dtypes(device=jnp.ones(1).device) == kinds
    assert jnp.ones(1).device in info.devices()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("bool", "bool"),
        ("signed integer", "int8 int16 int32 int64"),
        ("unsigned integer", "uint8 uint16 uint32 uint64"),
        ("integral", "int8 int16 int32 int64 uint8 uint16 uint32 uint64"),
        ("real floating", "float32 float64"),
        ("complex floating", "complex64 complex128"),
        (
            "numeric",
            (
                "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64"
                " complex128"
            ),
        ),
        (("bool", "complex floating"), "bool complex64 complex128"),
    ],
)
def test_dtypes_of_a_kind(kind, names):
    info = jnp.__array_namespace_info__()
    found = info.dtypes(kind=kind)
    assert set(found) == set(names.split()) and all(found[n] == getattr(jnp, n) for n in found)
    for name, dtype in info.dtypes().items():
        assert jnp.isdtype(dtype, kind) == (name in found)
    with pytest.raises((ValueError, TypeError)):
        info.dtypes(kind="no such kind")


def test_finfo_and_iinfo():
    for name in ("float32", "float64", "complex64", "complex128"):
        f, want = jnp.finfo(getattr(jnp, name)), np.finfo(name)
        for key in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(f, key) == getattr(want, key) and isinstance(
                float(getattr(f, key)), float
            )
        assert f.dtype == want.dtype and jnp.finfo(jnp.ones(1, name)).dtype == want.dtype
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        i, want = jnp.iinfo(getattr(jnp, name)), np.iinfo(name)
        assert (i.bits, i.max, i.min, i.dtype) == (want.bits, want.max, want.min, want.dtype)
        assert jnp.iinfo(jnp.ones(1, name)).dtype == want.dtype


def test_unknown_devices_are_refused():
    info = jnp.__array_namespace_info__()
    for f in (info.dtypes, info.default_dtypes):
        assert f(device=info.devices()[0]) == f()
        with pytest.raises(ValueError, match="nowhere"):
            f(device="nowhere")
