"""calque.numpy.linalg: linear algebra on batches of matrices."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy
from calque.numpy.calls import cached as _cached

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.numpy.linalg.factors import (
        cholesky,
        eig,
        eigh,
        eigvals,
        eigvalsh,
        qr,
        svd,
        svdvals,
    )
    from calque.numpy.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
    from calque.numpy.linalg.products import (
        cross,
        diagonal,
        matmul,
        matrix_power,
        matrix_transpose,
        multi_dot,
        outer,
        tensordot,
        trace,
        vecdot,
    )
    from calque.numpy.linalg.solving import (
        det,
        inv,
        lstsq,
        pinv,
        slogdet,
        solve,
        tensorinv,
        tensorsolve,
    )

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__, _cached.with_call_path)
