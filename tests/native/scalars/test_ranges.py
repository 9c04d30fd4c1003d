"""Which values expressions can take: certain answers only, checked against values."""

import itertools

import numpy as np
import pytest

from calque.native.lower.sizes import FREE_MOST, Sizes
from calque.native.scalars.expr import cast, const, ex, make, param, select, var
from calque.native.scalars.ranges import (
    INDEX_LIMIT,
    OF_DTYPE,
    SIZE_LIMIT,
    Ranges,
    at_least,
    combined,
    compare,
    interval,
    within,
)

n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)
c = const


def test_what_is_known_without_sizes():
    assert interval(c(-3)) == (-3, -3) and interval(n) == (0, SIZE_LIMIT)
    assert interval(var("k", 10)) == (0, 9) and interval(var("k", 0)) == (0, 0)
    assert interval(i) == (0, SIZE_LIMIT - 1)
    assert interval(param("w", "i32")) == OF_DTYPE["i32"] == (-(1 << 31), (1 << 31) - 1)
    assert interval(cast(param("w", "u8"), "i64")) == (0, 255)
    assert interval(cast(param("b", "i1"), "i64")) == (0, 1)


def test_ends_of_loops_cancel_extents():
    last = ex("sub", n, c(1))
    back = ex("sub", last, i)
    assert at_least(last, i) and at_least(back, c(0)) and not at_least(last, n)
    assert within(i, n) and compare("lt", back, n) is True
    inner = var("t", i)  # an extent that depends on another loop
    assert at_least(n, inner, 1) and compare("lt", inner, n) is True
    assert compare("lt", i, j) is None and compare("ge", i, i) is True


def test_sums_of_users_may_wrap():
    x = param("x", "i64")
    more = make("add", (x, c(1)), "i64")
    assert interval(more) == OF_DTYPE["i64"] and compare("lt", x, more) is None
    assert compare("le", make("min", (x, c(9)), "i64"), c(9)) is True
    narrow = ex("add", param("w", "u8"), const(1, "u8"))
    assert interval(narrow) == (0, 255)


def test_indices_do_not_wrap():
    long = ex("mul", ex("mul", n, m), n)
    assert long.index and interval(long) == (0, INDEX_LIMIT)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max", "floordiv", "mod"])
def test_intervals_hold_every_value(op):
    plain = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "min": min, "max": max, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    }[op]  # fmt: skip
    divides = op in ("floordiv", "mod")
    ends = [(a, b) for a in range(-3, 5) for b in range(a, 5)]
    for a, b in itertools.product(ends, ends):
        if divides and (a[0] < 0 or b[0] <= 0):
            continue
        values = [plain(x, y) for x in range(a[0], a[1] + 1) for y in range(b[0], b[1] + 1)]
        low, high = combined(op, a, b)
        assert low <= min(values) and high >= max(values)
        if not divides:
            assert (low, high) == (min(values), max(values))


def test_divisors_are_positive_where_they_divide():
    assert combined("floordiv", (4, 9), (0, 2)) == (2, 9)
    assert combined("mod", (0, 9), (0, 4)) == (0, 3)
    assert combined("mod", (7, 7), (4, 4)) == (3, 3)
    assert combined("mod", (-1, 7), (4, 4)) == OF_DTYPE["i64"]


class Seven(Ranges):
    """A program whose size n is 7."""

    __slots__ = ()

    def size(self, name):
        return (7, 7) if name == "n" else super().size(name)


def test_a_program_knows_its_sizes():
    known = Seven()
    assert known.interval(i) == (0, 6) and known.interval(ex("mul", i, c(2))) == (0, 12)
    assert known.compare("lt", i, c(7)) is True and compare("lt", i, c(7)) is None
    assert known.interval(m) == (0, SIZE_LIMIT)


def test_choices_that_are_certain():
    known = Seven()
    low = select(ex("lt", i, c(20)), c(1), c(100))
    high = select(ex("lt", i, c(0)), c(1), c(100))
    either = select(ex("lt", i, c(3)), c(1), c(100))
    assert known.interval(low) == (1, 1) and high.attr == 100
    assert known.interval(either) == (1, 100)
    floats = ex("lt", param("x", "f32"), const(0.0, "f32"))
    assert known.interval(select(floats, c(1), c(100))) == (1, 100)


def test_free_sizes_are_related():
    s = Sizes()
    s.free, s.values = {"n"}, {"n": 30}
    assert s.interval(n) == (1, FREE_MOST) and s.hinted.interval(n) == (30, 30)
    assert s.decide("lt", ex("sub", n, ex("add", i, c(1))), n) is True
    assert s.decide("ge", ex("sub", n, ex("add", i, c(1))), c(0)) is True
    assert s.decide("lt", i, c(30)) is None
    s.found["n"] = 12
    assert Sizes.size(s, "n") == (0, 12)


def test_deep_expressions_are_no_recursion():
    e = cast(param("w", "i32"), "i64")
    for _ in range(20_000):
        e = make("max", (e, make("min", (e, c(5)), "i64")), "i64")
    assert interval(e) == OF_DTYPE["i32"]


def test_random_expressions_stay_inside():
    rng = np.random.default_rng(0)
    sizes = {"n": 7, "m": 4}
    inside = [("i", "n"), ("j", "m")]
    for _ in range(300):
        env = dict(sizes)
        pool = [(n, 7), (m, 4), (c(3), 3), (c(-2), -2)]
        for name, extent in inside:
            env[name] = int(rng.integers(sizes[extent]))
            pool.append((i if name == "i" else j, env[name]))
        for _ in range(6):
            (a, x), (b, y) = (pool[k] for k in rng.integers(len(pool), size=2))
            op = ("add", "sub", "mul", "min", "max")[rng.integers(5)]
            v = {"add": x + y, "sub": x - y, "mul": x * y, "min": min(x, y), "max": max(x, y)}[op]
            e = ex(op, a, b)
            assert interval(e)[0] <= v <= interval(e)[1]
            for rel, truth in (("lt", x < y), ("ge", x >= y), ("eq", x == y)):
                assert compare(rel, a, b) in (None, truth)
            pool.append((e, v))
