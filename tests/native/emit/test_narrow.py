"""Halves and bfloat16: rounded to nearest even after each operation, with and without
instructions for it."""

import numpy as np
import pytest

from calque.native.emit.modules import processor
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    cast,
    ex,
    load,
)
from tests.native.emit.shared import (
    i,
    n,
)
from tests.native.run_kernel import (
    NP,
    array,
    bits,
    run,
    run_plain,
)


@pytest.mark.parametrize("size", [1 << 16])
def test_half_without_instructions(size):
    """Every half to float and back, and floats around every half."""
    every = np.arange(size, dtype=np.uint16).view(np.float16)
    x, y, z = array("x", "f16", n), array("y", "f32", n), array("z", "f16", n)
    back = (
        For(
            i,
            (Store(y, (i,), cast(load(x, (i,)), "f32")), Store(z, (i,), ex("neg", load(x, (i,))))),
            (),
            "vector",
            16,
        ),
    )
    out, neg = np.zeros(size, "f4"), np.zeros(size, np.float16)
    run_plain(back, {x: every, y: out, z: neg, "n": size}, half=False)
    np.testing.assert_array_equal(bits(out), bits(every.astype("f4")))
    np.testing.assert_array_equal(bits(neg), bits(-every))
    with np.errstate(all="ignore"):
        near = [np.nextafter(out, np.float32(v)) for v in (np.inf, -np.inf)]
        near = np.concatenate([*near, out * np.float32(1 + 2**-11), out * 3])
    narrow = (For(i, (Store(z, (i,), cast(load(y, (i,)), "f16")),), (), "vector", 16),)
    got = np.zeros(len(near), np.float16)
    run_plain(narrow, {y: near, z: got, "n": len(near)}, half=False)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bits(got), bits(near.astype(np.float16)))


def test_bfloat16_of_every_kind_of_float():
    """Around every bfloat16, with ties and all nans."""
    x, y = array("x", "f32", n), array("y", "bf16", n)
    body = (For(i, (Store(y, (i,), cast(load(x, (i,)), "bf16")),), (), "vector", 16),)
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        a = (high | np.uint32(low)).view("f4")
        out = np.zeros(len(a), NP["bf16"])
        run(body, {x: a, y: out, "n": len(a)})
        with np.errstate(all="ignore"):
            want = a.astype(NP["bf16"])
        np.testing.assert_array_equal(bits(out), bits(want))


def test_odd_rounding_keeps_what_a_second_rounding_needs():
    """A double halfway but for its last bit goes to the right side."""
    x, y = array("x", "f64", n), array("y", "f16", n)
    body = (For(i, (Store(y, (i,), cast(load(x, (i,)), "f16")),), (), "vector", 16),)
    every = np.arange(0, 0x7C00, 3, dtype=np.uint16)
    low, high = (v.view(np.float16).astype("f8") for v in (every, every + np.uint16(1)))
    tie = (low + np.minimum(high, 65536)) / 2
    for a in (tie, np.nextafter(tie, np.inf), np.nextafter(tie, 0), -tie):
        for half in {processor()["half"], False}:
            out = np.zeros(len(a), np.float16)
            run_plain(body, {x: a, y: out, "n": len(a)}, half=half)
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(bits(out), bits(a.astype(np.float16)))


@pytest.mark.parametrize("dtype", ["i1", "f16", "bf16", "i16", "f64"])
def test_memory_and_back(dtype):
    """Any byte but 0 is true; each value comes back as it was, in one lane and in many."""
    x, y = array("x", dtype, n), array("y", dtype, n)
    raw = np.arange(1 << 16, dtype=np.uint16).tobytes()
    a = np.frombuffer(raw, np.uint8 if dtype == "i1" else NP[dtype])
    want = a != 0 if dtype == "i1" else a
    for kind, width in (("serial", 1), ("vector", 32)):
        out = np.zeros(len(a), NP[dtype])
        body = (For(i, (Store(y, (i,), load(x, (i,))),), (), kind, width),)
        run(body, {x: a, y: out, "n": len(a)})
        np.testing.assert_array_equal(bits(out), bits(want))
