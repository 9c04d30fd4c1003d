"""Building driver programs: their text, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

from calque.machine.driver.builder import ProgramBuilder, ProgramError, Reg, Slot
from calque.machine.driver.interpreter import Op

KERNEL = 4096  # never called here


def numbers() -> np.ndarray:
    return np.zeros(8, np.int64)


def builder(n_in: int, *outputs: np.ndarray) -> ProgramBuilder:
    return ProgramBuilder(n_in, [(None, array.nbytes) for array in outputs])


def test_the_text_of_a_program() -> None:
    y = numbers()
    b = builder(1, y)
    tmp = b.arena(0, 64)
    b.call(KERNEL, [tmp, b.input(0), 5], name="add")
    with b.loop(0, 10) as k:
        b.call(KERNEL, [tmp, k], 0, 1000, 64, name="add")
        with b.while_() as loop:
            loop.check(tmp)
            b.copy(b.output(0), tmp, 64)
    with b.switch(k) as cases:
        with cases.case():
            b.fill(b.output(0), 64, 1, 4)
        with cases.case():
            b.fail(ValueError, "no")
    assert (
        b.build(release_gil=True).text()
        == "program: 1 in, 1 out [64 B], arena 64 B, GIL released\n"
        "  call add(arena0, in0, 5)\n"
        "  loop r0 = 0:10:1\n"
        "    call add(arena0, r0) over 0:1000 by 64\n"
        "    while\n"
        "      leave unless arena0[0]\n"
        "      copy out0 <- arena0, 64 B\n"
        "  switch r0\n"
        "  case 0:\n"
        "    fill out0, 64 B with 1 (4 B)\n"
        "  case 1:\n"
        "    host raise ValueError()\n"
    )


REFUSED: list[tuple[str, Callable[[ProgramBuilder], object]]] = [
    ("no input 1", lambda b: b.input(1)),
    ("no output 2", lambda b: b.output(2)),
    ("not a slot", lambda b: b.copy(b.output(0), 5, 8)),  # type: ignore[arg-type]
    ("neither a register nor an integer", lambda b: b.copy(b.output(0), b.input(0), b.input(0))),
    # type: ignore[arg-type]
    ("neither a register nor an integer", lambda b: b.call(1, [1.5])),  # type: ignore[list-item]
    ("has no address", lambda b: b.call(0, [])),
    ("does not fit", lambda b: b.call(1, [1 << 64])),
    ("cannot be set", lambda b: b.move(b.const(numbers()), b.input(0))),
    ("cannot be set", lambda b: b.move(b.owned(), b.input(0))),
    ("constants stay", lambda b: b.swap(b.const(numbers()), b.input(0))),
    ("only be exchanged for another", lambda b: b.swap(b.owned(), b.input(0))),
    ("not an owned slot", lambda b: b.alloc(b.input(0), 8)),
    ("which the caller allocates", lambda b: b.give(0, b.owned())),
    ("not an integer type", lambda b: b.load(b.input(0), "f32")),
    ("width 3", lambda b: b.fill(b.output(0), 9, 1, 3)),
    ("is no arithmetic", lambda b: b.arith(Op.COPY, 1, 2)),
    ("arena place at -8", lambda b: b.arena(-8, 8)),
    ("must be contiguous", lambda b: b.const(np.zeros((4, 4))[:, 0])),
    ("read before anything was put", lambda b: (b.copy(b.output(0), b.slot(), 8), b.build())),
    ("read before anything was put", lambda b: (b.free(b.owned()), b.build())),
    ("in1000 is not of this program", lambda b: b.copy(b.output(0), Slot("in", 1000), 8)),
    ("own0 is not of this program", lambda b: b.fill(Slot("own", 0), 8)),
    ("r7 is not of this program", lambda b: b.fill(b.output(0), Reg(7))),
]


@pytest.mark.parametrize(("message", "build"), REFUSED)
def test_what_is_refused_while_building(
    message: str, build: Callable[[ProgramBuilder], object]
) -> None:
    with pytest.raises(ProgramError, match=message):
        build(builder(1, numbers()))
