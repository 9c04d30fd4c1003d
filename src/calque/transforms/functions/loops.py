"""Loops for users: scan, while_loop, fori_loop, map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from calque.core import errors, pytrees
from calque.core.arrays import is_concrete
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import Dim
from calque.core.dtypes import bool_, is_float, is_integer
from calque.core.jaxprs import ClosedJaxpr, Var
from calque.core.primitives import do
from calque.core.trace import typeof, typing, value_if_known
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.ops.common import scalar_of
from calque.transforms.engines.trees import arrays, name_of
from calque.transforms.functions.vmap import vmap
from calque.transforms.primitives import flow
from calque.transforms.primitives.flow import Staged, check_carry, joined_type, staged
from calque.transforms.primitives.found_sizes import recomputed
from calque.transforms.primitives.refs import discharged_scan, discharged_while
from calque.transforms.primitives.refs_arguments import discharged_rows
from calque.transforms.primitives.rows import stack_rows, take_row
from calque.transforms.primitives.scan import bind_scan
from calque.transforms.primitives.while_loop import bind_while

if TYPE_CHECKING:
    from calque.core.arrays import Array
    from calque.core.generics import Carry, X, Y
    from calque.core.types import ArrayLike

# ---------------------------------------------------------------- carries

_AS_BOUND = "round the float one, or convert it with int(...)"


def _with_joined_types(leaves: Sequence[Any], outs: Sequence[ShapedArray]) -> list[Any] | None:
    """Initial values with the types that the body gives them, where weak types allow it; None if
    nothing changes."""
    if len(leaves) != len(outs):
        return None
    new, changed = [], False
    for x, out in zip(leaves, outs):
        aval = typeof(x)
        joined = joined_type(aval, out) if aval.weak_type and aval is not out else aval
        if joined is not None and joined.dtype != aval.dtype:
            joined = joined.strip_weak_type()  # a value converted to another dtype is weak no more
        changed = changed or (joined is not None and joined is not aval)
        new.append(x if joined is None or joined is aval else flow.convert(x, joined))
    return new if changed else None


def _check(
    what: str,
    fun: Any,
    position: int,
    in_tree: Any,
    out_tree: Any,
    ins: Sequence[Any],
    outs: Sequence[ShapedArray],
) -> None:
    check_carry(what, fun, position, in_tree, out_tree, [typeof(x) for x in ins], outs)


# ---------------------------------------------------------------- scan


@overload
def scan(
    f: Callable[[Any, Any], tuple[Any, Y]],
    init: complex,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Array, Y]: ...


@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]: ...


@overload
def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]: ...


@boundary
@discharged_rows
@discharged_scan
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Carries a value through the elements of arrays: `carry, y = f(carry, x)`.

    The function is traced once, however long the loop. It can be differentiated in both modes.

    Args:
        f: A function of the carried value and one element. It returns both the new value, of the
            same tree, shapes and dtypes, and an output.
        init: The value to begin with, a tree of arrays.
        xs: A tree of arrays; their elements along axis 0 are what `f` gets. None gives it None.
        length: The number of rounds; None takes the size of axis 0.
        reverse: Whether to go from the last element to the first.
        unroll: How many rounds stand in one round of the compiled loop; True means all.
        _split_transpose: Accepted and of no effect.

    Returns:
        A pair: the last carried value, and the outputs along a new axis 0.

    >>> lax.scan(lambda c, x: (c + x, c * x), 0.0, jnp.arange(4.0))
    (Array(6., dtype=float32), Array([0., 0., 2., 9.], dtype=float32))"""
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {f!r}")
    xs_leaves, xs_tree = pytrees.flatten(xs)
    xs_leaves = arrays(xs_leaves, "scan", f, (xs,), {})
    n = _length(f, xs_leaves, xs_tree, length)
    if config.disable_jit:
        return _python_scan(f, init, xs_leaves, xs_tree, n, reverse)
    init_leaves, init_tree = pytrees.flatten(init)
    init_leaves = arrays(init_leaves, "scan", f, (init,), {})
    x_avals = [typing.value.row(a) for a in map(typeof, xs_leaves)]
    unroll = _checked_unroll(unroll, n)
    while True:
        avals = [*map(typeof, init_leaves), *x_avals]
        args = (init, pytrees.unflatten(xs_tree, x_avals))
        part = recomputed(staged(f, args, avals, "scan"), f, "scan")
        carry_tree, ys_tree = _pair(f, part)
        outs = part.closed.out_avals
        promoted = (
            _with_joined_types(init_leaves, outs[: carry_tree.num_leaves])
            if carry_tree == init_tree
            else None
        )
        if promoted is None:
            break
        init_leaves = promoted
    _check("scan body", f, 0, init_tree, carry_tree, init_leaves, outs[: carry_tree.num_leaves])
    closed = flow.converted_results(
        part.closed, [*map(typeof, init_leaves), *outs[len(init_leaves) :]]
    )
    params = {"length": n, "reverse": bool(reverse), "unroll": unroll}
    found = _bound_scan(part.consts, init_leaves, xs_leaves, closed, params)
    k = len(init_leaves)
    return pytrees.unflatten(init_tree, found[:k]), pytrees.unflatten(ys_tree, found[k:])


def _bound_scan(
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    closed: ClosedJaxpr,
    params: dict[str, Any],
) -> list[Any]:
    """The results of the loop. What its body only passes on does not go through it: a carried value
    that never changes, elements that are handed on."""
    j, m = closed.jaxpr, len(init)
    given = dict(zip(j.invars, (*consts, *init, *xs)))
    carried = dict(zip(j.outvars[:m], j.invars[len(consts) :]))
    elements = set(j.invars[len(consts) + m :])
    known = {
        i: given[v]
        for i, v in enumerate(j.outvars)
        if isinstance(v, Var) and (carried.get(v) is v if i < m else v in elements)
    }
    kept = [i for i in range(len(j.outvars)) if i < m or i not in known]
    body = flow.rearranged(closed, range(len(j.invars)), kept)
    found = dict(zip(kept, bind_scan(consts, init, xs, jaxpr=body, **params)))
    return [known[i] if i in known else found[i] for i in range(len(j.outvars))]


def _checked_unroll(unroll: int | bool, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = value_if_known(unroll)
    if isinstance(unroll, Tracer):
        raise errors.ConcretizationTypeError(
            "The `unroll` argument to `scan` expects a concrete `int` or `bool` value, got a traced"
            f" value of type {unroll.aval.str_short()}. Make the argument static."
        )
    if unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a positive `int`.")
    return max(unroll, 1)


def _length(f: Any, leaves: Sequence[Any], tree: pytrees.PyTreeDef, length: int | None) -> int:
    if length is not None:
        try:
            length = as_count(length)
        except (TypeError, ValueError, OverflowError) as e:
            if isinstance(length, Tracer):
                raise errors.ConcretizationTypeError(
                    "The `length` argument to `scan` expects a concrete `int` value, got a traced"
                    f" value of type {length.aval.str_short()}. Make the argument static."
                ) from None
            raise TypeError(
                f"The `length` argument to `scan` must be a concrete integer, got {length!r}."
            ) from e
        if length < 0:
            raise ValueError(f"The `length` argument to `scan` must not be negative, got {length}.")
    for path, x in zip(flow.paths(tree), leaves):
        if not typeof(x).shape:
            raise ValueError(
                f"scan got value with no leading axis to scan over: xs{path} is a scalar of type"
                f" {typeof(x).str_short()}, in the scan of {name_of(f)}."
            )
    sizes = [typeof(x).shape[0] for x in leaves]
    if length is not None and any(s != length for s in sizes):
        raise ValueError(
            f"scan got `length` argument of {length} which disagrees with leading axis sizes"
            f" {sizes}. Leave length out, or give xs of that length, in the scan of {name_of(f)}."
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"scan got values with different leading axis sizes: {', '.join(map(str, sizes))}, of "
            + ", ".join(f"xs{path}" for path in flow.paths(tree))
            + f", in the scan of {name_of(f)}."
        )
    if length is None and not sizes:
        raise ValueError(
            f"scan got no values to scan over and `length` not provided. Give xs, or how often"
            f" {name_of(f)} is to be called as length=n."
        )
    return length if length is not None else sizes[0]


def _pair(f: Any, part: Staged) -> tuple[pytrees.PyTreeDef, pytrees.PyTreeDef]:
    children = part.out_tree.children()
    if part.out_tree.type is not tuple or len(children) != 2:
        (aval, *_), text = (*part.closed.out_avals, None), str(part.out_tree)
        if aval is not None and part.out_tree.is_leaf():
            text = flow.type_text(aval)
        raise TypeError(f"scan body output must be a pair, got {text}. It is {name_of(f)}.")
    return children[0], children[1]


def _python_scan(
    f: Any, carry: Any, leaves: Sequence[Any], tree: pytrees.PyTreeDef, n: int, reverse: bool
) -> tuple[Any, Any]:
    if n == 0:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is"
            " unknown."
        )
    ys: list[Any] = []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, pytrees.unflatten(tree, [take_row(x, i) for x in leaves]))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, pytrees.tree_map(lambda *rows: stack_rows(rows), *ys) if ys else None


# ---------------------------------------------------------------- while_loop


@overload
def while_loop(
    cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Any], init_val: complex
) -> Array: ...


@overload
def while_loop(
    cond_fun: Callable[[Carry], ArrayLike], body_fun: Callable[[Carry], Carry], init_val: Carry
) -> Carry: ...


@overload
def while_loop(
    cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Carry], init_val: Any
) -> Carry: ...


@boundary
@discharged_while
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Repeats `val = body_fun(val)` while `cond_fun(val)` holds.

    Args:
        cond_fun: A function of the value that returns one boolean.
        body_fun: A function of the value that returns the next one, of the same tree, shapes and
            dtypes.
        init_val: The value to begin with, a tree of arrays.

    Returns:
        The last value.

    Differs from JAX:
        Reverse-mode derivatives work: the loop is run again from checkpoints, whose memory is
        bounded.

    >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1)
    Array(128, dtype=int32, weak_type=True)"""
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    leaves, tree = pytrees.flatten(init_val)
    leaves = arrays(leaves, "while_loop", body_fun, (init_val,), {})
    if config.disable_jit and all(map(is_concrete, leaves)):
        return _python_while(cond_fun, body_fun, pytrees.unflatten(tree, leaves))
    while True:
        avals = [typeof(x) for x in leaves]
        body = recomputed(
            staged(body_fun, (init_val,), avals, "while_loop"), body_fun, "while_loop"
        )
        outs = body.closed.out_avals
        promoted = _with_joined_types(leaves, outs) if body.out_tree == tree else None
        if promoted is None:
            break
        leaves = promoted
    cond = staged(cond_fun, (init_val,), avals, "while_loop")
    _check_condition(cond_fun, cond)
    _check("while_loop body", body_fun, 0, tree, body.out_tree, leaves, outs)
    closed = flow.converted_results(body.closed, avals)
    found = bind_while(cond.consts, body.consts, leaves, cond_jaxpr=cond.closed, body_jaxpr=closed)
    own = closed.jaxpr.invars[len(body.consts) :]
    same = [v is out for v, out in zip(own, closed.jaxpr.outvars)]  # never changed
    return pytrees.unflatten(tree, [x if s else y for x, y, s in zip(leaves, found, same)])


def _check_condition(cond_fun: Any, cond: Staged) -> None:
    if not cond.out_tree.is_leaf():
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got pytree {cond.out_tree}. It is"
            f" {name_of(cond_fun)}."
        )
    (aval,) = cond.closed.out_avals
    if aval.shape or aval.dtype != bool_:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) [{aval}]. It is"
            f" {name_of(cond_fun)}."
        )


def _python_while(cond_fun: Any, body_fun: Any, val: Any) -> Any:
    while cond_fun(val):
        val = body_fun(val)
    return val


# ---------------------------------------------------------------- fori_loop


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], Any],
    init_val: complex,
    *,
    unroll: int | bool | None = None,
) -> Array: ...


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Array, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = None,
) -> Carry: ...


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], Carry],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Carry: ...


@boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Repeats `val = body_fun(i, val)` for each i from `lower` up to, but without, `upper`.

    With bounds that are numbers it is a `scan`, with traced bounds a `while_loop`.

    Args:
        lower: The first i.
        upper: The i before which to stop.
        body_fun: A function of i and the value that returns the next value, of the same tree,
            shapes and dtypes.
        init_val: The value to begin with, a tree of arrays.
        unroll: As of `scan`, for bounds that are numbers; None means 1.

    Returns:
        The last value.

    >>> lax.fori_loop(0, 5, lambda i, s: s + i, 0)
    Array(10, dtype=int32, weak_type=True)"""
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    lower_type, upper_type = typeof(lower), typeof(upper)
    for name, aval in (("lower", lower_type), ("upper", upper_type)):
        if aval.shape or not (is_integer(aval.dtype) or is_float(aval.dtype)):
            if lower_type.dtype != upper_type.dtype and not aval.shape:
                raise TypeError(
                    "lower and upper arguments to fori_loop must have equal types, got"
                    f" {lower_type.dtype} and {upper_type.dtype}: {_AS_BOUND}"
                )
            raise TypeError(
                f"{name} argument to fori_loop must be a scalar number, got {aval.str_short()}"
            )
    if is_integer(lower_type.dtype) != is_integer(upper_type.dtype):
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got"
            f" {lower_type.dtype} and {upper_type.dtype}: {_AS_BOUND}"
        )
    if lower_type.dtype != upper_type.dtype:
        lower, upper = _common_bounds(lower, upper, lower_type, upper_type)
    whole = is_integer(lower_type.dtype)  # other bounds are compared as they are
    if whole and is_concrete(lower) and is_concrete(upper):
        return _fixed_loop(lower, as_count(lower), as_count(upper), body_fun, init_val, unroll)
    if unroll not in (None, False, 1):
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known."
        )
    one = scalar_of(typeof(lower).dtype, 1)

    def body(val: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, stop, x = val
        step = one if not typeof(i).weak_type else 1 if whole else 1.0
        return do.add(i, step), stop, body_fun(i, x)

    body = flow.standing_for(body, body_fun, typeof(lower))
    return while_loop(_is_before_end, body, (lower, upper, init_val))[2]


def _is_before_end(val: tuple[Any, Any, Any]) -> Any:
    return do.lt(val[0], val[1])


def _common_bounds(lower: Any, upper: Any, a: ShapedArray, b: ShapedArray) -> tuple[Any, Any]:
    """A Python number takes the dtype of the other bound."""
    if a.weak_type and is_concrete(lower):
        return scalar_of(b.dtype, int(lower)), upper
    if b.weak_type and is_concrete(upper):
        return lower, scalar_of(a.dtype, int(upper))
    joined = joined_type(a, b)
    if joined is None:
        raise TypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {a.dtype} and"
            f" {b.dtype}"
        )
    return flow.convert(lower, joined), flow.convert(upper, joined)


def as_count(n: Any) -> Any:
    return n if type(n) is Dim else int(n)


def _fixed_loop(
    first: Any, lower: int, upper: int, body_fun: Any, init_val: Any, unroll: int | bool | None
) -> Any:
    length = upper - lower if upper >= lower else 0
    if config.disable_jit:
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return init_val
    weak = typeof(first).weak_type
    one = 1 if weak else scalar_of(typeof(first).dtype, 1)

    def body(loop_carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        i, x = loop_carry
        return (do.add(i, one), body_fun(i, x)), None

    body = flow.standing_for(body, body_fun, typeof(first))
    return scan(
        body, (first, init_val), None, length=length, unroll=1 if unroll is None else unroll
    )[0][1]


# ---------------------------------------------------------------- map


@overload
def map_(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y: ...


@overload
def map_(f: Callable[[Any], Y], xs: Any, *, batch_size: int | None = None) -> Y: ...


@boundary
def map_(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies a function to the elements of arrays along axis 0, one after the other.

    Args:
        f: The function of one element.
        xs: A tree of arrays.
        batch_size: How many elements are done at once, by `vmap`; None means one. It spends memory
            to save time.

    Returns:
        The results along a new axis 0.

    >>> lax.map(lambda x: x * x, jnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)"""
    if batch_size is None:
        return scan(flow.standing_for(lambda _, x: ((), f(x)), f), (), xs)[1]
    if batch_size < 0:
        raise ValueError(f"lax.map: batch_size must not be negative, got {batch_size}")
    leaves, tree = pytrees.flatten(xs)
    leaves = arrays(leaves, "map", f, (xs,), {})
    n = _length(f, leaves, tree, None)
    blocks, rest = divmod(n, batch_size) if batch_size else (0, n)  # 0: all at once
    done = blocks * batch_size
    if not blocks:
        return vmap(f)(pytrees.unflatten(tree, leaves))
    whole = [_reshaped(_rows(x, 0, done), (blocks, batch_size)) for x in leaves]
    ys = scan(lambda _, x: ((), vmap(f)(x)), (), pytrees.unflatten(tree, whole))[1]
    joined = pytrees.tree_map(lambda y: _reshaped(y, (done,), 2), ys)
    if not rest:
        return joined
    last = vmap(f)(pytrees.unflatten(tree, [_rows(x, done, n) for x in leaves]))
    return pytrees.tree_map(lambda a, b: do.concatenate(a, b, dimension=0), joined, last)


def _rows(x: Any, start: int, stop: int) -> Any:
    shape = typeof(x).shape
    if (start, stop) == (0, shape[0]):
        return x
    rest = (0,) * (len(shape) - 1)
    return do.slice(x, start_indices=(start, *rest), limit_indices=(stop, *shape[1:]))


def _reshaped(x: Any, leading: tuple[int, ...], replaced: int = 1) -> Any:
    return do.reshape(x, new_sizes=(*leading, *typeof(x).shape[replaced:]))
