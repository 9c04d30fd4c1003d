"""Recipes: shapes."""

from typing import Any

from tests.fuzz.draw import Draw
from tests.fuzz.recipes.table import Drawn, dtype_of, recipe


@recipe("numpy.reshape", "lax.reshape")
def reshape(d: Draw) -> Drawn:
    x = d.array()
    return [x, d.factored(d.of(x).size)], {}


@recipe("numpy.broadcast_to")
def broadcast_to(d: Draw) -> Drawn:
    x = d.array()
    return [x, (*d.shape(0, 2), *(d.whole(1, 4) if n == 1 else n for n in d.of(x).shape))], {}


@recipe("lax.broadcast_in_dim")
def broadcast_in_dim(d: Draw) -> Drawn:
    x = d.array(high=2)
    shape, more = d.of(x).shape, d.whole(1, 4)
    return [x, (more, *shape), tuple(range(1, len(shape) + 1))], {}


@recipe("numpy.pad")
def pad(d: Draw) -> Drawn:
    x = d.array(low=1)
    widths = [(d.whole(0, 3), d.whole(0, 3)) for _ in d.of(x).shape]
    modes = [
        "constant",
        "edge",
        "reflect",
        "symmetric",
        "wrap",
        "linear_ramp",
        "maximum",
        "mean",
        "median",
        "minimum",
    ]
    return [x, d.choose((widths, d.whole(0, 2)))], {"mode": d.choose(modes)}


@recipe("lax.pad")
def lax_pad(d: Draw) -> Drawn:
    x = d.array(low=1)
    config = [(d.whole(-1, 2), d.whole(-1, 2), d.whole(0, 2)) for _ in d.of(x).shape]
    return [x, d.new(shape=(), dtype=dtype_of(d, x)), config], {}


@recipe("numpy.repeat")
def repeat(d: Draw) -> Drawn:
    x = d.array(low=1)
    axis = d.axis(x)
    if d.chance(0.5):
        return [x, d.whole(0, 3)], {"axis": d.choose((None, axis))}
    counts = d.new(shape=(d.of(x).shape[axis],), dtype="int32", fill="few")
    keywords: dict[str, Any] = {"total_repeat_length": d.whole(1, 9)} if d.chance(0.5) else {}
    return [x, counts], {"axis": axis, **keywords}


@recipe("numpy.roll")
def roll(d: Draw) -> Drawn:
    x = d.array(low=1)
    if d.chance(0.3):
        return [x, d.new(shape=(), dtype="int32", fill="wild_indices")], {"axis": d.axis(x)}
    return [x, d.whole(-9, 9)], {"axis": d.choose((None, d.axis(x)))}


@recipe("numpy.permute_dims", "lax.transpose")
def permute(d: Draw) -> Drawn:
    x = d.array()
    return [x, tuple(int(a) for a in d.rng.permutation(d.of(x).ndim))], {}


@recipe("lax.squeeze", "numpy.squeeze")
def squeeze(d: Draw) -> Drawn:
    x = d.array(shape=(1, *d.shape(0, 2)))
    return [x, (0,)], {}


@recipe("lax.expand_dims")
def expand_dims(d: Draw) -> Drawn:
    x = d.array(high=2)
    return [x, (d.whole(0, d.of(x).ndim),)], {}


@recipe("lax.rev")
def rev(d: Draw) -> Drawn:
    x = d.array(low=1)
    return [x, tuple(a % d.of(x).ndim for a in d.axes(x))], {}


@recipe("lax.collapse")
def collapse(d: Draw) -> Drawn:
    return [d.array(low=2), 0, 2], {}


@recipe("lax.split")
def split(d: Draw) -> Drawn:
    a, b = d.whole(0, 3), d.whole(1, 3)
    return [d.array(shape=(a + b, *d.shape(0, 1))), (a, b)], {}


@recipe("lax.tile")
def tile(d: Draw) -> Drawn:
    x = d.array(low=1)
    return [x, tuple(d.whole(0, 2) for _ in d.of(x).shape)], {}


@recipe("lax.concatenate")
def concatenate(d: Draw) -> Drawn:
    x = d.array(low=1)
    return [[x, d.like(x)], d.whole(0, d.of(x).ndim - 1)], {}


@recipe("lax.broadcast")
def broadcast(d: Draw) -> Drawn:
    return [d.array(high=1), (2, 3)], {}


@recipe("lax.iota")
def iota(d: Draw) -> Drawn:
    return [d.dtype("real"), d.whole(0, 9)], {}


@recipe("lax.broadcasted_iota")
def broadcasted_iota(d: Draw) -> Drawn:
    return [d.dtype("real"), (d.whole(1, 4), d.whole(1, 5)), d.whole(0, 1)], {}


@recipe("numpy.unpackbits")
def unpackbits(d: Draw) -> Drawn:
    return [d.new(shape=d.shape(1, 2), dtype="uint8", fill="whole")], {"axis": d.choose((None, -1))}


@recipe("numpy.block")
def block(d: Draw) -> Drawn:
    x = d.array("single", 2, 2)
    return [[[x, d.like(x)], [d.like(x), x]]], {}


@recipe("numpy.ix_")
def ix_(d: Draw) -> Drawn:
    return [d.array("int", 1, 1), d.array("int", 1, 1)], {}


@recipe("numpy.unstack", "lax.unstack")
def unstack(d: Draw) -> Drawn:
    return [d.array(shape=(3, *d.shape(0, 1)))], {}


@recipe("numpy.dsplit")
def dsplit(d: Draw) -> Drawn:
    return [d.new(shape=(2, 3, 4)), d.choose((2, [1, 3]))], {}


@recipe("numpy.resize")
def resize(d: Draw) -> Drawn:
    return [d.array(), d.shape(1, 2)], {}


@recipe("numpy.gradient")
def gradient(d: Draw) -> Drawn:
    return [d.new("single", tuple(d.whole(2, 7) for _ in range(d.whole(1, 2))))], {}


@recipe("numpy.vander")
def vander(d: Draw) -> Drawn:
    return [d.array("single", 1, 1)], {"N": d.whole(0, 4)}


@recipe("numpy.full_like", "lax.full_like")
def full_like(d: Draw) -> Drawn:
    return [d.array(), d.choose((0, 1, 3))], {}


@recipe("numpy.tile")
def numpy_tile(d: Draw) -> Drawn:
    return [d.array(high=2), d.choose((2, 0, (2, 1), (1, 2, 2)))], {}


@recipe("numpy.indices")
def indices(d: Draw) -> Drawn:
    return [d.shape(0, 2)], {"sparse": d.chance(0.5)}


@recipe("numpy.diag_indices_from")
def diag_indices_from(d: Draw) -> Drawn:
    n = d.whole(1, 4)
    return [d.array(shape=(n, n))], {}


@recipe("numpy.packbits")
def packbits(d: Draw) -> Drawn:
    x = d.array(d.choose(("bool", "unsigned")), 1)
    return [x], {"axis": d.axis(x)}


@recipe("lax.broadcast_like")
def broadcast_like(d: Draw) -> Drawn:
    x = d.array()
    return [d.like(x), x], {}


@recipe("lax.broadcast_to_rank")
def broadcast_to_rank(d: Draw) -> Drawn:
    return [d.array(high=2), d.whole(2, 4)], {}
