"""The passes of a Fourier transform: sums of 2, 3, 4, 5, 7, 8 or another small prime of elements,
turned, and written in the order of Stockham.

Real and imaginary parts stand in arrays of their own, in double precision. Before a pass an array
is `r * m` rows of `s` elements: `s` independent sequences with steps of `s`. A pass of radix `r`
makes it `r * s` sequences of length `m`:

    y[q, j, p] = turn[j, p] * sum over k of root_r ** (j * k) * x[q, p + m * k]      at x[q + s * (p
    + m * k)] and y[q + s * (r * p + j)]

so after all passes the result stands in order. Several transforms side by side are merely a larger
`s` to begin with: a row is one element of each.
"""

from __future__ import annotations

import math
from typing import Final

from calque.machine.lang.unit import NULL, Unit, apart, f64, i64, load_f64, ptr, store_f64

MOST_RADIX: Final = 13  # larger primes are made of transforms of other lengths

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

unit = Unit("fft_passes")


@unit.helper
def put(yr: ptr, yi: ptr, turned: i64, w: ptr, step: i64, r: i64, j: i64, re: f64, im: f64) -> None:
    """Store element `j` of a sum, `turned` or not (which is known when this is compiled): factors
    are `step` bytes apart from those of the next `j`, imaginary ones follow."""
    if turned == 0:
        store_f64(yr, 0, re)
        store_f64(yi, 0, im)
    else:
        c = load_f64(w, (j - 1) * step)
        s = load_f64(w, (r + j - 2) * step)
        store_f64(yr, 0, re * c - im * s)
        store_f64(yi, 0, re * s + im * c)


@unit.helper
def sum_2(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of two elements that are `gap` bytes apart; results are `to` bytes apart."""
    ar, ai = load_f64(xr, 0), load_f64(xi, 0)
    br, bi = load_f64(xr, gap), load_f64(xi, gap)
    store_f64(yr, 0, ar + br)
    store_f64(yi, 0, ai + bi)
    put(yr + to, yi + to, turned, w, step, 2, 1, ar - br, ai - bi)


@unit.helper
def sum_3(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of three."""
    ar, ai = load_f64(xr, 0), load_f64(xi, 0)
    br, bi = load_f64(xr, gap), load_f64(xi, gap)
    cr, ci = load_f64(xr, 2 * gap), load_f64(xi, 2 * gap)
    pr, pi = br + cr, bi + ci
    store_f64(yr, 0, ar + pr)
    store_f64(yi, 0, ai + pi)
    mr, mi = ar - 0.5 * pr, ai - 0.5 * pi
    dr, di = _SIN_60 * (br - cr), _SIN_60 * (bi - ci)
    put(yr + to, yi + to, turned, w, step, 3, 1, mr + di, mi - dr)
    put(yr + 2 * to, yi + 2 * to, turned, w, step, 3, 2, mr - di, mi + dr)


@unit.helper
def sum_4(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of four."""
    ar, ai = load_f64(xr, 0), load_f64(xi, 0)
    br, bi = load_f64(xr, gap), load_f64(xi, gap)
    cr, ci = load_f64(xr, 2 * gap), load_f64(xi, 2 * gap)
    dr, di = load_f64(xr, 3 * gap), load_f64(xi, 3 * gap)
    er, ei, fr, fi = ar + cr, ai + ci, ar - cr, ai - ci
    gr, gi, hr, hi = br + dr, bi + di, br - dr, bi - di
    store_f64(yr, 0, er + gr)
    store_f64(yi, 0, ei + gi)
    put(yr + to, yi + to, turned, w, step, 4, 1, fr + hi, fi - hr)
    put(yr + 2 * to, yi + 2 * to, turned, w, step, 4, 2, er - gr, ei - gi)
    put(yr + 3 * to, yi + 3 * to, turned, w, step, 4, 3, fr - hi, fi + hr)


@unit.helper
def sum_5(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of five."""
    ar, ai = load_f64(xr, 0), load_f64(xi, 0)
    br, bi = load_f64(xr, gap), load_f64(xi, gap)
    cr, ci = load_f64(xr, 2 * gap), load_f64(xi, 2 * gap)
    dr, di = load_f64(xr, 3 * gap), load_f64(xi, 3 * gap)
    er, ei = load_f64(xr, 4 * gap), load_f64(xi, 4 * gap)
    pr, pi, tr, ti = br + er, bi + ei, br - er, bi - ei
    qr, qi, ur, ui = cr + dr, ci + di, cr - dr, ci - di
    store_f64(yr, 0, ar + pr + qr)
    store_f64(yi, 0, ai + pi + qi)
    mr, mi = ar + _COS_72 * pr + _COS_144 * qr, ai + _COS_72 * pi + _COS_144 * qi
    nr, ni = _SIN_72 * tr + _SIN_144 * ur, _SIN_72 * ti + _SIN_144 * ui
    put(yr + to, yi + to, turned, w, step, 5, 1, mr + ni, mi - nr)
    put(yr + 4 * to, yi + 4 * to, turned, w, step, 5, 4, mr - ni, mi + nr)
    mr, mi = ar + _COS_144 * pr + _COS_72 * qr, ai + _COS_144 * pi + _COS_72 * qi
    nr, ni = _SIN_144 * tr - _SIN_72 * ur, _SIN_144 * ti - _SIN_72 * ui
    put(yr + 2 * to, yi + 2 * to, turned, w, step, 5, 2, mr + ni, mi - nr)
    put(yr + 3 * to, yi + 3 * to, turned, w, step, 5, 3, mr - ni, mi + nr)


@unit.helper
def mixed(a: f64, p: f64, q: f64, r: f64, c1: f64, c2: f64, c3: f64) -> f64:
    """A sum of multiples."""
    return a + c1 * p + (c2 * q + c3 * r)


@unit.helper
def facing(
    yr: ptr,
    yi: ptr,
    to: i64,
    turned: i64,
    w: ptr,
    step: i64,
    j: i64,
    mr: f64,
    mi: f64,
    nr: f64,
    ni: f64,
) -> None:
    """Elements `j` and `7 - j` of the sums of seven, from what they have in common and what differs
    in sign."""
    put(yr + j * to, yi + j * to, turned, w, step, 7, j, mr + ni, mi - nr)
    put(yr + (7 - j) * to, yi + (7 - j) * to, turned, w, step, 7, 7 - j, mr - ni, mi + nr)


@unit.helper
def sum_7(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of seven."""
    ar, ai = load_f64(xr, 0), load_f64(xi, 0)
    br, bi = load_f64(xr, gap), load_f64(xi, gap)
    cr, ci = load_f64(xr, 2 * gap), load_f64(xi, 2 * gap)
    dr, di = load_f64(xr, 3 * gap), load_f64(xi, 3 * gap)
    er, ei = load_f64(xr, 4 * gap), load_f64(xi, 4 * gap)
    fr, fi = load_f64(xr, 5 * gap), load_f64(xi, 5 * gap)
    gr, gi = load_f64(xr, 6 * gap), load_f64(xi, 6 * gap)
    pr, pi, tr, ti = br + gr, bi + gi, br - gr, bi - gi
    qr, qi, ur, ui = cr + fr, ci + fi, cr - fr, ci - fi
    rr, ri, vr, vi = dr + er, di + ei, dr - er, di - ei
    store_f64(yr, 0, ar + pr + (qr + rr))
    store_f64(yi, 0, ai + pi + (qi + ri))
    mr, mi = mixed(ar, pr, qr, rr, _C1, _C2, _C3), mixed(ai, pi, qi, ri, _C1, _C2, _C3)
    nr, ni = mixed(0.0, tr, ur, vr, _S1, _S2, _S3), mixed(0.0, ti, ui, vi, _S1, _S2, _S3)
    facing(yr, yi, to, turned, w, step, 1, mr, mi, nr, ni)
    mr, mi = mixed(ar, pr, qr, rr, _C2, _C3, _C1), mixed(ai, pi, qi, ri, _C2, _C3, _C1)
    nr, ni = mixed(0.0, tr, ur, vr, _S2, -_S3, -_S1), mixed(0.0, ti, ui, vi, _S2, -_S3, -_S1)
    facing(yr, yi, to, turned, w, step, 2, mr, mi, nr, ni)
    mr, mi = mixed(ar, pr, qr, rr, _C3, _C1, _C2), mixed(ai, pi, qi, ri, _C3, _C1, _C2)
    nr, ni = mixed(0.0, tr, ur, vr, _S3, -_S1, _S2), mixed(0.0, ti, ui, vi, _S3, -_S1, _S2)
    facing(yr, yi, to, turned, w, step, 3, mr, mi, nr, ni)


@unit.helper
def both(
    yr: ptr,
    yi: ptr,
    to: i64,
    turned: i64,
    w: ptr,
    step: i64,
    j: i64,
    er: f64,
    ei: f64,
    fr: f64,
    fi: f64,
) -> None:
    """Elements `j` and `j + 4` of the sums of eight: the sum and the difference of those of the
    even and of the odd ones."""
    put(yr + j * to, yi + j * to, turned, w, step, 8, j, er + fr, ei + fi)
    put(yr + (j + 4) * to, yi + (j + 4) * to, turned, w, step, 8, j + 4, er - fr, ei - fi)


@unit.helper
def sum_8(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of eight: those of the four even ones and of the four odd ones."""
    ar, ai = load_f64(xr, 0), load_f64(xi, 0)
    er, ei = load_f64(xr, 4 * gap), load_f64(xi, 4 * gap)
    cr, ci = load_f64(xr, 2 * gap), load_f64(xi, 2 * gap)
    gr, gi = load_f64(xr, 6 * gap), load_f64(xi, 6 * gap)
    pr, pi, qr, qi = ar + er, ai + ei, ar - er, ai - ei
    rr, ri, sr, si = cr + gr, ci + gi, cr - gr, ci - gi
    br, bi = load_f64(xr, gap), load_f64(xi, gap)
    fr, fi = load_f64(xr, 5 * gap), load_f64(xi, 5 * gap)
    dr, di = load_f64(xr, 3 * gap), load_f64(xi, 3 * gap)
    hr, hi = load_f64(xr, 7 * gap), load_f64(xi, 7 * gap)
    tr, ti, ur, ui = br + fr, bi + fi, br - fr, bi - fi
    vr, vi, zr, zi = dr + hr, di + hi, dr - hr, di - hi
    kr, ki, lr, li = pr + rr, pi + ri, tr + vr, ti + vi
    store_f64(yr, 0, kr + lr)
    store_f64(yi, 0, ki + li)
    put(yr + 4 * to, yi + 4 * to, turned, w, step, 8, 4, kr - lr, ki - li)
    both(yr, yi, to, turned, w, step, 2, pr - rr, pi - ri, ti - vi, vr - tr)
    kr, ki = ur + zi, ui - zr
    both(
        yr,
        yi,
        to,
        turned,
        w,
        step,
        1,
        qr + si,
        qi - sr,
        _HALF_ROOT * (kr + ki),
        _HALF_ROOT * (ki - kr),
    )
    kr, ki = ur - zi, ui + zr
    both(
        yr,
        yi,
        to,
        turned,
        w,
        step,
        3,
        qr - si,
        qi + sr,
        _HALF_ROOT * (ki - kr),
        -(_HALF_ROOT * (ki + kr)),
    )


@unit.helper
def sums(
    r: i64, xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of `r`, which is known when this is compiled."""
    match r:
        case 2:
            sum_2(xr, xi, yr, yi, gap, to, turned, w, step)
        case 3:
            sum_3(xr, xi, yr, yi, gap, to, turned, w, step)
        case 4:
            sum_4(xr, xi, yr, yi, gap, to, turned, w, step)
        case 5:
            sum_5(xr, xi, yr, yi, gap, to, turned, w, step)
        case 7:
            sum_7(xr, xi, yr, yi, gap, to, turned, w, step)
        case _:
            sum_8(xr, xi, yr, yi, gap, to, turned, w, step)


@unit.helper
def all_sums(r: i64, xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass. Vectors run over the sequences, or, while there is only one, over its sums."""
    if m == 1:
        for q in apart(s):
            sums(r, xr + 8 * q, xi + 8 * q, yr + 8 * q, yi + 8 * q, 8 * s, 8 * s, 0, NULL, 0)
    elif s == 1:
        for p in apart(m):
            sums(
                r,
                xr + 8 * p,
                xi + 8 * p,
                yr + 8 * r * p,
                yi + 8 * r * p,
                8 * m,
                8,
                1,
                w + 8 * p,
                8 * m,
            )
    else:
        for p in range(m):
            at = 8 * p * s
            for q in apart(s):
                sums(
                    r,
                    xr + at + 8 * q,
                    xi + at + 8 * q,
                    yr + r * at + 8 * q,
                    yi + r * at + 8 * q,
                    8 * m * s,
                    8 * s,
                    1,
                    w + 8 * p,
                    8 * m,
                )


@unit.function
def fft_pass_2(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of radix 2."""
    all_sums(2, xr, xi, yr, yi, w, m, s)


@unit.function
def fft_pass_3(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of radix 3."""
    all_sums(3, xr, xi, yr, yi, w, m, s)


@unit.function
def fft_pass_4(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of radix 4."""
    all_sums(4, xr, xi, yr, yi, w, m, s)


@unit.function
def fft_pass_5(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of radix 5."""
    all_sums(5, xr, xi, yr, yi, w, m, s)


@unit.function
def fft_pass_7(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of radix 7."""
    all_sums(7, xr, xi, yr, yi, w, m, s)


@unit.function
def fft_pass_8(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of radix 8."""
    all_sums(8, xr, xi, yr, yi, w, m, s)


@unit.helper
def add_turned(xr: ptr, xi: ptr, yr: ptr, yi: ptr, to: i64, c: f64, s: f64, count: i64) -> None:
    """Add elements that follow each other, turned by an angle, to some that are `to` bytes
    apart."""
    for q in apart(count):
        ar, ai = load_f64(xr, 8 * q), load_f64(xi, 8 * q)
        store_f64(yr, to * q, load_f64(yr, to * q) + (ar * c - ai * s))
        store_f64(yi, to * q, load_f64(yi, to * q) + (ar * s + ai * c))


@unit.helper
def turn(yr: ptr, yi: ptr, to: i64, w: ptr, gap: i64, step: i64, count: i64) -> None:
    """Turn elements that are `to` bytes apart by factors that are `step` bytes apart, `gap` bytes
    between the two parts."""
    for q in apart(count):
        c, s = load_f64(w, step * q), load_f64(w, gap + step * q)
        ar, ai = load_f64(yr, to * q), load_f64(yi, to * q)
        store_f64(yr, to * q, ar * c - ai * s)
        store_f64(yi, to * q, ar * s + ai * c)


@unit.function
def fft_sum_any(
    r: i64, j: i64, x: ptr, xi: ptr, y: ptr, yi: ptr, roots: ptr, gap: i64, count: i64, to: i64
) -> None:
    """Element `j` of the sums of `r`, for sequences that stand side by side; the roots of order `r`
    are given."""
    for q in range(count):
        store_f64(y, to * q, load_f64(x, 8 * q))
        store_f64(yi, to * q, load_f64(xi, 8 * q))
    for k in range(1, r):
        c = load_f64(roots, 8 * (j * k % r))
        s = load_f64(roots, 8 * (r + j * k % r))
        if to == 8:
            add_turned(x + k * gap, xi + k * gap, y, yi, 8, c, s, count)
        else:
            add_turned(x + k * gap, xi + k * gap, y, yi, to, c, s, count)


@unit.function
def fft_pass_any(r: i64, xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of any radix. Its roots stand behind the factors."""
    gap = 8 * m * s
    factors = 8 * (r - 1) * m
    roots = w + 2 * factors
    for j in range(r):
        if s == 1:
            fft_sum_any(r, j, xr, xi, yr + 8 * j, yi + 8 * j, roots, gap, m, 8 * r)
            if j > 0 and m > 1:
                turn(yr + 8 * j, yi + 8 * j, 8 * r, w + 8 * (j - 1) * m, factors, 8, m)
        else:
            for p in range(m):
                at = 8 * p * s
                to = 8 * s * (r * p + j)
                fft_sum_any(r, j, xr + at, xi + at, yr + to, yi + to, roots, gap, s, 8)
                if j > 0 and m > 1:
                    turn(yr + to, yi + to, 8, w + 8 * ((j - 1) * m + p), factors, 0, s)


@unit.function
def fft_pass(r: i64, xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """One pass from `x` to `y`: `m` is the length that is left behind it, `s` the number of
    sequences before it."""
    match r:
        case 2:
            fft_pass_2(xr, xi, yr, yi, w, m, s)
        case 3:
            fft_pass_3(xr, xi, yr, yi, w, m, s)
        case 4:
            fft_pass_4(xr, xi, yr, yi, w, m, s)
        case 5:
            fft_pass_5(xr, xi, yr, yi, w, m, s)
        case 7:
            fft_pass_7(xr, xi, yr, yi, w, m, s)
        case 8:
            fft_pass_8(xr, xi, yr, yi, w, m, s)
        case _:
            fft_pass_any(r, xr, xi, yr, yi, w, m, s)
