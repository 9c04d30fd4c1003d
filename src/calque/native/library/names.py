"""The primitives that routines of the machine compute."""

from __future__ import annotations

from typing import Final

SORTS: Final = frozenset(("sort", "top_k", "approx_top_k"))
TRANSFORMS: Final = frozenset(("fft",))
FACTORS: Final = frozenset(
    (
        "cholesky",
        "lu",
        "lu_pivots_to_permutation",
        "triangular_solve",
        "tridiagonal_solve",
        "qr",
        "eigh",
        "svd",
    )
)
