"""Short chains of operations, compiled as one program."""

from typing import Any

import numpy as np
import pytest

from tests.fuzz import chains
from tests.fuzz.__main__ import main
from tests.fuzz.chains import ANY, CHOOSING, FLOAT, TEXTS, TWO, Chain, ChainChecker, Step


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_fixed_seeds(seed: int) -> None:
    c = chains.chain(9_000_000 + seed)
    assert ChainChecker().problem(c) is None, chains.source(c)


@pytest.mark.parametrize("shape", [(1,), (5,), (1, 3), (4, 1), (3, 2), (2, 3, 2)])
def test_every_step_gives_an_array_like_its_own(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "int32"):
        for name in TEXTS if dtype == "float32" else [*ANY, *CHOOSING, *TWO]:
            args = (0, 1) if name in TWO else (0,)
            c = Chain(1, shape, dtype, (Step(name, args),), (2,))
            (out,) = chains.results(c, jitted=False)
            assert (out.shape, str(out.dtype)) == (shape, dtype), name


def test_a_chain_is_that_of_its_seed() -> None:
    many = [chains.chain(seed) for seed in range(300)]
    assert many == [chains.chain(seed) for seed in range(300)]
    assert {s.name for c in many for s in c.steps} == set(TEXTS)
    assert {c.form for c in many} == set(chains.FORMS) and any(c.donated for c in many)


def test_a_wrong_program_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a statement is another one when it is compiled, the chain that is left holds it."""
    steps = (Step("roll", (0,)), Step("double", (2,)), Step("sum rows", (3,)), Step("add", (4,)))
    wrong = Chain(1, (9, 4), "float32", steps, (2, 5), donated=True)
    monkeypatch.setattr(chains, "chain", lambda seed: wrong)
    monkeypatch.setitem(FLOAT, "unused", "x")
    monkeypatch.setitem(TEXTS, "double", "x * (3 if isinstance(x, jax.core.Tracer) else 2) + 1")
    run = chains.ChainRun()
    run.one(1)
    (find,) = run.finds
    assert find["problem"].startswith("exact: result 0 differs by")
    assert "double of v" in find["test"] and "sum rows" not in find["test"]
    assert "shape=(1, 1)" in find["test"] and "donated=False" in find["test"]
    assert find["test"] in capsys.readouterr().out


def test_errors_are_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    c = Chain(1, (3,), "float32", (Step("sin", (0,)),), (2,))
    monkeypatch.setitem(TEXTS, "sin", "1 // 0 if isinstance(x, jax.core.Tracer) else x")
    assert (ChainChecker().problem(c) or "").startswith("jit: ZeroDivisionError")
    monkeypatch.setitem(TEXTS, "sin", "jnp.nothing(x)")
    assert (ChainChecker().problem(c) or "").startswith("eager: AttributeError")


def test_how_far_results_are_apart() -> None:
    a = np.array([1.0, np.nan, np.inf])
    assert chains.difference(a, a) == 0.0
    assert chains.difference(a, np.array([1.5, np.nan, np.inf])) == 0.5
    assert chains.difference(a, np.array([1.0, 2.0, np.inf])) == np.inf


def test_the_command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    argv = ["fuzz", "--chains", "--programs", "3", "--seed", "9000000"]
    monkeypatch.setattr("sys.argv", argv)
    assert main() == 0
    assert "3 programs from seed 9000000, 0 failures" in capfd.readouterr().out


def test_what_has_no_derivative_is_left_out() -> None:
    c: Any = Chain(1, (3,), "float32", (Step("apply", (0,)),), (2,), "grad")
    checker = ChainChecker()
    assert checker.problem(c) is None
    assert checker.skipped == {"has no derivative": 2} and not checker.done
