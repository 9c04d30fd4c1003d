"""Loops with a known number of rounds: the primitive `scan` with all its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, DropVar, Eqn, Jaxpr, Var
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import eval_jaxpr, trace_to_jaxpr
from calque.ops.common import add_tangents, move, scalar_of
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr, placed
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.linear import Linearized, linearize_jaxpr
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    dependents,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.transpose import backward_pass
from calque.transforms.engines.zeros import (
    instantiate,
    nonzero,
    only_nonzero,
    tangent_aval,
    with_zeros,
)
from calque.transforms.primitives.flow import rearranged, split, with_inputs

Mask = tuple[bool, ...]


def bind_scan(
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    unroll: Any,
    counted: bool = False,
) -> list[Any]:
    """A loop of `length` rounds; a counted one ends sooner, after as many as its first constant
    says (which the body does not read).

    It reads and writes the first rows of what is stacked. The other rows of its results are left as
    memory was.
    """
    return scan_p.bind(
        *consts,
        *init,
        *xs,
        jaxpr=jaxpr,
        length=length,
        num_carry=len(init),
        num_consts=len(consts),
        reverse=reverse,
        unroll=unroll,
        **({"counted": True} if counted else {}),
    )


def bind_counted(
    count: Any,
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
) -> list[Any]:
    """A scan of the first `count` (an int32) of `length` rounds."""
    body = _with_count(jaxpr)
    return bind_scan(
        [count, *consts],
        init,
        xs,
        jaxpr=body,
        length=length,
        reverse=reverse,
        unroll=1,
        counted=True,
    )


def _with_count(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The body with the count before its own arguments."""
    if "counted" not in jaxpr.cache:
        count = ShapedArray((), np.dtype("int32"))
        jaxpr.cache["counted"] = with_inputs(jaxpr, [count, *range(len(jaxpr.jaxpr.invars))])
    return jaxpr.cache["counted"]


def _meaning(
    *args: np.ndarray,
    jaxpr: ClosedJaxpr,
    length: int,
    num_carry: int,
    num_consts: int,
    reverse: bool,
    unroll: Any,
    counted: bool = False,
) -> list[np.ndarray]:
    consts, carry, xs = split(args, num_consts, num_carry)
    stacked = [np.zeros((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    rounds = int(args[0]) if counted else length
    for i in reversed(range(rounds)) if reverse else range(rounds):
        outs = reference.run(jaxpr, *consts, *carry, *[x[i] for x in xs])
        carry = outs[:num_carry]
        for s, y in zip(stacked, outs[num_carry:]):
            s[i] = y
    return [*carry, *stacked]


def _shape(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return outs[:num_carry] + [stacked_aval(a, length) for a in outs[num_carry:]]


def stacked_aval(aval: ShapedArray, length: int) -> ShapedArray:
    return ShapedArray((length, *aval.shape), aval.dtype, aval.weak_type)


# ---------------------------------------------------------------- forward mode


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    n_ys = len(jaxpr.jaxpr.outvars) - num_carry
    active = _fixpoint(nonzero(tangents), num_consts, num_carry, lambda m: jvp_jaxpr(jaxpr, m)[1])
    c_nz, carry_nz, x_nz = (tuple(m) for m in split(active, num_consts, num_carry))
    both, mask = jvp_jaxpr(jaxpr, active, carry_nz + (False,) * n_ys)
    # the program takes (values, tangents) and gives (values, tangents): bring constants, carry and
    # xs together
    n = len(active)
    values = split(range(n), num_consts, num_carry)
    slots = split(range(n, n + sum(active)), sum(c_nz), sum(carry_nz))
    outs = split(range(len(mask) + sum(mask)), num_carry, n_ys, sum(carry_nz))
    order = [i for v, t in zip(values, slots) for i in (*v, *t)]
    body = rearranged(both, order, [*outs[0], *outs[2], *outs[1], *outs[3]])
    parts = [
        [*p, *_tangents_of(t, m)]
        for p, t, m in zip(
            split(primals, num_consts, num_carry),
            split(tangents, num_consts, num_carry),
            (c_nz, carry_nz, x_nz),
        )
    ]
    found = bind_scan(*parts, jaxpr=body, **params)
    carry, carry_t, ys, ys_t = split(found, num_carry, sum(carry_nz), n_ys)
    avals = _shape(jaxpr=jaxpr, length=params["length"], num_carry=num_carry)
    return [*carry, *ys], with_zeros([*carry_t, *ys_t], mask, avals)


def _fixpoint(mask: Mask, num_consts: int, num_carry: int, outs_of: Any) -> Mask:
    """`mask` over (consts, carry, xs), with each carry that becomes true in some round."""
    while True:
        outs = outs_of(mask)
        carry = tuple(a or b for a, b in zip(mask[num_consts:], outs[:num_carry]))
        new = mask[:num_consts] + carry + mask[num_consts + num_carry :]
        if new == mask:
            return mask
        mask = new


def _either(a: Sequence[bool], b: Sequence[bool]) -> Mask:
    return tuple([x or y for x, y in zip(a, b, strict=True)])


def _tangents_of(tangents: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The tangents in `mask`, as arrays."""
    return [instantiate(t) for t, m in zip(tangents, mask) if m]


# ---------------------------------------------------------------- linearisation


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    n_ys = len(jaxpr.jaxpr.outvars) - num_carry
    out_avals = _shape(jaxpr=jaxpr, length=params["length"], num_carry=num_carry)
    active = _fixpoint(
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
    linear_consts = [*res_consts, *_tangents_of(const_ts, c_nz)]
    linear_xs = [*res_xs, *_tangents_of(xs_ts, x_nz)]
    body = plan.linear(sum(c_nz), sum(carry_nz))
    if params.get("counted"):
        body, linear_consts = _with_count(body), [consts[0], *linear_consts]
    out_ts = bind_scan(
        linear_consts, _tangents_of(init_ts, carry_nz), linear_xs, jaxpr=body, **params
    )
    return outs, with_zeros(out_ts, lin.nonzeros, out_avals)


class _Residuals:
    """Where each residual of a linearised body lives: constants of the loop, computed before it,
    read again from xs or ys, or stacked by the loop."""

    def __init__(self, lin: Linearized, num_consts: int, num_carry: int, num_xs: int):
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


# ---------------------------------------------------------------- transposition


def _transpose(
    cts: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    length: int,
    reverse: bool,
    unroll: Any,
    **counted: bool,
) -> list[Any]:
    params = {"length": length, "reverse": reverse, "unroll": unroll, **counted}
    linear = tuple([type(x) is UndefinedPrimal for x in args])
    touched = _fixpoint(linear, num_consts, num_carry, lambda m: dependent_results(jaxpr, m))
    if not all(touched[num_consts : num_consts + num_carry]):
        return _transpose_rest(cts, args, touched, jaxpr, num_consts, num_carry, params)
    consts, _, xs = split(args, num_consts, num_carry)
    c_lin, i_lin, x_lin = split(linear, num_consts, num_carry)
    ct_carry, ct_ys = split(cts, num_carry)
    back = _Backward(
        jaxpr, (tuple(c_lin), tuple(x_lin)), num_carry, nonzero(ct_carry), nonzero(ct_ys)
    )
    known_consts = [x for x, lin in zip(consts, c_lin) if not lin]
    known_xs = [x for x, lin in zip(xs, x_lin) if not lin]
    carry = back.start([x.aval for x, lin in zip(consts, c_lin) if lin], ct_carry)
    params["reverse"] = not reverse
    found = bind_scan(
        known_consts, carry, [*known_xs, *only_nonzero(ct_ys)], jaxpr=back.body, **params
    )
    ct_consts, ct_init, ct_xs = back.results(found)
    sources = (iter(ct_consts), iter(ct_init), iter(ct_xs))
    out = [next(sources[0]) if lin else None for lin in c_lin]
    for lin in i_lin:
        ct = next(sources[1])
        out.append(ct if lin else None)
    out += [_stacked_zero(next(sources[2]), length) if lin else None for lin in x_lin]
    return out


def _stacked_zero(ct: Any, length: int) -> Any:
    return Zero(stacked_aval(ct.aval, length)) if type(ct) is Zero else ct


class _Backward:
    """The transposed body: (known constants; cotangents of linear constants so far, of the carry;
    known xs, cotangents of ys) to (the cotangents carried on; cotangents of the linear xs).
    Cotangents that stay zero in all rounds are left out.
    """

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        linear: tuple[Mask, Mask],
        num_carry: int,
        carry_nz: Mask,
        ys_nz: Mask,
    ):
        self.jaxpr, self.num_carry, self.ys_nz = jaxpr, num_carry, ys_nz
        self.c_lin, self.x_lin = linear
        self.c_nz: Mask = (False,) * sum(self.c_lin)
        self._found: tuple[Mask, Mask, Mask] = ((), (), ())
        self.x_nz: Mask = ()
        self.carry_nz = carry_nz
        while True:
            self.body: ClosedJaxpr = self._trace()
            carry_nz = _either(self.carry_nz, self._found[1])
            c_nz = _either(self.c_nz, self._found[0])
            if (carry_nz, c_nz) == (self.carry_nz, self.c_nz):
                return
            self.carry_nz, self.c_nz = carry_nz, c_nz

    def _trace(self) -> ClosedJaxpr:
        key = ("scan transpose", self.c_lin, self.x_lin, self.carry_nz, self.c_nz, self.ys_nz)
        cache = self.jaxpr.cache
        if key not in cache:
            cache[key] = self._traced(), self._found
        body, self._found = cache[key]
        self.x_nz = self._found[2]
        return body

    def _traced(self) -> ClosedJaxpr:
        consts, _, xs = split(self.jaxpr.in_avals, len(self.c_lin), self.num_carry)
        lin_consts = [tangent_aval(a) for a, lin in zip(consts, self.c_lin) if lin]
        outs = self.jaxpr.out_avals
        ct_carry = [tangent_aval(a) for a, nz in zip(outs, self.carry_nz) if nz]
        ct_ys = [tangent_aval(a) for a, nz in zip(outs[self.num_carry :], self.ys_nz) if nz]
        known_c = [a for a, lin in zip(consts, self.c_lin) if not lin]
        known_x = [a for a, lin in zip(xs, self.x_lin) if not lin]
        sums = [a for a, nz in zip(lin_consts, self.c_nz) if nz]
        sizes = [len(known_c), len(sums), len(ct_carry), len(known_x)]

        def backward(*args: Any) -> list[Any]:
            c, so_far, cts, x, y = split(args, *sizes)
            full = [UndefinedPrimal(a) for a in self.jaxpr.in_avals]
            for values, lin, at in (
                (c, self.c_lin, 0),
                (x, self.x_lin, len(full) - len(self.x_lin)),
            ):
                it = iter(values)
                full[at : at + len(lin)] = [
                    full[at + k] if m else next(it) for k, m in enumerate(lin)
                ]
            given = with_zeros([*cts, *y], self.carry_nz + self.ys_nz, outs)
            return self._sorted(
                backward_pass(self.jaxpr.jaxpr, self.jaxpr.consts, full, given), so_far, lin_consts
            )

        return trace_to_jaxpr(
            backward, [*known_c, *sums, *ct_carry, *known_x, *ct_ys], "transpose of scan"
        )

    def _sorted(
        self, found: list[Any], so_far: Sequence[Any], lin_consts: Sequence[ShapedArray]
    ) -> list[Any]:
        ct_consts, ct_carry, ct_xs = split(found, len(self.c_lin), self.num_carry)
        ct_consts = [ct for ct, lin in zip(ct_consts, self.c_lin) if lin]
        ct_xs = [ct for ct, lin in zip(ct_xs, self.x_lin) if lin]
        self._found = (nonzero(ct_consts), nonzero(ct_carry), nonzero(ct_xs))
        sums = [
            add_tangents(a, b) for a, b in zip(with_zeros(so_far, self.c_nz, lin_consts), ct_consts)
        ]
        kept = [instantiate(s) for s, nz in zip(sums, self.c_nz) if nz]
        kept += [instantiate(ct) for ct, nz in zip(ct_carry, self.carry_nz) if nz]
        return kept + only_nonzero(ct_xs)

    def start(self, const_avals: Sequence[ShapedArray], ct_carry: Sequence[Any]) -> list[Any]:
        """The cotangents that the loop starts with."""
        sums = [instantiate(Zero(tangent_aval(a))) for a, nz in zip(const_avals, self.c_nz) if nz]
        return sums + [instantiate(ct) for ct, nz in zip(ct_carry, self.carry_nz) if nz]

    def results(self, found: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Cotangents of the linear constants, of the initial carry, and of the linear xs."""
        consts, carry, xs = split(self.jaxpr.in_avals, len(self.c_lin), self.num_carry)
        c, i, x = split(found, sum(self.c_nz), sum(self.carry_nz))
        return (
            with_zeros(c, self.c_nz, [a for a, lin in zip(consts, self.c_lin) if lin]),
            with_zeros(i, self.carry_nz, carry),
            with_zeros(x, self.x_nz, [a for a, lin in zip(xs, self.x_lin) if lin]),
        )


def _transpose_rest(
    cts: Sequence[Any],
    args: Sequence[Any],
    touched: Mask,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    params: dict[str, Any],
) -> list[Any]:
    """Some of the carry depends on nothing linear, such as a counter: that part of the loop is run
    first, then the rest transposed."""
    known_eqns, linear_eqns, _ = dependents(jaxpr.jaxpr, touched)
    j = jaxpr.jaxpr
    needed = {a for e in linear_eqns for a in e.invars} | set(j.outvars)
    local = [v for e in known_eqns for v in e.outvars if v in needed]
    keep = [i for i, t in enumerate(touched) if not t]
    carried = [i for i in keep if num_consts <= i < num_consts + num_carry]
    local += [j.invars[i] for i in carried if j.invars[i] in needed]
    body = j.replace(
        invars=[j.invars[i] for i in keep],
        eqns=known_eqns,
        outvars=[j.outvars[i - num_consts] for i in carried] + local,
    )
    c, i, x = _thirds(keep, num_consts, num_carry)
    found = bind_scan(
        *[[args[k] for k in part] for part in (c, i, x)],
        jaxpr=ClosedJaxpr(without_dead_code(body), jaxpr.consts),
        **params,
    )
    stacked = found[len(i) :]
    lin_carry = [k for k in range(num_consts, num_consts + num_carry) if touched[k]]
    outs = [k - num_consts for k in lin_carry] + list(range(num_carry, len(j.outvars)))
    rest = ClosedJaxpr(
        j.replace(
            invars=j.invars[:num_consts]
            + [j.invars[k] for k in lin_carry]
            + j.invars[num_consts + num_carry :]
            + local,
            eqns=linear_eqns,
            outvars=[j.outvars[k] for k in outs],
        ),
        jaxpr.consts,
    )
    operands = [
        *args[:num_consts],
        *(args[k] for k in lin_carry),
        *args[num_consts + num_carry :],
        *stacked,
    ]
    back = _transpose(
        [cts[k] for k in outs],
        *operands,
        jaxpr=rest,
        num_carry=len(lin_carry),
        num_consts=num_consts,
        **params,
    )
    full: list[Any] = [None] * len(args)
    where = [*range(num_consts), *lin_carry, *range(num_consts + num_carry, len(args))]
    for k, ct in zip(where, back):
        full[k] = ct
    return full


def _thirds(
    indices: Sequence[int], num_consts: int, num_carry: int
) -> tuple[list[int], list[int], list[int]]:
    end = num_consts + num_carry
    return (
        [i for i in indices if i < num_consts],
        [i for i in indices if num_consts <= i < end],
        [i for i in indices if i >= end],
    )


# ---------------------------------------------------------------- batching


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    n_ys = len(jaxpr.jaxpr.outvars) - num_carry
    if params.get("counted") and dims[0] is not None:
        return _batch_counts(axis, args, dims, jaxpr, num_carry, num_consts, params)
    mask = tuple(d is not None for d in dims)
    c_dims, _, _ = split(dims, num_consts, num_carry)

    def inner(m: Mask) -> tuple[Dim, ...]:
        return (*c_dims, *(0 if b else None for b in m[num_consts:]))

    def outs_of(m: Mask) -> Mask:
        return tuple(d is not None for d in batch_jaxpr(jaxpr, axis, inner(m))[1])

    mask = _fixpoint(mask, num_consts, num_carry, outs_of)
    carry_mask = mask[num_consts : num_consts + num_carry]
    body, out_dims = batch_jaxpr(jaxpr, axis, inner(mask), carry_mask + (False,) * n_ys)
    consts, init, xs = split(args, num_consts, num_carry)
    _, i_dims, x_dims = split(dims, num_consts, num_carry)
    init = [placed(x, d, 0, axis.size) if m else x for x, d, m in zip(init, i_dims, carry_mask)]
    xs = [x if d is None else move(x, d, 1) for x, d in zip(xs, x_dims)]
    found = bind_scan(consts, init, xs, jaxpr=body, **params)
    return found, [
        *out_dims[:num_carry],
        *(None if d is None else d + 1 for d in out_dims[num_carry:]),
    ]


def _batch_counts(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    params: dict[str, Any],
) -> Any:
    """Lanes with different numbers of rounds, together: as many as the longest needs; the others
    keep what they carry meanwhile."""
    one = ShapedArray((), np.dtype("int32"))
    step = scalar_of(one.dtype, -1 if params["reverse"] else 1)

    def body(*values: Any) -> list[Any]:
        _, consts, (i, *carry), xs = split(values, 1, num_consts, num_carry + 1)
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *xs)
        more = do.lt(i, consts[0])
        return [
            do.add(i, step),
            *(do.select_n(more, x, y) for x, y in zip(carry, outs)),
            *outs[num_carry:],
        ]

    key = ("counts", params["reverse"])
    if key not in jaxpr.cache:
        consts, rest = split(jaxpr.in_avals, num_consts)
        jaxpr.cache[key] = trace_to_jaxpr(body, [one, *consts, one, *rest], "lanes")
    consts, rest = split(args, num_consts)
    c_dims, rest_dims = split(dims, num_consts)
    most = do.reduce_max(move(args[0], dims[0] or 0, 0), axes=(0,))
    first = do.sub(most, scalar_of(one.dtype, 1)) if params["reverse"] else scalar_of(one.dtype, 0)
    found, out_dims = _batch(
        axis,
        [most, *consts, first, *rest],
        [None, *c_dims, None, *rest_dims],
        jaxpr=jaxpr.cache[key],
        num_carry=num_carry + 1,
        num_consts=num_consts + 1,
        **params,
    )
    return found[1:], out_dims[1:]


# ---------------------------------------------------------------- dead code


def _dead_code(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    """A loop without the carries, ys and operands that nobody needs."""
    p = e.params
    closed, n_consts, n_carry = p["jaxpr"], p["num_consts"], p["num_carry"]
    used = list(used)
    while True:
        jaxpr = without_dead_code(closed.jaxpr, used)
        reads = used_inputs(jaxpr)
        more = [u or r for u, r in zip(used[:n_carry], reads[n_consts:])]
        if more == used[:n_carry]:
            break
        used[:n_carry] = more
    counted = bool(p.get("counted"))

    def kept(i: int) -> bool:
        return (
            reads[i]
            or (counted and i == 0)
            or (n_consts <= i < n_consts + n_carry and used[i - n_consts])
        )

    keep = [i for i in range(len(reads)) if kept(i)]
    c, i, _ = _thirds(keep, n_consts, n_carry)
    body = rearranged(ClosedJaxpr(jaxpr, closed.consts), keep)
    params = {**p, "jaxpr": body, "num_consts": len(c), "num_carry": len(i)}
    return e.replace(
        invars=[e.invars[k] for k in keep],
        outvars=[v for v, u in zip(e.outvars, used) if u],
        params=params,
    )


def _dependence(e: Eqn, unknown: Sequence[bool]) -> Sequence[bool]:
    closed, n_consts, n_carry = e.params["jaxpr"], e.params["num_consts"], e.params["num_carry"]
    if e.params.get("counted") and unknown[0]:
        return (True,) * len(e.outvars)

    def outs_of(m: Mask) -> Mask:
        return dependent_results(closed, m)

    return outs_of(_fixpoint(tuple(unknown), n_consts, n_carry, outs_of))


scan_p = AxisPrimitive(
    "scan",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)
dead_code_rules["scan"] = _dead_code
dependence_rules["scan"] = _dependence
