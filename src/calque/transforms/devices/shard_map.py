"""shard_map: a function of the parts of arrays, mapped over the devices of a mesh.

Each mesh axis becomes a named batch axis: an argument of shape (8, 3) with the spec P("x") over
four devices is reshaped to (4, 2, 3) and the function, batched along the first dimension, sees (2,
3). Collectives over "x" are operations along that dimension. As in `pmap`, the devices share one
memory, so nothing is copied, the program is one program, it composes with every transformation, and
its kernels are spread over the cores by the thread pool.

With `check_vma` (the default) it is known which values vary along which mesh axes
(`transforms/variance.py`): results that `out_specs` calls replicated must not vary, and gradients
taken inside in replicated values are summed over the mesh.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence, Set
from typing import TYPE_CHECKING, Any, overload

from calque.core import pytrees, trace_state
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.errors import JAXIndexError, JAXTypeError
from calque.core.primitives import do
from calque.core.trace import JaxprTrace, placed_typeof, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.transforms.devices.abstract_mesh import AbstractMesh, AxisType
from calque.transforms.devices.mesh import Mesh, consult_mesh, get_abstract_mesh, manual_region
from calque.transforms.devices.program_devices import check_stays
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.shard_map_checks import (
    check_inferred,
    check_input,
    check_not_split,
    check_output,
    check_specs,
    check_sums,
    check_sums_of_output,
    check_types,
    flat_specs,
    own_spec,
    refuse_varying,
)
from calque.transforms.devices.shard_map_equation import (
    call,
    mapped_axes,
    part_aval,
    region,
)
from calque.transforms.devices.shard_map_parts import of_parts, whole
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_arrays import located, sharding_of
from calque.transforms.devices.sharding_constraint import constrained
from calque.transforms.devices.specs import PartitionSpec, names_in, names_of_spec
from calque.transforms.devices.typed_values import (
    is_evaluating_all,
    type_placement,
    unplaced,
)
from calque.transforms.devices.types import ManualAxisType, MeshPlace, lenient, mat_of
from calque.transforms.engines import axes
from calque.transforms.engines.jvp import JVPTracer
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import FlatFunction, argument_name, arrays, name_of, wrapping
from calque.transforms.primitives.refs import RefTouched

if TYPE_CHECKING:
    from calque.core.generics import P, R


class _Infer:
    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Callable[P, R]: ...


@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Makes a function that runs `f` on the part of its arguments that each device holds.

    Inside, the arrays are the parts, and collectives such as `lax.psum` speak of the mesh axes by
    their names.

    Args:
        f: The function of one device's parts. Left out, a decorator with the other arguments is
            returned.
        out_specs: How the parts of the results are joined: a PartitionSpec, or a tree of them that
            the results begin with.
        in_specs: How the arguments are cut: a PartitionSpec, or a tree of them that the tuple of
            arguments begins with. Left out, the types of the arguments say it.
        mesh: The mesh; None takes that of `set_mesh`.
        axis_names: The mesh axes that are mapped; the empty set means all.
        check_vma: Whether to check that results which `out_specs` calls the same on all devices are
            known to be so.

    Returns:
        A function of whole arrays.

    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> total = jax.shard_map(lambda v: lax.psum(v.sum(), "x"), mesh=mesh, in_specs=jax.P("x"),
    ...     out_specs=jax.P())
    >>> total(jnp.arange(4.0))
    Array(6., dtype=float32)"""
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_callable(f)
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            "shard_map requires a `calque.sharding.Mesh` or a `calque.sharding.AbstractMesh`"
            f" instance for its second argument, but got {mesh} of type {type(mesh)}."
        )
    mapping = _Mapping(f, mesh, in_specs, out_specs, axis_names, check_vma)

    @boundary
    def mapped(*args: Any) -> Any:
        return mapping(args)

    return wrapping(mapped, f)


class _Mapping:
    """A function, its mesh and its specs."""

    def __init__(
        self,
        f: Any,
        mesh: Any,
        in_specs: Any,
        out_specs: Any,
        axis_names: Set[Hashable],
        check: bool,
    ):
        self.f, self.mesh, self.in_specs, self.out_specs = f, mesh, in_specs, out_specs
        self.axis_names, self.check = frozenset(axis_names), check
        if mesh is not None:
            self.manual(mesh)

    def manual(self, mesh: Any) -> tuple[Hashable, ...]:
        """The mesh axes that are mapped, in the order of the mesh."""
        known = tuple(n for n in mesh.axis_names if not axes.splits(n, explicit=True))
        split = [n for n in known if axes.splits(n)]
        if not config.read("disable_vmap_shmap_error"):
            check_not_split(self.in_specs, self.out_specs, split)
        if not self.axis_names <= set(known):
            raise ValueError(
                f"jax.shard_map requires axis_names={set(self.axis_names)} to be a subset of"
                f" mesh.axis_names={tuple(known)}"
            )
        names = tuple(n for n in known if not self.axis_names or n in self.axis_names)
        check_inferred(self.in_specs is Infer, mesh, names)
        if self.in_specs is not Infer:
            check_specs("in_specs", self.in_specs, names)
            check_sums("in_specs", self.in_specs, mesh, names)
        check_specs("out_specs", self.out_specs, names)
        check_sums("out_specs", self.out_specs, mesh, names)
        return names

    def __call__(self, args: tuple[Any, ...]) -> Any:
        here = get_abstract_mesh()
        mesh = here if self.mesh is None else self.mesh
        consult_mesh()
        if mesh.empty:
            raise ValueError(
                "The context mesh cannot be empty. Use `calque.set_mesh(mesh)` to enter into a mesh"
                " context, or pass `mesh=`"
            )
        if not here.empty and here != mesh.abstract_mesh:
            raise ValueError(
                f"The context mesh {here} should match the mesh passed to shard_map {mesh}"
            )
        call = _Call(self, mesh, self.manual(mesh), args)
        if isinstance(trace_state.dynamic_trace(), JaxprTrace):
            return call.recorded()
        if any([isinstance(x, JVPTracer) for x in call.values]):
            try:  # one equation of the derivative
                return call.recorded()
            except (JAXTypeError, JAXIndexError, RefTouched):
                pass  # the function asks for values, which it has here
        return call.typed() if call.is_typed else call.run(call.values)


class _Call:
    """A call of a mapped function: its arguments, how they are cut, and the mesh inside."""

    def __init__(
        self, mapping: _Mapping, mesh: Any, names: tuple[Hashable, ...], args: tuple[Any, ...]
    ):
        self.mapping, self.mesh, self.names, self.args = mapping, mesh, names, args
        self.f, self.check = mapping.f, mapping.check
        leaves, in_tree = pytrees.flatten((args, {}))
        given = (
            [Infer] * len(leaves)
            if mapping.in_specs is Infer
            else flat_specs("in_specs", mapping.in_specs, args, self.f)
        )
        self.fixed = {i: x for i, (x, s) in enumerate(zip(leaves, given)) if s is None}
        kept = [i for i in range(len(leaves)) if i not in self.fixed]
        self.values = arrays(
            [leaves[i] for i in kept],
            "shard_map",
            self.f,
            args,
            {},
            lambda k: argument_name(self.f, args, {}, kept[k]),
        )
        self.flat = FlatFunction(self.f, in_tree, "shard_map")
        self.avals = [placed_typeof(x) for x in self.values]
        self.specs = [
            own_spec(aval, names) if given[i] is Infer else given[i]
            for i, aval in zip(kept, self.avals)
        ]
        for i, aval, s in zip(kept, self.avals, self.specs):
            check_input(self.f, mesh, args, i, aval, s)
            check_types(mesh, names, aval, s)
        self.params = {
            "mesh": mesh,
            "check_vma": self.check,
            "newly_manual_axes": frozenset(names),
        }
        self.mapped = mapped_axes(self.params)
        self.inside = mesh.abstract_mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
        self.devices = self.mesh_of_devices()
        self.is_typed = is_evaluating_all(self.values) and (
            bool(set(mesh.explicit_axes) - set(names))
            or any(isinstance(x, ArrayImpl) and spans(x._extra) for x in self.values)
        )

    def mesh_of_devices(self) -> Mesh | None:
        """The mesh of real devices, as it is called outside."""
        if isinstance(self.mesh, Mesh):
            return self.mesh
        own = [sharding_of(x) for x in self.values if isinstance(x, ArrayImpl)]
        meshes = [s.mesh for s in own if isinstance(s, NamedSharding)] + [consult_mesh()]
        other = [m for m in meshes[:-1] if _sizes(m) != _sizes(self.mesh)]
        if other and is_evaluating_all(self.values):
            raise ValueError(
                f"Mesh shape of the input {other[0].shape_tuple} does not match the mesh shape"
                f" passed to shard_map {self.mesh.shape_tuple}"
            )
        same = (m for m in meshes if _sizes(m) == _sizes(self.mesh))
        return next((m for m in same if isinstance(m, Mesh)), None)

    def typed(self) -> list[Any]:
        """The results of values at hand, by way of a program: its types say how they are split
        along axes that are not mapped, and it runs where other processes have parts of them."""
        closed = trace_to_jaxpr(
            lambda *values: pytrees.leaves(self.run(values)), self.avals, name_of(self.f)
        )
        outs = do.jit(*self.values, jaxpr=closed, name=name_of(self.f))
        where = [
            _with_auto(type_placement(a, self.devices), s, a.ndim)
            for a, s in zip(closed.out_avals, self.out_specs)
        ]
        outs = [x if s is None else located(x, s) for x, s in zip(outs, where)]
        return pytrees.unflatten(self.flat.out_tree, outs)

    def recorded(self) -> Any:
        """The results, as an equation of the program that is recorded."""
        specs: list[PartitionSpec] = []

        def body(*parts: Any) -> list[Any]:
            outs = self.flat(*self.filled(parts))
            tree = pytrees.unflatten(self.flat.out_tree, outs)
            found = flat_specs("out_specs", self.mapping.out_specs, tree, self.f)
            specs[:] = [PartitionSpec() if s is None else s for s in found]
            for i, (x, s) in enumerate(zip(outs, specs, strict=True)):
                aval = typeof(x)
                check_output(self.flat, self.mesh, s, aval.shape, i)
                self.check_relation(mat_of(aval), s)
            return outs

        avals = [part_aval(a, s, self.params) for a, s in zip(self.avals, self.specs)]
        with region(self.params):
            closed = trace_to_jaxpr(body, avals, name_of(self.f))
        outs = call(closed, self.values, tuple(self.specs), tuple(specs), self.params)
        return pytrees.unflatten(self.flat.out_tree, outs)

    def filled(self, parts: Sequence[Any]) -> list[Any]:
        """The flat arguments: parts, and what is no array."""
        rest = iter(parts)
        n = len(parts) + len(self.fixed)
        return [self.fixed[i] if i in self.fixed else next(rest) for i in range(n)]

    def check_relation(self, mat: ManualAxisType, spec: PartitionSpec) -> None:
        """A result relates to the axes as its spec says."""
        if not self.check:
            return
        allowed = names_of_spec(spec) | spec.unreduced
        extra = [n for n in self.names if n in mat.varying and n not in allowed]
        if extra:
            refuse_varying(self.f, self.mesh, spec, extra, list(mat.varying))
        check_sums_of_output(mat, spec)

    def body(self, *parts: Any) -> list[Any]:
        """The flat results of the function for its part of the arguments."""
        with manual_region(self.inside, self.check, self.devices):
            return self.flat(*self.filled(parts))

    def run(self, values: Sequence[Any]) -> Any:
        if self.devices is None and is_evaluating_all(values):
            raise ValueError(
                "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when"
                " passing `AbstractMesh` to the mesh argument, or make a mesh the current one"
            )
        if self.devices is not None:
            there = NamedSharding(self.devices, PartitionSpec())
            for x in values:
                check_stays(x, there, name_of(self.f), ordered=True, told="shard_map")
        with lenient():
            cut = [
                self.cut(unplaced(x, a, self.names), a, s)
                for x, a, s in zip(values, self.avals, self.specs)
            ]
        outs, varying, mats = of_parts(self.body, cut, self.specs, self.mapped)
        tree = pytrees.unflatten(self.flat.out_tree, outs)
        out_specs = [
            PartitionSpec() if s is None else s
            for s in flat_specs("out_specs", self.mapping.out_specs, tree, self.f)
        ]
        self.out_specs = out_specs
        with lenient():
            results = [
                self.joined(x, v, m, s, i)
                for i, (x, v, m, s) in enumerate(zip(outs, varying, mats, out_specs, strict=True))
            ]
        return pytrees.unflatten(self.flat.out_tree, results)

    def cut(self, x: Any, aval: ShapedArray, spec: PartitionSpec) -> Any:
        """An argument of a program, where its spec says: so is its cotangent."""
        whole = len(self.names) == len(self.mesh.axis_names) and aval.place is None
        if not isinstance(x, Tracer) or self.devices is None or not whole:
            return x
        return constrained(x, NamedSharding(self.devices, spec))

    def joined(
        self, x: Any, varying: list[Hashable], mat: ManualAxisType, spec: PartitionSpec, i: int
    ) -> Any:
        """A result put together from its parts: it has a leading dimension for each axis in
        `varying`."""
        mesh, ndim = self.mesh, typeof(x).ndim - len(varying)
        check_output(self.flat, mesh, spec, typeof(x).shape[len(varying) :], i)
        self.check_relation(mat, spec)
        inner = _inner_entries(x, len(varying))
        joined = whole(x, varying, spec, self.mapped)
        outer = PartitionSpec(
            *[
                (*names_in(a), *names_in(b))
                for a, b in zip(spec.padded(ndim) if any(inner) else spec.partitions, inner)
            ],
            unreduced=spec.unreduced,
            reduced=spec.reduced,
        )
        target = self.devices or mesh
        if isinstance(target, AbstractMesh) and target.are_all_axes_auto:
            return joined
        return constrained(joined, NamedSharding(target, outer))


def _with_auto(
    sharding: NamedSharding | None, spec: PartitionSpec, ndim: int
) -> NamedSharding | None:
    """Where a type says that a result is, and along axes of which types do not speak where its spec
    does."""
    if sharding is None:
        return None
    auto = set(sharding.mesh.auto_axes)
    entries = [
        (*names_in(a), *(n for n in names_in(b) if n in auto))
        for a, b in zip(sharding.spec.padded(ndim), spec.padded(ndim))
    ]
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _sizes(mesh: Any) -> Any:
    return mesh.axis_names, mesh.axis_sizes


def _inner_entries(x: Any, lead: int) -> list[Any]:
    """Along which explicit axes the parts of a value are split, dimension by dimension."""
    place = typeof(x).place
    entries = place.spec.partitions if isinstance(place, MeshPlace) else (None,) * typeof(x).ndim
    return list(entries[lead:])
