"""Bodies of loops and branches that find sizes: those sizes are theirs alone, in every round
anew."""

from __future__ import annotations

from typing import Any

from calque.core.dims import Dim
from calque.core.errors import DataDependentSizeError
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var, found_symbols, subjaxprs
from calque.transforms.engines.trees import name_of
from calque.transforms.primitives.flow import Staged
from calque.transforms.primitives.remat import remat_p


def recomputed(part: Staged, fun: object, what: str) -> Staged:
    """The body, computed again by its derivative if it finds sizes: arrays of such sizes cannot be
    kept for all rounds.

    before: { lambda ; x c. let n = sum(x < c); let_size n; ... in (s,) }
    after:  { lambda ; x c. let s = remat2[that program] x c in (s,) }"""
    if found_symbols(part.closed.jaxpr) is None:
        return part
    refuse_escaping(part.closed.jaxpr, fun, what)
    invars, outvars = (
        [Var(a) for a in avals] for avals in (part.closed.in_avals, part.closed.out_avals)
    )
    params = {"jaxpr": part.closed, "policy": None, "prevent_cse": False, "differentiated": False}
    jaxpr = Jaxpr([], invars, outvars, [Eqn(remat_p, invars, outvars, params)])
    return part._replace(closed=ClosedJaxpr(jaxpr))


def refuse_escaping(jaxpr: Jaxpr, fun: object, what: str) -> None:
    own = found_in(jaxpr)
    for aval in jaxpr.out_avals:
        sizes: tuple[Any, ...] = aval.shape
        for d in sizes:
            if type(d) is Dim and d.symbols.roots(d.poly) & own:
                raise DataDependentSizeError(
                    f"{what}: the function {name_of(fun)} returns an array of type"
                    f" {aval.str_short()} whose size it finds while it runs ({d.symbols.maker(d)}),"
                    " but its results must have the same size in every round and in every branch."
                    " Return what does not depend on that size (a sum, a fixed part), or give that"
                    " function a static size= (and fill_value=)."
                )


def found_in(jaxpr: Jaxpr) -> set[int]:
    """The sizes that a program finds, as atoms."""
    out: set[int] = set()
    for e in jaxpr.eqns:
        if e.primitive.name == "let_size":
            out |= e.params["size"].symbols.roots(e.params["size"].poly)
        for sub in subjaxprs(e.params):
            out |= found_in(sub)
    return out
