"""Calls of foreign functions: what a caller gives, checked, as an equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer, is_evaluating
from calque.machine.foreign import targets
from calque.ops.random.keys import KeyDType
from calque.transforms.engines.trees import arrays
from calque.transforms.primitives.callbacks import VMAP_METHODS
from calque.transforms.primitives.foreign_calls import (
    Attributes,
    Order,
    Site,
    ffi_call_p,
    ffi_call_with_effect_p,
)

TYPED: Final = 4  # the version of XLA's custom calls whose functions take frames


def checked_method(vmap_method: str | None) -> str | None:
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]}, but got:"
            f" {vmap_method}"
        )
    return vmap_method


def checked_results(results: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """The types of the results; 64-bit ones are what they are."""
    for i, x in enumerate(results):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise ValueError(
                "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes."
                f" Got {x} at position {i}."
            )
        if isinstance(x.dtype, KeyDType):
            raise TypeError(
                f"result_shape_dtypes[{i}] are random keys: let the function give their words"
                " (uint32), and make keys of them by jax.random.wrap_key_data"
            )
    return tuple([ShapedArray(tuple(x.shape), x.dtype) for x in results])


def _order(ndim: int, layout: Any, what: str) -> Order:
    """The axes of an array as they lie in memory, the one that moves fastest first."""
    if layout is None:
        return tuple(range(ndim - 1, -1, -1))
    if hasattr(layout, "major_to_minor"):  # a Layout
        if layout.tiling is not None:
            raise ValueError(f"{what}: The FFI does not support layouts with tiling")
        layout = layout.major_to_minor
    found = tuple(map(int, layout))[::-1]
    if sorted(found) != list(range(ndim)):
        raise ValueError(
            f"{what}: the layout {tuple(layout)} has to name each of {ndim} dimensions once"
        )
    return found


def orders(
    types: Sequence[ShapedArray], layouts: Sequence[Any] | None, what: str
) -> tuple[Order, ...]:
    """The order of each argument or result."""
    if layouts is None:
        layouts = [None] * len(types)
    if len(layouts) != len(types):
        raise ValueError(
            f"The number of {what} ({len(types)}) must equal the number of their layouts"
            f" ({len(layouts)})."
        )
    return tuple(
        [_order(len(t.shape), x, f"{what} {i}") for i, (t, x) in enumerate(zip(types, layouts))]
    )


def _aliases(
    asked: Mapping[int, int] | None,
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    in_orders: Sequence[Order],
    out_orders: Sequence[Order],
) -> tuple[tuple[int, int], ...]:
    """Which arguments give their memory to which results."""
    found = []
    for i, o in sorted((asked or {}).items()):
        told = f"input_output_aliases contains the mapping '{i}:{o}'"
        if not 0 <= i < len(ins):
            raise ValueError(f"{told} with input index {i} outside the range [0, {len(ins)}).")
        if not 0 <= o < len(outs):
            raise ValueError(f"{told} with output index {o} outside the range [0, {len(outs)}).")
        if (ins[i].shape, ins[i].dtype) != (outs[o].shape, outs[o].dtype):
            raise ValueError(
                f"{told} referring to an input with abstract value {ins[i]} and an output with a"
                f" different abstract value {outs[o]}."
            )
        if in_orders[i] != out_orders[o]:
            raise ValueError(
                f"{told} referring to an input with layout {in_orders[i]} and an output with a"
                f" different layout {out_orders[o]}."
            )
        found.append((int(i), int(o)))
    return tuple(found)


def _checked_version(version: int, config: str | None, attributes: Mapping[str, Any]) -> None:
    if version >= TYPED and config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version <"
            f" {TYPED}; got {version}."
        )
    if version < TYPED and attributes:
        raise ValueError(
            "The use of ffi_call attributes requires a custom call API version of at least"
            f" {TYPED}; got api_version={version}."
        )


def _in_words(x: Any) -> Any:
    """Random keys as the words in them, which is what foreign functions know."""
    return do.random_unwrap(x) if isinstance(typeof(x).dtype, KeyDType) else x


def _site(target_name: str, args: Sequence[Any]) -> Site | None:
    """A place of its own in the program that is being traced, for functions that keep a state."""
    target = targets.find(target_name)
    if target is None or not target.keeps_state:
        return None
    traced = any([isinstance(x, Tracer) for x in args]) or not is_evaluating()
    return Site() if traced else None


def call_of(
    target_name: str,
    results: Sequence[Any],
    *,
    has_side_effect: bool,
    vmap_method: str | None,
    input_layouts: Sequence[Any] | None,
    output_layouts: Sequence[Any] | None,
    input_output_aliases: Mapping[int, int] | None,
    version: int,
    config: str | None,
) -> Callable[..., list[Any]]:
    """A function of arrays, with attributes as keywords, that calls a foreign one."""
    outs = checked_results(results)
    checked_method(vmap_method)
    _checked_version(version, config, {})

    def call(*args: Any, **attributes: Any) -> list[Any]:
        _checked_version(version, config, attributes)
        xs = [_in_words(x) for x in arrays(args, "ffi_call", call, args, {})]
        ins = [typeof(x) for x in xs]
        in_orders = orders(ins, input_layouts, "input arguments")
        out_orders = orders(outs, output_layouts, "outputs")
        primitive = ffi_call_with_effect_p if has_side_effect else ffi_call_p
        found: list[Any] = primitive.bind(
            *xs,
            attributes=Attributes(attributes),
            custom_call_api_version=version,
            has_side_effect=has_side_effect,
            input_layouts=in_orders,
            input_output_aliases=_aliases(input_output_aliases, ins, outs, in_orders, out_orders),
            legacy_backend_config=config,
            output_layouts=out_orders,
            result_avals=outs,
            site=_site(target_name, xs),
            target_name=target_name,
            vmap_method=vmap_method,
        )
        return found

    return call
