"""Cases of products, convolutions, Fourier transforms and linear algebra."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from calque.core import dtypes
from calque.core.primitives import Primitive
from calque.ops.dimension_numbers import ConvDimensionNumbers, FftType
from tests.native.cases import BF16, Case, absolute, accepted, cases_of, numbers, of_sizes

F32, F64, F16, C64 = map(np.dtype, ("float32", "float64", "float16", "complex64"))
DOTS: list[tuple[tuple[int, ...], tuple[int, ...], Any]] = [
    # lhs, rhs, dimension numbers
    ((), (), (((), ()), ((), ()))),
    ((7,), (7,), (((0,), (0,)), ((), ()))),
    ((130,), (130,), (((0,), (0,)), ((), ()))),
    ((0,), (0,), (((0,), (0,)), ((), ()))),
    ((3,), (5,), (((), ()), ((), ()))),
    ((17, 33), (33,), (((1,), (0,)), ((), ()))),
    ((33,), (33, 17), (((0,), (0,)), ((), ()))),
    ((17, 33), (33, 20), (((1,), (0,)), ((), ()))),
    ((17, 33), (20, 33), (((1,), (1,)), ((), ()))),
    ((33, 17), (33, 20), (((0,), (0,)), ((), ()))),
    ((33, 17), (20, 33), (((0,), (1,)), ((), ()))),
    ((1, 33), (33, 1), (((1,), (0,)), ((), ()))),
    ((17, 1), (1, 20), (((1,), (0,)), ((), ()))),
    ((17, 0), (0, 20), (((1,), (0,)), ((), ()))),
    ((0, 3), (3, 20), (((1,), (0,)), ((), ()))),
    ((65, 130), (130, 64), (((1,), (0,)), ((), ()))),
    ((2, 700), (700, 3), (((1,), (0,)), ((), ()))),
    ((4, 17, 5), (4, 5, 9), (((2,), (1,)), ((0,), (0,)))),
    ((17, 5, 4), (9, 4, 5), (((1,), (2,)), ((2,), (1,)))),
    ((4, 5), (4, 5), (((1,), (1,)), ((0,), (0,)))),
    ((4, 5), (4, 5), (((), ()), ((0, 1), (0, 1)))),
    ((2, 3, 4, 5), (5, 4, 6), (((3, 2), (0, 1)), ((), ()))),
    ((2, 3, 4, 5), (3, 2, 5, 7), (((3,), (2,)), ((0, 1), (1, 0)))),
]


def dot_case(p: Primitive, a: np.ndarray, b: np.ndarray, dn: Any, preferred: Any = None) -> Case:
    params = {
        "dimension_numbers": dn,
        "precision": None,
        "preferred_element_type": preferred,
        "out_sharding": None,
    }
    out = preferred or a.dtype
    if not dtypes.is_inexact(out):
        return Case(p, (a, b), params)

    def scale(a: Any, b: Any, **params: Any) -> Any:
        return p.meaning(
            absolute(a).astype(F64),
            absolute(b).astype(F64),
            **{**params, "preferred_element_type": F64},
        )

    depth = max(1, int(np.prod([a.shape[i] for i in dn[0][0]])))
    return Case(
        p, (a, b), params, 2 + depth**0.5 * (2 if np.dtype(out).itemsize >= 4 else 1), scale
    )


@cases_of("dot_general")
def dot(p: Primitive) -> Iterator[Case]:
    for k, (l, r, dn) in enumerate(DOTS):
        every = accepted(
            p,
            [l, r],
            dimension_numbers=dn,
            precision=None,
            preferred_element_type=None,
            out_sharding=None,
        )
        for d in (
            every
            if k in (7, 17)
            else (
                F32,
                np.dtype("int8"),
                (F16, F64, C64, BF16, np.dtype("bool"), np.dtype("int32"))[k % 6],
            )
        ):
            if d in every:
                yield dot_case(p, numbers(d, *l), numbers(d, *r, seed=1), dn)
    for a, preferred in (
        ("int8", "int32"),
        ("float16", "float32"),
        (BF16, "float32"),
        ("int32", "float32"),
        ("float32", "float64"),
        (dtypes.FLOAT8[3], "float32"),
        ("uint8", "int32"),
    ):
        for l, r, dn in (DOTS[7], DOTS[8], DOTS[17]):
            yield dot_case(p, numbers(a, *l), numbers(a, *r, seed=1), dn, np.dtype(preferred))


CONVS: list[tuple[tuple[int, ...], tuple[int, ...], str, str, str, dict[str, Any]]] = [
    ((2, 3, 20), (4, 3, 5), "NCH", "OIH", "NCH", {}),
    ((2, 20, 3), (5, 3, 4), "NHC", "HIO", "NHC", {"window_strides": (2,), "padding": ((2, 1),)}),
    ((2, 3, 9, 8), (4, 3, 3, 2), "NCHW", "OIHW", "NCHW", {"padding": ((1, 1), (0, 2))}),
    ((2, 9, 8, 3), (3, 2, 3, 4), "NHWC", "HWIO", "NHWC", {"window_strides": (2, 3),
    "rhs_dilation": (2, 1), "padding": ((2, 2), (1, 1))}),
    ((2, 9, 8, 4), (3, 2, 2, 6), "NHWC", "HWIO", "NHWC", {"feature_group_count": 2}),
    ((2, 4, 9, 8), (4, 1, 3, 2), "NCHW", "OIHW", "NCHW", {"feature_group_count": 4}),
    ((4, 3, 9, 8), (4, 3, 3, 2), "NCHW", "OIHW", "NCHW", {"batch_group_count": 2}),
    ((1, 3, 5, 4), (2, 3, 3, 3), "NCHW", "OIHW", "NHWC", {"lhs_dilation": (2, 3), "padding": ((2,
    3), (-1, 2))}),
    ((1, 2, 3, 4, 5), (2, 2, 2, 2, 2), "NCDHW", "OIDHW", "NCDHW", {}),
    ((1, 3, 4), (2, 3, 9), "NCH", "OIH", "NCH", {}),
    ((3, 4), (5, 4), "NC", "OI", "NC", {}),
    ((0, 3, 20), (4, 3, 5), "NCH", "OIH", "NCH", {}),
]  # fmt: skip


def spec(layout: str, first: str) -> tuple[int, ...]:
    return tuple(layout.index(c) for c in (*first, *sorted(c for c in layout if c not in first)))


@cases_of("conv_general_dilated")
def convolution(p: Primitive) -> Iterator[Case]:
    for l, r, ls, rs, os, more in CONVS:
        n = len(l) - 2
        one = (1,) * n
        params = {
            "window_strides": one, "padding": ((0, 0),) * n, "lhs_dilation": one,
            "rhs_dilation": one, "feature_group_count": 1, "batch_group_count": 1,
            "dimension_numbers": ConvDimensionNumbers(spec(ls, "NC"), spec(rs, "OI"), spec(os,
            "NC")), "precision": None, "preferred_element_type": None,
            "out_sharding": None, **more,
        }  # fmt: skip
        for d in (F32, F64, F16, C64, np.dtype("int32"), BF16) if n == 2 else (F32,):
            yield Case(
                p,
                (numbers(d, *l), numbers(d, *r, seed=1)),
                params,
                12 if dtypes.is_inexact(d) else None,
                of_sizes(p),
            )


@cases_of("fft")
def fourier(p: Primitive) -> Iterator[Case]:
    for shape, lengths in (
        ((16,), (16,)),
        ((7,), (7,)),
        ((3, 20), (20,)),
        ((3, 5, 8), (5, 8)),
        ((2, 3, 4, 6), (3, 4, 6)),
        ((1,), (1,)),
    ):
        for kind in FftType:
            for wide in (False, True):
                real = kind.name == "RFFT"
                d = np.dtype(
                    ("float32", "float64")[wide] if real else ("complex64", "complex128")[wide]
                )
                used = (*shape[:-1], shape[-1] // 2 + 1) if kind.name == "IRFFT" else shape
                yield Case(
                    p,
                    (numbers(d, *used),),
                    {"fft_type": kind, "fft_lengths": lengths},
                    32,
                    lambda x, **q: np.full((), 4.0 * max(x.size, 1)),
                )


def positive(d: Any, *shape: int) -> np.ndarray:
    x = numbers(d, *shape)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 5 * np.eye(shape[-1])).astype(d)


def symmetric(d: Any, *shape: int) -> np.ndarray:
    x = numbers(d, *shape)
    return (x + np.conj(np.swapaxes(x, -1, -2))).astype(d)


MATRICES: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "cholesky": (positive, [{}]),
    "lu": (numbers, [{}]),
    "qr": (numbers, [{"pivoting": False, "full_matrices": f, "use_magma": None} for f in (False,
    True)]),
    "eigh": (symmetric, [{"lower": True, "sort_eigenvalues": True, "subset_by_index": None,
    "algorithm": None}]),
    "eig": (numbers, [{"compute_left_eigenvectors": True, "compute_right_eigenvectors": True,
    "enable_eigvec_derivs": False, "implementation": None}]),
    "svd": (numbers, [{"full_matrices": f, "compute_uv": True, "subset_by_index": None,
    "algorithm": None} for f in (False, True)]),
    "schur": (numbers, [{"compute_schur_vectors": True, "sort_eig_vals": False,
    "select_callable": None}]),
    "hessenberg": (numbers, [{}]),
    "tridiagonal": (symmetric, [{"lower": True}]),
}  # fmt: skip


@cases_of(*MATRICES)
def matrices(p: Primitive) -> Iterator[Case]:
    """The same library routines on both sides: the same results."""
    make, variants = MATRICES[p.name]
    for d in accepted(p, [(3, 3)], **variants[0]):
        for shape in ((1, 1), (5, 5), (2, 4, 4), (0, 0), (3, 0, 0)):
            for params in variants:
                if dtypes.is_inexact(d) and np.dtype(d).itemsize >= 4:
                    yield Case(
                        p,
                        (make(d, *shape),),
                        params,
                        64,
                        lambda *a, **q: ones_like_results(p, a, q),
                    )


def ones_like_results(p: Primitive, args: Any, params: Any) -> Any:
    out = p.meaning(*args, **params)
    sizes = [
        np.full(np.shape(o), 1 + np.max(np.abs(o), initial=0))
        for o in (out if p.multiple_results else [out])
    ]
    return sizes if p.multiple_results else sizes[0]


@cases_of("triangular_solve")
def triangular(p: Primitive) -> Iterator[Case]:
    for k in range(16):
        left, lower, turned, conj = (bool(k >> i & 1) for i in range(4))
        for d in (F32, C64):
            a = (numbers(d, 5, 5) + 8 * np.eye(5)).astype(d)
            b = numbers(d, *((5, 3) if left else (3, 5)))
            yield Case(
                p,
                (a, b),
                {
                    "left_side": left,
                    "lower": lower,
                    "transpose_a": turned,
                    "conjugate_a": conj,
                    "unit_diagonal": False,
                },
                64,
                lambda *a, **q: np.ones(()),
            )


@cases_of(
    "tridiagonal_solve",
    "cholesky_update",
    "lu_pivots_to_permutation",
    "householder_product",
    "ormqr",
    "symmetric_product",
)
def other_matrices(p: Primitive) -> Iterator[Case]:
    def one(*a, **q):
        return np.full((), 8.0)

    x = numbers(F32, 5, 5)
    if p.name == "tridiagonal_solve":
        d = (numbers(F32, 7) + 9).astype(F32)
        yield Case(
            p,
            (numbers(F32, 7), d, numbers(F32, 7), numbers(F32, 7, 2)),
            {"perturb_singular": False},
            64,
            one,
        )
    elif p.name == "cholesky_update":
        yield Case(
            p, (np.linalg.cholesky(positive(F32, 5, 5)).T.copy(), numbers(F32, 5)), {}, 64, one
        )
    elif p.name == "lu_pivots_to_permutation":
        yield Case(p, (np.array([[3, 3, 2, 4], [0, 1, 2, 3]], np.int32),), {"permutation_size": 5})
    elif p.name == "householder_product":
        yield Case(p, (x, numbers(F32, 5)), {}, 1024, lambda *a, **q: ones_like_results(p, a, q))
    elif p.name == "ormqr":
        for left in (True, False):
            yield Case(
                p,
                (x, numbers(F32, 5), numbers(F32, 5, 5, seed=1)),
                {"left": left, "transpose": left},
                1024,
                lambda *a, **q: ones_like_results(p, a, q),
            )
    else:
        yield Case(
            p,
            (x, positive(F32, 5, 5)),
            {"alpha": 1.5, "beta": 0.5},
            64,
            lambda *a, **q: np.full((), 200.0),
        )
