"""Functions of single elements applied to whole arrays: vectorize, apply_along_axis,
apply_over_axes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from calque.core.arrays import Array
from calque.core.config import config
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes
from calque.numpy.calls.marks import python_only
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_shapes,
    canonical_axis,
    check_arraylike,
)
from calque.numpy.shaping import expand_dims, squeeze
from calque.transforms.engines.trees import wrapping
from calque.transforms.functions.vmap import vmap

if TYPE_CHECKING:
    from calque.core.generics import Asked

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]

_NAME = r"\s*\w+\s*"
_CORE = rf"\s*\((?:{_NAME}(?:,{_NAME})*)?\s*\)\s*"
_SIGNATURE = re.compile(
    rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$|^\s*->{_CORE}(?:,{_CORE})*$"
)

Core = list[tuple[str, ...]]


def parse_signature(signature: str) -> tuple[Core, Core]:
    """`(m,n),(n)->(m)` as names of core dimensions of arguments and results."""
    if not _SIGNATURE.match(signature):
        raise ValueError(
            f"not a valid gufunc signature: {signature}. It is written like '(m,n),(n)->(m)', with"
            " the core dimensions of each argument and of each result"
        )
    sides = []
    for side in signature.split("->"):
        groups = re.findall(r"\(([^)]*)\)", side)
        sides.append([tuple(n.strip() for n in g.split(",") if n.strip()) for g in groups])
    return sides[0], sides[1]


@python_only
def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of single elements as a function of whole arrays, by `vmap`.

    Args:
        pyfunc: a function of numbers, or of small arrays if there is a signature. It is traced
            once, and sees one element at a time.
        excluded: positions and names of arguments that are handed over whole.
        signature: the axes that the function takes and returns, such as "(m,n),(n)->(m)". None is
            numbers only.
    Returns:
        A function whose arguments broadcast.
    Differs from NumPy:
        There is no `otypes`, `doc` or `cache`.

    >>> f = jnp.vectorize(lambda m, v: m @ v, signature="(m,n),(n)->(m)")
    >>> f(jnp.ones((5, 2, 3)), jnp.ones(3)).shape
    (5, 2)"""
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(
            "jax.numpy.vectorize can only exclude integer or string arguments, but"
            f" excluded={set(excluded)!r}"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")
    cores = None if signature is None else parse_signature(signature)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {k: v for k, v in kwargs.items() if k in excluded}
        if signature is not None and len(kwargs) > len(fixed):
            raise TypeError(
                "keyword arguments must be excluded when a signature is given: pass them by"
                " position"
            )
        names = [k for k in kwargs if k not in excluded]
        given = [*args, *(kwargs[k] for k in names)]
        absent = {i for i, a in enumerate(args) if a is None and i not in excluded}
        if absent and signature is not None:
            raise ValueError(f"Cannot pass None at locations {absent} with {signature=}")
        skipped = {i: a for i, a in enumerate(args) if i in excluded or i in absent}
        moving = [i for i in range(len(given)) if i not in skipped]

        def call(*xs: Any) -> Any:
            full = list(given)
            for i, x in zip(moving, xs):
                full[i] = x
            return pyfunc(*full[: len(args)], **dict(zip(names, full[len(args) :])), **fixed)

        return _mapped(call, [given[i] for i in moving], cores, signature)

    return wrapping(wrapped, pyfunc)


def _mapped(
    call: Callable[..., Any],
    given: Sequence[Any],
    cores: tuple[Core, Core] | None,
    signature: str | None,
) -> Any:
    xs = arrays("vectorize", *given)
    in_cores = [()] * len(xs) if cores is None else cores[0]
    if len(in_cores) != len(xs):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(in_cores)}, got {len(xs)}"
        )
    sizes: dict[str, int] = {}
    for x, core in zip(xs, in_cores):
        _bind_sizes(sizes, x.shape, core, signature)
    leads = [x.shape[: x.ndim - len(c)] for x, c in zip(xs, in_cores)]
    _check_ranks(leads)
    lead = broadcast_shapes("vectorize", *leads) if leads else ()
    f = call if cores is None else _checked(call, cores[1], sizes, signature)
    for level in reversed(range(len(lead))):
        # one vmap for each leading axis; an argument without it, or with size 1 there, is not
        # mapped
        axes = tuple(
            0 if len(s) > len(lead) - 1 - level and s[level - len(lead)] != 1 else None
            for s in leads
        )
        if lead[level] == 1 or all(a is None for a in axes):
            f = _kept(f, tuple(len(s) > len(lead) - 1 - level for s in leads))
        else:
            f = _squeezed(
                vmap(f, in_axes=axes), axes, tuple(len(s) > len(lead) - 1 - level for s in leads)
            )
    return f(*xs)


def _check_ranks(leads: Sequence[tuple[int, ...]]) -> None:
    """What `calque_numpy_rank_promotion` says of leading axes of different numbers."""
    if config.numpy_rank_promotion == "allow" or len({len(s) for s in leads if s}) < 2:
        return
    message = (
        f"operands with shapes {', '.join(map(str, leads))} require rank promotion in vectorize,"
        f" and calque_numpy_rank_promotion is {config.numpy_rank_promotion!r}"
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(message)
    warnings.warn(message, UserWarning, stacklevel=4)


def _squeezed(
    f: Callable[..., Any], axes: Sequence[int | None], has: Sequence[bool]
) -> Callable[..., Any]:
    """Arguments that broadcast along this axis lose it before the map."""
    return lambda *xs: f(
        *[squeeze(x, 0) if h and a is None else x for x, a, h in zip(xs, axes, has)]
    )


def _kept(f: Callable[..., Any], has: Sequence[bool]) -> Callable[..., Any]:
    """An axis of size 1 in all arguments: taken off, and put back on the results."""

    def g(*xs: Any) -> Any:
        out = f(*[squeeze(x, 0) if h else x for x, h in zip(xs, has)])
        return (
            tuple(expand_dims(o, 0) for o in out)
            if isinstance(out, (tuple, list))
            else expand_dims(out, 0)
        )

    return g


def _bind_sizes(
    sizes: dict[str, int], shape: tuple[int, ...], core: tuple[str, ...], signature: str | None
) -> None:
    if len(shape) < len(core):
        raise ValueError(
            f"input with shape {shape} does not have enough dimensions for all core dimensions"
            f" {core} on vectorized function with signature {signature}"
        )
    for name, size in zip(core, shape[len(shape) - len(core) :]):
        if sizes.setdefault(name, size) != size:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]} on"
                f" vectorized function with signature {signature}"
            )


def _checked(
    call: Callable[..., Any], out_cores: Core, sizes: dict[str, int], signature: str | None
) -> Callable[..., Any]:
    def f(*xs: Any) -> Any:
        out = call(*xs)
        if len(out_cores) > 1 and not isinstance(out, tuple):
            raise TypeError(
                f"output must be a tuple when several outputs are expected, got {type(out)} on"
                f" vectorized function with signature {signature}"
            )
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(out_cores):
            raise TypeError(
                f"wrong number of output arguments: expected {len(out_cores)}, got {len(outs)} on"
                f" vectorized function with signature {signature}"
            )
        known = dict(sizes)
        for o, core in zip(outs, out_cores):
            check_arraylike("vectorize", o)
            shape = typeof(o).shape
            if len(shape) != len(core):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {core} on vectorized"
                    f" function with signature {signature}"
                )
            _bind_sizes(known, shape, core, signature)
        return out

    return f


@python_only
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Asked:  # type: ignore[type-var]
    """A function of one-dimensional arrays, applied to every line along an axis.

    Args:
        func1d: takes a line, and returns a number or an array.
        axis: the axis of the lines.
        arr: an array.
        *args, **kwargs: handed to the function.
    Returns:
        An array in which what the function returns stands in place of the axis.

    >>> jnp.apply_along_axis(lambda v: v[::-1], 1, jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)"""
    a = array_of("apply_along_axis", arr)
    k = canonical_axis(axis, a.ndim)

    def f(line: Any) -> Any:
        return func1d(line, *args, **kwargs)

    for _ in range(a.ndim - 1 - k):
        f = vmap(f, in_axes=-1, out_axes=-1)
    for _ in range(k):
        f = vmap(f, in_axes=0, out_axes=0)
    return f(a)


@python_only
def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: Axes | None) -> Array:
    """A function of an array and an axis, applied for one axis after the other.

    Args:
        func: called as `func(array, axis)`; it folds the axis, or keeps it with size 1.
        a: an array.
        axes: the axes.
    Returns:
        An array with as many axes as `a`.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)"""
    out = array_of("apply_over_axes", a)
    for axis in axes if isinstance(axes, (tuple, list, range)) else (axes,):
        k = canonical_axis(axis, out.ndim)
        b = func(out, k)
        if b.ndim == out.ndim - 1:
            b = expand_dims(b, k)
        if b.ndim != out.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        out = b
    return out
