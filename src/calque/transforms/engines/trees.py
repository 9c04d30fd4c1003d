"""Functions of trees as functions of flat leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.dims import Dim
from calque.core.dtypes import PYTHON_SCALARS, float0
from calque.core.key_paths import keystr
from calque.core.trace import VALUES, has_type_alone
from calque.transforms.engines.signatures import (
    ArgumentNames,
    describe_function,
    take_annotations,
)

_NUMBERS = (np.ndarray, np.generic, *PYTHON_SCALARS)


def name_of(fun: Any) -> str:
    """What a function is called in messages and programs."""
    return str(
        getattr(fun, "__name__", None)
        or getattr(getattr(fun, "func", None), "__name__", type(fun).__name__)
    )


def wrapping(made: Any, fun: Any, doc: str = "") -> Any:
    """`made` with the look of `fun`, which it was made from: its name, its attributes and its
    documentation, after `doc`. A callable object may use these names for something else."""
    made.__name__ = made.__qualname__ = name_of(fun)
    for name in ("__module__", "__qualname__"):
        if isinstance(text := getattr(fun, name, None), str):
            setattr(made, name, text)
    attributes = dict(getattr(fun, "__dict__", ()))
    made.__dict__.update(
        {n: x for n, x in attributes.items() if n[:2] != "__" and n not in _OF_JIT}
    )
    take_annotations(made, fun)
    own = getattr(fun, "__doc__", None)
    # of functions of functions of functions: each would say all that those inside say
    said = doc and isinstance(own, str) and 0 < len(own) <= _LONG_DOC
    made.__doc__ = f"{doc}\n\nOriginal documentation:\n\n{own}" if said else (doc or own)
    made.__wrapped__ = fun
    return made


# what is made from a jitted function is not that one
_OF_JIT: Final = frozenset(("_function", "_options_key"))
_LONG_DOC: Final = 50_000


class FlatFunction:
    """`fun` with positional and keyword arguments given as the leaves of (args, kwargs); its
    results are leaves too.

    After a call, `out_tree` is the structure of the result and, with `has_aux`, `aux` the auxiliary
    output.
    """

    __slots__ = ("aux", "fun", "has_aux", "in_tree", "out_tree", "what")

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: pytrees.PyTreeDef,
        what: str = "transformed",
        has_aux: bool = False,
    ):
        self.fun, self.in_tree, self.what, self.has_aux = fun, in_tree, what, has_aux
        self.out_tree: pytrees.PyTreeDef = pytrees.LEAF
        self.aux: Any = None

    @property
    def __name__(self) -> str:
        return name_of(self.fun)

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = pytrees.unflatten(self.in_tree, leaves)
        out = self.fun(*args, **kwargs)
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"{self.what} function with has_aux=True: {name_of(self.fun)} must return a"
                    f" pair (output, auxiliary), a two-element tuple, got {type(out).__name__}"
                )
            out, self.aux = out
        flat, self.out_tree = pytrees.flatten(out)
        return check_results(flat, out, self.fun, self.what)


def check_results(flat: Sequence[Any], out: Any, fun: Any, what: str = "") -> list[Any]:
    """The results as arrays or tracers; the message names the component that cannot be one, and
    the function, as `what` knows it."""
    return [
        x
        if issubclass(type(x), VALUES) or type(x) is Dim or has_type_alone(x)
        else _result(x, out, fun, what)
        for x in flat
    ]


def handed(x: Any) -> Any:
    """A value as users and their rules get it: an array or a tracer, also where a program holds a
    plain number. Tangents of integers, which have no values, stay as they are."""
    return to_array(x) if isinstance(x, _NUMBERS) and _holds(x) else x


def _holds(x: Any) -> bool:
    return getattr(x, "dtype", None) != float0


def _result(x: Any, out: Any, fun: Any, what: str) -> Any:
    try:
        return to_array(x)
    except TypeError:
        path = next(p for p, v in pytrees.flatten_with_path(out)[0] if v is x)
        at = f" at output component {keystr(path)}" if path else ""
        described = describe_function(fun, name_of(fun))
        what_of = (
            f"Output from batched function {described}: it"
            if what == "vmap"
            else (f"function {described}")
        )
        raise TypeError(
            f"{what_of} returned a value of type {type(x)}{at}, which is not"
            " a valid JAX type: return arrays, numbers, and containers of them."
        ) from None


_REGISTER: Final = ", or let it be a tree: calque.tree_util.register_dataclass tells of a dataclass"


def arrays(
    leaves: Sequence[Any],
    what: str,
    fun: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    name: Callable[[int], str] | None = None,
) -> list[Any]:
    """The leaves as arrays or tracers; the message names the argument that cannot be one."""
    out = []
    for i, x in enumerate(leaves):
        try:
            out.append(to_array(x))
        except TypeError:
            where = name(i) if name else argument_name(fun, args, kwargs, i)
            raise TypeError(
                f"{what}: argument {where} of {name_of(fun)}: the value {x!r} of type {type(x)} is"
                " not a valid JAX type; give an array or a number"
                + (_REGISTER if hasattr(type(x), "__dataclass_fields__") else "")
            ) from None
    return out


def argument_name(fun: Any, args: Sequence[Any], kwargs: dict[str, Any], leaf: int) -> str:
    """What the flat argument `leaf` is called: x, or params['w'][0]."""
    return str(ArgumentNames(fun, args, kwargs)[leaf])
