"""The free sizes of an exported program, found from the shapes that it is called with: by Python
for a call, by operations of the module when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dims import Dim, poly_of
from calque.core.errors import InconclusiveDimensionOperation
from calque.core.key_paths import keystr
from calque.core.polynomials import Poly, summed
from calque.xla.exporting.scopes import Scope, is_named, scope_of
from calque.xla.lower.rules import Builder, listed
from calque.xla.lower.sizes import INT, size_of
from calque.xla.text.tree import Value, escaped
from calque.xla.text.types import Tensor, signature

_HEAD: Final = "Input shapes do not match the polymorphic shapes specification. "
_TAIL: Final = (
    ". Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for"
    " more details."
)


class Place(NamedTuple):
    """A dimension of an argument."""

    argument: int
    dimension: int


class Step(NamedTuple):
    """A size is found: (size at the place - rest) / factor; or, without a name, that size is
    compared with the specification."""

    place: Place
    given: Dim
    name: str = ""
    factor: int = 1
    rest: Poly = ()


@dataclass(frozen=True)
class Plan:
    """How the sizes of a scope follow from shapes."""

    scope: Scope
    steps: tuple[Step, ...]
    names: tuple[str, ...]  # of the arguments: args[0], kwargs['x']
    specifications: str


def argument_names(tree: pytrees.PyTreeDef) -> tuple[str, ...]:
    """args[0], kwargs['x']['y'] for the flat arguments of a function."""
    numbered = pytrees.unflatten(tree, range(tree.num_leaves))
    paths, _ = pytrees.flatten_with_path(numbered)
    found = {at: ("args", "kwargs")[path[0].idx] + keystr(path[1:]) for path, at in paths}
    return tuple(found[i] for i in range(tree.num_leaves))


def plan_of(avals: Sequence[ShapedArray], tree: pytrees.PyTreeDef) -> Plan | None:
    """How the free sizes of these types are found; None where all are fixed."""
    scope = scope_of(d for a in avals for d in a.shape)
    if scope is None:
        return None
    names = argument_names(tree)
    said = ", ".join(
        f"{name}.shape = ({', '.join(map(str, a.shape))}{',' if len(a.shape) == 1 else ''})"
        for name, a in zip(names, avals)
        if any(map(is_named, a.shape))
    )
    said = f"Using the following polymorphic shapes specifications: {said}. "
    waiting = [
        (Place(i, k), d) for i, a in enumerate(avals) for k, d in enumerate(a.shape) if is_named(d)
    ]
    steps: list[Step] = []
    known: set[str] = set()
    while waiting:
        left = []
        for place, d in waiting:
            step = _step(scope, place, d, known)
            if step is None:
                left.append((place, d))
            else:
                steps.append(step)
                known |= {step.name} if step.name else set()
        if len(left) == len(waiting):
            unknown = [n for n in scope.variables(d for _, d in left) if n not in known]
            rest = ", ".join(f"'{d}' for dimension size {_at(names, p)}" for p, d in left)
            raise ValueError(
                f"Cannot solve for values of dimension variables {{{str(unknown)[1:-1]}}}. We can"
                f" only solve linear uni-variate constraints. {said}Unprocessed specifications:"
                f" {rest}. Please see https://docs.jax.dev/en/latest/export/shape_poly.html"
                "#dimension-variables-must-be-solvable-from-the-input-shapes for more details."
            )
        waiting = left
    for name in scope.variables(scope.dim(p) for p in scope.known):
        if name not in known:
            raise ValueError(
                f"Encountered dimension variable '{name}' that is not appearing in the shapes of"
                f" the function arguments, but in the constraints {', '.join(scope.texts)}. {said}"
            )
    return Plan(scope, tuple(steps), names, said)


def _step(scope: Scope, place: Place, d: Any, known: set[str]) -> Step | None:
    unknown = [i for i in scope.roots(d.poly) if scope.atoms[i][1] not in known]
    if not unknown:
        return Step(place, d)
    if len(unknown) > 1:
        return None
    (i,) = unknown
    terms = [(m, c) for m, c in d.poly if m == (i,)]
    rest = summed(d.poly, tuple(terms), -1)
    if not terms or i in scope.roots(rest):
        return None
    return Step(place, d, scope.atoms[i][1], terms[0][1], rest)


def _at(names: Sequence[str], place: Place) -> str:
    return f"{names[place.argument]}.shape[{place.dimension}]"


class Numbers(Protocol):
    """Arithmetic with sizes, by Python or by operations of a module. Requirements name what is
    wrong in pieces: texts and sizes."""

    def size(self, place: Place) -> Any: ...
    def at(self, scope: Scope, poly: Poly, found: dict[str, Any]) -> Any: ...
    def less(self, x: Any, y: Any) -> Any: ...
    def quotient(self, x: Any, factor: int) -> tuple[Any, Any]: ...
    def require(self, kind: str, x: Any, y: Any, pieces: Sequence[Any]) -> None: ...


def solved(plan: Plan, numbers: Numbers) -> dict[str, Any]:
    """The sizes by name; requirements are checked on the way."""
    found: dict[str, Any] = {}
    obtained: list[Any] = []

    def told(*pieces: Any) -> list[Any]:
        shown = ["Obtained dimension variables: ", *obtained] if obtained else []
        return [_HEAD, *pieces, plan.specifications, *shown, _TAIL]

    for place, given, name, factor, rest in plan.steps:
        size, where = numbers.size(place), _at(plan.names, place)
        if not name:
            value = numbers.at(plan.scope, given.poly, found)
            what = f"Found inconsistency between dimension size {where} (= "
            told_of = told(what, size, f") and the specification '{given}' (= ", value, "). ")
            numbers.require("same", size, value, told_of)
            continue
        x = numbers.less(size, numbers.at(plan.scope, rest, found))
        if factor != 1:
            x, left = numbers.quotient(x, factor)
            what = f" when computing the value of '{name}'. "
            numbers.require("same", left, 0, told("Division had remainder ", left, what))
        found[name] = x
        what = f" from specification '{given}' for dimension {where} (= "
        obtained += [f"'{name}' = ", x, what, size, "), "]
        what = f"Expected value >= 1 for dimension variable '{name}'. "
        numbers.require("at least", x, 1, told(what))
    for poly in plan.scope.known:
        texts = ", ".join(plan.scope.texts)
        value = numbers.at(plan.scope, poly, found)
        numbers.require("at least", value, 0, told(f"The constraints are {texts}. "))
    return found


# ---------------------------------------------------------------- by Python


class OfShapes:
    """Sizes of given shapes, which may be free ones of another program."""

    def __init__(self, shapes: Sequence[Sequence[Any]]) -> None:
        self.shapes = shapes

    def size(self, place: Place) -> Any:
        return self.shapes[place.argument][place.dimension]

    def at(self, scope: Scope, poly: Poly, found: dict[str, Any]) -> Any:
        return scope.at_values(poly, found)

    def less(self, x: Any, y: Any) -> Any:
        return x - y

    def quotient(self, x: Any, factor: int) -> tuple[Any, Any]:
        return (x // factor, x % factor) if factor > 0 else (-x // -factor, -x % -factor)

    def require(self, kind: str, x: Any, y: Any, pieces: Sequence[Any]) -> None:
        try:
            holds = x == y if kind == "same" else x >= y
        except InconclusiveDimensionOperation:
            holds = False
        if not holds:
            raise ValueError("".join(map(str, pieces)))


# ---------------------------------------------------------------- by the module


class OfModule:
    """Sizes of the arguments of a function of a module, as numbers of the running program."""

    def __init__(self, b: Builder, args: Sequence[Value]) -> None:
        self.b, self.args = b, args

    def size(self, place: Place) -> Any:
        x, out = self.args[place.argument], Tensor((), INT)
        text = f", dim = {place.dimension} : ({x.type}) -> {out}"
        return self.b.one(out, "stablehlo.get_dimension_size ", x, text)

    def at(self, scope: Scope, poly: Poly, found: dict[str, Any]) -> Any:
        self.b.state.sizes = found
        return size_of(self.b, scope.dim(poly))

    def less(self, x: Any, y: Any) -> Any:
        return self.b.binary("subtract", x, y)

    def quotient(self, x: Any, factor: int) -> tuple[Any, Any]:
        divisor = self.b.scalar(factor, INT)
        return self.b.binary("divide", x, divisor), self.b.binary("remainder", x, divisor)

    def require(self, kind: str, x: Any, y: Any, pieces: Sequence[Any]) -> None:
        y = y if isinstance(y, Value) else self.b.scalar(y, INT)
        holds = self.b.compare("EQ" if kind == "same" else "GE", x, y)
        values = [p for p in pieces if isinstance(p, Value)]
        places = iter(range(len(values)))
        text = "".join(
            f"{{{next(places)}}}" if isinstance(p, Value) else escaped(p) for p in pieces
        )
        attributes = f'{{error_message = "{text}", has_side_effect = true}}'
        operands = [holds, *values]
        types = signature([v.type for v in operands], [])
        call = "stablehlo.custom_call @shape_assertion("
        self.b.emit([], call, *listed(operands), f") {attributes} : {types}")


def plain(shape: Sequence[Any], found: dict[str, Any]) -> tuple[Any, ...]:
    """A shape at these sizes."""
    return tuple(d.symbols.at_values(poly_of(d), found) if is_named(d) else d for d in shape)  # type: ignore[attr-defined]
