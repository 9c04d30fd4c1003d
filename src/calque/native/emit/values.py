"""Expressions -> instructions.

An expression that depends on the vector variable is a vector of the loop's logical width; LLVM's
type legalisation splits ``<64 x float>`` into registers, which is our unrolling. Any other is a
scalar, spread over the lanes where a vector is wanted.
"""

from __future__ import annotations

from typing import Final

from calque.native.emit.convert import splat_text
from calque.native.emit.expand import has_math, inline_math, math_symbol, strict
from calque.native.emit.lookup import Lookup
from calque.native.emit.scopes import Scope
from calque.native.emit.types import (
    FLOAT_BINARY,
    FLOAT_COMPARE,
    FLOAT_INTRINSIC,
    INT_BINARY,
    INT_COMPARE,
    ROUNDED,
    VALUE,
    const_text,
    index_list,
    mangled,
    vector,
)
from calque.native.scalars.expr import FLOAT_BITS, SIGNED, Expr, cast, stride
from calque.native.scalars.vmath.base import ldexp_by_parts

DEEP: Final = 48  # expressions are emitted by recursion over this many levels at a time
DIVISIONS: Final = frozenset({"sdiv", "srem", "udiv", "urem"})
CONTRACTED: Final = frozenset({"add", "sub", "mul"})


class Values(Lookup):
    """The value of every kind of node but loads."""

    def __init__(
        self,
        exact: bool = False,
        outline: bool = False,
        avx512: bool = True,
        tag: str = "",
        half: bool = True,
    ) -> None:
        super().__init__()
        self.exact, self.outline, self.avx512, self.tag, self.half = (
            exact,
            outline,
            avx512,
            tag,
            half,
        )
        self.width = 0  # lanes of the vector loop we are in, 0 outside
        self.vec: str | None = None  # its variable
        self.vecnames: set[str] = set()  # names whose values are vectors
        self.used_math = False  # has the loop being written called a math function?
        self.mask: str | None = None  # in a tail: the lanes that exist
        self.live: str | None = (
            None  # where lanes part: those that are here, in the tail those of them that exist
        )
        self.math: dict[
            str, tuple[str, tuple[str, ...], str, int]
        ] = {}  # symbol -> operation, dtypes, result dtype, width

    def load(self, e: Expr, vec: bool, s: Scope) -> str:
        raise NotImplementedError

    def is_vec(self, e: Expr) -> bool:
        return not self.vecnames.isdisjoint(e.names)

    def value(self, e: Expr, lane0: bool = False) -> str:
        """The SSA name of ``e``: a vector when it depends on the vector variable (unless its first
        lane is asked for)."""
        if e.op == "const":
            return const_text(e)
        vec = not lane0 and self.is_vec(e)
        depth = self.home(e)
        key = (e, self.width if vec else 0)
        r = self.find(key, depth)
        if r is None:
            if e.depth > DEEP:
                self.prepare(e)
            scope = self.scopes[depth]
            r = self.compute(e, vec, scope)
            scope.cache[key] = r
        return r

    def prepare(self, e: Expr) -> None:
        """Emit what lies deep below, deepest first, so that no recursion is long."""
        seen: set[Expr] = set()
        found: list[Expr] = []
        todo = [e]
        while todo:
            x = todo.pop()
            if (
                x in seen
                or x.depth <= DEEP
                or self.find((x, self.width if self.is_vec(x) else 0), len(self.scopes) - 1)
            ):
                continue
            seen.add(x)
            if x is not e and x.depth % (DEEP // 2) == 0:
                found.append(x)
            if x.op != "rare":  # its seldom side stays where it is
                todo += x.args
        for x in sorted(found, key=lambda x: x.depth):
            self.value(x)

    def operand(self, e: Expr, vec: bool) -> str:
        """As ``value``, spread over the lanes when a vector is wanted and the value is uniform."""
        if not vec:
            return self.value(e, lane0=True)
        if e.op == "const":
            return f"splat ({VALUE[e.dtype]} {const_text(e)})"
        if self.is_vec(e):
            return self.value(e)
        v = self.value(e, lane0=True)
        depth = self.home(e)
        key = (e, self.width)
        r = self.find(key, depth)
        if r is None:
            r = self.scopes[depth].cache[key] = self.splat(v, VALUE[e.dtype], self.scopes[depth])
        return r

    def splat(self, v: str, t: str, s: Scope | None = None) -> str:
        full = f"<{self.width} x {t}>"
        first = self.new(f"insertelement {full} poison, {t} {v}, i64 0", s)
        return self.new(
            f"shufflevector {full} {first}, {full} poison, <{self.width} x i32> zeroinitializer", s
        )

    def shuffle(
        self,
        t: str,
        width: int,
        a: str,
        lanes: list[int],
        b: str = "poison",
        s: Scope | None = None,
    ) -> str:
        full = f"<{width} x {t}>"
        return self.new(f"shufflevector {full} {a}, {full} {b}, {index_list(lanes)}", s)

    # -- nodes -------------------------------------------------------------------------------------

    def compute(self, e: Expr, vec: bool, s: Scope) -> str:
        op = e.op
        if op == "load":
            return self.load(e, vec, s)
        if op in ("var", "ref", "param"):
            return self.lanes_of(e, s) if vec and op == "var" else self.bound[e.attr[0]]
        if vec and e.index:
            step = stride(e, self.vec or "")
            if step is not None:
                return self.steps(e, step, "i64", s)
        width = self.width if vec else 0
        if op in ("cast", "cast_fast", "bitcast"):
            return self.convert(e, vec, width, s)
        if op == "rare":
            return self.rare(e, vec, s)
        if has_math(op):
            return self.math_call(e, vec, s)
        a = [self.operand(x, vec) for x in e.args]
        d = e.args[0].dtype
        if op == "select":
            t = vector(VALUE[e.dtype], width)
            return self.new(f"select {vector('i1', width)} {a[0]}, {t} {a[1]}, {t} {a[2]}", s)
        if op == "lookup":
            return self.lookup(e, a[0], width, s)
        return (
            self.float_op(e, d, a, width, s) if d in FLOAT_BITS else self.int_op(e, d, a, width, s)
        )

    def lanes_of(self, e: Expr, s: Scope) -> str:
        return self.steps(e, 1, "i64", s)

    def steps(self, e: Expr, step: int, t: str, s: Scope) -> str:
        """An index that moves by a constant from lane to lane, in an integer type."""
        first = self.value(e, lane0=True) if e.op != "var" else self.bound[e.attr[0]]
        if t != "i64":
            first = self.new(f"trunc i64 {first} to {t}", s)
        full = f"<{self.width} x {t}>"
        mask = (1 << int(t[1:])) - 1
        offsets = ", ".join([f"{t} {(i * step) & mask}" for i in range(self.width)])
        return self.new(f"add {full} {self.splat(first, t, s)}, <{offsets}>", s)

    def convert(self, e: Expr, vec: bool, width: int, s: Scope) -> str:
        x = e.args[0]
        if e.op == "bitcast":
            return self.bitcast(self.operand(x, vec), x.dtype, e.dtype, width, s)
        if vec and x.index and VALUE[e.dtype] in ("i8", "i16", "i32"):
            step = stride(x, self.vec or "")
            if step is not None:
                return self.steps(x, step, VALUE[e.dtype], s)
        if vec and x.index and e.dtype in FLOAT_BITS and x.hi is not None and x.hi < 1 << 31:
            x = cast(x, "i32")
        return self.cast(self.operand(x, vec), x.dtype, e.dtype, width, e.op == "cast_fast", s)

    def float_op(self, e: Expr, d: str, a: list[str], width: int, s: Scope) -> str:
        op, t = e.op, VALUE[d]
        full = vector(t, width)
        if op in FLOAT_COMPARE:
            return self.new(f"fcmp {FLOAT_COMPARE[op]} {full} {a[0]}, {a[1]}", s)
        if op in FLOAT_BINARY:
            free = op in CONTRACTED and not self.exact and e.attr is None and d in ("f32", "f64")
            v = self.new(
                f"{FLOAT_BINARY[op]}{' contract' if free else ''} {full} {a[0]}, {a[1]}", s
            )
        elif op == "neg":
            return self.new(f"fneg {full} {a[0]}", s)
        elif op in ("min", "max"):
            return self.float_extreme(op, e.args[1], full, width, a, s)
        elif op == "ldexp":
            v = self.ldexp(e, full, width, a, s)
            return self.round_narrow(v, d, width, s)
        elif op in FLOAT_INTRINSIC:
            v = self.new(self.unary(FLOAT_INTRINSIC[op], t, width, *a), s)
        else:
            raise TypeError(f"no code for {op} of {d}")
        return self.round_narrow(v, d, width, s) if op in ROUNDED else v

    def float_extreme(self, op: str, b: Expr, full: str, width: int, a: list[str], s: Scope) -> str:
        """NumPy's maximum and minimum: a nan in either operand passes, of two zeros the first is
        taken. One instruction for a constant."""
        better = self.new(f"fcmp {'uge' if op == 'max' else 'ule'} {full} {a[0]}, {a[1]}", s)
        bools = vector("i1", width)
        r = self.new(f"select {bools} {better}, {full} {a[0]}, {full} {a[1]}", s)
        if b.op == "const" and not is_nan(b):
            return r
        nan = self.new(f"fcmp uno {full} {a[1]}, {a[1]}", s)
        return self.new(f"select {bools} {nan}, {full} {a[1]}, {full} {r}", s)

    def ldexp(self, e: Expr, full: str, width: int, a: list[str], s: Scope) -> str:
        x, n = e.args
        if not self.avx512:  # LLVM would call the C library for each lane
            return self.operand(strict(ldexp_by_parts(x, n)), width > 0)
        t, i = VALUE[e.dtype], vector("i32", width)
        return self.new(
            self.intrinsic(
                "ldexp",
                f"{mangled(t, width)}.{mangled('i32', width)}",
                full,
                (full, a[0]),
                (i, a[1]),
            ),
            s,
        )

    def int_op(self, e: Expr, d: str, a: list[str], width: int, s: Scope) -> str:
        op, t = e.op, VALUE[d]
        full = vector(t, width)
        signed = d in SIGNED
        if op in INT_BINARY:
            if (
                width and self.mask is not None and op in DIVISIONS
            ):  # lanes that do not exist must not trap
                ones = splat_text(t, "1", width)
                a[1] = self.new(
                    f"select <{width} x i1> {self.mask}, {full} {a[1]}, {full} {ones}", s
                )
            return self.new(f"{INT_BINARY[op]} {full} {a[0]}, {a[1]}", s)
        if op in INT_COMPARE:
            return self.new(f"icmp {'s' if signed else 'u'}{op} {full} {a[0]}, {a[1]}", s)
        if op in ("eq", "ne"):
            return self.new(f"icmp {op} {full} {a[0]}, {a[1]}", s)
        if op in ("min", "max"):
            return self.new(self.unary(f"{'s' if signed else 'u'}{op}", t, width, *a), s)
        if op == "not":
            return self.new(
                f"xor {full} {a[0]}, {splat_text(t, 'true' if d == 'i1' else '-1', width)}", s
            )
        if op == "neg":
            return self.new(
                f"sub {full} zeroinitializer, {a[0]}" if width else f"sub {t} 0, {a[0]}", s
            )
        if op == "abs":
            if not signed:
                return a[0]
            return self.new(
                self.intrinsic("abs", mangled(t, width), full, (full, a[0]), ("i1", "false")), s
            )
        if op in ("floordiv", "mod"):
            return self.index_division(e, a, width, s)
        if op in ("clz", "ctz"):
            return self.new(
                self.intrinsic(
                    "ctlz" if op == "clz" else "cttz",
                    mangled(t, width),
                    full,
                    (full, a[0]),
                    ("i1", "false"),
                ),
                s,
            )
        if op == "ctpop":
            return self.new(self.unary("ctpop", t, width, a[0]), s)
        if op == "mulhi":
            return self.high_product(t, a, width, signed, s)
        raise TypeError(f"no code for {op} of {d}")

    def high_product(self, t: str, a: list[str], width: int, signed: bool, s: Scope) -> str:
        bits = int(t[1:])
        wide, full = vector(f"i{2 * bits}", width), vector(t, width)
        x, y = [self.new(f"{'sext' if signed else 'zext'} {full} {v} to {wide}", s) for v in a]
        product = self.new(f"mul {wide} {x}, {y}", s)
        high = self.new(f"lshr {wide} {product}, {splat_text(f'i{2 * bits}', str(bits), width)}", s)
        return self.new(f"trunc {wide} {high} to {full}", s)

    def index_division(self, e: Expr, a: list[str], width: int, s: Scope) -> str:
        """Division of indices (never negative). A divisor of 0 gives any value, but no trap: such a
        value is never used."""
        x, n = e.args
        name = "udiv" if e.op == "floordiv" else "urem"
        if n.op == "const":
            small = x.hi is not None and x.hi < 1 << 31 and n.attr < 1 << 31
            # vector division by a constant is multiplication; 32 bits have the instructions for it
            if width and small:
                narrow = f"<{width} x i32>"
                v = self.new(f"trunc <{width} x i64> {a[0]} to {narrow}", s)
                q = self.new(f"{name} {narrow} {v}, splat (i32 {n.attr})", s)
                return self.new(f"zext {narrow} {q} to <{width} x i64>", s)
            return self.new(f"{name} {vector('i64', width)} {a[0]}, {a[1]}", s)
        safe = self.new(self.unary("umax", "i64", width, a[1], splat_text("i64", "1", width)), s)
        if not width:
            return self.new(f"{name} i64 {a[0]}, {safe}", s)
        return self.float_division(e.op, a[0], safe, width, s)

    def float_division(self, op: str, a: str, b: str, width: int, s: Scope) -> str:
        """There is no vector division of integers; below 2**52 the quotient in double, truncated,
        is the right one."""
        i, f = f"<{width} x i64>", f"<{width} x double>"
        x, y = [self.new(f"uitofp {i} {v} to {f}", s) for v in (a, b)]
        q = self.new(f"fptosi {f} {self.new(f'fdiv {f} {x}, {y}', s)} to {i}", s)
        if op == "floordiv":
            return q
        return self.new(f"sub {i} {a}, {self.new(f'mul {i} {q}, {b}', s)}", s)

    # -- math functions ----------------------------------------------------------------------------

    def math_call(self, e: Expr, vec: bool, s: Scope) -> str:
        """A function of ``native.vmath``: its definition in line, or (in tails always) a call of
        the one copy shared by all kernels."""
        width = self.width if vec else 0
        self.used_math = True
        if not self.outline and not (width and self.mask is not None):
            return self.operand(inline_math(e), vec)
        dtypes = tuple([x.dtype for x in e.args])
        symbol = math_symbol(e.op, dtypes, e.dtype, width) + self.tag
        self.math[symbol] = (e.op, dtypes, e.dtype, width)
        types = [vector(VALUE[d], width) for d in dtypes]
        result = vector(VALUE[e.dtype], width)
        self.declared.add(f"declare {result} @{symbol}({', '.join(types)})")
        args = ", ".join(
            [f"{t} {self.operand(x, vec)}" for t, x in zip(types, e.args, strict=True)]
        )
        return self.new(f"call {result} @{symbol}({args})", s)

    def rare(self, e: Expr, vec: bool, s: Scope) -> str:
        """``select(cond, seldom, common)``, where ``seldom`` costs nothing unless some lane needs
        it."""
        cond, common, seldom = e.args
        width = self.width if vec else 0
        bools, t = vector("i1", width), vector(VALUE[e.dtype], width)
        c, v = self.operand(cond, vec), self.operand(common, vec)
        if s is not self.scopes[-1]:
            w = self.operand(seldom, vec)
            return self.new(f"select {bools} {c}, {t} {w}, {t} {v}", s)
        some = (
            self.new(self.intrinsic("vector.reduce.or", f"v{width}i1", "i1", (bools, c)), s)
            if width
            else c
        )
        if width and self.mask is not None:
            c = self.new(f"and {bools} {c}, {self.mask}", s)
            some = self.new(self.intrinsic("vector.reduce.or", f"v{width}i1", "i1", (bools, c)), s)
        k = self.number()
        start = s.block
        inner = self.open(f"r{k}", lazy=True)
        w = self.operand(seldom, vec)
        r = self.new(f"select {bools} {c}, {t} {w}, {t} {v}")
        self.scopes.pop()
        s.lines.append(f" br i1 {some}, label %r{k}, label %j{k}\nr{k}:")
        s.lines += inner.lines
        s.lines.append(f" br label %j{k}\nj{k}:")
        s.block = f"j{k}"
        return self.new(f"phi {t} [{v}, %{start}], [{r}, %{inner.block}]", s)


_INFINITY: Final = {
    "f16": (15, 0x7C00),
    "bf16": (15, 0x7F80),
    "f32": (31, 0x7F800000),
    "f64": (63, 0x7FF0000000000000),
}


def is_nan(e: Expr) -> bool:
    """Is a float constant a nan?"""
    sign, infinity = _INFINITY[e.dtype]
    return bool(e.attr & ((1 << sign) - 1) > infinity)
