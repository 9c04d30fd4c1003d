"""Mesh axes along which the user, or the compiler, says where values are. Values mean the same in
either case."""

import functools
from collections.abc import Callable
from typing import Any

from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.trace import placed_typeof
from calque.transforms.devices.abstract_mesh import AbstractMesh, AxisType
from calque.transforms.devices.mesh import get_abstract_mesh, use_abstract_mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_arrays import constraint, mesh_of_specs, placed, sharding_of
from calque.transforms.devices.sharding_constraint import reshard, with_sharding_constraint
from calque.transforms.devices.specs import PartitionSpec, names_in, names_of_spec
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import name_of

_NOT_GIVEN: Any = object()


def _meshes(what: str, f: Any, axes: Any, kind: AxisType, shardings: Any) -> Any:
    """The mesh here, or that of the shardings, and the one inside, on which these axes are of the
    kind asked for."""
    check_callable(f, what)
    mesh: AbstractMesh = get_abstract_mesh()
    if mesh.empty:
        found = pytrees.leaves(shardings, is_leaf=_is_spec)
        own = next((s.mesh.abstract_mesh for s in found if isinstance(s, NamedSharding)), None)
        mesh = mesh if own is None else own
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [n for n in names if n not in mesh.axis_names]
    if unknown:
        raise ValueError(
            f"{what} of {name_of(f)}: {unknown} are not axes of the current mesh, which has"
            f" {mesh.axis_names}"
        )
    manual = [n for n in names if n in mesh.manual_axes]
    if manual:
        raise NotImplementedError(
            f"{what} of {name_of(f)}: Going from `Manual` AxisType to `Auto` or `Explicit` AxisType"
            f" is not allowed; {manual} are mapped by the shard_map around"
        )
    return mesh, mesh.update_axis_types(dict.fromkeys(names, kind))


def _is_spec(x: Any) -> bool:
    return isinstance(x, (PartitionSpec, NamedSharding))


def _on_mesh(tree: Any, mesh: AbstractMesh) -> Any:
    """The arrays of a tree on a mesh of other kinds of axes: types speak of explicit ones alone."""
    return pytrees.tree_map(lambda x: _moved(x, mesh), tree)


def _moved(x: Any, mesh: AbstractMesh) -> Any:
    if not hasattr(x, "aval"):
        return x
    if isinstance(x, ArrayImpl):
        own = sharding_of(x)
        if x._extra is None or not isinstance(own, NamedSharding):
            return x
        return placed(x, NamedSharding(mesh, _named_on(own.spec, mesh, own.mesh)))
    place: Any = placed_typeof(x).place
    if place is None or place.mesh == mesh:
        return x
    return constraint.call(x, NamedSharding(mesh, _named_on(place.spec, mesh, place.mesh)))


def _named_on(spec: PartitionSpec, mesh: AbstractMesh, own: Any) -> PartitionSpec:
    """The part of a spec that holds on a mesh: sums are of explicit axes."""
    entries = spec.partitions if own.axis_names == mesh.axis_names else ()
    explicit = frozenset(mesh.explicit_axes)
    return PartitionSpec(
        *[names_in(e) for e in entries],
        unreduced=spec.unreduced & explicit,
        reduced=spec.reduced & explicit,
    )


def _names_no_mesh(target: Any) -> bool:
    """Whether no mesh is set, and shardings name no axes of one."""
    specs = pytrees.leaves(target, is_leaf=lambda s: isinstance(s, PartitionSpec))
    plain = all(isinstance(s, PartitionSpec) and not names_of_spec(s) for s in specs)
    return plain and mesh_of_specs().empty


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: Any = _NOT_GIVEN,
) -> Any:
    """Makes a function inside which the compiler decides where values are.

    Args:
        f: The function. Left out, a decorator with the other arguments is returned.
        axes: The mesh axes that are so inside, a name or a tuple; None means all.
        out_sharding: The shardings of the results; the caller may give them instead, by this name.

    Returns:
        A function of the same arguments, and of `out_sharding`.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.sharding.auto_axes(jnp.sin, out_sharding=jax.P("x"))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)"""
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    given = out_sharding

    @functools.wraps(f)
    def call(*args: Any, out_sharding: Any = _NOT_GIVEN, **kwargs: Any) -> Any:
        target = given if out_sharding is _NOT_GIVEN else out_sharding
        if target is _NOT_GIVEN:
            raise TypeError(
                f"auto_axes of {name_of(f)}: Missing required keyword argument: 'out_sharding'"
            )
        if _names_no_mesh(target):  # there are no devices to decide about
            return f(*args, **kwargs)
        outer, inner = _meshes("auto_axes", f, axes, AxisType.Auto, target)
        if inner == outer:
            return with_sharding_constraint(f(*args, **kwargs), target)
        with use_abstract_mesh(inner):
            out = f(*_on_mesh(args, inner), **_on_mesh(kwargs, inner))
        with use_abstract_mesh(outer):
            return reshard(out, target)

    return call


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: Any = _NOT_GIVEN,
) -> Any:
    """Makes a function inside which types say where values are.

    Args:
        f: The function. Left out, a decorator with the other arguments is returned.
        axes: The mesh axes that are so inside, a name or a tuple; None means all.
        in_sharding: The shardings of the positional arguments; the caller may give them instead, by
            this name.

    Returns:
        A function of the same arguments, and of `in_sharding`.

    >>> mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    >>> with jax.set_mesh(mesh):
    ...     jax.sharding.explicit_axes(jnp.sin, in_sharding=jax.P("x"))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)"""
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    given = in_sharding

    @functools.wraps(f)
    def call(*args: Any, in_sharding: Any = _NOT_GIVEN, **kwargs: Any) -> Any:
        source = given if in_sharding is _NOT_GIVEN else in_sharding
        if source is _NOT_GIVEN:
            raise TypeError(
                f"explicit_axes of {name_of(f)}: Missing required keyword argument: 'in_sharding'"
            )
        outer, inner = _meshes("explicit_axes", f, axes, AxisType.Explicit, source)
        if inner == outer:
            return f(*reshard(args, source), **kwargs)
        with use_abstract_mesh(inner):
            out = f(*reshard(_on_mesh(args, inner), source), **_on_mesh(kwargs, inner))
        return _on_mesh(out, outer)

    return call
