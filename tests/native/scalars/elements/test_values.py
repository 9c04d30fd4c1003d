"""Operations of an expression and a number."""

from __future__ import annotations

import pytest

from calque.native.scalars.elements.values import op2
from calque.native.scalars.expr import const, ref


@pytest.mark.parametrize("dtype", ["i8", "u32", "f16", "f64"])
def test_numbers_take_the_dtype_of_the_expression(dtype: str) -> None:
    x = ref("x", dtype)
    assert op2("mul", x, 3).args == (x, const(3, dtype))
    y = ref("y", dtype)
    assert op2("sub", x, y).args == (x, y) and op2("lt", x, 2).dtype == "i1"


def test_what_does_not_fit() -> None:
    """Numbers wrap as constants do; expressions of another dtype are refused."""
    assert op2("xor", ref("x", "u8"), -1).args[1] is const(255, "u8")
    assert op2("add", ref("x", "i32"), 0) is ref("x", "i32")
    with pytest.raises(TypeError, match="add does not take"):
        op2("add", ref("x", "i8"), ref("y", "u8"))
    with pytest.raises(TypeError, match="shl does not take"):
        op2("shl", ref("x", "f32"), 1)
