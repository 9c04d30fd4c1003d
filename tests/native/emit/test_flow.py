"""Code under a condition, and a counter: written by hand, run."""

import ctypes

import pytest

from calque.native.emit.flow import counted, guarded
from calque.native.emit.lanes import SCALAR
from calque.native.emit.values import value
from calque.native.emit.writer import NOTHING, CodeOptions, Writer
from calque.native.scalars.expr import ex, var
from tests.native.emit.shared import address_of

n = var("n")


def writer(**options: bool) -> Writer:
    w = Writer("f", CodeOptions(**options), frozenset())
    w.bind("n", "%n")
    return w


def of_n(w: Writer, r: str):  # type: ignore[no-untyped-def]
    address = address_of(w, "define i64 @f(i64 %n)", f"ret i64 {r}")
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)


def test_a_side_and_its_initial_values() -> None:
    w = writer()
    positive = w.new("icmp sgt i64 %n, 0")
    a, b = guarded(
        w,
        positive,
        NOTHING,
        [("i64", "100"), ("i64", "%n")],
        lambda: [value(w, ex("mul", n, n), SCALAR), w.new("add i64 %n, 1")],
    )
    f = of_n(w, w.new(f"sub i64 {a}, {b}"))
    assert [f(v) for v in (5, 0, -7)] == [25 - 6, 100, 107]


def test_what_a_side_computed_is_not_known_behind_it() -> None:
    """Where it did not run there is no value; with `lazy` nothing leaves it, else what costs
    nothing to know is written before."""
    for lazy, inside in ((True, 1), (False, 0)):
        w = writer()
        cond = w.new("icmp sgt i64 %n, 0")
        e = ex("mul", n, n)
        counts = []

        def body(w: Writer = w, counts: list[int] = counts) -> list[str]:
            value(w, e, SCALAR)
            counts.append(len(w.scopes[-1].lines))
            return []

        guarded(w, cond, NOTHING, [], body, lazy=lazy)
        assert counts == [inside]
        again = value(w, e, SCALAR)
        assert of_n(w, again)(-3) == 9


@pytest.mark.parametrize("step", [1, 3])
def test_a_counter_with_carried_values(step: int) -> None:
    """At least one round, whatever the bounds; the last values come out."""
    w = writer()

    def body(phis: list[str]) -> list[str]:
        total, rounds = phis
        at = value(w, var("k", n), SCALAR)
        return [w.new(f"add i64 {total}, {at}"), w.new(f"add i64 {rounds}, 1")]

    total, rounds = counted(w, "k", ("2", "%n"), step, NOTHING, [("i64", "0"), ("i64", "0")], body)
    f = of_n(w, w.new(f"add i64 {w.new(f'mul i64 {rounds}, 1000')}, {total}"))
    for size in (-1, 2, 3, 10, 11):
        turns = list(range(2, size, step)) or [2]
        assert f(size) == 1000 * len(turns) + sum(turns)


def test_loops_in_sides_in_loops() -> None:
    """The blocks that values come from are those that the code really ends in."""
    w = writer()

    def inner(phis: list[str]) -> list[str]:
        return [w.new(f"add i64 {phis[0]}, {value(w, var('b', n), SCALAR)}")]

    def outer(phis: list[str]) -> list[str]:
        at = value(w, var("a", n), SCALAR)
        odd = w.new(f"trunc i64 {at} to i1")
        (r,) = guarded(
            w,
            odd,
            NOTHING,
            [("i64", phis[0])],
            lambda: counted(w, "b", ("0", at), 1, NOTHING, [("i64", phis[0])], inner),
        )
        return [r]

    (r,) = counted(w, "a", ("0", "%n"), 1, NOTHING, [("i64", "0")], outer)
    f = of_n(w, r)
    for size in (1, 2, 7, 8):
        assert f(size) == sum(b for a in range(1, size, 2) for b in range(a))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("multiplied", [False, True])
def test_the_counter_of_an_outer_loop_and_of_one_that_indexes_hides_from_llvm(
    indexed: bool, multiplied: bool
) -> None:
    """Where the processor adds indices to addresses. The numbers are the same."""
    w = writer(indexed=indexed)

    def inner(phis: list[str]) -> list[str]:
        at = value(w, var("b", n), SCALAR)
        return [w.new(f"add i64 {phis[0]}, {w.new(f'mul i64 {at}, %n') if multiplied else at}")]

    def outer(phis: list[str]) -> list[str]:
        return counted(w, "b", ("0", "%n"), 1, NOTHING, [("i64", phis[0])], inner)

    (r,) = counted(w, "a", ("0", "%n"), 1, NOTHING, [("i64", "0")], outer)
    hidden = sum("llvm.expect" in line for line in w.out.lines)
    assert hidden == indexed * (1 if multiplied else 2)
    f = of_n(w, r)
    for size in (1, 2, 7):
        assert f(size) == size * sum(range(size)) * (size if multiplied else 1)
