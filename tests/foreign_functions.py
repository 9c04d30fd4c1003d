"""Foreign functions that tests call: made of Python (`tests.machine.foreign.handlers`)."""

import ctypes

import numpy as np

import calque as jax
from tests.machine.foreign.handlers import handler

CALLS = []


def _scaled(frame):
    """y = factor * x (+ z): `z` has the shape of x, or one that broadcasts to it."""
    CALLS.append(frame.args[0].shape)
    out = frame.outs[0]
    product = np.multiply(frame.attributes["factor"], frame.args[0], dtype=out.dtype)
    out[...] = product + sum(frame.args[1:])


def _sequence(frame):
    """The elements of x in the order in which they lie in memory, numbered."""
    x, out = frame.args[0], frame.outs[0]
    flat = (ctypes.c_float * x.size).from_address(x.ctypes.data)[:]
    (ctypes.c_float * x.size).from_address(out.ctypes.data)[:] = [
        10 * v + i for i, v in enumerate(flat)
    ]


def _in_place(frame):
    if frame.args[0].ctypes.data != frame.outs[0].ctypes.data:
        return frame.error(9, "not in place")
    frame.outs[0][...] += 1
    return None


def _fails(frame):
    return frame.error(3, "x is wrong")


jax.ffi.register_ffi_target("scaled", handler(_scaled))
jax.ffi.register_ffi_target("sequence", handler(_sequence))
jax.ffi.register_ffi_target("in place", handler(_in_place))
jax.ffi.register_ffi_target("fails", handler(_fails))


def scaled(x, *others, factor=2.0, **options):
    call = jax.ffi.ffi_call("scaled", jax.ShapeDtypeStruct(x.shape, x.dtype), **options)
    return call(x, *others, factor=np.float32(factor))
