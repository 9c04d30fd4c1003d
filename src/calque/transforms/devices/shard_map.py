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

import functools
import math
from collections.abc import Callable, Hashable, Sequence, Set
from typing import Any

from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.tracebacks import boundary
from calque.ops.common import repeated
from calque.transforms.devices.mesh import AbstractMesh, Mesh, consult_mesh
from calque.transforms.devices.shard_map_checks import (
    check_input,
    check_output,
    check_specs,
    flat_specs,
    refuse_varying,
)
from calque.transforms.devices.sharding import NamedSharding, PartitionSpec, names_in
from calque.transforms.devices.sharding_arrays import placed, sharding_of
from calque.transforms.devices.sharding_constraint import constrained
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import batch
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import FlatFunction, arrays, name_of


class _Infer:
    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


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
    """`f` of the parts that each device holds: `in_specs` say how arguments are cut, `out_specs`
    how results are joined.

    `axis_names` are the mesh axes that are mapped (all by default). `check_vma` checks that results
    which `out_specs` calls the same on all devices are known to be so.

    >>> mesh, P = calque.make_mesh((1,), ("x",)), calque.sharding.PartitionSpec
    >>> total = calque.shard_map(lambda v: lax.psum(v.sum(), "x"), mesh=mesh, in_specs=P("x"),
    ...     out_specs=P())
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

    try:
        functools.update_wrapper(mapped, f)
    except AttributeError:
        mapped.__name__ = name_of(f)
    return mapped


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
        unknown = self.axis_names - set(mesh.axis_names)
        if unknown:
            raise ValueError(
                f"shard_map: the axis_names {sorted(map(str, unknown))} are not axes of the mesh:"
                f" {tuple(mesh.axis_names)}"
            )
        names = tuple(n for n in mesh.axis_names if not self.axis_names or n in self.axis_names)
        if self.in_specs is not Infer:
            check_specs("in_specs", self.in_specs, names)
        check_specs("out_specs", self.out_specs, names)
        return names

    def __call__(self, args: tuple[Any, ...]) -> Any:
        mesh = consult_mesh() if self.mesh is None else self.mesh
        if mesh.empty:
            raise ValueError(
                "The context mesh cannot be empty. Use `calque.set_mesh(mesh)` to enter into a mesh"
                " context, or pass `mesh=`"
            )
        names = self.manual(mesh)
        leaves, in_tree = pytrees.flatten((args, {}))
        values = arrays(leaves, "shard_map", self.f, args, {})
        specs = self.specs_of(values, args)
        for i, (x, s) in enumerate(zip(values, specs, strict=True)):
            check_input(self.f, mesh, args, i, typeof(x), s)
        flat = FlatFunction(self.f, in_tree, "shard_map")
        parts = [_split(_bare(x), s, names, mesh.shape) for x, s in zip(values, specs)]
        outs, varying = _nested(
            flat, [Axis(n, mesh.shape[n], self.check, devices=True) for n in names], parts, specs
        )
        out_specs = flat_specs("out_specs", self.out_specs, pytrees.unflatten(flat.out_tree, outs))
        results = [
            self.joined(x, v, s, names, mesh, flat, i)
            for i, (x, v, s) in enumerate(zip(outs, varying, out_specs, strict=True))
        ]
        return pytrees.unflatten(flat.out_tree, results)

    def specs_of(self, values: Sequence[Any], args: tuple[Any, ...]) -> list[PartitionSpec]:
        """The spec of each flat argument; without `in_specs`, what its sharding says."""
        if self.in_specs is not Infer:
            return flat_specs("in_specs", self.in_specs, args)
        found = []
        for x in values:
            if not isinstance(x, ArrayImpl):
                raise ValueError(
                    "shard_map without in_specs needs arrays that know their sharding: pass"
                    " in_specs inside jit, grad or vmap"
                )
            own = sharding_of(x)
            found.append(own.spec if isinstance(own, NamedSharding) else PartitionSpec())
        return found

    def joined(
        self,
        x: Any,
        varying: list[Hashable],
        spec: PartitionSpec,
        names: Sequence[Hashable],
        mesh: Any,
        flat: Any,
        i: int,
    ) -> Any:
        """A result put together from its parts: it has a leading dimension for each axis in
        `varying`."""
        ndim = typeof(x).ndim - len(varying)
        check_output(flat, mesh, spec, typeof(x).shape[len(varying) :], i)
        used = {n for e in spec for n in names_in(e)}
        extra = [n for n in varying if n not in used]
        if extra and self.check:
            refuse_varying(self.f, mesh, spec, extra, varying)
        for n in extra:  # unchecked: what the first member has
            x = _first(x, varying.index(n))
            varying = [v for v in varying if v != n]
        for n in names:
            if n in used and n not in varying:
                x = repeated(x, mesh.shape[n])
                varying = [n, *varying]
        whole = _joined(x, varying, spec, ndim)
        return constrained(whole, NamedSharding(mesh, spec)) if isinstance(mesh, Mesh) else whole


def _bare(x: Any) -> Any:
    """The argument without the place where it was: it is cut anew."""
    return placed(x, None) if isinstance(x, ArrayImpl) else x


def _reshaped(x: Any, shape: Sequence[int]) -> Any:
    if typeof(x).shape == tuple(shape):
        return x
    return do.reshape(x, new_sizes=tuple(shape))


def _transposed(x: Any, order: Sequence[int]) -> Any:
    return (
        x if list(order) == list(range(len(order))) else do.transpose(x, permutation=tuple(order))
    )


def _split(x: Any, spec: PartitionSpec, names: Sequence[Hashable], sizes: Any) -> Any:
    """The array with a leading dimension for each mesh axis in its spec, in the order of the
    mesh."""
    shape: list[int] = []
    where: dict[Hashable, int] = {}
    local = []
    entries = (*spec, *[None] * (typeof(x).ndim - len(spec)))
    for d, entry in zip(typeof(x).shape, entries):
        for n in names_in(entry):
            where[n] = len(shape)
            shape.append(sizes[n])
        local.append(len(shape))
        shape.append(d // math.prod(sizes[n] for n in names_in(entry)))
    return _transposed(_reshaped(x, shape), [where[n] for n in names if n in where] + local)


def _joined(x: Any, varying: Sequence[Hashable], spec: PartitionSpec, ndim: int) -> Any:
    """The inverse of `_split`."""
    shape, order, out = typeof(x).shape, [], []
    for k in range(ndim):
        own = [varying.index(n) for n in (names_in(spec[k]) if k < len(spec) else ())] + [
            len(varying) + k
        ]
        order += own
        out.append(math.prod(shape[i] for i in own))
    return _reshaped(_transposed(x, order), out)


def _first(x: Any, dim: int) -> Any:
    shape = typeof(x).shape
    stop = tuple(1 if k == dim else n for k, n in enumerate(shape))
    row = do.slice(x, start_indices=(0,) * len(shape), limit_indices=stop)
    return do.squeeze(row, dimensions=(dim,))


def _nested(
    flat: FlatFunction, axes: Sequence[Axis], parts: Sequence[Any], specs: Sequence[PartitionSpec]
) -> tuple[list[Any], list[list[Hashable]]]:
    """Results of the function batched over every axis, the first outermost, and the axes each has a
    leading dimension for."""
    used = [{n for e in s for n in names_in(e)} for s in specs]
    varying: list[list[Hashable]] = []

    def level(k: int, values: Sequence[Any]) -> list[Any]:
        if k == len(axes):
            outs = flat(*values)
            varying.extend([] for _ in outs)
            return outs
        axis = axes[k]
        dims = [0 if axis.name in u else None for u in used]
        outs, found = batch(lambda *inner: level(k + 1, inner), axis, values, dims)
        for i, d in enumerate(found):
            if d is not None:
                varying[i].insert(0, axis.name)
                outs[i] = (
                    outs[i] if d == 0 else _transposed(outs[i], _to_front(typeof(outs[i]).ndim, d))
                )
        return outs

    return level(0, parts), varying


def _to_front(ndim: int, d: int) -> list[int]:
    return [d, *[k for k in range(ndim) if k != d]]
