"""pmap: one program for every device along a mapped axis.

The devices of this process share one memory and one pool of threads, so "the same program on n
devices" is here one program over the whole axis: the function is batched along a named axis, and
its collectives become operations along that dimension, by the rules of `transforms/collectives.py`.
Nothing is copied between devices, every transformation composes with it, and the kernels of the one
program are spread over the cores by the thread pool: the outermost loop of a batched kernel is the
device axis. The results say, through their sharding, which device holds which part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from calque.core import pytrees
from calque.core.backends import known
from calque.core.devices import Device, is_mine
from calque.core.errors import InvalidValueError
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.transforms.devices.mesh import Mesh, grid_of
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_constraint import constrained
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch, placed
from calque.transforms.engines.signatures import as_tuple, check_callable
from calque.transforms.engines.trees import FlatFunction, argument_name, arrays, name_of, wrapping
from calque.transforms.functions import debug_nans
from calque.transforms.functions.vmap import flatten_axes
from calque.transforms.jit.decorator import jit
from calque.transforms.jit.pmap_rows import check_rows, of_all_rows, own_part, rows_here

if TYPE_CHECKING:
    from calque.core.generics import P, R

_UNNAMED = "_internal_pmap_axis_name"


def pmap(
    fun: Callable[P, R],
    axis_name: Hashable = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[P, R]:
    """Makes a compiled function that runs `fun` on one device for each element of the mapped axis.

    `jit` with shardings, or `shard_map`, does the same with fewer restrictions.

    Args:
        fun: The function of one device's part.
        axis_name: A name by which collectives such as `lax.psum` speak of the devices.
        in_axes: Which axis of each argument is spread over the devices: an int, None (each device
            gets the whole), or a tuple of these with one entry for each positional argument.
        out_axes: Where that axis stands in the results.
        static_broadcasted_argnums: Positions of arguments that are Python values while tracing.
        devices: The devices to use, in order; None takes the first of `devices()`.
        backend: "cpu" or None.
        axis_size: The size of the mapped axis; None takes it from the arguments.
        donate_argnums: Positions of arguments whose memory is given away.

    Returns:
        A function of the same arguments with one more axis each, spread over the devices.

    >>> jax.pmap(lambda x: lax.psum(x, "i") + x, axis_name="i")(jnp.array([[1.0, 2.0]]))
    Array([[2., 4.]], dtype=float32)"""
    check_callable(fun)
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend}. Available backends are ['cpu']")
    mapped = _Mapped(fun, axis_name, in_axes, out_axes, devices, axis_size)
    mapped.statics = as_tuple(static_broadcasted_argnums, int, "static_broadcasted_argnums")
    donated = as_tuple(donate_argnums, int, "donate_argnums")
    mapped.compiled = jit(mapped.over_axis, static_argnums=mapped.statics, donate_argnums=donated)

    @boundary
    def pmapped(*args: Any, **kwargs: Any) -> Any:
        return mapped(args, kwargs)

    wrapping(pmapped, fun)
    staged = jit(mapped.on_devices(), static_argnums=mapped.statics, donate_argnums=donated)
    mapped.staged = staged
    pmapped.lower = staged.lower  # type: ignore[attr-defined]
    pmapped.trace = staged.trace  # type: ignore[attr-defined]
    return pmapped


class _Mapped:
    """A function, the axes it is mapped over, and its compiled form."""

    statics: tuple[int, ...]
    compiled: Any
    staged: Any

    def __init__(
        self,
        fun: Callable[..., Any],
        axis_name: Hashable,
        in_axes: Any,
        out_axes: Any,
        devices: Sequence[Device] | None,
        axis_size: int | None,
    ):
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.fun, self.axis_name, self.out_axes, self.axis_size = (
            fun,
            axis_name,
            out_axes,
            axis_size,
        )
        if devices is not None and not len(devices):
            raise ValueError("'devices' argument to pmap must be non-empty, or None.")
        self.given = None if devices is None else list(devices)
        self.__name__ = name_of(fun)
        _check_axes("in_axes", self.in_axes)
        _check_axes("out_axes", out_axes)
        self.over_axis = self._over_axis()
        self.shardings: dict[Any, NamedSharding] = {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(i >= len(args) for i in self.statics):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={self.statics} but was called"
                f" with only {len(args)} positional argument{'s' * (len(args) != 1)}. All static"
                " broadcasted arguments must be passed positionally."
            )
        dynamic = [a for i, a in enumerate(args) if i not in self._statics(args)]
        if spans_processes(self.devices):
            return self.across(args, dynamic, kwargs)
        size = self.size(self.axes_of(args, dynamic, kwargs), dynamic, kwargs)
        if size > len(self.devices):
            raise ValueError(
                f"compiling computation that requires {size} logical devices, but only"
                f" {len(self.devices)} devices are available (pmap of {self.__name__} with a mapped"
                f" axis of size {size}); set CALQUE_NUM_CPU_DEVICES={size} for more"
            )
        try:
            out = self.compiled(*args, **kwargs)
        except InvalidValueError as e:
            raise debug_nans.on_devices(e) from None
        return self.placed(out, size)

    @property
    def devices(self) -> list[Device]:
        """The devices that were given, or all, of which `axis_size` takes the first."""
        if self.given is not None:
            return self.given
        return list(known.default_devices())[: self.axis_size]

    def across(self, args: tuple[Any, ...], dynamic: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The call of this process among those of several, see `pmap_rows`."""
        devices, dims = self.devices, self.axes_of(args, dynamic, kwargs)
        leaves, tree = pytrees.flatten((tuple(dynamic), kwargs))
        if any(isinstance(x, Tracer) for x in leaves):
            return self.staged(*args, **kwargs)
        rows = {
            rows_here(x, d, devices) for x, d in zip(leaves, dims, strict=True) if d is not None
        }
        for n in rows or (self.size(dims, dynamic, kwargs),):
            check_rows(n, devices, self.__name__)
        count = len(devices)
        given = [
            of_all_rows(x, d, self.sharding(count, d, typeof(x).ndim))
            for x, d in zip(leaves, dims, strict=True)
        ]
        values, named = pytrees.unflatten(tree, given)
        rest, statics = iter(values), self._statics(args)
        out = self.staged(*[a if i in statics else next(rest) for i, a in enumerate(args)], **named)
        return pytrees.tree_map(own_part, out)

    def placed(self, out: Any, size: int) -> Any:
        """The results, each on its devices."""
        leaves, tree = pytrees.flatten(out)
        targets = flatten_axes("pmap out_axes", self.out_axes, out)
        return pytrees.unflatten(
            tree,
            [constrained(x, self.sharding(size, t, x.aval.ndim)) for x, t in zip(leaves, targets)],
        )

    def on_devices(self) -> Callable[..., Any]:
        """The function over the whole axis whose program says where its results are."""

        def mapped(*flat_args: Any, **kwargs: Any) -> Any:
            args = flat_args  # under which name messages speak of them
            dynamic = [a for i, a in enumerate(args) if i not in self._statics(args)]
            size = self.size(self.axes_of(args, dynamic, kwargs), dynamic, kwargs)
            if spans_processes(self.devices) and size != len(self.devices):
                raise ValueError(
                    f"pmap of {self.__name__}: a program over several processes has all rows, which"
                    f" are {len(self.devices)}, one for each device, but the mapped axis has size"
                    f" {size}. Call it outside of jit with the rows of this process"
                )
            return self.placed(self.over_axis(*args, **kwargs), size)

        mapped.__name__ = self.__name__
        return mapped

    def _statics(self, args: Sequence[Any]) -> set[int]:
        return {i % len(args) for i in self.statics if -len(args) <= i < len(args)}

    def sharding(self, size: int, target: Dim, ndim: int) -> NamedSharding:
        """The sharding of an array of this rank that is mapped along the dimension `target`."""
        k = None if target is None else target % ndim
        if (size, k) not in self.shardings:
            name = _UNNAMED if self.axis_name is None else self.axis_name
            mesh = Mesh(grid_of(self.devices[:size], (size,)), (name,))
            self.shardings[size, k] = NamedSharding(
                mesh, PartitionSpec() if k is None else PartitionSpec(*[None] * k, name)
            )
        return self.shardings[size, k]

    # ------------------------------------------------------------ arguments

    def axes_of(
        self, args: Sequence[Any], dynamic: Sequence[Any], kwargs: dict[str, Any]
    ) -> list[Dim]:
        """The mapped dimension of each flat argument that is not static, counted from the front."""
        spec = self.in_axes
        if isinstance(spec, tuple):
            if len(spec) != len(args):
                raise ValueError(
                    "pytree structure error: different lengths of tuple at key path\n    pmap"
                    " in_axes\nAt that key path, the prefix pytree pmap in_axes has a subtree of"
                    f" type tuple of length {len(spec)}, but the full pytree has a subtree of the"
                    f" same type but of length {len(args)}.\n\nCheck that the value of the"
                    " `in_axes` argument to `pmap` is a tree prefix of the tuple of arguments"
                    " passed positionally to the pmapped function; each argument passed by keyword"
                    " is mapped over its leading axis."
                )
            spec = tuple(s for i, s in enumerate(spec) if i not in self._statics(args))
        if isinstance(spec, tuple):
            flat = flatten_axes("pmap in_axes", (spec, 0), (tuple(dynamic), kwargs))
        else:
            flat = [spec] * len(pytrees.leaves(dynamic)) + [0] * len(pytrees.leaves(kwargs))
        values = arrays(pytrees.leaves((tuple(dynamic), kwargs)), "pmap", self.fun, dynamic, kwargs)
        dims: list[Dim] = []
        for i, (x, d) in enumerate(zip(values, flat, strict=True)):
            ndim = typeof(x).ndim
            if d is not None and not -ndim <= d < ndim:
                raise ValueError(
                    "pmap was requested to map its argument"
                    f" {argument_name(self.fun, dynamic, kwargs, i)} along axis {d}, which implies"
                    f" that its rank should be at least {d + 1 if d >= 0 else -d}, but is only"
                    f" {ndim} (its shape is {typeof(x).shape})"
                )
            dims.append(None if d is None else d % ndim)
        return dims

    def size(self, dims: Sequence[Dim], dynamic: Sequence[Any], kwargs: dict[str, Any]) -> int:
        """The one size of the mapped dimensions."""
        leaves = pytrees.leaves((tuple(dynamic), kwargs))
        found: dict[int, list[int]] = {}
        for i, (x, d) in enumerate(zip(leaves, dims)):
            if d is not None:
                found.setdefault(typeof(x).shape[d], []).append(i)
        if not found:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        if len(found) > 1:
            lines = []
            for n, where in found.items():
                name, aval = (
                    argument_name(self.fun, dynamic, kwargs, where[0]),
                    typeof(leaves[where[0]]),
                )
                more = f" (and {len(where) - 1} more)" if len(where) > 1 else ""
                lines.append(
                    f"\n  * axis {dims[where[0]]} of argument {name} of type {aval.str_short()} had"
                    f" size {n}{more}"
                )
            raise ValueError(
                f"pmap got inconsistent sizes for array axes to be mapped, in {self.__name__}:"
                + ";".join(lines)
            )
        (n,) = found
        if self.axis_size is not None and n != self.axis_size:
            raise ValueError(
                f"Specified axis_size {self.axis_size} doesn't match received axis_size {n}."
            )
        return n

    # ------------------------------------------------------------ the one program

    def _over_axis(self) -> Callable[..., Any]:
        def over_axis(*flat_args: Any, **kwargs: Any) -> Any:
            args = flat_args  # under which name messages speak of them
            statics = self._statics(args)
            dynamic = [a for i, a in enumerate(args) if i not in statics]
            leaves, in_tree = pytrees.flatten((tuple(dynamic), kwargs))
            dims = self.axes_of(args, dynamic, kwargs)
            size = self.size(dims, dynamic, kwargs)

            def one(*values: Any, **named: Any) -> Any:
                rest = iter(values)
                return self.fun(
                    *[a if i in statics else next(rest) for i, a in enumerate(args)], **named
                )

            one.__name__ = self.__name__
            flat = FlatFunction(one, in_tree, "pmap")
            outs, found = batch(flat, Axis(self.axis_name, size, devices=True), leaves, dims)
            targets = flatten_axes(
                "pmap out_axes", self.out_axes, pytrees.unflatten(flat.out_tree, outs)
            )
            results = [
                _result(o, d, t, size, self.fun)
                for o, d, t in zip(outs, found, targets, strict=True)
            ]
            return pytrees.unflatten(flat.out_tree, results)

        over_axis.__name__ = self.__name__
        return over_axis


def spans_processes(devices: Sequence[Device]) -> bool:
    return not all(map(is_mine, devices))


def _check_axes(what: str, spec: Any) -> None:
    for x in pytrees.leaves(spec):
        if not isinstance(x, int) or isinstance(x, bool):
            raise TypeError(
                f"pmap {what} must be an int, None, or (nested) container with those types as"
                f" leaves, but got {spec}."
            )


def _result(x: Any, dim: Dim, target: Dim, size: int, fun: Any) -> Any:
    """A result with its mapped dimension where `out_axes` says; with None, what the first device
    computed."""
    if target is None:
        return x if dim is None else do.squeeze(_first(x, dim), dimensions=(dim,))
    ndim = typeof(x).ndim + (dim is None)
    if not -ndim <= target < ndim:
        raise ValueError(
            f"axis {target} is out of bounds for array of dimension {ndim}: out_axes of pmap names"
            f" no dimension of a result of {name_of(fun)}"
        )
    return placed(x, dim, target % ndim, size)


def _first(x: Any, dim: int) -> Any:
    shape = typeof(x).shape
    stop = tuple(1 if k == dim else d for k, d in enumerate(shape))
    return do.slice(x, start_indices=(0,) * len(shape), limit_indices=stop)
