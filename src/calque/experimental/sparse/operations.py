"""The operations on buffers under the names that JAX's primitives have: `bcoo_todense_p.bind(data,
indices, spinfo=...)`.

Each is a composition of ordinary primitives, which a program that uses it shows."""

from collections.abc import Callable
from typing import Any

from calque.core import pytrees
from calque.experimental.sparse import bcsr, conversions, layouts, making, matrices, products
from calque.experimental.sparse.base import SparseInfo
from calque.experimental.sparse.bcoo import BCOO


class Operation:
    """A named operation on arrays: `bind(*arrays, **parameters)`."""

    def __init__(self, name: str, function: Callable[..., Any], multiple_results: bool = False):
        self.name, self.multiple_results = name, multiple_results
        self._function = function

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply to arrays."""
        out = self._function(*args, **params)
        return list(out) if self.multiple_results else out

    def __repr__(self) -> str:
        return self.name


def _bcoo(data: Any, indices: Any, spinfo: SparseInfo) -> BCOO:
    return BCOO(
        (data, indices),
        shape=spinfo.shape,
        indices_sorted=spinfo.indices_sorted,
        unique_indices=spinfo.unique_indices,
    )


def _bcsr(data: Any, indices: Any, indptr: Any, spinfo: SparseInfo) -> bcsr.BCSR:
    return bcsr.BCSR((data, indices, indptr), shape=spinfo.shape)


def _spdot(
    ld: Any, li: Any, rd: Any, ri: Any, *, lhs_spinfo: Any, rhs_spinfo: Any, **params: Any
) -> Any:
    return products.bcoo_dot_general(
        _bcoo(ld, li, lhs_spinfo), _bcoo(rd, ri, rhs_spinfo), **params
    )._bufs


def _coo(data: Any, row: Any, col: Any, spinfo: Any) -> matrices.COO:
    return matrices.COO((data, row, col), shape=spinfo.shape)


bcoo_todense_p = Operation(
    "bcoo_todense", lambda d, i, spinfo: conversions.todense(d, i, spinfo.shape)
)
bcoo_fromdense_p = Operation(
    "bcoo_fromdense", lambda m, **k: conversions.bcoo_fromdense(m, **k)._bufs, True
)
bcoo_extract_p = Operation(
    "bcoo_extract", lambda i, a, assume_unique=True: conversions.extract(i, a, assume_unique)
)
bcoo_transpose_p = Operation(
    "bcoo_transpose", lambda d, i, permutation, spinfo: layouts.bcoo_transpose(_bcoo(d, i,
    spinfo), permutation=permutation)._bufs, True
)  # fmt: skip
bcoo_sort_indices_p = Operation(
    "bcoo_sort_indices",
    lambda d, i, spinfo: layouts.bcoo_sort_indices(_bcoo(d, i, spinfo))._bufs,
    True,
)
bcoo_sum_duplicates_p = Operation(
    "bcoo_sum_duplicates", lambda d, i, spinfo, nse=None: layouts.bcoo_sum_duplicates(_bcoo(d, i,
    spinfo), nse)._bufs, True
)  # fmt: skip
bcoo_dot_general_p = Operation(
    "bcoo_dot_general",
    lambda d, i, r, lhs_spinfo, **k: products.bcoo_dot_general(_bcoo(d, i, lhs_spinfo), r, **k),
)
bcoo_dot_general_sampled_p = Operation(
    "bcoo_dot_general_sampled", products.bcoo_dot_general_sampled
)
bcoo_spdot_general_p = Operation("bcoo_spdot_general", _spdot, True)
bcsr_todense_p = Operation("bcsr_todense", lambda d, i, e, spinfo: _bcsr(d, i, e, spinfo).todense())
bcsr_fromdense_p = Operation(
    "bcsr_fromdense", lambda m, **k: bcsr.bcsr_fromdense(m, **k)._bufs, True
)
bcsr_extract_p = Operation("bcsr_extract", bcsr.bcsr_extract)
bcsr_dot_general_p = Operation(
    "bcsr_dot_general",
    lambda d, i, e, r, lhs_spinfo, **k: bcsr.bcsr_dot_general(_bcsr(d, i, e, lhs_spinfo), r, **k),
)
coo_todense_p = Operation("coo_todense", lambda d, r, c, spinfo: _coo(d, r, c, spinfo).todense())
coo_fromdense_p = Operation(
    "coo_fromdense", lambda m, **k: matrices.coo_fromdense(m, **k)._bufs, True
)
coo_matvec_p = Operation(
    "coo_matvec",
    lambda d, r, c, v, spinfo, transpose=False: matrices.coo_matvec(
        _coo(d, r, c, spinfo), v, transpose
    ),
)
coo_matmat_p = Operation(
    "coo_matmat",
    lambda d, r, c, v, spinfo, transpose=False: matrices.coo_matmat(
        _coo(d, r, c, spinfo), v, transpose=transpose
    ),
)
csr_todense_p = Operation(
    "csr_todense", lambda d, i, e, shape: matrices.CSR((d, i, e), shape=shape).todense()
)
csr_fromdense_p = Operation(
    "csr_fromdense", lambda m, **k: matrices.csr_fromdense(m, **k)._bufs, True
)
csr_matvec_p = Operation(
    "csr_matvec",
    lambda d, i, e, v, shape, transpose=False: matrices.csr_matvec(
        matrices.CSR((d, i, e), shape=shape), v, transpose
    ),
)
csr_matmat_p = Operation(
    "csr_matmat",
    lambda d, i, e, v, shape, transpose=False: matrices.csr_matmat(
        matrices.CSR((d, i, e), shape=shape), v, transpose=transpose
    ),
)
todense_p = Operation("todense", lambda *bufs, tree: making.todense(pytrees.unflatten(tree, bufs)))
