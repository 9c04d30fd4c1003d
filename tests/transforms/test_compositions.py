"""Random programs under random stacks of transformations: a seeded share of them, and the oracles'
own alarms.

Long runs: `python -m tests.long_compositions --programs 2000`."""

import numpy as np
import pytest

import calque
from calque.core.config import config
from tests.compositions.checks import Checker, report
from tests.compositions.peers import Mismatch, Rough, confirm, ours
from tests.compositions.programs import (
    Layered,
    Program,
    Step,
    function,
    make,
    operands,
    shrink,
    source,
)

CHECKER = Checker(peer=False)


@pytest.mark.parametrize("seed", [*range(100, 111), *range(112, 118)])
def test_random_composition(seed: int) -> None:
    p = make(seed)
    problem = CHECKER.problem(p)
    assert problem is None, report(p, problem)


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(200, 204))
def test_random_composition_beside_jax(seed: int) -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    try:
        p = make(seed)
        problem = Checker(peer=True, native=False).problem(p)
        assert problem is None, report(p, problem)
    finally:
        jax.config.update("jax_enable_x64", before)


# ---------------------------------------------------------------- the suite itself

SINE = Program(
    0, True, True, (("float64", (3,)),), (Step("sin", (0,), 1), Step("tanh", (0,), 2)), ()
)


def test_programs_are_reproducible_and_have_a_source() -> None:
    for seed in range(40):
        p = make(seed)
        assert p == make(seed)
        assert eval(repr(p), {"Program": Program, "Step": Step, "Layered": Layered}) == p
        assert f"seed {seed}," in source(p) and all(s.op in source(p) for s in p.steps)
    with config.override("calque_enable_x64", p.x64):
        first, second = (str(calque.make_jaxpr(function(ours, p))(*operands(p))) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("layer", "check"),
    [
        ("", "base"),
        ("grad", "layer grad"),
        ("vjp", "layer vjp"),
        ("linearize", "layer linearize"),
        ("jacfwd", "layer jacfwd"),
    ],
)
def test_a_wrong_derivative_is_found(
    layer: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sin = calque.core.primitives.REGISTRY["sin"]

    def wrong(primals, tangents, **k):
        return (sin.bind(*primals, **k), tangents[0] * 1.001)

    monkeypatch.setattr(sin, "jvp", wrong)
    p = SINE._replace(stack=(Layered(layer, 3),) if layer else (), steps=SINE.steps)
    if layer:
        monkeypatch.setattr("tests.compositions.checks.base", lambda p: None)
    assert (CHECKER.problem(p) or "").startswith(f"{check}: ")


def test_a_wrong_batching_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sin = calque.core.primitives.REGISTRY["sin"]
    monkeypatch.setattr(
        sin, "batch", lambda args, dims, **k: (sin.bind(args[0] + 1e-3, **k), dims[0])
    )
    p = SINE._replace(stack=(Layered("vmap", 3),))
    assert (CHECKER.problem(p) or "").startswith("layer vmap: ")
    assert CHECKER.problem(SINE) is None


def test_jit_that_differs_from_eager_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = calque.jit
    monkeypatch.setattr(
        calque, "jit", lambda f, **k: true(lambda *xs: [x * (1 + 1e-15) for x in f(*xs)], **k)
    )
    assert (CHECKER.problem(SINE) or "").startswith("exact jit: ")


def test_failing_programs_are_made_smaller() -> None:
    p = make(107)

    def has(q):
        return any(s.op == p.steps[0].op for s in q.steps)

    small = shrink(p, has)
    assert (
        [s.op for s in small.steps] == [p.steps[0].op]
        and not small.stack
        and len(small.inputs) == 1
    )


def test_kinks_are_no_failures() -> None:
    """At a kink differences of one step size do not agree with those of another, or with any
    derivative."""

    def kink(x):
        return [abs(x)]

    with pytest.raises((Rough, Mismatch)):
        confirm("slope", kink, [np.array(1e-6)], [np.array(1.0)], [np.array(-1.0)])
    confirm("slope", kink, [np.array(5e-6)], [np.array(1.0)], [np.array(1.0)])
    with pytest.raises(Mismatch):
        confirm(
            "slope", lambda x: [np.sin(x)], [np.array(0.3)], [np.array(1.0)], [np.cos(0.3) * 1.0001]
        )
