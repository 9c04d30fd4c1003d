"""The primitive `sharding_constraint`: a value with a given sharding, and what `jit` does with
`in_shardings` and `out_shardings`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core import backends, pytrees, trace_state
from calque.core.arrays import ArrayImpl, to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE, Device
from calque.core.jaxprs import ClosedJaxpr, primitives_of
from calque.core.primitives import Zero
from calque.core.trace import placed_typeof, typeof
from calque.core.trace_state import Tracer
from calque.ops.common import zero_like
from calque.transforms.devices.abstract_mesh import AbstractMesh
from calque.transforms.devices.layouts import Format, check_jit_format, without_layout
from calque.transforms.devices.memory_spaces import device_put_p
from calque.transforms.devices.mesh import EMPTY, ambient_mesh
from calque.transforms.devices.program_devices import check_stays
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    resolved,
)
from calque.transforms.devices.sharding_arrays import (
    check_explicit,
    check_shape,
    constraint,
    located,
    mesh_of_specs,
    names_no_device,
    sharding_of,
)
from calque.transforms.devices.sharding_propagation import settled, where_placed
from calque.transforms.devices.specs import UNCONSTRAINED, PartitionSpec, names_in, names_of_spec
from calque.transforms.devices.types import entries_of, typed
from calque.transforms.engines.axes import PlacingPrimitive

if TYPE_CHECKING:
    from calque.core.generics import X


def constrained(x: Any, sharding: Sharding, params: dict[str, Any] | None = None) -> Any:
    """`x` with this sharding: placed at once if it has a value, else when the program runs."""
    if names_no_device(sharding):
        return x
    if isinstance(x, ArrayImpl) and trace_state.is_evaluating():
        return located(x, settled(sharding, where_placed(x), x.ndim))
    rest = params or {"layout": None, "context_mesh": EMPTY}
    free: frozenset[int] = frozenset()
    if isinstance(sharding, NamedSharding):
        spec = sharding.spec.padded(typeof(x).ndim)
        free = frozenset(k for k, e in enumerate(spec) if e is UNCONSTRAINED)
    return sharding_constraint_p.bind(
        x, **{**rest, "sharding": sharding, "unconstrained_dims": free}
    )


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    out = sharding_constraint_p.bind(*primals, **params)
    (t,) = tangents
    return out, (zero_like(out) if type(t) is Zero else sharding_constraint_p.bind(t, **params))


def _transpose(ct: Any, x: Any, **params: Any) -> list[Any]:
    return [Zero(x.aval) if type(ct) is Zero else sharding_constraint_p.bind(ct, **params)]


def _batch(
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    sharding: Sharding,
    spmd: tuple[Hashable, ...] = (),
    **params: Any,
) -> Any:
    """The new dimension is split over the mesh axes `spmd`, by default as it was."""
    (x,), (d,) = args, dims
    if spmd and not isinstance(sharding, NamedSharding):
        raise ValueError(
            "If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your"
            " jitted function inside the mesh context manager. Only a NamedSharding says over which"
            f" axes the mapped dimension can be split, got {sharding}"
        )
    if isinstance(sharding, NamedSharding) and d is not None:
        entries = sharding.spec.padded(typeof(x).ndim - 1)
        twice = names_of_spec(sharding.spec) & set(spmd)
        if twice and not config.read("disable_vmap_shmap_error"):
            raise ValueError(
                f"vmap spmd_axis_name {spmd} cannot appear in with_sharding_constraint spec, but"
                f" got spec {sharding.spec}"
            )
        spmd = tuple(n for n in spmd if n not in twice)
        left = UNCONSTRAINED if sharding.mesh.auto_axes else None
        new = spmd[0] if len(spmd) == 1 else spmd or left
        sharding = sharding.update(
            spec=sharding.spec.update(partitions=(*entries[:d], new, *entries[d:]))
        )
        check_shape(
            "with_sharding_constraint under vmap with spmd_axis_name", sharding, typeof(x).shape
        )
    return constrained(x, sharding, params), d


sharding_constraint_p = PlacingPrimitive(
    "sharding_constraint",
    meaning=lambda x, **_: x,
    shape=lambda x, *, sharding, **_: typed(x, sharding),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
)


constraint.install(constrained)


def _check_operand(x: Any, value: Any, sharding: Sharding) -> None:
    """An array at hand that was placed stays on its devices; what an abstract mesh stands for, the
    array must know."""
    if not trace_state.is_evaluating() or isinstance(value, Tracer):
        return
    own = sharding_of(value)
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        if not hasattr(x, "aval"):
            raise ValueError(
                f"with_sharding_constraint of a sharding over an abstract mesh, {sharding},"
                " requires the input passed should be a `jax.Array`, which has devices. Got"
                f" {type(x)}"
            )
        if not isinstance(own, NamedSharding):
            raise TypeError(
                "The sharding on the input must be a `NamedSharding` since the target sharding has"
                f" an `AbstractMesh` in it. Got {own} for the target {sharding}"
            )
        if own.mesh.shape_tuple != sharding.mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {own.mesh.shape_tuple} does not match the mesh shape of"
                f" the target sharding {sharding.mesh.shape_tuple} with_sharding_constraint"
            )
    else:
        check_stays(value, sharding, "with_sharding_constraint", ordered=True)


def _is_sharding(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec, Device))


def with_sharding_constraint(x: X, shardings: Any) -> X:
    """Says how values are laid out over devices, also inside `jit`, along automatic axes. Where all
    axes of the current mesh are explicit, it raises AssertionError unless values are so already.

    Args:
        x: A tree of arrays.
        shardings: A sharding, or a tree of them that `x` begins with; None where nothing is said.
            PartitionSpecs refer to the current mesh. Formats may name the layout row by row.

    Returns:
        The same values with these shardings.

    >>> mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    >>> s = jax.NamedSharding(mesh, jax.P("x"))
    >>> jax.jit(lambda v: lax.with_sharding_constraint(v * 2, s))(jnp.ones(2)).sharding.spec
    P('x',)"""
    leaves, tree = pytrees.flatten(x)
    shardings = _without_layouts("with_sharding_constraint", shardings, x)
    found = flat_shardings("with_sharding_constraint", "shardings", shardings, x)
    out = []
    for leaf, s in zip(leaves, found, strict=True):
        value = to_array(leaf)
        if s is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed:"
                " give each array a sharding"
            )
        refuse_manual(s)
        if isinstance(s, NamedSharding) and _are_stated():
            _check_stated(placed_typeof(value), s)
            out.append(value)
            continue
        _refuse_explicit(s)
        if not (isinstance(value, Tracer) and _is_of_compiler(s, typeof(value).ndim)):
            check_shape("One of with_sharding_constraint arguments", s, typeof(value).shape)
        _check_operand(leaf, value, s)
        out.append(constrained(value, s))
    return pytrees.unflatten(tree, out)


def _are_stated() -> bool:
    """Whether types say where values are, since all axes of the current mesh are explicit: a
    constraint can then only agree."""
    here = ambient_mesh()
    return len(here.explicit_axes) == len(here.axis_names) > 0


def _refuse_explicit(sharding: Sharding) -> None:
    """ValueError where a constraint names explicit axes: types say how values are split along
    these."""
    if not isinstance(sharding, NamedSharding):
        return
    if names_of_spec(sharding.spec) & frozenset(sharding.mesh.explicit_axes):
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto"
            f" axes of the mesh. Got spec={sharding.spec} and mesh={sharding.mesh.abstract_mesh}."
            " You probably meant to use `reshard` API?"
        )


def _check_stated(aval: ShapedArray, sharding: NamedSharding) -> None:
    """AssertionError where the type says otherwise."""
    asked: Sequence[Any] = sharding.spec.padded(aval.ndim)
    if config.remove_size_one_mesh_axis_from_type:
        sizes = sharding.mesh.shape
        asked = [
            e if e is UNCONSTRAINED else tuple(n for n in names_in(e) if sizes[n] > 1)
            for e in asked
        ]
    pairs = [(a, k) for a, k in zip(asked, entries_of(aval)) if a is not UNCONSTRAINED]
    if any(tuple(names_in(a)) != tuple(names_in(k)) for a, k in pairs):
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type"
            f" `Explicit`. The array sharding: {PartitionSpec(*entries_of(aval))} did not match the"
            f" sharding provided: {sharding.spec}. Please use `jax.sharding.reshard` to shard your"
            " input to the sharding you want."
        )


def _is_of_compiler(sharding: Sharding, ndim: int) -> bool:
    """Whether the compiler decides about dimensions that are not even: they stay whole."""
    return (
        isinstance(sharding, NamedSharding)
        and not sharding.mesh.explicit_axes
        and len(sharding.spec) <= ndim
    )


def refuse_manual(sharding: Sharding) -> None:
    """Inside `shard_map` nothing is placed along the axes that it maps."""
    if isinstance(sharding, NamedSharding):
        manual = names_of_spec(sharding.spec) & set(ambient_mesh().manual_axes)
        if manual:
            raise ValueError(
                f"the spec of {sharding} contains a manual axes {sorted(map(str, manual))} of mesh"
                f" {ambient_mesh()}: inside shard_map values are placed along other axes only"
            )


def reshard(xs: X, out_shardings: Any) -> X:
    """Lays the arrays of a tree out in another way, along axes of which types speak.

    Args:
        xs: A tree of arrays.
        out_shardings: A sharding, or a tree of them that `xs` begins with. PartitionSpecs refer to
            the current mesh.

    Returns:
        The same values with these shardings.

    >>> s = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> jax.sharding.reshard(jnp.ones(2), s).sharding.spec
    P('x',)"""
    leaves, tree = pytrees.flatten(xs)
    out = []
    for leaf, s in zip(leaves, flat_shardings("reshard", "out_shardings", out_shardings, xs)):
        value = to_array(leaf)
        if s is not None:
            refuse_manual(s)
            check_shape("One of reshard arguments", s, typeof(value).shape)
            if isinstance(s, NamedSharding):
                check_explicit(s, "reshard")
                s = s.update(spec=s.spec.update(partitions=s.spec.padded(typeof(value).ndim)))
            value = constrained(value, s)
        out.append(value)
    return pytrees.unflatten(tree, out)


# ---------------------------------------------------------------- trees of shardings


def _without_layouts(what: str, spec: Any, tree: Any, *, auto: bool = False) -> Any:
    """The shardings alone, where there are Formats among them."""

    def ends(s: Any) -> bool:
        return _is_sharding(s) or isinstance(s, Format)

    if not any(isinstance(s, Format) for s in pytrees.leaves(spec, is_leaf=ends)):
        return spec
    leaves, structure = pytrees.flatten(tree)
    found = zip(pytrees.prefix_broadcast(spec, tree, is_leaf=ends), leaves, strict=True)
    plain = [without_layout(s, typeof(x).ndim, what, auto=auto) for s, x in found]
    return pytrees.unflatten(structure, plain)


def flat_shardings(what: str, option: str, spec: Any, tree: Any) -> list[Sharding | None]:
    """The sharding of each leaf of `tree`, from a tree of shardings that `tree` begins with; None
    where nothing is said."""
    for s in pytrees.leaves(spec, is_leaf=_is_sharding):
        if not _is_sharding(s):
            raise TypeError(
                f"{what} {option} must be None, a Sharding, a PartitionSpec, or a tree of these,"
                f" got {s!r} of type {type(s)}"
            )
    try:
        found = pytrees.prefix_broadcast(spec, tree, is_leaf=_is_sharding)
    except ValueError:
        why = list(pytrees.differences(spec, tree, _is_sharding, f"{what} {option}"))
        details = "\n".join(why)
        raise ValueError(f"Mismatch details ({len(why)} found):\n{details}") from None
    if any(isinstance(s, PartitionSpec) for s in found):
        mesh = mesh_of_specs()
        return [None if s is None else resolved(s, f"{what} with {option}", mesh) for s in found]
    return [None if s is None else resolved(s, what, EMPTY) for s in found]


class JitShardings:
    """The options `in_shardings` and `out_shardings` of a jitted function."""

    __slots__ = ("device", "ins", "key", "outs")

    def __init__(self, ins: Any, outs: Any, device: Sharding | None = None):
        for option, tree in (("in_shardings", ins), ("out_shardings", outs)):
            for s in pytrees.leaves(tree, is_leaf=_is_sharding):
                check_jit_format(option, s)
                spec = s.spec if isinstance(s, NamedSharding) else s
                if isinstance(spec, PartitionSpec) and UNCONSTRAINED in spec.partitions:
                    raise ValueError(
                        f"Unconstrained dims are not allowed when passing to {option}, got {s}"
                    )
        self.ins, self.outs = ins, outs
        self.device = device  # where all arguments are brought first
        self.key = tuple(
            (
                tuple(pytrees.leaves(s, is_leaf=_is_sharding)),
                pytrees.structure(s, is_leaf=_is_sharding),
            )
            for s in (ins, outs)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JitShardings) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def of_arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Sharding | None]:
        """The sharding asked for each flat argument; `args` without the static ones."""
        named = len(pytrees.leaves(kwargs))
        if (
            named
            and self.ins is not None
            and pytrees.leaves(self.ins, is_leaf=_is_sharding) != [None]
        ):
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        ins = tuple(self.ins) if isinstance(self.ins, list) else self.ins
        if type(ins) is tuple and len(ins) != len(args):
            raise ValueError(
                "pjit in_shardings specification must be a tree prefix of the positional arguments"
                " tuple. In particular, pjit in_shardings must either be a Sharding, a"
                " PartitionSpec, or a tuple of length equal to the number of positional arguments."
                " But pjit in_shardings is the wrong length: got a tuple or list of length"
                f" {len(ins)} for an args tuple of length {len(args)}."
            )
        args = tuple(args)
        ins = _without_layouts("pjit in_shardings", ins, args, auto=True)
        return flat_shardings("pjit", "in_shardings", ins, args) + [None] * named

    def enter(
        self,
        leaves: Sequence[Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        names: Sequence[str],
    ) -> list[Any]:
        """The arguments, traced, with their shardings."""
        out = []
        for i, (x, s) in enumerate(zip(leaves, self.of_arguments(args, kwargs), strict=True)):
            if s is not None:
                check_shape(
                    f"One of pjit arguments with pytree key path {names[i]}", s, typeof(x).shape
                )
                x = constrained(x, s)
            out.append(x)
        return out

    def leave(self, out: Any, leaves: Sequence[Any]) -> list[Any]:
        """The flat results, traced, with their shardings."""
        found = []
        for x, s in zip(leaves, self.of_results(out), strict=True):
            if s is not None:
                check_shape("One of pjit outputs", s, typeof(x).shape)
                x = constrained(to_array(x), s)
            found.append(x)
        return found

    def of_results(self, out: Any) -> list[Sharding | None]:
        """The sharding asked for each flat result."""
        outs = _without_layouts("pjit out_shardings", self.outs, out, auto=True)
        return flat_shardings("pjit", "out_shardings", outs, out)

    def brought(self, leaves: list[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments, brought to `device`; without one, those that were placed must be where
        `in_shardings` says."""
        self._check(leaves, args, kwargs)
        if self.device is None:
            return leaves
        return [
            located(x, self.device)
            if isinstance(x, ArrayImpl) and x._extra not in (None, self.device)
            else x  # one that is there is the caller's own, which may have given it away
            for x in leaves
        ]

    def _check(self, leaves: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        for x, s in zip(leaves, self.of_arguments(args, kwargs), strict=True):
            own = x._extra if isinstance(x, ArrayImpl) else None
            kind = "device" if own is None else own.memory_kind
            if s is not None and s.memory_kind not in (None, kind) and isinstance(x, ArrayImpl):
                raise ValueError(
                    "Memory kinds passed to jax.jit does not match memory kind on the respective"
                    f" arg. Got jit memory kind: {s.memory_kind}, arg memory kind: {kind} for arg"
                    f" type: {x.aval.str_short(False)}"
                )
            if s is not None and own is not None and not own.is_equivalent_to(s, x.aval.ndim):
                raise ValueError(
                    "Sharding passed to jit does not match the sharding on the respective arg. Got"
                    f" jit sharding: {s},\narg sharding: {own} for arg type: {x.aval.str_short()}"
                )
            if s is not None and isinstance(x, np.ndarray):
                _check_of_all(x, s)


def _check_of_all(x: np.ndarray, sharding: Sharding) -> None:
    if spans(sharding) and not sharding.is_fully_replicated:
        raise ValueError(
            f"jit: an array of NumPy of shape {x.shape} cannot have the in_shardings {sharding}:"
            " each process has an array of its own. Make one of all of them:"
            " jax.make_array_from_process_local_data, or device_put where they have the same"
        )


def has_constraints(closed: ClosedJaxpr) -> bool:
    """Whether the program, at any depth, says where values are."""
    found = closed.cache.get("constraints")
    if found is None:
        names = (sharding_constraint_p.name, device_put_p.name, "shard_map")
        found = any([p.name in names for p in primitives_of(closed)])
        closed.cache["constraints"] = found
    return bool(found)


def jit_shardings(ins: Any, outs: Any, device: Any, backend: str | None) -> JitShardings | None:
    """What `in_shardings`, `out_shardings`, `device` and `backend` ask for; with a device the
    results live there."""
    named = "device" if backend is None else f"backend={backend!r}"
    if backend == "cpu" and device is None and backends.known.may_leave_home():
        device, backend = DEFAULT_DEVICE, None
    if backend not in (None, "cpu") and device is None:
        device, backend = backends.known.devices_of(backend)[0], None
    if device is None:
        return None if ins is None and outs is None else JitShardings(ins, outs)
    if backend is not None:
        raise ValueError(
            f"jit: can't specify both a device and a backend, got device={device!r} and"
            f" backend={backend!r}"
        )
    if ins is not None or outs is not None:
        raise ValueError(
            f"jit: {named} cannot be given together with in_shardings or out_shardings"
        )
    if not isinstance(device, Device):
        raise TypeError(
            f"jit: device must be one of calque.devices(), got {device!r} of type"
            f" {type(device).__name__}"
        )
    where = SingleDeviceSharding(device)
    return JitShardings(None, where, where)
