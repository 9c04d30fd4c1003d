"""Calls of foreign functions on XLA, which knows them by name (`jaxlib.hand_over`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from calque.core.jaxprs import Eqn
from calque.xla.lower.callbacks import custom_call
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.text.constants import dense, number
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor, element_name

_WIDE: Final[dict[type, Any]] = {bool: np.bool_, int: np.int64, float: np.float64}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


@equation_rule("ffi_call", "ffi_call_with_effect")
def ffi_call(b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value]) -> list[Value]:
    """A custom call of the function's name: of version 4 with the attributes by name (XLA knows it
    by these), before that with a text."""
    params = e.params
    version = params["custom_call_api_version"]
    attributes = {
        "backend_config": quoted(params["legacy_backend_config"] or ""),
        "operand_layouts": _layouts(params["input_layouts"]),
        "result_layouts": _layouts(params["output_layouts"]),
    }
    if version >= 4:
        attributes["mhlo.backend_config"] = _dictionary(params["attributes"])
    elif version > 1:
        attributes["api_version"] = f"{version} : i32"
    if params["has_side_effect"]:
        attributes["has_side_effect"] = "true"
    if params["input_output_aliases"]:
        pairs = params["input_output_aliases"]
        attributes["output_operand_aliases"] = _aliases(pairs, several=len(outs) != 1)
    return custom_call(b, _name(params["target_name"]), outs, args, attributes)


def _layouts(orders: Sequence[Sequence[int]]) -> str:
    return f"[{', '.join(map(layout_of, orders))}]"


def layout_of(order: Sequence[int]) -> str:
    """The order of the axes of an array, the one that moves fastest first."""
    return f"{dense(np.array(order, np.int64))} : tensor<{len(order)}xindex>"


def _aliases(pairs: Sequence[tuple[int, int]], *, several: bool) -> str:
    found = [
        "#stablehlo.output_operand_alias<output_tuple_indices ="
        f" [{o if several else ''}], operand_index = {i}, operand_tuple_indices = []>"
        for i, o in pairs
    ]
    return f"[{', '.join(found)}]"


def quoted(text: str | bytes) -> str:
    """A text of MLIR."""
    raw = text.encode() if isinstance(text, str) else text
    return '"' + "".join(_character(c) for c in raw) + '"'


def _character(c: int) -> str:
    plain = 32 <= c < 127 and chr(c) not in '"\\'
    return chr(c) if plain else f"\\{c:02X}"


def _dictionary(values: Mapping[str, Any]) -> str:
    fields = [f"{_name(n)} = {attribute(n, x)}" for n, x in values.items()]
    return f"{{{', '.join(fields)}}}"


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def attribute(name: str, x: Any) -> str:
    """A value as an attribute of MLIR."""
    if isinstance(x, (str, bytes)):
        return quoted(x)
    if isinstance(x, Mapping):
        return _dictionary(x)
    if isinstance(x, np.ndarray):
        if x.dtype.names:  # of no bits
            x = np.zeros(x.shape, np.bool_)
        return f"{dense(x)} : {Tensor(x.shape, x.dtype)}"
    v = _WIDE[type(x)](x) if type(x) in _WIDE else x
    if v.dtype.kind == "c":
        raise TypeError(
            f"attribute {name!r} of a foreign function is a complex number, which XLA does not"
            " take: give an array of it"
        )
    if v.dtype.kind == "b":
        return number(v)
    return f"{number(v)} : {element_name(v.dtype)}"
