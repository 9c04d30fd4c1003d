"""What the rules of factors share: the text of calls, and permutations."""

from typing import Any

import numpy as np
import pytest

import calque as jax
from calque import lax
from calque.xla.lower.factor_parts import call, is_matrix
from calque.xla.text.types import Tensor
from tests.xla.lower.shared import blank, written
from tests.xla.mlir import needs_jaxlib

F32 = np.dtype("float32")


def matrices(*shape: int, dtype: Any = F32) -> Tensor:
    return Tensor(shape, np.dtype(dtype))


def test_matrices_stand_column_by_column_where_a_routine_wants_it() -> None:
    for columns, order in ((True, "[1, 2, 0]"), (False, "[2, 1, 0]")):
        b, args = blank(matrices(2, 3, 3))
        outs = [matrices(2, 3, 3), matrices(2, 3)]
        call(b, "some_ffi", args, outs, {"lower": "true"}, columns=columns)
        text = written(b)
        assert f"operand_layouts = [dense<{order}> : tensor<3xindex>]" in text
        assert "dense<[1, 0]> : tensor<2xindex>]" in text and 'num_batch_dims = "1"' in text
        assert "output_tuple_indices = [0], operand_index = 0" in text and "{lower = true}" in text


def test_batches_of_vectors() -> None:
    b, args = blank(matrices(2, 3))
    call(b, "some_ffi", args, [matrices(2, 5)], {}, aliased=None, batch=1)
    assert 'num_batch_dims = "1"' in written(b) and "aliases" not in written(b)


def test_what_routines_take() -> None:
    for tensor, takes in (
        (matrices(3, 3), True),
        (matrices(0, 3), False),
        (matrices(3, 3, dtype="float16"), False),
    ):
        _, (x,) = blank(tensor)
        assert is_matrix(x) == takes


@needs_jaxlib
@pytest.mark.parametrize("shape, full", [((2, 5, 3), True), ((2, 5, 3), False), ((3, 5), True)])
def test_q_and_r_of_both_engines(shape: tuple[int, ...], full: bool) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    q, r = jax.jit(lambda a: lax.linalg.qr(a, full_matrices=full), backend="xla_cpu")(x)
    np.testing.assert_allclose(np.asarray(q) @ np.asarray(r), x, rtol=1e-4, atol=1e-5)
    here = lax.linalg.qr(x, full_matrices=full)
    assert (q.shape, r.shape) == (here[0].shape, here[1].shape)
