"""Driver programs: each step, nesting, errors, threads, signals; and programs that are refused."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from calque.machine import memory, threads
from calque.machine.driver import interpreter as interp
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.driver.interpreter import Op
from calque.machine.driver.program import Program
from calque.machine.lang.unit import Unit, i64, load_i64, load_ptr, ptr, store_i8, store_i64

unit = Unit("test_interp")


@unit.function
def add_to(args: ptr, begin: i64, end: i64) -> None:
    """``args[0][k] += args[1]``."""
    data = load_ptr(args, 0)
    for k in range(begin, end):
        store_i64(data, 8 * k, load_i64(data, 8 * k) + load_i64(args, 8))


@unit.function
def less(args: ptr, begin: i64, end: i64) -> None:
    """``args[0][0] = args[1][0] < args[2]``."""
    store_i8(load_ptr(args, 0), 0, i64(load_i64(load_ptr(args, 8), 0) < load_i64(args, 16)))


@unit.function
def record(args: ptr, begin: i64, end: i64) -> None:
    """Write all of nine arguments but the first to the first."""
    for k in range(8):
        store_i64(load_ptr(args, 0), 8 * k, load_i64(args, 8 * k + 8))


def run(program: Program, *inputs: np.ndarray, out: Sequence[np.ndarray] = ()) -> None:
    program.run([array.ctypes.data for array in inputs], [array.ctypes.data for array in out])


def builder(n_in: int, *outputs: np.ndarray) -> ProgramBuilder:
    return ProgramBuilder(n_in, [(None, array.nbytes) for array in outputs])


def numbers(count: int = 8) -> np.ndarray:
    return np.zeros(count, np.int64)


def test_an_empty_program() -> None:
    run(builder(0).build())


def test_copy_call_and_constants() -> None:
    x, y = np.arange(8), numbers()
    b = builder(1, y)
    b.copy(b.output(0), b.input(0), 64)
    b.call(add_to.address, [b.output(0), 100], 0, 8, name="add_to")
    b.call(add_to.address, [b.output(0), -1])
    program = b.build()
    run(program, x, out=[y])
    assert y.tolist() == [99, 101, 102, 103, 104, 105, 106, 107]
    b = builder(0, y)
    b.copy(b.output(0), b.const(np.arange(8) * 3), 64)
    run(b.build(), out=[y])
    assert y.tolist() == (np.arange(8) * 3).tolist()


def test_arguments_of_every_kind() -> None:
    x, y = numbers(), numbers()
    b = builder(1, y)
    reg = b.arith(Op.ADD, 40, 2)
    const = b.const(x)
    b.call(
        record.address,
        [b.output(0), b.input(0), const, b.output(0), reg, 7, -7, (1 << 64) - 1, 1 << 62],
    )
    run(b.build(), x, out=[y])
    assert y.tolist() == [x.ctypes.data, x.ctypes.data, y.ctypes.data, 42, 7, -7, -1, 1 << 62]


@pytest.mark.usefixtures("no_garbage")
@pytest.mark.parametrize("size", [100, 100_000])
def test_arena_on_the_stack_and_beyond(size: int) -> None:
    x, y = np.arange(size, dtype=np.int8), np.zeros(size, np.int8)
    b = builder(1, y)
    first, second = b.arena(0, 64), b.arena(64, size)
    b.copy(second, b.input(0), size)
    b.fill(first, 64)
    b.copy(b.output(0), second, size)
    before = memory.stats().live_blocks
    run(b.build(), x, out=[y])
    assert (x == y).all() and memory.stats().live_blocks == before


def test_arena_places_are_aligned() -> None:
    seen: list[int] = []
    for size in (100, 100_000):
        b = builder(0)
        b.host(seen.append, [b.arena(0, size)])
        run(b.build())
    assert all(address % 64 == 0 for address in seen)


@pytest.mark.usefixtures("no_garbage")
def test_frames_beyond_the_stack() -> None:
    y = numbers()
    b = builder(0, y)
    total = b.reg()
    for k in range(1000):
        b.arith(Op.ADD, total, b.arith(Op.MUL, k, k), total)
    b.store(b.output(0), total, "i64")
    before = memory.stats().live_blocks
    run(b.build(), out=[y])
    assert y[0] == sum(k * k for k in range(1000)) and memory.stats().live_blocks == before


@pytest.mark.parametrize(
    ("width", "value"), [(1, 7), (2, -2), (4, 123456), (8, -(1 << 60)), (4, 0)]
)
@pytest.mark.parametrize("nbytes", [0, 8, 24, 64, 72, 200, 100_000])
def test_fill(width: int, value: int, nbytes: int) -> None:
    y = np.full(nbytes + 8, 99, np.int8)
    b = builder(0, y)
    b.fill(b.output(0), nbytes, value, width)
    run(b.build(), out=[y])
    assert (y[:nbytes].view(f"i{width}") == value).all() and (y[nbytes:] == 99).all()


def test_address_move_and_swap() -> None:
    x, z, y = np.arange(8), np.arange(8) * 10, numbers(3)
    b = builder(2, y)
    here = b.slot()
    b.address(here, b.input(0), 2, 8, 8)
    b.copy(b.output(0), here, 8)
    b.swap(b.input(0), b.input(1))
    b.move(here, b.input(0))
    there = b.slot()
    b.address(there, b.output(0), 1, 8)
    b.address(here, here, 1, 16)
    b.copy(there, here, 16)
    run(b.build(), x, z, out=[y])
    assert y.tolist() == [3, 20, 30]


def test_move_between_registers() -> None:
    y = numbers(2)
    b = builder(0, y)
    first, second = b.reg(), b.reg()
    b.move(first, 16)
    b.move(second, first)
    b.move(first, -1)
    b.store(b.output(0), first, "i64")
    b.store(b.output(0), second, "i64", 8)
    run(b.build(), out=[y])
    assert y.tolist() == [-1, 16]


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 5, 1), (3, 3, 1), (5, 0, 1), (5, 0, -2), (0, 10, 3), (0, 1000, 1), (1, 5, 0)],
)
def test_loop(start: int, stop: int, step: int) -> None:
    seen: list[int] = []
    b = builder(0)
    with b.loop(start, stop, step) as k:
        b.host(seen.append, [k])
    run(b.build())
    assert seen == (list(range(start, stop, step)) if step else [])


def test_a_loop_at_the_end_of_the_integers() -> None:
    seen: list[int] = []
    b = builder(0)
    with b.loop((1 << 63) - 3, (1 << 63) - 1, 2) as k:
        b.host(seen.append, [k])
    run(b.build())
    assert seen == [(1 << 63) - 3]


def test_nested_loops_and_switches() -> None:
    seen: list[tuple[int, ...]] = []
    b = builder(0)

    def note(*values: int) -> None:
        seen.append(values)

    with b.loop(0, 3) as i, b.loop(0, i) as j, b.switch(j) as cases:
        with cases.case():
            b.host(note, [i, j])
        with cases.case():
            b.host(note, [i, j, 100])
    run(b.build())
    assert seen == [(1, 0), (2, 0), (2, 1, 100)]


@pytest.mark.parametrize(
    ("index", "branch"), [(-(1 << 31), 0), (-1, 0), (0, 0), (1, 1), (2, 2), (3, 2), (1 << 30, 2)]
)
def test_switch_clamps_an_index_in_memory(index: int, branch: int) -> None:
    y = numbers(1)
    b = builder(1, y)
    with b.switch(b.input(0)) as cases:
        for k in range(3):
            with cases.case():
                b.store(b.output(0), k, "i64")
    run(b.build(), np.array([index], np.int32), out=[y])
    assert y[0] == branch


def test_while_on_a_flag() -> None:
    y = numbers(1)
    b = builder(0, y)
    flag = b.arena(0, 1)
    b.fill(b.output(0), 8)
    with b.while_() as loop:
        b.call(less.address, [flag, b.output(0), 1000], name="less")
        loop.check(flag)
        b.call(add_to.address, [b.output(0), 1])
    run(b.build(), out=[y])
    assert y[0] == 1000


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32", "i64"])
def test_integers_in_memory(kind: str) -> None:
    dtype = np.dtype(
        kind.replace("u", "uint").replace("i", "int", 1) if kind[0] == "i" else f"uint{kind[1:]}"
    )
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    y = np.zeros(3, dtype)
    b = builder(1, y)
    for k in range(2):
        b.store(b.output(0), b.load(b.input(0), kind, k * dtype.itemsize), kind, k * dtype.itemsize)
    run(b.build(), x, out=[y])
    assert y.tolist() == [*x.tolist(), 0]


ARITHMETIC: list[tuple[Op, Callable[[int, int], int]]] = [
    (Op.ADD, lambda a, b: a + b),
    (Op.SUB, lambda a, b: a - b),
    (Op.MUL, lambda a, b: a * b),
    (Op.FLOORDIV, lambda a, b: a // b),
    (Op.MOD, lambda a, b: a % b),
    (Op.MIN, min),
    (Op.MAX, max),
    (Op.LT, lambda a, b: a < b),
    (Op.LE, lambda a, b: a <= b),
    (Op.EQ, lambda a, b: a == b),
    (Op.NE, lambda a, b: a != b),
]


@pytest.mark.parametrize(("op", "meaning"), ARITHMETIC)
def test_arithmetic(op: Op, meaning: Callable[[int, int], int]) -> None:
    pairs = [(a, b) for a in (-7, -1, 0, 3, 1 << 31, 1 << 40) for b in (-3, -1, 1, 2, 7, 1 << 20)]
    pairs += [(3, 3), (-(1 << 62), 2), (1 << 31, -(1 << 31)), (1 << 62, -2)]
    y = numbers(len(pairs))
    b = builder(0, y)
    for k, (first, second) in enumerate(pairs):
        b.store(b.output(0), b.arith(op, first, second), "i64", 8 * k)
    run(b.build(), out=[y])
    assert y.tolist() == [int(meaning(*pair)) for pair in pairs]


@pytest.mark.parametrize(
    ("a", "b"),
    [(1 << 32, 1 << 31), (1 << 62, 2), (-(1 << 63), -1), (-1, -(1 << 63)), (3 << 40, 3 << 40)],
)
def test_a_product_that_does_not_fit_stops_the_program(a: int, b: int) -> None:
    program = builder(0)
    program.arith(Op.MUL, a, b)
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        run(program.build())


@pytest.mark.parametrize("op", [Op.FLOORDIV, Op.MOD])
def test_division(op: Op) -> None:
    b = builder(0)
    b.arith(op, 1, 0)
    with pytest.raises(ZeroDivisionError):
        run(b.build())
    b = builder(0)
    b.arith(op, -(1 << 63), -1)
    run(b.build())


@pytest.mark.usefixtures("no_garbage")
def test_blocks_of_sizes_known_while_running() -> None:
    b = ProgramBuilder(1, [(None, -1), (None, 8)])
    count = b.load(b.input(0), "i64")
    nbytes = b.arith(Op.MUL, count, 8)
    first, second = b.owned(), b.owned()
    b.alloc(first, 100_000)
    b.alloc(second, nbytes)
    b.alloc(first, nbytes)
    b.fill(first, nbytes, 5, 8)
    b.swap(first, second)
    b.free(first)
    b.call(add_to.address, [second, 1], 0, count)
    b.store(b.output(1), nbytes, "i64")
    b.give(0, second)
    program = b.build()
    y = numbers(1)
    before = memory.stats().live_blocks
    address, _ = program.run([np.array([1000]).ctypes.data], [None, y.ctypes.data])
    assert y[0] == 8000
    assert (np.frombuffer(memory.view(address, 8000), np.int64) == 6).all()
    memory.free(address)
    assert memory.stats().live_blocks == before


def test_any_result_can_be_given() -> None:
    b = ProgramBuilder(0, [(None, 8), (None, -1), (None, -1)])
    blocks = [b.owned(), b.owned()]
    for k, block in enumerate(blocks):
        b.alloc(block, 64)
        b.store(block, 7 + k, "i64")
        b.give(1 + k, block)
    b.store(b.output(0), 5, "i64")
    y = numbers(1)
    _, *addresses = b.build().run([], [y.ctypes.data, None, None])
    assert y[0] == 5
    for k, address in enumerate(addresses):
        assert np.frombuffer(memory.view(address, 8), np.int64)[0] == 7 + k
        memory.free(address)


@pytest.mark.usefixtures("no_garbage")
def test_owned_blocks_are_freed_when_a_program_fails() -> None:
    b = ProgramBuilder(0, [(None, -1)])
    first, second = b.owned(), b.owned()
    b.alloc(first, 1000)
    b.alloc(second, 1000)
    b.give(0, first)
    b.fail(ValueError, "stop")
    before = memory.stats().live_blocks
    with pytest.raises(ValueError, match="stop"):
        b.build().run([], [None])
    assert memory.stats().live_blocks == before


@pytest.mark.parametrize("size", [1 << 50, -8])
def test_memory_that_is_not_there_is_a_memory_error(size: int) -> None:
    b = builder(0)
    block = b.owned()
    b.alloc(block, size)
    with pytest.raises(MemoryError):
        run(b.build())


def test_an_arena_that_is_not_there_is_a_memory_error() -> None:
    b = builder(0)
    b.arena(0, 1 << 50)
    with pytest.raises(MemoryError):
        run(b.build())


@pytest.mark.parametrize("release", [False, True])
def test_host_functions(release: bool) -> None:
    x, y = np.array([3]), numbers(1)

    def double(address: int, more: int) -> int:
        return ctypes.c_int64.from_address(address).value * 2 + more

    b = builder(1, y)
    result = b.reg()
    b.host(double, [b.input(0), 100], result)
    b.store(b.output(0), result, "i64")
    run(b.build(release_gil=release), x, out=[y])
    assert y[0] == 106


@pytest.mark.parametrize("release", [False, True])
def test_exceptions_of_host_functions_are_themselves(release: bool) -> None:
    error = KeyError("mine")
    seen = []

    def fail() -> None:
        raise error

    b = builder(0)
    with b.loop(0, 10):
        b.host(fail)
    b.host(lambda: seen.append(1))
    program = b.build(release_gil=release)
    for _ in range(3):
        with pytest.raises(KeyError) as caught:
            run(program)
        assert caught.value is error
    assert not seen


def test_a_host_function_that_gives_no_integer() -> None:
    b = builder(0)
    b.host(lambda: None, result=b.reg())
    with pytest.raises(TypeError):
        run(b.build())


def test_host_functions_do_not_leak() -> None:
    b = builder(0)
    b.host(lambda number: number, [1 << 40], b.reg())
    program = b.build()
    run(program)
    before = sys.getallocatedblocks()
    for _ in range(1000):
        run(program)
    assert sys.getallocatedblocks() - before < 100


def test_programs_may_run_programs() -> None:
    depth = []
    programs: list[Program] = []

    def deeper(level: int) -> None:
        depth.append(level)
        if level < 20:
            b = builder(0)
            b.host(deeper, [level + 1])
            programs.append(b.build(release_gil=True))
            run(programs[-1])

    deeper(0)
    assert depth == list(range(21))


def test_one_program_in_many_threads() -> None:
    y = [numbers(1) for _ in range(4)]
    b = builder(0, y[0])
    counter = b.arena(0, 8)
    b.fill(counter, 8)
    with b.loop(0, 20_000):
        b.call(add_to.address, [counter, 1])
    b.copy(b.output(0), counter, 8)
    program = b.build(release_gil=True)
    workers = [threading.Thread(target=run, args=(program,), kwargs={"out": [out]}) for out in y]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [out[0] for out in y] == [20_000] * 4


@pytest.mark.parametrize("count", [1, 2, 3])
def test_kernels_over_ranges_in_parallel(count: int) -> None:
    before = threads.get_num_threads()
    threads.set_num_threads(count)
    y = numbers(10_000)
    b = builder(0, y)
    with b.loop(0, 20):
        b.call(add_to.address, [b.output(0), 1], 0, 10_000, grain=100)
    run(b.build(), out=[y])
    threads.set_num_threads(before)
    assert (y == 20).all()


def test_a_long_loop_lets_other_threads_run() -> None:
    y = numbers(2)
    b = builder(0, y)
    flag = b.arena(0, 1)
    with b.while_() as loop:
        b.call(less.address, [flag, b.output(0), 1])
        loop.check(flag)
    program = b.build()
    runner = threading.Thread(target=run, args=(program,), kwargs={"out": [y]})
    runner.start()
    y[0] = 1  # this line runs only when the loop gives up the GIL
    runner.join(30)
    assert not runner.is_alive()


INTERRUPT = """
import signal, sys, threading, os
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.lang.unit import Unit, ptr, i64, store_i8, load_ptr
unit = Unit("interrupted")
@unit.function
def forever(args: ptr, begin: i64, end: i64) -> None:
    store_i8(load_ptr(args, 0), 0, 1)
b = ProgramBuilder(0, [])
flag = b.arena(0, 1)
if sys.argv[1] == "while":
    with b.while_() as loop:
        b.call(forever.address, [flag])
        loop.check(flag)
else:
    with b.loop(0, 1 << 60), b.loop(0, 3):
        b.call(forever.address, [flag])
program = b.build(release_gil=sys.argv[2] == "1")
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
try:
    print("ready", flush=True)
    program.run([], [])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("kind", ["while", "loop"])
@pytest.mark.parametrize("release", ["0", "1"])
def test_control_c_stops_a_long_loop(kind: str, release: str, tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(
        [sys.executable, str(script), kind, release],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert out == "interrupted\n", err


def test_the_header_is_what_the_dispatcher_reads() -> None:
    aval = object()
    program = ProgramBuilder(2, [(aval, 24), (aval, 8)]).build(release_gil=True)
    head = interp.Header(program.handle)
    assert (head.n_in, head.n_out, head.flags & 1) == (2, 2, 1)
    assert list((ctypes.c_int64 * 2).from_address(head.out_nbytes)) == [24, 8]
    assert list((ctypes.c_int64 * 2).from_address(head.out_avals)) == [id(aval)] * 2


def test_programs_that_may_run_python_say_so() -> None:
    plain, host, loop = builder(0), builder(0), builder(0)
    host.host(print)
    with loop.loop(0, 3):
        pass
    assert [interp.Header(b.build().handle).flags for b in (plain, host, loop)] == [0, 2, 2]
    assert interp.Header(loop.build(release_gil=True).handle).flags == 3
