"""Recipes: indices."""

from typing import Any

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Made, Ref
from tests.fuzz.recipes.table import Drawn, dtype_of, recipe, window


def _indices(d: Draw, shape: tuple[int, ...]) -> Ref:
    return d.new("int", shape, d.choose(("indices", "indices", "wild_indices")))


@recipe("numpy.take")
def take(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    keywords: dict[str, Any] = {"axis": d.axis(x)} if d.chance(0.7) else {}
    if d.chance(0.5):
        keywords["mode"] = d.choose(("clip", "wrap", "fill"))
    return [x, _indices(d, d.shape(0, 2))], keywords


@recipe("numpy.take_along_axis")
def take_along_axis(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    axis = d.axis(x)
    shape = list(d.of(x).shape)
    shape[axis] = d.whole(1, 5)
    i = d.new(shape=tuple(shape), dtype="int32", fill=d.choose(("indices", "wild_indices")))
    return [x, i], {"axis": axis}


@recipe("numpy.put_along_axis")
def put_along_axis(d: Draw) -> Drawn:
    (x, i), keywords = take_along_axis(d)
    return [x, i, d.choose((1, 0)), keywords["axis"]], {"inplace": False}


@recipe("numpy.put")
def put(d: Draw) -> Drawn:
    x = d.array("any", 1, 2)
    return [x, _indices(d, (3,)), d.like(x)], {"inplace": False, "mode": d.choose(("clip", "wrap"))}


@recipe("numpy.place")
def place(d: Draw) -> Drawn:
    x = d.array("any", 1, 2)
    return [x, d.array("bool", shape=d.of(x).shape), d.new("single", (2,))], {"inplace": False}


@recipe("numpy.fill_diagonal")
def fill_diagonal(d: Draw) -> Drawn:
    n = d.whole(1, 5)
    return [d.array("any", shape=(n, n)), d.whole(0, 3)], {"inplace": False}


@recipe("numpy.choose")
def choose(d: Draw) -> Drawn:
    shape = d.shape(0, 2)
    i = d.new(shape=shape, dtype="int32", fill="indices")
    return [i, [d.array("single", shape=shape) for _ in range(3)]], {
        "mode": d.choose(("clip", "wrap"))
    }


@recipe("numpy.delete")
def delete(d: Draw) -> Drawn:
    x = d.array("any", 1, 2)
    return [x, d.choose((0, [0], [0, 0]))], {"axis": d.choose((None, 0))}


@recipe("numpy.insert")
def insert(d: Draw) -> Drawn:
    x = d.array("any", 1, 2)
    return [x, d.choose((0, [0, 0])), d.choose((1, 0))], {"axis": d.choose((None, 0))}


@recipe("numpy.ravel_multi_index")
def ravel_multi_index(d: Draw) -> Drawn:
    shape = d.shape(0, 2)
    both = tuple(d.new(shape=shape, dtype="int32", fill="indices") for _ in range(2))
    return [both, (3, 4)], {"mode": d.choose(("clip", "wrap"))}


@recipe("numpy.unravel_index")
def unravel_index(d: Draw) -> Drawn:
    return [d.new(shape=d.shape(0, 2), dtype="int32", fill="wild_indices"), (3, 4)], {}


@recipe("lax.dynamic_slice")
def dynamic_slice(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    sizes = tuple(d.whole(0, n) for n in d.of(x).shape)
    starts = tuple(_start(d) for _ in sizes)
    return [x, starts, sizes], {}


def _start(d: Draw) -> Any:
    return d.whole(-3, 6) if d.chance(0.4) else d.new(shape=(), dtype="int32", fill="wild_indices")


@recipe("lax.dynamic_slice_in_dim")
def dynamic_slice_in_dim(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    axis = d.axis(x)
    return [x, _start(d), d.whole(0, d.of(x).shape[axis])], {"axis": axis}


@recipe("lax.dynamic_index_in_dim")
def dynamic_index_in_dim(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    return [x, _start(d)], {"axis": d.axis(x), "keepdims": d.chance(0.5)}


@recipe("lax.index_in_dim")
def index_in_dim(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    return [x, d.whole(0, 2)], {"axis": d.axis(x), "keepdims": d.chance(0.5)}


@recipe("lax.dynamic_update_slice")
def dynamic_update_slice(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    part = d.new(shape=tuple(d.whole(0, n) for n in d.of(x).shape), dtype=dtype_of(d, x))
    return [x, part, tuple(_start(d) for _ in d.of(x).shape)], {}


@recipe("lax.dynamic_update_slice_in_dim")
def dynamic_update_slice_in_dim(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    axis = d.axis(x)
    shape = list(d.of(x).shape)
    shape[axis] = d.whole(0, shape[axis])
    return [x, d.new(shape=tuple(shape), dtype=dtype_of(d, x)), _start(d), axis], {}


@recipe("lax.dynamic_update_index_in_dim")
def dynamic_update_index_in_dim(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    axis = d.axis(x)
    shape = list(d.of(x).shape)
    del shape[axis]
    return [x, d.new(shape=tuple(shape), dtype=dtype_of(d, x)), _start(d), axis], {}


@recipe("lax.slice")
def slice_(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    ends = [sorted((d.whole(0, n), d.whole(0, n))) for n in d.of(x).shape]
    starts, limits = tuple(a for a, _ in ends), tuple(b for _, b in ends)
    return [x, starts, limits], {"strides": window(d, len(ends), 2)} if d.chance(0.5) else {}


@recipe("lax.slice_in_dim")
def slice_in_dim(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    axis = d.axis(x)
    low, high = sorted((d.whole(0, d.of(x).shape[axis]), d.whole(0, d.of(x).shape[axis])))
    return [x, low, high], {"stride": d.whole(1, 2), "axis": axis}


@recipe("lax.gather")
def gather(d: Draw) -> Drawn:
    x = d.array("any", shape=(d.whole(1, 6), d.whole(1, 5)))
    numbers = Made(
        "lax.GatherDimensionNumbers",
        keywords=(
            ("offset_dims", (1,)),
            ("collapsed_slice_dims", (0,)),
            ("start_index_map", (0,)),
        ),
    )
    i = d.new(shape=(d.whole(0, 5), 1), dtype="int32", fill=d.choose(("indices", "wild_indices")))
    mode = {"mode": d.choose(("clip", "fill"))} if d.chance(0.6) else {}
    return [x, i, numbers, (1, d.of(x).shape[1])], mode


@recipe(
    "lax.scatter", "lax.scatter_add", "lax.scatter_max", "lax.scatter_min", "lax.scatter_mul",
    "lax.scatter_sub",
)  # fmt: skip
def scatter(d: Draw) -> Drawn:
    x = d.array(d.choose(("single", "int", "float")), shape=(d.whole(1, 6), d.whole(1, 5)))
    n = d.whole(0, 5)
    numbers = Made(
        "lax.ScatterDimensionNumbers",
        keywords=(
            ("update_window_dims", (1,)),
            ("inserted_window_dims", (0,)),
            ("scatter_dims_to_operand_dims", (0,)),
        ),
    )
    i = d.new(shape=(n, 1), dtype="int32", fill=d.choose(("indices", "wild_indices")))
    updates = d.new(shape=(n, d.of(x).shape[1]), dtype=dtype_of(d, x))
    return [x, i, updates, numbers], {"mode": d.choose(("clip", "fill"))} if d.chance(0.6) else {}


@recipe("lax.index_take")
def index_take(d: Draw) -> Drawn:
    x = d.array("any", shape=(d.whole(2, 6), d.whole(1, 5)))
    return [x, (d.new(shape=(3,), dtype="int32", fill="indices"),), (0,)], {}


@recipe("ops.segment_sum", "ops.segment_max", "ops.segment_min", "ops.segment_prod")
def segments(d: Draw) -> Drawn:
    n = d.size()
    x = d.array(d.choose(("single", "int")), shape=(n, *d.shape(0, 1)))
    i = d.new(shape=(n,), dtype="int32", fill=d.choose(("indices", "wild_indices")))
    return [x, i], {"num_segments": d.whole(1, 5)}


@recipe("numpy.searchsorted")
def searchsorted(d: Draw) -> Drawn:
    x = d.new("single", (d.size(),), "sorted")
    return [x, d.array("single")], {"side": d.choose(("left", "right"))}


@recipe("numpy.digitize")
def digitize(d: Draw) -> Drawn:
    return [d.array("single"), d.new("single", (d.size(),), "sorted")], {"right": d.chance(0.5)}


@recipe("numpy.interp")
def interp(d: Draw) -> Drawn:
    n = d.whole(1, 6)
    return [d.array("single"), d.new("single", (n,), "sorted"), d.new("single", (n,))], {}


@recipe("numpy.bincount")
def bincount(d: Draw) -> Drawn:
    return [d.new(shape=(d.size(),), dtype="int32", fill="few")], {"length": d.whole(1, 6)}


@recipe("numpy.partition", "numpy.argpartition")
def partition(d: Draw) -> Drawn:
    x = d.array("real", 1, 3)
    axis = d.axis(x)
    return [x, d.whole(0, max(d.of(x).shape[axis] - 1, 0))], {"axis": axis}


@recipe("lax.top_k", "lax.approx_max_k", "lax.approx_min_k")
def top_k(d: Draw) -> Drawn:
    x = d.array("single", 1, 3)
    return [x, d.whole(0, d.of(x).shape[-1])], {}
