"""Derivatives with respect to sparse arrays: in the places that they store."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.trace import typeof
from calque.experimental.sparse.base import is_sparse
from calque.transforms.functions import autodiff
from calque.transforms.functions import jacobian as dense
from calque.transforms.functions.vmap import vmap


class _Split:
    """The arguments of a call: what is differentiated (values, of sparse arrays the stored ones),
    and how to put the rest around it."""

    def __init__(self, argnums: int | Sequence[int], args: tuple[Any, ...]):
        self.args = args
        self.single = isinstance(argnums, int)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        self.numbers = tuple(n % len(args) if -len(args) <= n < len(args) else n for n in numbers)
        if any(not 0 <= n < len(args) for n in self.numbers):
            raise ValueError(
                f"argnums={argnums} are out of bounds for {len(args)} positional arguments"
            )
        self.leaves, self.tree = pytrees.flatten([args[n] for n in self.numbers], is_leaf=is_sparse)
        self.values = [x.data if is_sparse(x) else x for x in self.leaves]

    def whole(self, values: Sequence[Any]) -> list[Any]:
        """All arguments, with these values."""
        filled = pytrees.unflatten(self.tree, [_with(x, v) for x, v in zip(self.leaves, values)])
        args = list(self.args)
        for n, x in zip(self.numbers, filled):
            args[n] = x
        return args

    def gradient(self, values: Sequence[Any]) -> Any:
        """Derivatives in the form of the arguments, with more leading dimensions where there are
        more."""
        filled = pytrees.unflatten(self.tree, [_batched(x, v) for x, v in zip(self.leaves, values)])
        return filled[0] if self.single else tuple(filled)


def _with(x: Any, value: Any) -> Any:
    if not is_sparse(x):
        return value
    leaves, tree = pytrees.flatten(x)
    return pytrees.unflatten(tree, [value, *leaves[1:]])


def _batched(x: Any, value: Any) -> Any:
    if not is_sparse(x):
        return value

    def f(v: Any) -> Any:
        return _with(x, v)

    for _ in range(typeof(value).ndim - typeof(x.data).ndim):
        f = vmap(f)
    return f(value)


def _sparse_aware(transform: Callable[..., Any], with_value: bool, name: str) -> Callable[..., Any]:
    def make(
        fun: Callable[..., Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        **options: Any,
    ) -> Any:
        @functools.wraps(fun)
        def derivative(*args: Any, **kwargs: Any) -> Any:
            parts = _Split(argnums, args)

            def flat(values: Any) -> Any:
                return fun(*parts.whole(values), **kwargs)

            out = transform(flat, has_aux=has_aux, **options)(parts.values)
            if with_value:
                return out[0], parts.gradient(out[1])
            return (parts.gradient(out[0]), out[1]) if has_aux else parts.gradient(out)

        return derivative

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Makes a function that gives what `jax.{name}` gives, for sparse arrays too.

    Args:
        fun: The function; its arguments may be sparse.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        **options: Further arguments of `jax.{name}`.

    Returns:
        A function of the same arguments. What it gives of a sparse argument has its places.

    >>> a = sparse.eye(2)
    >>> sparse.grad(lambda a: (a @ jnp.array([2.0, 3.0])).sum())(a).data
    Array([2., 3.], dtype=float32)"""
    return make


grad = _sparse_aware(autodiff.grad, False, "grad")
value_and_grad = _sparse_aware(autodiff.value_and_grad, True, "value_and_grad")
jacfwd = _sparse_aware(dense.jacfwd, False, "jacfwd")
jacrev = _sparse_aware(dense.jacrev, False, "jacrev")
jacobian = jacrev
