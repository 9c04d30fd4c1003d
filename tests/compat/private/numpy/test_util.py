"""Operands as arrays of one type and one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque.compat.private.numpy import util


def forms(found: Any) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(x.dtype.name, x.shape, x.weak_type) for x in found]


@pytest.mark.parametrize(
    ("promote", "dtypes"),
    [
        (util.promote_args, ["int32", "int32"]),
        (util.promote_args_numeric, ["int32", "int32"]),
        (util.promote_args_inexact, ["float32", "float32"]),
        (util.promote_args_complex, ["complex64", "complex64"]),
    ],
)
def test_arguments_get_one_type_and_one_rank(promote: Any, dtypes: list[str]) -> None:
    found = promote("f", np.ones((2, 3), bool), np.arange(3, dtype=np.int32))
    assert forms(found) == [(dtypes[0], (2, 3), False), (dtypes[1], (1, 3), False)]


def test_numbers_stay_weak_and_without_axes() -> None:
    assert forms(util.promote_shapes("f", np.ones((2, 3), "f4"), 2.0)) == [
        ("float32", (2, 3), False),
        ("float32", (), True),
    ]
    assert forms(util.promote_dtypes_complex(1, 2)) == [("complex64", (), True)] * 2
    assert forms(util.promote_dtypes_complex(jnp.ones(1, "bfloat16"))) == [
        ("complex64", (1,), False)
    ]
    assert forms(util.promote_dtypes_numeric(True, False)) == [("int32", (), False)] * 2
    assert forms(util.promote_dtypes_inexact(1, np.int8(2))) == [("float32", (), False)] * 2
    assert forms(util.promote_dtypes(1, np.int8(2))) == [("int8", (), False)] * 2


def test_what_is_no_array_is_refused_with_its_place() -> None:
    assert forms([util.ensure_arraylike("f", 1)]) == [("int32", (), True)]
    assert len(util.ensure_arraylike("f", 1, np.ones(2))) == 2
    assert forms(util.ensure_arraylike_tuple("f", [1.5])) == [("float32", (), True)]
    util.check_arraylike_or_none("f", None, 1)
    for call in (
        lambda: util.promote_args("f", 1, [2]),
        lambda: util.ensure_arraylike("f", 1, [2]),
        lambda: util.check_arraylike_or_none("f", None, [2]),
    ):
        with pytest.raises(TypeError, match=r"f requires .* at position 1"):
            call()
