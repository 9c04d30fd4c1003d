"""Sparse arrays: BCOO, BCSR and the matrix formats COO, CSR and CSC, with functions of them and
derivatives."""

from calque.core import guards as _guards
from calque.experimental.sparse import base as util
from calque.experimental.sparse import differentiation as ad
from calque.experimental.sparse import environment as transform
from calque.experimental.sparse import making as api
from calque.experimental.sparse import making as random
from calque.experimental.sparse import matrices as coo
from calque.experimental.sparse import matrices as csr
from calque.experimental.sparse import methods as _methods  # the operators of the classes
from calque.experimental.sparse import test_util as test_util
from calque.experimental.sparse.base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from calque.experimental.sparse.conversions import bcoo_extract, bcoo_fromdense, bcoo_todense
from calque.experimental.sparse.differentiation import (
    grad,
    jacfwd,
    jacobian,
    jacrev,
    value_and_grad,
)
from calque.experimental.sparse.layouts import (
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
)
from calque.experimental.sparse.making import empty, eye, random_bcoo, todense
from calque.experimental.sparse.matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from calque.experimental.sparse.operations import (
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_sort_indices_p,
    bcoo_spdot_general_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    bcoo_transpose_p,
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_fromdense_p,
    bcsr_todense_p,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
    todense_p,
)
from calque.experimental.sparse.products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from calque.experimental.sparse.reshaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from calque.experimental.sparse.sparsifying import SparseTracer, sparsify

__all__ = [
    "BCOO",
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "CuSparseEfficiencyWarning",
    "JAXSparse",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseTracer",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_p",
    "bcoo_dot_general_sampled",
    "bcoo_dot_general_sampled_p",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_extract_p",
    "bcoo_fromdense",
    "bcoo_fromdense_p",
    "bcoo_gather",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_sort_indices_p",
    "bcoo_spdot_general_p",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_sum_duplicates_p",
    "bcoo_todense",
    "bcoo_todense_p",
    "bcoo_transpose",
    "bcoo_transpose_p",
    "bcoo_update_layout",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_dot_general_p",
    "bcsr_extract",
    "bcsr_extract_p",
    "bcsr_fromdense",
    "bcsr_fromdense_p",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "bcsr_todense_p",
    "coo_fromdense",
    "coo_fromdense_p",
    "coo_matmat",
    "coo_matmat_p",
    "coo_matvec",
    "coo_matvec_p",
    "coo_todense",
    "coo_todense_p",
    "csr_fromdense",
    "csr_fromdense_p",
    "csr_matmat",
    "csr_matmat_p",
    "csr_matvec",
    "csr_matvec_p",
    "csr_todense",
    "csr_todense_p",
    "empty",
    "eye",
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "random_bcoo",
    "sparsify",
    "todense",
    "todense_p",
    "value_and_grad",
]

_guards.guard_public(globals())
