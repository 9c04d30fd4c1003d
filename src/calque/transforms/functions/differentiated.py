"""What derivatives are taken of: the arguments in `argnums`, their names in messages, and the types
that they and the results must have."""

from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex, is_extended, is_float, is_inexact
from calque.core.trace import typeof
from calque.transforms.engines.trees import argument_name, name_of


def check_argnums(argnums: Any) -> int | tuple[int, ...]:
    """argnums as an int or a tuple of ints."""
    if isinstance(argnums, int) or hasattr(argnums, "__index__"):
        return int(argnums)
    try:
        return tuple(int(i) for i in argnums)
    except (TypeError, ValueError):
        raise TypeError(f"argnums must be an int or a sequence of ints; got {argnums!r}") from None


def partial_function(
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    what: str,
) -> tuple[tuple[int, ...], Callable[..., Any], tuple[Any, ...]]:
    """`fun` of the arguments in `argnums` alone (positions counted from the front), and these
    arguments."""
    nums = (argnums,) if isinstance(argnums, int) else argnums
    for n in nums:
        if not -len(args) <= n < len(args):
            raise TypeError(
                f"differentiating with respect to argnums={argnums} requires at least"
                f" {n + 1 if n >= 0 else -n} positional arguments to be passed by the caller, but"
                f" got only {len(args)} positional arguments. The function is {name_of(fun)}."
            )
    wanted = tuple(n % len(args) for n in nums)

    def partial(values: Sequence[Any]) -> Any:
        full = list(args)
        for n, v in zip(wanted, values):
            full[n] = v
        return fun(*full, **kwargs)

    partial.__name__ = name_of(fun)
    return wanted, partial, (tuple(args[n] for n in wanted),)


def diff_name(
    fun: Any, args: Sequence[Any], kwargs: dict[str, Any], wanted: Sequence[int], leaf: int
) -> str:
    """What the flat differentiated argument `leaf` is called."""
    for n in wanted:
        count = len(pytrees.leaves(args[n]))
        if leaf < count:
            return argument_name(
                fun, args, kwargs, sum(len(pytrees.leaves(a)) for a in args[:n]) + leaf
            )
        leaf -= count
    raise AssertionError("no such leaf")


def check_grad_input(x: Any, holomorphic: bool, allow_int: bool, name: Callable[[], str]) -> None:
    dtype = typeof(x).dtype
    if holomorphic:
        if not is_complex(dtype):
            raise TypeError(
                "grad with holomorphic=True requires inputs with complex dtype, but got"
                f" {dtype.name} for the argument {name()}."
            )
    elif is_extended(dtype) or not (allow_int or is_inexact(dtype)):
        raise TypeError(
            "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of"
            f" np.inexact), but got {dtype.name} for the argument {name()}. If you want to use"
            " Boolean- or integer-valued inputs, use vjp or set allow_int to True."
        )


def check_grad_output(
    outs: Sequence[Any], tree: pytrees.PyTreeDef, holomorphic: bool, fun: Any
) -> None:
    if not tree.is_leaf():
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output of {name_of(fun)} was a"
            f" container: {tree}. Return one number, and other results with has_aux=True."
        )
    aval = typeof(outs[0])
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output of {name_of(fun)} had"
            f" shape: {aval.shape}. jacrev and jacfwd differentiate all of its elements; .sum()"
            " makes one number of them."
        )
    check_output_dtype("grad", aval, holomorphic)


def check_output_dtype(what: str, aval: ShapedArray, holomorphic: bool) -> None:
    if holomorphic:
        if not is_complex(aval.dtype):
            raise TypeError(
                f"{what} with holomorphic=True requires outputs with complex dtype, but got"
                f" {aval.dtype.name}."
            )
    elif is_complex(aval.dtype):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of"
            f" np.floating), but got {aval.dtype.name}. For holomorphic differentiation, pass"
            " holomorphic=True. For differentiation of non-holomorphic functions involving complex"
            " outputs, use calque.vjp directly."
        )
    elif not is_float(aval.dtype):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of"
            f" np.floating), but got {getattr(aval.dtype, 'name', aval.dtype)}. For differentiation"
            " of functions with integer outputs, use calque.vjp directly."
        )
