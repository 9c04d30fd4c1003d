"""The sums of a Fourier transform of 2, 3, 4, 5, 7 or 8 complex numbers, as text of LLVM: element
`j` is the sum over `k` of `root ** (j * k)` times number `k`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from calque.machine.records import record
from calque.machine.routines.fft.vectors import Code, Kind

_HALF_ROOT: Final = math.sqrt(0.5)
_SIN_60: Final = math.sqrt(0.75)
_COS_72: Final = (math.sqrt(5.0) - 1.0) / 4.0
_COS_144: Final = -(math.sqrt(5.0) + 1.0) / 4.0
_SIN_72: Final = 0.9510565162951535
_SIN_144: Final = 0.5877852522924731
# Cosines and sines of one, two and three sevenths of a turn.
_C1: Final = 0.6234898018587335
_C2: Final = -0.2225209339563144
_C3: Final = -0.9009688679024191
_S1: Final = 0.7818314824680298
_S2: Final = 0.9749279121818236
_S3: Final = 0.4338837391175581


@record
class Real:
    """Numbers side by side; arithmetic with them becomes text."""

    code: Code
    kind: Kind
    text: str

    def _made(self, operation: str, other: Real | float) -> Real:
        right = other.text if isinstance(other, Real) else self.kind.constant(other)
        text = self.code.let(f"{operation} {self.kind.text} {self.text}, {right}")
        return Real(self.code, self.kind, text)

    def __add__(self, other: Real | float) -> Real:
        return self._made("fadd", other)

    def __sub__(self, other: Real) -> Real:
        return self._made("fsub", other)

    def __mul__(self, other: Real | float) -> Real:
        return self._made("fmul", other)


@record
class Complex:
    """Complex numbers side by side."""

    re: Real
    im: Real

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: float) -> Complex:
        return Complex(self.re * other, self.im * other)

    def above_zero(self) -> Complex:
        """The same numbers with zeros that are not negative."""
        return Complex(self.re + 0.0, self.im + 0.0)

    def plus_i(self, other: Complex) -> Complex:
        """The sum with `i` times others."""
        return Complex(self.re - other.im, self.im + other.re)

    def minus_i(self, other: Complex) -> Complex:
        """The difference from `i` times others."""
        return Complex(self.re + other.im, self.im - other.re)

    def turned(self, c: Real, s: Real) -> Complex:
        """The product with `c + i * s`."""
        return Complex(self.re * c - self.im * s, self.re * s + self.im * c)


# Elements in the order in which they are known, with their numbers.
Elements = Iterator[tuple[int, Complex]]


def sum_2(x: Sequence[Complex]) -> Elements:
    """Two."""
    a, b = x
    yield 0, a + b
    yield 1, a - b


def sum_3(x: Sequence[Complex]) -> Elements:
    """Three."""
    a, b, c = x
    p = b + c
    yield 0, a + p
    m, d = a - p * 0.5, (b - c) * _SIN_60
    yield 1, m.minus_i(d)
    yield 2, m.plus_i(d)


def sum_4(x: Sequence[Complex]) -> Elements:
    """Four."""
    a, b, c, d = x
    e, f, g, h = a + c, a - c, b + d, b - d
    yield 0, e + g
    yield 1, f.minus_i(h)
    yield 2, e - g
    yield 3, f.plus_i(h)


def sum_5(x: Sequence[Complex]) -> Elements:
    """Five."""
    a, b, c, d, e = x
    p, t, q, u = b + e, b - e, c + d, c - d
    yield 0, a + p + q
    m, n = a + p * _COS_72 + q * _COS_144, t * _SIN_72 + u * _SIN_144
    yield 1, m.minus_i(n)
    yield 4, m.plus_i(n)
    m, n = a + p * _COS_144 + q * _COS_72, t * _SIN_144 - u * _SIN_72
    yield 2, m.minus_i(n)
    yield 3, m.plus_i(n)


def sum_7(x: Sequence[Complex]) -> Elements:
    """Seven: those that face each other, from what they have in common and what differs in sign."""
    a, b, c, d, e, f, g = x
    p, q, r = b + g, c + f, d + e
    t, u, v = b - g, c - f, d - e
    yield 0, a + p + (q + r)
    for j, cosines, sines in (
        (1, (_C1, _C2, _C3), (_S1, _S2, _S3)),
        (2, (_C2, _C3, _C1), (_S2, -_S3, -_S1)),
        (3, (_C3, _C1, _C2), (_S3, -_S1, _S2)),
    ):
        m = a + p * cosines[0] + (q * cosines[1] + r * cosines[2])
        n = (t * sines[0]).above_zero() + (u * sines[1] + v * sines[2])
        yield j, m.minus_i(n)
        yield 7 - j, m.plus_i(n)


def sum_8(x: Sequence[Complex]) -> Elements:
    """Eight: those of the four even ones and of the four odd ones."""
    a, b, c, d, e, f, g, h = x
    p, q, r, s = a + e, a - e, c + g, c - g
    t, u, v, z = b + f, b - f, d + h, d - h
    k, m = p + r, t + v
    yield 0, k + m
    yield 4, k - m
    k, m = p - r, Complex(t.im - v.im, v.re - t.re)
    yield 2, k + m
    yield 6, k - m
    k, m = q.minus_i(s), u.minus_i(z)
    m = Complex(m.re + m.im, m.im - m.re) * _HALF_ROOT
    yield 1, k + m
    yield 5, k - m
    k, m = q.plus_i(s), u.plus_i(z)
    m = Complex(m.im - m.re, m.im + m.re) * _HALF_ROOT
    yield 3, Complex(k.re + m.re, k.im - m.im)
    yield 7, Complex(k.re - m.re, k.im + m.im)


SUMS: Final[dict[int, Callable[[Sequence[Complex]], Elements]]] = {
    2: sum_2,
    3: sum_3,
    4: sum_4,
    5: sum_5,
    7: sum_7,
    8: sum_8,
}
