"""Functions run eagerly: one step for each equation, written by the assembler of all programs."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque.core.arrays import to_array, to_numpy
from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.symbols import Symbols
from calque.core.trace import trace_to_jaxpr
from calque.machine.call.functions import run_program
from calque.native.eager import program
from calque.native.eager.program import BeyondSteps, assemble, planned
from calque.native.eager.sizes import resizable
from calque.native.plan.steps import Copy, Host, Routine, WriteSize
from calque.native.plan.text import steps_text
from calque.native.plan.verify import verify_steps

F32 = np.dtype(np.float32)
Function = Callable[..., Any]


def program_of(f: Function, *shapes: tuple[Any, ...]) -> Any:
    def flat(*xs: Any) -> list[Any]:
        return cq.tree.leaves(f(*xs))

    return trace_to_jaxpr(flat, [ShapedArray(s, F32) for s in shapes])


def run(f: Function, *xs: np.ndarray) -> list[np.ndarray]:
    program = assemble(program_of(f, *[x.shape for x in xs]))
    return [to_numpy(y) for y in run_program(program, [to_array(x) for x in xs])]


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def kinds(f: Function, *shapes: tuple[int, ...]) -> list[str]:
    steps = planned(program_of(f, *shapes), free=False).steps
    return [s.name if isinstance(s, Routine) else type(s).__name__ for s in steps]


def test_each_equation_is_a_step() -> None:
    def f(x: Any) -> Any:
        return do.sort(do.exp(x.T), dimension=0, is_stable=True, num_keys=1)

    transposed, exp, sort = kinds(f, (3, 4))
    assert transposed == "copy" and sort == "sort" and exp not in ("copy", "sort")
    x = some(3, 4)
    (out,) = run(f, x)
    np.testing.assert_allclose(out, np.sort(np.exp(x.T), 0), rtol=1e-6)


def test_what_has_no_kernel_runs_its_meaning() -> None:
    def f(x: Any) -> Any:
        return do.pad(x, np.float32(7), padding_config=((1, 2, 0),))

    steps = planned(program_of(f, (4,)), free=False).steps
    assert any(isinstance(s, Host) and s.op == "pad" for s in steps)
    assert "host pad(" in steps_text(steps)
    x = some(4)
    assert run(f, x)[0].tolist() == [7, *x.tolist(), 7, 7]


def test_results_that_are_inputs_literals_or_given_twice() -> None:
    x = some(2, 3)
    outs = run(lambda x: (x, x.reshape(6), jnp.float32(2.5) + 0 * x[0, 0], x + 1, x + 1), x)
    np.testing.assert_array_equal(outs[0], x)
    np.testing.assert_array_equal(outs[1], x.reshape(6))
    assert outs[2] == 2.5
    np.testing.assert_array_equal(outs[3], outs[4])
    steps = planned(program_of(lambda x: (x, x.reshape(6)), (2, 3)), free=False).steps
    assert all(isinstance(s, Copy) for s in steps) and len(steps) == 2


def test_temporaries_share_memory() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = jnp.sin(x)[::-1]
        return x

    program = assemble(program_of(chain, (1000,)))
    assert program.arena_bytes <= 3 * 4096
    x = some(1000)
    want = x
    for _ in range(20):
        want = np.sin(want)
    np.testing.assert_allclose(run(chain, x)[0], want, rtol=1e-4)


def test_too_much_for_steps() -> None:
    def long(x: Any) -> Any:
        for _ in range(100):
            x = x + 1
        return x

    for f, shape in ((long, (3,)), (lambda x: cq.lax.scan(lambda c, y: (c + y, y), 0.0, x), (3,))):
        with pytest.raises(BeyondSteps):
            planned(program_of(f, shape), free=False)
    with pytest.raises(BeyondSteps):
        planned(program_of(lambda x: x @ x, (300, 300)), free=False)


def at_sizes(f: Function, sizes: Sequence[int]) -> None:
    """The program for every size gives what Python gives."""
    symbols = Symbols((7,))
    (n,) = symbols.sizes()
    closed = program_of(f, (n, 3))
    symbols.lenient = True
    made = resizable(closed, symbols)
    for size in sizes:
        x = some(size, 3)
        outs = made.resized((size,)).call([x])
        for got, want in zip(outs, cq.tree.leaves(f(jnp.asarray(x))), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_array_equal(to_numpy(got), to_numpy(want))


def test_any_size() -> None:
    def f(x: Any) -> Any:
        return jnp.exp(x).T[::-1], jnp.concatenate([x, x + 1]), x.reshape(-1), x.sum(0)

    at_sizes(f, (7, 1, 2, 50, 3000))


def test_a_size_as_a_value() -> None:
    symbols = Symbols((7,))
    closed = program_of(lambda x: x.sum() / x.shape[0], (symbols.sizes()[0],))
    steps = planned(closed, free=True).steps
    assert any(isinstance(s, WriteSize) for s in steps) and "= size n" in steps_text(steps)
    made = resizable(closed, symbols)
    for n in (1, 5, 12):
        (out,) = made.resized((n,)).call([np.ones(n, np.float32)])
        assert to_numpy(out) == 1


def test_meanings_of_any_size() -> None:
    """Each size has a call of Python of its own; where those are not wanted there is no program."""

    def f(x: Any) -> Any:
        return do.pad(x, np.float32(7), padding_config=((1, 2, 0), (0, 1, 0)))

    at_sizes(f, (7, 1, 4, 30))
    symbols = Symbols((7,))
    with pytest.raises(BeyondSteps):
        resizable(program_of(f, (symbols.sizes()[0], 3)), symbols, hosts=False)


@pytest.mark.parametrize("free", [False, True])
def test_steps_are_verified(free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def remember(steps: Any, form: Any, given: Any, results: Any) -> None:
        seen.append(form)
        verify_steps(steps, form, given, results)

    monkeypatch.setattr(program, "checks", SimpleNamespace(verify_steps=remember))
    planned(program_of(lambda x: jnp.exp(x) * 2.0, (3, 4)), free)
    assert seen == ["steps"]
