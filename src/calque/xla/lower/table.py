"""All rules in one place, and what has none.

Importing this module fills the tables `RULES` and `EQUATION_RULES`."""

from __future__ import annotations

from typing import Any, Final

from calque.core.jaxprs import Eqn
from calque.xla.lower import (
    callbacks,
    control,
    elementwise,
    fourier,
    indexing,
    layout,
    linalg,
    placing,
    products,
    random,
    reductions,
    sorting,
    windows,
)
from calque.xla.lower.rules import EQUATION_RULES, Builder, Rule
from calque.xla.text.tree import Value

MODULES: Final = (
    callbacks,
    control,
    elementwise,
    fourier,
    indexing,
    layout,
    linalg,
    placing,
    products,
    random,
    reductions,
    sorting,
    windows,
)
_ONE_DEVICE: Final = "programs over many devices have no form on XLA yet"
_FIXED: Final = (
    "XLA has fixed sizes only, and this size is found while the program runs: give the function"
    " that finds it `size=`"
)
# Primitives that no program on XLA can have, and why.
REFUSED: Final = {
    **dict.fromkeys(("let_size", "places"), _FIXED),
    **dict.fromkeys(
        (
            "all_gather",
            "all_to_all",
            "axis_index",
            "pmax",
            "pmin",
            "ppermute",
            "psum",
            "psum_invariant",
            "psum_like",
            "preduced",
            "pvary_like",
            "reduced_vary_cast",
            "unreduced_psum",
            "unreduced_reduce_scatter",
            "vary_unreduced_cast",
            "all_gather_invariant",
            "all_gather_reduced",
            "ragged_all_to_all",
            "reduce_scatter",
            "shard_map",
            "variance_of",
        ),
        _ONE_DEVICE,
    ),
}
# Primitives that neither XLA nor jaxlib has an operation for: their meaning runs on the host, as a
# callback of the program.
ON_HOST: Final = frozenset(
    (
        "bessel_i0e",
        "cholesky_update",
        "eig",
        "hessenberg",
        "igamma",
        "igamma_grad_a",
        "igammac",
        "ormqr",
        "ragged_dot_general",
        "random_gamma_grad",
        "regularized_incomplete_beta",
        "schur",
        "symmetric_product",
        "tridiagonal",
        "tridiagonal_solve",
    )
)


def _refusing(name: str, why: str) -> Rule:
    def lower(b: Builder, e: Eqn, outs: Any, args: Any) -> list[Value]:
        raise NotImplementedError(f"{name} on XLA: {why} ({e.source})")

    return lower


EQUATION_RULES.update({name: _refusing(name, why) for name, why in REFUSED.items()})
