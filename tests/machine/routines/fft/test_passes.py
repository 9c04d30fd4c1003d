"""Passes of every radix against the sum that they are."""

import numpy as np
import pytest

from calque.machine.routines.fft import passes


def tables(r: int, m: int) -> np.ndarray:
    """The factors of a pass, and behind them the roots of its order."""
    n = r * m
    factors = np.exp(-2j * np.pi * np.outer(np.arange(1, r), np.arange(m)) / n)
    roots = np.exp(-2j * np.pi * np.arange(r) / r)
    return np.concatenate([p.reshape(-1) for x in (factors, roots) for p in (x.real, x.imag)])


def wanted(x: np.ndarray, r: int, m: int, s: int) -> np.ndarray:
    """y[j, p, q] = turn[j, p] * sum over k of root ** (j k) * x[k, p, q], at [p, j, q]."""
    rows = x.reshape(r, m, s)
    root = np.exp(-2j * np.pi * np.outer(np.arange(r), np.arange(r)) / r)
    turn = np.exp(-2j * np.pi * np.outer(np.arange(r), np.arange(m)) / (r * m))
    y = np.einsum("jk,kpq->jpq", root, rows) * turn[:, :, None]
    return y.transpose(1, 0, 2).reshape(-1)


ENDS = {"f8": "", "f4": "_single"}
CLOSE = {"f8": 3e-14, "f4": 2e-6}


def one_pass(item: str, r: int, *given: int) -> None:
    """The pass of a radix: its own, or that of any."""
    made = {**passes.PASSES, **passes.SINGLE_PASSES}
    if r in passes.OWN_SUMS:
        made[f"fft_pass_{r}{ENDS[item]}"](*given)
    else:
        made[f"fft_pass_any{ENDS[item]}"](r, *given)


@pytest.mark.parametrize("item", ENDS)
@pytest.mark.parametrize("r", [2, 3, 4, 5, 7, 8, 11, 13, 47])
def test_every_radix(r: int, item: str) -> None:
    """First passes, last ones, and those between, over vectors of every length."""
    rng = np.random.default_rng(r)
    for m in (1, 2, 5, 9):
        for s in (1, 3, 8, 20, 25):
            n = r * m * s
            x = rng.normal(size=n) + 1j * rng.normal(size=n)
            xr, xi = x.real.astype(item), x.imag.astype(item)
            y = np.full((2, n + 1), 5, item)
            w = tables(r, m).astype(item)
            arguments = [a.ctypes.data for a in (xr, xi, y[0], y[1], w)]
            one_pass(item, r, *arguments, m, s)
            got = y[0, :n] + 1j * y[1, :n]
            np.testing.assert_allclose(got, wanted(x, r, m, s), rtol=0, atol=r * CLOSE[item])
            assert (y[:, n] == 5).all()


@pytest.mark.parametrize("item", ENDS)
@pytest.mark.parametrize("r", passes.OWN_SUMS)
def test_vectors_give_the_bits_of_lone_sums(r: int, item: str) -> None:
    """Many sequences, of which the last vector makes some again, and each two of them alone."""
    for m in (1, 4):
        x = np.random.default_rng(r).normal(size=(2, r * m, 14)).astype(item)
        w = tables(r, m).astype(item)

        def passed(x: np.ndarray) -> np.ndarray:
            given, y = np.ascontiguousarray(x), np.zeros_like(x, order="C")
            places = [a.ctypes.data for a in (given[0], given[1], y[0], y[1], w)]
            one_pass(item, r, *places, m, x.shape[-1])
            return y

        for s in (9, 13, 14):
            many = passed(x[..., :s])
            for q in range(0, s - 1, 2):
                np.testing.assert_array_equal(many[..., q : q + 2], passed(x[..., q : q + 2]))


@pytest.mark.parametrize("item", ENDS)
@pytest.mark.parametrize("r", passes.OWN_SUMS)
def test_passes_over_whole_vectors_give_the_same_bits(r: int, item: str) -> None:
    """Where there are enough sequences, or enough sums of the only one."""
    made = {**passes.PASSES, **passes.SINGLE_PASSES}
    for m, s in ((1, 8), (9, 1), (3, 13), (1, 20), (8, 1)):
        assert passes.fills_vectors([r], r * m, s, int(item[1])) == [True]
        x = np.random.default_rng(r).normal(size=(2, r * m * s)).astype(item)
        w = tables(r, m).astype(item)
        made_both = []
        for kind in ("pass", "whole_pass"):
            y = np.full((2, x.shape[1] + 1), 5, item)
            places = [a.ctypes.data for a in (x[0], x[1], y[0], y[1], w)]
            made[f"fft_{kind}_{r}{ENDS[item]}"](*places, m, s)
            made_both.append(y)
        np.testing.assert_array_equal(*made_both)
        assert (made_both[1][:, -1] == 5).all()


def test_which_passes_fill_vectors() -> None:
    """Vectors have four numbers of double precision: the sums of the only sequence, and then as
    many sequences as the radices before have made."""
    assert passes.fills_vectors([4, 8], 32, 1, 8) == [True, True]
    assert passes.fills_vectors([4, 8], 32, 1, 4) == [True, False]
    assert passes.fills_vectors([8], 8, 1, 8) == [False]
    assert passes.fills_vectors([2, 3, 5], 30, 1, 8) == [True, False, True]
    assert passes.fills_vectors([2, 3], 6, 4, 8) == [True, True]


def test_all_passes_make_a_transform() -> None:
    """In any order of the radices, several sequences side by side."""
    for radices in ((2, 3, 4), (8, 5), (7, 2, 2), (13, 4), (4, 4, 3)):
        n, lanes = int(np.prod(radices)), 3
        x = np.random.default_rng(n).normal(size=(2, n, lanes))
        parts, other = x.copy(), np.zeros_like(x)
        m, s = n, lanes
        for r in radices:
            m //= r
            w = tables(r, m)
            given = [a.ctypes.data for a in (parts[0], parts[1], other[0], other[1], w)]
            one_pass("f8", r, *given, m, s)
            parts, other = other, parts
            s *= r
        want = np.fft.fft(x[0] + 1j * x[1], axis=0)
        np.testing.assert_allclose(parts[0] + 1j * parts[1], want, rtol=1e-12, atol=1e-12)
