"""Inputs of random programs: described by dtype, shape and fill, made anew from their seed."""

from typing import NamedTuple

import ml_dtypes
import numpy as np

KINDS = {
    "bool": ("bool",),
    "int": ("int32", "int32", "int8", "uint8", "int16", "uint16", "uint32"),
    "signed": ("int32", "int8", "int16"),
    "unsigned": ("uint8", "uint16", "uint32"),
    "float": ("float32", "float32", "float32", "float16", "bfloat16"),
    "single": ("float32",),
    "complex": ("complex64",),
}
KINDS["real"] = (*KINDS["int"], *KINDS["float"])
KINDS["inexact"] = (*KINDS["float"], *KINDS["float"], *KINDS["complex"])
KINDS["number"] = (*KINDS["real"], *KINDS["complex"])
KINDS["any"] = (*KINDS["number"], "float32", "float32", "int32", *KINDS["bool"])
KINDS["integral"] = (*KINDS["int"], *KINDS["bool"])
TINY = ("int4", "uint4", "float8_e4m3fn", "float8_e5m2")  # which no other dtype joins
TINY_KINDS = {"any", "number", "real"}
WIDE = {"int32": "int64", "uint32": "uint64", "float32": "float64", "complex64": "complex128"}
EDGES = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-3, -7.25, 1e4)
WHOLE_EDGES = (0, 1, -1, 2, 7, 100, -128, 127)


def numpy_dtype(name: str) -> np.dtype:
    """The dtype of a name, the small floats included."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


TINY_INTEGERS = (numpy_dtype("int4"), numpy_dtype("uint4"))


class Input(NamedTuple):
    """An array by its description; equal descriptions are equal arrays."""

    dtype: str
    shape: tuple[int, ...]
    fill: str
    seed: int


def value(x: Input) -> np.ndarray:
    """The array that is described."""
    r = np.random.default_rng(x.seed)
    dtype = numpy_dtype(x.dtype)
    plain = FILLS[x.fill](r, x.shape)
    if x.dtype == "bool":
        return np.asarray(plain > 0.6)
    if dtype.kind in "iu" or dtype in TINY_INTEGERS:
        with np.errstate(all="ignore"):
            plain = np.nan_to_num(np.rint(plain), nan=3, posinf=100, neginf=-100)
            plain = np.abs(plain) if x.dtype.startswith("u") else plain
            return np.clip(plain, *limits(dtype)).astype(dtype)
    if dtype.kind == "c" and x.fill in ("plain", "edges"):
        plain = plain + 1j * FILLS["plain"](r, x.shape)
    with np.errstate(all="ignore"):
        return np.asarray(plain).astype(dtype)


def limits(dtype: np.dtype) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype)
    return max(info.min, -(2**31)), min(info.max, 2**31 - 1)


def _square(r: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Far from singular."""
    return r.uniform(-1, 1, shape) + 3 * np.eye(shape[-2], shape[-1])


def _positive_definite(r: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    a = r.uniform(-1, 1, shape)
    return a @ np.swapaxes(a, -1, -2) + (1 + shape[-1]) * np.eye(shape[-1])


def _edges(r: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    some = r.uniform(-3, 3, shape)
    return np.where(r.random(shape) < 0.4, r.choice(EDGES, shape), some)


def _sorted(r: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.sort(r.uniform(-3, 3, shape), axis=-1) if shape else r.uniform(-3, 3)


FILLS = {
    "plain": lambda r, shape: r.uniform(-3, 3, shape),
    "positive": lambda r, shape: r.uniform(0.2, 4, shape),
    "unit": lambda r, shape: r.uniform(0.02, 0.98, shape),
    "few": lambda r, shape: r.integers(0, 4, shape).astype(float),
    "indices": lambda r, shape: r.integers(0, 3, shape).astype(float),
    "wild_indices": lambda r, shape: r.integers(-9, 9, shape).astype(float),
    "whole": lambda r, shape: r.integers(0, 100, shape).astype(float),
    "edges": _edges,
    "sorted": _sorted,
    "square": _square,
    "positive_definite": _positive_definite,
    "lower": lambda r, shape: np.tril(_square(r, shape)),
    "simplex": lambda r, shape: r.dirichlet(np.ones(shape[-1]), shape[:-1] or None),
}
