"""How an argument is drawn from the name of its parameter, for functions without a recipe."""

import inspect
from collections.abc import Callable
from typing import Any

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Made, Ref

Given = dict[str, Any]  # the arguments drawn so far, by parameter
Role = Callable[[Draw, Given], Any]


class NoRole(Exception):
    """A required parameter whose name says nothing."""


def first_of(given: Given) -> Any:
    """The first array among the arguments."""
    for v in given.values():
        if isinstance(v, Ref):
            return v
        if isinstance(v, (tuple, list)) and v and isinstance(v[0], Ref):
            return v[0]
    raise NoRole("no array is given yet")


def _alike(d: Draw, given: Given) -> list[Ref]:
    x = d.array(low=1)
    return [x, *(d.like(x, same_dtype=d.chance(0.7)) for _ in range(d.whole(0, 2)))]


FIRST = [
    "x",
    "x1",
    "a",
    "a1",
    "m",
    "arr",
    "ary",
    "v",
    "z",
    "array",
    "val",
    "filt",
    "element",
    "prototype",
    "operand",
    "object",
    "ar1",
    "image",
    "data",
    "in1",
    "values",
    "f",
    "c",
    "lhs",
    "keys",
    "condition",
    "which",
    "ar",
]
SECOND = [
    "y",
    "x2",
    "b",
    "a2",
    "q",
    "v",
    "values",
    "arr",
    "test_elements",
    "other",
    "x_y",
    "a_max",
    "a_min",
    "min",
    "max",
    "nan",
    "posinf",
    "neginf",
    "minval",
    "maxval",
    "mask",
    "weights",
    "in2",
    "rhs",
]

OPTIONS: dict[str, Role] = {
    "axis": lambda d, g: d.axis(first_of(g)),
    "axes": lambda d, g: d.axes(first_of(g)),
    "axisa": lambda d, g: d.axis(first_of(g)),
    "axisb": lambda d, g: d.axis(first_of(g)),
    "axisc": lambda d, g: d.axis(first_of(g)),
    "axis1": lambda d, g: d.axis(first_of(g)),
    "axis2": lambda d, g: d.axis(first_of(g)),
    "dimension": lambda d, g: d.axis(first_of(g)) % max(d.of(first_of(g)).ndim, 1),
    "keepdims": lambda d, g: d.chance(0.5),
    "dtype": lambda d, g: d.dtype(),
    "where": lambda d, g: d.broadcastable(first_of(g), "bool"),
    "initial": lambda d, g: d.choose((0, 1, 2.5, -3)),
    "k": lambda d, g: d.whole(-2, 2),
    "n": lambda d, g: d.whole(1, 9),
    "s": lambda d, g: tuple(d.whole(1, 6) for _ in range(2)),
    "N": lambda d, g: d.whole(0, 6),
    "M": lambda d, g: d.whole(1, 6),
    "m": lambda d, g: d.whole(0, 3),
    "offset": lambda d, g: d.whole(-2, 2),
    "ddof": lambda d, g: d.whole(0, 1),
    "correction": lambda d, g: d.choose((0, 1, 0.5)),
    "decimals": lambda d, g: d.whole(-1, 2),
    "deg": lambda d, g: d.chance(0.5),
    "norm": lambda d, g: d.choose(("ortho", "forward", "backward")),
    "ord": lambda d, g: d.choose((1, 2, -1, float("inf"), "fro", "nuc", 3)),
    "order": lambda d, g: d.choose(("C", "F")),
    "mode": lambda d, g: d.choose(
        ("full", "valid", "same", "clip", "wrap", "fill", "reflect", "edge", "reduced", "complete")
    ),
    "method": lambda d, g: d.choose(
        ("linear", "lower", "higher", "nearest", "midpoint", "auto", "average", "dense")
    ),
    "side": lambda d, g: d.choose(("left", "right")),
    "UPLO": lambda d, g: d.choose(("L", "U")),
    "reverse": lambda d, g: d.chance(0.5),
    "weights": lambda d, g: d.like(first_of(g), same_dtype=False),
    "prepend": lambda d, g: d.number(),
    "append": lambda d, g: d.number(),
    "to_end": lambda d, g: d.array("single", 0, 1),
    "to_begin": lambda d, g: d.array("single", 0, 1),
    "fill_value": lambda d, g: d.choose((0, 1, -1, 7)),
    "size": lambda d, g: d.whole(1, 9),
    "precision": lambda d, g: d.choose(("highest", "default")),
    "base": lambda d, g: d.choose((2.0, 10.0)),
    "num": lambda d, g: d.whole(0, 9),
    "period": lambda d, g: d.choose((1.0, 2.5)),
    "bins": lambda d, g: d.whole(1, 5),
    "minlength": lambda d, g: d.whole(0, 6),
    "length": lambda d, g: d.whole(1, 6),
    "dx": lambda d, g: d.number(0.1, 2),
    "stride": lambda d, g: d.whole(1, 2),
    "index_dtype": lambda d, g: Made("numpy.int32"),
    "preferred_element_type": lambda d, g: d.choose(("float32", "int32")),
    "tol": lambda d, g: 1e-3,
    "rcond": lambda d, g: 1e-3,
    "rtol": lambda d, g: 1e-2,
    "atol": lambda d, g: 1e-2,
    "loc": lambda d, g: d.broadcastable(first_of(g), "single"),
    "scale": lambda d, g: d.broadcastable(first_of(g), "single", "positive"),
    "initial_value": lambda d, g: d.number(),
    "alpha": lambda d, g: d.number(0.1, 2),
    "negative_slope": lambda d, g: d.number(0.01, 1),
    "lower": lambda d, g: d.chance(0.5),
    "trans": lambda d, g: d.choose((0, 1, 2)),
    "offset_trace": lambda d, g: d.whole(-1, 1),
    "epsilon": lambda d, g: 1e-3,
    "type": lambda d, g: 2,
    "window": lambda d, g: "hann",
    "nperseg": lambda d, g: d.whole(2, 8),
    "noverlap": lambda d, g: 1,
    "detrend": lambda d, g: d.choose(("constant", "linear", False)),
    "cval": lambda d, g: d.number(),
    "edge_order": lambda d, g: 1,
    "nan": lambda d, g: 0.5,
    "posinf": lambda d, g: 9.0,
    "neginf": lambda d, g: -9.0,
    "rowvar": lambda d, g: d.chance(0.5),
    "bias": lambda d, g: d.chance(0.5),
    "increasing": lambda d, g: d.chance(0.5),
    "indexing": lambda d, g: d.choose(("xy", "ij")),
    "sparse": lambda d, g: d.chance(0.5),
    "bitorder": lambda d, g: d.choose(("big", "little")),
    "endpoint": lambda d, g: d.chance(0.5),
    "right": lambda d, g: d.chance(0.5),
    "stable": lambda d, g: d.chance(0.5),
    "descending": lambda d, g: d.chance(0.5),
    "equal_nan": lambda d, g: d.chance(0.5),
    "invert": lambda d, g: d.chance(0.5),
    "assume_unique": lambda d, g: False,
    "return_index": lambda d, g: d.chance(0.5),
    "return_inverse": lambda d, g: d.chance(0.5),
    "return_counts": lambda d, g: d.chance(0.5),
    "returned": lambda d, g: d.chance(0.5),
    "density": lambda d, g: d.chance(0.5),
    "full_matrices": lambda d, g: d.chance(0.5),
    "compute_uv": lambda d, g: d.chance(0.5),
    "hermitian": lambda d, g: d.chance(0.3),
    "include_initial": lambda d, g: d.chance(0.5),
    "bound": lambda d, g: d.number(),
    "approximate": lambda d, g: d.chance(0.5),
    "return_sign": lambda d, g: d.chance(0.5),
    "is_stable": lambda d, g: d.chance(0.5),
    "symmetrize_input": lambda d, g: d.chance(0.5),
    "promote_integers": lambda d, g: d.chance(0.5),
    "check_finite": lambda d, g: False,
    "discont": lambda d, g: 2.0,
    "nan_policy": lambda d, g: "propagate",
    "overwrite_a": lambda d, g: False,
    "left_side": lambda d, g: d.chance(0.5),
    "axis_or_axes": lambda d, g: d.axis_or_axes(first_of(g)),
    "permute_l": lambda d, g: d.chance(0.5),
    "pivoting": lambda d, g: d.chance(0.3),
    "unit_diagonal": lambda d, g: d.chance(0.3),
}

REQUIRED: dict[str, Role] = {
    "shape": lambda d, g: d.shape(0, 3),
    "dtype": lambda d, g: d.dtype(),
    "new_dtype": lambda d, g: d.dtype(),
    "args": lambda d, g: None,
    "arrays": _alike,
    "arys": _alike,
    "tup": _alike,
    "operands": _alike,
    "arrs": _alike,
    "axis": lambda d, g: d.axis(first_of(g)),
    "axes": lambda d, g: d.axes(first_of(g), 1),
    "axis1": lambda d, g: d.axis(first_of(g)),
    "axis2": lambda d, g: d.axis(first_of(g)),
    "dimension": lambda d, g: d.whole(0, max(d.of(first_of(g)).ndim - 1, 0)),
    "dimensions": lambda d, g: d.axes(first_of(g)),
    "shift": lambda d, g: d.whole(-4, 4),
    "reps": lambda d, g: d.choose((2, 3, (2, 1), (1, 2, 2))),
    "source": lambda d, g: d.axis(first_of(g)),
    "destination": lambda d, g: d.axis(first_of(g)),
    "n": lambda d, g: d.whole(1, 6),
    "N": lambda d, g: d.whole(0, 6),
    "M": lambda d, g: d.whole(0, 8),
    "k": lambda d, g: d.whole(0, 3),
    "beta": lambda d, g: d.number(0.1, 9),
    "num_classes": lambda d, g: d.whole(1, 5),
    "fill_value": lambda d, g: d.choose((0, 1, -1, 2.5)),
    "indices_or_sections": lambda d, g: d.choose((1, 2, 3, [1], [1, 2], [0, 2, 2])),
    "key": lambda d, g: d.array("unsigned", shape=(2,)),
    "size": lambda d, g: d.whole(0, 9),
    "start": lambda d, g: d.number(),
    "stop": lambda d, g: d.number(),
    "reps_": lambda d, g: (2,),
    "lmbda": lambda d, g: d.broadcastable(first_of(g), "float"),
    "xi": lambda d, g: [d.array("any", 1, 1) for _ in range(d.whole(1, 3))],
}

# What pays off where a function is not told apart from others by name: (kind, fill, least rank).
FAMILIES: dict[str, tuple[str, str, int]] = {
    "numpy.linalg.": ("inexact", "square", 2),
    "numpy.fft.": ("number", "plain", 1),
    "scipy.special.": ("float", "unit", 0),
    "scipy.stats.": ("single", "unit", 0),
    "scipy.linalg.": ("single", "square", 2),
    "scipy.signal.": ("single", "plain", 1),
    "scipy.fft.": ("single", "plain", 1),
    "lax.linalg.": ("inexact", "square", 2),
    "nn.": ("float", "plain", 0),
}
NEVER = frozenset(
    [
        "out",
        "out_sharding",
        "sharding",
        "device",
        "copy",
        "name",
        "implementation",
        "debug",
        "axis_name",
    ]
)


def family(name: str) -> tuple[str, str, int]:
    for start, what in FAMILIES.items():
        if name.startswith(start):
            return what
    return "any", "plain", 0


def arguments(d: Draw, name: str, signature: inspect.Signature) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a function by the names of its parameters."""
    given: Given = {}
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    for p in signature.parameters.values():
        required = p.default is inspect.Parameter.empty
        if p.kind is p.VAR_POSITIONAL:
            if p.name == "args":  # the operands of a ufunc, or nothing
                more = [] if args else _ufunc_operands(d, name)
            else:
                more = REQUIRED.get(p.name, _alike)(d, given)
            args += more
            given[p.name] = more
        elif p.kind is p.VAR_KEYWORD:
            continue
        elif required:
            given[p.name] = v = _required(d, name, p.name, given)
            if p.kind is p.KEYWORD_ONLY:
                keywords[p.name] = v
            else:
                args.append(v)
        elif p.name not in NEVER and p.name in OPTIONS and d.chance(0.3):
            try:
                given[p.name] = keywords[p.name] = OPTIONS[p.name](d, given)
            except NoRole:
                continue
    return args, keywords


def _ufunc_operands(d: Draw, name: str) -> list[Any]:
    x = d.array()
    return [x] if name.endswith(("negative",)) else [x, d.broadcastable(x)]


def _required(d: Draw, name: str, parameter: str, given: Given) -> Any:
    kind, fill, low = family(name)
    arrays = [v for v in given.values() if isinstance(v, Ref)]
    if not arrays and parameter in FIRST:
        return _first(d, kind, fill, low)
    if arrays and (parameter in SECOND or parameter in FIRST):
        return _next(d, name, arrays[0], kind, fill)
    if parameter in REQUIRED:
        return REQUIRED[parameter](d, given)
    if name.startswith(("scipy.stats.", "scipy.special.")):  # parameters of distributions
        return d.broadcastable(arrays[0], "single", "positive") if arrays else d.new("single")
    raise NoRole(f"{name}: {parameter}")


def _first(d: Draw, kind: str, fill: str, low: int) -> Ref:
    if fill == "square":
        n = d.whole(1, 6)
        return d.new(kind, (*d.shape(0, 1)[:1], n, n), d.choose(("square", "positive_definite")))
    if fill == "plain" and kind == "any":
        return d.array(d.choose(("any", "any", "real", "float", "integral", "single")), low)
    return d.array(kind, low, fill=fill)


def _next(d: Draw, name: str, first: Ref, kind: str, fill: str) -> Any:
    if name.startswith("lax."):
        return d.like(first)
    if fill == "square":
        return d.like(first, fill="square")
    return d.broadcastable(first, kind, fill)
