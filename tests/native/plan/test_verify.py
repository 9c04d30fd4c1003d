"""Steps that mean nothing are refused, in each form."""

from collections.abc import Sequence
from typing import Any

import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.native.loops.tree import Acc, For, Store
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import Stage
from calque.native.plan.fusion import fused
from calque.native.plan.scheduling import scheduled
from calque.native.plan.steps import (
    Compute,
    Copy,
    Count,
    Nest,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    walk,
)
from calque.native.plan.text import steps_text
from calque.native.plan.verify import MalformedSteps, verify_stage, verify_steps
from calque.native.scalars import expr
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, ref, var

SIZES = Sizes()
N = SIZES.dim(100)
D0, D1 = var("d0", N), var("d1", N)
X, T, U, OUT = (Buffer(name, (N,), "f32") for name in ("in1", "t1", "t2", "out1"))
M = Buffer("m", (N, N), "f32")
FLAG, PLACE = Buffer("flag", (), "i1"), Buffer("place", (), "i32")


def at(b: Buffer) -> Any:
    return load(b, (D0,))


def mapped(dst: Buffer, value: Any, **more: Any) -> Stage:
    return Stage(dst, (D0,), 1, (D0,), (((), value),), **more)


def copied(dst: Buffer, src: Buffer) -> Nest:
    return Nest((For(D0, (Store(dst, (D0,), at(src)),)),))


def broken_stages() -> Sequence[tuple[str, Stage]]:
    total = Acc("r", "sum", load(M, (D0, D1)))
    r = ref("r", "f32")
    return [
        ("indices for 1 dimensions", Stage(T, (D0,), 1, (D0, D0), (((), at(X)),))),
        ("i32 is stored", mapped(T, const(1, "i32"))),
        ("nothing is stored", Stage(T, (D0,), 1, (D0,), ())),
        ("loops are folded over", Stage(T, (D0, D1), 1, (D0,), (((), at(X)),))),
        ("0 loops are folded over", Stage(T, (D0,), 1, (D0,), (((), r),), (total,))),
        ("it runs on", mapped(T, at(X), running=True)),
        ("another does not", mapped(T, r, accs=(total,), running=True)),
        ("2 of 1 loops collide", mapped(T, at(X), colliding=2)),
        ("outside of its loop", mapped(T, load(M, (D0, D1)))),
        ("is not known here", mapped(T, r)),
        ("marks no cell", mapped(T, at(X), marks=True)),
        ("no extent", Stage(T, (var("d0"),), 1, (D0,), (((), at(X)),))),
    ]


@pytest.mark.parametrize("message, stage", broken_stages(), ids=[m for m, _ in broken_stages()])
def test_malformed_stages(message: str, stage: Stage) -> None:
    with pytest.raises(MalformedSteps, match=message):
        verify_stage(stage)


def test_stages_that_are_well_formed() -> None:
    verify_stage(mapped(T, at(X)))
    total = Acc("r", "sum", load(M, (D0, D1)))
    verify_stage(Stage(T, (D0, D1), 1, (D0,), (((), ref("r", "f32")),), (total,)))
    running = Acc("r", "sum", at(X), running=True)
    verify_stage(mapped(T, ref("r", "f32"), accs=(running,), running=True))


def test_each_form_holds_its_own_steps() -> None:
    stages = [Compute((mapped(T, at(X)), mapped(OUT, ex("exp", at(T)))))]
    nests = fused(stages, {T}, SIZES)
    steps = scheduled(nests, SIZES)
    verify_steps(stages, "stages", [X], [OUT])
    verify_steps(nests, "nests", [X], [OUT])
    verify_steps(steps, "steps", [X], [OUT])
    for form, wrong in (("nests", stages), ("steps", nests), ("stages", steps), ("nests", steps)):
        with pytest.raises(MalformedSteps, match=f"no step of {form}"):
            verify_steps(wrong, form, [X], [OUT])  # type: ignore[arg-type]


def test_nests_are_verified() -> None:
    bad = Nest((For(D0, (Store(T, (D0, D0), at(X)),)),))
    with pytest.raises(MalformedSteps, match="indices given"):
        verify_steps([bad], "nests", [X])


def unwritten() -> Sequence[tuple[str, Sequence[Step]]]:
    first = copied(T, X)
    return [
        ("t1 is read before it is written", [copied(OUT, T)]),
        ("t1 is read before it is written", [copied(OUT, T), first]),
        ("t1 is read before it is written", [Copy(OUT, T)]),
        ("place is read before it is written", [Count("k", PLACE)]),
        ("place is read before it is written", [Switch(PLACE, [[first]])]),
        ("t1 is read before it is written", [Switch(N, [[first], []]), copied(OUT, T)]),
        ("flag is read before it is written", [Repeat([first], (), flag=FLAG)]),
        ("t2 is read before it is written", [first, Repeat([first], [(T, U)], N, "i")]),
        ("t1 is read before it is written", [copied(U, X), Swap(T, U)]),
        ("does not fit", [Copy(M, X)]),
        ("more than it says", [Routine("sort", 0, [X, T], [X], [], 0)]),
        ("no end, or two", [Repeat([first], ())]),
        ("has no case", [Switch(N, [])]),
        ("nothing writes out1", [first]),
    ]


@pytest.mark.parametrize("message, steps", unwritten())
def test_malformed_steps(message: str, steps: Sequence[Step]) -> None:
    with pytest.raises(MalformedSteps, match=message):
        verify_steps(steps, "nests", [X], [OUT])


def test_a_kernel_may_read_what_it_has_written() -> None:
    body = (*copied(T, X).body, *copied(OUT, T).body)
    verify_steps([Nest(body)], "nests", [X], [OUT])


def test_what_is_written_in_a_loop_is_there_after_it() -> None:
    steps = [copied(T, X), Repeat([copied(U, T)], [(T, U)], N, "i"), copied(OUT, T)]
    verify_steps(steps, "nests", [X], [OUT])
    verify_steps([Switch(N, [steps, [copied(OUT, X)]])], "nests", [X], [OUT])


def test_what_nobody_reads_later_is_not_stored() -> None:
    stages = (mapped(T, ex("sin", at(X))), mapped(OUT, ex("exp", at(T))))
    (nest,) = fused([Compute(stages)], {T}, SIZES)
    assert nest.writes() == {OUT}
    nest, _ = fused([Compute(stages), Copy(U, T)], {T, U}, SIZES)
    assert nest.writes() == {T, OUT}


def test_what_the_next_round_reads_is_stored() -> None:
    stages = (mapped(T, ex("sin", at(U))), mapped(OUT, ex("exp", at(T))))
    loop = Repeat([copied(U, T), Compute(stages)], (), N, "i")
    nests = fused([copied(T, X), loop], {T, U}, SIZES)
    assert [s.writes() for s in walk(nests) if isinstance(s, Nest)][-1] == {T, OUT}


def test_texts_of_steps() -> None:
    first = copied(T, X)
    steps = [
        first,
        Copy(U, T),
        Swap(T, U),
        Count("k", PLACE),
        Routine("sort", 0, [X, T, N, 3], [X], [T], 0),
        Switch(PLACE, [[Copy(U, T)], []]),
        Repeat([Copy(U, T)], [(T, U)], N, "i"),
        Repeat([Copy(U, T)], (), test=[Copy(T, U)], flag=FLAG),
    ]
    assert steps_text(steps).splitlines() == [
        "nest:",
        "  for d0 < s100:",
        "    t1[d0] = in1[d0]",
        "copy t2 <- t1",
        "swap t1, t2",
        "size k = place",
        "routine sort(in1, t1, s100, 3)",
        "switch place:",
        "  case 0:",
        "    copy t2 <- t1",
        "  case 1:",
        "repeat i < s100:",
        "  copy t2 <- t1",
        "  swap t1, t2",
        "repeat:",
        "  copy t1 <- t2",
        "  while flag",
        "  copy t2 <- t1",
    ]


def test_what_has_no_elements_need_not_be_written() -> None:
    empty = Buffer("empty", (const(0), N), "f32")
    verify_steps([Copy(Buffer("t", (const(0), N), "f32"), empty)], "nests", [X], [empty])


def test_what_is_well_formed_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of an expression takes longer than all checks of it, so only an error makes it."""
    printed: list[Expr] = []
    monkeypatch.setattr(expr, "_show_node", lambda e, args: printed.append(e) or "?")

    def f(x: calque.Array) -> calque.Array:
        y = jnp.cumsum(jnp.sin(x) @ x.T, axis=0)
        return jnp.where(y > 0.3217, jnp.sort(y), y[:, ::-1]).sum(1)

    assert config.verify_kernels
    calque.jit(f)(jnp.ones((5, 7)))
    assert not printed


def test_malformed_names() -> None:
    """Nests that are like others: their buffers stay apart, and are of the same kind."""
    first = copied(T, X)
    verify_steps([first, Nest(None, like=first, names={X: X, T: U})], "nests", [X], [U])
    for message, names in (
        ("two of its buffers become one", {X: X, T: X}),
        ("m does not fit in the place of t1", {X: X, T: M}),
    ):
        with pytest.raises(MalformedSteps, match=message):
            verify_steps([first, Nest(None, like=first, names=names)], "nests", [X], [X])
    with pytest.raises(MalformedSteps, match="it has no loops, or two"):
        verify_steps([Nest(first.loops, like=first)], "nests", [X], [T])
