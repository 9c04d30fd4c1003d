"""Functions over traced values from functions as written: found, rewritten, compiled, and kept.

A converted function shares the globals and the cells of the original, so what they hold stays live.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import types
import warnings
from collections.abc import Callable
from typing import Any, Final

from calque.control_flow import running
from calque.control_flow.building import located
from calque.control_flow.jumps import Finally
from calque.control_flow.rewriting import CALLEE, RUNTIME, rewritten
from calque.control_flow.source import cannot, refusal, tree_of
from calque.core.errors import ControlFlowError
from calque.core.tracebacks import boundary
from calque.machine.caches import Table, WeakTable
from calque.machine.call import functions as callpath
from calque.transforms.engines.signatures import take_annotations
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.jit.function import function_of, rewrapped

_KEPT: Final = (  # attribute of a function: itself, its defaults, and what it was converted to
    "_calque_converted"
)
_FACTORY: Final = "_cq_factory"
_MADE: Final = "_cq_made"
_HOLDING: Final = (
    types.FunctionType,
    types.MethodType,
    functools.partial,
    callpath.Jitted,
    custom_jvp,
    custom_vjp,
)
_FLAGS: Final = 0x1000000 | 0x800000  # `from __future__ import annotations` and generator_stop
_codes: Final[Table[tuple[types.CodeType, str, str], types.CodeType]] = Table(
    "converted code, by the original one", 4096
)
_ours: Final[WeakTable[types.CodeType, bool]] = WeakTable("code that is converted")


@boundary
def convert(fun: Callable[..., Any]) -> Any:
    """Turns Python control flow over traced values into `cond`, `while_loop` and `scan`.

    `if`, `while`, `for` over ranges and arrays, `break`, `continue`, `return`, `and`, `or`, `not`,
    chained comparisons and conditional expressions are converted, in the function and in those of
    the same package that it calls. On values that are known they do what they do in Python. `jit(f,
    control_flow="convert")` is `jit(convert(f))`.

    Args:
        fun: A Python function whose source can be found.

    Returns:
        A function of the same arguments and results.

    Differs from JAX:
        It is calque's own.

    >>> @jax.convert
    ... def collatz(n):
    ...     steps = 0
    ...     while n > 1:
    ...         n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
    ...     return steps
    >>> jax.jit(collatz)(27)
    Array(111, dtype=int32, weak_type=True)"""
    if isinstance(fun, type) or not callable(fun):
        raise TypeError(f"convert: expected a function, got {fun!r} of type {type(fun)}")
    found = _converted(fun, None)
    if found is not None:
        return found
    if _is_calque(fun):
        return fun
    raise ControlFlowError(
        f"convert: {fun!r} is no Python function, so there is no source to convert. Pass it as it"
        " is, or wrap it in a function."
    )


def callee(fun: Any, package: str) -> Any:
    """What converted code calls: the converted form of functions of the same package, anything else
    as it is."""
    if fun is range:
        return running.range_
    if isinstance(fun, (types.BuiltinFunctionType, type)):
        return fun
    found = _converted(fun, package) or fun
    if _is_calque(fun) and not isinstance(fun, (callpath.Jitted, types.MethodType)):
        return functools.partial(_with_converted, found, package)
    return found


def _with_converted(fun: Any, package: str, /, *args: Any, **kwargs: Any) -> Any:
    """A call of one of calque's functions: functions given to it are converted as well."""
    return fun(
        *[_argument(x, package) for x in args],
        **{k: _argument(x, package) for k, x in kwargs.items()},
    )


def _argument(x: Any, package: str) -> Any:
    if isinstance(x, _HOLDING):
        return _converted(x, package) or x
    return x


def _is_calque(x: Any) -> bool:
    module = (
        x.__globals__.get("__name__") if isinstance(x, types.FunctionType) else type(x).__module__
    )
    return isinstance(module, str) and module.partition(".")[0] == "calque"


def _converted(fun: Any, package: str | None) -> Any:
    """None where there is nothing to convert. With a package, only its functions are, and only
    where it is possible."""
    if isinstance(fun, functools.partial):
        inner = _converted(fun.func, package)
        return None if inner is None else functools.partial(inner, *fun.args, **fun.keywords)
    if isinstance(fun, types.MethodType):
        inner = _converted(fun.__func__, package)
        return None if inner is None else types.MethodType(inner, fun.__self__)
    if isinstance(fun, callpath.Jitted):
        return _jitted(fun, package)
    if isinstance(fun, (custom_jvp, custom_vjp)):
        return _with_rules(fun, package)
    if not isinstance(fun, types.FunctionType):
        method = next(
            (vars(c)["__call__"] for c in type(fun).__mro__ if "__call__" in vars(c)), None
        )
        plain = isinstance(method, types.FunctionType) and not _is_calque(fun)
        inner = _converted(method, package) if plain else None
        return None if inner is None else types.MethodType(inner, fun)
    if fun.__code__ in _ours:
        return fun
    if _is_calque(fun):
        return _transformed(fun, package)
    if package is not None and (_package(fun) != package or refusal(fun.__code__)):
        return None
    return _kept(fun)


def _transformed(fun: types.FunctionType, package: str | None) -> Any:
    """What a transformation made of a function, `grad(f)` or `vmap(f)`: the functions in its cells
    are converted."""
    cells = []
    for cell in fun.__closure__ or ():
        held = _contents(cell)
        new = _converted(held, package) if held is not fun and isinstance(held, _HOLDING) else None
        cells.append(cell if new is None or new is held else types.CellType(new))
    if all(a is b for a, b in zip(cells, fun.__closure__ or ())):
        return None
    made = types.FunctionType(
        fun.__code__, fun.__globals__, fun.__name__, fun.__defaults__, tuple(cells)
    )
    return _like(made, fun)


def _with_rules(fun: Any, package: str | None) -> Any:
    """A function with rules of its own, for its derivatives: all of them are converted."""
    held = {k: v for k, v in vars(fun).items() if isinstance(v, _HOLDING)}
    new = {k: _converted(v, package) or v for k, v in held.items()}
    if all(new[k] is v for k, v in held.items()):
        return None
    made = copy.copy(fun)
    vars(made).update(new)
    return made


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _package(fun: types.FunctionType) -> str:
    return str(fun.__globals__.get("__name__", "")).partition(".")[0]


def _jitted(fun: Any, package: str | None) -> Any:
    if str(fun.__module__).partition(".")[0] == "calque":
        return fun
    function = function_of(fun)
    inner = _converted(function.fun, package)
    if inner is None or inner is function.fun:
        return fun
    kept = getattr(fun, _KEPT, None)
    if kept is None or kept[0] is not fun or kept[1] is not inner:
        kept = (fun, inner, rewrapped(fun, inner))
        setattr(fun, _KEPT, kept)
    return kept[2]


def _kept(fun: types.FunctionType) -> types.FunctionType:
    """The converted function, made once for each: programs are found by it."""
    kept = fun.__dict__.get(_KEPT)
    state = (fun.__code__, fun.__defaults__, fun.__kwdefaults__)
    if kept is None or kept[0] is not fun or any(a is not b for a, b in zip(kept[1], state)):
        kept = (fun, state, _made(fun))
        fun.__dict__[_KEPT] = kept
    return kept[2]


def _made(fun: types.FunctionType) -> types.FunctionType:
    code = fun.__code__
    key = (code, code.co_filename, _package(fun))
    new = _codes.find(key)
    if new is None:
        new = _codes[key] = _compiled(fun)
        _remember(new)
    cells = dict(zip(code.co_freevars, fun.__closure__ or ()))
    cells[RUNTIME], cells[CALLEE] = types.CellType(running), types.CellType(callee)
    made = types.FunctionType(
        new,
        fun.__globals__,
        fun.__name__,
        fun.__defaults__,
        tuple(cells[n] for n in new.co_freevars),
    )
    return _like(made, fun)


def _like(made: types.FunctionType, fun: types.FunctionType) -> types.FunctionType:
    """`made` with all that says what `fun` is."""
    made.__dict__.update({k: v for k, v in fun.__dict__.items() if k != _KEPT})
    made.__kwdefaults__ = fun.__kwdefaults__
    take_annotations(made, fun)
    made.__module__, made.__qualname__, made.__doc__ = fun.__module__, fun.__qualname__, fun.__doc__
    return made


def _remember(code: types.CodeType) -> None:
    """This code and the functions inside are converted. Methods of classes inside are not: they are
    when they are called."""
    _ours[code] = True
    for c in code.co_consts:
        if isinstance(c, types.CodeType) and c.co_flags & inspect.CO_NEWLOCALS:
            _remember(c)


# ---------------------------------------------------------------- compiling


def _compiled(fun: types.FunctionType) -> types.CodeType:
    code = fun.__code__
    tree = tree_of(fun)
    try:
        new = rewritten(tree, _package(fun), _class_around(fun.__qualname__), code.co_freevars)
    except Finally as e:
        raise cannot(
            fun,
            f"line {e.args[0]} leaves a `finally` block with return, break or continue: do so"
            " after it",
        ) from None
    except RecursionError:
        raise cannot(fun, "it is nested too deeply: split it into several functions") from None
    params = [ast.arg(n) for n in dict.fromkeys((*code.co_freevars, RUNTIME, CALLEE))]
    if isinstance(new, ast.FunctionDef):
        new.name = _MADE  # its own name must stay that of the original
    result = ast.Name(_MADE, ast.Load()) if isinstance(new, ast.FunctionDef) else new
    body: list[ast.stmt] = [new] if isinstance(new, ast.FunctionDef) else []
    factory = ast.FunctionDef(
        _FACTORY, ast.arguments([], params, None, [], [], None, []), [*body, ast.Return(result)], []
    )
    module = ast.Module([located(factory, tree)], [])
    with warnings.catch_warnings():  # of what they were told when they wrote it
        warnings.simplefilter("ignore", SyntaxWarning)
        whole = compile(module, code.co_filename, "exec", code.co_flags & _FLAGS, dont_inherit=True)
    made = _inside(_inside(whole, _FACTORY), _MADE if body else code.co_name)
    return _named(made, code.co_name, code.co_qualname)


def _class_around(qualname: str) -> str | None:
    parts = qualname.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None


def _inside(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _named(code: types.CodeType, name: str, qualname: str) -> types.CodeType:
    """The code with the names that tracebacks show: pieces of a function bear the name of the
    function."""
    consts = []
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            piece = c.co_name.startswith("_cq_") or "_cq_args" in c.co_varnames
            own = name if piece else c.co_name
            c = _named(c, own, qualname if piece else f"{qualname}.<locals>.{own}")
        consts.append(c)
    return code.replace(co_consts=tuple(consts), co_name=name, co_qualname=qualname)
