"""Sums of multiples: exact modulo 2**64, in one form, linear on long chains."""

import itertools

import numpy as np
import pytest

from calque.native.scalars import sums
from calque.native.scalars.expr import ex, linear
from calque.native.scalars.node import Expr, const, make, param, var, wrap
from calque.native.scalars.sums import ONE, ZERO

n, m = var("n"), var("m")
i, j, k = var("i", n), var("j", m), var("k", 12)
LEAVES = [n, m, i, j, k]


def value(e: Expr, names: dict[str, int]) -> int:
    """What an index expression is, in numbers of 64 bits."""
    if e.op == "const":
        return int(e.attr)
    if e.op in ("var", "param"):
        return names[e.attr[0]]
    a, b = (value(x, names) for x in e.args)
    f = {"add": a + b, "sub": a - b, "mul": a * b, "floordiv": a // b if b else 0}
    f["mod"] = a % b if b else 0
    return wrap(f[e.op], "i64")


def random_sum(rng: np.random.Generator, steps: int) -> Expr:
    e = LEAVES[rng.integers(5)]
    for _ in range(steps):
        other = LEAVES[rng.integers(5)] if rng.random() < 0.7 else const(int(rng.integers(-5, 6)))
        op = (sums.add, sums.sub, sums.mul)[rng.integers(3)]
        e = op(e, const(int(rng.integers(-4, 5)))) if op is sums.mul else op(e, other)
    return e


def test_random_sums_keep_their_values() -> None:
    rng = np.random.default_rng(0)
    names = {"n": 7, "m": 2**62, "i": 6, "j": -(2**61), "k": 11}
    for _ in range(300):
        a, b = random_sum(rng, int(rng.integers(1, 7))), random_sum(rng, int(rng.integers(1, 7)))
        x, y = value(a, names), value(b, names)
        assert value(sums.add(a, b), names) == wrap(x + y, "i64")
        assert value(sums.sub(a, b), names) == wrap(x - y, "i64")
        assert value(sums.mul(a, const(3)), names) == wrap(3 * x, "i64")
        t, c = sums.terms(a)
        assert wrap(sum(f * value(e, names) for e, f in t.items()) + c, "i64") == x
        assert 0 not in t.values()
        assert value(sums.total(t, c), names) == x


def test_one_form_for_all_orders() -> None:
    """What cancels is gone, whatever the order in which it came."""
    for a, b, c in itertools.permutations((i, j, const(4))):
        left = sums.add(sums.add(a, b), c)
        assert sums.sub(sums.sub(left, b), c) is a
        assert sums.sub(left, sums.add(c, sums.add(a, b))) is ZERO
    assert sums.add(i, i) is sums.mul(i, const(2))
    assert sums.sub(sums.mul(sums.add(i, j), const(3)), sums.mul(j, const(3))) is sums.mul(
        i, const(3)
    )


def test_units() -> None:
    assert sums.add(i, ZERO) is i and sums.add(ZERO, i) is i and sums.sub(i, i) is ZERO
    assert sums.mul(i, ONE) is i and sums.mul(const(0), i) is ZERO and sums.mul(ONE, i) is i
    assert sums.add(const(2), const(3)) is const(5) and sums.mul(const(2), const(3)) is const(6)
    assert sums.mul(i, j).op == "mul" and sums.mul(i, j).args == (i, j)


@pytest.mark.parametrize("size", [const(5), m])
def test_a_split_undone(size: Expr) -> None:
    """(x // n) * n + x % n is x, also as a part of a sum and with a factor."""
    q, r = make("floordiv", (k, size), "i64"), make("mod", (k, size), "i64")
    back = sums.add(sums.mul(q, size), r)
    assert back is k
    among = sums.add(sums.add(sums.mul(q, size), j), r)
    assert sums.terms(among) == ({j: 1, k: 1}, 0)
    four = sums.add(sums.mul(sums.mul(q, size), const(4)), sums.mul(r, const(4)))
    assert four is sums.mul(k, const(4))
    other = sums.add(sums.mul(q, size), sums.mul(r, const(2)))
    assert other is not k and r in sums.terms(other)[0]


def test_a_split_twice_undone() -> None:
    """What comes back may be a sum, whose terms join the others."""
    inner = sums.add(i, const(3))
    q, r = make("floordiv", (inner, const(4)), "i64"), make("mod", (inner, const(4)), "i64")
    assert sums.sub(sums.add(sums.mul(q, const(4)), r), const(3)) is i


def test_multiples_wrap() -> None:
    x = param("x", "i64")
    doubled = x
    for _ in range(64):
        doubled = sums.mul(doubled, const(2))
    names = {"x": 12345}
    assert value(doubled, names) == 0


def test_long_sums_are_left_as_written() -> None:
    """Beyond so many terms nothing is looked through: linear cost, and one node more each."""
    e = i
    sizes = []
    for c in range(4 * sums.MAX_TERMS):
        e = sums.add(e, var(f"v{c}", n))
        sizes.append(e.depth)
    assert sizes == list(range(2, 4 * sums.MAX_TERMS + 2))
    assert sums._size(e) == sums.MAX_TERMS + 1  # and no further is counted
    assert len(sums.terms(e)[0]) == 4 * sums.MAX_TERMS + 1


def test_the_digits_of_a_number_are_the_number() -> None:
    """Also where they are the indices of an array of twenty axes."""
    x, digits = var("x", const(2**20)), []
    left = x
    for _ in range(19):
        digits.append(ex("mod", left, const(2)))
        left = ex("floordiv", left, const(2))
    assert linear((const(2),) * 20, (left, *reversed(digits))) is x
