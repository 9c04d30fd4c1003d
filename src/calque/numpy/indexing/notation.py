"""einsum: sums of products in index notation, contracted pair by pair in a cheap order."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import hint_of
from calque.core.dtypes import promote_in_any_case
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import DTypeLike
from calque.numpy import reductions
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import asarray
from calque.numpy.creation import placed
from calque.numpy.promotion import (
    arrays,
    common_type,
    convert,
    product_operands,
    promote_dtypes,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import transpose
from calque.numpy.signatures import OutSharding
from calque.ops.common import scalar_of
from calque.ops.dimension_numbers import PrecisionLike, canonical_precision

__all__ = ["einsum", "einsum_path"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
Path = list[tuple[int, ...]]

# ---------------------------------------------------------------- parsing


def _label(i: int) -> str:
    """A letter for each of any number of indices."""
    return _LETTERS[i] if i < len(_LETTERS) else chr(i + 140)


def _from_lists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The form einsum(x, [0, 1], y, [1, 2], [0, 2]) as text."""
    pairs, rest = operands[: len(operands) // 2 * 2], operands[len(operands) // 2 * 2 :]
    values, lists = list(pairs[0::2]), list(pairs[1::2])

    def text(indices: Any) -> str:
        parts = []
        for i in indices:
            if i is Ellipsis:
                parts.append("...")
                continue
            try:
                parts.append(_label(operator.index(i)))
            except TypeError:
                raise TypeError(
                    f"einsum: index lists hold ints and Ellipsis, got {i!r} of type {type(i)}"
                ) from None
        return "".join(parts)

    spec = ",".join(map(text, lists))
    return (f"{spec}->{text(rest[0])}" if rest else spec), values


def parse(subscripts: Any, operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """The indices of each operand and of the result, ellipses replaced by letters of their own."""
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    spec = subscripts.replace(" ", "")
    if spec.count("->") > 1 or any(c in spec.replace("->", "") for c in "-<>"):
        raise ValueError(f"einsum: the subscripts {subscripts!r} may have one '->'")
    left, arrow, right = spec.partition("->")
    inputs = left.split(",")
    values = arrays("einsum", *operands)
    if len(inputs) != len(values):
        raise ValueError(
            f"Number of einsum subscripts, {len(inputs)} in {subscripts!r}, must be equal to the"
            f" number of operands, {len(values)}."
        )
    for term in [*inputs, *([right] if arrow else [])]:
        bare = term.replace("...", "", 1)
        if "." in bare:  # any other character may name an index
            raise ValueError(
                f"Character '.' is not a valid symbol in the einsum subscripts {subscripts!r}."
            )
    shapes = [x.shape for x in values]
    inputs, extra = _without_ellipses(inputs, shapes, subscripts, spec)
    if arrow:
        output = right.replace("...", extra) if "..." in right else right
    else:
        counts = Counter("".join(inputs))
        output = extra + "".join(sorted(c for c, n in counts.items() if n == 1 and c not in extra))
    for c in output:
        if output.count(c) > 1:
            raise ValueError(
                f"Output character {c!r} appeared more than once in the einsum subscripts"
                f" {subscripts!r}."
            )
        if not any(c in term for term in inputs):
            raise ValueError(
                f"Output character {c!r} did not appear in the input of the einsum subscripts"
                f" {subscripts!r}."
            )
    _check_sizes(inputs, shapes, subscripts)
    return inputs, output, values


def _without_ellipses(
    inputs: Sequence[str], shapes: Sequence[tuple[int, ...]], subscripts: str, spec: str
) -> tuple[list[str], str]:
    widths = []
    for term, shape in zip(inputs, shapes):
        named = len(term.replace("...", ""))
        if "..." in term:
            if len(shape) < named:
                raise ValueError(
                    f"einsum: the term {term!r} of {subscripts!r} names {named} axes, but its"
                    f" operand has shape {shape}"
                )
            widths.append(len(shape) - named)
        elif named != len(shape):
            raise ValueError(
                f"einsum: the term {term!r} of {subscripts!r} does not contain the number of"
                f" indices of its operand, which has shape {shape}"
            )
    most = max(widths, default=0)
    used = set(spec)
    free = (c for c in map(_label, itertools.count()) if c not in used)
    extra = "".join(itertools.islice(free, most))
    out = []
    for term, shape in zip(inputs, shapes):
        width = len(shape) - len(term.replace("...", ""))
        out.append(term.replace("...", extra[most - width :]) if "..." in term else term)
    return out, extra


def _check_sizes(
    inputs: Sequence[str], shapes: Sequence[tuple[int, ...]], subscripts: str
) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for i, (term, shape) in enumerate(zip(inputs, shapes)):
        for c, n in zip(term, shape):
            known = sizes.setdefault(c, n)
            if known == 1:
                sizes[c] = n
            elif n not in (1, known):
                raise ValueError(
                    f"Size of label {c!r} for operand {i} ({n}) does not match previous terms"
                    f" ({known}): einsum {subscripts!r} of shapes {list(shapes)}"
                )
    return sizes


# ---------------------------------------------------------------- the order of contraction


def greedy_path(inputs: Sequence[str], output: str, sizes: dict[str, int]) -> Path:
    """The pair whose product saves most memory first; pairs without a common index last."""
    terms, path = [frozenset(t) for t in inputs], []

    def volume(ix: Collection[Any]) -> int:
        return int(np.prod([sizes[c] for c in ix], dtype=object)) if ix else 1

    while len(terms) > 2:
        best = None
        for i in range(len(terms)):
            for j in range(i + 1, len(terms)):
                others = frozenset(output).union(
                    *[t for k, t in enumerate(terms) if k not in (i, j)]
                )
                both = terms[i] | terms[j]
                kept = both & others
                cost = (
                    not terms[i] & terms[j],
                    volume(kept) - volume(terms[i]) - volume(terms[j]),
                    volume(both),
                    i,
                    j,
                )
                best = min(best, (cost, i, j, kept)) if best is not None else (cost, i, j, kept)
        _, i, j, kept = best  # type: ignore[misc]
        path.append((i, j))
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [kept]
    return [*path, tuple(range(len(terms)))]


def optimal_path(inputs: Sequence[str], output: str, sizes: dict[str, int]) -> Path:
    """The cheapest order of all, found by search over subsets: for a few operands."""
    n = len(inputs)
    if n > 8:
        return greedy_path(inputs, output, sizes)
    terms = [frozenset(t) for t in inputs]
    everything = (1 << n) - 1

    def volume(ix: Collection[Any]) -> int:
        return int(np.prod([sizes[c] for c in ix], dtype=object)) if ix else 1

    kept: dict[int, frozenset[str]] = {}
    for mask in range(1, everything + 1):
        inside = frozenset().union(*[terms[i] for i in range(n) if mask >> i & 1])
        outside = frozenset(output).union(*[terms[i] for i in range(n) if not mask >> i & 1])
        kept[mask] = inside & outside if mask & (mask - 1) else terms[mask.bit_length() - 1]
    cost: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(n)}
    for mask in sorted(range(1, everything + 1), key=lambda m: m.bit_count()):
        if mask in cost:
            continue
        part, best = (mask - 1) & mask, None
        while part:
            rest = mask ^ part
            if part > rest:
                total = cost[part][0] + cost[rest][0] + volume(kept[part] | kept[rest])
                best = min(best, (total, part)) if best is not None else (total, part)
            part = (part - 1) & mask
        cost[mask] = best  # type: ignore[assignment]
    return _as_path(cost, everything, n)


def _as_path(cost: dict[int, tuple[int, int]], everything: int, n: int) -> Path:
    live = [1 << i for i in range(n)]
    path: Path = []

    def build(mask: int) -> None:
        if not mask & (mask - 1):
            return
        a = cost[mask][1]
        build(a)
        build(mask ^ a)
        i, j = sorted((live.index(a), live.index(mask ^ a)))
        path.append((i, j))
        live[:] = [m for k, m in enumerate(live) if k not in (i, j)] + [mask]

    build(everything)
    return path or [tuple(range(n))]


def _path(optimize: Any, inputs: Sequence[str], output: str, sizes: dict[str, int]) -> Path:
    if isinstance(optimize, (list, tuple)):
        steps = [tuple(p) for p in optimize if not isinstance(p, str)]
        return [tuple(map(operator.index, p)) for p in steps]
    if optimize is False:
        return [tuple(range(len(inputs)))]
    if (
        optimize
        in (
            True,
            "auto",
            "optimal",
            "auto-hq",
            "dp",
            "branch-all",
            "branch-2",
            "branch-1",
            "random-greedy",
            "random-greedy-128",
        )
        and len(inputs) <= 5
    ):
        return (
            optimal_path(inputs, output, sizes) if len(inputs) > 2 else [tuple(range(len(inputs)))]
        )
    if optimize is True or isinstance(optimize, str):
        known = (
            "auto",
            "auto-hq",
            "optimal",
            "dp",
            "greedy",
            "eager",
            "opportunistic",
            "branch-all",
            "branch-2",
            "branch-1",
            "random-greedy",
            "random-greedy-128",
        )
        if optimize is not True and optimize not in known:
            raise KeyError(
                f"Path optimizer '{optimize}' not found, valid options are {set(known)}."
            )
        slow = optimize in ("optimal", "dp", "auto-hq", "branch-all")
        return optimal_path(inputs, output, sizes) if slow else greedy_path(inputs, output, sizes)
    raise TypeError(f"einsum: optimize must be a bool, a string or a path, got {optimize!r}")


# ---------------------------------------------------------------- contraction


class _Sum:
    """A contraction in progress: products in one precision, each value with the indices of its
    axes. The `dtype` is that of all values together."""

    def __init__(
        self, precision: Any, preferred: Any, dot_general: Callable[..., Any] | None, dtype: Any
    ):
        self.precision, self.preferred, self.dot_general = precision, preferred, dot_general
        self.dtype = dtype
        both = ((dtype, False), (preferred, False))
        self.summed_in = dtype if preferred is None else promote_in_any_case(both)[0]

    def reduced(self, x: Any, ix: str, needed: set[str]) -> tuple[Any, str]:
        """Repeated indices become diagonals, indices that nobody needs are summed away."""
        summed = len(set(ix)) < len(ix) or not needed.issuperset(ix)
        if summed and typeof(x).dtype != self.summed_in:
            x = convert(x, self.summed_in)
        for c in dict.fromkeys(ix):
            while ix.count(c) > 1:
                x, ix = _diagonal(x, ix, c)
        gone = tuple(i for i, c in enumerate(ix) if c not in needed)
        if gone:
            x = _sum(x, gone)
            ix = "".join(c for c in ix if c in needed)
        return x, ix

    def product(self, a: tuple[Any, str], b: tuple[Any, str], needed: set[str]) -> tuple[Any, str]:
        (x, ix), (y, iy) = a, b
        x, ix = self.reduced(x, ix, needed | set(iy))
        y, iy = self.reduced(y, iy, needed | set(ix))
        x, ix, y, iy = _without_ones(x, ix, y, iy)
        common = [c for c in ix if c in iy]
        batch, contracted = (
            [c for c in common if c in needed],
            [c for c in common if c not in needed],
        )
        numbers = (
            (tuple(ix.index(c) for c in contracted), tuple(iy.index(c) for c in contracted)),
            (tuple(ix.index(c) for c in batch), tuple(iy.index(c) for c in batch)),
        )
        out = (
            "".join(batch)
            + "".join(c for c in ix if c not in common)
            + "".join(c for c in iy if c not in common)
        )
        return self.dot(x, y, numbers), out

    def dot(self, x: Any, y: Any, numbers: Any) -> Any:
        dtype = self.dtype if typeof(x).dtype != typeof(y).dtype else typeof(x).dtype
        if self.dot_general is not None:
            preferred = self.preferred or self.dtype
            return self.dot_general(x, y, numbers, self.precision, preferred_element_type=preferred)
        if dtype == np.dtype(bool):
            counts = self.dot(convert(x, np.dtype("int32")), convert(y, np.dtype("int32")), numbers)
            return counts if self.preferred else do.ne(counts, np.zeros((), np.int32))
        return do.dot_general(
            x,
            y,
            dimension_numbers=numbers,
            precision=self.precision,
            preferred_element_type=self.preferred or dtype,
        )


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    if typeof(x).dtype == np.dtype(bool):
        return do.reduce_or(x, axes=axes)
    return reductions.sum(x, axis=axes, promote_integers=False)


def _diagonal(x: Any, ix: str, c: str) -> tuple[Any, str]:
    """The first two axes named c become one."""
    i = ix.index(c)
    j = ix.index(c, i + 1)
    shape = typeof(x).shape
    if shape[i] != shape[j]:
        one = i if shape[i] == 1 else j
        return do.squeeze(x, dimensions=(one,)), ix[:one] + ix[one + 1 :]
    rows, columns = (do.iota(dtype=np.dtype("int32"), shape=shape, dimension=k) for k in (i, j))
    kept = do.select_n(
        do.eq(rows, columns),
        do.broadcast_in_dim(scalar_of(typeof(x).dtype, 0), shape=shape, broadcast_dimensions=()),
        x,
    )
    return _sum(kept, (j,)), ix[:j] + ix[j + 1 :]


def _without_ones(x: Any, ix: str, y: Any, iy: str) -> tuple[Any, str, Any, str]:
    """Axes of size 1 that meet a larger one broadcast: they are dropped."""
    sx, sy = typeof(x).shape, typeof(y).shape
    drop_x = tuple(i for i, c in enumerate(ix) if c in iy and sx[i] == 1 != sy[iy.index(c)])
    drop_y = tuple(i for i, c in enumerate(iy) if c in ix and sy[i] == 1 != sx[ix.index(c)])
    if drop_x:
        x, ix = (
            do.squeeze(x, dimensions=drop_x),
            "".join(c for i, c in enumerate(ix) if i not in drop_x),
        )
    if drop_y:
        y, iy = (
            do.squeeze(y, dimensions=drop_y),
            "".join(c for i, c in enumerate(iy) if i not in drop_y),
        )
    return x, ix, y, iy


@placed
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sums of products, described by letters for axes: axes with one letter go together, and
    letters that the result lacks are summed over.

    Args:
        subscripts: such as "ij,jk->ik", a matrix product. Without "->" letters that occur once
            stay, in order; "..." stands for axes that broadcast. Or operands and lists of ints in
            turn.
        *operands: arrays, one for each group of letters.
        out: must be None: arrays are immutable.
        optimize: in which order to contract several operands: "auto", "optimal", "greedy", True,
            False for from the left, or a path of `einsum_path`.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of all
            together.
        _dot_general: what to use in place of `lax.dot_general`, told the dtype of the result; None
            is that.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array with an axis for each letter after "->".

    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    >>> jnp.einsum("ii->i", jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)"""
    refuse_out("einsum", out)
    inputs, output, values = parse(subscripts, operands)
    preferred = result_dtype(preferred_element_type)
    dtype, weak = common_type(*values)
    single = len(values) == 2 and preferred is None and _dot_general is None
    values = product_operands(*values) if single else promote_dtypes(*values)
    contraction = _Sum(canonical_precision(precision), preferred, _dot_general, dtype)
    live: list[tuple[Any, str]] = list(zip(values, inputs))
    sizes = _check_sizes(inputs, [typeof(v).shape for v in values], str(subscripts))
    for step in _path(optimize, inputs, output, {c: hint_of(n) for c, n in sizes.items()}):
        chosen = [live[i] for i in step]
        live = [v for i, v in enumerate(live) if i not in step]
        live.append(_combined(contraction, chosen, live, output))
    while len(live) > 1:
        chosen, live = live[:2], live[2:]
        live.append(_combined(contraction, chosen, live, output))
    ((x, ix),) = live
    x, ix = contraction.reduced(x, ix, set(output))
    weak = weak and preferred is None
    if weak != typeof(x).weak_type or typeof(x).dtype != (preferred or dtype):
        x = do.convert_element_type(asarray(x), new_dtype=preferred or dtype, weak_type=weak)
    x = asarray(x)
    return transpose(x, [ix.index(c) for c in output]) if ix != output else x


def _combined(
    contraction: _Sum, chosen: list[tuple[Any, str]], others: list[tuple[Any, str]], output: str
) -> tuple[Any, str]:
    """Operands multiplied from the left; what neither the rest nor the result needs is summed
    away."""
    needed = set(output).union(*[set(ix) for _, ix in others])
    total, rest = chosen[0], chosen[1:]
    while rest:
        one, rest = rest[0], rest[1:]
        total = contraction.product(total, one, needed.union(*[set(ix) for _, ix in rest]))
    return contraction.reduced(*total, needed)


@python_only
def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | Sequence[Any] = "auto"
) -> tuple[Path, str]:
    """The order in which `einsum` contracts its operands.

    Args:
        subscripts: as of `einsum`.
        *operands: as of `einsum`; only their shapes matter.
        optimize: how to look for the order, as of `einsum`.
    Returns:
        A pair: a list of the places of the operands in each step, and a text about the cost.

    >>> jnp.einsum_path("ij,jk,kl->il", jnp.ones((2, 9)), jnp.ones((9, 9)), jnp.ones((9, 1)))[0]
    [(1, 2), (0, 1)]"""
    inputs, output, values = parse(subscripts, operands)
    sizes = _check_sizes(inputs, [typeof(v).shape for v in values], str(subscripts))
    path = _path(optimize, inputs, output, sizes)
    return path, _description(inputs, output, sizes, path)


def _description(inputs: list[str], output: str, sizes: dict[str, int], path: Path) -> str:
    def volume(ix: Collection[Any]) -> float:
        return float(np.prod([float(sizes[c]) for c in ix])) if ix else 1.0

    lines, total, live = [], 0.0, list(inputs)
    for step in path:
        chosen = [live[i] for i in step]
        live = [t for i, t in enumerate(live) if i not in step]
        needed = set(output).union(*map(set, live))
        result = (
            "".join(dict.fromkeys(c for t in chosen for c in t if c in needed)) if live else output
        )
        flops = volume(dict.fromkeys("".join(chosen))) * max(1, len(chosen) - 1)
        total += flops
        lines.append(f"  {flops:12.3e}  {','.join(chosen)}->{result}")
        live.append(result)
    naive = volume(sizes) * max(1, len(inputs) - 1)
    head = [
        f"  Complete contraction:  {','.join(inputs)}->{output}",
        f"         Naive FLOP count:  {naive:.3e}",
        f"     Optimized FLOP count:  {total:.3e}",
    ]
    return "\n".join([*head, "  FLOP count    contraction", *lines])
