"""Where results live: shardings follow the operands through each primitive, and through whole
programs.

Elementwise operations keep the layout of their operands, reductions drop dimensions, products take
the free dimensions of both sides, loops and branches keep what all rounds and all branches leave
alike. What has no rule gives a result that every device holds. Arrays that were never placed follow
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.arrays import ArrayImpl, is_deleted
from calque.core.avals import ShapedArray
from calque.core.devices import Space
from calque.core.errors import InconclusiveDimensionOperation
from calque.core.jaxprs import ClosedJaxpr, Literal, subjaxprs
from calque.core.primitives import Primitive
from calque.core.trace import typing
from calque.machine.state import process
from calque.transforms.devices.control_propagation import of_control
from calque.transforms.devices.mesh import Mesh, current_mesh, devices_of, over_devices
from calque.transforms.devices.program_devices import (
    check_places,
    common,
    described,
    of_read,
)
from calque.transforms.devices.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    Summands,
    default_sharding,
    in_space,
    is_in_own_memory,
)
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.specs import UNCONSTRAINED, PartitionSpec, names_in, names_of_spec

Entries = list[Any]  # what a spec says of each dimension


# ----------------------------------------- rules: entries of the operands -> entries of each result


# primitive name -> check(parameters, a sharding over the devices that the program runs on)
device_checks: Final[dict[str, Callable[[dict[str, Any], Sharding], None]]] = process.container(
    "checks of what devices a program runs on", {}
)


def _joined(options: Sequence[Any]) -> Any:
    return next((o for o in options if o is not None), None)


def _elementwise(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    whole = [e for e, a in zip(ins, avals) if a.shape == out.shape]
    return [_joined([e[k] for e in whole]) for k in range(out.ndim)]


def _broadcast(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    found: Entries = [None] * out.ndim
    for k, target in enumerate(params["broadcast_dimensions"]):
        if avals[0].shape[k] == out.shape[target]:
            found[target] = ins[0][k]
    return found


def _transposed(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    return [ins[0][k] for k in params["permutation"]]


def _without(option: str) -> Callable[..., Entries]:
    def rule(
        ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
    ) -> Entries:
        return [e for k, e in enumerate(ins[0]) if k not in params[option]]

    return rule


def _dot(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    (contract_l, contract_r), (batch_l, batch_r) = params["dimension_numbers"]
    found = [_joined([ins[0][i], ins[1][j]]) for i, j in zip(batch_l, batch_r)]
    found += [e for k, e in enumerate(ins[0]) if k not in contract_l and k not in batch_l]
    return found + [e for k, e in enumerate(ins[1]) if k not in contract_r and k not in batch_r]


def _reshaped(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    """Dimensions stay, merge or split in groups of equal size; the first of a group carries what
    the first one had."""
    old, new = avals[0].shape, out.shape
    found: Entries = [None] * len(new)
    i = j = 0
    while i < len(old) and j < len(new):
        first, a, b = (i, j), old[i], new[j]
        i, j = i + 1, j + 1
        while a != b:
            try:
                is_less = a < b
            except InconclusiveDimensionOperation:  # of free sizes: which it is depends on them
                return found
            if i >= len(old) if is_less else j >= len(new):
                return found
            if is_less:
                a, i = a * old[i], i + 1
            else:
                b, j = b * new[j], j + 1
        found[first[1]] = ins[0][first[0]]
    return found


def _untouched(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    """Dimensions of the same size are kept as they are: slices, updates, paddings,
    concatenations."""
    if len(ins[0]) != out.ndim:
        return [None] * out.ndim
    return [e if avals[0].shape[k] == out.shape[k] else None for k, e in enumerate(ins[0])]


def _along(option: str) -> Callable[..., Entries]:
    """The operation mixes the elements along one dimension, which every device then needs whole."""

    def rule(
        ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
    ) -> Entries:
        return [None if k == params[option] else e for k, e in enumerate(ins[0])]

    return rule


def _gathered(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    """Dimensions of the operand that are taken whole stay split, and so do those of the indices."""
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [
        e if sizes[k] == avals[0].shape[k] else None for k, e in enumerate(ins[0]) if k not in gone
    ]
    rows = list(ins[1][:-1])
    for k, j in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims):
        rows[j] = _joined([rows[j], ins[0][k]])
    offset = set(numbers.offset_dims)
    return [kept.pop(0) if k in offset else rows.pop(0) for k in range(out.ndim)]


def _of_keys(
    ins: list[Entries], avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Entries:
    """Random keys and what is drawn from each: the dimensions of the keys come first."""
    return [*ins[0], *[None] * out.ndim][: out.ndim]


RULES: Final[dict[str, Callable[..., Entries]]] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transposed,
    "squeeze": _without("dimensions"),
    "dot_general": _dot,
    "reshape": _reshaped,
    "sort": _along("dimension"),
    "gather": _gathered,
    **{
        f"reduce_{op}": _without("axes") for op in ("sum", "prod", "max", "min", "and", "or", "xor")
    },
    **{f"arg{op}": _without("axes") for op in ("max", "min")},
    **{f"cum{op}": _along("axis") for op in ("sum", "prod", "max", "min", "logsumexp")},
    **{
        op: _untouched
        for op in ("slice", "dynamic_slice", "dynamic_update_slice", "pad", "concatenate", "rev")
    },
    **{f"random_{op}": _of_keys for op in ("seed", "wrap", "unwrap", "split", "bits")},
}
_MIXING = frozenset(("cholesky", "fft", "while", "scan", "cond", "scatter", "iota", "eigh", "lu"))


def _entries(sharding: Sharding | None, ndim: int) -> Entries:
    return (
        list(sharding.spec.padded(ndim)) if isinstance(sharding, NamedSharding) else [None] * ndim
    )


def _spec(entries: Entries, mesh: Any, shape: tuple[int, ...]) -> PartitionSpec:
    """A spec of what can be kept: every mesh axis once, and where it divides the dimension."""
    seen: set[Any] = set()
    kept: Entries = []
    for entry, d in zip(entries, shape):
        names = names_in(entry)
        n = 1
        for name in names:
            n *= mesh.shape[name]
        fits = names and not seen.intersection(names) and d % n == 0
        kept.append(entry if fits else None)
        seen.update(names if fits else ())
    while kept and kept[-1] is None:
        kept.pop()
    return PartitionSpec(*kept)


# ---------------------------------------------------------------- one primitive


def follow(
    p: Primitive,
    shardings: Sequence[Sharding | None],
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    params: dict[str, Any],
) -> list[Sharding | None]:
    """The shardings of the results of one primitive."""
    if p.name == "sharding_constraint":
        asked = _with_devices(params["sharding"], shardings)
        own = None if asked is None else settled(asked, shardings[0], outs[0].ndim)
        return [_fitting(own, outs[0])]
    if p.name == "device_put":
        return [in_space(shardings[0] or default_sharding(), params["space"])]
    base = _of_one_memory(p, common(shardings, avals, p.name), shardings, avals, params)
    if not outs or not isinstance(base, NamedSharding):
        return [base] * len(outs)
    ins = [
        _entries(s if s is not None and getattr(s, "mesh", None) == base.mesh else None, a.ndim)
        for s, a in zip(shardings, avals)
    ]
    rule = RULES.get(p.name)
    if (
        rule is None
        and p.name not in _MIXING
        and all(a.shape in ((), outs[0].shape) for a in (*avals, *outs))
    ):
        rule = _elementwise
    found: list[Sharding | None] = []
    for out in outs:
        spec = (
            _spec(rule(ins, avals, out, params), base.mesh, out.shape)
            if rule is not None
            else PartitionSpec()
        )
        if p.name == "random_unwrap":  # the words of a key are a dimension that is never split
            spec = PartitionSpec(*spec.padded(out.ndim))
        ranks = [a.ndim for s, a in zip(shardings, avals) if s is base]
        same = out.ndim in ranks and spec.padded(out.ndim) == base.spec.padded(out.ndim)
        found.append(base if same else base.update(spec=spec))
    return found


def _of_one_memory(
    p: Primitive,
    base: Sharding | None,
    shardings: Sequence[Sharding | None],
    avals: Sequence[ShapedArray],
    params: dict[str, Any],
) -> Sharding | None:
    """The sharding of the results of operands that are in one memory; other operands than those of
    programs are refused."""
    if base is None:
        return None
    other = next(
        (s for s in shardings if s is not None and s.memory_kind != base.memory_kind), None
    )
    if other is None:
        return base
    if not any(True for _ in subjaxprs(params)):
        said = " and ".join(
            f"{described(a)} in {s.memory_kind}"
            for s, a in zip(shardings, avals)
            if s is base or s is other
        )
        raise ValueError(
            f"memory_space of all inputs passed to `{p.name}` must be the same. Got {said}. Bring"
            " them together with device_put(x, jax.memory.Space.Device)"
        )
    return in_space(base, Space.Device)


def _fitting(sharding: Sharding | None, aval: ShapedArray) -> Sharding | None:
    """The sharding, along those axes that divide the dimensions."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    entries = sharding.spec.padded(aval.ndim)
    counts = sharding.counts(aval.ndim)
    if all(d % n == 0 for d, n in zip(aval.shape, counts)):
        return sharding
    kept = [e if d % n == 0 else None for e, d, n in zip(entries, aval.shape, counts)]
    return sharding.update(spec=sharding.spec.update(partitions=kept))


def _with_devices(target: Sharding, known: Sequence[Sharding | None]) -> Sharding | None:
    """A sharding over the devices of the operand, if it has none of its own."""
    if isinstance(target, NamedSharding) and not isinstance(target.mesh, Mesh):
        meshes = [s.mesh for s in known if isinstance(s, NamedSharding)] + [current_mesh()]
        for mesh in meshes:
            found = over_devices(target.mesh, mesh)
            if found is not None:
                return target.update(mesh=found)
        return None
    return target


def place_one(p: Primitive, arrays: Sequence[Any], params: dict[str, Any], result: Any) -> Any:
    """The result of a primitive that ran on arrays, some of which were placed."""
    results = result if p.multiple_results else [result]
    avals = [a.aval for a in arrays]
    own = _in_memories([where_placed(a) for a in arrays], avals)
    common(own, avals, p.name, ordered=True)
    body = body_of(p, params)
    if body is not None:
        found = propagate(body, tuple(own), p.name)
    elif p.name == "shard_map":
        found = _of_map(params, own)
    else:
        found = _of_equation(p, params, own, avals, [r.aval for r in results], p.name)
    mesh = next((s.mesh for s in found if isinstance(s, NamedSharding)), None)
    if mesh is not None and mesh.explicit_axes:
        outs = [r.aval for r in results]
        outs = typing.value.results(
            p,
            [typing.value.placed(a.aval, a._extra) for a in arrays],
            params,
            outs if p.multiple_results else outs[0],
            mesh.abstract_mesh,
        )
        outs = outs if p.multiple_results else [outs]
        found = [_as_typed(s, a, {mesh.abstract_mesh: mesh}) for s, a in zip(found, outs)]
    out = [placed(r, s) for r, s in zip(results, found)]
    return out if p.multiple_results else out[0]


# ---------------------------------------------------------------- whole programs

# Primitives whose results are those of the program that they carry, for the same operands: name ->
# the parameter that holds it.
_CALLS: Final = {
    "jit": "jaxpr",
    "closed_call": "jaxpr",
    "call": "jaxpr",
    "composite": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_partitioning": "call",
    "remat2": "jaxpr",
}


def body_of(p: Primitive, params: dict[str, Any]) -> ClosedJaxpr | None:
    """The program that a primitive calls; None of others."""
    name = _CALLS.get(p.name)
    body = params.get(name) if name is not None else None
    return body if isinstance(body, ClosedJaxpr) else None


def propagate(
    closed: ClosedJaxpr, shardings: tuple[Sharding | None, ...], name: str
) -> list[Sharding | None]:
    """The shardings of the results of a program, given those of its arguments."""
    key = ("shardings", shardings)
    if key not in closed.cache:
        closed.cache[key] = _propagate(closed, shardings, name)
    return closed.cache[key]


def _propagate(
    closed: ClosedJaxpr, shardings: tuple[Sharding | None, ...], name: str
) -> list[Sharding | None]:
    home = common(of_read(closed, shardings), closed.in_avals, name, ordered=True)
    env: dict[Any, Sharding | None] = dict(zip(closed.jaxpr.invars, shardings, strict=True))
    for v, c in zip(closed.jaxpr.constvars, closed.consts):
        env[v] = where_placed(c)
    for e in closed.eqns:
        ins = tuple([None if isinstance(a, Literal) else env.get(a) for a in e.invars])
        check = device_checks.get(e.primitive.name)
        if check is not None and home is not None:
            check(e.params, home)
        body = body_of(e.primitive, e.params)
        if body is not None:
            found = propagate(body, ins, name)
        elif e.primitive.name == "shard_map":
            found = _of_map(e.params, ins)
        elif e.primitive.name == "device_put" and ins[0] is None:
            home = home or next((s for s in env.values() if s is not None), None)
            found = [_whole_in(e.params["space"], home)]
        else:
            avals, outs = [a.aval for a in e.invars], [v.aval for v in e.outvars]
            found = _of_equation(e.primitive, e.params, ins, avals, outs, name)
        env.update(zip(e.outvars, found))
    return [None if isinstance(a, Literal) else env.get(a) for a in closed.jaxpr.outvars]


def _of_equation(
    p: Primitive,
    params: dict[str, Any],
    ins: Sequence[Sharding | None],
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    name: str,
) -> list[Sharding | None]:
    """The results of one equation of a program of this name, of loops and branches as well."""
    known = None
    if isinstance(common(ins, avals, p.name), NamedSharding):
        ranks = [a.ndim for a in avals]
        known = of_control(
            p.name, params, ins, ranks, lambda body, given: propagate(body, tuple(given), name)
        )
    return follow(p, ins, avals, outs, params) if known is None else known


def _whole_in(space: Space, home: Sharding | None) -> Sharding | None:
    """Where a value is that was placed nowhere but in this memory: on all devices of the program,
    if those are known."""
    if home is None:
        return None if space is Space.Device else in_space(default_sharding(), space)
    whole = home.update(spec=PartitionSpec()) if isinstance(home, NamedSharding) else home
    return in_space(whole, space)


def _of_map(params: dict[str, Any], ins: Sequence[Sharding | None]) -> list[Sharding | None]:
    """The results of a `shard_map` are where its `out_specs` say."""
    mesh, closed = params["mesh"], params["jaxpr"]
    free = set(mesh.auto_axes) - params["newly_manual_axes"]
    specs = [_known(s, mesh) for s in params["out_specs"]]
    if free:  # the program of parts says how its results are split over these
        inner = propagate(closed, (None,) * len(closed.in_avals), "shard_map")
        specs = [
            _joined_free(s, own, free, a.ndim) for s, own, a in zip(specs, inner, closed.out_avals)
        ]
    return [_with_devices(NamedSharding(mesh, s), ins) for s in specs]


def _joined_free(
    spec: PartitionSpec, own: Sharding | None, free: set[Any], ndim: int
) -> PartitionSpec:
    """A spec, with what the sharding of a part says of axes that are not mapped."""
    if not isinstance(own, NamedSharding):
        return spec
    entries = [
        (*names_in(a), *(n for n in names_in(b) if n in free))
        for a, b in zip(spec.padded(ndim), own.spec.padded(ndim))
    ]
    while entries and not entries[-1]:
        entries.pop()
    return spec.update(partitions=entries)


def _known(spec: PartitionSpec, mesh: Any) -> PartitionSpec:
    explicit = frozenset(mesh.explicit_axes)
    return spec.update(unreduced=spec.unreduced & explicit, reduced=spec.reduced & explicit)


def result_shardings(
    closed: ClosedJaxpr, leaves: Sequence[Any], name: str
) -> list[Sharding | None]:
    """The shardings of the results of a program that is going to run on these arguments: along
    explicit axes what their types say."""
    own = _in_memories([where_placed(x) for x in leaves], closed.in_avals)
    check_places(closed, tuple(own), name)
    return shardings_of_results(closed, tuple(own), name)


def _in_memories(own: list[Sharding | None], avals: Sequence[ShapedArray]) -> list[Sharding | None]:
    """The shardings of operands. Where some are in another memory than that of their devices, what
    was placed nowhere is in that one, but for numbers, which go with any."""
    other = next((s for s in own if not is_in_own_memory(s)), None)
    if other is None:
        return own
    home = _whole_in(Space.Device, other)
    return [home if s is None and a.ndim else s for s, a in zip(own, avals, strict=True)]


def shardings_of_results(
    closed: ClosedJaxpr, given: tuple[Sharding | None, ...], name: str
) -> list[Sharding | None]:
    """The shardings of the results of a program whose arguments have these."""
    found = _all_somewhere(propagate(closed, given, name), of_read(closed, given))
    if all(getattr(a, "place", None) is None for a in closed.out_avals):
        return said_shortly(closed, of_read(closed, given), found)
    known = [s.mesh for s in (*given, *found) if isinstance(s, NamedSharding)]
    meshes = {m.abstract_mesh: m for m in reversed([*known, current_mesh()]) if isinstance(m, Mesh)}
    return [_as_typed(s, a, meshes) for s, a in zip(found, closed.out_avals, strict=True)]


CHOSEN: Final = "results whose shardings the caller chose"  # of a program: a bool for each


def said_shortly(
    closed: ClosedJaxpr, given: Sequence[Sharding | None], found: list[Sharding | None]
) -> list[Sharding | None]:
    """The same shardings in the fewest words, but where the caller chose them. Results that lie as
    an argument does have that one's, in its words."""
    chosen = closed.cache.get(CHOSEN) or (False,) * len(found)
    out: list[Sharding | None] = []
    ranked = list(zip(given, closed.in_avals, strict=True))
    for s, aval, kept in zip(found, closed.out_avals, chosen, strict=True):
        if kept or not isinstance(s, NamedSharding) or s.mesh.explicit_axes:
            out.append(s)
            continue
        alike = [g for g, a in ranked if g is not None and a.ndim == aval.ndim]
        like = (g for g in alike if g == s or _is_same(g, s, aval.ndim))
        out.append(next(like, None) or s.update(spec=_short(s, aval.ndim)))
    return out


def _is_same(a: Sharding, b: NamedSharding, ndim: int) -> bool:
    return (
        isinstance(a, NamedSharding)
        and a.mesh == b.mesh
        and a.memory_kind == b.memory_kind
        and len(a.spec) <= ndim
        and a.is_equivalent_to(b, ndim)
    )


def _short(s: NamedSharding, ndim: int) -> PartitionSpec:
    entries: Entries = []
    for entry in s.spec.padded(ndim):
        names = tuple(names_in(entry))
        entries.append(names[0] if len(names) == 1 else names or None)
    while entries and entries[-1] is None:
        entries.pop()
    return s.spec.update(partitions=entries)


def _all_somewhere(
    found: list[Sharding | None], given: Sequence[Sharding | None]
) -> list[Sharding | None]:
    """Where some results of a program are split over several devices, the others are on all of
    them; where its arguments were put on one device, all results are there."""
    split = next((s for s in found if isinstance(s, NamedSharding) and s.num_devices > 1), None)
    if split is None:
        one = next((s for s in given if isinstance(s, SingleDeviceSharding)), None)
        whole: Sharding | None = None if one is None else in_space(one, Space.Device)
    elif not isinstance(split.mesh, Mesh):
        return found
    else:
        whole = NamedSharding(split.mesh, PartitionSpec())
    return [whole if s is None else s for s in found]


def _as_typed(own: Sharding | None, aval: Any, meshes: dict[Any, Mesh]) -> Sharding | None:
    place: Any = getattr(aval, "place", None)
    mesh = None if place is None else meshes.get(place.mesh) or devices_of(place.mesh)
    if mesh is None or not mesh.explicit_axes:
        return own
    auto = set(mesh.auto_axes)
    entries = own.spec.padded(aval.ndim) if isinstance(own, NamedSharding) else (None,) * aval.ndim
    joined = [
        (*names_in(a), *(n for n in names_in(b) if n in auto))
        for a, b in zip(place.spec.partitions, entries)
    ]
    kind = None if own is None else own.memory_kind
    return NamedSharding(mesh, place.spec.update(partitions=joined), memory_kind=kind)


def is_placed(leaves: Sequence[Any]) -> bool:
    """Whether any of these arrays was placed."""
    return any(where_placed(x) is not None for x in leaves)


def where_placed(x: Any) -> Sharding | None:
    """The sharding of an array that was placed and is not deleted."""
    found = x._extra if isinstance(x, ArrayImpl) and not is_deleted(x) else None
    return found.sharding if type(found) is Summands else found


def settled(sharding: Sharding, own: Sharding | None, ndim: int) -> Sharding:
    """The sharding of a value of this rank, where it was and is constrained: dimensions that are
    left open stay split as they were, along axes that the constraint does not take."""
    if not isinstance(sharding, NamedSharding) or UNCONSTRAINED not in sharding.spec.partitions:
        return sharding
    is_same = isinstance(own, NamedSharding) and own.mesh == sharding.mesh
    before = own.spec.padded(ndim) if is_same else (None,) * ndim  # type: ignore[union-attr]
    taken = names_of_spec(sharding.spec)
    entries = [
        (None if taken.intersection(names_in(b)) else b) if e is UNCONSTRAINED else e
        for e, b in zip(sharding.spec.padded(ndim), before, strict=True)
    ]
    return sharding.update(spec=sharding.spec.update(partitions=entries))
