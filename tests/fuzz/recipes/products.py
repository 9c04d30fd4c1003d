"""Recipes: products."""

from tests.fuzz.draw import Draw
from tests.fuzz.recipes.table import Drawn, recipe


def _extents(d: Draw, count: int) -> list[int]:
    large = d.large and d.chance(0.5)
    return [int(d.choose((64, 127, 200))) if large else d.size() for _ in range(count)]


@recipe("numpy.matmul", "numpy.linalg.matmul", "lax.batch_matmul", "numpy.dot", "lax.dot")
def matmul(d: Draw) -> Drawn:
    m, k, n = _extents(d, 3)
    kind = d.choose(("single", "single", "float", "int", "complex", "number"))
    a = d.array(kind, shape=(m, k))
    b = d.new(kind, (k, n), dtype=str(d.of(a).dtype))
    return [a, b], {}


@recipe("numpy.einsum")
def einsum(d: Draw) -> Drawn:
    i, j, k = _extents(d, 3)
    text, shapes = d.choose(
        (
            ("ij,jk->ik", [(i, j), (j, k)]),
            ("ij,ij->", [(i, j), (i, j)]),
            ("ii->i", [(i, i)]),
            ("ij->ji", [(i, j)]),
            ("bij,bjk->bik", [(2, i, j), (2, j, k)]),
            ("i,j,k->ijk", [(i,), (j,), (k,)]),
            ("...i,...i->...", [(j, i), (j, i)]),
            ("ij,jk,kl->il", [(i, j), (j, k), (k, 3)]),
            ("iij->j", [(i, i, j)]),
            ("ij,ik->jk", [(i, j), (i, k)]),
            ("ij->", [(i, j)]),
        )
    )
    kind = d.choose(("single", "float", "int", "complex"))
    return [text, *(d.array(kind, shape=s) for s in shapes)], {}


@recipe("lax.dot_general")
def dot_general(d: Draw) -> Drawn:
    b, m, k, n = _extents(d, 4)
    kind = d.choose(("single", "float", "int", "complex"))
    x = d.array(kind, shape=(b, m, k))
    same = str(d.of(x).dtype)
    if d.chance(0.5):
        return [x, d.new(shape=(k, b, n), dtype=same), (((2,), (0,)), ((0,), (1,)))], {}
    return [x, d.new(shape=(n, m, k), dtype=same), (((2, 1), (2, 1)), ((), ()))], {}


@recipe("numpy.tensordot", "numpy.linalg.tensordot")
def tensordot(d: Draw) -> Drawn:
    i, j, k = _extents(d, 3)
    x, y = d.array("number", shape=(i, j)), d.array("number", shape=(j, k))
    return [x, y], {"axes": d.choose((1, ((1,), (0,)), ([1], [0])))}


@recipe("numpy.vecdot", "numpy.linalg.vecdot", "numpy.vdot", "numpy.inner")
def vecdot(d: Draw) -> Drawn:
    x = d.array("number", 1, 2)
    return [x, d.like(x, same_dtype=d.chance(0.7))], {}


@recipe("numpy.matvec")
def matvec(d: Draw) -> Drawn:
    m, k = _extents(d, 2)
    return [d.array("number", shape=(m, k)), d.array("number", shape=(k,))], {}


@recipe("numpy.vecmat")
def vecmat(d: Draw) -> Drawn:
    m, k = _extents(d, 2)
    return [d.array("number", shape=(m,)), d.array("number", shape=(m, k))], {}


@recipe("numpy.linalg.multi_dot")
def multi_dot(d: Draw) -> Drawn:
    i, j, k = _extents(d, 3)
    return [[d.array("single", shape=s) for s in ((i, j), (j, k), (k, 2))]], {}


@recipe("lax.ragged_dot")
def ragged_dot(d: Draw) -> Drawn:
    m, k, n = 7, d.whole(1, 5), d.whole(1, 5)
    sizes = d.new(shape=(3,), dtype="int32", fill="indices")
    return [d.new("single", (m, k)), d.new("single", (3, k, n)), sizes], {}


@recipe("numpy.cross", "numpy.linalg.cross")
def cross(d: Draw) -> Drawn:
    shape = (*d.shape(0, 1), 3)
    return [d.array("single", shape=shape), d.array("single", shape=shape)], {}


@recipe("nn.dot_product_attention")
def attention(d: Draw) -> Drawn:
    b, t, s, h, f = 2, d.whole(1, 5), d.whole(1, 5), 2, d.whole(1, 4)
    shapes = ((b, t, h, f), (b, s, h, f), (b, s, h, f))
    causal = {"is_causal": True} if d.chance(0.4) else {}
    return [d.new("single", x) for x in shapes], causal


@recipe("nn.scaled_matmul")
def scaled_matmul(d: Draw) -> Drawn:
    shapes = ((1, 3, 8), (1, 5, 8), (1, 3, 2), (1, 5, 2))
    return [d.new("single", x) for x in shapes], {}
