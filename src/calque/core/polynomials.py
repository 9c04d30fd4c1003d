"""Polynomials with integer coefficients: what sizes are made of."""

from __future__ import annotations

Monomial = tuple[int, ...]  # numbers of atoms, sorted, a square stands twice
Poly = tuple[tuple[Monomial, int], ...]  # sorted (monomial, coefficient) pairs, no zeros


def summed(a: Poly, b: Poly, sign: int = 1) -> Poly:
    out = dict(a)
    for monomial, c in b:
        out[monomial] = out.get(monomial, 0) + sign * c
    return tuple(sorted((m, c) for m, c in out.items() if c))


def multiplied(a: Poly, b: Poly) -> Poly:
    out: dict[Monomial, int] = {}
    for m1, c1 in a:
        for m2, c2 in b:
            m = tuple(sorted(m1 + m2))
            out[m] = out.get(m, 0) + c1 * c2
    return tuple(sorted((m, c) for m, c in out.items() if c))


def without(m: Monomial, part: Monomial) -> Monomial | None:
    """A monomial divided by another, if that leaves one."""
    rest = list(m)
    for i in part:
        if i not in rest:
            return None
        rest.remove(i)
    return tuple(rest)


def divided(a: Poly, b: Poly) -> tuple[Poly, Poly] | None:
    """(q, r) with a = q * b + r as far as the terms of `a` are multiples of the single term of
    `b`. By several terms what leaves no rest is divided."""
    if len(b) != 1:
        quotient = _exact(a, b)
        return None if quotient is None else (quotient, ())
    mb, cb = b[0]
    q, r = [], []
    for m, c in a:
        rest = without(m, mb)
        whole, left = divmod(c, cb) if rest is not None else (0, c)
        if rest is not None and whole:
            q.append((rest, whole))
        if left:
            r.append((m, left))
    return tuple(sorted(q)), tuple(r)


def _exact(a: Poly, b: Poly) -> Poly | None:
    """a / b, where that is a polynomial: the leading terms are divided until nothing is left."""
    mb, cb = _leading(b)
    q: Poly = ()
    while a:
        m, c = _leading(a)
        rest = without(m, mb)
        if rest is None or c % cb:
            return None
        term: Poly = ((rest, c // cb),)
        q, a = summed(q, term), summed(a, multiplied(term, b), -1)
    return q


def _leading(a: Poly) -> tuple[Monomial, int]:
    """The term of the highest degree; of those that of the most of the first atom, and so on: an
    order that products keep."""
    return min(a, key=lambda term: (-len(term[0]), term[0]))
