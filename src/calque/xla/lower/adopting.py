"""Functions of other modules, as text, taken over into the module that is being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from calque.xla.lower.placing import mesh_of_axes
from calque.xla.lower.rules import Builder, listed
from calque.xla.text.tree import Value, symbol
from calque.xla.text.types import Tensor, signature

_NAME: Final = re.compile(r"@([\w$.-]+)")
_MESH: Final = re.compile(
    r"^ *sdy\.mesh @([\w$.-]+) = <\[([^\]]*)\](, device_ids=\[[^\]]*\])?>.*\n", re.MULTILINE
)
_AXIS: Final = re.compile(r'"([^"]*)"=(\d+)')
_FUNCTION: Final = re.compile(r"func\.func (?:public |private )?@([\w$.-]+)")


def adopted(b: Builder, text: str, main: str, others: str = "") -> str:
    """The functions of another module as private ones of this module: `main` under this name,
    `others` ahead of the names of the rest. Gives the name of main. Its meshes become those of this
    module that have the same axes."""
    names, own = _FUNCTION.findall(text), {"main": symbol(main)}
    new = {name: b.state.unique_name(own.get(name, f"{others}{name}")) for name in names}
    body = text[text.index("{\n", text.index("module")) + 2 : text.rindex("}")]
    for name, axes, ids in _MESH.findall(body):
        new[name] = _mesh_here(b, name, axes, ids)
    body = _MESH.sub("", body)
    renamed = _NAME.sub(lambda m: f"@{new.get(m[1], m[1])}", body)
    private = re.sub(r"func\.func (?:public |private )?@", "func.func private @", renamed)
    b.state.module.others.append(private.strip("\n"))
    return new["main"]


def _mesh_here(b: Builder, name: str, axes: str, ids: str) -> str:
    """The name in this module of a mesh of another one."""
    found = tuple((axis, int(n)) for axis, n in _AXIS.findall(axes))
    if found and not ids:
        return mesh_of_axes(b.state, found)
    own = b.state.unique_name(name)
    b.state.module.declarations.append(f"sdy.mesh @{own} = <[{axes}]{ids}>")
    return own


def called(
    b: Builder,
    main: str,
    args: Sequence[Value],
    declared: Sequence[Tensor],
    results: Sequence[Tensor],
    outs: Sequence[Tensor],
) -> list[Value]:
    """A call of an adopted function, whose arguments and results were declared to be of these
    types: free sizes become those of the call."""
    xs = [_converted(b, x, t) for x, t in zip(args, declared, strict=True)]
    call = "func.call" if b.nested else "call"
    types = signature([x.type for x in xs], results)
    found = b.emit(results, f"{call} @{main}(", *listed(xs), f") : {types}")
    results_here = [_converted(b, x, t) for x, t in zip(found, outs, strict=True)]
    for x, t in zip(results_here, outs):
        x.type = t  # the caller's names of free sizes
    return results_here


def _converted(b: Builder, x: Value, out: Any) -> Value:
    """The same value where some sizes are free, or have become fixed."""
    if str(x.type) == str(out):
        return x
    return b.one(out, "stablehlo.convert ", x, f" : ({x.type}) -> {out}")  # type: ignore[no-any-return]
