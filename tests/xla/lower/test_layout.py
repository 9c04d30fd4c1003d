"""Arrays made, moved and put together, on XLA."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.ops.joining import tile_p
from calque.xla.lower.layout import wide_starts
from calque.xla.text.types import Tensor
from tests.xla.lower.shared import blank, i32, on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@needs_jaxlib
@pytest.mark.parametrize("reps", [(2,), (1, 3), (2, 1, 3), (2, 1, 2, 2), (0, 1, 1)])
def test_tile(reps: tuple[int, ...]) -> None:
    (found,) = on_both(lambda x: jnp.tile(x, reps), x)
    np.testing.assert_array_equal(found, np.tile(x, reps))


@needs_jaxlib
@pytest.mark.parametrize("axis", [0, 1, 3])
def test_stack(axis: int) -> None:
    (found,) = on_both(lambda x: jnp.stack([x, -x, x], axis), x)
    np.testing.assert_array_equal(found, np.stack([x, -x, x], axis))


@needs_jaxlib
def test_split_and_unstack() -> None:
    def parts(x: Any) -> Any:
        return lax.split(x, (1, 0, 3), axis=2), jnp.unstack(x, axis=1)

    found = on_both(parts, x)
    want = [x[..., :1], x[..., 1:1], x[..., 1:], *np.moveaxis(x, 1, 0)]
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a, b)


@needs_jaxlib
def test_pad_with_holes_and_cuts() -> None:
    config = ((1, -1, 2), (-1, 2, 0), (0, 0, 1))
    (found,) = on_both(lambda x: lax.pad(x, np.float32(9), config), x)
    whole = np.full((1 + 2 + 2, 3 + 2, 7), 9, np.float32)
    whole[1::3, :3, ::2] = x
    np.testing.assert_array_equal(found, whole[:-1, 1:])


@needs_jaxlib
def test_reversed_slices_and_dimensions_turned_ahead_of_a_reshape() -> None:
    def moved(x: Any) -> Any:
        return lax.rev(x, (0, 2)), lax.reshape(x, (6, 4), (2, 0, 1)), x[1, ::2, 1:4:2]

    flipped, turned, taken = on_both(moved, x)
    np.testing.assert_array_equal(flipped, x[::-1, :, ::-1])
    np.testing.assert_array_equal(turned, x.transpose(2, 0, 1).reshape(6, 4))
    np.testing.assert_array_equal(taken, x[1, ::2, 1:4:2])


@needs_jaxlib
@pytest.mark.parametrize("dtype", ["int8", "complex64", "bfloat16"])
def test_iota(dtype: str) -> None:
    (found,) = on_both(lambda: lax.broadcasted_iota(dtype, (2, 5), 1))
    assert found.astype(np.complex64).tolist() == [list(range(5))] * 2


@needs_jaxlib
def test_small_integers_reach_places_that_they_cannot_name_the_end_of() -> None:
    """300 elements and starts of eight bits: clamped as such the last start would be one that
    int8 has not."""
    long = np.arange(300, dtype=np.float32)

    def taken(x: Any, i: Any) -> Any:
        return lax.dynamic_slice(x, (i,), (4,)), lax.dynamic_update_slice(x, -x[:3], (i,))

    for start in (-1, 0, 100, 127):
        part, _ = on_both(taken, long, np.int8(start))
        first = start if start >= 0 else 296
        assert part[0] == min(first, 296)


def test_starts_become_wider_where_they_must() -> None:
    b, (short, long, start) = blank(i32(127), i32(128), Tensor((), np.dtype("int8")))
    assert wide_starts(b, short, [start]) == [start]
    assert [s.dtype.name for s in wide_starts(b, long, [start])] == ["int32"]
    b, (words, start) = blank(i32(3, 2), i32())
    starts = wide_starts(b, words, [start])
    assert len(starts) == 2 and starts[0] is start and starts[1].dtype == start.dtype


def test_a_tile_is_one_broadcast() -> None:
    found = operations(text_of(lambda x: tile_p.bind(x, reps=(2, 1, 3)), x))
    assert (found["broadcast_in_dim"], found["reshape"]) == (1, 1)
    assert found.total() == 2


def test_tokens_come_together() -> None:
    def joined() -> Any:
        return lax.after_all(lax.create_token(), lax.create_token())

    assert operations(text_of(joined))["optimization_barrier"] == 1
    alone = text_of(lambda: lax.after_all(jax.lax.create_token()))
    assert "optimization_barrier" not in operations(alone)
