"""The equation `shard_map`: a program of the parts that devices hold, in a recorded program.

All rules transform that program, inside the region where its mesh axes are manual. What is compiled
has the program batched along these axes in its place (`expanded`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Eqn, expansions, without_places
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import jaxpr_as_fun, trace_to_jaxpr, typeof
from calque.ops.common import scalar_of
from calque.transforms.devices.abstract_mesh import AxisType
from calque.transforms.devices.casts import cast_from_invariant
from calque.transforms.devices.mesh import manual_region
from calque.transforms.devices.shard_map_parts import of_parts, whole
from calque.transforms.devices.specs import PartitionSpec, names_in, names_of_spec
from calque.transforms.devices.types import (
    EMPTY_MANUAL,
    MeshPlace,
    in_mesh_order,
    lenient,
    mat_of,
    place_on,
)
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.linear import linearize_jaxpr
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    hoisted,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.zeros import nonzero, only_nonzero, with_zeros

Specs = tuple[PartitionSpec, ...]
Params = dict[str, Any]


def manual_names(params: Params) -> tuple[Hashable, ...]:
    """The axes that the equation maps, in the order of the mesh."""
    return in_mesh_order(params["mesh"], params["newly_manual_axes"])


def member_names(params: Params) -> tuple[Hashable, ...]:
    """The axes that the members of a lane are spread over: not those over which the lanes of a vmap
    around are."""
    return tuple(n for n in manual_names(params) if not axes.splits(n))


def mapped_axes(params: Params) -> list[Axis]:
    mesh, names = params["mesh"], manual_names(params)
    inside = mesh.abstract_mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
    return [Axis(n, mesh.shape[n], params["check_vma"], devices=True, mesh=inside) for n in names]


@contextlib.contextmanager
def region(params: Params) -> Iterator[None]:
    """Inside, the mesh axes are manual, and can be named by collectives of what is recorded."""
    mapped = mapped_axes(params)
    with axes.bound(mapped), manual_region(mapped[0].mesh, params["check_vma"]):
        yield


def part_aval(aval: ShapedArray, spec: PartitionSpec, params: Params) -> ShapedArray:
    """The type of a part of an argument."""
    mesh, manual = params["mesh"], set(manual_names(params))
    shape = [
        d // math.prod(mesh.shape[n] for n in names_in(e))
        for d, e in zip(aval.shape, spec.padded(aval.ndim))
    ]
    own = aval.place.spec.padded(aval.ndim) if isinstance(aval.place, MeshPlace) else ()
    inner = [tuple(n for n in names_in(e) if n not in manual) for e in own] or [()] * aval.ndim
    mat = mat_of(aval)
    if params["check_vma"]:
        mat = mat.update(
            varying=mat.varying | names_of_spec(spec),
            unreduced=mat.unreduced | spec.unreduced,
            reduced=mat.reduced | spec.reduced,
        )
    inside = mapped_axes(params)[0].mesh
    place = place_on(inside, PartitionSpec(*inner), mat, aval.ndim)
    return ShapedArray(tuple(shape), aval.dtype, aval.weak_type, place)


def whole_aval(aval: ShapedArray, spec: PartitionSpec, params: Params) -> ShapedArray:
    """The type of a result, from that of its parts."""
    mesh, manual = params["mesh"], set(manual_names(params))
    entries = spec.padded(aval.ndim)
    shape = tuple(
        d * math.prod(mesh.shape[n] for n in names_in(e)) for d, e in zip(aval.shape, entries)
    )
    inner = (
        aval.place.spec.padded(aval.ndim)
        if isinstance(aval.place, MeshPlace)
        else (None,) * aval.ndim
    )
    outer = spec.update(partitions=[(*names_in(a), *names_in(b)) for a, b in zip(entries, inner)])
    mat = mat_of(aval)
    rest = mat.update(**{k: getattr(mat, k) - manual for k in ("varying", "unreduced", "reduced")})
    place = place_on(mesh, outer, rest if not rest.empty else EMPTY_MANUAL, aval.ndim)
    return ShapedArray(shape, aval.dtype, aval.weak_type, place)


def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, out_specs: Specs, **params: Any) -> Any:
    return [whole_aval(a, s, params) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]


# ---------------------------------------------------------------- calls


def call(
    jaxpr: ClosedJaxpr, args: Sequence[Any], in_specs: Specs, out_specs: Specs, params: Params
) -> list[Any]:
    """Bind, with results that vary as their specs say."""
    if params["check_vma"]:
        jaxpr = _varying_as(jaxpr, out_specs, params)
    jaxpr, extra = hoisted(jaxpr)
    specs = (*[PartitionSpec()] * len(extra), *in_specs)
    return shard_map_p.bind(
        *extra, *args, jaxpr=jaxpr, in_specs=specs, out_specs=tuple(out_specs), **params
    )


def _varying_as(jaxpr: ClosedJaxpr, specs: Sequence[PartitionSpec], params: Params) -> ClosedJaxpr:
    missing = [
        in_mesh_order(params["mesh"], names_of_spec(s) - mat_of(a).vur)
        for a, s in zip(jaxpr.out_avals, specs, strict=True)
    ]
    if not any(missing):
        return jaxpr
    return _with_results(
        jaxpr, params, lambda i, x: cast_from_invariant(x, missing[i]) if missing[i] else x
    )


def _changes(
    avals: Sequence[ShapedArray], params: Params, change: Callable[[int, Any], Any]
) -> ClosedJaxpr:
    """Something done to each of some values, as a program."""
    with region(params):
        return trace_to_jaxpr(
            lambda *xs: [change(i, x) for i, x in enumerate(xs)], list(avals), lenient=True
        )


def _with_results(
    jaxpr: ClosedJaxpr, params: Params, change: Callable[[int, Any], Any]
) -> ClosedJaxpr:
    """The program with something done to each result. Its own equations stay: linear ones can be
    transposed, but not evaluated."""
    after = _changes(jaxpr.out_avals, params, change)
    given: dict[Any, Any] = dict(zip(after.jaxpr.invars, jaxpr.jaxpr.outvars, strict=True))
    eqns = [e.replace(invars=[given.get(a, a) for a in e.invars]) for e in after.eqns]
    joined = jaxpr.jaxpr.replace(
        constvars=[*jaxpr.jaxpr.constvars, *after.jaxpr.constvars],
        eqns=[*jaxpr.eqns, *eqns],
        outvars=[given.get(a, a) for a in after.jaxpr.outvars],
    )
    return ClosedJaxpr(joined, [*jaxpr.consts, *after.consts])


def _with_arguments(
    jaxpr: ClosedJaxpr,
    avals: Sequence[ShapedArray],
    params: Params,
    change: Callable[[int, Any], Any],
) -> ClosedJaxpr:
    """The program with something done to each argument first; these have the types `avals`."""
    before = _changes(avals, params, change)
    names: dict[Any, Any] = dict(zip(jaxpr.jaxpr.invars, before.jaxpr.outvars, strict=True))
    eqns = [e.replace(invars=[names.get(a, a) for a in e.invars]) for e in jaxpr.eqns]
    joined = jaxpr.jaxpr.replace(
        constvars=[*before.jaxpr.constvars, *jaxpr.jaxpr.constvars],
        invars=before.jaxpr.invars,
        eqns=[*before.eqns, *eqns],
        outvars=[names.get(a, a) for a in jaxpr.jaxpr.outvars],
    )
    return ClosedJaxpr(joined, [*before.consts, *jaxpr.consts])


# ---------------------------------------------------------------- rules


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> Any:
    which = nonzero(tangents)
    with region(params):
        both, mask = jvp_jaxpr(jaxpr, which)
    ins = (*in_specs, *[s for s, nz in zip(in_specs, which) if nz])
    outs_specs = (*out_specs, *[s for s, nz in zip(out_specs, mask) if nz])
    outs = call(both, [*primals, *only_nonzero(tangents)], ins, outs_specs, params)
    n = len(mask)
    avals = _shape(jaxpr=jaxpr, out_specs=out_specs, **params)
    return outs[:n], with_zeros(outs[n:], mask, avals)


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> Any:
    which = nonzero(tangents)
    with region(params):
        lin = linearize_jaxpr(jaxpr, which)
    n = len(lin.nonzeros)
    avals = _shape(jaxpr=jaxpr, out_specs=out_specs, **params)
    if not any(lin.nonzeros):
        outs = call(jaxpr, primals, in_specs, out_specs, params)
        return outs, with_zeros([], lin.nonzeros, avals)
    handed = _Residuals(lin, in_specs, params)
    results = call(handed.primal, primals, in_specs, (*out_specs, *handed.new_specs), params)
    residuals = [primals[i] if kind == "in" else results[n + i] for kind, i in handed.sources]
    out_tangents = call(
        handed.linear,
        [*residuals, *only_nonzero(tangents)],
        (*handed.specs, *[s for s, nz in zip(in_specs, which) if nz]),
        tuple(s for s, nz in zip(out_specs, lin.nonzeros) if nz),
        params,
    )
    return results[:n], with_zeros(out_tangents, lin.nonzeros, avals)


class _Residuals:
    """What the linear program reads of the other: arguments as they are cut, and new results, split
    over the axes that they vary along; scalars get a dimension for that."""

    def __init__(self, lin: Any, in_specs: Specs, params: Params):
        mesh = params["mesh"]
        n_out = len(lin.nonzeros)
        outs, atoms = lin.primal.out_avals, list(lin.primal.jaxpr.outvars)
        new_avals: list[ShapedArray] = []
        new_atoms: list[Any] = []
        self.sources: list[tuple[str, int]] = []
        for kind, i in lin.sources:
            if kind == "in":
                self.sources.append((kind, i))
                continue
            k = i if kind == "out" else n_out + i
            self.sources.append(("new", len(new_atoms)))
            new_avals.append(outs[k])
            new_atoms.append(atoms[k])
        everything = member_names(params)
        varying = [
            in_mesh_order(mesh, mat_of(a).varying & set(everything))
            if params["check_vma"]
            else everything
            for a in new_avals
        ]
        flat = [bool(v) and a.ndim == 0 for a, v in zip(new_avals, varying)]
        self.new_specs = tuple(
            PartitionSpec(
                *([v] if v else []), unreduced=mat_of(a).unreduced, reduced=mat_of(a).reduced
            )
            for a, v in zip(new_avals, varying)
        )
        primal = ClosedJaxpr(
            lin.primal.jaxpr.replace(outvars=atoms[:n_out] + new_atoms), lin.primal.consts
        )
        self.primal = _with_results(
            primal,
            params,
            lambda i, x: do.reshape(x, new_sizes=(1,)) if i >= n_out and flat[i - n_out] else x,
        )
        n = len(self.sources)
        shaped = [kind == "new" and flat[i] for kind, i in self.sources]
        avals = [
            a.update(shape=(1,)) if k < n and shaped[k] else a
            for k, a in enumerate(lin.linear.in_avals)
        ]
        self.linear = _with_arguments(
            lin.linear,
            avals,
            params,
            lambda k, x: do.reshape(x, new_sizes=()) if k < n and shaped[k] else x,
        )
        self.specs = tuple(
            in_specs[i] if kind == "in" else self.new_specs[i] for kind, i in self.sources
        )


def _transpose(
    cts: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in args])
    which = nonzero(cts)
    with region(params):
        back, mask = transpose_jaxpr(jaxpr, linear, which)
    ct_specs = [s.to_ct_spec() for s, nz in zip(out_specs, which) if nz]
    given = only_nonzero(cts)
    results = [s.to_ct_spec() for s, own in zip(in_specs, linear) if own]
    results = [s for s, nz in zip(results, mask) if nz]
    if not params["check_vma"]:  # of results that are the same for all, each member has its share
        given = [_share(ct, s, params) for ct, s in zip(given, ct_specs)]
        missing = [_unmentioned(s, params) for s in results]
        back = _with_results(back, params, lambda i, x: _added(x, missing[i]))
    known = [x for x in args if type(x) is not UndefinedPrimal]
    known_specs = [s for s, own in zip(in_specs, linear) if not own]
    outs = iter(call(back, [*known, *given], (*known_specs, *ct_specs), tuple(results), params))
    flags = iter(mask)
    return [
        (next(outs) if next(flags) else Zero(x.aval)) if own else None
        for x, own in zip(args, linear)
    ]


def _unmentioned(spec: PartitionSpec, params: Params) -> tuple[Hashable, ...]:
    used = names_of_spec(spec) | spec.unreduced | spec.reduced
    return tuple(n for n in member_names(params) if n not in used)


def _share(ct: Any, spec: PartitionSpec, params: Params) -> Any:
    n = math.prod(params["mesh"].shape[a] for a in _unmentioned(spec, params))
    return ct if n == 1 else do.div(ct, scalar_of(typeof(ct).dtype, n))


def _added(x: Any, names: tuple[Hashable, ...]) -> Any:
    return do.psum(x, axes=names, axis_index_groups=None) if names else x


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> Any:
    named = {n for s in (*in_specs, *out_specs) for n in names_of_spec(s)}
    own = [n for n in axis.spmd if n in params["newly_manual_axes"] and n not in named]
    size = axis.size // math.prod(params["mesh"].shape[n] for n in own)
    with region(params):
        batched, out_dims = batch_jaxpr(jaxpr, axis._replace(size=size), tuple(dims))

    def wider(spec: PartitionSpec, d: Dim, ndim: int) -> PartitionSpec:
        if d is None:
            return spec
        entries = spec.partitions if d <= len(spec) else spec.padded(ndim)
        return spec.update(partitions=(*entries[:d], tuple(own), *entries[d:]))

    ins = tuple(
        wider(s, d, typeof(x).ndim - 1) for s, d, x in zip(in_specs, dims, args, strict=True)
    )
    outs = tuple(
        wider(s, d, a.ndim) for s, d, a in zip(out_specs, out_dims, jaxpr.out_avals, strict=True)
    )
    return call(batched, args, ins, outs, params), list(out_dims)


shard_map_p = AxisPrimitive(
    "shard_map",
    meaning=lambda *args, **params: reference.run(
        _expanded([typeof(a) for a in args], params), *args
    ),
    shape=_shape,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)


# ---------------------------------------------------------------- programs with such equations


def _dead_code(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    closed: ClosedJaxpr = e.params["jaxpr"]
    jaxpr = without_dead_code(closed.jaxpr, used)
    reads = used_inputs(jaxpr)
    jaxpr = jaxpr.replace(invars=[v for v, r in zip(jaxpr.invars, reads) if r])
    specs = {
        "in_specs": tuple(s for s, r in zip(e.params["in_specs"], reads) if r),
        "out_specs": tuple(s for s, u in zip(e.params["out_specs"], used) if u),
    }
    return e.replace(
        invars=[a for a, r in zip(e.invars, reads) if r],
        outvars=[v for v, u in zip(e.outvars, used) if u],
        params={**e.params, "jaxpr": ClosedJaxpr(jaxpr, closed.consts), **specs},
    )


dead_code_rules["shard_map"] = _dead_code
dependence_rules["shard_map"] = lambda e, unknown: dependent_results(
    e.params["jaxpr"], tuple(unknown)
)


def _of_the_whole(closed: ClosedJaxpr, mesh: Any) -> ClosedJaxpr:
    """The program of parts; what it says of where those are is said of the automatic axes of the
    whole mesh alone."""
    same: dict[Any, Any] = {}
    eqns = []
    for e in closed.eqns:
        e = e.replace(invars=[same.get(a, a) for a in e.invars])
        is_constraint = e.primitive.name == "sharding_constraint"
        sharding: Any = e.params.get("sharding") if is_constraint else None
        if getattr(getattr(sharding, "mesh", None), "manual_axes", ()):
            if set(mesh.auto_axes).issuperset(mesh.axis_names):
                said = sharding.update(mesh=mesh)
                eqns.append(e.replace(params={**e.params, "sharding": said}))
            else:
                same[e.outvars[0]] = e.invars[0]
        else:
            eqns.append(e)
    outs = [same.get(a, a) for a in closed.jaxpr.outvars]
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, outvars=outs), closed.consts)


def _expanded(avals: Sequence[ShapedArray], params: Params) -> ClosedJaxpr:
    """The equation as a program of ordinary ones."""
    jaxpr = _of_the_whole(without_places(params["jaxpr"]), params["mesh"])
    mapped = mapped_axes(params)

    def expand(*args: Any) -> list[Any]:
        outs, varying, _ = of_parts(jaxpr_as_fun(jaxpr), args, params["in_specs"], mapped)
        with lenient():
            return [
                whole(x, v, s, mapped)
                for x, v, s in zip(outs, varying, params["out_specs"], strict=True)
            ]

    plain = [a.without_place() for a in avals]
    return without_places(trace_to_jaxpr(expand, plain, "shard_map", lenient=True))


expansions["shard_map"] = lambda e: _expanded([a.aval for a in e.invars], e.params)
