"""Loops, branches and calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.xla.lower.elementwise import barrier
from calque.xla.lower.programs import (
    call_function,
    function_of,
    host_data,
    lower_function,
    lower_program,
    ordered_inside,
)
from calque.xla.lower.rules import Builder, boolean, equation_rule, listed, rule
from calque.xla.lower.sizes import INT, is_free, size_of
from calque.xla.text.constants import dense, number
from calque.xla.text.tree import Part, Region, Value, symbol
from calque.xla.text.types import TOKEN, Tensor, Type, element_name, signature

# ---------------------------------------------------------------- while

Body = Callable[[Builder, list[Value]], Sequence[Value]]


def while_loop(
    b: Builder, init: Sequence[Value], condition: Body, body: Body, *, orders: bool = False
) -> list[Value]:
    """A loop that carries these values; `condition` and `body` write into their builders. A body
    whose effects keep their order carries their token, too."""
    init = [*([b.ordered()] if orders else []), *init]
    args = [Value(x.type, "iterArg") for x in init]
    cond, do = [b.within(Region(args, header=False)) for _ in range(2)]
    if orders:
        cond.token = do.token = args[0]
    skip = 1 if orders else 0
    cond.returns(*condition(cond, args[skip:]))
    found = list(body(do, args[skip:]))
    do.returns(*([do.ordered()] if orders else []), *found)
    parts: list[Part] = ["stablehlo.while("]
    for i, (arg, x) in enumerate(zip(args, init)):
        parts += [", " if i else "", arg, " = ", x]
    types = ", ".join(str(x.type) for x in init)
    parts += [")" + (f" : {types}" if types else "") + "\ncond ", cond.region, " do ", do.region]
    outs = b.emit([x.type for x in init], *parts)
    if orders:
        b.token = outs.pop(0)
    return outs


@equation_rule("while")
def lower_while(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    p = e.params
    n_cond, n_body = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts = args[:n_cond], args[n_cond : n_cond + n_body]
    cond_jaxpr, body_jaxpr = p["cond_jaxpr"], p["body_jaxpr"]
    lanes = cond_jaxpr.out_avals[0].ndim

    def condition(inner: Builder, carry: list[Value]) -> list[Value]:
        (more,) = lower_program(inner, cond_jaxpr, [*cond_consts, *carry])
        return [any_of(inner, more)]

    def body(inner: Builder, carry: list[Value]) -> list[Value]:
        new = lower_program(inner, body_jaxpr, [*body_consts, *carry])
        if lanes:  # lanes that have ended keep what they carry
            (more,) = lower_program(inner, cond_jaxpr, [*cond_consts, *carry])
            new = [chosen(inner, more, y, x) for x, y in zip(carry, new)]
        return new

    orders = ordered_inside(body_jaxpr.jaxpr)
    return while_loop(b, args[n_cond + n_body :], condition, body, orders=orders)


def any_of(b: Builder, x: Value) -> Value:
    """Whether any element is true."""
    if not x.ndim:
        return x
    false = b.scalar(False, x.dtype)
    dims = ", ".join(map(str, range(x.ndim)))
    out = x.tensor.with_shape(())
    ending = f") applies stablehlo.or across dimensions = [{dims}] : "
    types = f"({x.type}, {false.type}) -> {out}"
    return b.one(out, "stablehlo.reduce(", x, " init: ", false, ending + types)  # type: ignore[no-any-return]


def chosen(b: Builder, which: Value, yes: Value, no: Value) -> Value:
    """`select` by the first dimensions."""
    if which.ndim and which.shape != yes.shape:
        which = b.broadcast(which, which.tensor.with_shape(yes.shape), range(which.ndim))
    return b.select(which, yes, no)


# ---------------------------------------------------------------- scan


@equation_rule("scan")
def lower_scan(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    """A while loop over the number of the round: it takes rows of the xs and puts rows of the
    ys."""
    return _Scan(e, outs, args).lower(b)


class _Scan:
    def __init__(self, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> None:
        p = e.params
        self.jaxpr: ClosedJaxpr = p["jaxpr"]
        length = p["length"]
        self.free = is_free((length,))
        self.length, self.reverse = length if self.free else int(length), p["reverse"]
        n, self.n_carry = p["num_consts"], p["num_carry"]
        self.consts, self.xs = args[:n], args[n + self.n_carry :]
        self.init, self.outs = args[n : n + self.n_carry], outs
        self.rounds = args[0] if p.get("counted") else None
        unroll = p["unroll"]
        if self.free:
            unroll = 1
        self.unroll = max(self.length if unroll is True else int(unroll or 1), 1)
        self.dtype = np.dtype("int32" if self.free or self.length < 2**31 else "int64")

    def lower(self, b: Builder) -> list[Value]:
        state = [*self.init, *(b.filled(0, t) for t in self.outs[self.n_carry :])]
        if self.free and self.rounds is None:
            self.rounds = size_of(b, self.length)
        if self.rounds is None and self.unroll >= self.length:
            for k in range(self.length):
                state = self.round(b, b.scalar(k, self.dtype), state)
            return state
        if self.rounds is not None:
            self.rounds, self.unroll = b.convert(self.rounds, self.dtype), 1
        whole = self.length if self.free else self.length - self.length % self.unroll
        limit = whole if self.rounds is None else None
        start = b.scalar(0, self.dtype)

        def condition(inner: Builder, carried: list[Value]) -> list[Value]:
            last = self.rounds if limit is None else inner.scalar(limit, self.dtype)
            assert last is not None
            return [inner.compare("LT", carried[0], last)]

        def body(inner: Builder, carried: list[Value]) -> list[Value]:
            i, *now = carried
            one = inner.scalar(1, self.dtype)
            for _ in range(self.unroll):
                now = self.round(inner, i, now)
                i = inner.binary("add", i, one)
            return [i, *now]

        orders = ordered_inside(self.jaxpr.jaxpr)
        _, *state = while_loop(b, [start, *state], condition, body, orders=orders)
        for k in range(whole, self.length) if self.rounds is None else ():
            state = self.round(b, b.scalar(k, self.dtype), state)
        return state

    def round(self, b: Builder, i: Value, state: list[Value]) -> list[Value]:
        """One round of the loop: the carry and the rows so far."""
        if self.reverse:
            rounds = self.rounds or b.scalar(self.length, self.dtype)
            i = b.binary("subtract", b.binary("subtract", rounds, b.scalar(1, self.dtype)), i)
        carry, rows = state[: self.n_carry], state[self.n_carry :]
        given = [*self.consts, *carry, *(row_of(b, x, i) for x in self.xs)]
        found = call_or_inline(b, self.jaxpr, given)
        new = [put_row(b, r, y, i) for r, y in zip(rows, found[self.n_carry :])]
        return [*found[: self.n_carry], *new]


def row_of(b: Builder, x: Value, i: Value) -> Value:
    """x[i]"""
    zero = [b.scalar(0, i.dtype)] * (x.ndim - 1)
    return b.reshape(b.dynamic_slice(x, [i, *zero], (1, *x.shape[1:])), x.shape[1:])


def put_row(b: Builder, x: Value, row: Value, i: Value) -> Value:
    """x with x[i] replaced."""
    zero = [b.scalar(0, i.dtype)] * (x.ndim - 1)
    return b.dynamic_update_slice(x, b.reshape(row, (1, *row.shape)), [i, *zero])


def call_or_inline(b: Builder, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
    """A small program where it stands, a larger one as a function."""
    if len(closed.eqns) <= 1:
        return lower_program(b, closed, args)
    return call_function(b, "closed_call", closed, args)


# ---------------------------------------------------------------- cond


@equation_rule("cond")
def lower_cond(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    index, *operands = args
    branches = e.params["branches"]
    orders = any(ordered_inside(c.jaxpr) for c in branches)
    token = b.ordered() if orders else None
    is_number = index.dtype != np.dtype(bool)
    index = b.convert(index, np.dtype("int32"))
    if is_number and not _is_clamped(b, index):
        first, last = b.scalar(0, index.dtype), b.scalar(len(branches) - 1, index.dtype)
        index = b.same("stablehlo.clamp", index.tensor, first, index, last)
    regions = []
    for closed in branches:
        inner = b.within(Region())
        inner.token = token
        found = lower_program(inner, closed, operands)
        inner.returns(*([inner.ordered()] if orders else []), *found)
        regions.append(inner.region)
    types: list[Type] = [*([TOKEN] if orders else []), *outs]
    results = b.generic("stablehlo.case", types, [index], {}, *regions)
    if orders:
        b.token = results.pop(0)
    return results


def _is_clamped(b: Builder, index: Value) -> bool:
    """Whether a clamp has just made this number, or a truth value became it."""
    maker = next((op for op in reversed(b.region.ops) if index in op.results), None)
    if maker is None:
        return False
    if maker.parts[0] == "stablehlo.convert ":
        of = maker.parts[1]
        return isinstance(of, Value) and of.dtype == np.dtype(bool)
    return maker.parts[0] == "stablehlo.clamp "


# ---------------------------------------------------------------- calls


@equation_rule("jit")
def lower_jit(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    name = str(e.params.get("name") or "jitted")
    path = b.path
    b.path = (*path, f"jit({name})")
    found = call_function(b, symbol(name), e.params["jaxpr"], args)
    b.path = path
    return found


@equation_rule("closed_call", "call")
def lower_closed_call(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return call_function(b, "closed_call", e.params["jaxpr"], args)


@equation_rule("while_back")
def lower_inline(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_program(b, e.params["jaxpr"], args)


@equation_rule("remat2")
def lower_remat(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    """What is computed again must not be found to be the same as what was computed before."""
    if e.params["differentiated"]:
        apart = e.params["prevent_cse"]
        each = apart if isinstance(apart, tuple) else (apart,) * len(args)
        behind = iter(barrier(b, [x for x, kept in zip(args, each, strict=True) if kept]))
        args = [next(behind) if kept else x for x, kept in zip(args, each)]
    return call_function(b, "checkpoint", e.params["jaxpr"], args)


@equation_rule("custom_jvp_call", "custom_vjp_call")
def lower_custom(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_program(b, e.params["call_jaxpr"], args)


@equation_rule("custom_vmap_call")
def lower_custom_vmap(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_program(b, e.params["call"], args)


@equation_rule("linear_call")
def lower_linear(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_program(b, e.params["callee"], args)


@equation_rule("custom_lin")
def lower_custom_lin(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    """Outside a tape it is worked out where it is bound."""
    return lower_function(b, e, e.primitive.bind, args)


@equation_rule("custom_linear_solve")
def lower_solve(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    """The solver: it takes its own captured values and the right side."""
    lengths = e.params["const_lengths"]
    first = sum(lengths[:2])
    given = [*args[first : first + lengths[2]], *args[sum(lengths) :]]
    return lower_program(b, e.params["jaxprs"].solve, given)


@equation_rule("composite")
def lower_composite(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    """An operation under a name, with a function of what it means."""
    p = e.params
    if not _OPERATION_NAME.fullmatch(p["name"]):  # MLIR has no operation of such a name
        return call_function(b, symbol(p["name"]), p["jaxpr"], args)
    attributes = [
        f"{k} = {_attribute(leaves, tree)}" for k, leaves, tree in p["attributes"] if leaves
    ]
    meaning = function_of(b, symbol(p["name"]), p["jaxpr"])
    inside = [f"composite_attributes = {{{', '.join(attributes)}}}"] if attributes else []
    inside.append(f"decomposition = @{meaning.name}")
    if p["version"]:
        inside.append(f"version = {p['version']} : i32")
    ending = f" {{{', '.join(inside)}}} : {signature([x.type for x in args], outs)}"
    return b.emit(outs, f'stablehlo.composite "{p["name"]}" ', *listed(args), ending)


_OPERATION_NAME: Final = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)


def _attribute(leaves: Sequence[Any], tree: Any) -> str:
    """A value that is known when the program is made, as an attribute."""
    if tree == pytrees.structure(0):
        return _leaf(leaves[0])
    return f"[{', '.join(_leaf(x, listed=True) for x in leaves)}]"


def _leaf(x: Any, *, listed: bool = False) -> str:
    """In a list MLIR leaves out the types of numbers of 64 bits."""
    if isinstance(x, (bool, np.bool_)):
        return boolean(x)
    if isinstance(x, int):
        return str(x) if listed else f"{x} : i64"
    if isinstance(x, float):
        text = number(np.float64(x))
        return text if listed and not text.startswith("0x") else f"{text} : f64"
    if isinstance(x, str):
        return json.dumps(x)
    if isinstance(x, np.dtype):
        return element_name(x)
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "aval"):
        data = host_data(x)
        return f"{dense(data)} : {Tensor(data.shape, data.dtype)}"
    raise TypeError(f"composite: XLA has no attribute for {x!r}, a {type(x).__name__}")


# ---------------------------------------------------------------- platforms


@rule("platform_index")
def platform_index(b: Builder, out: Tensor, *, platforms: Sequence[str]) -> Value:
    """Which of the platforms it was traced for the program runs on: an argument of the module tells
    it."""
    return index_among(b, platforms)


def index_among(b: Builder, names: Sequence[str]) -> Value:
    """Which of these platforms the module runs on; those that it is not for are never asked."""
    index = b.state.platform_index
    if index is None:
        return b.scalar(0, INT)
    if tuple(names) == tuple(b.state.platforms):
        return index
    table = [names.index(p) if p in names else 0 for p in b.state.platforms]
    row = b.dynamic_slice(b.constant(np.array(table, INT)), [index], (1,))
    return b.reshape(row, ())
