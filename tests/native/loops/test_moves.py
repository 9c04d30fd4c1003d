"""Statements that only move elements."""

from calque.native.loops.moves import is_move, is_pair, moved_pair, moved_pairs
from calque.native.loops.tree import Acc, For, Statement, Store
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, ref, var

N = ref("n", "i64")
I, J = var("i", N), var("j", N)
ZERO, ONE, TWO = const(0), const(1), const(2)
X, Y = Buffer("x", (N, N), "f32"), Buffer("y", (N, N), "f32")
Z, W = Buffer("z", (N, N, 2), "f32"), Buffer("w", (N, N, 2), "f32")


def part(k: Expr, value: Expr | None = None) -> Store:
    """One part of a complex number, from the same part of another one."""
    return Store(W, (I, J, k), load(Z, (J, I, k)) if value is None else value)


def test_what_only_moves() -> None:
    moved = Store(Y, (I, J), load(X, (J, I)))
    assert is_move((moved,)) and is_move((For(J, (moved,)),))
    x = load(X, (I, J))
    others: list[Statement] = [
        Store(Y, (I, J), ex("add", x, x)),
        Store(Y, (I, J), x, ex("lt", I, N)),
        Store(Y, (I, J), load(X, (I, J), ex("lt", I, N))),
        Store(Buffer("s", (4,), "f32", "stack"), (ZERO,), x),
        Store(Buffer("b", (N, N), "u8"), (I, J), load(Buffer("a", (N, N), "i1"), (I, J))),
        Store(X, (I, J), load(X, (J, I))),
        For(J, (moved,), (Acc("s", "sum", x),)),
    ]
    assert not any(is_move((s,)) for s in others)
    # where the second may stand in the memory that the first is read from
    assert not is_move((moved, Store(Buffer("d", (N, N), "f32"), (I, J), load(W, (I, J, ZERO)))))


def test_parts_of_complex_numbers() -> None:
    pair = Buffer("z", (N, 2), "f32")
    assert is_pair(pair, (I, ZERO)) and is_pair(pair, (I, ONE))
    assert not is_pair(pair, (I, J)) and not is_pair(X, (I, ONE))
    assert not is_pair(pair, (I, TWO)) and not is_pair(Buffer("z", (2,), "f32"), (ZERO,))


def test_complex_numbers_that_move() -> None:
    a, b = part(ZERO), part(ONE)
    assert moved_pair(a, b) == moved_pair(b, a) == (Z, (J, I, ZERO))
    conjugated = part(ONE, ex("neg", load(Z, (J, I, ONE))))
    crossed = part(ONE, load(Z, (J, I, ZERO)))
    elsewhere = part(ONE, load(Z, (I, J, ONE)))
    guarded = part(ONE, load(Z, (J, I, ONE), ex("lt", I, N)))
    for other in (a, conjugated, crossed, elsewhere, guarded):
        assert moved_pair(a, other) is None
    mixed = part(ZERO, load(Z, (J, I, ONE))), part(ONE, load(Z, (J, I, ZERO)))
    assert moved_pair(*mixed) is None


def test_steps_of_what_moves() -> None:
    a, b = part(ZERO), part(ONE)
    assert moved_pairs((a, b)) == moved_pairs((a, b, a, b)) == 2
    assert moved_pairs((a,)) == moved_pairs((a, b, a)) == 1
    assert moved_pairs((Store(Y, (I, J), load(X, (J, I))),)) == 1
