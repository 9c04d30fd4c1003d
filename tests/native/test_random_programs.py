"""Random programs on three ways: reference, compiled, operation by operation; in exact mode the
last two give the same bits.

Long runs: `python tests/generator.py --programs 2000`."""

import pytest

from tests.generator import make, problem

KNOWN = (1027, 1069, 1224)  # programs that went wrong once


@pytest.mark.parametrize("seed", [*range(60), *KNOWN])
def test_random_program(seed: int) -> None:
    assert problem(make(seed)) is None
