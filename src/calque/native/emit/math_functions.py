"""Math functions: their definitions as expressions, made strict (no multiplication and addition in
them may be contracted)."""

from __future__ import annotations

from typing import NamedTuple

from calque.machine.caches import memo
from calque.native.scalars.expr import FLOAT_BITS, Expr, cast, make, rebuild, ref, rewrite
from calque.native.scalars.vmath import TABLE

NARROW = ("f16", "bf16")
CONTRACTED = frozenset({"add", "sub", "mul"})
NAMES = frozenset(TABLE)


class MathFunction(NamedTuple):
    """One compiled form of a math function, shared by all kernels."""

    op: str
    dtypes: tuple[str, ...]
    result: str
    width: int  # 0: of scalars

    def symbol(self, tag: str) -> str:
        kind = "_".join(dict.fromkeys((*self.dtypes, self.result)))
        return f"vm_{self.op}_{kind}_{self.width or 's'}{tag}"


def argument(k: int, dtype: str) -> Expr:
    return ref(f"math.{k}", dtype)


@memo("expressions of math functions", "math functions for each dtype")
def definition(op: str, dtypes: tuple[str, ...], result: str) -> Expr:
    """The expression of a math function over ``argument(k)``."""
    args = [argument(k, d) for k, d in enumerate(dtypes)]
    if result in NARROW:  # computed in f32, rounded once
        e: Expr = cast(
            TABLE[op](*[cast(a, "f32") if a.dtype in NARROW else a for a in args]), result
        )
    else:
        e = TABLE[op](*args)
    if e.dtype != result:
        raise TypeError(f"{op} of {', '.join(dtypes)} gives {e.dtype}, {result} was asked for")
    return strict(e)


def strict(e: Expr) -> Expr:
    """The same expression with every float addition, subtraction and multiplication done as
    written."""
    memo: dict[Expr, Expr] = {}
    todo = [(e, False)]
    while todo:
        x, ready = todo.pop()
        if ready:
            args = tuple([memo[a] for a in x.args])
            if x.op in CONTRACTED and x.dtype in FLOAT_BITS:
                memo[x] = make(x.op, args, x.dtype, "strict")
            else:
                memo[x] = x if args == x.args else rebuild(x, args)
        elif x not in memo:
            todo.append((x, True))
            todo += [(a, False) for a in x.args if a not in memo]
    return memo[e]


def inline_math(e: Expr) -> Expr:
    """The definition with the operands of ``e`` in place."""
    dtypes = tuple([a.dtype for a in e.args])
    given = {argument(k, d): a for k, (d, a) in enumerate(zip(dtypes, e.args, strict=True))}
    return rewrite(definition(e.op, dtypes, e.dtype), given.get, {})
