"""Random programs on three ways: reference, compiled, operation by operation; in exact mode the
last two give the same bits.

Long runs: `python tests/generator.py --programs 2000`."""

import pytest

from calque.native.plan import memory, ordering
from tests.generator import make, problem

KNOWN = (1027, 1069, 1224)  # programs that went wrong once


@pytest.mark.parametrize("seed", [*range(60), *KNOWN])
def test_random_program(seed: int) -> None:
    assert problem(make(seed)) is None


@pytest.mark.parametrize("seed", range(60, 75))
def test_random_program_in_little_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs treated as large ones are: their temporaries lie in results, and their steps
    are in the order that needs little memory, better or not."""
    monkeypatch.setattr(memory, "LEAST", 1)
    monkeypatch.setattr(ordering, "LEAST", 1)
    monkeypatch.setattr(ordering, "BETTER", 2.0)
    assert problem(make(seed)) is None
