"""Functions of flat arguments with transformations around them: what `extend.linear_util` offers,
and what traces of libraries are handed."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Generator
from functools import partial, update_wrapper
from typing import Any, Final

from calque.core.config import config
from calque.machine.caches import Entries, Tables

_NOTHING = object()


class StoreException(Exception):
    """A store that is read before it is filled, or filled a second time."""


class Store:
    """A place for one value that a call leaves behind.

    >>> from calque import extend
    >>> store = extend.linear_util.Store()
    >>> store.store(3)
    >>> store.val
    3"""

    def __init__(self) -> None:
        self._val: Any = _NOTHING

    def store(self, val: Any) -> None:
        """Fills the place, which must be empty.

        Args:
            val: The value."""
        if self._val is not _NOTHING:
            raise StoreException("Store occupied")
        self._val = val

    def reset(self) -> None:
        """Empties the place, for another call."""
        self._val = _NOTHING

    @property
    def val(self) -> Any:
        """The value left by the last call."""
        if self._val is _NOTHING:
            raise StoreException("Store empty: call the function first")
        return self._val

    def __bool__(self) -> bool:
        return self._val is not _NOTHING


class WrappedFun:
    """A function with parameters bound, and what transformations have made around it.

    Two of them are equal when they wrap equal functions with equal parameters and the same
    transformations, so that they can be keys.

    Args:
        f: The function.
        params: Pairs (name, value) that every call gets.
        transforms: Pairs (transformation, its arguments), the innermost first.
        stores: Places that transformations leave values in.
        debug_info: Names for messages.

    >>> from calque import extend
    >>> extend.linear_util.wrap_init(max).call_wrapped(1, 2)
    2"""

    def __init__(
        self,
        f: Callable[..., Any],
        params: tuple[tuple[str, Any], ...] = (),
        transforms: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (),
        stores: tuple[Store, ...] = (),
        debug_info: Any = None,
    ) -> None:
        self.f_transformed = self.f = f
        self.params, self.transforms, self.stores = params, transforms, stores
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self, transformation: Callable[..., Any], args: tuple[Any, ...], store: Store | None
    ) -> WrappedFun:
        """Gives the function with one more transformation around it.

        Args:
            transformation: A function of (f, *args, arguments of the call).
            args: What it gets first.
            store: A place for what it leaves behind, or None.

        Returns:
            A WrappedFun."""
        kept = self.stores if store is None else (*self.stores, store)
        given = args if store is None else (store, *args)
        transforms = (*self.transforms, (transformation, given))
        return WrappedFun(self.f, self.params, transforms, kept, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it: the outermost transformation first.

        Args:
            *args: The arguments.
            **kwargs: The arguments by name.

        Returns:
            What it returns."""
        for store in self.stores:
            store.reset()
        call: Callable[..., Any] = partial(self.f, **dict(self.params))
        for transformation, given in self.transforms:
            call = partial(transformation, call, *given)
        return call(*args, **kwargs)

    __call__ = call_wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.f, len(self.transforms)))

    def _identity(self) -> tuple[Any, ...]:
        return self.f, self.params, self.transforms

    def __repr__(self) -> str:
        around = "".join(
            f"{getattr(t, '__name__', t)}{given}\n" for t, given in reversed(self.transforms)
        )
        return f"Wrapped function:\n{around}Core: {self.__name__}\n"


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """Wraps a function, without transformations.

    Args:
        f: The function.
        params: Arguments by name that every call gets.
        debug_info: Names for messages.

    Returns:
        A WrappedFun.

    >>> from calque import extend
    >>> extend.linear_util.wrap_init(max).call_wrapped(1, 2)
    2"""
    bound = tuple(sorted((params or {}).items()))
    return WrappedFun(f, bound, debug_info=debug_info)


def transformation2(fun: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Makes a transformation of wrapped functions; a decorator.

    Args:
        fun: `fun(f, *given, *args)` calls `f`.

    Returns:
        A function of a WrappedFun and `given` that gives a WrappedFun.

    >>> from calque import extend
    >>> @extend.linear_util.transformation2
    ... def doubled(f, x):
    ...     return 2 * f(x)
    >>> doubled(extend.linear_util.wrap_init(abs)).call_wrapped(-3)
    6"""

    def around(wrapped: WrappedFun, *given: Any) -> WrappedFun:
        return wrapped.wrap(fun, given, None)

    return update_wrapper(around, fun)


def transformation_with_aux2(
    fun: Callable[..., Any],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Makes a transformation that leaves a value behind; a decorator.

    Args:
        fun: `fun(f, store, *given, *args)` calls `f`, and may call `store.store(value)`.

    Returns:
        A function of a WrappedFun and `given` that gives a pair: a WrappedFun, and a function that
        gives the value after a call.

    >>> from calque import extend
    >>> @extend.linear_util.transformation_with_aux2
    ... def noting(f, store, x):
    ...     store.store(x)
    ...     return f(x)
    >>> f, argument = noting(extend.linear_util.wrap_init(abs))
    >>> f.call_wrapped(-3), argument()
    (3, -3)"""

    def around(wrapped: WrappedFun, *given: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        return wrapped.wrap(fun, given, store), lambda: store.val

    return update_wrapper(around, fun)


def _stepped(
    gen: Callable[..., Generator[Any, Any, Any]], call: Callable[..., Any], *args: Any, **kw: Any
) -> Any:
    """A transformation written as a generator: it yields arguments, then a result. What it entered
    it has left when this returns, or raises."""
    with contextlib.closing(gen(*args, **kw)) as steps:
        inner_args, inner_kwargs = next(steps)
        return steps.send(call(*inner_args, **inner_kwargs))


def transformation(gen: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., WrappedFun]:
    """Makes a transformation of a generator; a decorator.

    Args:
        gen: It yields the arguments and keywords of the function inside, is sent its result, and
            yields its own.

    Returns:
        A function of a WrappedFun that gives a WrappedFun.

    >>> from calque import extend
    >>> @extend.linear_util.transformation
    ... def doubled(x):
    ...     y = yield (x,), {}
    ...     yield 2 * y
    >>> doubled(extend.linear_util.wrap_init(abs)).call_wrapped(-3)
    6"""

    def call(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return _stepped(gen, f, *args, **kwargs)

    return transformation2(update_wrapper(call, gen))


def transformation_with_aux(
    gen: Callable[..., Generator[Any, Any, Any]],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Makes a transformation of a generator that leaves a value behind; a decorator.

    Args:
        gen: As of `transformation`; it yields (result, value) at last.

    Returns:
        A function of a WrappedFun that gives a pair, as of `transformation_with_aux2`.

    >>> from calque import extend
    >>> @extend.linear_util.transformation_with_aux
    ... def noting(x):
    ...     y = yield (x,), {}
    ...     yield y, x
    >>> f, argument = noting(extend.linear_util.wrap_init(abs))
    >>> f.call_wrapped(-3), argument()
    (3, -3)"""

    def call(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        out, aux = _stepped(gen, f, *args, **kwargs)
        store.store(aux)
        return out

    return transformation_with_aux2(update_wrapper(call, gen))


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Gives the value that one of two transformations left behind.

    Args:
        aux1: What `transformation_with_aux` gave beside the first function.
        aux2: The same of the second. One of the two functions has been called, not both.

    Returns:
        A pair: whether it was the first, and its value.

    >>> from calque.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def noting(f, store, x):
    ...     store.store(x)
    ...     return f(x)
    >>> (f, first), (g, second) = [noting(lu.wrap_init(abs)) for _ in range(2)]
    >>> _ = g.call_wrapped(-3)
    >>> lu.merge_linear_aux(first, second)
    (False, -3)"""
    left = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        with contextlib.suppress(StoreException):
            left.append((is_first, aux()))
    if len(left) != 1:
        raise StoreException("both stores occupied" if left else "neither store occupied")
    return left[0]


_results: Final[Tables[Any, Any]] = Tables("results of functions of wrapped functions", 1024)


def cache(call: Callable[..., Any], *, explain: Callable[..., None] | None = None) -> Any:
    """Makes a function of a WrappedFun keep what it gave, as long as the wrapped function lives.

    Args:
        call: A function of a WrappedFun and of further arguments that can be keys. What it gave is
            found again for the same function with the same parameters and transformations, the same
            further arguments and the same configuration; the places that transformations leave
            values in are filled as they were.
        explain: Called when nothing was found and `jax_explain_cache_misses` is set: with the
            WrappedFun, whether its function is new, what is kept for it, the key and the seconds
            that `call` took.

    Returns:
        A function of the same arguments, with `cache_clear()` and `evict_function(f)`.

    >>> from calque.extend import linear_util as lu
    >>> length = lu.cache(lambda fun, x: print("called") or len(fun.call_wrapped(x)))
    >>> length(lu.wrap_init(str), 100), length(lu.wrap_init(str), 100)
    called
    (3, 3)"""
    of_functions: dict[weakref.ref[Any], Entries[Any, Any]] = {}

    def forget(dead: weakref.ref[Any]) -> None:
        of_functions.pop(dead, None)

    def kept(fun: WrappedFun, *args: Any) -> Any:
        known = of_functions.get(weakref.ref(fun.f))
        is_new = known is None
        entries = _results.new() if known is None else known
        if is_new:
            of_functions[weakref.ref(fun.f, forget)] = entries
        transforms = tuple(
            (t, tuple(x for x in given if not isinstance(x, Store))) for t, given in fun.transforms
        )
        key = (transforms, fun.params, args, config.trace_key())
        found = entries.find(key)
        if found is None:
            start = time.perf_counter()
            answer = call(fun, *args)
            if explain is not None and config.explain_cache_misses:
                explain(fun, is_new, entries, key, time.perf_counter() - start)
            entries[key] = (answer, [s.val if s else _NOTHING for s in fun.stores])
            return answer
        answer, values = found
        for store, value in zip(fun.stores, values, strict=True):
            store.reset()
            if value is not _NOTHING:
                store.store(value)
        return answer

    update_wrapper(kept, call)
    kept.cache_clear = of_functions.clear  # type: ignore[attr-defined]
    kept.evict_function = lambda f: forget(weakref.ref(f))  # type: ignore[attr-defined]
    return kept
