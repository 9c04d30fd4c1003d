"""Values that do and do not vary along a checked axis, and what that means for gradients inside
`shard_map`.

Along a checked axis a value either varies from member to member or is known to be the same for all.
Where the two kinds meet in an operation, the second is said to be made varying (`pvary`, which does
nothing to the value). The transpose of that is a sum over the axis: so the gradient in a parameter
that all members share is the sum of what every member contributes, and varies as little as the
parameter does. A sum over the axis (`psum_invariant`) is transposed to `pvary`.

Differentiation of a program inside the body (under `jit`, in a `scan`) happens before it is known
which of its values vary. There `pvary_like` and `psum_like` carry along tokens, which are batched
as the values were; batching decides them.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.jaxprs import subjaxprs
from calque.core.primitives import NotApplicable, Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.ops.common import front, scalar_of, zero_like
from calque.transforms.devices.types import mat_of
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis, AxisPrimitive, Collective
from calque.transforms.engines.batching import BatchTracer, Dim
from calque.transforms.engines.jvp import JVPTracer, mixing

Names = tuple[Hashable, ...]
_ALONE = NotApplicable("a value varies only along the axes of a map: inside shard_map")
_INT = np.dtype("int32")


def _rest(names: Names, axis: Axis) -> Names:
    return tuple(n for n in names if n != axis.name)


# ---------------------------------------------------------------- pvary, psum_invariant


def linear_collective(name: str, transposed: str, along: Any, becomes: str | None) -> Collective:
    """A linear collective over `axes`; `along(x, dim, axis)` is its meaning for one of them."""

    def bind(x: Any, names: Names) -> Any:
        return do[name](x, axes=names) if names else x

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: Names) -> Any:
        out = bind(primals[0], axes)
        return out, (zero_like(out) if type(tangents[0]) is Zero else bind(tangents[0], axes))

    def transpose(ct: Any, x: Any, *, axes: Names) -> list[Any]:
        return [Zero(x.aval) if type(ct) is Zero else do[transposed](ct, axes=axes)]

    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, axes: Names) -> Any:
        (x,), (d,) = args, dims
        if axis.name is None or axis.name not in axes:
            return bind(x, axes), d
        out, d = along(x, d, axis)
        return bind(out, _rest(axes, axis)), d

    return Collective(
        name,
        lambda params: params["axes"],
        becomes=becomes,
        meaning=_ALONE,
        shape=lambda x, *, axes: x,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
    )


def summed(x: Any, d: Dim, axis: Axis) -> tuple[Any, Dim]:
    """The sum over the members; equal values are multiplied by their number."""
    if d is None:
        return do.mul(x, scalar_of(typeof(x).dtype, axis.size)), None
    return do.reduce_sum(x, axes=(d,)), None


pvary_p = linear_collective("pvary", "psum_invariant", lambda x, d, axis: (x, d), "varying")
psum_invariant_p = linear_collective("psum_invariant", "pvary", summed, None)


# ---------------------------------------------------------------- decided when batched


def _token_batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, axes: Names) -> Any:
    (x,), (d,) = args, dims
    rest = _rest(axes, axis)
    token = variance_of_p.bind(x, axes=rest) if rest else scalar_of(_INT, 0)
    if d is None or axis.name is None or axis.name not in axes:
        return token, None
    return front(token, None, axis.size), 0


variance_of_p: Collective = Collective(
    "variance_of",
    lambda params: params["axes"],
    precise=True,
    meaning=_ALONE,
    shape=lambda x, *, axes: ShapedArray((), _INT),
    jvp=lambda primals, tangents, *, axes: (
        variance_of_p.bind(primals[0], axes=axes),
        zero_like(scalar_of(_INT, 0)),
    ),
    transpose=NotApplicable("variance_of is not linear"),
    batch=_token_batch,
)


def _like(name: str, transposed: str, along: Any) -> Collective:
    """`along` for the axes that some other operand varies along and the own one does not; else the
    value as it is."""

    def bind(x: Any, tokens: Sequence[Any], names: Names) -> Any:
        return do[name](x, *tokens, axes=names) if names else x

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: Names) -> Any:
        out = bind(primals[0], primals[1:], axes)
        return out, (
            zero_like(out) if type(tangents[0]) is Zero else bind(tangents[0], primals[1:], axes)
        )

    def transpose(ct: Any, x: Any, *tokens: Any, axes: Names) -> list[Any]:
        none = [None] * len(tokens)
        return [
            Zero(x.aval) if type(ct) is Zero else do[transposed](ct, *tokens, axes=axes),
            *none,
        ]

    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, axes: Names) -> Any:
        (x, own, *others), (d, own_dim, *other_dims) = args, dims
        if axis.name is not None and axis.name in axes:
            if own_dim is None and any(k is not None for k in other_dims):
                x, d = along(x, d, axis)
            axes = _rest(axes, axis)
            own, *others = [_one(t, k) for t, k in zip((own, *others), (own_dim, *other_dims))]
        return bind(x, (own, *others), axes), d

    return Collective(
        name,
        lambda params: params["axes"],
        precise=True,
        meaning=_ALONE,
        shape=lambda x, *tokens, axes: x,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
    )


def _one(token: Any, dim: Dim) -> Any:
    """The token of one member."""
    return token if dim is None else do.squeeze(_row(token, dim), dimensions=(dim,))


def _row(x: Any, dim: int) -> Any:
    shape = typeof(x).shape
    stop = tuple(1 if k == dim else n for k, n in enumerate(shape))
    return do.slice(x, start_indices=(0,) * len(shape), limit_indices=stop)


pvary_like_p = _like("pvary_like", "psum_like", lambda x, d, axis: (front(x, d, axis.size), 0))
psum_like_p = _like("psum_like", "pvary_like", summed)


# ---------------------------------------------------------------- differentiation


def variance(x: Any) -> frozenset[Hashable] | None:
    """The checked axes that a value varies along; None while that is not known."""
    found = frozenset[Hashable]()
    lowest = axes.lowest_checked()
    while isinstance(x, Tracer):
        if type(x) is BatchTracer:
            if x._trace.axis.checked:  # type: ignore[attr-defined]
                found |= {x._trace.axis.name}  # type: ignore[attr-defined]
            x = x.val
        elif type(x) is JVPTracer:
            x = x.primal
        elif getattr(x._trace, "mesh", None) is not None:  # its types say it
            return found | mat_of(x.aval).varying
        elif x._trace.level > lowest:
            return None  # a value of a program that is recorded inside the map
        else:
            break
    return found


def mixed(
    level: int,
    primitive: Primitive,
    primals: Sequence[Any],
    tangents: list[Any],
    params: dict[str, Any],
) -> list[Any]:
    """The tangents of operands of an operation, each made to vary where another operand varies and
    its own does not."""
    names = axes.checked_below(level) if axes.in_scope() else ()
    if not names or isinstance(primitive, AxisPrimitive) or any(True for _ in subjaxprs(params)):
        return tangents
    known = [variance(p) for p in primals]
    if any(k is None for k in known):
        return _mixed_later(primals, tangents, names)
    joined = frozenset[Hashable]().union(*[k for k in known if k is not None])
    out = []
    for t, own in zip(tangents, known):
        missing = tuple(n for n in names if n in joined and own is not None and n not in own)
        out.append(t if type(t) is Zero or not missing else pvary_p.bind(t, axes=missing))
    return out


def _mixed_later(primals: Sequence[Any], tangents: Sequence[Any], names: Names) -> list[Any]:
    values = [p for p in primals if not isinstance(p, PYTHON_SCALARS)]
    if len(values) < 2 or all(type(t) is Zero for t in tangents):
        return list(tangents)
    tokens = [variance_of_p.bind(p, axes=names) for p in primals]
    out = []
    for i, t in enumerate(tangents):
        others = [k for j, k in enumerate(tokens) if j != i]
        out.append(t if type(t) is Zero else pvary_like_p.bind(t, tokens[i], *others, axes=names))
    return out


mixing.install(mixed)


# ---------------------------------------------------------------- operands of collectives


def made_varying(x: Any, names: Sequence[Any]) -> Any:
    """`x` as a value that varies along the checked ones of these axes."""
    checked = tuple(n for n in names if not isinstance(n, int) and axes.find(n).axis.checked)
    if not checked:
        return x
    known = variance(x)
    if known is not None:
        missing = tuple(n for n in checked if n not in known)
        return pvary_p.bind(x, axes=missing) if missing else x
    for n in checked:
        own = variance_of_p.bind(x, axes=(n,))
        x = pvary_like_p.bind(
            x, own, variance_of_p.bind(do.axis_index(axis_name=n), axes=(n,)), axes=(n,)
        )
    return x
