"""Recipes: selections."""

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Applied, Made
from tests.fuzz.recipes.table import Drawn, recipe


@recipe("numpy.where")
def where(d: Draw) -> Drawn:
    c = d.array("bool")
    return [c, d.broadcastable(c), d.broadcastable(c)], {}


@recipe("lax.select")
def select(d: Draw) -> Drawn:
    x = d.array()
    return [d.array("bool", shape=d.of(x).shape), x, d.like(x)], {}


@recipe("lax.select_n")
def select_n(d: Draw) -> Drawn:
    x = d.array()
    which = d.new(shape=d.of(x).shape, dtype="int32", fill="indices")
    return [which, x, d.like(x), d.like(x)], {}


@recipe("numpy.select")
def numpy_select(d: Draw) -> Drawn:
    x = d.array("single")
    shape = d.of(x).shape
    return [[d.array("bool", shape=shape), d.array("bool", shape=shape)], [x, d.like(x)]], {
        "default": d.choose((0, 1.5))
    }


@recipe("numpy.piecewise")
def piecewise(d: Draw) -> Drawn:
    x = d.array("single", 1)
    shape = d.of(x).shape
    conditions = [d.new("bool", shape), d.new("bool", shape)]
    return [x, conditions, [Applied("numpy.sin"), 2.5]], {}


@recipe("lax.clamp")
def clamp(d: Draw) -> Drawn:
    x = d.array("real")
    return [d.like(x), x, d.like(x)], {}


@recipe("numpy.clip")
def clip(d: Draw) -> Drawn:
    x = d.array("real")
    return [x, d.broadcastable(x, "real"), d.broadcastable(x, "real")], {}


@recipe("numpy.compress", "numpy.extract")
def compress(d: Draw) -> Drawn:
    x = d.array("any", 1, 1)
    return [d.array("bool", shape=d.of(x).shape), x], {}


@recipe("numpy.trim_zeros")
def trim_zeros(d: Draw) -> Drawn:
    return [d.new("single", (d.size(),), "few")], {}


@recipe("numpy.isin")
def isin(d: Draw) -> Drawn:
    return [d.array("int"), d.array("int", 1, 1)], {"invert": d.chance(0.5)}


@recipe("numpy.union1d", "numpy.intersect1d", "numpy.setdiff1d", "numpy.setxor1d")
def sets(d: Draw) -> Drawn:
    return [d.new(shape=(d.size(),), dtype="int32", fill="few") for _ in range(2)], {}


@recipe("numpy.lexsort")
def lexsort(d: Draw) -> Drawn:
    x = d.array("real", 1, 2)
    return [(x, d.like(x))], {}


@recipe("lax.sort")
def sort(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    if d.chance(0.5):
        return [x], {"dimension": d.axis(x)}
    return [(x, d.array(shape=d.of(x).shape))], {"num_keys": 1, "dimension": d.axis(x)}


@recipe("lax.sort_key_val")
def sort_key_val(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    return [x, d.array(shape=d.of(x).shape)], {"dimension": d.axis(x)}


@recipe("lax.argmax", "lax.argmin")
def argmax(d: Draw) -> Drawn:
    x = d.array("real", 1, 3)
    return [x, d.whole(0, d.of(x).ndim - 1), Made("numpy.int32")], {}


@recipe("numpy.quantile", "numpy.percentile", "numpy.nanquantile", "numpy.nanpercentile")
def quantile(d: Draw) -> Drawn:
    x = d.array("float", 1, 3)
    methods = ("linear", "lower", "higher", "nearest", "midpoint")
    q = d.new("single", d.shape(0, 1), "unit")
    return [x, q], {"axis": d.choose((None, d.axis(x))), "method": d.choose(methods)}


@recipe("lax.associative_scan")
def associative_scan(d: Draw) -> Drawn:
    x = d.array("single", 1, 3)
    return [Made(d.choose(("lax.add", "lax.max", "lax.mul"))), x], {"axis": d.axis(x)}


@recipe("lax.map")
def lax_map(d: Draw) -> Drawn:
    x = d.array("single", 1, 3)
    return [Made(d.choose(("numpy.sin", "numpy.sum", "numpy.cumsum", "numpy.sort"))), x], {}


@recipe("numpy.apply_along_axis")
def along_axis(d: Draw) -> Drawn:
    x = d.array("single", 1, 3)
    return [Made(d.choose(("numpy.sum", "numpy.sort", "numpy.cumsum"))), d.axis(x), x], {}


@recipe("numpy.apply_over_axes")
def over_axes(d: Draw) -> Drawn:
    x = d.array("single", 1, 3)
    return [Made(d.choose(("numpy.sum", "numpy.max"))), x, d.axes(x, 1)], {}


@recipe("numpy.fromfunction")
def fromfunction(d: Draw) -> Drawn:
    return [Made(d.choose(("numpy.add", "numpy.hypot"))), (d.whole(1, 4), d.whole(1, 5))], {}


@recipe("lax.fori_loop")
def fori_loop(d: Draw) -> Drawn:
    body = Made("lax.add") if d.chance(0) else Applied("numpy.where", (True,))
    return [0, d.whole(0, 4), body, d.new("int", ())], {}


@recipe("numpy.argsort")
def argsort(d: Draw) -> Drawn:
    x = d.array()
    return [x], {"axis": d.choose((None, d.axis(x))), "descending": d.chance(0.5)}
