"""What the tests of lowering share: the expressions that a function becomes, worked out element by
element in Python. A read outside of its array is an error here, as it may be one of memory."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.arrays import to_array, to_numpy
from calque.native.loops.tree import as_fold
from calque.native.lower import table
from calque.native.lower.graph import Graph, Node, graph_of
from calque.native.lower.rules import Lower, View, buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import Stage, loops_of, stages_of
from calque.native.passes import pipeline
from calque.native.plan.verify import verify_stage
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import INT_BITS, Buffer, Expr, const_value, index_and_guard, walk
from tests.native.programs import traced
from tests.native.run_kernel import NP

assert table.MODULES  # the rules of all operations
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floordiv": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": np.left_shift, "ashr": np.right_shift, "copysign": np.copysign,
    "sdiv": lambda a, b: a.dtype.type(int(a / b)), "srem": np.fmod,
}  # fmt: skip
UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "abs": np.abs, "not": np.invert, "exp": np.exp, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt,
}  # fmt: skip


class Elements:
    """A function as expressions over buffers that hold these arrays."""

    def __init__(self, fun: Callable[..., Any], *args: Any) -> None:
        closed = pipeline.run(traced(fun, *args))
        self.graph: Graph = graph_of(closed)
        self.low = Lower(Sizes())
        self.arrays: dict[Buffer, np.ndarray] = {}
        given = [*zip(self.graph.inputs, args), *zip(self.graph.consts, closed.consts)]
        for k, (node, a) in enumerate(given):
            self.place(node, f"x{k}", to_numpy(to_array(a)).copy())

    def place(self, node: Node, name: str, a: np.ndarray) -> None:
        """Let a node live in memory."""
        shape = tuple(self.low.sizes.dim(n) for n in node.shape)
        buf = buffer_of(name, shape, node.dtype)
        parts = a if a.dtype.kind != "c" else np.stack([a.real, a.imag], -1)
        self.arrays[buf] = parts
        self.low.view[node] = View(buf)

    def element(self, k: int = 0) -> tuple[tuple[Expr, ...], Any]:
        """The index of a result, and its element there."""
        out = self.graph.outputs[k]
        _, idx = loops_of(self.low, out.shape)
        return idx, self.low.at(out, idx)

    def loads(self, k: int = 0) -> list[Expr]:
        """The reads of an element."""
        _, value = self.element(k)
        seen: set[Expr] = set()
        parts = value if isinstance(value, Cx) else (value,)
        return [e for p in parts for e in walk(p, seen) if e.op == "load"]

    def result(self, k: int = 0) -> np.ndarray:
        """All elements."""
        out = self.graph.outputs[k]
        idx, value = self.element(k)
        flat = []
        for at in itertools.product(*map(range, out.shape)):
            env = {i.attr[0]: n for i, n in zip(idx, at) if i.op == "var"}
            if isinstance(value, Cx):
                flat.append(self.value(value.re, env) + 1j * self.value(value.im, env))
            else:
                flat.append(self.value(value, env))
        dtype = {"c64": np.complex64, "c128": np.complex128}.get(out.dtype) or NP[out.dtype]
        return np.array(flat, dtype).reshape(out.shape)

    def stages(self, k: int = 0) -> tuple[list[Stage], Buffer]:
        """The stages that write a result to memory of its own."""
        out = self.graph.outputs[k]
        shape = tuple(self.low.sizes.dim(n) for n in out.shape)
        buf = buffer_of("y", shape, out.dtype)
        return stages_of(self.low, out, View(buf)), buf

    def stored(self, k: int = 0) -> np.ndarray:
        """What its stages make of a result."""
        stages, buf = self.stages(k)
        out = self.graph.outputs[k]
        parts = out.shape if out.dtype not in ("c64", "c128") else (*out.shape, 2)
        made = self.arrays[buf] = np.full((*parts,), 77, NP[buf.dtype])
        for s in stages:
            verify_stage(s)
            self.run(s)
        return made if parts == out.shape else made[..., 0] + 1j * made[..., 1]

    def run(self, s: Stage) -> None:
        """A stage, turn by turn: each fold in the order of its loop."""
        outer = s.rank - s.running
        for env in self.turns(s.dims[:outer], {}):
            folds = [as_fold(a) for a in s.accs]
            for f in folds:
                env |= dict(zip(f.names, [self.value(e, env) for e in f.init], strict=True))
            for inside in self.turns(s.dims[outer:], env):
                for f in folds:
                    values = [self.value(e, inside) for e in f.values]
                    sides = [e.attr[0] for e in (*f.left, *f.right)]
                    both = dict(zip(sides, [*[env[n] for n in f.names], *values], strict=True))
                    env |= dict(
                        zip(f.names, [self.value(e, inside | both) for e in f.combine], strict=True)
                    )
                if s.running or not s.accs:
                    self.store(s, inside | {n: env[n] for f in folds for n in f.names})
            if s.accs and not s.running:
                self.store(s, env)

    def turns(self, dims: Sequence[Expr], env: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not dims:
            yield dict(env)
            return
        for t in range(int(self.value(dims[0].attr[1], env))):
            yield from self.turns(dims[1:], {**env, dims[0].attr[0]: np.int64(t)})

    def store(self, s: Stage, env: dict[str, Any]) -> None:
        if s.guard is not None and not self.value(s.guard, env):
            return
        made = self.arrays[s.buf]
        for suffix, e in s.parts:
            at = [int(self.value(i, env)) for i in (*s.idx, *suffix)]
            assert all(0 <= i < n for i, n in zip(at, made.shape, strict=True)), (at, made.shape)
            made[tuple(at)] = self.value(e, env)

    def value(self, e: Expr, env: dict[str, Any]) -> Any:
        memo: dict[Expr, Any] = {}

        def of(x: Expr) -> Any:
            if x not in memo:
                memo[x] = self.node(x, of, env)
            return memo[x]

        with np.errstate(all="ignore"):
            return of(e)

    def node(self, e: Expr, of: Callable[[Expr], Any], env: dict[str, Any]) -> Any:
        t = NP[e.dtype]
        if e.op == "const":
            return t(const_value(e))
        if e.op == "var":
            known = env.get(e.attr[0])
            return np.int64(self.low.sizes.values[e.attr[0]] if known is None else known)
        if e.op == "ref":
            return env[e.attr[0]]
        if e.op == "param":
            return t(self.low.params[e.attr[0]])
        if e.op == "load":
            idx, guard = index_and_guard(e)
            if guard is not None and not of(guard):
                return t(0)
            a, at = self.arrays[e.attr], [int(of(i)) for i in idx]
            assert all(0 <= i < n for i, n in zip(at, a.shape, strict=True)), (at, a.shape)
            return a[tuple(at)]
        if e.op == "select":  # each side may divide by what the other one excludes
            return of(e.args[1]) if of(e.args[0]) else of(e.args[2])
        if e.op in ("cast", "cast_fast"):
            return cast(of(e.args[0]), e.dtype)
        if e.op == "bitcast":
            return np.asarray(of(e.args[0])).view(t)[()]
        args = [of(a) for a in e.args]
        if e.op == "lshr":
            u = np.dtype(f"u{args[0].dtype.itemsize}")
            return t(args[0].view(u) >> args[1].view(u))
        if e.op in BINARY:
            out = BINARY[e.op](*args)
        else:
            out = UNARY[e.op](*args)
        return out if e.dtype == "i1" else t(out)


def cast(v: Any, dtype: str) -> Any:
    """By value; of floats to integers the nearest that there is."""
    if v.dtype.kind == "f" and dtype in INT_BITS and dtype != "i1":
        info = np.iinfo(NP[dtype])
        number = 0 if v != v else int(min(max(float(v), -(2.0**70)), 2.0**70))
        return NP[dtype](min(max(number, info.min), info.max))
    return np.asarray(v).astype(NP[dtype])[()]


def check(fun: Callable[..., Any], *args: np.ndarray, tol: float = 0.0) -> Elements:
    """What the expressions give is what the meanings of the primitives give."""
    e = Elements(fun, *args)
    want = reference.run(traced(fun, *args), *map(to_array, args))
    for k, w in enumerate(want):
        got, w = e.result(k), to_numpy(w)
        assert (got.shape, got.dtype) == (w.shape, w.dtype)
        if tol:
            np.testing.assert_allclose(got, w, rtol=tol, atol=tol)
        else:
            np.testing.assert_array_equal(got, w)
    return e


def check_stages(fun: Callable[..., Any], *args: np.ndarray, tol: float = 0.0) -> Elements:
    """What the stages store is what the meanings of the primitives give."""
    e = Elements(fun, *args)
    for k, w in enumerate(reference.run(traced(fun, *args), *map(to_array, args))):
        np.testing.assert_allclose(e.stored(k), to_numpy(w), rtol=tol, atol=tol)
    return e
