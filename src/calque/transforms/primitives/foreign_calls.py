"""Calls of foreign functions from programs: the primitives `ffi_call` and, of functions with side
effects, `ffi_call_with_effect`, with all their rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.errors import CalqueRuntimeError
from calque.core.primitives import NotApplicable, Zero
from calque.machine.caches import Table
from calque.machine.foreign import targets
from calque.machine.foreign.frames import empty_aligned, laid_out
from calque.ops.common import move, repeated
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim
from calque.transforms.engines.zeros import zero_like
from calque.transforms.primitives.callbacks import VMAP_METHODS, written_out
from calque.transforms.primitives.lanes import one_by_one, together_rules

Order = tuple[int, ...]  # of the axes of an array, the one that moves fastest first


class Attributes(Mapping[str, Any]):
    """The attributes of a call: equal where names, types and bits are."""

    __slots__ = ("_key", "_values")

    def __init__(self, values: Mapping[str, Any]):
        self._values = {name: _own(name, values[name]) for name in sorted(values)}
        self._key = tuple([(name, _bits(x)) for name, x in self._values.items()])

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Attributes) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(tuple([(n, _Shown(_text(x))) for n, x in self._values.items()]))


class _Shown(str):
    """A text that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _own(name: str, x: Any) -> Any:
    """A value that nobody changes."""
    if isinstance(x, Mapping):
        return Attributes(x)
    if isinstance(x, np.ndarray):
        x = np.array(x)
        x.flags.writeable = False
        return x
    if isinstance(x, (str, bytes, bool, float, np.generic)):
        return x
    if hasattr(x, "__index__"):  # also a size, which is known from here on
        return int(x)
    raise TypeError(
        f"Non-hashable keyword argument to ffi_call {name}: {x!r} is a {type(x).__name__};"
        " numbers, texts, NumPy arrays and dicts of these can be attributes of a foreign function"
    )


def _bits(x: Any) -> Any:
    if isinstance(x, (str, bytes, Attributes)):
        return x
    elements = np.asarray(x)
    return type(x).__name__, elements.dtype.name, elements.shape, elements.tobytes()


def _text(x: Any) -> str:
    if isinstance(x, Attributes):
        inside = ", ".join(f"{n!r}: {_text(v)}" for n, v in x.items())
        return f"FrozenDict({{{inside}}})"
    return f"HashableArray({x!r})" if isinstance(x, np.ndarray) else repr(x)


class Site:
    """A place in a program that calls a function with a state: of each place the function has an
    own one."""

    __slots__ = ("_instance",)

    def __init__(self) -> None:
        self._instance: targets.Instance | None = None

    def instance(self, target: targets.Target, attributes: Attributes) -> targets.Instance:
        if self._instance is None:
            self._instance = targets.Instance(target, attributes)
        return self._instance


_instances: Final[Table[Any, targets.Instance]] = Table("foreign functions with attributes", 512)


def _instance(
    target: targets.Target, attributes: Attributes, site: Site | None
) -> targets.Instance:
    if site is not None:
        return site.instance(target, attributes)
    key = target.name, attributes
    found = _instances.find(key)
    if found is None:
        found = _instances[key] = targets.Instance(target, attributes)
    return found


def _called(
    *args: np.ndarray,
    target_name: str,
    result_avals: Sequence[ShapedArray],
    input_layouts: Sequence[Order],
    output_layouts: Sequence[Order],
    input_output_aliases: Sequence[tuple[int, int]],
    custom_call_api_version: int,
    attributes: Attributes,
    site: Site | None,
    **_: Any,
) -> list[np.ndarray]:
    """The results, from the function that has this name on the CPU."""
    target = targets.find(target_name)
    if target is None:
        raise CalqueRuntimeError(
            f"NOT_FOUND: No FFI handler registered for {target_name} on the CPU. Make it known:"
            f" jax.ffi.register_ffi_target({target_name!r}, jax.ffi.pycapsule(library.function))"
        )
    ins = [laid_out(x, order[::-1]) for x, order in zip(args, input_layouts)]
    outs = []
    for i, (aval, order) in enumerate(zip(result_avals, output_layouts)):
        shape = [int(aval.shape[k]) for k in order[::-1]]
        outs.append(empty_aligned(shape, aval.dtype))
        for taken in [a for a, o in input_output_aliases if o == i]:
            ins[taken] = outs[i] = laid_out(args[taken], order[::-1], own=True)
    shapes = [x.shape for x in args], [tuple(map(int, a.shape)) for a in result_avals]
    if target.version == targets.UNTYPED:
        _call_untyped(target, ins, outs, custom_call_api_version)
    else:
        try:
            found = _instance(target, attributes, site)
            found.run(list(zip(ins, shapes[0])), list(zip(outs, shapes[1])))
        except targets.ForeignError as e:
            raise CalqueRuntimeError(str(e)) from None
    return [x.transpose(np.argsort(order[::-1])) for x, order in zip(outs, output_layouts)]


def _call_untyped(
    target: targets.Target, ins: Sequence[np.ndarray], outs: Sequence[np.ndarray], version: int
) -> None:
    if version != 1:
        raise NotImplementedError(
            f"the foreign function {target.name!r} is called with custom_call_api_version="
            f"{version}: calque's own engine calls functions of version 1 and 4. Give it the"
            " interface of version 4 (jax.ffi.include_dir() has its headers), or let XLA call it:"
            " jax.devices('xla_cpu')"
        )
    targets.run_untyped(target, ins, outs, several=len(outs) != 1)


def _shape(*avals: ShapedArray, result_avals: Sequence[ShapedArray], **_: Any) -> list[ShapedArray]:
    return list(result_avals)


def _with_lanes(order: Order) -> Order:
    """The order of the axes behind a new slowest one."""
    return (*[n + 1 for n in order], 0)


def _batch(
    primitive: AxisPrimitive,
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    vmap_method: str | None,
    result_avals: Sequence[ShapedArray],
    input_layouts: Sequence[Order],
    output_layouts: Sequence[Order],
    **params: Any,
) -> Any:
    if vmap_method is None and axis.devices:
        vmap_method = "sequential"  # each device calls for itself
    if vmap_method not in VMAP_METHODS:
        raise NotImplementedError(
            "vmap is only supported for the ffi_call primitive when vmap_method is one of"
            f" {', '.join(map(repr, VMAP_METHODS))}. Got vmap_method={vmap_method}."
        )
    params["vmap_method"] = vmap_method
    if vmap_method in ("sequential", "sequential_unrolled"):
        params.update(
            result_avals=result_avals, input_layouts=input_layouts, output_layouts=output_layouts
        )
        of_lanes = one_by_one if vmap_method == "sequential" else written_out
        return of_lanes(primitive, axis, args, dims, params)
    size = {"expand_dims": 1, "broadcast_all": axis.size}.get(vmap_method)  # None: left as it is
    outs = primitive.bind(
        *[
            move(x, d, 0) if d is not None else x if size is None else repeated(x, size)
            for x, d in zip(args, dims)
        ],
        result_avals=tuple(ShapedArray((axis.size, *a.shape), a.dtype) for a in result_avals),
        input_layouts=tuple(
            order if d is None and size is None else _with_lanes(order)
            for order, d in zip(input_layouts, dims)
        ),
        output_layouts=tuple(map(_with_lanes, output_layouts)),
        **params,
    )
    return outs, [0] * len(outs)


def _primitive(name: str, *, effect: bool) -> AxisPrimitive:
    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> Any:
        return _batch(made, axis, args, dims, **params)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if any(type(t) is not Zero for t in tangents):
            raise ValueError(
                f"The FFI call to `{params['target_name']}` cannot be differentiated. Give the"
                " function that calls it a rule: jax.custom_jvp or jax.custom_vjp"
            )
        outs = made.bind(*primals, **params)
        return outs, [zero_like(o) for o in outs]

    made = AxisPrimitive(
        name,
        meaning=_called,
        shape=_shape,
        jvp=jvp,
        transpose=NotApplicable("calls of foreign functions have no transpose: give a custom_vjp"),
        batch=batch,
        multiple_results=True,
        effect=effect,
        hidden=("site",),
    )
    together_rules[name] = lambda params: (
        params["vmap_method"] not in ("sequential", "sequential_unrolled")
    )
    return made


ffi_call_p = _primitive("ffi_call", effect=False)
ffi_call_with_effect_p = _primitive("ffi_call_with_effect", effect=True)
