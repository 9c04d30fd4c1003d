"""Arguments of sin, cos and tan brought near zero: x = q pi/2 + r. Those of 2^(ix) likewise: x =
q pi/(2 ln 2) + r.

Common arguments take three steps of Cody and Waite, each one fma: the first is exact, because both
x and q pi_1 are multiples of the last bit of pi_1. Huge ones take as many bits of 1/pi (or ln 2/pi)
as matter after the multiples of 2 are dropped (Payne and Hanek).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.scalars.expr import Expr, cast, const, ex
from calque.native.scalars.vmath.base import (
    absolute,
    add,
    fast_two_sum,
    fma,
    from_bits,
    greater_equal,
    iop,
    mul,
    nearest,
    neg,
    sub,
    two_product,
    two_sum,
    where,
)

PI: Final = {
    "f32": (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
    "f64": (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
}
ONE_OVER_PI: Final = 0.3183098861837907
HUGE: Final = {"f32": 2.0**18, "f64": 2.0**40}  # from here on Cody and Waite's steps are not enough


class Scale(NamedTuple):
    """In what angles are measured: half a turn in three parts; its inverse; 2^(16k-5) of these
    inverses modulo 2 in two parts, k = 0..6; and the bits of the inverse, of which bit i, first bit
    highest, has weight 2^(12-i)."""

    half_turn: dict[str, tuple[float, float, float]]
    inverse: float
    steps: tuple[tuple[float, float], ...]
    words: tuple[int, ...]


RADIANS: Final = Scale(
    PI,
    ONE_OVER_PI,
    (
        (0.009947183943243459, -6.149586460994527e-19),
        (1.8986469044032952, 1.1018826558196479e-16),
        (1.7235269743613935, -3.646819222375367e-17),
        (1.063791748279411, 1.0868183711658421e-16),
        (0.6560152394884711, 4.808509223412183e-17),
        (0.6147351164431392, 4.75715593638623e-17),
        (1.280591217571262, -7.858328228493284e-17),
    ),
    (
        0x00028BE60DB93910, 0x54A7F09D5F47D4D3, 0x77036D8A5664F10E, 0x4107F9458EAF7AEF,
        0x1586DC91B8E90937, 0x4B801924BBA82746, 0x4873F877AC72C4A6, 0x9CFBA208D7D4BAED,
        0x1213A671C09AD17D, 0xF904E64758E60D4C, 0xE7D272117E2EF7E4, 0xA0EC7FE25FFF7816,
        0x603FBCBC462D6829, 0xB47DB4D9FB3C9F2C, 0x26DD3D18FD9A797F, 0xA8B5D49EEB1FAF97,
        0xC5ECF41CE7DE294A, 0x4BA9AFED7EC47E35, 0x7421580CC11BF1ED, 0xAEAFC33EF0826BD0,
    ),
)  # fmt: skip
# of powers of 2: an angle of 1 is ln 2 radians
LOG_TWO: Final = Scale(
    {
        "f32": (4.532360076904297, 6.492289372772575e-08, 3.206901890172092e-15),
        "f64": (4.532360141827194, -3.4581174592298686e-16, -2.1016549405396602e-32),
    },
    0.2206356001526516,
    (
        (0.0068948625047703625, -2.3317879810666895e-19),
        (1.8617091126304632, 3.947202710850376e-17),
        (0.9684053500412522, 1.912120628791196e-17),
        (1.4130203035032336, -9.237491227857297e-17),
        (1.6986103879110885, -5.814241250458676e-17),
        (0.13038214109456966, 3.0524910172642774e-18),
        (0.7239987737177398, -1.41377300215121e-17),
    ),
    (
        0x0001C3DC98F7E969, 0xBBB2D82160B957FB, 0xCF76384EFB347525, 0x70D875C804EBAA7E,
        0x3F29DBA19BF26D22, 0xF92057D72DBF62FB, 0x88440E536CC0835B, 0xAD48C3FEA6BA432F,
        0x1CD544D633B59F03, 0x6CF1243456F76468, 0xA7D5A0900ABD7A3E, 0x708EFFC572F1C7C1,
        0x7FB7F82EC188AA32, 0x3D9DCC271169D408, 0xA0ABAB43090D7154, 0x9EEDD67CD178B418,
        0xA3A2C6958E894F98, 0xA463A97FF6AFAB03, 0x51E73FB6C6DBF1E2, 0xD0E68CCE897F71DE,
    ),
)  # fmt: skip


def common(x: Expr, q: Expr, scale: float) -> Expr:
    """x - q scale pi."""
    a, b, c = (p * scale for p in PI[x.dtype])
    return fma(q, -c, fma(q, -b, fma(q, -a, x)))


def common_pair(x: Expr, q: Expr, scale: float, measure: Scale = RADIANS) -> tuple[Expr, Expr]:
    """x - q scale half turns, as a rounded value and the rest."""
    a, b, c = (p * scale for p in measure.half_turn[x.dtype])
    exact = fma(q, -a, x)
    product = mul(q, b)
    r, error = fast_two_sum(exact, neg(product))
    return r, fma(q, -c, sub(error, fma(q, b, neg(product))))


def half_turns(x: Expr, measure: Scale = RADIANS) -> tuple[Expr, Expr]:
    """For huge x: its half turns modulo 2, as a sum of two f64, the first in [-1, 1]."""
    find = _half_turns_f32 if x.dtype == "f32" else _half_turns_f64
    return find(x, measure)


def _half_turns_f32(x: Expr, measure: Scale) -> tuple[Expr, Expr]:
    """x = 2^(16k-5) times an integer, chosen by magnitude, in f64."""
    x, steps = cast(x, "f64"), measure.steps
    scale, high, low = const(2.0**5, "f64"), *(const(c, "f64") for c in steps[0])
    for k in range(1, len(steps)):
        beyond = greater_equal(absolute(x), 2.0 ** (18 + 16 * k))
        scale = where(beyond, 2.0 ** (5 - 16 * k), scale)
        high, low = where(beyond, steps[k][0], high), where(beyond, steps[k][1], low)
    x = mul(x, scale)
    p, error = two_product(x, high)
    return fast_two_sum(modulo_2(p), fma(x, low, error))


def turns_to_angle(f: Expr, rest: Expr, scale: float) -> Expr:
    """(f + rest) scale pi, in f64."""
    high, low, _ = (p * scale for p in PI["f64"])
    return fma(f, high, fma(f, low, mul(rest, high)))


def modulo_2(p: Expr) -> Expr:
    """p - 2 round(p / 2), exactly."""
    return fma(nearest(mul(p, 0.5)), -2.0, p)


def _half_turns_f64(x: Expr, measure: Scale) -> tuple[Expr, Expr]:
    """x = 2^e m with an integer m; the bits of the inverse from weight 2^-e on, times m.

    The sum keeps all bits until multiples of 2 are gone: near a zero of sin some 60 leading bits
    cancel.
    """
    i = cast(x, "u64", "bitcast")
    e = iop("and", iop("lshr", i, 52), 0x7FF)
    m = from_bits(iop("or", iop("and", i, 0x800FFFFFFFFFFFFF), 0x4330000000000000), "f64")
    c = _window(iop("sub", e, 1023 + 40), measure.words)
    p, a = two_product(m, c[0])
    q, b = two_product(m, c[1])
    r, last = two_product(m, c[2])
    last = fma(m, c[3], last)
    s, d = two_sum(add(modulo_2(p), a), q)
    u, v1 = two_sum(b, r)
    u, v2 = two_sum(d, u)
    t, v3 = two_sum(modulo_2(s), u)
    return fast_two_sum(t, add(v3, add(v2, add(v1, last))))


def _window(e: Expr, of: tuple[int, ...] = RADIANS.words) -> list[Expr]:
    """2^(e-12) times the number of these bits, modulo 2 in four parts of 52 bits, for e in [0,
    1024)."""
    words = [const(w, "u64") for w in of]
    for step in (8, 4, 2, 1):  # shift the whole stream by e / 64 words
        on = ex("ne", iop("and", e, 64 * step), const(0, "u64"))
        words = [
            where(on, words[k + step], words[k]) for k in range(step + 4)
        ]  # what the later steps may still need
    s = iop("and", e, 63)
    back = iop("sub", const(63, "u64"), s)
    u = [
        iop("or", iop("shl", words[k], s), iop("lshr", iop("lshr", words[k + 1], 1), back))
        for k in range(4)
    ]
    parts = (
        iop("lshr", u[0], 12),
        iop("or", iop("shl", iop("and", u[0], 0xFFF), 40), iop("lshr", u[1], 24)),
        iop("or", iop("shl", iop("and", u[1], 0xFFFFFF), 28), iop("lshr", u[2], 36)),
        iop("or", iop("shl", iop("and", u[2], 0xFFFFFFFFF), 16), iop("lshr", u[3], 48)),
    )
    one = 0x3FF0000000000000
    return [
        mul(sub(from_bits(iop("or", p, one), "f64"), 1.0), 2.0 ** (1 - 52 * k))
        for k, p in enumerate(parts)
    ]
