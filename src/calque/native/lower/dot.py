"""dot_general in two simpler forms: sums of products with a vector, and products of matrices.

A product with a vector (one side has no free dimension) is `reduce_sum` of `mul`, and its order is
that of the sum. A product of matrices adds in the order of the contracted index, whatever tiles it
is computed in."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

import numpy as np

from calque.core import dims
from calque.core.avals import ShapedArray
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node
from calque.native.lower.reductions import combine, convert, folded, reshape, started, with_shape
from calque.native.lower.rules import RULES, ElementSteps, Index, Lower, Request, Value
from calque.native.scalars.expr import Expr, const
from calque.ops.products.dot import compute_dtype

TILED: Final = 20**3  # products of at least so many multiplications are computed in register tiles
SHORT: Final = ("int8", "uint8", "int16")  # what fits into 16 bits with a sign
NEAR: Final = 4  # columns of sides that are read in one piece
UNROLLED: Final = 256  # a product of at most so many multiplications is an expression
MANY_AXES: Final = 5  # of an array that is not worth being read as a matrix
FEW: Final = 8  # columns of a right side that would leave tiles mostly empty
MANY: Final = 64  # rows that are worth vectors along them
SUMS: Final = 12  # beside each other that have registers for all that they read as well
SHARED: Final = 1 << 15  # elements of sums that threads share
LEAST_SUM: Final = 32  # elements of a sum that are worth vectors along it


def expand_dot(
    g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
) -> list[Node]:
    """before: dot_general[dimension_numbers=(([2], [1]), ([0], [0]))] x:f32[b,m,k] y:f32[b,k,n]
    after:  matmul (x as [b,m,k]) (y as [b,k,n]), as the shape of the result
    or, without free dimensions on one side: reduce_sum[axes=(-1,)] (mul x y)
    or, where one element is contracted: mul x y, spread over the result
    or, where a few numbers turn short axes of another array: matmul_axes x y"""
    x, y = args
    (cx, cy), (bx, by) = params["dimension_numbers"]
    out = avals[0]
    wide = compute_dtype(x.aval.dtype, y.aval.dtype, out.dtype)  # a narrower result is cut last
    fx = [d for d in range(len(x.shape)) if d not in cx and d not in bx]
    fy = [d for d in range(len(y.shape)) if d not in cy and d not in by]
    pairs = wide.itemsize == 4 and all(str(v.aval.dtype) in SHORT for v in args)
    x, y = convert(g, x, wide), convert(g, y, wide)
    left, right = (tuple(bx), tuple(fx), tuple(cx)), (tuple(by), tuple(fy), tuple(cy))
    if count(sizes_of(x, cx)) == 1:
        r = outer(g, x, y, left, right)
    elif not fx or not fy:
        r = sum_of_products(g, x, y, left, right)
    elif is_gate(x, y, left, right) or is_gate(y, x, right, left):
        r = g.add(
            "matmul_axes", (x, y), {"left": left, "right": right}, with_shape(x.aval, out.shape)
        )
    else:
        r = product(g, x, y, left, right, pairs)
    return [convert(g, reshape(g, r, out.shape), out.dtype)]


Dims = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # batch, free, contracted


def sizes_of(x: Node, dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(x.shape[d] for d in dims)


def count(shape: Sequence[int]) -> int:
    return dims.product(shape)


def transposed(g: GraphBuilder, x: Node, perm: Sequence[int]) -> Node:
    if tuple(perm) == tuple(range(len(x.shape))):
        return x
    return g.add(
        "transpose",
        (x,),
        {"permutation": tuple(perm)},
        with_shape(x.aval, [x.shape[p] for p in perm]),
    )


def spread(g: GraphBuilder, x: Node, shape: Sequence[int], dims: Sequence[int]) -> Node:
    if tuple(shape) == x.shape:
        return x
    params = {"shape": tuple(shape), "broadcast_dimensions": tuple(dims), "sharding": None}
    return g.add("broadcast_in_dim", (x,), params, with_shape(x.aval, shape))


def sum_of_products(g: GraphBuilder, x: Node, y: Node, dx: Dims, dy: Dims) -> Node:
    """One side (at least) is a vector per batch."""
    over_rows = adds_rows(x, dx) or adds_rows(y, dy)
    batch, contracted = sizes_of(x, dx[0]), sizes_of(x, dx[2])
    free = sizes_of(x, dx[1]) + sizes_of(y, dy[1])
    shape = (*batch, *free, count(contracted))
    x = flat(g, x, (*dx[0], *dx[1], *dx[2]), len(dx[2]))
    y = flat(g, y, (*dy[0], *dy[1], *dy[2]), len(dy[2]))
    nb, last = len(batch), len(shape) - 1
    x = spread(g, x, shape, (*range(nb), *(range(nb, last) if dx[1] else ()), last))
    y = spread(g, y, shape, (*range(nb), *(range(nb, last) if dy[1] else ()), last))
    product = g.add("and" if x.dtype == "i1" else "mul", (x, y), {}, x.aval)
    kind = "or" if x.dtype == "i1" else "sum"
    if not over_rows:
        return folded(g, product, last, kind)
    # chunks of the rows that are added lie one behind the other; the order of the sum is the same
    product = transposed(g, product, (*range(nb), last, *range(nb, last)))
    return folded(g, product, nb, kind)


def block_of_rows(n: int, for_threads: bool = False) -> int:
    """How many of the rows of a matrix are summed one after the other before anything is made of
    the sums: a part of them that fills vectors, a small one if threads are to have some each, else
    all if they are few; 0 if there is no such part."""
    if for_threads:
        return min([r for r in range(16, 65) if n % r == 0], default=0)
    parts = [r for r in range(32, 129) if n % r == 0]
    return max(parts, default=n if 32 <= n <= 300 else 0)


def adds_rows(x: Node, d: Dims) -> bool:
    """Do all contracted dimensions stand before the free ones, in memory?"""
    free, contracted = d[1], d[2]
    if x.op == "transpose":
        order = x.params["permutation"]
        free, contracted = tuple(order[k] for k in free), tuple(order[k] for k in contracted)
    return bool(free) and max(contracted) < min(free)


def outer(g: GraphBuilder, x: Node, y: Node, dx: Dims, dy: Dims) -> Node:
    """Nothing is summed: an elementwise product, which layout operations and its readers see
    through."""
    nb, nx, ny = len(dx[0]), len(dx[1]), len(dy[1])
    shape = (*sizes_of(x, dx[0]), *sizes_of(x, dx[1]), *sizes_of(y, dy[1]))
    x = reshape(g, transposed(g, x, (*dx[0], *dx[1], *dx[2])), shape[: nb + nx])
    y = reshape(g, transposed(g, y, (*dy[0], *dy[1], *dy[2])), (*shape[:nb], *shape[nb + nx :]))
    x = spread(g, x, shape, range(nb + nx))
    y = spread(g, y, shape, (*range(nb), *range(nb + nx, nb + nx + ny)))
    if x.dtype == "i1":
        return g.add("and", (x, y), {}, x.aval)
    p = g.add("mul", (x, y), {}, x.aval)
    if x.aval.dtype.kind not in "fc":
        return p
    zero = g.add(
        "literal", (), {"value": np.zeros((), x.aval.dtype)[()]}, ShapedArray((), x.aval.dtype)
    )
    return g.add("add", (p, spread(g, zero, shape, ())), {}, x.aval)


def flat(g: GraphBuilder, x: Node, perm: Sequence[int], merged: int) -> Node:
    """Transposed, the last `merged` dimensions made one."""
    x = transposed(g, x, perm)
    keep = len(perm) - merged
    return reshape(g, x, (*x.shape[:keep], count(x.shape[keep:])))


def product(g: GraphBuilder, x: Node, y: Node, dx: Dims, dy: Dims, pairs: bool = False) -> Node:
    """[b, m, k] by [b, k, n], or without b; in pairs, if all fit into 16 bits."""
    batch, m, k, n = (
        sizes_of(x, dx[0]),
        count(sizes_of(x, dx[1])),
        count(sizes_of(x, dx[2])),
        count(sizes_of(y, dy[1])),
    )
    if dims.surely_at_most(n, 1) and not dims.surely_at_most(m, 1):  # a vector stands on the left
        turned = product(g, y, x, dy, dx, pairs)
        return reshape(g, turned, (*turned.shape[:-2], m, n))
    b = (count(batch),) if batch else ()
    few = is_narrow(x, dx, m, k, n) or are_few_sums(m, n, k, adds_rows(x, dx) or adds_rows(y, dy))
    x = reshape(g, transposed(g, x, (*dx[0], *dx[1], *dx[2])), (*b, m, k))
    y = reshape(g, transposed(g, y, (*dy[0], *dy[2], *dy[1])), (*b, k, n))
    tiled = (
        not dims.surely_at_most(m * n * k, TILED - 1)
        and not dims.surely_at_most(m, 1)
        and x.dtype in ("f32", "f64", "i32", "u32", "i64", "u64")
        and not few
    )
    in_pairs = pairs and tiled and type(k) is int
    if in_pairs:
        x, y = paired(g, x, len(b) + 1), paired(g, y, len(b))
    return g.add(
        "matmul_tiled" if tiled else "matmul",
        (x, y),
        {"pairs": True} if in_pairs else {},
        ShapedArray((*b, m, n), x.aval.dtype),
    )


def is_gate(few: Node, x: Node, d_few: Dims, d: Dims) -> bool:
    """Are these a few numbers that turn short axes of an array, which stand between others? To
    bring those to an end would move every element of it, twice."""
    sides = (*sizes_of(few, d_few[1]), *sizes_of(few, d_few[2]))
    if not dims.surely_at_most(count(sizes_of(few, d_few[2])), NEAR):
        return False
    if not dims.surely_at_most(count(sides), NEAR * NEAR) or not all(type(n) is int for n in sides):
        return False
    if len(x.shape) >= MANY_AXES and not d[0]:
        return True
    free, contracted = d[1], d[2]
    return min(free) < min(contracted) and max(contracted) < max(free)


def is_narrow(x: Node, dx: Dims, rows: Any, depth: Any, columns: Any) -> bool:
    """Is this a long left side, read along its rows, times a few columns? Tiles would be mostly
    empty: it is a plain nest, whose vectors run along the rows."""
    if type(columns) is not int or columns > FEW or type(depth) is not int:
        return False
    return (
        x.dtype in ("f32", "f64")
        and not adds_rows(x, dx)
        and not dims.surely_at_most(rows, MANY - 1)
    )


def are_few_sums(rows: Any, columns: Any, depth: Any, in_rows: bool) -> bool:
    """Are these a few sums, which tiles would leave mostly empty? Beside each other in a plain nest
    they run as fast where both sides are read along their rows, and where they are so long that
    threads share their rounds."""
    if not dims.surely_at_most(rows, NEAR) or not dims.surely_at_most(columns, NEAR):
        return False
    long = type(depth) is int and depth >= SHARED and dims.surely_at_most(rows * columns, SUMS)
    return long or not in_rows


def paired(g: GraphBuilder, x: Node, axis: int) -> Node:
    """Integers of 32 bits that need 16, two neighbours along an axis in one: the first below.

    before: [1, 2, 3]        after: [1 | 2 << 16, 3]"""
    n, dtype = x.shape[axis], x.aval.dtype

    def number(v: int, shape: Sequence[int]) -> Node:
        one = g.add("literal", (), {"value": np.asarray(v, dtype)[()]}, ShapedArray((), dtype))
        return spread(g, one, shape, ())

    if n % 2:
        behind = tuple([(0, int(d == axis), 0) for d in range(len(x.shape))])
        more = [s + int(d == axis) for d, s in enumerate(x.shape)]
        pad = {"padding_config": behind}
        x = g.add("pad", (x, number(0, ())), pad, with_shape(x.aval, more))
    shape = [-(-n // 2) if d == axis else s for d, s in enumerate(x.shape)]
    halves = []
    for first in (0, 1):
        start = tuple([first if d == axis else 0 for d in range(len(shape))])
        step = tuple([2 if d == axis else 1 for d in range(len(shape))])
        params = {"start_indices": start, "limit_indices": x.shape, "strides": step}
        halves.append(g.add("slice", (x,), params, with_shape(x.aval, shape)))
    low, high = halves
    aval = low.aval
    low = g.add("and", (low, number(0xFFFF, shape)), {}, aval)
    high = g.add("shift_left", (high, number(16, shape)), {}, aval)
    return g.add("or", (low, high), {}, aval)


def small(n: Node) -> bool:
    """Is the product so small, or are its sides so narrow, that it is an expression?"""
    k = n.args[0].shape[-1]
    if dims.surely_at_most(k, NEAR) and dims.surely_at_most(n.shape[-1], NEAR):
        return True
    return dims.surely_at_most(k, 16) and dims.surely_at_most(count(n.shape) * k, UNROLLED)


def term(low: Lower, n: Node, idx: Index, k: Any) -> Generator[Request, Value, Value]:
    """One product of the sum."""
    x, y = n.args
    a = yield x, (*idx[:-1], k)
    b = yield y, (*idx[:-2], k, idx[-1])
    return ("and" if n.dtype == "i1" else "mul", a, b)


def matmul_element(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """A small product, unrolled in the order of k. It starts from zero, so that each term has one
    sum which it can be fused with, as in a loop."""
    out: Value = None
    for k in range(n.args[0].shape[-1]):
        _, a, b = yield from term(low, n, idx, const(k))
        p = times(n, a, b)
        out = started("sum", p, n) if out is None else plus(n, out, p)
    return nothing_added(low, n) if out is None else out


def axes_element(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """As a small product of matrices, of operands whose axes stay where they are."""
    x, y = n.args
    left, right = n.params["left"], n.params["right"]
    batch, free = idx[: len(left[0])], idx[len(left[0]) :]
    out: Value = None
    for where in np.ndindex(*sizes_of(x, left[2])):
        k = [const(i) for i in where]
        a = yield x, placed(left, (*batch, *free[: len(left[1])], *k))
        b = yield y, placed(right, (*batch, *free[len(left[1]) :], *k))
        p = times(n, a, b)
        out = started("sum", p, n) if out is None else plus(n, out, p)
    return nothing_added(low, n) if out is None else out


def nothing_added(low: Lower, n: Node) -> Value:
    """The sum of no products."""
    return low.constant(np.zeros((), n.aval.dtype)[()], n.dtype)


def placed(d: Dims, idx: Sequence[Expr]) -> Index:
    """An index that names the dimensions in the order of these, in their own order."""
    order = (*d[0], *d[1], *d[2])
    return tuple([i for _, i in sorted(zip(order, idx), key=lambda pair: pair[0])])


def times(n: Node, a: Value, b: Value) -> Value:
    return combine("and" if n.dtype == "i1" else "prod", a, b)


def plus(n: Node, a: Value, b: Value) -> Value:
    return combine("or" if n.dtype == "i1" else "sum", a, b)


EXPANSIONS["dot_general"] = expand_dot
RULES["matmul"] = matmul_element
RULES["matmul_axes"] = axes_element
