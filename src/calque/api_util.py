"""Tools for those who write transformations: functions of trees as functions of flat leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.key_paths import keystr
from calque.core.trace import typeof
from calque.extend.linear_util import Store, transformation_with_aux2
from calque.extend.programs import DebugInfo
from calque.transforms.engines.trees import name_of

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]  # fmt: skip


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Names for messages: which function is traced for what, and how its arguments are called.

    `signature` stands for that of `fun`; static arguments, by number or name, get no entry."""
    try:
        named = (signature or inspect.signature(fun)).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        named = dict(zip((f"args[{i}]" for i in range(len(args))), args)) | kwargs
    skipped = {n for i, n in enumerate(named) if i in static_argnums} | set(static_argnames)
    names = [
        name + keystr(path)
        for name, value in named.items()
        if name not in skipped
        for path, _ in pytrees.flatten_with_path(value)[0]
    ]
    return DebugInfo(traced_for, sourceinfo or name_of(fun), tuple(names), result_paths_thunk)


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """The function of leaves behind a function of `(args, kwargs)` with this structure. Used as
    `flat, out_tree = flatten_fun(wrapped, in_tree)`; `out_tree()` is known after a call."""
    args, kwargs = pytrees.unflatten(in_tree, leaves)
    out, out_tree = pytrees.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return out


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any
) -> list[Any]:
    """As `flatten_fun`, for positional arguments alone."""
    out, out_tree = pytrees.flatten(f(*pytrees.unflatten(in_tree, leaves)))
    store.store(out_tree)
    return out


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of a value: its shape, dtype and whether it is weak."""
    return typeof(x)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """`list(map(f, ...))` of sequences that must have one length."""
    rows = list(map(list, args))
    if len({len(r) for r in rows}) > 1:
        raise ValueError(f"length mismatch: {[len(r) for r in rows]}")
    return list(map(f, *rows))


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, tupled_args: bool = False) -> Any:
    """One entry for each leaf of `treedef`: `axis_tree` may be a prefix of that structure.

    `name` is what errors call the argument; `tupled_args` says that it describes positional
    arguments, one entry each."""
    whole = pytrees.unflatten(treedef, [object()] * treedef.num_leaves)
    try:
        return pytrees.prefix_broadcast(axis_tree, whole, is_leaf=lambda x: x is None)
    except ValueError as e:
        hint = ", as a tuple with one entry for each positional argument" if tupled_args else ""
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value{hint}: got"
            f" specification {axis_tree} for value tree {treedef}."
        ) from e


def argnums_partial(
    f: Any,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[Any, tuple[Any, ...]]:
    """`f` with all arguments but those of `dyn_argnums` bound, and the values of these.

    With `require_static_args_hashable` a bound argument that has no hash is refused."""
    dynamic = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    dynamic = tuple(i % len(args) for i in dynamic)
    fixed = {i: x for i, x in enumerate(args) if i not in dynamic}
    if require_static_args_hashable:
        for i, x in fixed.items():
            try:
                hash(x)
            except TypeError as e:
                raise ValueError(
                    f"Non-hashable static arguments are not supported: argument {i} is {x!r}."
                ) from e

    def bound(call: Callable[..., Any], *given: Any, **kwargs: Any) -> Any:
        values = iter(given)
        every = [fixed[i] if i in fixed else next(values) for i in range(len(args))]
        return call(*every, **kwargs)

    return f.wrap(bound, (), None), tuple(args[i] for i in dynamic)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Numbers of donated arguments, counted without the static ones."""
    if set(donate_argnums) & set(static_argnums):
        raise ValueError(
            f"static_argnums {tuple(static_argnums)} and donate_argnums {tuple(donate_argnums)}"
            " cannot intersect."
        )
    return tuple(i - sum(s < i for s in static_argnums) for i in sorted(donate_argnums))


def donation_vector(donate_argnums: Sequence[int], in_tree: Any) -> tuple[bool, ...]:
    """For each leaf of positional arguments and keywords: whether its argument is donated."""
    args, kwargs = pytrees.unflatten(in_tree, [0] * in_tree.num_leaves)
    counts = [pytrees.structure(a).num_leaves for a in args]
    flags = [i in donate_argnums for i, n in enumerate(counts) for _ in range(n)]
    return (*flags, *[False] * pytrees.structure(kwargs).num_leaves)
