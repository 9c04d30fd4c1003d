"""What running folds carry from block to block."""

import pytest

from calque.native.loops.carries import carry_of
from calque.native.loops.tree import Acc, Fold, as_fold
from calque.native.lower.stages import running
from calque.native.scalars.expr import cast, const, const_value, ex, load, ref, var, walk
from tests.native.run_kernel import array

I = var("i", 100)


def carried(op: str, dtype: str) -> tuple[Fold, Fold]:
    f = as_fold(Acc("a", op, load(array("x", dtype, 100), (I,)), running=True))
    return f, carry_of(f)


@pytest.mark.parametrize("dtype, wide", [("f16", "f32"), ("bf16", "f32"), ("f32", "f64")])
@pytest.mark.parametrize("op, join", [("sum", "add"), ("prod", "mul")])
def test_sums_and_products_carry_the_next_wider_float(
    op: str, join: str, dtype: str, wide: str
) -> None:
    """A block makes what it made before; only what is carried on is wider."""
    f, c = carried(op, dtype)
    (left,), (right,) = f.left, f.right
    assert c.left == (ref(left.attr[0], wide),) and c.right == (right,)
    assert c.combine == (ex(join, c.left[0], cast(right, wide)),)
    assert c.init[0].dtype == wide and const_value(c.init[0]) == const_value(f.init[0])
    assert [v.dtype for v in c.values] == [wide] and c.names == f.names


@pytest.mark.parametrize(
    "op, dtype", [("max", "f32"), ("min", "bf16"), ("sum", "f64"), ("sum", "i32")]
)
def test_what_loses_nothing_carries_its_own_type(op: str, dtype: str) -> None:
    f, c = carried(op, dtype)
    assert c is f


def test_functions_of_two_parts_are_computed_in_the_wider_type() -> None:
    (f,), _ = running("r", "logsumexp", load(array("x", "f32", 100), (I,)))
    assert isinstance(f, Fold)
    c = carry_of(f)
    seen = {x for e in c.combine for x in walk(e, set())}
    assert {x.dtype for x in seen if x.op in ("exp", "log1p", "add", "max", "abs")} == {"f64"}
    assert [x for x in seen if x.dtype == "f32"] == list(f.right)
    assert c.init == (const(float("-inf"), "f64"),)


def test_a_function_of_unknown_operations_is_left_as_it_is() -> None:
    a, b = ref("l", "f32"), ref("r", "f32")
    f = Fold(("m",), (const(0.0, "f32"),), (a,), (a,), (b,), (ex("div", a, b),), running=True)
    assert carry_of(f) is f
