"""Programs as plain data and back."""

import marshal

import numpy as np

from calque.machine import memory
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.driver.program import External
from calque.machine.driver.stored import as_data, from_data

KERNEL = 4096  # never called here


def test_a_program_comes_back_with_other_arrays_and_addresses() -> None:
    table = np.arange(8, dtype=np.int64)
    b = ProgramBuilder(1, [(None, 64)])
    b.copy(b.output(0), b.const(table), 64)
    with b.loop(0, 3) as i:
        b.store(b.output(0), i, "i64")
    program = b.build()
    data = as_data(program, [table])
    assert data is not None
    other = table * 10
    again = from_data(
        marshal.loads(marshal.dumps(data)), [(None, 64)], [other], lambda name: None, program.text
    )
    assert again is not None and again.text() == program.text()
    out = np.zeros(8, np.int64)
    again.run([out.ctypes.data], [out.ctypes.data])
    assert out.tolist() == [2, *other[1:]]
    assert as_data(again, [other]) == data
    assert memory is not None


def test_calls_are_found_by_name() -> None:
    b = ProgramBuilder(1, [(None, 64)])
    for name in ("f", "g", "f"):
        b.call(KERNEL, [b.input(0), b.output(0)], name=name, symbol=name)
    with b.loop(0, 5):
        b.call(KERNEL, [b.output(0)], 0, 100, 10, name="g", symbol="g")
    data = as_data(b.build(), [])
    assert data is not None
    places = {"f": (8192, "owner of f"), "g": (8200, "owner of g")}
    again = from_data(data, [(None, 64)], [], places.get, lambda: "")
    assert again is not None and again.places is not None
    assert [int(again.code[at]) for at, _ in again.places.calls] == [8192, 8200, 8192, 8200]
    assert set(again._keepalive[0]) == {"owner of f", "owner of g"}
    del places["g"]
    assert from_data(data, [(None, 64)], [], places.get, lambda: "") is None


def test_what_holds_addresses_of_this_process_is_no_data() -> None:
    def builder() -> ProgramBuilder:
        return ProgramBuilder(1, [(None, 64)])

    python = builder()
    python.host(print, [1])
    unnamed = builder()
    unnamed.call(KERNEL, [1])
    bare = builder()
    bare.copy(bare.output(0), bare.const(KERNEL), 64)
    assert [as_data(b.build(), []) for b in (python, unnamed, bare)] == [None, None, None]


def test_arrays_of_its_own_come_along_unless_they_are_large() -> None:
    table = np.arange(8.0)
    b = ProgramBuilder(1, [(None, 64)])
    b.copy(b.output(0), b.const(table), 64)
    data = as_data(b.build(), [])
    again = from_data(marshal.loads(marshal.dumps(data)), [(None, 64)], [], no_code, str)
    assert again is not None
    out = np.zeros(8)
    again.run([out.ctypes.data], [out.ctypes.data])
    assert out.tolist() == table.tolist()
    large = ProgramBuilder(1, [(None, 64)])
    large.copy(large.output(0), large.const(np.zeros(1 << 18)), 64)
    assert as_data(large.build(), []) is None
    objects = ProgramBuilder(1, [(None, 64)])
    objects.copy(objects.output(0), objects.const(np.array([None] * 8)), 64)
    assert as_data(objects.build(), []) is None


def no_code(name: str) -> None:
    """No code of any name."""


def test_functions_from_outside_are_found_by_name() -> None:
    b = ProgramBuilder(1, [(None, 64)])
    b.call(External(4096, "room f"), [External(5000, "lapack g"), 5000, b.output(0)])
    program = b.build()
    assert program.places is not None and program.places.externals == ((0, "lapack g"),)
    data = as_data(program, [])
    assert data is not None
    there = {"room f": (8192, None), "lapack g": (6000, None)}
    again = from_data(data, [(None, 64)], [], there.get, str)
    assert again is not None and again.places is not None
    assert again.places.calls == program.places.calls
    assert again.places.externals == program.places.externals
    begin = again.frame.starts["imm"] - again.frame.starts["own"]
    assert again.words()[1][begin : begin + 2] == [6000, 5000]
    assert int(again.code[again.places.calls[0][0]]) == 8192
    del there["lapack g"]
    assert from_data(data, [(None, 64)], [], there.get, str) is None
