"""Functions exported and loaded in this process."""

import importlib.util

import numpy as np
import pytest

import calque as jax
from calque.machine.code import image

needs_images = pytest.mark.skipif(
    not image.on_this_system(), reason="libraries are for Linux on x86-64"
)
S = jax.ShapeDtypeStruct


def load(path):
    """A module of Python by its file."""
    spec = importlib.util.spec_from_file_location("loaded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(folder, f, args, name="f", **options):
    """The function of the library, as its loader gives it, and the module."""
    made = jax.export_library(f, args, folder / name, **options)
    module = load(made.loader)
    return getattr(module, name), module


def same(got, want):
    """Equal to the last bit, in shape and dtype."""
    wanted = [np.asarray(x) for x in jax.tree.leaves(want)]
    given = got if isinstance(got, tuple) else (got,)
    assert [(a.shape, a.dtype) for a in given] == [(a.shape, a.dtype) for a in wanted]
    for a, b in zip(given, wanted, strict=True):
        assert a.tobytes() == b.tobytes()


def some(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
