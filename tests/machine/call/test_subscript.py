"""Basic indices by machine code, against NumPy."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

from calque.machine.call import subscript
from calque.machine.call.functions import (
    set_epoch,
)
from calque.machine.call.layout import (
    CHECKED,
)
from calque.machine.objects.array_type import (
    as_numpy,
    wrap_numpy,
)
from tests.machine.call.helpers import (
    Aval,
    fixed_epoch,
)

epoch = fixed_epoch


F8 = np.dtype("f8")


def known(shape: tuple[int, ...], dtype: Any = F8) -> tuple[Any, np.ndarray]:
    """An Array of which machine code knows the shape, and its elements."""
    elements = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    aval = Aval()
    subscript.learn_source(aval, shape, elements.itemsize)
    return wrap_numpy(aval, elements), elements


def part(x: Any, index: Any, dtype: Any = F8) -> Any:
    """The part of an Array as machine code gives it, with what it needs to know of the result."""
    shape = subscript.basic_shape(x, index)
    if shape is None:
        return None
    aval = Aval()
    subscript.learn_result(x.aval, shape, aval)
    made = subscript.basic_part(x, index)
    assert made is None or made.aval is aval
    return made


def clamped(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The same index for NumPy, with integers outside at the edge."""
    used = sum(i is not None and i is not Ellipsis for i in index)
    out, axis = [], 0
    for i in index:
        if i is Ellipsis:
            axis += len(shape) - used
        elif i is not None:
            if isinstance(i, int):
                n = shape[axis]
                i = min(max(i + n if i < 0 else i, 0), n - 1)
            axis += 1
        out.append(i)
    return tuple(out)


def random_index(rng: random.Random, rank: int) -> tuple[Any, ...]:
    def bound() -> Any:
        return rng.choice([None, *range(-6, 7)])

    def one() -> Any:
        kind = rng.random()
        if kind < 0.4:
            return rng.randrange(-6, 7)
        return slice(bound(), bound(), rng.choice([None, 1, 1, 2, -1, -2, 3, -5]))

    index = [one() for _ in range(rng.randrange(rank + 1))]
    for extra in rng.sample([None, None, Ellipsis], rng.randrange(3)):
        index.insert(rng.randrange(len(index) + 1), extra)
    return tuple(index)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
def test_random_indices(dtype: str) -> None:
    rng = random.Random(dtype)
    for shape in [(5,), (4, 3), (2, 1, 4), (3, 2, 2, 3)]:
        x, elements = known(shape, dtype)
        for _ in range(150):
            index = random_index(rng, len(shape))
            want = elements[clamped(index, shape)]
            assert subscript.basic_shape(x, index) == want.shape, index
            got = part(x, index)
            np.testing.assert_array_equal(as_numpy(got, elements.dtype, want.shape), want)


def test_indices_that_are_no_tuples() -> None:
    x, elements = known((4, 3))
    for index in (2, -1, slice(None, None, -1), None, Ellipsis, slice(1, 3), ()):
        got = part(x, index)
        np.testing.assert_array_equal(as_numpy(got, F8, elements[index].shape), elements[index])


def test_what_is_left_to_python() -> None:
    x, _ = known((4, 3))
    for index in (
        *(True, 1.0, "a", [0, 1], np.int64(1), np.array([0])),
        *((0, 0, 0), (Ellipsis, Ellipsis), (Ellipsis, 0, Ellipsis), (0, [1])),
        *(2**70, slice(2**70), slice(None, None, 0), slice(None, None, 1 << 50)),
        *(slice(1.0), slice(None, np.int64(2)), (None,) * 7),
    ):
        assert subscript.basic_shape(x, index) is None and subscript.basic_part(x, index) is None
    assert subscript.basic_shape(x, (None,) * 6) == (1,) * 6 + (4, 3)
    empty, _ = known((0, 3))
    assert subscript.basic_shape(empty, 0) is None  # no element to take
    assert subscript.basic_shape(empty, (slice(None), 1)) == (0,)
    unknown = wrap_numpy(Aval(), np.zeros(3))
    assert subscript.basic_shape(unknown, 0) is None and subscript.basic_part(unknown, 0) is None
    nine, _ = known((1,) * 9)
    assert subscript.basic_shape(nine, 0) is None
    placed, _ = known((4,))
    subscript.learn_result(placed.aval, (), Aval())
    assert subscript.basic_part(placed, 0) is not None
    placed._extra = "elsewhere"
    assert subscript.basic_part(placed, 0) is None


def test_a_result_must_have_been_learned() -> None:
    x, _ = known((6, 3))
    assert subscript.basic_shape(x, slice(2)) == (2, 3)
    assert subscript.basic_part(x, slice(2)) is None
    aval = Aval()
    subscript.learn_result(x.aval, (2, 3), aval)
    for start in (0, 3):
        assert subscript.basic_part(x, slice(start, start + 2)).aval is aval
    later = Aval()
    subscript.learn_result(x.aval, (2, 3), later)
    assert subscript.basic_part(x, slice(2)).aval is later
    assert subscript.basic_part(x, slice(3)) is None


def test_large_parts_in_one_piece_share_memory() -> None:
    x, elements = known((8, 16, 32))
    for index, shared in (
        (slice(2, 6), True),
        ((3,), True),  # 16 * 32 * 8 bytes: just enough
        ((slice(3, 4), None, slice(None)), True),
        ((3, slice(1, 16)), False),
        ((slice(None), 3), False),
        (slice(None, None, -1), False),
        ((slice(2, 4), slice(0, 8)), False),
    ):
        got = part(x, index)
        offset = got._ptr - x._ptr
        assert (0 <= offset < elements.nbytes) is shared
        np.testing.assert_array_equal(as_numpy(got, F8, elements[index].shape), elements[index])
    kept = part(x, slice(2, 6))
    del x, elements
    gc.collect()
    assert as_numpy(kept, F8, (4, 16, 32))[0, 0, 0] == 2 * 16 * 32


def test_large_copies_are_for_kernels() -> None:
    x, elements = known((2, subscript.COPIED_BYTES // 8 + 1))
    assert part(x, (slice(None), slice(0, -2, 2))) is not None
    assert part(x, slice(None, None, -1)) is None
    assert part(x, (1, slice(None, None, -1))) is None
    assert part(x, 1)._ptr == x._ptr + elements.nbytes // 2


def test_tables_forget_but_never_confuse() -> None:
    arrays = [known((k % 7 + 1, k % 5 + 1)) for k in range(1500)]
    remembered = 0
    for x, elements in arrays:
        shape = subscript.basic_shape(x, 0)
        assert shape in (None, elements.shape[1:])
        remembered += shape is not None
    assert remembered > 500 and subscript.basic_shape(arrays[-1][0], 0) == arrays[-1][1].shape[1:]


def test_wrong_things_to_learn() -> None:
    aval = Aval()
    for wrong in ((aval, (3,)), (aval, (3,), 8, 1), (aval, (3,), "x"), (aval, ("x",), 8)):
        with pytest.raises(TypeError):
            subscript.learn_source(*wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        subscript.learn_result(aval, (3,))  # type: ignore[call-arg]
    with pytest.raises(OverflowError):
        subscript.learn_source(aval, (2**70,), 8)
    subscript.learn_source(aval, [3], 8)  # type: ignore[arg-type]
    x = wrap_numpy(aval, np.zeros(3))
    assert subscript.basic_shape(x, 0) is None
    for function in (subscript.basic_shape, subscript.basic_part):
        for wrong in ((x,), (3, 0), (x, 0, 0)):
            with pytest.raises(TypeError, match="takes an Array and an index"):
                function(*wrong)


def test_what_machine_code_cannot_say_is_asked() -> None:
    x, elements = known((4, 3))
    subscript.learn_result(x.aval, (3,), Aval())
    asked: list[Any] = []

    def answer(whole: Any, index: Any) -> str:
        asked.append((whole, index))
        return "python"

    before = subscript.fallback.read()
    subscript.set_fallback(answer)
    try:
        assert as_numpy(x[1], F8, (3,)).tolist() == elements[1].tolist() and not asked
        assert x[[1]] == "python" and x[1, 1] == "python"
        for epoch_of_tracing in (0, CHECKED + 1):
            set_epoch(epoch_of_tracing)
            assert x[1] == "python"
        set_epoch(7)
        x._extra = "elsewhere"
        assert x[1] == "python"
        subscript.fallback.write(0)
        with pytest.raises(TypeError, match="before calque is imported"):
            x[1]
    finally:
        subscript.fallback.write(before)
    assert asked[:2] == [(x, [1]), (x, (1, 1))] and len(asked) == 5
