"""What programs hold besides calls of public functions: operators, methods, indices, updates, and
control flow and derivatives around a function. What a form needs of the package (`lax.scan`, say)
is given to it, so that one program runs in calque and in JAX."""

import operator
from collections.abc import Callable
from typing import Any

Function = Callable[[Any], Any]


def item(x: Any, index: Any) -> Any:
    return x[index]


def updated(x: Any, index: Any, how: str, *more: Any, **keywords: Any) -> Any:
    return getattr(x.at[index], how)(*more, **keywords)


def operated(name: str, *operands: Any) -> Any:
    return getattr(operator, name)(*operands)


def method(x: Any, name: str, *args: Any, **keywords: Any) -> Any:
    return getattr(x, name)(*args, **keywords)


def attribute(x: Any, name: str) -> Any:
    return getattr(x, name)


def scanned(scan: Any, f: Function, x: Any, reverse: bool) -> Any:
    """A carry that every row moves; what `f` makes of it on the way."""

    def step(carry: Any, row: Any) -> Any:
        return _like(carry * 0.5 + f(row), carry), f(carry)

    return scan(step, x[0], x, reverse=reverse)


def looped(while_loop: Any, f: Function, x: Any, count: Any) -> Any:
    return while_loop(
        lambda s: s[0] < count, lambda s: (s[0] + 1, _like(f(s[1]), s[1])), (0, _strong(x))
    )


def branched(cond: Any, f: Function, g: Function, x: Any) -> Any:
    return cond(x.sum() > 0, lambda y: _like(f(y), y), lambda y: _like(g(y), y), _strong(x))


def switched(switch: Any, which: Any, fs: Any, x: Any) -> Any:
    branches = [lambda y, f=f: _like(f(y), y) for f in fs]
    return switch(which, branches, _strong(x))


def mapped(vmap: Any, f: Function, x: Any, in_axis: int, out_axis: int) -> Any:
    return vmap(f, in_axes=in_axis, out_axes=out_axis)(x)


def derived(grad: Any, f: Function, x: Any) -> Any:
    return grad(lambda y: f(y).sum())(x)


def twice_derived(grad: Any, jvp: Any, f: Function, x: Any) -> Any:
    """The product of the second derivatives with the array."""
    return jvp(grad(lambda y: f(y).sum()), (x,), (x,))


def derived_scan(grad: Any, scan: Any, f: Function, x: Any) -> Any:
    return grad(lambda y: scanned(scan, f, y, False)[0].sum())(x)


def referred(new_ref: Any, x: Any, index: Any, y: Any) -> Any:
    """What a mutable reference held at an index, and holds after something is written there."""
    ref = new_ref(_strong(x))
    before = ref[index]
    ref[index] = _like(before * 0 + y, x)
    return before, ref[...]


def swept(new_ref: Any, fori_loop: Any, f: Function, x: Any) -> Any:
    """A loop that changes a mutable reference row by row, and reads the row before."""
    ref = new_ref(_strong(x))

    def body(i: Any, total: Any) -> Any:
        ref[i] = _like(f(ref[i]) + 0.5 * ref[i - 1], x)
        return total + ref[i].sum()

    return fori_loop(1, x.shape[0], body, ref[0].sum()), ref[...]


def _like(y: Any, x: Any) -> Any:
    return y.astype(x.dtype)


def _strong(x: Any) -> Any:
    return x.astype(x.dtype)
