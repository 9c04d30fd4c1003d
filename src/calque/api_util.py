"""Tools for those who write transformations: functions of trees as functions of flat leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.jaxprs import DebugInfo
from calque.core.key_paths import keystr
from calque.core.trace import typeof
from calque.extend.linear_util import Store, transformation_with_aux2
from calque.transforms.engines import signatures
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
    """Gives names for messages: which function is traced for what, what its arguments are called.

    Args:
        traced_for: What it is traced for.
        fun: The function.
        args: Its positional arguments.
        kwargs: Its arguments by name.
        static_argnums: Positions of static arguments, which get no entry.
        static_argnames: Names of static arguments, which get no entry.
        result_paths_thunk: What the results are called; kept as it is.
        sourceinfo: Where the function stands; None takes its name.
        signature: The signature; None takes that of `fun`.

    Returns:
        A DebugInfo.

    >>> from calque import api_util
    >>> api_util.debug_info("jit", lambda x: x, ([1, 2],), {}).arg_names
    ('x[0]', 'x[1]')"""
    try:
        named = (signature or signatures.signature(fun)).bind(*args, **kwargs).arguments
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
    """Makes a function of leaves of a function of `(args, kwargs)`.

    Args:
        f: The wrapped function.
        store: Where the structure of the results is left.
        in_tree: The structure of `(args, kwargs)`.
        *leaves: The leaves.

    Returns:
        Called as `flatten_fun(wrapped, in_tree)`, a pair: the function of leaves, and a function
        that gives the structure of the results after a call.

    >>> from calque import api_util, extend
    >>> wrapped = extend.linear_util.wrap_init(lambda x: {"a": x + 1})
    >>> flat, out_tree = api_util.flatten_fun(wrapped, jax.tree.structure(((1,), {})))
    >>> flat.call_wrapped(2), out_tree()
    ([3], PyTreeDef({'a': *}))"""
    args, kwargs = pytrees.unflatten(in_tree, leaves)
    out, out_tree = pytrees.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return out


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any
) -> list[Any]:
    """Makes a function of leaves of a function of positional arguments.

    Args:
        f: The wrapped function.
        store: Where the structure of the results is left.
        in_tree: The structure of the arguments.
        *leaves: The leaves.

    Returns:
        Called as `flatten_fun_nokwargs(wrapped, in_tree)`, a pair as of `flatten_fun`.

    >>> from calque import api_util, extend
    >>> wrapped = extend.linear_util.wrap_init(lambda x: [x + 1])
    >>> flat, out_tree = api_util.flatten_fun_nokwargs(wrapped, jax.tree.structure((1,)))
    >>> flat.call_wrapped(2), out_tree()
    ([3], PyTreeDef([*]))"""
    out, out_tree = pytrees.flatten(f(*pytrees.unflatten(in_tree, leaves)))
    store.store(out_tree)
    return out


def shaped_abstractify(x: Any) -> ShapedArray:
    """Gives the type of a value.

    Args:
        x: An array or a number.

    Returns:
        A ShapedArray.

    >>> from calque import api_util
    >>> api_util.shaped_abstractify(jnp.ones(2))
    ShapedArray(float32[2])"""
    return typeof(x)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Maps a function over sequences that must be of one length.

    Args:
        f: The function.
        *args: The sequences.

    Returns:
        A list.

    >>> from calque import api_util
    >>> api_util.safe_map(max, [1, 4], [3, 2])
    [3, 4]"""
    rows = list(map(list, args))
    if len({len(r) for r in rows}) > 1:
        raise ValueError(f"length mismatch: {[len(r) for r in rows]}")
    return list(map(f, *rows))


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, tupled_args: bool = False) -> Any:
    """Gives an entry for each leaf of a structure, of a tree that it begins with.

    Args:
        name: What errors call the tree.
        treedef: The structure.
        axis_tree: The tree; None counts as a leaf.
        tupled_args: Whether the tree describes positional arguments, one entry each.

    Returns:
        A list.

    >>> from calque import api_util
    >>> api_util.flatten_axes("in_axes", jax.tree.structure([1, (2, 3)]), [0, None])
    [0, None, None]"""
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
    """Binds all arguments but some.

    Args:
        f: The wrapped function.
        dyn_argnums: The position, or positions, of the arguments that stay free.
        args: All arguments.
        require_static_args_hashable: Whether a bound argument that has no hash is an error.

    Returns:
        A pair: the function of the free arguments, and the values of these.

    >>> from calque import api_util, extend
    >>> wrapped = extend.linear_util.wrap_init(lambda x, y: x - y)
    >>> f, free = api_util.argnums_partial(wrapped, 1, (5, 3))
    >>> f.call_wrapped(*free)
    2"""
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
    """Counts donated arguments without the static ones.

    Args:
        donate_argnums: Positions of donated arguments.
        static_argnums: Positions of static arguments.

    Returns:
        A tuple of positions.

    >>> from calque import api_util
    >>> api_util.rebase_donate_argnums((2,), (0,))
    (1,)"""
    if set(donate_argnums) & set(static_argnums):
        raise ValueError(
            f"static_argnums {tuple(static_argnums)} and donate_argnums {tuple(donate_argnums)}"
            " cannot intersect."
        )
    return tuple(i - sum(s < i for s in static_argnums) for i in sorted(donate_argnums))


def donation_vector(donate_argnums: Sequence[int], in_tree: Any) -> tuple[bool, ...]:
    """Tells of each leaf of the arguments whether it is donated.

    Args:
        donate_argnums: Positions of donated arguments.
        in_tree: The structure of `(args, kwargs)`.

    Returns:
        A tuple of bools.

    >>> from calque import api_util
    >>> api_util.donation_vector((1,), jax.tree.structure(((1, [2, 3]), {})))
    (False, True, True)"""
    args, kwargs = pytrees.unflatten(in_tree, [0] * in_tree.num_leaves)
    counts = [pytrees.structure(a).num_leaves for a in args]
    flags = [i in donate_argnums for i, n in enumerate(counts) for _ in range(n)]
    return (*flags, *[False] * pytrees.structure(kwargs).num_leaves)
