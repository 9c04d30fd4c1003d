"""Threefry as expressions: its published vectors, and the keys and bits of the library."""

import numpy as np
import pytest

import calque as cq
from calque.core.config import config
from calque.native.lower import random
from calque.native.lower.rules import Lower
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import const, ref, var
from tests.native.evaluate import compiled
from tests.native.lower.shared import Elements
from tests.native.programs import compiled as program

VECTORS = [  # of Random123: key, counter, what comes out
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def test_the_published_vectors() -> None:
    _, f = compiled(random.block, ["u32"] * 4, ["u32"] * 2)
    columns = np.array([[*k, *c] for k, c, _ in VECTORS], np.uint32).T
    first, second = f(*[np.ascontiguousarray(c) for c in columns])
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [w for _, _, w in VECTORS]


def test_a_counter_in_two_words() -> None:
    low = Lower(Sizes())
    small = (var("i", 3), var("j", 5))
    high, at = random.counter(low, (3, 5), small)
    e = Elements(lambda x: x, np.zeros(1, "f4"))
    assert high is const(0, "u32")
    assert [e.value(at, {"i": i, "j": j}) for i in range(3) for j in range(5)] == list(range(15))
    low = Lower(Sizes())
    rows = (var("i", 1 << 20), var("j", 1 << 20))
    high, at = random.counter(low, (1 << 20, 1 << 20), rows)
    e.low = low
    env = {"i": (1 << 20) - 1, "j": 77}
    whole = (((1 << 20) - 1) << 20) + 77
    assert (int(e.value(high, env)), int(e.value(at, env))) == divmod(whole, 1 << 32)


KEY = cq.random.key(42)
OPERATIONS = {
    "bits": lambda k: cq.random.bits(k, (3, 2)),
    "bytes": lambda k: cq.random.bits(k, (5,), "uint8"),
    "wide": lambda k: cq.random.bits(k, (4,), "uint64"),
    "split": lambda k: cq.random.key_data(cq.random.split(k, (2, 3))),
    "folded": lambda k: cq.random.key_data(cq.random.fold_in(k, 7)),
    "several": lambda k: cq.random.bits(cq.random.split(k)[1], (2,)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_kernels_give_what_the_library_gives(name: str) -> None:
    with config.override("calque_enable_x64", True):
        f = OPERATIONS[name]
        made = program(f, KEY)
        assert not made.host_calls
        with cq.disable_jit():
            want = np.asarray(f(KEY))
        np.testing.assert_array_equal(np.asarray(made.call([KEY])[0]), want)


def test_seeds_are_two_words() -> None:
    with config.override("calque_enable_x64", True):
        for seed in (0, 1, -1, 2**31, 2**40 + 5):
            f = lambda s: cq.random.key_data(cq.random.key(s))  # noqa: E731
            got = np.asarray(cq.jit(f)(np.int64(seed)))
            assert got.tolist() == [(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF]


def test_one_of_two_words() -> None:
    a, b = ref("a", "u32"), ref("b", "u32")
    assert random.pick((a, b), const(0)) is a and random.pick((a, b), const(1)) is b
    assert random.pick((a, b), var("i", 2)).op == "select"


def test_what_has_no_form_here() -> None:
    """Other generators, and counters of the older order."""
    other = cq.random.key(0, impl="rbg")
    assert program(lambda k: cq.random.bits(k, (2,)), other).host_calls
    with config.override("threefry_partitionable", False):
        assert program(lambda k: cq.random.bits(k, (2,)), KEY).host_calls
