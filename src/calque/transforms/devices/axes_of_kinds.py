"""Mesh axes along which the user, or the compiler, says where values are. Values mean the same in
either case."""

import functools
from collections.abc import Callable
from typing import Any

from calque.transforms.devices.mesh import consult_mesh
from calque.transforms.devices.sharding_constraint import reshard
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import name_of

_NOT_GIVEN: Any = object()


def _check(what: str, f: Any, axes: Any) -> None:
    check_callable(f, what)
    mesh = consult_mesh()
    names = () if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [n for n in names if n not in mesh.axis_names]
    if unknown:
        raise ValueError(
            f"{what} of {name_of(f)}: {unknown} are not axes of the current mesh, which has"
            f" {mesh.axis_names}"
        )


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: Any = _NOT_GIVEN,
) -> Any:
    """`f` with the shardings of its results given: inside, the compiler decides where values are.

    The sharding can also be given by the caller: `auto_axes(f)(x, out_sharding=P("x"))`"""
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    given = out_sharding

    @functools.wraps(f)
    def call(*args: Any, out_sharding: Any = _NOT_GIVEN, **kwargs: Any) -> Any:
        _check("auto_axes", f, axes)
        target = given if out_sharding is _NOT_GIVEN else out_sharding
        if target is _NOT_GIVEN:
            raise TypeError(
                f"auto_axes of {name_of(f)}: Missing required keyword argument: 'out_sharding'"
            )
        return reshard(f(*args, **kwargs), target)

    return call


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: Any = _NOT_GIVEN,
) -> Any:
    """`f` with the shardings of its positional arguments given. They can also be given by the
    caller, as `in_sharding`."""
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    given = in_sharding

    @functools.wraps(f)
    def call(*args: Any, in_sharding: Any = _NOT_GIVEN, **kwargs: Any) -> Any:
        _check("explicit_axes", f, axes)
        source = given if in_sharding is _NOT_GIVEN else in_sharding
        if source is _NOT_GIVEN:
            raise TypeError(
                f"explicit_axes of {name_of(f)}: Missing required keyword argument: 'in_sharding'"
            )
        return f(*reshard(args, source), **kwargs)

    return call
