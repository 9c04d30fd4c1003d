"""Stages to nests: temporaries that never reach memory, and what may share a kernel."""

import numpy as np

from calque.native.loops.tree import For, Store, loaded, statements, stored
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import Stage
from calque.native.plan import fusion
from calque.native.plan.steps import Compute, Copy, Nest, Repeat, Step, Switch
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, make, var
from tests.native.run_kernel import run

S = Sizes()
N = S.dim(100)
I = var("d0", N)
X, T, U, Y, Z = (Buffer(name, (N,), "f32") for name in "xtuyz")
PICK = Buffer("pick", (), "i32")


def at(b: Buffer) -> Expr:
    return load(b, (I,))


def made(dst: Buffer, value: Expr) -> Stage:
    return Stage(dst, (I,), 1, (I,), (((), value),))


def test_what_nobody_reads_later_is_a_value() -> None:
    """t[i] = exp x[i]; y[i] = t[i] + 1: one loop, one store."""
    steps = [Compute((made(T, make("exp", (at(X),), "f32")), made(Y, ex("add", at(T), at(X)))))]
    (nest,) = fusion.fused(steps, {T}, S)
    assert isinstance(nest, Nest) and nest.in_order
    assert stored(nest.body) == {Y} and loaded(nest.body) == {X}
    (kept,) = fusion.fused(steps, {T}, S, {T})
    assert stored(kept.body) == {T, Y} and loaded(kept.body) == {X}  # type: ignore[union-attr]
    (result,) = fusion.fused(steps, set(), S)
    assert stored(result.body) == {T, Y}  # type: ignore[union-attr]


def test_what_a_later_step_reads_is_stored() -> None:
    steps = [Compute((made(T, at(X)), made(Y, ex("add", at(T), at(T))))), Copy(Z, T)]
    nest, copy = fusion.fused(steps, {T}, S)
    assert stored(nest.body) == {T, Y} and copy is steps[1]  # type: ignore[union-attr]


def test_the_next_round_reads_too() -> None:
    """What a loop's own body reads first is wanted at its end."""
    body = [Compute((made(U, at(T)), made(T, ex("add", at(U), at(X)))))]
    (loop,) = fusion.fused([Repeat(body, [], const(3), "k")], {T, U}, S)
    assert isinstance(loop, Repeat)
    (nest,) = loop.body
    assert T in stored(nest.body)  # type: ignore[union-attr]


def test_what_every_round_makes_anew_is_a_value() -> None:
    body = [Compute((made(T, at(X)), made(Y, ex("add", at(T), at(T)))))]

    def stored_in(before: list[Step], swaps: list[tuple[Buffer, Buffer]]) -> frozenset[Buffer]:
        steps = [*before, Repeat(body, swaps, const(3), "k")]
        loop = fusion.fused(steps, {T, U}, S)[-1]
        assert isinstance(loop, Repeat)
        return loop.body[0].writes()

    assert stored_in([], []) == {Y}
    assert stored_in([Copy(T, X)], []) == {T, Y}
    assert stored_in([Copy(U, X)], [(T, U)]) == {T, Y}
    inner = Repeat(body, [], const(3), "j")
    (outer,) = fusion.fused([Repeat([inner], [], const(3), "k")], {T}, S)
    assert isinstance(outer, Repeat) and outer.writes() == {Y}


def test_what_is_read_before_it_is_written() -> None:
    write, read = Compute((made(T, at(X)),)), Compute((made(Y, at(T)),))
    assert fusion.read_first([write, read]) == {X}
    assert fusion.read_first([read, write]) == {T, X}
    assert fusion.read_first([Switch(PICK, [[write], []]), read]) == {X, PICK}
    assert fusion.read_first([Repeat([read, Copy(U, Y)], [(T, U)], const(3), "k")]) == {T, U}


def test_branches_share_what_is_wanted_behind_them() -> None:
    case = [Compute((made(T, at(X)), made(Y, ex("add", at(T), at(T)))))]
    (switch, _) = fusion.fused([Switch(PICK, [case, []]), Copy(Z, T)], {T}, S)
    assert isinstance(switch, Switch)
    assert stored(switch.cases[0][0].body) == {T, Y}  # type: ignore[union-attr]


def test_values_go_on_in_the_loop_that_makes_them() -> None:
    """A chain of four, run: what is in between is in no memory."""
    chain = (
        made(T, ex("add", at(X), at(X))),
        made(U, ex("mul", at(T), at(T))),
        made(Y, ex("add", at(U), at(T))),
    )
    (nest,) = fusion.fused([Compute(chain)], {T, U}, S)
    x, y = np.arange(100, dtype="f4"), np.zeros(100, "f4")
    run(nest.body, {X: x, Y: y, **S.values})  # type: ignore[union-attr]
    np.testing.assert_array_equal(y, 4 * x * x + 2 * x)


def test_stages_over_other_loops_are_other_runs() -> None:
    """Short ones that read each other are one kernel; strangers and long ones are not."""
    m = S.dim(90)
    j = var("d0", m)
    w = Buffer("w", (m,), "f32")
    reading = Stage(w, (j,), 1, (j,), (((), load(T, (j,))),))
    together = fusion.kernels_of([made(T, at(X)), reading], S)
    assert [len(b) for b in together] == [2]
    other = Buffer("v", (m,), "f32")
    stranger = Stage(w, (j,), 1, (j,), (((), load(other, (j,))),))
    assert [len(b) for b in fusion.kernels_of([made(T, at(X)), stranger], S)] == [1, 1]
    long = S.dim(50_000_000)
    k = var("d0", long)
    big, source = Buffer("big", (long,), "f32"), Buffer("source", (long,), "f32")
    slow = Stage(big, (k,), 1, (k,), (((), make("sin", (load(source, (k,)),), "f32")),))
    after = Stage(w, (j,), 1, (j,), (((), load(big, (j,))),))
    assert [len(b) for b in fusion.kernels_of([slow, after], S)] == [1, 1]


def test_scalars_go_with_the_loop_before_them() -> None:
    """But not with one that threads could share."""
    cell = Buffer("cell", (), "f32")
    scalar = Stage(cell, (), 0, (), (((), const(2.0, "f32")),))
    assert [len(b) for b in fusion.kernels_of([scalar, made(T, at(X))], S)] in ([2], [1, 1])
    piece = fusion.Piece.__new__(fusion.Piece)
    piece.body = [For(I, (Store(T, (I,), at(X)),))]
    assert piece.shared()
    piece.body = [Store(cell, (), const(1.0, "f32")), *piece.body]
    assert not piece.shared()


def test_loops_that_may_grow_take_for_ever() -> None:
    sizes = Sizes()
    sizes.free.add("n0")
    sizes.values["n0"] = 3
    n = var("n0")
    i = var("i", n)
    y = Buffer("y", (n,), "f32")
    free = [For(i, (Store(y, (i,), const(1.0, "f32")),))]
    assert fusion.short(free, sizes) == float("inf")
    fixed = [For(I, (Store(T, (I,), at(X)),))]
    assert 0 < fusion.short(fixed, S) < float("inf")
    assert fusion.read_in(tuple(fixed)) == {X} and len(list(statements(tuple(fixed)))) == 2
