"""Masks of attention: rules over places, stored masks, and masks of many heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calque.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks


def test_masks_are_rules_over_places() -> None:
    causal = masks.CausalMask((3, 4), offset=1)
    assert causal[:, :].tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal[1:2, 2:].tolist() == [[1, 0]]
    assert np.array_equal(masks.make_causal_mask((3, 4), 1), causal[:, :])
    near = masks.LocalMask((3, 4), (1, 0), offset=0)
    assert near[:, :].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]]
    assert np.array_equal(masks.make_local_attention_mask((3, 4), (1, 0)), near[:, :])
    chunks = masks.ChunkedCausalMask((4, 4), 2)
    assert np.array_equal(masks.make_chunk_attention_mask((4, 4), 2), chunks[:, :])
    assert masks.FullMask((2, 3))[:, :].all()
    both, one = near & masks.CausalMask((3, 4)), near | masks.FullMask((3, 4))
    assert np.array_equal(both[:, :], near[:, :]) and one[:, :].all()
    drawn = masks.make_random_mask((50, 50), 0.9, 3)
    assert drawn.dtype == bool and 0.02 < drawn.mean() < 0.2


def test_masks_are_compared_by_what_they_are() -> None:
    causal = masks.CausalMask((3, 3))
    assert causal == masks.CausalMask((3, 3)) != masks.CausalMask((3, 3), 1)
    assert hash(causal) == hash(masks.CausalMask((3, 3)))
    assert causal != masks.ChunkedCausalMask((3, 3), 2)
    stored = masks.NumpyMask(causal[:, :])
    assert stored == masks.NumpyMask(causal[:, :]) and hash(stored) == hash(
        masks.NumpyMask(stored.array)
    )
    assert (
        len({masks.MultiHeadMask([causal]), masks.MultiHeadMask([masks.CausalMask((3, 3))])}) == 1
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: masks.CausalMask((3, 3)) & masks.FullMask((2, 3)), "one shape"),
        (lambda: masks.MultiHeadMask([]), "masks"),
        (
            lambda: masks.MultiHeadMask([masks.FullMask((2, 2)), masks.FullMask((2, 3))]),
            "one shape",
        ),
        (lambda: masks.MultiHeadMask([np.ones((2, 2), bool)]), "ndarray"),
        (lambda: masks.NumpyMask(np.ones((2, 2))), "bools"),
        (lambda: masks.ChunkedCausalMask((3, 3), 0), "chunk_size"),
        (lambda: masks.CausalMask((6, 3), shard_count=2), "shard_count"),
    ],
)
def test_what_is_no_mask_is_refused(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_masks_are_no_truth_values_and_take_slices_alone() -> None:
    with pytest.raises(NotImplementedError, match="& and"):
        bool(masks.FullMask((2, 2)))
    with pytest.raises(NotImplementedError, match="slices"):
        masks.CausalMask((2, 2))[0]
    with pytest.raises(NotImplementedError, match="slices"):
        masks.MultiHeadMask([masks.FullMask((2, 2))])[0]
