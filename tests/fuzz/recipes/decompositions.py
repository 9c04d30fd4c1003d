"""Recipes: decompositions."""

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Made, Ref
from tests.fuzz.recipes.table import Drawn, recipe


def _square(d: Draw, fill: str = "square", kind: str = "inexact") -> Ref:
    n = d.choose((40, 65, 130)) if d.large and d.chance(0.5) else d.whole(1, 6)
    name = "complex64" if kind == "inexact" and d.chance(0.25) else "float32"
    batch = (d.size(),) if d.chance(0.5) else ()  # small: of the long ones each would be a matrix
    return d.new(shape=(*batch, n, n), dtype=name, fill=fill)


@recipe("numpy.linalg.cholesky", "lax.linalg.cholesky", "scipy.linalg.cholesky")
def cholesky(d: Draw) -> Drawn:
    return [_square(d, "positive_definite", "single")], {}


@recipe(
    "numpy.linalg.eigh", "numpy.linalg.eigvalsh", "scipy.linalg.eigh", "lax.linalg.eigh",
    "scipy.linalg.cho_factor",
)  # fmt: skip
def eigh(d: Draw) -> Drawn:
    return [_square(d, "positive_definite", "single")], {}


@recipe("numpy.linalg.solve", "scipy.linalg.solve", "scipy.linalg.solve_triangular")
def solve(d: Draw) -> Drawn:
    a = d.new("single", (n := d.whole(1, 6), n), "square")
    return [a, d.new("single", (n, d.whole(1, 4)))], {}


@recipe("lax.linalg.triangular_solve")
def triangular_solve(d: Draw) -> Drawn:
    a = d.new("single", (n := d.whole(1, 6), n), "lower")
    keywords = {"left_side": True, "lower": True, "transpose_a": d.chance(0.5)}
    return [a, d.new("single", (n, d.whole(1, 4)))], keywords


@recipe("scipy.linalg.cho_solve")
def cho_solve(d: Draw) -> Drawn:
    a = d.new("single", (n := d.whole(1, 6), n), "lower")
    return [(a, True), d.new("single", (n,))], {}


@recipe("scipy.linalg.lu_solve")
def lu_solve(d: Draw) -> Drawn:
    n = d.whole(1, 5)
    factor = Made("scipy.linalg.lu_factor", (d.new("single", (n, n), "square"),))
    return [factor, d.new("single", (n, 2))], {"trans": d.whole(0, 2)}


@recipe("numpy.linalg.lstsq")
def lstsq(d: Draw) -> Drawn:
    m, n = d.whole(1, 6), d.whole(1, 4)
    return [d.new("single", (m, n), "square"), d.new("single", (m, 2))], {}


@recipe("numpy.linalg.tensorsolve")
def tensorsolve(d: Draw) -> Drawn:
    return [
        Made("numpy.reshape", (d.new("single", (6, 6), "square"), (2, 3, 6))),
        d.new("single", (2, 3)),
    ], {}


@recipe("numpy.linalg.tensorinv")
def tensorinv(d: Draw) -> Drawn:
    return [Made("numpy.reshape", (d.new("single", (6, 6), "square"), (2, 3, 6)))], {}


@recipe("numpy.linalg.matrix_power")
def matrix_power(d: Draw) -> Drawn:
    return [_square(d), d.whole(-2, 4)], {}


@recipe("numpy.linalg.norm")
def norm(d: Draw) -> Drawn:
    x = d.array("inexact", 1, 2)
    orders = (None, 1, 2, float("inf")) if d.of(x).ndim == 1 else (None, "fro", 1, "nuc", 2)
    return [x], {"ord": d.choose(orders)}


@recipe("lax.linalg.tridiagonal_solve")
def tridiagonal_solve(d: Draw) -> Drawn:
    n = d.whole(3, 7)
    rows = [d.new("single", (n,), "unit"), d.new("single", (n,), "positive")]
    return [rows[0], Made("numpy.add", (rows[1], 3.0)), d.new("single", (n,), "unit"),
            d.new("single", (n, 2))], {}  # fmt: skip


@recipe("lax.linalg.cholesky_update")
def cholesky_update(d: Draw) -> Drawn:
    n = d.whole(1, 5)
    return [
        Made("numpy.swapaxes", (d.new("single", (n, n), "lower"), 0, 1)),
        d.new("single", (n,)),
    ], {}


@recipe("lax.linalg.symmetric_product")
def symmetric_product(d: Draw) -> Drawn:
    n = d.whole(1, 5)
    return [d.new("single", (n, 3)), d.new("single", (n, n), "positive_definite")], {
        "symmetrize_output": d.chance(0.5)
    }


@recipe("lax.linalg.lu_pivots_to_permutation")
def pivots(d: Draw) -> Drawn:
    return [d.new(shape=(3,), dtype="int32", fill="indices"), 5], {}


@recipe("scipy.linalg.block_diag")
def block_diag(d: Draw) -> Drawn:
    return [d.array("single", 2, 2) for _ in range(d.whole(1, 3))], {}


@recipe("scipy.linalg.toeplitz", "scipy.linalg.circulant", "scipy.linalg.hankel")
def structured(d: Draw) -> Drawn:
    return [d.new("single", (d.whole(1, 6),))], {}


@recipe("scipy.linalg.hadamard")
def hadamard(d: Draw) -> Drawn:
    return [d.choose((1, 2, 4, 8))], {}


@recipe("scipy.linalg.companion", "scipy.linalg.fiedler", "scipy.linalg.fiedler_companion")
def companion(d: Draw) -> Drawn:
    return [d.new("single", (d.whole(2, 6),), "positive")], {}


@recipe("scipy.linalg.leslie")
def leslie(d: Draw) -> Drawn:
    n = d.whole(2, 5)
    return [d.new("single", (n,), "unit"), d.new("single", (n - 1,), "unit")], {}


@recipe("scipy.linalg.convolution_matrix")
def convolution_matrix(d: Draw) -> Drawn:
    return [d.new("single", (d.whole(1, 5),)), d.whole(1, 6)], {}


@recipe("scipy.linalg.eigh_tridiagonal")
def eigh_tridiagonal(d: Draw) -> Drawn:
    n = d.whole(2, 6)
    return [d.new("single", (n,)), d.new("single", (n - 1,), "unit")], {"eigvals_only": True}


@recipe("scipy.linalg.sqrtm")
def sqrtm(d: Draw) -> Drawn:
    return [d.new("single", (n := d.whole(1, 4), n), "positive_definite")], {}


@recipe("scipy.linalg.funm")
def funm(d: Draw) -> Drawn:
    return [d.new("single", (n := d.whole(1, 4), n), "square"), Made("numpy.sin")], {"disp": True}


@recipe("scipy.linalg.solve_sylvester")
def solve_sylvester(d: Draw) -> Drawn:
    m, n = d.whole(1, 4), d.whole(1, 4)
    return [
        d.new("single", (m, m), "square"),
        d.new("single", (n, n), "square"),
        d.new("single", (m, n)),
    ], {}


@recipe("scipy.linalg.qr_multiply")
def qr_multiply(d: Draw) -> Drawn:
    m, n = d.whole(3, 6), d.whole(1, 3)
    return [d.new("single", (m, n)), d.new("single", (2, m))], {}


@recipe("lax.linalg.householder_product")
def householder_product(d: Draw) -> Drawn:
    m, n = d.whole(3, 6), d.whole(1, 3)
    return [d.new("single", (m, n)), d.new("single", (n,), "unit")], {}


@recipe("lax.linalg.ormqr")
def ormqr(d: Draw) -> Drawn:
    m, n = d.whole(3, 6), d.whole(1, 3)
    return [d.new("single", (m, n)), d.new("single", (n,), "unit"), d.new("single", (m, 2))], {}


@recipe("scipy.linalg.expm")
def expm(d: Draw) -> Drawn:
    n = d.whole(1, 4)
    return [d.new("single", (*d.shape(0, 1)[:1], n, n), "unit")], {}


@recipe("scipy.linalg.expm_frechet")
def expm_frechet(d: Draw) -> Drawn:
    n = d.whole(1, 4)
    return [d.new("single", (n, n), "unit"), d.new("single", (n, n), "unit")], {}


@recipe("scipy.linalg.rsf2csf")
def rsf2csf(d: Draw) -> Drawn:
    n = d.whole(1, 4)
    upper = Made("numpy.triu", (d.new("single", (n, n), "square"),))
    return [upper, Made("numpy.eye", (n,))], {}


@recipe("numpy.linalg.outer")
def outer(d: Draw) -> Drawn:
    return [d.array("number", 1, 1), d.array("number", 1, 1)], {}
