"""The table of rules, and the builder that they write operations with.

    @rule("neg")
    def neg(b, out, x):
        return b.same("stablehlo.negate", out, x)

A rule takes the builder, the type of the result (a list of them for a primitive with several
results), the operands and, by name, the parameters of the equation; it gives the result, or the
list of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from calque.core.jaxprs import ClosedJaxpr
from calque.machine.state import process
from calque.xla.lower.sizes import INT, is_free, shape_operand, size_of
from calque.xla.text.constants import dense
from calque.xla.text.tree import Function, Location, Module, Op, Part, Region, Value
from calque.xla.text.types import TOKEN, Tensor, Type, signature

Rule = Callable[..., Any]
RULES: Final[dict[str, Rule]] = process.container("rules of XLA", {})
# Rules that take the equation itself: of primitives that carry programs or have effects.
EQUATION_RULES: Final[dict[str, Callable[..., list[Value]]]] = process.container(
    "rules of XLA for equations", {}
)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """The function below is the rule of these primitives."""

    def enter(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES and name not in EQUATION_RULES, name
            RULES[name] = function
        return function

    return enter


def equation_rule(*names: str) -> Callable[[Rule], Rule]:
    """The function below, of (builder, equation, types of the results, operands), is the rule of
    these primitives."""

    def enter(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES and name not in EQUATION_RULES, name
            EQUATION_RULES[name] = function
        return function

    return enter


@dataclass(eq=False)
class State:
    """What a module has gathered so far."""

    module: Module
    platform: str = "cpu"
    callbacks: list[Any] = field(default_factory=list)  # host functions that the program calls
    functions: dict[Any, Function] = field(default_factory=dict)  # of programs, by what they are
    adopted: dict[Any, str] = field(default_factory=dict)  # main functions of other modules
    kept: list[ClosedJaxpr] = field(default_factory=list)  # programs whose ids are keys
    names: dict[str, int] = field(default_factory=dict)
    scalars: dict[Any, Any] = field(default_factory=dict)  # constants as text, by their bits
    meshes: dict[Any, str] = field(default_factory=dict)  # by the names and sizes of their axes
    partitions: int = 1  # devices that the meshes of the program speak of
    partitions_asked: int = 1  # devices that it is compiled for
    rules: Mapping[Any, Any] = field(default_factory=dict)  # of primitives, ahead of all others
    exporting: bool = False  # is the module for others?
    gspmd: bool = False  # is it for XLA before Shardy?
    maps: bool = False  # are programs of parts written that are not run
    sizes: dict[str, Value] = field(default_factory=dict)  # free ones by name
    refines: bool = False  # does it call a program of free sizes?
    platforms: Sequence[str] = ()  # their names, where the program learns which it runs on
    platform_index: Value | None = None  # which of them it is
    moves_memory: bool = False  # does it speak of other memories than that of its devices?
    manual: Any = None  # the mesh of the program of parts that is being written
    mesh: Any = None  # that of the arguments and results, with devices
    is_compiled: bool = False  # or is it a text for readers?
    inspections: list[Any] = field(default_factory=list)  # what XLA is to tell shardings
    partitioned: list[Any] = field(default_factory=list)  # calls that its partitioner asks about

    def unique_name(self, name: str) -> str:
        """A name that no function of the module has: sort, sort_0, sort_1."""
        count = self.names.get(name)
        self.names[name] = 0 if count is None else count + 1
        return name if count is None else self.unique_name(f"{name}_{count}")


class Builder:
    """Appends operations to a region."""

    def __init__(self, state: State, region: Region, *, nested: bool = False) -> None:
        self.state, self.region, self.nested = state, region, nested
        self.location: Location | None = None
        self.path: tuple[str, ...] = ()  # of names, ahead of those of equations
        self.scopes: tuple[str, ...] = ()  # of the equation that is being lowered
        self.around: tuple[str, ...] = ()  # those of the call of this function
        self.token: Value | None = None  # the last effect that keeps its order

    def inside(
        self, types: Sequence[Type], *, header: bool = True, hint: str = ""
    ) -> tuple[Builder, list[Value]]:
        """A builder of a new region inside an operation, and its arguments."""
        args = [Value(t, hint) for t in types]
        return self.within(Region(args, header=header)), args

    def within(self, region: Region) -> Builder:
        b = Builder(self.state, region, nested=True)
        b.path, b.location = self.path, self.location
        b.scopes, b.around = self.scopes, self.around
        return b

    # --- operations -------------------------------------------------------------------------------

    def emit(self, types: Sequence[Type], *parts: Part, hints: Sequence[str] = ()) -> list[Value]:
        """An operation with these results."""
        results = [Value(t, hint) for t, hint in zip(types, hints or [""] * len(types))]
        self.region.ops.append(Op(parts, tuple(results), self.location))
        return results

    def one(self, type: Type, *parts: Part, hint: str = "") -> Any:
        """An operation with one result."""
        return self.emit([type], *parts, hints=[hint])[0]

    def same(self, op: str, out: Tensor, *xs: Value) -> Value:
        """An operation of StableHLO whose operands and result mostly have one type."""
        types = {x.type for x in xs} | {out}
        ending = f" : {out}" if len(types) == 1 else f" : {signature([x.type for x in xs], [out])}"
        return self.one(out, f"{op} ", *listed(xs), ending)

    def typed(self, op: str, out: Tensor, *xs: Value) -> Value:
        """An operation of StableHLO that prints the types of its operands in any case."""
        return self.one(  # type: ignore[no-any-return]
            out, f"{op} ", *listed(xs), f" : {signature([x.type for x in xs], [out])}"
        )

    def bitcast(self, x: Value, out: Tensor) -> Value:
        """The same bits as elements of another type."""
        return self.typed("stablehlo.bitcast_convert", out, x)

    def chlo(self, op: str, out: Tensor, *xs: Value) -> Value:
        """An operation of CHLO, which prints all its types."""
        types = ", ".join(str(x.type) for x in xs)
        return self.one(out, f"chlo.{op} ", *listed(xs), f" : {types} -> {out}")

    def generic(
        self,
        op: str,
        types: Sequence[Type],
        xs: Sequence[Value],
        attributes: dict[str, str],
        *regions: Region,
    ) -> list[Value]:
        """An operation in the form that all have: "op"(operands) <{attributes}> ({regions})."""
        parts: list[Part] = [f'"{op}"(', *listed(xs), ")"]
        if attributes:
            parts.append(" <{" + ", ".join(f"{k} = {attributes[k]}" for k in sorted(attributes)))
            parts.append("}>")
        for i, r in enumerate(regions):
            parts += [", " if i else " (", r]
        parts.append((")" if regions else "") + f" : {signature([x.type for x in xs], types)}")
        return self.emit(types, *parts)

    def returns(self, *xs: Value) -> None:
        """The end of a region or a function."""
        types = ", ".join(str(x.type) for x in xs)
        name = "stablehlo.return" if self.nested else "return"
        self.emit([], name, *([" ", *listed(xs), f" : {types}"] if xs else []))

    # --- operations that rules of all kinds need --------------------------------------------------

    def constant(self, x: Any) -> Value:
        """A constant array."""
        x = np.asarray(x)
        key = None if x.ndim else (x.dtype, x.tobytes())
        known = self.state.scalars.get(key)
        if known is None:
            known = written_constant(x)
            if key is not None:
                self.state.scalars[key] = known
        out, text, hint = known
        return self.one(out, text, hint=hint)  # type: ignore[no-any-return]

    def scalar(self, value: Any, dtype: Any) -> Value:
        """A constant of rank 0."""
        return self.constant(np.asarray(value).astype(dtype))

    def filled(self, value: Any, out: Tensor) -> Value:
        """An array of one value."""
        x = self.scalar(value, out.dtype)
        return self.broadcast(x, out, ()) if out.shape else x

    def broadcast(self, x: Value, out: Tensor, dims: Sequence[int]) -> Value:
        text = f", dims = [{', '.join(map(str, dims))}] : "
        if is_free(out.shape):
            return self._shaped("dynamic_broadcast_in_dim", out, x, ending=text)
        text += f"({x.type}) -> {out}"
        return self.one(out, "stablehlo.broadcast_in_dim ", x, text)  # type: ignore[no-any-return]

    def spread(self, x: Value, shape: Sequence[int]) -> Value:
        """A value of rank 0 as an array of this shape; others as they are."""
        if x.shape == tuple(shape):
            return x
        return self.broadcast(x, x.tensor.with_shape(shape), ())

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if x.shape == tuple(shape):
            return x
        if is_free(shape):
            return self._shaped("dynamic_reshape", x.tensor.with_shape(shape), x, ending=" : ")
        return self.one(  # type: ignore[no-any-return]
            x.tensor.with_shape(shape),
            "stablehlo.reshape ",
            x,
            f" : ({x.type}) -> {x.tensor.with_shape(shape)}",
        )

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        if tuple(permutation) == tuple(range(x.ndim)):
            return x
        out = x.tensor.with_shape([x.shape[d] for d in permutation])
        dims = ", ".join(map(str, permutation))
        return self.one(out, "stablehlo.transpose ", x, f", dims = [{dims}] : ({x.type}) -> {out}")  # type: ignore[no-any-return]

    def convert(self, x: Value, dtype: Any) -> Value:
        """The elements in another type."""
        if x.dtype == dtype:
            return x
        return self.same("stablehlo.convert", x.tensor.with_dtype(dtype), x)

    def slice(
        self, x: Value, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] = ()
    ) -> Value:
        steps = strides or (1,) * x.ndim
        if is_free(x.shape, start, limit):
            return self._cut(x, start, limit, steps)
        out = x.tensor.with_shape([-((a - b) // s) for a, b, s in zip(start, limit, steps)])
        if 0 in out.shape:  # also where such a part would begin beyond the end
            return self.filled(0, out)
        ranges = [f"{a}:{b}" + (f":{s}" if s != 1 else "") for a, b, s in zip(start, limit, steps)]
        text = f" [{', '.join(ranges)}] : ({x.type}) -> {out}"
        return self.one(out, "stablehlo.slice ", x, text)  # type: ignore[no-any-return]

    def _cut(
        self, x: Value, start: Sequence[int], limit: Sequence[int], steps: Sequence[int]
    ) -> Value:
        """A slice where sizes are free."""
        shape = [b - a if s == 1 else -((a - b) // s) for a, b, s in zip(start, limit, steps)]
        rows = [shape_operand(self, r) for r in (start, limit, steps)]
        return self.typed("stablehlo.real_dynamic_slice", x.tensor.with_shape(shape), x, *rows)

    def _shaped(self, op: str, out: Tensor, *xs: Value, ending: str) -> Value:
        """An operation that takes the shape of its result as the last operand."""
        xs = (*xs, shape_operand(self, out.shape))
        types = signature([x.type for x in xs], [out])
        return self.one(out, f"stablehlo.{op} ", *listed(xs), f"{ending}{types}")  # type: ignore[no-any-return]

    def along(self, x: Value, axis: int, start: int, limit: int) -> Value:
        """A part of one dimension."""
        low, high = [0] * x.ndim, list(x.shape)
        low[axis], high[axis] = start, limit
        return self.slice(x, low, high)

    def concatenate(self, xs: Sequence[Value], axis: int) -> Value:
        if len(xs) == 1:
            return xs[0]
        if has_two_bits(xs[0].dtype):  # XLA's CPU would end the process
            whole = self.concatenate([as_bytes(self, x) for x in xs], axis)
            return self.convert(whole, xs[0].dtype)
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        out = xs[0].tensor.with_shape(shape)
        ending = f", dim = {axis} : {signature([x.type for x in xs], [out])}"
        return self.one(out, "stablehlo.concatenate ", *listed(xs), ending)  # type: ignore[no-any-return]

    def binary(self, op: str, x: Value, y: Value) -> Value:
        """An operation of StableHLO on two arrays of one type; values of rank 0 are spread."""
        shape = x.shape or y.shape
        x, y = self.spread(x, shape), self.spread(y, shape)
        return self.same(f"stablehlo.{op}", x.tensor, x, y)

    def compare(self, direction: str, x: Value, y: Value, kind: str | None = None) -> Value:
        """EQ, NE, LT, ... of two arrays of one type."""
        shape = x.shape or y.shape
        x, y = self.spread(x, shape), self.spread(y, shape)
        out = x.tensor.with_dtype(bool)
        ending = f", {kind or comparison(x.dtype)} : {signature([x.type, y.type], [out])}"
        return self.one(out, f"stablehlo.compare {direction}, ", x, ", ", y, ending)  # type: ignore[no-any-return]

    def select(self, which: Value, yes: Value, no: Value) -> Value:
        """`yes` where `which` is true; a `which` of rank 0 chooses as a whole."""
        shape = yes.shape or no.shape
        yes, no = self.spread(yes, shape), self.spread(no, shape)
        ending = f" : {which.type}, {yes.type}"
        return self.one(yes.type, "stablehlo.select ", *listed([which, yes, no]), ending)  # type: ignore[no-any-return]

    def iota(self, dtype: Any, shape: Sequence[int], axis: int) -> Value:
        out = Tensor(tuple(shape), np.dtype(dtype))
        if is_free(shape):
            return self._shaped("dynamic_iota", out, ending=f", dim = {axis} : ")
        return self.one(out, f"stablehlo.iota dim = {axis} : {out}")  # type: ignore[no-any-return]

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        out = x.tensor.with_shape(sizes)
        if is_free(sizes):
            return self._cut_at(x, starts, out)
        ending = f", sizes = [{', '.join(map(str, sizes))}]"
        types = signature([x.type, *(s.type for s in starts)], [out])
        return self.one(  # type: ignore[no-any-return]
            out, "stablehlo.dynamic_slice ", *listed([x, *starts]), f"{ending} : {types}"
        )

    def _cut_at(self, x: Value, starts: Sequence[Value], out: Tensor) -> Value:
        """A slice of free sizes at places that are moved inside."""
        zero, first = self.scalar(0, INT), []
        for i, n, size in zip(starts, out.shape, x.shape):
            most = size_of(self, size - n)
            at = self.same("stablehlo.clamp", zero.tensor, zero, self.convert(i, INT), most)
            first.append(self.reshape(at, (1,)))
        row = self.concatenate(first, 0)
        end = self.binary("add", row, shape_operand(self, out.shape))  # XLA looks for this sum
        ones = self.constant(np.ones(x.ndim, INT))
        return self.typed("stablehlo.real_dynamic_slice", out, x, row, end, ones)

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        xs = [x, update, *starts]
        types = signature([v.type for v in xs], [x.type])
        return self.one(x.type, "stablehlo.dynamic_update_slice ", *listed(xs), f" : {types}")  # type: ignore[no-any-return]

    # --- effects ----------------------------------------------------------------------------------

    def ordered(self) -> Value:
        """The token of the last effect that keeps its order."""
        if self.token is None:
            self.token = self.one(TOKEN, f"stablehlo.create_token : {TOKEN}")
        return self.token


def written_constant(x: np.ndarray) -> tuple[Tensor, str, str]:
    """The type of a constant, its operation, and the hint for its name."""
    out = Tensor(x.shape, x.dtype)
    integral = x.dtype.kind in "biu" or x.dtype.name.startswith(("int", "uint"))
    return out, f"stablehlo.constant {dense(x)} : {out}", "c" if integral else "cst"


def listed(xs: Sequence[Value]) -> list[Part]:
    """%0, %1, %2"""
    parts: list[Part] = []
    for x in xs:
        parts += [", ", x] if parts else [x]
    return parts


def comparison(dtype: Any) -> str:
    """How elements of a type are compared: FLOAT, SIGNED or UNSIGNED."""
    if dtype.kind == "b" or dtype.kind == "u" or dtype.name.startswith("uint"):
        return "UNSIGNED"
    if dtype.kind == "i" or dtype.name.startswith("int"):
        return "SIGNED"
    return "FLOAT"


def array_i64(xs: Sequence[int]) -> str:
    """array<i64: 1, 2>"""
    return f"array<i64: {', '.join(map(str, xs))}>" if len(xs) else "array<i64>"


def boolean(x: Any) -> str:
    return "true" if x else "false"


BYTES: Final = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
FOUR_BITS: Final = "float4_e2m1fn"  # the name of a float
TWO_BITS: Final = frozenset(("int2", "uint2"))


def has_two_bits(dtype: Any) -> bool:
    """Whether these are integers of two bits. The name of a dtype takes NumPy long."""
    return dtype.itemsize == 1 and dtype.name in TWO_BITS


def as_bytes(b: Builder, x: Value) -> Value:
    """Integers of fewer than eight bits, which XLA keeps packed, as ones of eight."""
    wider = BYTES.get(x.dtype.name)
    return x if wider is None else b.convert(x, np.dtype(wider))
