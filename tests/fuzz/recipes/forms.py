"""Recipes: indices and updates, operators, methods, control flow and derivatives around functions
(tests/fuzz/forms.py)."""

from typing import Any

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Applied, Made, Ref
from tests.fuzz.recipes.table import Drawn, recipe

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt")
BITWISE = ("and_", "or_", "xor", "lshift", "rshift")
# Functions of one array that keep its shape; the smooth ones are differentiated.
SMOOTH = (
    "numpy.sin", "numpy.tanh", "numpy.square", "numpy.arctan", "nn.sigmoid", "nn.softplus",
    "numpy.cosh", "lax.logistic", "nn.gelu", "lax.erf", "numpy.expm1",
)  # fmt: skip
ALONG_ROWS = ("numpy.cumsum", "nn.softmax", "numpy.flip", "numpy.sort", "nn.log_softmax")
ANY = (*SMOOTH, "numpy.negative", "numpy.abs", "numpy.floor", "numpy.sign", "nn.relu")


@recipe("forms.item")
def item(d: Draw) -> Drawn:
    x = d.array("any", 1, 3)
    return [x, index(d, x)], {}


@recipe("forms.updated")
def updated(d: Draw) -> Drawn:
    x = d.array("number", 1, 3)
    how = d.choose(("set", "add", "subtract", "multiply", "mul", "min", "max", "divide", "power"))
    keywords: dict[str, Any] = {}
    if d.chance(0.4):
        keywords["mode"] = d.choose(("drop", "clip", "fill", "wrap"))
    if d.chance(0.2):
        return [x, index(d, x), "get"], {"mode": d.choose(("fill", "clip", "wrap"))}
    return [x, index(d, x), how, d.choose((1, 2, 0.5, -1))], keywords


def index(d: Draw, x: Ref) -> Any:
    """Numbers, slices with steps of both signs, arrays of places, masks, new axes, dots."""
    entries: list[Any] = []
    shape = d.of(x).shape
    arrays = d.choose(((2,), (3, 1), ()))
    for n in shape[: d.whole(1, len(shape))]:
        kind = d.whole(0, 6)
        if kind <= 2:
            entries.append(_slice(d, n))
        elif kind == 3:
            entries.append(d.whole(-n - 1, n))
        elif kind == 4:
            entries.append(d.new("int", arrays, d.choose(("indices", "wild_indices"))))
        elif kind == 5:
            entries.append(None)
        else:
            entries.append(d.new("signed", (), "wild_indices"))
    if len(entries) < len(shape) and d.chance(0.3):
        entries.insert(d.whole(0, len(entries)), Ellipsis)
    return tuple(entries)


def _slice(d: Draw, n: int) -> slice:
    def end() -> int | None:
        return None if d.chance(0.4) else d.whole(-n - 2, n + 2)

    return slice(end(), end(), d.choose((None, 1, 2, -1, -2, 3)))


@recipe("forms.operated")
def operated(d: Draw) -> Drawn:
    if d.chance(0.2):
        x = d.array("integral")
        return [d.choose(BITWISE), x, d.choose((d.like(x), 1, 3, 40, d.array("int", shape=())))], {}
    if d.chance(0.15):
        return [d.choose(("neg", "abs", "invert", "pos")), d.array("number")], {}
    x = d.array("any")
    operands = [x, d.broadcastable(x)]
    operands = operands[::-1] if d.chance(0.4) else operands
    name = d.choose(BINARY)
    if name == "pow" and d.of(operands[1]).dtype.kind in "iub" and not d.of(operands[1]).ndim:
        name = "mul"  # an exponent that is known decides no dtype, one that is traced does
    return [name, *operands], {}


@recipe("forms.method")
def method(d: Draw) -> Drawn:
    name = d.choose(
        ("sum", "prod", "max", "min", "mean", "argmax", "argmin", "cumsum", "sort", "argsort")
    )
    x = d.array("any" if name in ("sum", "argmax", "sort") else "real", 1, 3)
    if d.chance(0.3):
        return _shaped(d, x)
    return [x, name], {"axis": d.axis(x)}


def _shaped(d: Draw, x: Ref) -> Drawn:
    kind = d.whole(0, 3)
    if kind == 0:
        return [x, "astype", d.dtype()], {}
    if kind == 1:
        return [x, "reshape", -1], {}
    if kind == 2:
        return [x, "transpose", *map(int, d.rng.permutation(d.of(x).ndim))], {}
    return [x, d.choose(("ravel", "conj", "squeeze", "flatten", "copy"))], {}


@recipe("forms.attribute")
def attribute(d: Draw) -> Drawn:
    return [d.array("any"), d.choose(("T", "real", "imag", "mT"))], {}


def _function(d: Draw, names: tuple[str, ...]) -> Applied:
    return Applied(d.choose(names))


def _rows(d: Draw) -> tuple[Ref, Applied]:
    """An array with rows, and a function that keeps the shape of one."""
    x = d.array("single", 1, 3)
    return x, _function(d, ANY if d.of(x).ndim == 1 else ANY + ALONG_ROWS)


@recipe("forms.scanned")
def scanned(d: Draw) -> Drawn:
    x, f = _rows(d)
    return [Made("lax.scan"), f, x, d.chance(0.4)], {}


@recipe("forms.looped")
def looped(d: Draw) -> Drawn:
    count = d.new("int", (), "indices") if d.chance(0.5) else d.whole(0, 4)
    return [Made("lax.while_loop"), _function(d, ANY), d.array("single"), count], {}


@recipe("forms.branched")
def branched(d: Draw) -> Drawn:
    return [Made("lax.cond"), _function(d, ANY), _function(d, ANY), d.array("single")], {}


@recipe("forms.switched")
def switched(d: Draw) -> Drawn:
    which = d.new("int", (), "wild_indices")
    some = [_function(d, ANY) for _ in range(d.whole(1, 4))]
    return [Made("lax.switch"), which, some, d.array("single")], {}


@recipe("forms.mapped")
def mapped(d: Draw) -> Drawn:
    x = d.array("single", 2, 3)
    return [Made("vmap"), _function(d, ANY + ALONG_ROWS), x, d.axis(x), d.axis(x)], {}


@recipe("forms.derived")
def derived(d: Draw) -> Drawn:
    x = d.array("single", 1, 2)
    return [Made("grad"), _function(d, ANY + ALONG_ROWS), x], {}


@recipe("forms.twice_derived")
def twice_derived(d: Draw) -> Drawn:
    return [Made("grad"), Made("jvp"), _function(d, SMOOTH), d.array("single", 0, 2)], {}


@recipe("forms.derived_scan")
def derived_scan(d: Draw) -> Drawn:
    return [Made("grad"), Made("lax.scan"), _function(d, SMOOTH), d.array("single", 1, 2)], {}


@recipe("forms.referred")
def referred(d: Draw) -> Drawn:
    x = d.array("number", 1, 3)
    sizes = d.of(x).shape
    places = tuple(
        d.new("signed", (), "indices") if d.chance(0.5) else d.whole(0, max(n - 1, 0))
        for n in sizes[: d.whole(1, len(sizes))]
    )
    return [Made("new_ref"), x, places, d.choose((1, 2, -1))], {}


@recipe("forms.swept")
def swept(d: Draw) -> Drawn:
    x, f = _rows(d)
    return [Made("new_ref"), Made("lax.fori_loop"), f, x], {}
