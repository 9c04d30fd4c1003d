"""fwd_and_bwd: the two passes of a derivative as two functions."""

from collections.abc import Callable, Sequence
from typing import Any

from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import name_of
from calque.transforms.functions.autodiff import vjp
from calque.transforms.jit.decorator import jit


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Makes two compiled functions of the two passes of a derivative.

    Args:
        fun: The function.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        jitted: Whether the two functions are compiled.

    Returns:
        A pair (fwd, bwd). `fwd(*args)` gives the result, what the backward pass needs and, with
        `has_aux`, the auxiliary output; `bwd(residuals, cotangent)` gives the cotangents of the
        chosen arguments.

    >>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = fwd(2.0, 3.0)
    >>> bwd(residuals, 1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))"""
    check_callable(fun, "fwd_and_bwd")
    single = isinstance(argnums, int)
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        where = _places(nums, len(args), name_of(fun))

        def of_chosen(*chosen: Any) -> Any:
            full = list(args)
            for i, x in zip(where, chosen):
                full[i] = x
            return fun(*full, **kwargs)

        return vjp(of_chosen, *[args[i] for i in where], has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        found = residuals(cotangent)
        return found[0] if single else found

    fwd.__name__, bwd.__name__ = f"{name_of(fun)}_fwd", f"{name_of(fun)}_bwd"
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def _places(nums: Sequence[int], count: int, name: str) -> list[int]:
    for n in nums:
        if not -count <= n < count:
            raise ValueError(
                f"fwd_and_bwd: argnums has {n}, but {name} is called with {count} positional"
                " arguments"
            )
    return [n % count for n in nums]
