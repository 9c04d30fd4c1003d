"""Polynomials with integer coefficients, held against their values at points."""

import itertools
import random

import pytest

from calque.core.polynomials import Poly, divided, multiplied, summed, without

POINTS = list(itertools.product((1, 2, 5), (1, 3, 4), (0, 7)))


def value(p: Poly, point: tuple[int, ...]) -> int:
    total = 0
    for monomial, c in p:
        for i in monomial:
            c *= point[i]
        total += c
    return total


def drawn(seed: int) -> Poly:
    rng = random.Random(seed)
    terms = {
        tuple(sorted(rng.choices(range(3), k=rng.randrange(3)))): rng.randint(-3, 3) for _ in "abc"
    }
    return tuple(sorted((m, c) for m, c in terms.items() if c))


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_products_have_the_values_of_their_parts(seed: int) -> None:
    a, b = drawn(seed), drawn(seed + 100)
    for p in POINTS:
        assert value(summed(a, b), p) == value(a, p) + value(b, p)
        assert value(summed(a, b, -1), p) == value(a, p) - value(b, p)
        assert value(multiplied(a, b), p) == value(a, p) * value(b, p)


@pytest.mark.parametrize("seed", range(20))
def test_equal_polynomials_are_written_alike(seed: int) -> None:
    a, b = drawn(seed), drawn(seed + 100)
    assert summed(a, b) == summed(b, a) and multiplied(a, b) == multiplied(b, a)
    assert summed(a, a, -1) == () and multiplied(a, ()) == ()
    assert all(c for _, c in multiplied(a, b))


def test_a_monomial_divides_another() -> None:
    assert without((0, 0, 1), (0, 1)) == (0,)
    assert without((0, 1), (0, 1)) == ()
    assert without((0, 1), (0, 0)) is None
    assert without((), (2,)) is None


@pytest.mark.parametrize("seed", range(20))
def test_division_by_one_term(seed: int) -> None:
    a = drawn(seed)
    for b in ((((), 2),), (((0,), 1),), (((0, 1), -3),)):
        found = divided(a, b)
        assert found is not None
        q, r = found
        assert all(value(a, p) == value(q, p) * value(b, p) + value(r, p) for p in POINTS)
        if b[0][0] == ():
            assert all(0 <= c < 2 for _, c in r)


@pytest.mark.parametrize("seed", range(40))
def test_division_by_more_terms_where_nothing_is_left(seed: int) -> None:
    a, b = drawn(seed), drawn(seed + 100)
    if len(b) < 2:
        b = summed(b, (((), 5), ((0, 1), -2)))
    assert divided(multiplied(a, b), b) == (a, ())
    assert divided(summed(multiplied(a, b), (((), 1),)), b) is None


def test_division_by_more_terms_is_exact_or_none() -> None:
    two = (((), 1), ((0,), 1))
    assert divided(two, two) == ((((), 1),), ())
    assert divided(summed(two, two), two) == ((((), 2),), ())
    assert divided(two, summed(two, two)) is None  # not in whole numbers
