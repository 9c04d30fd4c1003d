"""The passes of a Fourier transform: sums of 2, 3, 4, 5, 7, 8 or another small prime of elements,
turned, and written in the order of Stockham.

Real and imaginary parts stand in arrays of their own. Before a pass an array
is `r * m` rows of `s` elements: `s` independent sequences with steps of `s`. A pass of radix `r`
makes it `r * s` sequences of length `m`:

    y[q, j, p] = turn[j, p] * sum over k of root_r ** (j * k) * x[q, p + m * k]      at x[q + s * (p
    + m * k)] and y[q + s * (r * p + j)]

so after all passes the result stands in order. Several transforms side by side are merely a larger
`s` to begin with: a row is one element of each.
"""

from __future__ import annotations

import math
from typing import Any, Final

from calque.machine.lang.types import Function
from calque.machine.lang.unit import NULL, Unit, apart, i64, ptr
from calque.machine.routines.fft.numbers import (
    ITEM,
    LANES,
    SINGLE,
    SINGLE_ITEM,
    SINGLE_NAMES,
    load_number,
    number,
    store_number,
)

MOST_RADIX: Final = 47  # larger primes are made of transforms of other lengths
OWN_SUMS: Final = (2, 3, 4, 5, 7, 8)  # the radices whose sums are written out

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

# The first has what is put in their places; a program compiles the passes of its radices alone.
unit = Unit("fft_sums")
one_pass = Unit("fft_pass")
others = Unit("fft_pass_any")


@unit.helper
def put(
    yr: ptr, yi: ptr, turned: i64, w: ptr, step: i64, r: i64, j: i64, re: number, im: number
) -> None:
    """Store element `j` of a sum, `turned` or not (which is known when this is compiled): factors
    are `step` bytes apart from those of the next `j`, imaginary ones follow."""
    if turned == 0:
        store_number(yr, 0, re)
        store_number(yi, 0, im)
    else:
        c = load_number(w, (j - 1) * step)
        s = load_number(w, (r + j - 2) * step)
        store_number(yr, 0, re * c - im * s)
        store_number(yi, 0, re * s + im * c)


@unit.helper
def sum_2(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of two elements that are `gap` bytes apart; results are `to` bytes apart."""
    ar, ai = load_number(xr, 0), load_number(xi, 0)
    br, bi = load_number(xr, gap), load_number(xi, gap)
    store_number(yr, 0, ar + br)
    store_number(yi, 0, ai + bi)
    put(yr + to, yi + to, turned, w, step, 2, 1, ar - br, ai - bi)


@unit.helper
def sum_3(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of three."""
    ar, ai = load_number(xr, 0), load_number(xi, 0)
    br, bi = load_number(xr, gap), load_number(xi, gap)
    cr, ci = load_number(xr, 2 * gap), load_number(xi, 2 * gap)
    pr, pi = br + cr, bi + ci
    store_number(yr, 0, ar + pr)
    store_number(yi, 0, ai + pi)
    mr, mi = ar - 0.5 * pr, ai - 0.5 * pi
    dr, di = _SIN_60 * (br - cr), _SIN_60 * (bi - ci)
    put(yr + to, yi + to, turned, w, step, 3, 1, mr + di, mi - dr)
    put(yr + 2 * to, yi + 2 * to, turned, w, step, 3, 2, mr - di, mi + dr)


@unit.helper
def sum_4(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of four."""
    ar, ai = load_number(xr, 0), load_number(xi, 0)
    br, bi = load_number(xr, gap), load_number(xi, gap)
    cr, ci = load_number(xr, 2 * gap), load_number(xi, 2 * gap)
    dr, di = load_number(xr, 3 * gap), load_number(xi, 3 * gap)
    er, ei, fr, fi = ar + cr, ai + ci, ar - cr, ai - ci
    gr, gi, hr, hi = br + dr, bi + di, br - dr, bi - di
    store_number(yr, 0, er + gr)
    store_number(yi, 0, ei + gi)
    put(yr + to, yi + to, turned, w, step, 4, 1, fr + hi, fi - hr)
    put(yr + 2 * to, yi + 2 * to, turned, w, step, 4, 2, er - gr, ei - gi)
    put(yr + 3 * to, yi + 3 * to, turned, w, step, 4, 3, fr - hi, fi + hr)


@unit.helper
def sum_5(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """The sums of five."""
    ar, ai = load_number(xr, 0), load_number(xi, 0)
    br, bi = load_number(xr, gap), load_number(xi, gap)
    cr, ci = load_number(xr, 2 * gap), load_number(xi, 2 * gap)
    dr, di = load_number(xr, 3 * gap), load_number(xi, 3 * gap)
    er, ei = load_number(xr, 4 * gap), load_number(xi, 4 * gap)
    pr, pi, tr, ti = br + er, bi + ei, br - er, bi - ei
    qr, qi, ur, ui = cr + dr, ci + di, cr - dr, ci - di
    store_number(yr, 0, ar + pr + qr)
    store_number(yi, 0, ai + pi + qi)
    mr, mi = ar + _COS_72 * pr + _COS_144 * qr, ai + _COS_72 * pi + _COS_144 * qi
    nr, ni = _SIN_72 * tr + _SIN_144 * ur, _SIN_72 * ti + _SIN_144 * ui
    put(yr + to, yi + to, turned, w, step, 5, 1, mr + ni, mi - nr)
    put(yr + 4 * to, yi + 4 * to, turned, w, step, 5, 4, mr - ni, mi + nr)
    mr, mi = ar + _COS_144 * pr + _COS_72 * qr, ai + _COS_144 * pi + _COS_72 * qi
    nr, ni = _SIN_144 * tr - _SIN_72 * ur, _SIN_144 * ti - _SIN_72 * ui
    put(yr + 2 * to, yi + 2 * to, turned, w, step, 5, 2, mr + ni, mi - nr)
    put(yr + 3 * to, yi + 3 * to, turned, w, step, 5, 3, mr - ni, mi + nr)


@unit.helper
def mixed(a: number, p: number, q: number, r: number, c1: number, c2: number, c3: number) -> number:
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
    mr: number,
    mi: number,
    nr: number,
    ni: number,
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
    ar, ai = load_number(xr, 0), load_number(xi, 0)
    br, bi = load_number(xr, gap), load_number(xi, gap)
    cr, ci = load_number(xr, 2 * gap), load_number(xi, 2 * gap)
    dr, di = load_number(xr, 3 * gap), load_number(xi, 3 * gap)
    er, ei = load_number(xr, 4 * gap), load_number(xi, 4 * gap)
    fr, fi = load_number(xr, 5 * gap), load_number(xi, 5 * gap)
    gr, gi = load_number(xr, 6 * gap), load_number(xi, 6 * gap)
    pr, pi, tr, ti = br + gr, bi + gi, br - gr, bi - gi
    qr, qi, ur, ui = cr + fr, ci + fi, cr - fr, ci - fi
    rr, ri, vr, vi = dr + er, di + ei, dr - er, di - ei
    store_number(yr, 0, ar + pr + (qr + rr))
    store_number(yi, 0, ai + pi + (qi + ri))
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
    er: number,
    ei: number,
    fr: number,
    fi: number,
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
    ar, ai = load_number(xr, 0), load_number(xi, 0)
    er, ei = load_number(xr, 4 * gap), load_number(xi, 4 * gap)
    cr, ci = load_number(xr, 2 * gap), load_number(xi, 2 * gap)
    gr, gi = load_number(xr, 6 * gap), load_number(xi, 6 * gap)
    pr, pi, qr, qi = ar + er, ai + ei, ar - er, ai - ei
    rr, ri, sr, si = cr + gr, ci + gi, cr - gr, ci - gi
    br, bi = load_number(xr, gap), load_number(xi, gap)
    fr, fi = load_number(xr, 5 * gap), load_number(xi, 5 * gap)
    dr, di = load_number(xr, 3 * gap), load_number(xi, 3 * gap)
    hr, hi = load_number(xr, 7 * gap), load_number(xi, 7 * gap)
    tr, ti, ur, ui = br + fr, bi + fi, br - fr, bi - fi
    vr, vi, zr, zi = dr + hr, di + hi, dr - hr, di - hi
    kr, ki, lr, li = pr + rr, pi + ri, tr + vr, ti + vi
    store_number(yr, 0, kr + lr)
    store_number(yi, 0, ki + li)
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


# What a pass is made over: its radix, and the sums of as many.
RADIX: Final = 2
sums = sum_2


@one_pass.called
def fft_sums(
    xr: ptr, xi: ptr, yr: ptr, yi: ptr, gap: i64, to: i64, turned: i64, w: ptr, step: i64
) -> None:
    """Sums of what is too little for vectors."""
    sums(xr, xi, yr, yi, gap, to, turned, w, step)


@one_pass.helper
def pass_of_one(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64) -> None:
    """The pass of the only sequence: vectors over its sums."""
    if m < LANES:
        for p in range(m):
            x, y = ITEM * p, ITEM * RADIX * p
            fft_sums(xr + x, xi + x, yr + y, yi + y, ITEM * m, ITEM, 1, w + x, ITEM * m)
        return
    for first in range(0, m, LANES):
        begin = min(first, m - LANES)
        for p in apart(LANES):
            x, y = ITEM * (begin + p), ITEM * RADIX * (begin + p)
            sums(xr + x, xi + x, yr + y, yi + y, ITEM * m, ITEM, 1, w + x, ITEM * m)


@one_pass.helper
def pass_of_many(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64, turned: i64) -> None:
    """Sums of `s` sequences side by side: vectors over them, of which the last one makes some sums
    again where they do not come out even."""
    if s < LANES:
        for q in range(s):
            x = ITEM * q
            fft_sums(xr + x, xi + x, yr + x, yi + x, ITEM * m * s, ITEM * s, turned, w, ITEM * m)
        return
    for first in range(0, s, LANES):
        begin = min(first, s - LANES)
        for q in apart(LANES):
            x = ITEM * (begin + q)
            sums(xr + x, xi + x, yr + x, yi + x, ITEM * m * s, ITEM * s, turned, w, ITEM * m)


@one_pass.function
def fft_pass(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """One pass from `x` to `y`: `m` is the length that is left behind it, `s` the number of
    sequences before it."""
    if m == 1:
        pass_of_many(xr, xi, yr, yi, NULL, 1, s, 0)
    elif s == 1:
        pass_of_one(xr, xi, yr, yi, w, m)
    else:
        for p in range(m):
            x, y = ITEM * p * s, ITEM * RADIX * p * s
            pass_of_many(xr + x, xi + x, yr + y, yi + y, w + ITEM * p, m, s, 1)


@others.function
def fft_pair(re: ptr, im: ptr, back: i64, count: i64) -> None:
    """The sums of two rows that are `back` bytes apart in place of the first one, and their
    differences in place of the other one."""
    for q in apart(count):
        at = ITEM * q
        ar, ai = load_number(re, at), load_number(im, at)
        br, bi = load_number(re, at + back), load_number(im, at + back)
        store_number(re, at, ar + br)
        store_number(im, at, ai + bi)
        store_number(re, at + back, ar - br)
        store_number(im, at + back, ai - bi)


@unit.helper
def start(xr: ptr, xi: ptr, yr: ptr, yi: ptr, to: i64, count: i64) -> None:
    """Let elements that are `to` bytes apart be those that follow each other."""
    for q in apart(count):
        store_number(yr, to * q, load_number(xr, ITEM * q))
        store_number(yi, to * q, load_number(xi, ITEM * q))


@unit.helper
def add(xr: ptr, xi: ptr, yr: ptr, yi: ptr, to: i64, factor: number, count: i64) -> None:
    """Add a multiple."""
    for q in apart(count):
        store_number(yr, to * q, load_number(yr, to * q) + factor * load_number(xr, ITEM * q))
        store_number(yi, to * q, load_number(yi, to * q) + factor * load_number(xi, ITEM * q))


@unit.helper
def add_both(
    x: ptr,
    xi: ptr,
    k: i64,
    back: i64,
    y: ptr,
    yi: ptr,
    z: i64,
    to: i64,
    c: number,
    s: number,
    count: i64,
    is_first: i64,
) -> None:
    """Add what a pair of rows gives to two elements, or begin with it: `c` times their sum and `s`
    times their difference."""
    for q in apart(count):
        at, put_at = k + ITEM * q, to * q
        er, ei = c * load_number(x, at), c * load_number(xi, at)
        dr, di = s * load_number(x, at + back), s * load_number(xi, at + back)
        if is_first != 0:
            store_number(y, put_at, load_number(x, ITEM * q) + er)
            store_number(yi, put_at, load_number(xi, ITEM * q) + ei)
            store_number(y, put_at + z, dr)
            store_number(yi, put_at + z, di)
        else:
            store_number(y, put_at, load_number(y, put_at) + er)
            store_number(yi, put_at, load_number(yi, put_at) + ei)
            store_number(y, put_at + z, load_number(y, put_at + z) + dr)
            store_number(yi, put_at + z, load_number(yi, put_at + z) + di)


@unit.helper
def part_both(y: ptr, yi: ptr, z: i64, to: i64, count: i64) -> None:
    """Two elements from what they have in common and what differs in sign."""
    for q in apart(count):
        at = to * q
        er, ei = load_number(y, at), load_number(yi, at)
        dr, di = load_number(y, at + z), load_number(yi, at + z)
        store_number(y, at, er - di)
        store_number(yi, at, ei + dr)
        store_number(y, at + z, er + di)
        store_number(yi, at + z, ei - dr)


@unit.helper
def both_any(
    r: i64,
    j: i64,
    x: ptr,
    xi: ptr,
    y: ptr,
    yi: ptr,
    z: i64,
    roots: ptr,
    gap: i64,
    count: i64,
    to: i64,
) -> None:
    """Elements `j` and `r - j` of the sums of `r`, `z` bytes apart, for sequences that stand side
    by side, from the sums and differences of rows; the roots of order `r` are given."""
    for k in range(1, r // 2 + 1):
        c = load_number(roots, ITEM * (j * k % r))
        s = load_number(roots, ITEM * (r + j * k % r))
        back = (r - 2 * k) * gap
        if k == 1:
            add_both(x, xi, gap, back, y, yi, z, to, c, s, count, 1)
        else:
            add_both(x, xi, k * gap, back, y, yi, z, to, c, s, count, 0)
    part_both(y, yi, z, to, count)


@unit.helper
def turn(yr: ptr, yi: ptr, to: i64, w: ptr, gap: i64, step: i64, count: i64) -> None:
    """Turn elements that are `to` bytes apart by factors that are `step` bytes apart, `gap` bytes
    between the two parts."""
    for q in apart(count):
        c, s = load_number(w, step * q), load_number(w, gap + step * q)
        ar, ai = load_number(yr, to * q), load_number(yi, to * q)
        store_number(yr, to * q, ar * c - ai * s)
        store_number(yi, to * q, ar * s + ai * c)


@unit.helper
def sums_any(
    r: i64,
    x: ptr,
    xi: ptr,
    y: ptr,
    yi: ptr,
    w: ptr,
    roots: ptr,
    m: i64,
    s: i64,
    to: i64,
    step: i64,
    count: i64,
) -> None:
    """Sums of `r` for sequences that stand side by side: results `to` bytes apart, their factors
    `step` bytes."""
    gap = ITEM * m * s
    factors = ITEM * (r - 1) * m
    start(x, xi, y, yi, to, count)
    for k in range(1, r // 2 + 1):
        add(x + k * gap, xi + k * gap, y, yi, to, 1.0, count)
    for j in range(1, r // 2 + 1):
        at, z = ITEM * s * j, ITEM * s * (r - 2 * j)
        both_any(r, j, x, xi, y + at, yi + at, z, roots, gap, count, to)
        if m > 1:
            turn(y + at, yi + at, to, w + ITEM * (j - 1) * m, factors, step, count)
            turn(y + at + z, yi + at + z, to, w + ITEM * (r - j - 1) * m, factors, step, count)


@others.function
def fft_pass_any(r: i64, xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of any odd radix. Its roots stand behind the factors. What it reads is lost."""
    gap = ITEM * m * s
    roots = w + 2 * ITEM * (r - 1) * m
    for k in range(1, r // 2 + 1):
        fft_pair(xr + k * gap, xi + k * gap, (r - 2 * k) * gap, m * s)
    if s == 1:
        sums_any(r, xr, xi, yr, yi, w, roots, m, 1, ITEM * r, ITEM, m)
    else:
        for p in range(m):
            x, y = ITEM * p * s, ITEM * s * r * p
            sums_any(r, xr + x, xi + x, yr + y, yi + y, w + ITEM * p, roots, m, s, ITEM, 0, s)


unit_single, _SINGLE_SUMS = unit.over(SINGLE, SINGLE_ITEM, SINGLE_NAMES)
others_single, _SINGLE_OTHERS = others.over(SINGLE, SINGLE_ITEM, _SINGLE_SUMS)
_SUMS: Final = {f.name: f for f in unit.functions}


def passes(suffix: str, item: int, meanings: dict[str, Any]) -> dict[str, Function]:
    """The passes of each radix that has sums of its own, by name."""
    made = {}
    for r in OWN_SUMS:
        own = {**meanings, "RADIX": r, "sums": meanings[f"sum_{r}"]}
        name = f"fft_pass_{r}{suffix}"
        made[name] = one_pass.over(name.removeprefix("fft_pass"), item, own)[1]["fft_pass"]
    return made


PASSES: Final = {**passes("", 8, _SUMS), "fft_pass_any": fft_pass_any}
SINGLE_PASSES: Final = {
    **passes(SINGLE, SINGLE_ITEM, _SINGLE_SUMS),
    "fft_pass_any_single": _SINGLE_OTHERS["fft_pass_any"],
}
