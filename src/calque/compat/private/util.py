"""`jax._src.util`: small functions over sequences."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from calque.api_util import safe_map
from calque.transforms.engines.trees import name_of

__all__ = ["partition_list", "prod", "safe_map", "safe_zip", "split_list", "unzip2", "wraps"]

T = TypeVar("T")


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """`list(zip(...))` of sequences that must have one length."""
    return safe_map(lambda *row: row, *args)


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Two tuples from pairs."""
    rows = list(pairs)
    return tuple(a for a, _ in rows), tuple(b for _, b in rows)


def split_list(args: Sequence[T], ns: Sequence[int]) -> list[list[T]]:
    """Pieces of these lengths, and the rest."""
    rest, out = list(args), []
    for n in ns:
        out.append(rest[:n])
        rest = rest[n:]
    return [*out, rest]


def partition_list(bs: Sequence[bool], xs: Sequence[T]) -> tuple[list[T], list[T]]:
    """Those whose flag is false, and those whose flag is true."""
    pairs = safe_zip(bs, xs)
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def prod(xs: Iterable[int]) -> int:
    """The product of sizes."""
    return math.prod(xs)


def wraps(
    wrapped: Callable[..., Any],
    namestr: str | None = None,
    docstr: str | None = None,
    **words: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """`functools.wraps`, with another name and another docstring: templates in which `{fun}` is the
    name of the wrapped function, and in the docstring `{doc}` its own one, and any other words."""
    name = name_of(wrapped)
    doc = getattr(wrapped, "__doc__", "") or ""

    def put_on(fun: Callable[..., Any]) -> Callable[..., Any]:
        made = functools.wraps(wrapped)(fun)
        made.__name__ = name if namestr is None else namestr.format(fun=name)
        made.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **words)
        return made

    return put_on
