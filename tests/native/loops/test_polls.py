"""Loops that may run for long ask whether to stop; others do not."""

import ctypes

import numpy as np
import pytest

from calque.machine.code import llvm
from calque.native.emit import emitter
from calque.native.emit.modules import processor
from calque.native.loops import asking, polls
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import For, If, LoopValue, Recurrence, Store
from calque.native.scalars.expr import Buffer, const, ex, load, param, ref, var
from tests.native.run_kernel import words

n, Y = var("n"), Buffer("y", (1,), "i64")
S = ref("s", "i64")


def counting(limit=None, inner=()):  # type: ignore[no-untyped-def]
    """s = 0, 1, 2, ... while it is below the parameter, or so many times."""
    state = LoopValue("s", const(0), ex("add", S, const(1)))
    if limit is None:
        return Recurrence((state,), inner, cond=ex("lt", S, param("p", "i64")))
    return Recurrence((state,), inner, var=var("k", limit))


@pytest.mark.parametrize(
    "loop, long",
    [
        (counting(), True),
        (counting(n), True),
        (counting(const(polls.FEW + 1)), True),
        (counting(const(polls.FEW)), False),
    ],
)
def test_which_loops_ask(loop: Recurrence, long: bool) -> None:
    assert polls.may_take_long(loop) is long
    assert polls.polls((loop, Store(Y, (const(0),), S))) is long
    inside = For(var("i", n), (If(ex("lt", var("i", n), const(3)), (loop,)),))
    assert polls.polls((inside,)) is long
    assert not polls.polls((For(var("i", n), (Store(Y, (const(0),), load(Y, (const(0),))),)),))


ASKED = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def asked(body, values, stop_at=None):  # type: ignore[no-untyped-def]
    """How often a kernel asks, by whom it asks, when the answer is to stop after so many times."""
    seen = []

    def answer(run):  # type: ignore[no-untyped-def]
        seen.append(run)
        return int(len(seen) == stop_at)

    order = canonical(body)
    options = emitter.CodeOptions(**processor())
    f = emitter.write_kernel("k", order.buffers, order.sizes, order.params, body, options)
    text = "\n".join([*sorted(f.declared), f.text])
    callback = ASKED(answer)
    imports = {asking.ASK: ctypes.cast(callback, ctypes.c_void_p).value}
    address = llvm.link_module(text, ["k"], imports, cache=False)["k"]
    args = [77, *words(order, values)]
    array = (ctypes.c_int64 * len(args))(*args)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    kernel(ctypes.addressof(array) + 8, 0, 1)
    return seen


def test_it_asks_every_so_many_rounds_whom_the_word_before_the_arguments_names() -> None:
    out = np.zeros(1, "i8")
    for loop, values in ((counting(), {param("p", "i64"): 5 * polls.SHORT + 9}),
    (counting(n), {"n": 5 * polls.SHORT + 9})):  # fmt: skip
        body = (loop, Store(Y, (const(0),), S))
        assert asked(body, {Y: out, **values}) == [77] * 5
        assert out[0] == 5 * polls.SHORT + 9


def test_rounds_with_loops_inside_ask_more_often() -> None:
    z = Buffer("z", (4,), "i64")
    inner = For(var("q", 4), (Store(z, (var("q", 4),), S),))
    body = (counting(n, (inner,)), Store(Y, (const(0),), S))
    out, work = np.zeros(1, "i8"), np.zeros(4, "i8")
    assert len(asked(body, {Y: out, z: work, "n": 3 * polls.LONG})) == 3


def test_a_kernel_that_is_told_to_stop_returns_at_once() -> None:
    """What stands behind the loop is not done."""
    body = (counting(), Store(Y, (const(0),), S))
    out = np.full(1, -5, "i8")
    assert len(asked(body, {Y: out, param("p", "i64"): 1 << 40}, stop_at=3)) == 3
    assert out[0] == -5
