"""Transposition of `scan`: the loop run backwards, with cotangents as what it carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import trace_to_jaxpr
from calque.ops.common import add_tangents
from calque.transforms.engines.slices import dependent_results, dependents, without_dead_code
from calque.transforms.engines.transpose import backward_pass, of_precision
from calque.transforms.engines.zeros import (
    instantiate,
    nonzero,
    only_nonzero,
    tangent_aval,
    with_zeros,
)
from calque.transforms.primitives.flow import split
from calque.transforms.primitives.scan_common import (
    Mask,
    bind_scan,
    carried_too,
    stacked_aval,
    thirds,
)


def _either(a: Sequence[bool], b: Sequence[bool]) -> Mask:
    return tuple([x or y for x, y in zip(a, b, strict=True)])


def transpose(
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
    touched = carried_too(linear, num_consts, num_carry, lambda m: dependent_results(jaxpr, m))
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
            found = backward_pass(self.jaxpr.jaxpr, self.jaxpr.consts, full, given)
            found = [of_precision(ct, a) for ct, a in zip(found, self.jaxpr.in_avals, strict=True)]
            return self._sorted(found, so_far, lin_consts)

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
        outvars=[*[j.outvars[i - num_consts] for i in carried], *local],
    )
    c, i, x = thirds(keep, num_consts, num_carry)
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
    back = transpose(
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
