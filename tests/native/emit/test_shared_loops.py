"""Loops of products as functions that kernels share: the same text whatever the names around it,
the same bits as loops in line."""

from collections.abc import Sequence

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.emit.shared_loops import LoopCall, call_of, is_worth_it
from tests.native.hasty import hasty, in_haste  # noqa: F401

TEXT = """ br label %b7
b7:
 %i7 = phi i64 [0, %g6], [%n7, %b7]
 %c7_0 = phi <8 x float> [%t3, %g6], [%t12, %b7]
 %t9 = mul i64 %i7, %t4
 %t10 = getelementptr float, ptr %t5, i64 %t9
 %t11 = load <8 x float>, ptr %t10, align 4
 %t12 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t11, <8 x float> %t2, <8 x float> %c7_0)
 %n7 = add nuw nsw i64 %i7, 1
 %l7 = icmp slt i64 %n7, %t8
 br i1 %l7, label %b7, label %x7
x7:"""
LOOP = TEXT.splitlines()
FMA = "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)"
OTHER = "declare i64 @llvm.smax.i64(i64, i64)"


def called(lines: Sequence[str], before: str = "g6", last: str = "%t12") -> LoopCall | None:
    return call_of(lines, before, [("<8 x float>", last)] * 2, {FMA, OTHER})


def test_a_call_gives_what_the_loop_takes() -> None:
    made = called(LOOP)
    assert made is not None
    kinds = "<8 x float>, i64, ptr, <8 x float>, i64, ptr"
    symbol = made.loop.symbol
    assert made.declaration == f"declare void @{symbol}({kinds})"
    assert made.line("%a0") == (
        f" call void @{symbol}(<8 x float> %t3, i64 %t4, ptr %t5, <8 x float> %t2, i64 %t8,"
        " ptr %a0)"
    )
    assert made.loop.declared == {FMA}
    assert made.loop.text.startswith(f"define void @{symbol}(<8 x float> %v1,")
    assert "phi <8 x float> [%v1, %entry]" in made.loop.text
    assert made.loop.text.count("store <8 x float>") == 2 and "align 32" in made.loop.text


def test_loops_that_differ_in_names_alone_are_one() -> None:
    first = called(LOOP)
    text = TEXT
    for old, new in (("7", "93"), ("g6", "x1"), ("%t12", "%t88"), ("%t4", "%t5x"), ("%t9", "%q")):
        text = text.replace(old, new)
    second = called(text.splitlines(), "x1", "%t88")
    assert first is not None and second is not None and first.loop == second.loop
    numbers = TEXT.replace("mul i64 %i7, %t4", "mul i64 %i7, 32").replace("%n7, %t8", "%n7, 64")
    fixed = called(numbers.splitlines())
    assert fixed is not None and fixed.loop == first.loop
    assert fixed.arguments[1] == "i64 32" and fixed.arguments[-1] == "i64 64"
    third = called([line.replace("i64 %i7, 1", "i64 %i7, 2") for line in LOOP])
    assert third is not None and third.loop.symbol != first.loop.symbol


def test_what_is_more_than_a_sum_stays_in_line() -> None:
    for line in (" store i64 %n7, ptr %t5", " call void @calque_poll()"):
        assert called([*LOOP[:-2], line, *LOOP[-2:]]) is None
    assert called([*LOOP[:-2], " %t13 = strange %t14", *LOOP[-2:]]) is None
    assert is_worth_it([("<8 x float>", "0")] * 4)
    assert not is_worth_it([("<8 x float>", "0")] * 3)
    assert not is_worth_it([("float", "0")] * 4)
    assert not is_worth_it([*[("<8 x float>", "0")] * 4, ("<8 x i32>", "0")])


X = np.random.default_rng(0).standard_normal((61, 80))
PROGRAMS = {
    "product": lambda x: x @ x.T,
    "epilogue": lambda x: jnp.maximum(x @ x.T + x[:, 0], 0),
    "batch": lambda x: x[:60].reshape(3, 20, 80) @ x[:60].reshape(3, 80, 20),
    "long": lambda x: jnp.tile(x, 9) @ jnp.tile(x, 9).T,
    "convolution": lambda x: lax.conv_general_dilated(
        x[:60].reshape(2, 12, 10, 20),
        x[:54].reshape(3, 3, 20, 24),
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    ),
    "gradient": calque.grad(lambda x: jnp.tanh(x @ x.T).sum()),
}


@pytest.mark.usefixtures("in_haste")
@pytest.mark.parametrize("dtype", ["f4", "f8", "bfloat16", "i4"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_shared_loops_give_the_same_bits(name: str, dtype: str) -> None:
    if name == "gradient" and dtype == "i4":
        pytest.skip("integers have no gradients")
    with calque.enable_x64(True):
        x = jnp.asarray(X * 9).astype(dtype)
        first = hasty(PROGRAMS[name], x)
        better = first.improved()
        shared = any("call void @loop_" in k.text("llvm") for k in first.kernels)
        assert first.hasty and not better.hasty and (shared or dtype != "f4")
        assert not any(k.code.quick for k in better.kernels)
        for a, b in zip(first.call([x]), better.call([x]), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
