"""The operations of random programs that move or gather elements: reductions, layout, indexing,
products, sorting, linear algebra."""

import functools
from typing import Any

import numpy as np

from tests.compositions.operations import (
    Choices,
    Group,
    Operation,
    apart,
    as_matrix,
    axes_of,
    axis_of,
    binary,
    complexes,
    conversions,
    cut,
    held,
    indices,
    integers,
    is_complex,
    kinked_unary,
    marks,
    matched,
    positive,
    real,
    smooth_unary,
    ternary,
    wave,
)


def reductions(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def of(f: Operation, after: Operation = lambda x, size: x, ties: bool = False) -> Operation:
        def run(r: Choices, x: Any) -> Any:
            axes, keep = axes_of(r, x), bool(r.integers(2))
            size = int(np.prod([x.shape[a] for a in axes]))
            return after(f(apart(r, x) if ties else x, axis=axes, keepdims=keep), size)

        return run

    def generic(r: Choices, x: Any) -> Any:
        if not x.ndim:
            return x
        one = np.asarray(0 if r.integers(2) else 1, x.dtype)
        f, y = (l.add, x / 3) if one == 0 else (l.mul, 1 + 0.2 * n.tanh(x))
        return l.reduce(y, one, f, (int(r.integers(x.ndim)),))

    def index(f: str) -> Operation:
        def run(r: Choices, x: Any) -> Any:
            return getattr(n, f)(apart(r, x), axis=axis_of(r, x) if x.ndim else None)

        return run

    return {
        "sum": of(n.sum, lambda y, size: y / max(size, 1)),
        "mean": of(n.mean),
        "prod": of(lambda x, **k: n.prod(1 + 0.3 * n.tanh(x), **k)),
        "max": of(n.max, ties=True),
        "min": of(n.min, ties=True),
        "logsumexp": of(lambda x, axis, keepdims: j.nn.logsumexp(x, axis=axis, keepdims=keepdims)),
        "var": of(n.var),
        "std": of(lambda x, **k: n.sqrt(n.var(x, **k) + 1)),
        "any": of(lambda x, **k: n.any(x > 0.3, **k)),
        "norm": of(
            lambda x, axis, keepdims: n.sqrt(n.sum(x * x, axis, keepdims=keepdims) + 1) * 0.5
        ),
        "softmax": lambda r, x: j.nn.softmax(x, axis=axis_of(r, x)) if x.ndim else x,
        "log_softmax": lambda r, x: j.nn.log_softmax(x, axis=axis_of(r, x)) if x.ndim else x,
        "reduce": generic,
        "argmax": index("argmax"),
        "argmin": index("argmin"),
        "median": lambda r, x: n.median(apart(r, n.atleast_1d(x))),
        "ptp": lambda r, x: n.ptp(apart(r, n.atleast_1d(x))),
        "standardize": lambda r, x: j.nn.standardize(n.atleast_1d(x) * 1.0, axis=-1, epsilon=1.0),
        "count_nonzero": lambda r, x: n.count_nonzero(x > 0.1, axis=axes_of(r, x)),
    }


def windows(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def window(start: float, f: Any, scale: float) -> Operation:
        def run(r: Choices, x: Any) -> Any:
            x = n.atleast_1d(apart(r, x) if scale == 1 else x)
            size, stride = (
                (2,) + (1,) * (x.ndim - 1),
                (int(r.integers(1, 3)),) + (1,) * (x.ndim - 1),
            )
            padding = "SAME" if r.integers(2) or x.shape[0] < 2 else "VALID"
            y = l.reduce_window(x, np.asarray(start, x.dtype)[()], f, size, stride, padding)
            return y * scale

        return run

    def conv(r: Choices, x: Any, y: Any) -> Any:
        """One to two spatial dimensions, strides, dilations, padding, groups."""
        groups, (a, b) = int(r.integers(1, 3)), (x.reshape(-1), y.reshape(-1))
        d = n.promote_types(n.promote_types(x.dtype, y.dtype), np.float32)
        two = bool(r.integers(2))
        lhs = n.resize(a, (1, 2, 3, 4) if two else (2, 2, 5)).astype(d)
        rhs = n.resize(b, (2, 2 // groups, 2, 2) if two else (2, 2 // groups, 3)).astype(d)
        rank = 2 if two else 1
        return 0.3 * l.conv_general_dilated(
            lhs,
            rhs,
            window_strides=tuple(r.integers(1, 3, rank).tolist()),
            padding=[tuple(p) for p in r.integers(0, 2, (rank, 2)).tolist()],
            lhs_dilation=tuple(r.integers(1, 3, rank).tolist()),
            rhs_dilation=tuple(r.integers(1, 3, rank).tolist()) if lhs.shape[-1] > 4 else None,
            feature_group_count=groups,
        )

    return {
        "window_sum": lambda r, x, y: window(0.0, l.add, 0.5)(r, x),
        "window_max": lambda r, x, y: window(-np.inf, l.max, 1)(r, x),
        "window_min": lambda r, x, y: window(np.inf, l.min, 1)(r, x),
        "conv": conv,
        "convolve": lambda r, x, y: (
            n.convolve(
                x.reshape(-1),
                n.tanh(y).reshape(-1)[:3],
                mode=("same", "full", "valid")[r.integers(3)],
            )
            * 0.4
        ),
        "conv_transpose": lambda r, x, y: (
            0.3
            * l.conv_transpose(
                n.resize(x, (1, 3, 2)),
                n.resize(n.tanh(y), (2, 2, 2)).astype(x.dtype),
                (2,),
                ("SAME", "VALID")[r.integers(2)],
            )
        ),
    }


def running(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def of(f: Operation, make: Operation = lambda r, x: x) -> Operation:
        def run(r: Choices, x: Any) -> Any:
            x = n.atleast_1d(make(r, x))
            return f(x, axis=int(r.integers(x.ndim)), reverse=bool(r.integers(2)))

        return run

    def prefix(r: Choices, x: Any) -> Any:
        x = n.atleast_1d(n.tanh(x))
        return l.associative_scan(
            lambda a, b: a * 0.5 + b, x, reverse=bool(r.integers(2)), axis=axis_of(r, x)
        )

    return {
        "cumsum": of(l.cumsum, lambda r, x: 0.4 * x),
        "cumprod": of(l.cumprod, lambda r, x: 1 + 0.3 * n.tanh(x)),
        "cummax": of(l.cummax, apart),
        "cummin": of(l.cummin, apart),
        "cumlogsumexp": of(l.cumlogsumexp),
        "prefix": prefix,
        "diff": lambda r, x: (
            n.diff(n.atleast_1d(x), axis=-1) if np.shape(x)[-1:] not in ((), (1,)) else x
        ),
    }


def layout(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def perm(r: Choices, x: Any) -> Any:
        return n.transpose(x, tuple(int(i) for i in r.permutation(x.ndim)))

    def strided(r: Choices, x: Any) -> Any:
        key = tuple(slice(None, None, int(r.choice([1, 2, -1]))) for _ in range(x.ndim))
        return x[key]

    def padded(r: Choices, x: Any) -> Any:
        low, high, mid = (
            r.integers(-1, 3, x.ndim),
            r.integers(0, 2, x.ndim),
            r.integers(0, 2, x.ndim),
        )
        low = np.where(np.array(x.shape) < 2, np.maximum(low, 0), low)
        return cut(
            l.pad(x, np.asarray(0.3, x.dtype), [tuple(map(int, p)) for p in zip(low, high, mid)])
        )

    def spread(r: Choices, x: Any) -> Any:
        return cut(l.broadcast_in_dim(x, (2, *x.shape), tuple(range(1, x.ndim + 1))))

    def sized(r: Choices, x: Any) -> Any:
        sizes = [int(r.integers(1, s + 1)) for s in x.shape]
        return l.slice(x, [s - k for s, k in zip(x.shape, sizes)], x.shape)

    return {
        "transpose": perm,
        "strided": strided,
        "pad": padded,
        "spread": spread,
        "slice": sized,
        "ravel": lambda r, x: x.reshape(-1),
        "new_axis": lambda r, x: n.expand_dims(x, int(r.integers(x.ndim + 1))),
        "flip": lambda r, x: n.flip(x, axes_of(r, x)),
        "roll": lambda r, x: n.roll(
            x, int(r.integers(-2, 5)), None if r.integers(2) or not x.ndim else axis_of(r, x)
        ),
        "tile": lambda r, x: cut(n.tile(x, 2)),
        "triangle": lambda r, x: (n.tril, n.triu)[r.integers(2)](
            as_matrix(j, r, x), int(r.integers(-1, 2))
        ),
        "diagonal": lambda r, x: n.diagonal(as_matrix(j, r, x)),
        "squeeze": lambda r, x: n.squeeze(x),
        "repeat": lambda r, x: cut(n.repeat(n.atleast_1d(x), 2, axis=-1)),
        "split": lambda r, x: n.split(x, x.shape[0])[-1] if x.ndim else x,
        "iota": lambda r, x: (
            x + l.iota(x.dtype, max(x.shape[-1], 1))[: x.shape[-1]] * 0.1 if x.ndim else x
        ),
        "pad_mode": lambda r, x: cut(
            n.pad(
                x,
                1,
                mode=("edge", "wrap", "reflect")[r.integers(3)]
                if x.size > 1 and x.ndim and min(x.shape) > 1
                else "edge",
            )
        ),
        "diag": lambda r, x: n.diag(x.reshape(-1)[:3]),
        "bcast_rows": lambda r, x: x[..., None] * wave(r, (2,), x.dtype),
    }


def joining(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def place(r: Choices, x: Any, y: Any) -> Any:
        x = n.atleast_1d(x)
        y = y.reshape(-1)[: x.shape[-1]]
        start = indices(j, r, y, 3)[0] + 0 * (x.shape[-1])
        part = n.broadcast_to(y.astype(x.dtype), (*(1,) * (x.ndim - 1), y.size))
        return l.dynamic_update_slice(x, part, (0,) * (x.ndim - 1) + (start,))

    def joined(r: Choices, x: Any, y: Any) -> Any:
        return n.concatenate([x.reshape(-1)[:8], y.reshape(-1)[:8]][:: r.choice([1, -1])])

    def stacked(r: Choices, x: Any, y: Any) -> Any:
        x, y = n.broadcast_arrays(*matched(j, x, y))
        return cut(n.stack([x, y], axis=int(r.integers(-1, x.ndim + 1))))

    return {
        "concatenate": joined,
        "stack": stacked,
        "update_slice": place,
        "outer": lambda r, x, y: n.outer(x.reshape(-1)[:4], y.reshape(-1)[:4]) * 0.5,
    }


def gathers(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def take(r: Choices, x: Any, y: Any) -> Any:
        x, axis = n.atleast_1d(x), 0
        axis = axis_of(r, x)
        i = indices(j, r, y, x.shape[axis])
        mode = ("clip", "wrap", "fill")[r.integers(3)]
        return cut(
            n.take(x, i, axis=axis, mode=mode, **({"fill_value": 0} if mode == "fill" else {}))
        )

    def dynamic(r: Choices, x: Any, y: Any) -> Any:
        x = n.atleast_1d(x)
        i = indices(j, r, y, x.shape[0])[0]
        sizes = tuple(int(r.integers(1, s + 1)) for s in x.shape)
        return l.dynamic_slice(x, (i,) + (0,) * (x.ndim - 1), sizes)

    def along(r: Choices, x: Any, y: Any) -> Any:
        x = n.atleast_1d(x)
        return n.take_along_axis(x, n.argsort(apart(r, x), axis=-1), axis=-1)

    def fancy(r: Choices, x: Any, y: Any) -> Any:
        x = n.atleast_2d(x)
        i = indices(j, r, y, min(x.shape), out_of_bounds=False)
        return x[..., i, i] if r.integers(2) else x[i, ..., i]

    def element(r: Choices, x: Any, y: Any) -> Any:
        x = n.atleast_1d(x)
        return l.dynamic_index_in_dim(
            x, indices(j, r, y, x.shape[0])[0], 0, keepdims=bool(r.integers(2))
        )

    return {
        "take": take,
        "dynamic_slice": dynamic,
        "take_along_axis": along,
        "fancy": fancy,
        "dynamic_index": element,
    }


def scatters(j: Any) -> dict[str, Operation]:
    n = j.numpy

    def add(r: Choices, x: Any, y: Any, z: Any) -> Any:
        x = n.atleast_1d(x)
        i = indices(j, r, y, x.shape[0])
        return x.at[i].add(0.5 * n.mean(z).astype(x.dtype), mode=("drop", "clip")[r.integers(2)])

    def put(r: Choices, x: Any, y: Any, z: Any) -> Any:
        x = n.atleast_1d(x)
        i = indices(j, r, y, x.shape[0])[0]
        at = x.at[..., i] if r.integers(2) and x.shape[-1] >= x.shape[0] else x.at[i]
        return (at.set, at.add)[r.integers(2)](n.mean(z).astype(x.dtype))

    def times(r: Choices, x: Any, y: Any, z: Any) -> Any:
        x = n.atleast_1d(x)
        i = n.argsort(apart(r, n.arange(x.shape[0], dtype=np.float32) * 3))[
            : x.shape[0] - x.shape[0] // 2
        ]
        return x.at[i].multiply(n.tanh(n.mean(z)).astype(x.dtype), unique_indices=True)

    def most(r: Choices, x: Any, y: Any, z: Any) -> Any:
        x = apart(r, n.atleast_1d(x))
        at = x.at[indices(j, r, y, x.shape[0])[:1]]
        return (at.max, at.min)[r.integers(2)](n.mean(z).astype(x.dtype) + 0.21)

    def segments(r: Choices, x: Any, y: Any, z: Any) -> Any:
        x = n.atleast_1d(x)
        i = n.resize(indices(j, r, y, 3), (x.shape[0],))
        return n.zeros((3, *x.shape[1:]), x.dtype).at[i].add(x) * 0.5

    return {
        "at_add": add,
        "at_set": put,
        "at_multiply": times,
        "at_max": most,
        "segment_sum": segments,
        "at_get": lambda r, x, y, z: (
            n.atleast_1d(x).at[indices(j, r, y, 4)].get(mode="fill", fill_value=0.25)
        ),
    }


def products(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def sides(r: Choices, x: Any, y: Any) -> tuple[Any, Any, int]:
        k = int(r.integers(1, 4))
        a, b = n.resize(x.reshape(-1), (2, 2, k)), n.resize(n.tanh(y).reshape(-1), (2, k, 3))
        d = n.promote_types(a.dtype, b.dtype)
        return a.astype(d), b.astype(d), k

    def general(r: Choices, x: Any, y: Any) -> Any:
        a, b, k = sides(r, x, y)
        dims = (
            (((2,), (1,)), ((0,), (0,))),
            (((2,), (1,)), ((), ())),
            (((2, 0), (1, 0)), ((), ())),
        )[r.integers(3)]
        return l.dot_general(a, b, dims) / k

    def einsum(r: Choices, x: Any, y: Any) -> Any:
        a, b, k = sides(r, x, y)
        return (
            n.einsum(
                (
                    "bij,bjk->bik",
                    "bij,cjk->ki",
                    "bij,bjk->",
                    "bij,ajk->abik",
                    "bii,bjk->j" if k == 2 else "bij,bjk->ib",
                )[r.integers(5)],
                a,
                b,
            )
            / k
        )

    def inner(r: Choices, x: Any, y: Any) -> Any:
        m = min(x.size, y.size)
        return n.dot(x.reshape(-1)[:m], n.tanh(y).reshape(-1)[:m]) / m

    return {
        "dot_general": general,
        "einsum": einsum,
        "inner": inner,
        "matmul": functools.partial(matvec, j),
        "tensordot": lambda r, x, y: (
            n.tensordot(
                n.resize(x, (2, 3)),
                n.resize(n.tanh(y), (3, 2)).astype(x.dtype),
                axes=int(r.integers(1, 2)),
            )
            / 2
        ),
        "kron": lambda r, x, y: n.kron(x.reshape(-1)[:3], y.reshape(-1)[:3]) * 0.5,
        "cross": lambda r, x, y: n.cross(n.resize(x, (3,)), n.resize(n.tanh(y), (3,))),
    }


def matvec(j: Any, r: Choices, x: Any, y: Any) -> Any:
    a = as_matrix(j, r, x)
    return a @ j.numpy.resize(j.numpy.tanh(y), (a.shape[1],)).astype(a.dtype) * 0.5


def sorting(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def ordered(r: Choices, x: Any, y: Any) -> Any:
        return n.sort(apart(r, n.atleast_1d(x)), axis=-1, descending=bool(r.integers(2)))

    def together(r: Choices, x: Any, y: Any) -> Any:
        x, y = n.broadcast_arrays(*(n.atleast_1d(v) for v in matched(j, x, y)))
        keys, values = l.sort((apart(r, x), y), dimension=int(r.integers(x.ndim)), num_keys=1)
        return values if r.integers(2) else keys * 0.5 + n.sin(values)

    def top(r: Choices, x: Any, y: Any) -> Any:
        x = apart(r, n.atleast_1d(x))
        return l.top_k(x, int(r.integers(1, x.shape[-1] + 1)))[0]

    def quantile(r: Choices, x: Any, y: Any) -> Any:
        return n.quantile(
            apart(r, n.atleast_1d(x).astype(n.promote_types(x.dtype, np.float32))), 0.3
        )

    return {
        "sort": ordered,
        "sort_together": together,
        "top_k": top,
        "quantile": quantile,
        "ranked": lambda r, x, y: n.argsort(apart(r, n.atleast_1d(x)), axis=-1),
    }


def algebra(j: Any) -> dict[str, Operation]:
    n, l, a = j.numpy, j.lax, j.numpy.linalg

    def rhs(j: Any, r: Choices, y: Any, m: Any) -> Any:
        shape = (m.shape[0],) if r.integers(2) else (m.shape[0], 2)
        return n.resize(n.tanh(y), shape).astype(m.dtype)

    def triangular(r: Choices, x: Any, y: Any) -> Any:
        m = as_matrix(j, r, x)
        b = n.resize(n.tanh(y), (m.shape[0], 2)).astype(m.dtype)
        lower, trans = bool(r.integers(2)), bool(r.integers(2))
        return l.linalg.triangular_solve(
            m, b, left_side=True, lower=lower, transpose_a=trans, unit_diagonal=bool(r.integers(2))
        )

    def eigh(r: Choices, x: Any, y: Any) -> Any:
        w, v = a.eigh(positive(j, r, x))
        return (v * n.tanh(w)) @ v.T if r.integers(2) else w * 0.3

    def svd(r: Choices, x: Any, y: Any) -> Any:
        m = as_matrix(j, r, x, square=bool(r.integers(2)))
        if r.integers(2):
            return a.svd(m, compute_uv=False) * 0.5
        u, s, vt = a.svd(m, full_matrices=False)
        return (u * n.sin(s)) @ vt

    def qr(r: Choices, x: Any, y: Any) -> Any:
        q, t = a.qr(as_matrix(j, r, x))
        return q if r.integers(2) else n.tanh(t)

    def lu(r: Choices, x: Any, y: Any) -> Any:
        return l.linalg.lu(as_matrix(j, r, x))[0] * 0.5

    def solve_linear(r: Choices, x: Any, y: Any) -> Any:
        m = positive(j, r, x)
        b = n.resize(n.tanh(y), (m.shape[0],)).astype(m.dtype)
        return l.custom_linear_solve(lambda v: m @ v, b, lambda f, b: a.solve(m, b), symmetric=True)

    def solve(r: Choices, x: Any, y: Any) -> Any:
        m = as_matrix(j, r, x)
        return a.solve(m, rhs(j, r, y, m))

    def cho(r: Choices, x: Any, y: Any) -> Any:
        m = positive(j, r, x)
        return a.cholesky(m) * 0.5

    return {
        "cholesky": cho,
        "solve": solve,
        "triangular_solve": triangular,
        "eigh": eigh,
        "svd": svd,
        "qr": qr,
        "lu": lu,
        "linear_solve": solve_linear,
        "inv": lambda r, x, y: a.inv(as_matrix(j, r, x)),
        "det": lambda r, x, y: n.tanh(a.det(as_matrix(j, r, x)) * 0.1),
        "slogdet": lambda r, x, y: a.slogdet(as_matrix(j, r, x))[1] * 0.3,
        "pinv": lambda r, x, y: a.pinv(as_matrix(j, r, x, square=False)),
        "matrix_power": lambda r, x, y: a.matrix_power(0.3 * as_matrix(j, r, x), 3),
        "expm": lambda r, x, y: j.scipy.linalg.expm(0.2 * as_matrix(j, r, x)),
    }


GROUPS = {
    "smooth": Group(1, 5, smooth_unary),
    "kinked": Group(1, 1.5, kinked_unary),
    "binary": Group(2, 5, binary),
    "ternary": Group(3, 1, ternary),
    "complex": Group(2, 2, complexes),
    "integer": Group(2, 1.5, integers, "any"),
    "reduction": Group(1, 3, reductions),
    "window": Group(2, 1.5, windows),
    "running": Group(1, 1.5, running),
    "layout": Group(1, 3, layout, "numeric"),
    "joining": Group(2, 1.5, joining),
    "gather": Group(2, 2, gathers),
    "scatter": Group(3, 2, scatters),
    "product": Group(2, 2.5, products),
    "sorting": Group(2, 1.5, sorting),
    "algebra": Group(2, 1, algebra),
    "mark": Group(1, 0.7, marks),
    "held": Group(1, 0.2, held),
    "conversion": Group(1, 2, conversions, "any"),
}
HELD = frozenset(("stop_gradient", "straight_through"))


@functools.cache
def catalog(j: Any) -> dict[str, tuple[Operation, Group]]:
    """Every operation by its name, and its group."""
    return {name: (f, g) for g in GROUPS.values() for name, f in g.make(j).items()}


def apply(j: Any, name: str, r: Choices, operands: list[Any]) -> Any:
    """The value of an operation, of at most so many elements."""
    f, group = catalog(j)[name]
    if group.kind == "numeric":
        operands = [x if is_complex(x) and name not in REAL_ONLY else real(j, x) for x in operands]
    elif group.kind == "real":
        places = (1,) if name in INDEXED else ()
        operands = [
            x if k in places and not is_complex(x) else real(j, x) for k, x in enumerate(operands)
        ]
    if group.make in (binary, ternary, complexes):
        operands = list(matched(j, *operands))
    return cut(f(r, *operands))


INDEXED = frozenset(
    (
        "take",
        "dynamic_slice",
        "fancy",
        "dynamic_index",
        "at_add",
        "at_set",
        "at_max",
        "segment_sum",
        "at_get",
        "update_slice",
    )
)  # their second operand may be places
REAL_ONLY = frozenset(("triangle", "diagonal", "iota", "pad"))
