"""Steps as a program of the driver: each kind of step, run; pieces, words and host calls."""

import ctypes
import re
from typing import Any

import numpy as np
import pytest

import calque
from calque.core.avals import ShapedArray
from calque.native.emit.making import compile_kernels
from calque.native.loops.tree import For, Store
from calque.native.lower.sizes import Sizes
from calque.native.plan import program
from calque.native.plan.program import Assembler
from calque.native.plan.steps import (
    Call,
    Compute,
    Copy,
    Count,
    Host,
    Made,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    WriteSize,
    walk,
)
from calque.native.scalars.expr import Buffer, cast, const, ex, load, var
from calque.native.schedule.nests import Schedule

I32, I64 = np.dtype("int32"), np.dtype("int64")
N = 8


def buffer(name: str, *shape: int, dtype: str = "i64") -> Buffer:
    return Buffer(name, shape, dtype)


X, Y, T, U = (buffer(n, N) for n in "xytu")
PICK, ROUNDS = buffer("pick", dtype="i32"), buffer("rounds")
I = var("i", N)


def plus(dst: Buffer, src: Buffer, more: Any = 1) -> Call:
    """dst = src + more, as a kernel."""
    value = ex("add", load(src, (I,)), const(more) if isinstance(more, int) else more)
    return Call(Schedule((For(I, (Store(dst, (I,), value),)),), 100.0))


def run(
    steps: list[Step], x: np.ndarray, *more: tuple[Buffer, np.ndarray], sizes: Sizes | None = None
) -> np.ndarray:
    """The program of these steps from x (and more) to y."""
    calls = [s for s in program_calls(steps)]
    kernels = dict(zip((c.schedule for c in calls), compile_kernels([c.body for c in calls])))
    inputs, arrays = [X, *[b for b, _ in more]], [x, *[a for _, a in more]]
    nbytes = {b: 8 * N for b in (X, Y, T, U)} | {b: a.nbytes for b, a in more}
    assembler = Assembler(sizes or Sizes(), {}, nbytes, kernels)
    made = assembler.program(inputs, [(Y, ShapedArray((N,), I64))], [], {T, U}, steps, False)
    out = np.full(N, -1, np.int64)
    made.run([a.ctypes.data for a in arrays], [out.ctypes.data])
    return out


def program_calls(steps: Any) -> list[Call]:
    return [s for s in walk(steps) if isinstance(s, Call)]


ZEROS = np.zeros(N, np.int64)


def test_calls_and_copies() -> None:
    steps: list[Step] = [plus(T, X), Copy(U, T), plus(Y, U, 10)]
    assert run(steps, ZEROS).tolist() == [11] * N


def test_rounds_that_are_counted_know_their_number() -> None:
    """The carry has two buffers that change places after each round."""
    add = plus(U, T, cast(var("k"), "i64"))
    loop = Repeat([add], [(T, U)], const(5), "k")
    steps: list[Step] = [plus(T, X, 0), loop, Swap(T, U), plus(Y, U, 0)]
    assert run(steps, ZEROS).tolist() == [0 + 1 + 2 + 3 + 4] * N


@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_rounds_that_are_found_in_memory(rounds: int) -> None:
    loop = Repeat([plus(T, T)], [], var("n"), "k")
    steps: list[Step] = [plus(T, X, 0), Count("n", ROUNDS), loop, plus(Y, T, 0)]
    assert run(steps, ZEROS, (ROUNDS, np.array(rounds))).tolist() == [rounds] * N


def test_while_a_flag_is_set() -> None:
    flag = buffer("flag", dtype="i1")
    test = Call(Schedule((Store(flag, (), ex("lt", load(T, (const(0),)), const(7))),), 1.0))
    loop = Repeat([plus(T, T, 3)], [], test=[test], flag=flag)
    got = run([plus(T, X, 0), loop, plus(Y, T, 0)], ZEROS, (flag, np.zeros((), bool)))
    assert got.tolist() == [9] * N


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 77])
def test_switches_by_memory_and_by_sizes(index: int) -> None:
    cases = [[plus(Y, X, k)] for k in (10, 20, 30)]
    want = (10, 20, 30)[min(max(index, 0), 2)]
    got = run([Switch(PICK, cases)], ZEROS, (PICK, np.array(index, np.int32)))
    assert got.tolist() == [want] * N
    if index >= 0:
        assert run([Switch(const(index), cases)], ZEROS).tolist() == [want] * N


def test_sizes_as_values() -> None:
    cell = buffer("cell", dtype="i32")
    sizes = Sizes()
    steps: list[Step] = [
        WriteSize(ex("add", sizes.dim(100), const(3)), cell),
        plus(Y, X, cast(load(cell, ()), "i64")),
    ]
    got = run(steps, ZEROS, (cell, np.zeros((), np.int32)), sizes=sizes)
    assert got.tolist() == [103] * N


def test_host_calls_and_their_exceptions() -> None:
    avals = [ShapedArray((N,), I64)]
    negate = Host("neg", {}, [X], [T], avals, avals)
    assert run([negate, plus(Y, T, 0)], np.arange(N)).tolist() == (-np.arange(N)).tolist()
    broken = Host("neg", {"no": 1}, [X], [T], avals, avals)
    with pytest.raises(TypeError, match="no"):
        run([broken, plus(Y, T, 0)], ZEROS)


def test_arguments_are_read_only_and_results_may_be_unwanted() -> None:
    s = Host("top_k", {"k": 2, "axis": 0}, [X], [T], [ShapedArray((N,), I64)],
    [None, ShapedArray((2,), I32)])  # fmt: skip
    f = program.host_function(s, s.params, s.arg_avals, s.out_avals)
    x, places = np.array([3, 9, 1, 9, 0, 0, 0, 0]), np.zeros(2, np.int32)
    f(x.ctypes.data, places.ctypes.data)
    assert places.tolist() == [1, 3] and f.__name__ == "top_k"
    assert (
        program.array_at(x.ctypes.data, ShapedArray((2, 4), I64)).tolist()
        == x.reshape(2, 4).tolist()
    )
    assert program.array_at(x.ctypes.data, ShapedArray((0, 4), I64)).shape == (0, 4)


ROUTINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def test_routines_take_words_of_every_kind() -> None:
    """Buffers, numbers, sizes, and tables, given or made."""
    seen: list[Any] = []

    def routine(args: int, begin: int, end: int) -> None:
        words = (ctypes.c_int64 * 5).from_address(args)
        tables = [(ctypes.c_int64 * 3).from_address(words[k])[:] for k in (3, 4)]
        seen.append((begin, end, words[1], words[2], *tables))
        ctypes.memmove(words[0], (ctypes.c_int64 * N)(*range(N)), 8 * N)

    callback = ROUTINE(routine)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    sizes = Sizes()
    words = [Y, 5, ex("mul", sizes.dim(100), const(2)), np.array([1, 2, 3]),
    Made(lambda n: np.arange(n, n + 3), (40,))]  # fmt: skip
    s = Routine("mine", address, words, (X,), (Y,), turns=1, grain=0, asks=True, owner=callback)
    assert run([s], ZEROS, sizes=sizes).tolist() == list(range(N))
    assert seen == [(0, 1, 5, 200, [1, 2, 3], [40, 41, 42])]


def test_steps_that_are_not_scheduled_are_refused() -> None:
    with pytest.raises(AssertionError, match="not scheduled"):
        run([Compute(())], ZEROS)


def test_a_kernel_that_takes_long_runs_in_pieces() -> None:
    """Between them signals are looked at; the pieces cover the whole range."""
    shape = calque.ShapeDtypeStruct((6000, 6000), "float32")
    text = calque.jit(lambda x: x @ x).lower(shape).compile().as_text("driver")
    steps = [int(n) for n in re.findall(r"loop r\d+ = 0:\d+:(\d+)", text)]
    assert len(steps) == 1 and steps[0] > 0
    small = calque.ShapeDtypeStruct((300, 300), "float32")
    assert "loop" not in calque.jit(lambda x: x @ x).lower(small).compile().as_text("driver")


def test_pieces_are_whole_multiples_of_work_for_all_threads() -> None:
    sizes = Sizes()
    assembler = Assembler(sizes, {}, {}, {})
    for turns, grain in ((1_000_000, 1), (1000, 7), (10, 1)):
        extent = sizes.dim(turns)
        ns = 10.0 * program.PIECE_NS
        piece = assembler.piece(Schedule((), ns, (), extent, grain))
        some = program.get_num_threads() * grain
        assert piece is None or (piece % some == 0 and piece < turns)
        assert turns < 1000 or piece is not None
    extent = sizes.dim(1000)
    assert assembler.piece(Schedule((), program.PIECE_NS, (), extent, 1)) is None
    assert assembler.piece(Schedule((), 10.0 * program.PIECE_NS)) is None
