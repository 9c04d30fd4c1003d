"""Scalar and index expressions: one language for loop bodies, index arithmetic, sizes and vector
math.

Nodes are immutable, interned and simplified as they are built (``node``, ``sums``, ``index``). No
function here recurses far, so chains of any depth pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from calque.machine.caches import memo
from calque.native.scalars import index, sums
from calque.native.scalars.node import (
    DEEP,
    DTYPES,
    FLOAT_BITS,
    INT_BITS,
    LANE,
    SIGNED,
    UNSIGNED,
    Buffer,
    Expr,
    bits_float,
    const,
    const_bits,
    const_value,
    float_bits,
    index_and_guard,
    is_const,
    is_float,
    item_size,
    load,
    make,
    param,
    pool_size,
    ref,
    scalar_dtype,
    var,
    wrap,
)
from calque.native.scalars.ranges import at_least, compare, within
from calque.native.scalars.sums import ONE, ZERO, terms

__all__ = [
    "DEEP", "DTYPES", "FALSE", "FLOAT_BITS", "INT_BITS", "LANE", "ONE", "SIGNED", "TRUE",
    "UNSIGNED",
    "ZERO",
    "Buffer", "Expr", "at_least", "bits_float", "both", "cast", "const", "const_bits",
    "const_value", "either", "ex", "float_bits", "index_and_guard", "invert", "is_const",
    "is_float", "item_size", "linear", "load", "make", "param", "pool_size", "rebuild", "ref",
    "rewrite", "scalar_dtype", "select", "show", "stride",
    "terms", "var", "walk", "within",
]  # fmt: skip

TRUE: Final = const(True, "i1")
FALSE: Final = const(False, "i1")

COMPARE: Final = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
# Operations by what they take. Binary ones take two operands of one dtype.
FLOAT_ONLY: Final = frozenset(
    {"div", "fma", "floor", "ceil", "trunc", "round", "sqrt", "copysign", "ldexp"}
)
INT_ONLY: Final = frozenset(
    {"sdiv", "srem", "udiv", "urem", "shl", "lshr", "ashr", "mulhi", "dot2", "ctpop", "clz", "ctz"}
)
BITWISE: Final = frozenset({"and", "or", "xor", "not"})
INDEX: Final = frozenset({"floordiv", "mod"})
BOTH: Final = frozenset({"add", "sub", "mul", "min", "max", "neg", "abs"})
ARITY: Final = {
    **dict.fromkeys(("neg", "abs", "not", "sqrt", "floor", "ceil", "trunc", "round", "ctpop",
    "clz", "ctz"), 1),
    **dict.fromkeys(("select", "fma"), 3),
    **dict.fromkeys(COMPARE | {"add", "sub", "mul", "min", "max", "div", "copysign",
    "ldexp"} | INDEX, 2),
    **dict.fromkeys(("sdiv", "srem", "udiv", "urem", "shl", "lshr", "ashr", "mulhi", "dot2", "and",
    "or", "xor"), 2),
}  # fmt: skip


def taken_by(op: str) -> frozenset[str]:
    """The dtypes of operands that an operation takes."""
    if op in FLOAT_ONLY:
        return frozenset(FLOAT_BITS)
    if op in INT_ONLY:
        return frozenset(INT_BITS) - {"i1"}
    if op in BITWISE:
        return frozenset(INT_BITS)
    if op in INDEX:
        return frozenset(("i64",))
    return DTYPES - {"i1"} if op in BOTH else DTYPES


# binary operations of operands of one dtype: most of all that are asked for
_ALIKE: Final = {op: taken_by(op) for op, n in ARITY.items() if n == 2 and op != "ldexp"}

_INDEX_RULES: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "add": sums.add,
    "sub": sums.sub,
    "mul": sums.mul,
    "floordiv": index.floordiv,
    "mod": index.mod,
    "min": index.minimum,
    "max": index.maximum,
}
_FOLD: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def ex(op: str, *args: Expr) -> Expr:
    """An operation, simplified where that changes no bit. Names outside the table (``exp``,
    ``sin``, ...) are math functions, expanded by ``vmath`` when code is emitted."""
    a = args[0]
    taken = _ALIKE.get(op)
    if taken is not None and len(args) == 2:
        b = args[1]
        if a.dtype != b.dtype or a.dtype not in taken:
            check(op, args, 2)
        simple = _index(op, a, b) if a.dtype == "i64" and op in _INDEX_RULES else _binary(op, a, b)
        if simple is not None:
            return simple
    elif op in ARITY:
        check(op, args, ARITY[op])
        if op == "select":
            return select(a, args[1], args[2])
        if op == "not":
            return invert(a)
        if op == "neg" and a.op == "const" and a.dtype in INT_BITS:
            return const(-a.attr, a.dtype)
    return make(op, args, "i1" if op in COMPARE else a.dtype)


@memo("sums and quotients of indices", 1 << 13)
def _index(op: str, a: Expr, b: Expr) -> Expr:
    """An operation on indices: the layers of a program ask for the same ones over and over."""
    return _INDEX_RULES[op](a, b)


def check(op: str, args: tuple[Expr, ...], n: int) -> None:
    """Refuse operands that an operation does not take."""
    dtypes = [x.dtype for x in args]
    d = dtypes[1] if op == "select" and len(args) == 3 else dtypes[0]
    wanted = [d] * n
    if op == "select":
        wanted[0] = "i1"
    elif op == "ldexp":
        wanted[1] = "i32"
    if dtypes != wanted or d not in taken_by(op):
        raise TypeError(f"{op} does not take ({', '.join(dtypes)})")


def _binary(op: str, a: Expr, b: Expr) -> Expr | None:
    """Constants folded and units dropped; integers only, floats keep every operation."""
    if a.dtype == "i1":
        return _logic(op, a, b)
    if a.dtype in FLOAT_BITS:
        return None
    if op in COMPARE and a.dtype == "i64":
        known = compare(op, a, b)
        if known is not None:
            return TRUE if known else FALSE
    if a.op == "const" and b.op == "const":
        fold = _FOLD.get(op)
        if fold is not None:
            v = fold(a.attr, b.attr)
            return (TRUE if v else FALSE) if op in COMPARE else const(v, a.dtype)
        if op == "shl" and 0 <= b.attr < INT_BITS[a.dtype]:
            return const(a.attr << b.attr, a.dtype)
        return None
    if b.op == "const":
        if b.attr == 0 and op in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
            return a
        if (b.attr == 1 and op == "mul") or (b.attr == wrap(-1, b.dtype) and op == "and"):
            return a
        if b.attr == 0 and op in ("mul", "and"):
            return b
    elif a.op == "const" and op in ("add", "mul", "and", "or", "xor"):
        return _binary(op, b, a)
    return None


def _logic(op: str, a: Expr, b: Expr) -> Expr | None:
    if op == "and":
        return both(a, b)
    if op == "or":
        return either(a, b)
    if a.op == "const" and b.op == "const":
        return TRUE if _FOLD[op](a.attr, b.attr) & 1 else FALSE
    if op in ("xor", "ne") and b.op == "const":
        return invert(a) if b.attr else a
    if op == "eq" and b.op == "const":
        return a if b.attr else invert(a)
    return None


def both(a: Expr, b: Expr) -> Expr:
    """Logical and of two bools."""
    if a is FALSE or b is FALSE:
        return FALSE
    if a is TRUE or a is b:
        return b
    return a if b is TRUE else make("and", (a, b), "i1")


def either(a: Expr, b: Expr) -> Expr:
    """Logical or of two bools."""
    if a is TRUE or b is TRUE:
        return TRUE
    if a is FALSE or a is b:
        return b
    return a if b is FALSE else make("or", (a, b), "i1")


_OPPOSITE: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def invert(a: Expr) -> Expr:
    """Bitwise not."""
    if a.op == "const":
        return const(not a.attr if a.dtype == "i1" else ~a.attr, a.dtype)
    if a.op == "not":
        return a.args[0]
    if (
        a.op in COMPARE and a.args[0].dtype in INT_BITS
    ):  # of floats only eq and ne have an opposite, because of nan
        return make(_OPPOSITE[a.op], a.args, "i1")
    if a.op in ("eq", "ne"):
        return make(_OPPOSITE[a.op], a.args, "i1")
    return make("not", (a,), a.dtype)


def select(cond: Expr, a: Expr, b: Expr) -> Expr:
    """``a`` where ``cond`` is true, else ``b``."""
    if cond.op == "const":
        return a if cond.attr else b
    if a is b:
        return a
    if a is TRUE and b is FALSE:
        return cond
    return make("select", (cond, a, b), a.dtype)


def cast(e: Expr, dtype: str, op: str = "cast") -> Expr:
    """A conversion. ``cast``: by value; float to int saturates and makes nan 0; to ``i1`` is ``!=
    0``. ``cast_fast``: as ``cast``, but undefined for floats outside the target's range.
    ``bitcast``: same bits, same size."""
    if e.dtype == dtype:
        return e
    if dtype not in DTYPES:
        raise TypeError(f"no scalar dtype {dtype!r}")
    if op == "bitcast":
        if item_size(e.dtype) != item_size(dtype) or "i1" in (e.dtype, dtype):
            raise TypeError(f"no bitcast from {e.dtype} to {dtype}")
        if e.op == "bitcast":
            return cast(e.args[0], dtype, "bitcast")
    elif e.op == "const" and e.dtype in INT_BITS:
        if dtype == "i1":
            return TRUE if e.attr else FALSE
        if dtype in INT_BITS or abs(e.attr) <= (1 << 24):
            return const(e.attr, dtype)
    elif dtype == "i1" and e.dtype in INT_BITS:
        return ex("ne", e, const(0, e.dtype))
    elif op == "cast_fast" and not (e.dtype in FLOAT_BITS and dtype in INT_BITS):
        op = "cast"
    return make(op, (e,), dtype)


# --- traversal ------------------------------------------------------------------------------------


def rebuild(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """``e`` over other operands, simplified again."""
    if e.op == "load":
        r = len(e.attr.shape)
        return load(e.attr, args[:r], args[r] if len(args) > r else None)
    if e.attr is not None:
        return make(e.op, args, e.dtype, e.attr)
    if e.op in ("cast", "bitcast", "cast_fast"):
        return cast(args[0], e.dtype, e.op)
    if e.op in ARITY:
        return ex(e.op, *args)
    return make(e.op, args, e.dtype)


def rewrite(e: Expr, rule: Callable[[Expr], Expr | None], memo: dict[Expr, Expr]) -> Expr:
    """Rebuild ``e`` with ``rule(node)`` (None: keep, and go on below) applied from the root down.
    ``memo`` holds what is done."""
    known = memo.get(e)
    if known is not None:
        return known
    if e.depth <= DEEP:
        return _rewritten(e, rule, memo)
    todo: list[tuple[Expr, bool]] = [(e, False)]
    while todo:
        x, ready = todo.pop()
        if ready:
            args = tuple([memo[a] for a in x.args])
            memo[x] = x if args == x.args else rebuild(x, args)
        elif x in memo:
            continue
        elif x.depth <= DEEP:
            _rewritten(x, rule, memo)
        elif (new := rule(x)) is not None:
            memo[x] = new
        else:
            todo.append((x, True))
            todo += [(a, False) for a in x.args if a not in memo]
    return memo[e]


def _rewritten(e: Expr, rule: Callable[[Expr], Expr | None], memo: dict[Expr, Expr]) -> Expr:
    """The same by recursion, which is quicker."""
    new = rule(e)
    if new is None:
        new, args = e, e.args
        for a in args[::-1]:
            if a not in memo:
                _rewritten(a, rule, memo)
        made = tuple([memo[a] for a in args])
        if made != args:
            new = rebuild(e, made)
    memo[e] = new
    return new


def walk(e: Expr, seen: set[Expr]) -> Iterator[Expr]:
    """Every distinct node below ``e`` (and ``e``), once per ``seen``."""
    todo = [e]
    while todo:
        e = todo.pop()
        if e not in seen:
            seen.add(e)
            todo += e.args
            yield e


@memo("addresses of elements", 1 << 12)
def linear(shape: tuple[Expr, ...], idx: tuple[Expr, ...]) -> Expr:
    """The row-major address of an index, in elements."""
    at = ZERO
    for d, i in zip(shape, idx, strict=True):
        at = sums.inside(at, d, i)
    return at


def aligned(e: Expr, first: Expr, lane: Expr, even: Callable[[Expr], bool]) -> Expr:
    """``e`` for lanes of a vector at ``first + lane`` that lie in one row of every size that is
    ``even``, a multiple of the vector as ``first`` is: ``(first + lane) // n -> first // n``."""
    at = sums.add(first, lane)

    def rule(x: Expr) -> Expr | None:
        if x.op not in INDEX or x.args[0] is not at or not even(x.args[1]):
            return None
        n = x.args[1]
        return (
            ex("floordiv", first, n) if x.op == "floordiv" else ex("add", ex("mod", first, n), lane)
        )

    return rewrite(e, rule, {})


def stride(e: Expr, name: str) -> int | None:
    """How far an index moves when ``name`` grows by one; None when that is not a known constant."""
    if name not in e.names:
        return 0
    moved = 0
    for x, k in sums.summands(e)[0].items():
        if name in x.names:
            if x.op != "var" or x.attr[0] != name:
                return None
            moved += k
    return moved


# --- printing -------------------------------------------------------------------------------------

_SYMBOL: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^", "shl": "<<",
}  # fmt: skip
_LONGEST: Final = 2000


def show(e: Expr, known: dict[Expr, str] | None = None) -> str:
    """Readable text; ``known`` names nodes printed elsewhere. Very long texts are cut short."""
    text = dict(known or {})
    todo = [(e, False)]
    while todo:
        x, ready = todo.pop()
        if ready:
            line = _show_node(x, [text[a] for a in x.args])
            text[x] = line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
        elif x not in text:
            todo.append((x, True))
            todo += [(a, False) for a in x.args]
    return text[e]


def _show_node(e: Expr, args: list[str]) -> str:
    if e.op == "const":
        return _show_const(e)
    if e.op in ("var", "ref", "param"):
        return str(e.attr[0])
    if e.op == "load":
        r = len(e.attr.shape)
        return f"{e.attr.name}[{', '.join(args[:r])}]" + (f" if {args[r]}" if len(args) > r else "")
    if e.op in _SYMBOL:
        return f"({args[0]} {_SYMBOL[e.op]} {args[1]})"
    name = {"cast": e.dtype, "bitcast": f"bits_{e.dtype}", "cast_fast": f"fast_{e.dtype}"}.get(
        e.op, e.op
    )
    return f"{name}({', '.join(args)})"


def _show_const(e: Expr) -> str:
    if e.dtype in INT_BITS:
        return str(e.attr)
    v = const_value(e)
    if v != v and const(v, e.dtype) is not e:
        return f"nan:{e.attr:x}"
    return f"{v:.9g}" if e.dtype == "f32" else repr(v)
