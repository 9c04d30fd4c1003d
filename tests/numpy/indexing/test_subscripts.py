"""`x[index]` of concrete arrays by machine code: NumPy's answers for every basic index, and what is
left to Python."""

import gc
import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.call import functions as callpath
from calque.machine.call import subscript
from calque.numpy.indexing import gathering as indexing
from calque.numpy.indexing import subscripts

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "float16",
    "float32",
    "bfloat16",
    "complex64",
    "float8_e4m3fn",
]
SHAPES = [(), (7,), (1,), (0,), (5, 6), (4, 0, 3), (3, 4, 5), (2, 1, 3, 1, 2), (2,) * 8]


def random_part(rng: np.random.Generator, n: int) -> Any:
    if n and rng.random() < 0.4:
        return int(rng.integers(-n, n))
    ends = [None if rng.random() < 0.4 else int(rng.integers(-n - 3, n + 4)) for _ in range(2)]
    step = None if rng.random() < 0.4 else int(rng.choice([-n - 2, -3, -2, -1, 1, 2, 3, n + 2]))
    return slice(*ends, step)


def random_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    axes = list(shape[: rng.integers(0, len(shape) + 1)])
    parts = [random_part(rng, n) for n in axes]
    if rng.random() < 0.5:
        cut = int(rng.integers(0, len(parts) + 1))
        back = len(parts) - cut
        parts = (
            parts[:cut]
            + [Ellipsis]
            + [random_part(rng, n) for n in shape[len(shape) - back :]] * bool(back)
        )
    for _ in range(rng.integers(0, 3)):
        parts.insert(int(rng.integers(0, len(parts) + 1)), None)
    return parts[0] if len(parts) == 1 and rng.random() < 0.7 else tuple(parts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_basic_indexes(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape) + len(dtype))
    x = jnp.asarray(rng.integers(0, 2 if dtype == "bool" else 9, shape)).astype(dtype)
    y = np.asarray(x)
    for _ in range(25):
        index = random_index(rng, shape)
        for _ in range(2):  # told, then known
            out = x[index]
            assert out.shape == y[index].shape and out.dtype == y.dtype
            np.testing.assert_array_equal(np.asarray(out), y[index])


def test_nothing_is_compiled_and_no_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.arange(60.0).reshape(3, 20)
    parts = [x[0], x[1, 2], x[:, 3], x[:, 2:7], x[None, :, ::2], x[1, ::-1]]
    assert [p.shape for p in parts] == [(20,), (), (3,), (3, 5), (1, 3, 10), (20,)]
    called = []
    monkeypatch.setattr(subscript, "_kept", [])
    subscript.set_fallback(lambda x, index: called.append(index))
    try:
        others = [
            x[-1],
            x[2, -1],
            x[..., 9],
            x[:, 11:16],
            x[None, :, 1::2],
            x[2, ::-1],
            x[7],
            x[-9, 100],
        ]
        assert not called
        assert x[True] is None and called == [True]
    finally:
        subscript.set_fallback(subscripts.subscripted)
    for part, index in zip(
        others, [-1, (2, -1), (..., 9), np.s_[:, 11:16], np.s_[None, :, 1::2], np.s_[2, ::-1]]
    ):
        np.testing.assert_array_equal(np.asarray(part), np.asarray(x)[index])
    assert others[6].tolist() == x[2].tolist() and float(others[7]) == 19.0  # reads are clamped


def test_no_two_shapes_drive_each_other_out() -> None:
    x = jnp.arange(200.0)
    lengths = range(1, 120)  # so many pairs that some share a place in the table
    missed = 0

    def told(x: Any, index: Any) -> Any:
        nonlocal missed
        missed += 1
        return subscripts.subscripted(x, index)

    subscript.set_fallback(told)
    try:
        for a, b in itertools.combinations(lengths, 2):
            for _ in range(2):  # the first may have lost its place to the second
                x[:a], x[:b]
            before = missed
            assert x[:a].shape == (a,) and x[:b].shape == (b,)
            assert missed == before
        assert missed
    finally:
        subscript.set_fallback(subscripts.subscripted)


def test_what_is_refused_or_left_to_python() -> None:
    x = jnp.arange(12.0).reshape(3, 4)
    for _ in range(2):
        with pytest.raises(IndexError, match="Too many indices"):
            x[0, 0, 0]
        with pytest.raises(IndexError, match="ellipsis"):
            x[..., ...]
        with pytest.raises(ValueError, match="step"):
            x[::0]
        with pytest.raises(IndexError, match="size 0"):
            x[:, 4:][0, 0]
        with pytest.raises(TypeError):
            x["a"]
        with pytest.raises(TypeError):
            x[1.5]
        assert x[10**30 :].shape == (0, 4) and x[-(10**30) : 10**30].shape == (3, 4)
        assert x[jnp.int32(1)].tolist() == x[np.int64(1)].tolist() == [4, 5, 6, 7]
        assert x[np.int8(1) : jnp.int32(3), 0].tolist() == [4, 8]
        assert x[jnp.array([True, False, True])].shape == (2, 4)


def test_indexes_while_a_program_is_recorded() -> None:
    x = jnp.arange(5.0)
    assert float(x[2]) == 2.0
    assert "slice" in str(calque.make_jaxpr(lambda y: y + x[1:3])(1.0))
    assert calque.jit(lambda y: y + x[1:3])(1.0).tolist() == [2, 3]
    with calque.disable_jit():
        assert x[1:3].tolist() == [1, 2]


def test_weak_types_and_keys() -> None:
    x = jnp.asarray(2.0) * 1  # of an array with a weak type
    weak = calque.jit(lambda: jnp.broadcast_to(3.0, (4,)))()
    for _ in range(2):
        assert x[None].weak_type == x.weak_type and weak[1:].weak_type == weak.weak_type
    keys = calque.random.split(calque.random.key(0), 3)
    for _ in range(2):
        assert keys[1].shape == () and keys[1].dtype == keys.dtype and keys[1:].shape == (2,)


def test_large_parts_share_memory_and_keep_it() -> None:
    x = jnp.arange(100_000.0)
    for _ in range(2):
        part = x[10:90_000]
        assert part.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() + 40
    small = x[10:20]
    assert (
        not x.unsafe_buffer_pointer()
        <= small.unsafe_buffer_pointer()
        < x.unsafe_buffer_pointer() + 400_000
    )
    del x
    gc.collect()
    again = jnp.zeros(100_000)
    np.testing.assert_array_equal(np.asarray(part), np.arange(10.0, 90_000.0, dtype=np.float32))
    assert not np.asarray(again).any()


def test_a_donated_array_leaves_its_parts_alone() -> None:
    x = jnp.arange(50_000.0)
    for _ in range(2):
        part = x[5:]
    f = calque.jit(lambda a: a * 0, donate_argnums=0)
    f(x)
    assert float(part[0]) == 5 and float(part[-1]) == 49_999
    with pytest.raises(RuntimeError, match="deleted"):
        x[3]


def test_deep_and_wide() -> None:
    x = jnp.ones((1,) * 9)
    assert x[0].shape == (1,) * 8 and x[(None,) * 3].shape == (1,) * 12
    y = jnp.ones((1,) * 7)
    for _ in range(2):
        assert y[None, None].shape == (1,) * 9
    assert sum(float(row[0]) for row in jnp.arange(20.0).reshape(10, 2)) == 90


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code Python indexes")
def test_new_shapes_need_no_python_to_index(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    getitem = indexing.getitem
    monkeypatch.setattr(
        indexing, "getitem", lambda x, index: asked.append(index) or getitem(x, index)
    )
    for n in range(3, 40):
        for a in (np.arange(n, dtype="f4"), np.arange(3 * n).reshape(n, 3)):
            x = jnp.asarray(a)
            for index in (
                0,
                -1,
                slice(1, None),
                slice(None, None, -2),
                (slice(0, 2), None),
                (Ellipsis, slice(1, 2)),
            ):
                np.testing.assert_array_equal(x[index], a[index])
                np.testing.assert_array_equal(x[index], a[index])
    assert not asked
    with pytest.raises(IndexError):
        jnp.ones(51)[0, 0]
