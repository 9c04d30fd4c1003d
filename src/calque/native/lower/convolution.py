"""Convolutions as products of matrices: rows are the places of the result, columns its features.

Every element is the sum, in the order (kernel position, input feature), of padded input times
kernel, whatever the layout. Large ones are `conv_tiled` (see `library.convolution`), the others a
plain nest.

The holes of a dilated input and its padding meet no weight: an infinite weight makes nan of real
elements only. They are -0.0, which no real element is then, so that a kernel knows them by their
bits, wherever they were copied to. Only tiles of single precision whose input is padded and no more
multiply zeros, as XLA's do: asking costs them a second kernel (`asks_for_tiles`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import hint_of, product, surely_at_most
from calque.machine.records import record, replace
from calque.native.lower.dot import TILED, expand_dot, times, transposed
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node
from calque.native.lower.layout import reindex
from calque.native.lower.phases import by_phases, phases_of
from calque.native.lower.reductions import convert, expand_reduce, reshape, started, with_shape
from calque.native.lower.renamed import filled
from calque.native.lower.rules import Index, Lower, Value, View
from calque.native.lower.stages import MAKERS, Stage, loops_of, parts_of, sum_in_order
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import INT_BITS, ZERO, Expr, cast, const, ex
from calque.ops.padding import dilated
from calque.ops.products.dot import compute_dtype

Strides = list[tuple[Any, Any]]
FEW: Final = 4  # groups of fewer features are no matrices
ALONG: Final = 16  # places of a line that fill vectors
ORDERS: Final = frozenset(("expand_dims", "reshape", "rev", "squeeze", "transpose"))
TILED_DTYPES: Final = ("f32", "f64", "i32", "u32", "i64", "u64")


@record
class Geometry:
    """Where a convolution reads. The input is padded and dilated already; it keeps its own layout,
    as the result does.

    The groups are of features (`feature_step` from one to the next) or of the batch (`batch_step`).
    """

    lhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]
    x_shape: tuple[Any, ...]
    out_shape: tuple[Any, ...]
    kernel: tuple[Any, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    batch_step: Any
    feature_step: Any
    features_in: Any
    holes: bool  # is a -0.0 of the input no element at all?

    @property
    def features_out(self) -> Any:
        """Of one group."""
        return self.out_shape[self.out_spec[1]] // self.groups

    @property
    def depth(self) -> Any:
        """How many products an element sums."""
        return product((*self.kernel, self.features_in))

    @property
    def places(self) -> tuple[int, ...]:
        """The dimensions of the result but for its features, in the order of memory."""
        return tuple(d for d in range(len(self.out_shape)) if d != self.out_spec[1])

    @property
    def rows(self) -> Any:
        return product(self.out_shape[d] for d in self.places)

    def steps(self) -> list[Any]:
        """Elements from one index to the next, for each dimension of the padded input."""
        steps: list[Any] = [1]
        for n in reversed(self.x_shape[1:]):
            steps.append(steps[-1] * n)
        return steps[::-1]

    def row_steps(self) -> Strides:
        """(extent, step) of what leads from row to row."""
        step = self.steps()
        by_dim = {self.out_spec[0]: step[self.lhs_spec[0]]}
        for o, x, s in zip(self.out_spec[2:], self.lhs_spec[2:], self.strides):
            by_dim[o] = step[x] * s
        return [(self.out_shape[d], by_dim[d]) for d in self.places]

    def depth_steps(self) -> Strides:
        """(extent, step) of what leads from summand to summand of a row."""
        step = self.steps()
        dims = [(k, step[x] * d) for k, x, d in zip(self.kernel, self.lhs_spec[2:], self.dilation)]
        return [*dims, (self.features_in, step[self.lhs_spec[1]])]

    def group_step(self) -> Any:
        step = self.steps()
        return self.batch_step * step[self.lhs_spec[0]] + self.feature_step * step[self.lhs_spec[1]]


# --- in other terms -------------------------------------------------------------------------------


def expand_conv(
    g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
) -> list[Node]:
    """before: conv_general_dilated x w
    after:  conv_tiled (pad x) (w as [k, n]), as the layout of the result; or conv, where that is
    small or its groups are narrow; several of them where the input is dilated
    """
    out = avals[0]
    wide = compute_dtype(args[0].aval.dtype, args[1].aval.dtype, out.dtype)
    x, w = (convert(g, a, wide) for a in args)
    if is_product(w, params):
        return [convert(g, as_product(g, x, w, params, out), out.dtype)]
    finite = None  # whether all of the kernel is, which is asked once for all of its parts
    if may_have_holes(x, params) and asks_for_tiles(x, w, params):
        finite = all_finite(g, w)

    def convolve(part: Node, p: dict[str, Any], shape: Sequence[Any]) -> Node:
        return convolution(g, x, part, p, ShapedArray(tuple(shape), wide), finite)

    found = phases_of(x, w, params, out) if x.dtype in TILED_DTYPES else None
    if found is None:
        return [convert(g, convolve(w, params, out.shape), out.dtype)]
    return [convert(g, by_phases(g, w, params, out.update(dtype=wide), found, convolve), out.dtype)]


def convolution(
    g: GraphBuilder, x: Node, w: Node, params: dict[str, Any], out: Any, finite: Node | None
) -> Node:
    """The convolution of one kernel. `finite` says whether the kernel has nothing that holes must
    not meet; without it only what is no tiles asks."""
    gaps = may_have_holes(x, params)
    if not gaps and is_product(w, params):
        return as_product(g, x, w, params, out)
    config, shape = padding_of(x, params)
    geo = geometry(shape, x, w, params, out)
    geo = replace(geo, holes=gaps and (finite is not None or not tiled(geo, x.dtype)))
    if geo.holes:
        x = g.add("add", (x, filled(g, 0, x.aval)), {}, x.aval)  # no real element is -0.0
    x = padded(g, x, config, shape, geo.holes)
    if not geo.depth or not out.size:
        return filled(g, 0, out)
    matrix = kernel_matrix(g, w, params["dimension_numbers"].rhs_spec, geo)
    if not tiled(geo, x.dtype):
        return g.add("conv", (x, matrix), {"geometry": geo}, out)
    flat = with_shape(out, (geo.rows, geo.features_out * geo.groups))
    tests = (finite,) if geo.holes and finite is not None else ()
    r = g.add("conv_tiled", (x, matrix, *tests), {"geometry": geo}, flat)
    order = (*geo.places, geo.out_spec[1])
    r = reshape(g, r, [geo.out_shape[d] for d in order])
    return transposed(g, r, [order.index(d) for d in range(len(order))])


def tiled(geo: Geometry, dtype: str) -> bool:
    """Is it worth register tiles?"""
    wide = hint_of(geo.features_out) >= FEW or (geo.groups == 1 and not runs_along(geo))
    work = geo.rows * geo.features_out * geo.depth
    near = product(geo.x_shape) < 1 << 31  # for offsets of 32 bits
    return (
        wide and near and hint_of(work) >= TILED and hint_of(geo.rows) > 1 and dtype in TILED_DTYPES
    )


def runs_along(geo: Geometry) -> bool:
    """Does a result of one feature lie as the input does, one place after the other, as filtered
    signals and pictures do? Vectors of places are full then, where a tile has one column."""
    extent, step = geo.row_steps()[-1]
    alone = surely_at_most(geo.features_out, 1) and surely_at_most(step, 1)
    return alone and hint_of(extent) >= ALONG


def is_product(w: Node, p: dict[str, Any]) -> bool:
    """Is the kernel a single place, so that nothing but features is summed?"""
    ones = (
        *p["window_strides"],
        *p["lhs_dilation"],
        p["feature_group_count"],
        p["batch_group_count"],
    )
    kernel = [w.shape[d] for d in p["dimension_numbers"].rhs_spec[2:]]
    return all(n == 1 for n in (*ones, *kernel)) and not any(
        n for pads in p["padding"] for n in pads
    )


def as_product(g: GraphBuilder, x: Node, w: Node, p: dict[str, Any], out: Any) -> Node:
    """x:[.., features, ..] times w as [in, out], the features of the result put in their place."""
    numbers = p["dimension_numbers"]
    out_dim, in_dim, *spatial = numbers.rhs_spec
    matrix = reshape(
        g, transposed(g, w, (*spatial, in_dim, out_dim)), (w.shape[in_dim], w.shape[out_dim])
    )
    kept = [d for d in range(len(x.shape)) if d != numbers.lhs_spec[1]]
    aval = with_shape(x.aval, (*(x.shape[d] for d in kept), w.shape[out_dim]))
    contract = (((numbers.lhs_spec[1],), (0,)), ((), ()))
    (r,) = expand_dot(g, (x, matrix), {"dimension_numbers": contract}, [aval])
    source = {
        o: kept.index(i)
        for o, i in zip(numbers.out_spec, numbers.lhs_spec)
        if i != numbers.lhs_spec[1]
    }
    return transposed(g, r, [source.get(d, len(kept)) for d in range(len(out.shape))])


def may_have_holes(x: Node, p: dict[str, Any]) -> bool:
    """Is the input dilated or padded, and of a dtype whose zeros an infinite weight makes nan?"""
    edges = [n for pads in p["padding"] for n in pads]
    gaps = is_dilated(p) or not all(surely_at_most(n, 0) for n in edges)
    return gaps and x.aval.dtype.kind in "fc"


def is_dilated(p: dict[str, Any]) -> bool:
    return any(gap > 1 for gap in p["lhs_dilation"])


def asks_for_tiles(x: Node, w: Node, p: dict[str, Any]) -> bool:
    """Are holes asked for in tiles, too? XLA multiplies the zeros of an input that is padded and no
    more, but not in double precision, with groups of the batch or with a kernel that is reversed,
    as those of derivatives are."""
    double = x.aval.dtype.itemsize // (2 if x.aval.dtype.kind == "c" else 1) == 8
    return double or is_dilated(p) or p["batch_group_count"] > 1 or is_reversed(w)


def is_reversed(w: Node) -> bool:
    while w.op in ORDERS:
        if w.op == "rev":
            return True
        w = w.args[0]
    return False


def padding_of(x: Node, p: dict[str, Any]) -> tuple[list[tuple[Any, Any, int]], list[Any]]:
    """How the input is padded and dilated, and its shape then; what is cut away to less than
    nothing is empty."""
    spec = p["dimension_numbers"].lhs_spec
    config: list[tuple[Any, Any, int]] = [(0, 0, 0)] * len(spec)
    shape = list(x.shape)
    for d, (low, high), gap in zip(spec[2:], p["padding"], p["lhs_dilation"]):
        whole = dilated(x.shape[d], gap)
        high = max(high, -low - whole)
        config[d] = (low, high, gap - 1)
        shape[d] = whole + low + high
    return config, shape


def padded(
    g: GraphBuilder,
    x: Node,
    config: Sequence[tuple[Any, Any, int]],
    shape: Sequence[Any],
    holes: bool,
) -> Node:
    """The input with its padding and the gaps of its dilation. With `holes` these are -0.0."""
    if all(c == (0, 0, 0) or (c[:2] == (0, 0) and x.shape[d] <= 1) for d, c in enumerate(config)):
        return x
    scalar, zero = ShapedArray((), x.aval.dtype), np.zeros((), x.aval.dtype)[()]
    fill = g.add("literal", (), {"value": -zero if holes else zero}, scalar)
    return g.add("pad", (x, fill), {"padding_config": tuple(config)}, with_shape(x.aval, shape))


def geometry(shape: Sequence[Any], x: Node, w: Node, p: dict[str, Any], out: Any) -> Geometry:
    """Of an input that has this shape when it is padded."""
    numbers = p["dimension_numbers"]
    groups, batch_groups = p["feature_group_count"], p["batch_group_count"]
    features = w.shape[numbers.rhs_spec[1]]
    return Geometry(
        tuple(numbers.lhs_spec),
        tuple(numbers.out_spec),
        tuple(shape),
        tuple(out.shape),
        tuple(w.shape[d] for d in numbers.rhs_spec[2:]),
        tuple(p["window_strides"]),
        tuple(p["rhs_dilation"]),
        groups * batch_groups,
        x.shape[numbers.lhs_spec[0]] // batch_groups if batch_groups > 1 else 0,
        features if groups > 1 else 0,
        features,
        False,
    )


def all_finite(g: GraphBuilder, w: Node) -> Node:
    """1 where every element is finite, else 0. In which order they stand does not matter."""
    while w.op in ORDERS:
        w = w.args[0]
    each = g.add("is_finite", (w,), {}, w.aval.update(dtype=np.dtype("bool")))
    number = convert(g, each, np.dtype("int32"))
    params = {"axes": tuple(range(len(w.shape)))}
    (r,) = expand_reduce("min")(g, (number,), params, [with_shape(number.aval, ())])
    return r


def kernel_matrix(g: GraphBuilder, w: Node, spec: Sequence[int], geo: Geometry) -> Node:
    """[k, n], or [group, k, n]."""
    w = transposed(g, w, (*spec[2:], spec[1], spec[0]))
    if geo.groups == 1:
        return reshape(g, w, (geo.depth, geo.features_out))
    return transposed(g, reshape(g, w, (geo.depth, geo.groups, geo.features_out)), (1, 0, 2))


# --- the plain nest -------------------------------------------------------------------------------


def conv_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """One sum per element of the result, in the order of the merged (kernel position, input
    feature)."""
    geo: Geometry = n.params["geometry"]
    dims, idx = loops_of(low, n.shape)
    inner, (k,) = loops_of(low, (geo.depth,), len(dims))
    x, w = summands(low, n, geo, idx, k)
    if geo.holes:
        w = weight_met(x, w)
    value = times(n, x, w)
    if not inner:
        return [
            Stage(home.buf, dims, len(dims), home.prefix + idx, parts_of(started("sum", value, n)))
        ]
    accs, result = sum_in_order(low, f"r.{home.buf.name}", value, k)
    return [Stage(home.buf, dims + inner, len(dims), home.prefix + idx, parts_of(result), accs)]


def summands(low: Lower, n: Node, geo: Geometry, idx: Index, k: Expr) -> tuple[Value, Value]:
    """Input and kernel at summand `k` of an element."""
    feature = idx[geo.out_spec[1]]
    group, column = group_of(low, feature, geo)
    *at, channel = reindex(low.sizes, (k,), (geo.depth,), (*geo.kernel, geo.features_in))
    place: list[Expr] = [ZERO] * len(idx)
    size = low.sizes.dim
    place[geo.lhs_spec[0]] = moved(idx[geo.out_spec[0]], group, size(geo.batch_step))
    place[geo.lhs_spec[1]] = moved(channel, group, size(geo.feature_step))
    for d, o, i, stride, dilation in zip(
        geo.lhs_spec[2:], geo.out_spec[2:], at, geo.strides, geo.dilation
    ):
        place[d] = ex("add", ex("mul", idx[o], const(stride)), ex("mul", i, const(dilation)))
    return low.at(n.args[0], tuple(place)), low.at(
        n.args[1], (*((group,) if geo.groups > 1 else ()), k, column)
    )


def weight_met(x: Value, w: Value) -> Value:
    """The weight, or zero where `x` is a hole."""
    if isinstance(x, Cx):
        return Cx(weight_met(x.re, w.re), weight_met(x.re, w.im))
    bits = {"f32": "i32", "f64": "i64"}[x.dtype]
    hole = const(-1 << (INT_BITS[bits] - 1), bits)
    there = ex("ne", cast(x, bits, "bitcast"), hole)
    return ex("select", there, w, const(0.0, w.dtype))


def group_of(low: Lower, feature: Expr, geo: Geometry) -> tuple[Expr, Expr]:
    if geo.groups == 1:
        return ZERO, feature
    if geo.features_out == 1:
        return feature, ZERO
    size = low.sizes.dim(geo.features_out)
    return ex("floordiv", feature, size), ex("mod", feature, size)


def moved(i: Expr, group: Expr, step: Expr) -> Expr:
    return ex("add", i, ex("mul", group, step))


EXPANSIONS["conv_general_dilated"] = expand_conv
MAKERS["conv"] = conv_stage
