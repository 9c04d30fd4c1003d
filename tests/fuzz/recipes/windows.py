"""Recipes: convolutions and windows."""

from typing import Any

import numpy as np

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Made, Ref
from tests.fuzz.recipes.table import Drawn, dtype_of, recipe, window


@recipe("lax.conv_general_dilated")
def conv(d: Draw) -> Drawn:
    n = d.choose((1, 2, 2))
    groups = d.choose((1, 1, 1, 2))
    channels, features = groups * d.whole(1, 3), groups * d.whole(1, 3)
    space = tuple(d.whole(3, 9) for _ in range(n))
    x = d.new("single", (d.whole(1, 3), channels, *space))
    w = d.new("single", (features, channels // groups, *window(d, n, 3)))
    keywords: dict[str, Any] = {"feature_group_count": groups} if groups > 1 else {}
    for option in ("lhs_dilation", "rhs_dilation"):
        if d.chance(0.3):
            keywords[option] = window(d, n, 2)
    pads = [(d.whole(-1, 2), d.whole(0, 2)) for _ in range(n)]
    return [x, w, window(d, n, 2), d.choose(("SAME", "VALID", pads))], keywords


@recipe("lax.conv")
def plain_conv(d: Draw) -> Drawn:
    x, w = d.new("single", (2, 3, 7, 6)), d.new("single", (4, 3, *window(d, 2, 3)))
    return [x, w, window(d, 2, 2), d.choose(("SAME", "VALID"))], {}


@recipe("lax.conv_with_general_padding")
def conv_padded(d: Draw) -> Drawn:
    x, w = d.new("single", (2, 3, 7, 6)), d.new("single", (4, 3, *window(d, 2, 3)))
    return [x, w, window(d, 2, 2), ((1, 0), (0, 2)), window(d, 2, 2), window(d, 2, 2)], {}


@recipe("lax.conv_transpose")
def conv_transpose(d: Draw) -> Drawn:
    x, w = d.new("single", (2, 5, 4, 3)), d.new("single", (*window(d, 2, 3), 3, 2))
    return [x, w, window(d, 2, 2), d.choose(("SAME", "VALID"))], {}


@recipe("lax.conv_general_dilated_local")
def conv_local(d: Draw) -> Drawn:
    x = d.new("single", (2, 3, 5, 4))
    return [x, d.new("single", (2, 12, 4, 3)), (1, 1), "VALID", (2, 2)], {}


@recipe("lax.conv_general_dilated_patches")
def patches(d: Draw) -> Drawn:
    x = d.new("single", (2, 3, 6, 5))
    return [x, window(d, 2, 3), window(d, 2, 2), d.choose(("SAME", "VALID"))], {}


@recipe("lax.reduce_window")
def reducewindow(d: Draw) -> Drawn:
    x = d.array(d.choose(("single", "float", "int")), 1, 3)
    n = d.of(x).ndim
    f, start = d.choose((("lax.add", 0), ("lax.max", "least"), ("lax.mul", 1), ("lax.min", "most")))
    code = d.of(x).dtype.kind
    if isinstance(start, str):
        ends = {"least": "min", "most": "max"}[start]
        if code in "iu":
            start = Made("numpy.asarray", (_extreme(d, x, ends),), (("dtype", dtype_of(d, x)),))
        else:
            start = float("-inf") if start == "least" else float("inf")
    else:
        start = Made("numpy.asarray", (start,), (("dtype", dtype_of(d, x)),))
    keywords: dict[str, Any] = {"padding": d.choose(("SAME", "VALID"))}
    if d.chance(0.4):
        keywords["window_strides"] = window(d, n, 2)
    if d.chance(0.2):
        keywords["window_dilation"] = window(d, n, 2)
    if d.chance(0.2):
        keywords["base_dilation"] = window(d, n, 2)
    return [x, start, Made(f), window(d, n, 3)], keywords


def _extreme(d: Draw, x: Ref, which: str) -> int:
    return int(getattr(np.iinfo(d.of(x).dtype), which))


@recipe("lax.reduce")
def reduce(d: Draw) -> Drawn:
    x = d.array("single", 1, 3)
    f, start = d.choose((("lax.add", 0.0), ("lax.max", float("-inf")), ("lax.mul", 1.0)))
    typed = Made("numpy.asarray", (start,), (("dtype", dtype_of(d, x)),))
    axes = tuple(sorted({a % d.of(x).ndim for a in d.axes(x, 1)}))
    return [x, typed, Made(f), axes], {}


@recipe(
    "lax.reduce_max", "lax.reduce_min", "lax.reduce_prod", "lax.reduce_sum", "lax.reduce_and",
    "lax.reduce_or", "lax.reduce_xor",
)  # fmt: skip
def reduce_axes(d: Draw) -> Drawn:
    x = d.array(d.choose(("real", "int", "bool", "single")), 1, 3)
    return [x, tuple(sorted({a % d.of(x).ndim for a in d.axes(x, 1)}))], {}


@recipe("scipy.signal.convolve2d", "scipy.signal.correlate2d")
def convolve2d(d: Draw) -> Drawn:
    x, y = d.array("single", 2, 2), d.new("single", window(d, 2, 3))
    return [x, y], {"mode": d.choose(("full", "same", "valid"))}


@recipe("numpy.convolve", "numpy.correlate")
def convolve(d: Draw) -> Drawn:
    kind = d.choose(("single", "int", "number"))
    x, y = d.array(kind, 1, 1), d.array(kind, 1, 1)
    return [x, y], {"mode": d.choose(("full", "same", "valid"))}


@recipe("scipy.signal.convolve", "scipy.signal.correlate", "scipy.signal.fftconvolve")
def signal_convolve(d: Draw) -> Drawn:
    n = d.whole(1, 2)
    x, y = (
        d.new("single", tuple(d.whole(3, 9) for _ in range(n))),
        d.new("single", window(d, n, 3)),
    )
    return [x, y], {"mode": d.choose(("full", "same", "valid"))}


@recipe("scipy.signal.stft", "scipy.signal.welch")
def spectra(d: Draw) -> Drawn:
    return [d.new("single", (*d.shape(0, 1)[:1], d.whole(16, 40)))], {"nperseg": d.whole(4, 12)}


@recipe("scipy.signal.csd")
def csd(d: Draw) -> Drawn:
    x = d.new("single", (d.whole(16, 40),))
    return [x, d.like(x)], {"nperseg": d.whole(4, 12)}


@recipe("scipy.signal.istft")
def istft(d: Draw) -> Drawn:
    return [d.new("complex", (5, d.whole(3, 8)))], {}
