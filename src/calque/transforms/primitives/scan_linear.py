"""Linearisation of `scan`: a loop that computes residuals, and a linear loop that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr, DropVar, Jaxpr, Var
from calque.core.trace import eval_jaxpr
from calque.transforms.engines.linear import SplitProgram, linearize_jaxpr
from calque.transforms.engines.slices import dependents, without_dead_code
from calque.transforms.engines.zeros import nonzero, with_zeros
from calque.transforms.primitives.flow import rearranged, split
from calque.transforms.primitives.scan_common import (
    bind_scan,
    carried_too,
    result_avals,
    tangents_in,
    with_count,
)


def linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    n_ys = len(jaxpr.jaxpr.outvars) - num_carry
    out_avals = result_avals(jaxpr=jaxpr, length=params["length"], num_carry=num_carry)
    active = carried_too(
        nonzero(tangents), num_consts, num_carry, lambda m: linearize_jaxpr(jaxpr, m).nonzeros
    )
    consts, init, xs = split(primals, num_consts, num_carry)
    const_ts, init_ts, xs_ts = split(tangents, num_consts, num_carry)
    c_nz, carry_nz, x_nz = (tuple(m) for m in split(active, num_consts, num_carry))
    lin = linearize_jaxpr(jaxpr, active, (*carry_nz, *(False,) * n_ys))
    if not any(lin.nonzeros):
        outs = bind_scan(consts, init, xs, jaxpr=jaxpr, **params)
        return outs, with_zeros([], lin.nonzeros, out_avals)
    plan = _Residuals(lin, num_consts, num_carry, len(xs))
    fixed = plan.hoist(consts)
    found = bind_scan(plan.primal_consts(consts, fixed), init, xs, jaxpr=plan.primal, **params)
    outs, stacked = found[: num_carry + n_ys], found[num_carry + n_ys :]
    res_consts, res_xs = plan.values(consts, fixed, xs, outs, stacked)
    linear_consts = [*res_consts, *tangents_in(const_ts, c_nz)]
    linear_xs = [*res_xs, *tangents_in(xs_ts, x_nz)]
    body = plan.linear(sum(c_nz), sum(carry_nz))
    if params.get("counted"):
        body, linear_consts = with_count(body), [consts[0], *linear_consts]
    out_ts = bind_scan(
        linear_consts, tangents_in(init_ts, carry_nz), linear_xs, jaxpr=body, **params
    )
    return outs, with_zeros(out_ts, lin.nonzeros, out_avals)


class _Residuals:
    """Where each residual of a linearised body lives: constants of the loop, computed before it,
    read again from xs or ys, or stacked by the loop."""

    def __init__(self, lin: SplitProgram, num_consts: int, num_carry: int, num_xs: int):
        self.lin, self.num_consts, self.num_carry = lin, num_consts, num_carry
        j = lin.primal.jaxpr
        n_outs = len(lin.nonzeros)
        varying = [False] * num_consts + [True] * (num_carry + num_xs)
        self.before, _, reached = dependents(j, varying, effects=True)
        self.places: list[tuple[str, int]] = []
        self.hoisted: list[Any] = []  # variables computed before the loop
        self.extra: list[Any] = []  # atoms stacked by the loop
        for kind, i in lin.sources:
            if kind == "in":
                self.places.append(self._argument(i, num_consts, num_carry, j))
            elif kind == "out" and i >= num_carry:
                self.places.append(("ys", i))
            else:
                atom = j.outvars[i] if kind == "out" else j.outvars[n_outs + i]
                self.places.append(self._place(atom, atom in reached))
        for e in self.before:  # an equation moves out of the loop with all its results
            if any(v in self.hoisted for v in e.outvars):
                self.hoisted += [v for v in e.outvars if v not in self.hoisted]
        self.primal = self._primal(j, n_outs)

    def _argument(self, i: int, num_consts: int, num_carry: int, j: Jaxpr) -> tuple[str, int]:
        if i < num_consts:
            return ("const", i)
        if i < num_consts + num_carry:
            return self._place(j.invars[i], True)
        return ("xs", i - num_consts - num_carry)

    def _place(self, atom: Any, varies: bool) -> tuple[str, int]:
        store, name = (self.extra, "stacked") if varies else (self.hoisted, "hoisted")
        if atom not in store:
            store.append(atom)
        return (name, store.index(atom))

    def _primal(self, j: Jaxpr, n_outs: int) -> ClosedJaxpr:
        """The body with hoisted values as further constants and the residuals of each round as
        further ys."""
        made = [
            a
            for a in self.hoisted
            if isinstance(a, Var) and a not in j.invars and a not in j.constvars
        ]
        self.made = made
        # of a call that was split, the part that varies stays
        eqns = [
            e.replace(outvars=[DropVar(v.aval) if v in made else v for v in e.outvars])
            for e in j.eqns
        ]
        invars = j.invars[: self.num_consts] + made + j.invars[self.num_consts :]
        body = j.replace(invars=invars, eqns=eqns, outvars=[*j.outvars[:n_outs], *self.extra])
        return ClosedJaxpr(without_dead_code(body), self.lin.primal.consts)

    def hoist(self, consts: Sequence[Any]) -> list[Any]:
        """The values of the hoisted residuals."""
        if not self.hoisted:
            return []
        j = self.lin.primal.jaxpr
        before = without_dead_code(
            j.replace(invars=j.invars[: self.num_consts], eqns=self.before, outvars=self.hoisted)
        )
        return eval_jaxpr(before, self.lin.primal.consts, *consts)

    def primal_consts(self, consts: Sequence[Any], fixed: Sequence[Any]) -> list[Any]:
        return [*consts, *(fixed[self.hoisted.index(v)] for v in self.made)]

    def values(
        self,
        consts: Sequence[Any],
        fixed: Sequence[Any],
        xs: Sequence[Any],
        outs: Sequence[Any],
        stacked: Sequence[Any],
    ) -> tuple[list[Any], list[Any]]:
        """Residuals that are constants of the linear loop, and those that it reads round by
        round."""
        stores = {"const": consts, "hoisted": fixed, "xs": xs, "ys": outs, "stacked": stacked}
        return (
            [stores[k][i] for k, i in self.places if k in ("const", "hoisted")],
            [stores[k][i] for k, i in self.places if k not in ("const", "hoisted")],
        )

    def linear(self, n_consts: int, n_carry: int) -> ClosedJaxpr:
        """The linear body as a program of (constants, their tangents, carry, residuals of the
        round, tangents of xs)."""
        n = len(self.places)
        fixed = [r for r, (k, _) in enumerate(self.places) if k in ("const", "hoisted")]
        varying = [r for r, (k, _) in enumerate(self.places) if k not in ("const", "hoisted")]
        const_ts, carry_ts, xs_ts = split(
            range(n, len(self.lin.linear.jaxpr.invars)), n_consts, n_carry
        )
        return rearranged(self.lin.linear, [*fixed, *const_ts, *carry_ts, *varying, *xs_ts])
