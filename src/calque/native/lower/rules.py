"""Array equations to scalar expressions: the value of one element, as an expression of its index.

`Lower.at(node, idx)` is the element of `node` at `idx`. A node that lives in memory is a load. An
elementwise operation asks for its operands at the same index; a layout operation only changes the
index: broadcast, transpose, slice, pad and the like cost no pass over memory. Rules are generators:
they yield (node, index) for every element they need and return theirs, so that no chain of
equations, however long, recurses."""

from __future__ import annotations

from collections.abc import Callable, Generator
from copy import copy
from typing import Any, Final, Self, TypeVar

import numpy as np

from calque.machine.state import process
from calque.native.lower.graph import REAL_PART, Node
from calque.native.lower.numbers import Number, is_baked
from calque.native.lower.sizes import Sizes
from calque.native.scalars.elements import Cx
from calque.native.scalars.elements import lower as lower_element
from calque.native.scalars.expr import (
    DTYPES,
    ZERO,
    Buffer,
    Expr,
    cast,
    const,
    const_bits,
    is_float,
    load,
    param,
    scalar_dtype,
)

K = TypeVar("K")
V = TypeVar("V")
Index = tuple[Expr, ...]
Value = Any  # Expr, or Cx (a pair of them) for a complex element
Request = tuple[Node, Index]
ElementSteps = Generator[Request, Value, Value]  # asks for elements, gives one in the end
Rule = Callable[["Lower", Node, Index], ElementSteps]

# Rules of everything that is not elementwise: filled by the lower_* modules.
RULES: Final[dict[str, Rule]] = process.container("native rules of primitives", {})
# Conditions under which a node of some name has a native form at all; without an entry it always
# has.
LIMITS: Final[dict[str, Callable[[Node], bool]]] = process.container("limits of native rules", {})
ONE_C: Final = const(1)


class View:
    """Where a node lives: a buffer, and the leading indices of its part of it."""

    __slots__ = ("buf", "prefix")

    def __init__(self, buf: Buffer, prefix: Index = ()) -> None:
        self.buf, self.prefix = buf, prefix

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and self.buf is other.buf and self.prefix == other.prefix

    __hash__ = None  # type: ignore[assignment]

    def element(self, idx: Index, is_complex: bool, guard: Expr | None = None) -> Value:
        """The element, or 0 where `guard` does not hold."""
        at = self.prefix + idx
        if is_complex:
            return Cx(load(self.buf, (*at, ZERO), guard), load(self.buf, (*at, ONE_C), guard))
        return load(self.buf, at, guard)


def buffer_of(name: str, shape: tuple[Expr, ...], dtype: str, place: str = "arg") -> Buffer:
    """A buffer for an array; a complex one is real with a trailing dimension of 2."""
    real = REAL_PART.get(dtype)
    return Buffer(name, shape if real is None else (*shape, const(2)), real or dtype, place)


class Layer(dict[K, V]):
    """A table on top of another: what is not found here is looked up there, what is written stays
    here."""

    __slots__ = ("below",)

    def __init__(self, below: dict[K, V]) -> None:
        super().__init__()
        self.below = below

    def get(self, key: K, default: Any = None) -> Any:
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        return self.below.get(key, default)

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self.below

    def __missing__(self, key: K) -> V:
        return self.below[key]


class Lower:
    """What lowering knows: sizes, scalar constants, where nodes live, and every element it has
    written."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.view: dict[Node, View] = {}
        self.alias: dict[
            Node, tuple[Node, Index]
        ] = {}  # inputs of loop bodies: what they stand for outside
        self.turned: dict[
            Node, Node
        ] = {}  # inputs of loop bodies: their transposes, where those are what is read
        self.in_registers: set[Node] = set()  # carries of which only the elements in `memo` exist
        self.memo: dict[tuple[Node, Index], Value] = {}
        self.params: dict[str, Any] = {}  # name -> NumPy scalar
        self.names: dict[Any, Expr] = {}
        self.open: dict[str, Number] = {}  # the parameters that are open
        self.opened: set[Node] = set()  # the loops whose bodies open their numbers
        # updates that are written where all that lies around them stands already
        self.around_stands: dict[Node, View] = {}

    def attempt(self) -> Self:
        """One that knows all this, for something that may fail. What it finds out about elements
        and where nodes live is its own, until that is kept."""
        out = copy(self)
        out.memo, out.view = Layer(self.memo), Layer(self.view)
        out.in_registers = set(self.in_registers)
        return out

    def keep(self, attempt: Self) -> None:
        """Know what an attempt has found out."""
        self.memo.update(attempt.memo)
        self.view.update(attempt.view)

    # --- elements ---------------------------------------------------------------------------------

    def at(self, node: Node, idx: Index) -> Value:
        """The element of `node` at `idx`."""
        got = self.memo.get((node, idx))
        if got is None:
            got = self._run((node, idx), False)
        return got

    def made(self, node: Node, idx: Index) -> Value:
        """The element as its own equation makes it, though the node may live in memory."""
        return self._run((node, idx), True)

    def _run(self, key: Request, anew: bool) -> Value:
        memo, view = self.memo, self.view
        todo: list[Request] = [key]
        waiting: dict[Request, tuple[Any, Request]] = {}
        while todo:
            k = todo[-1]
            if k in memo and not (anew and k is key):
                todo.pop()
                continue
            node, idx = k
            value: Value = None
            home = view.get(node)
            if home is not None and not (anew and k is key):
                value = home.element(idx, node.dtype in REAL_PART)
            else:
                rule = RULES.get(node.op)
                if rule is None:
                    value = self._elementwise(node, idx, todo)
                else:
                    value = self._step(k, rule, waiting, todo)
            if value is not None:
                todo.pop()
                if anew and k is key:
                    return value
                memo[k] = value
        return memo[key]

    def _elementwise(self, node: Node, idx: Index, todo: list[Request]) -> Value:
        memo, values = self.memo, []
        missing = False
        for a in node.args:
            k = (a, idx[: len(a.shape)])  # all of it, or nothing for a scalar
            v = memo.get(k)
            if v is None:
                todo.append(k)
                missing = True
            else:
                values.append(v)
        if missing:
            return None
        return lower_element(node.op, values, [a.dtype for a in node.args], node.dtype, node.params)

    def _step(
        self,
        k: Request,
        rule: Rule,
        waiting: dict[Request, tuple[Any, Request]],
        todo: list[Request],
    ) -> Value:
        """Advance a rule as far as what it asks for is known."""
        state = waiting.get(k)
        memo = self.memo
        try:
            if state is None:
                g = rule(self, *k)
                need = next(g)
            else:
                g, need = state
                need = g.send(memo[need])
            while need in memo:
                need = g.send(memo[need])
        except StopIteration as stop:
            if stop.value is None:
                raise AssertionError(f"the rule of {k[0]} gives no element") from None
            return stop.value
        waiting[k] = (g, need)
        todo.append(need)
        return None

    # --- constants --------------------------------------------------------------------------------

    def constant(self, value: Any, dtype: str, number: Number | None = None) -> Value:
        """A scalar of the user's program. What arithmetic can profit from is baked into the kernel;
        all else is a parameter. One that is open is told from all others."""
        real = REAL_PART.get(dtype)
        if real is not None:
            return Cx(self.constant(value.real, real), self.constant(value.imag, real))
        x = np.asarray(value)
        if dtype not in DTYPES:
            return stored_constant(x, dtype)
        if is_baked(x):
            return (
                const_bits(int(x.view(f"u{x.dtype.itemsize}")), dtype)
                if is_float(dtype)
                else const(x.item(), dtype)
            )
        key = number or (dtype, x.tobytes())
        e = self.names.get(key)
        if e is None:
            name = f"p{len(self.names)}"
            e = self.names[key] = param(name, dtype)
            self.params[name] = x
            if number is not None:
                self.open[name] = number
        return e

    @staticmethod
    def expression_dtype(dtype: str) -> str:
        """The type of an expression that holds an element of this type."""
        return scalar_dtype(dtype)

    def number(self, e: Expr, dtype: str) -> Expr:
        """An index as a number of the user's program."""
        if dtype in DTYPES and dtype != "bf16":
            return cast(e, dtype)
        out: Any = lower_element("convert_element_type", [e], ["i64"], dtype, {})
        return out  # type: ignore[no-any-return]


def stored_constant(x: np.ndarray, dtype: str) -> Expr:
    """A number of a type that expressions hold as bits (float8, int4)."""
    raw = int(np.frombuffer(x.tobytes().ljust(8, b"\0"), np.uint64)[0])
    if dtype.startswith("int"):
        return const(int(x), "i8")
    return const(raw, "u8")


# --- leaves ---------------------------------------------------------------------------------------


def _literal(low: Lower, node: Node, idx: Index) -> Generator[Request, Value, Value]:
    return low.constant(node.params["value"], node.dtype, node.params.get("open"))
    yield


RULES["literal"] = _literal
