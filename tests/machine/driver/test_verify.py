"""The verifier of finished programs: no bad word goes through."""

import numpy as np
import pytest

from calque.machine.driver.builder import ProgramBuilder, ProgramError
from calque.machine.driver.verify import verify

KERNEL = 4096  # never called here


def test_the_verifier_finds_every_bad_word() -> None:
    y = np.zeros(8, np.int64)
    b = ProgramBuilder(1, [(None, y.nbytes)])
    with b.loop(0, 3) as k:
        b.call(KERNEL, [b.output(0), k])
    with b.switch(k) as cases, cases.case():
        b.fill(b.output(0), 8)
    program = b.build()
    with pytest.raises(ValueError):
        program.code[0] = 1  # immutable
    for at in range(len(program.code)):
        for bad in (-8, 3, 1 << 40):
            code = program.code.copy()
            code[at] = bad
            kernel_address = at == program.code.tolist().index(KERNEL)
            if kernel_address and bad > 0:
                continue
            with pytest.raises(ProgramError):
                verify(code, program.frame, 1)
    for end in range(len(program.code)):
        with pytest.raises(ProgramError):
            verify(program.code[:end], program.frame, 1)


def test_integers_do_not_become_pointers() -> None:
    b = ProgramBuilder(1, [])
    slot, reg = b.slot(), b.reg()
    b.move(slot, b.input(0))
    b.move(reg, 8)
    program = b.build()
    code = program.code.copy()
    code[2], code[5] = code[5], code[2]
    with pytest.raises(ProgramError, match="MOVE"):
        verify(code, program.frame, 0)
