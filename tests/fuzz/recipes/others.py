"""Recipes: polynomials, images, others."""

from tests.fuzz.draw import Draw
from tests.fuzz.recipes.table import Drawn, recipe


@recipe("numpy.polyval")
def polyval(d: Draw) -> Drawn:
    return [d.array("single", 1, 1), d.array("single")], {}


@recipe("numpy.polyfit")
def polyfit(d: Draw) -> Drawn:
    n = d.whole(4, 9)
    return [d.new("single", (n,), "sorted"), d.new("single", (n,)), d.whole(0, 2)], {}


@recipe("numpy.polyadd", "numpy.polysub", "numpy.polymul", "numpy.polydiv")
def polynomials(d: Draw) -> Drawn:
    return [d.new("single", (d.whole(2, 5),), "positive") for _ in range(2)], {}


@recipe("numpy.poly", "numpy.polyint", "numpy.polyder", "numpy.roots")
def polynomial(d: Draw) -> Drawn:
    return [d.new("single", (d.whole(2, 5),), "positive")], {}


@recipe("numpy.histogram", "numpy.histogram_bin_edges")
def histogram(d: Draw) -> Drawn:
    return [d.new("single", (d.size() + 1,))], {"bins": d.whole(1, 6), "range": (-2.0, 2.0)}


@recipe("numpy.histogram2d")
def histogram2d(d: Draw) -> Drawn:
    x = d.new("single", (d.whole(1, 9),))
    return [x, d.like(x)], {"bins": d.whole(1, 4)}


@recipe("numpy.histogramdd")
def histogramdd(d: Draw) -> Drawn:
    return [d.new("single", (d.whole(1, 9), 2))], {"bins": d.whole(1, 4)}


@recipe("image.resize")
def image_resize(d: Draw) -> Drawn:
    x = d.new("single", (d.whole(2, 6), d.whole(2, 6)))
    methods = ("nearest", "linear", "cubic", "lanczos3", "lanczos5")
    return [x, (d.whole(1, 8), d.whole(1, 8)), d.choose(methods)], {"antialias": d.chance(0.5)}


@recipe("image.scale_and_translate")
def scale_and_translate(d: Draw) -> Drawn:
    x = d.new("single", (4, 5))
    scale, shift = d.new("single", (2,), "positive"), d.new("single", (2,), "unit")
    return [x, (5, 6), (0, 1), scale, shift, d.choose(("linear", "cubic"))], {}


@recipe("scipy.ndimage.map_coordinates")
def map_coordinates(d: Draw) -> Drawn:
    n = d.whole(1, 6)
    modes = ("constant", "nearest", "wrap", "mirror", "reflect")
    where_ = [d.new("single", (n,), "positive") for _ in range(2)]
    return [d.new("single", (4, 5)), where_, d.whole(0, 1)], {"mode": d.choose(modes)}


@recipe("scipy.cluster.vq.vq")
def vq(d: Draw) -> Drawn:
    n = d.whole(1, 4)
    return [d.new("single", (5, n)), d.new("single", (3, n))], {}


@recipe("nn.glu")
def glu(d: Draw) -> Drawn:
    return [d.new("single", (*d.shape(0, 1), 2 * d.whole(1, 3)))], {}


@recipe("nn.one_hot")
def one_hot(d: Draw) -> Drawn:
    return [d.new(shape=d.shape(0, 2), dtype="int32", fill="indices"), d.whole(1, 5)], {}


@recipe("lax.fft")
def lax_fft(d: Draw) -> Drawn:
    n = d.whole(1, 9)
    return [d.new("complex", (2, n)), d.choose(("fft", "ifft")), (n,)], {}


@recipe("scipy.fft.dct", "scipy.fft.idct", "scipy.fft.dctn", "scipy.fft.idctn")
def dct(d: Draw) -> Drawn:
    return [d.new("single", tuple(d.whole(1, 7) for _ in range(d.whole(1, 2))))], {}


@recipe("scipy.integrate.trapezoid", "numpy.trapezoid")
def trapezoid(d: Draw) -> Drawn:
    y = d.array("single", 1, 2)
    return [y], {"dx": d.number(0.1, 2), "axis": d.axis(y)}


@recipe("numpy.unwrap")
def unwrap(d: Draw) -> Drawn:
    x = d.array("float", 1)
    return [x], {"axis": d.axis(x)}
