"""Nodes: one for each meaning, alive as long as somebody holds it; constants by their bits."""

import copy
import gc
import pickle
import struct

import ml_dtypes
import numpy as np
import pytest

from calque.native.scalars import node
from calque.native.scalars.node import Buffer, const, load, make, param, ref, var
from tests.native.run_kernel import NP


def test_nodes_know_what_they_depend_on() -> None:
    n = var("n")
    a, b = Buffer("a", (n,), "f32"), Buffer("b", (4,), "f32", "lane")
    i = var("i", n)
    e = make("add", (load(a, (i,)), make("mul", (param("p", "f32"), load(b, (i,))), "f32")), "f32")
    assert e.names == {"i", "p", node.LANE} and e.bufs == {a, b}
    assert e.depth == 4 and not e.index
    at = make("add", (i, make("mul", (n, const(3)), "i64")), "i64")
    assert at.index and at.depth == 3 and at.names == {"i", "n"}
    assert not make("add", (i, param("k", "i64")), "i64").index
    assert not make("add", (i, load(Buffer("q", (n,), "i64"), (i,))), "i64").index


def test_equal_nodes_are_one() -> None:
    x = ref("x", "f32")
    for k in range(3):
        assert make("probe", (x,), "f32", k) is make("probe", (x,), "f32", k)
    assert len({make("probe", (x,), d, k) for d in ("f32", "f64") for k in (None, 0, 1)}) == 6
    assert copy.deepcopy(x) is x and copy.copy(x) is x
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(x)


def test_nodes_that_nobody_holds_are_forgotten() -> None:
    gc.collect()
    before, made = node.pool_size(), node._pool.made
    held = [make("probe_of_memory", (ref(f"x{k}", "i64"),), "i64") for k in range(500)]
    assert node.pool_size() >= before + 500 and node._pool.made >= made + 500
    kept = held[7]
    del held
    gc.collect()
    assert node.pool_size() <= before + 2
    assert make("probe_of_memory", (ref("x7", "i64"),), "i64") is kept


@pytest.mark.parametrize("dtype", [d for d in node.INT_BITS if d != "i1"])
def test_integers_wrap_as_their_type_does(dtype: str) -> None:
    info = np.iinfo(NP[dtype])
    size = info.max - info.min + 1
    for v in (0, -1, 1, info.min, info.max, info.max + 1, info.min - 1, 10**30, -(10**30)):
        want = (v - info.min) % size + info.min
        assert node.wrap(v, dtype) == want == const(v, dtype).attr
        assert const(v, dtype) is const(v + size, dtype)


def test_bits_of_every_half() -> None:
    for dtype, kind in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        with np.errstate(all="ignore"):
            values = np.arange(0, 65536, 7, dtype=np.uint16).view(kind)
            for bits, v in zip(range(0, 65536, 7), values.tolist(), strict=True):
                got = node.bits_float(bits, dtype)
                assert got == v or (got != got and v != v)
                if v == v:
                    assert node.float_bits(v, dtype) == bits


def test_floats_round_and_overflow() -> None:
    assert node.float_bits(0.1, "f32") == struct.unpack("<I", struct.pack("<f", 0.1))[0]
    assert node.float_bits(1e39, "f32") == 0x7F800000
    assert node.float_bits(-1e39, "f32") == 0xFF800000
    assert node.float_bits(np.float32(2.5), "f32") == node.float_bits(2.5, "f32")
    assert node.float_bits(3, "f64") == node.float_bits(3.0, "f64")
    assert node.float_bits(65520, "f16") == 0x7C00 and node.float_bits(65519, "f16") == 0x7BFF
    for bits in (0x7FF8000000000001, 0xFFF0000000000123):  # payloads of nans
        assert node.const_bits(bits, "f64").attr == bits


def test_constants() -> None:
    assert const(2, "i1") is const(True, "i1") is not const(1, "i8")
    assert node.is_const(const(-0.0, "f32"), 0.0) and not node.is_const(ref("x", "f32"))
    assert node.is_const(const(5)) and not node.is_const(const(5), 6)
    with pytest.raises(TypeError, match="no scalar dtype 'c64'"):
        const(1, "c64")


def test_what_stands_in_memory_only() -> None:
    assert [node.scalar_dtype(d) for d in ("uint4", "int2", "float4_e2m1fn", "f16")] == [
        "u8",
        "i8",
        "u8",
        "f16",
    ]
    sizes = {"i1": 1, "int4": 1, "f16": 2, "bf16": 2, "u32": 4, "f64": 8}
    assert {d: node.item_size(d) for d in sizes} == sizes
    with pytest.raises(TypeError, match="no scalar dtype 'float128'"):
        node.item_size("float128")


def test_buffers_refuse_what_cannot_be() -> None:
    n = var("n")
    for args, text in (
        (("x", (n,), "f32", "heap"), "no place 'heap'"),
        (("x", (4,), "f32", "arg", b"1234"), "data without place const"),
        (("x", (4,), "f32", "const"), "no place 'const'"),
        (("x", (n,), "f32", "lane"), "a lane buffer has a constant shape"),
    ):
        with pytest.raises(ValueError, match=text):
            Buffer(*args)  # type: ignore[arg-type]
    assert Buffer("x", (2, n), "f32").shape == (const(2), n)


def test_loads_and_their_guards() -> None:
    n = var("n")
    i, ok = var("i", n), ref("ok", "i1")
    b = Buffer("b", (n, 2), "u8")
    at = (i, const(1))
    assert node.index_and_guard(load(b, at)) == (at, None)
    assert node.index_and_guard(load(b, at, ok)) == (at, ok)
    assert load(b, at, const(True, "i1")) is load(b, at)
    assert load(b, at, const(False, "i1")) is not load(b, at)
    with pytest.raises(ValueError, match="b has 2 dimensions, 1 indices given"):
        load(b, (i,))
