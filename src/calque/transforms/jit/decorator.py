"""jit: trace once, compile once, then call machine code.

The object that `jit` returns is a C callable. On a hit no Python runs; on a miss
`JittedFunction.miss` finds or makes the program and teaches the callable how to recognise such a
call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from calque.machine.state import process
from calque.transforms.devices.sharding_constraint import jit_shardings
from calque.transforms.engines.signatures import check_callable, resolve
from calque.transforms.jit import captures, epochs, identity
from calque.transforms.jit import dynamic as dynamic_sizes
from calque.transforms.jit.compiler_options import check_options, flat_options
from calque.transforms.jit.control_flow import converted
from calque.transforms.jit.function import JitOptions, wrapped
from calque.transforms.jit.methods import Jitted as _Jitted  # noqa: F401 (what jit returns has them)

if TYPE_CHECKING:
    from calque.core.generics import P, R
    from calque.transforms.jit.jitted import Jitted


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Any = None,
    dynamic: Any = "auto",
    on_stale: str | None = None,
    control_flow: str | None = None,
) -> Jitted[P, R]: ...


@overload
def jit(
    fun: None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Any = None,
    dynamic: Any = "auto",
    on_stale: str | None = None,
    control_flow: str | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Any = None,
    dynamic: Any = "auto",
    on_stale: str | None = None,
    control_flow: str | None = None,
) -> Any:
    """Compiles a function: traced when types of arguments are new, it runs as machine code then.

    A second size of a dimension makes one program for every size. What the function reads besides
    its arguments is a constant of the program; when it has changed, a call warns.

    Args:
        fun: The function, of arrays and trees of them. Left out, a decorator with the other
            arguments is returned.
        in_shardings: A sharding for each argument, or a tree of them that the arguments begin with;
            None leaves an argument where it is.
        out_shardings: The same for the results; None leaves the choice to the compiler.
        static_argnums: Positions of arguments that are Python values while tracing. They must be
            hashable; each value has its own program.
        static_argnames: Names of such arguments. Where only one of the two is given, the other
            follows from the signature.
        donate_argnums: Positions of arguments that are given away: results take their memory where
            they fit, and the arrays are deleted.
        donate_argnames: Names of such arguments.
        keep_unused: Whether arguments that the program does not read are handed to it all the same.
        device: One of `devices()`, where the results live; None for the default one.
        backend: "cpu" or None; the name of another platform takes its first device.
        inline: Whether calls inside another program become equations of that program, with no call
            left.
        compiler_options: Options by name, for calls compiled by XLA; others have none.
        dynamic: Which sizes are free from the first call on, as `{"x": 0}` or `{0: (0, 1)}`
            (argument: axes); "auto" frees a size when it changes, "never" keeps all fixed.
        on_stale: What a call does when a captured value has changed: None warns, "retrace" traces
            again, "error" raises, "ignore" does nothing.
        control_flow: "convert" lets `if`, `while`, `for` and their kin work on traced values, as
            `convert` describes; None leaves Python as it is.

    Returns:
        A callable with the signature of `fun`. It has `lower`, `trace`, `eval_shape` and
        `clear_cache`.

    Differs from JAX:
        `dynamic`, `on_stale` and `control_flow` are calque's own. A new size of an axis needs no
        new compilation. Values that were captured and have changed are noticed.

    >>> f = jax.jit(lambda x: 2 * x + 1)
    >>> f(jnp.arange(3.0))
    Array([1., 3., 5.], dtype=float32)"""
    check_options(compiler_options)
    if fun is None:
        return functools.partial(
            jit,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            compiler_options=compiler_options,
            dynamic=dynamic,
            on_stale=on_stale,
            control_flow=control_flow,
        )
    check_callable(fun)
    fun = converted(fun, control_flow)
    static, static_names = resolve(fun, static_argnums, static_argnames, "static")
    donate, donate_names = resolve(fun, donate_argnums, donate_argnames, "donate")
    if donate or donate_names:
        _check_distinct((static, static_names), (donate, donate_names))
    shardings = jit_shardings(in_shardings, out_shardings, device, backend)
    options = JitOptions(
        static,
        static_names,
        donate,
        donate_names,
        keep_unused,
        inline,
        shardings,
        dynamic_sizes.checked(dynamic),
        captures.checked_policy(on_stale),
        flat_options(compiler_options),
    )
    return wrapped(fun, options)


def _check_distinct(static: tuple[Any, Any], donated: tuple[Any, Any]) -> None:
    if any(set(s) & set(d) for s, d in zip(static, donated)):
        raise ValueError(
            "static_argnums and donate_argnums, static_argnames and donate_argnames cannot"
            f" intersect: a static value has no memory. Static are {static[0]} {static[1]}, donated"
            f" {donated[0]} {donated[1]}."
        )


forgetting: Final = process.listeners("programs are forgotten")  # by `clear_caches`


def clear_caches() -> None:
    """Forgets every traced and compiled program of this process.

    The next call of each function traces again. Kernels on disk stay, so that compiling again is
    quick.

    Returns:
        None.

    >>> jax.clear_caches()"""
    identity.clear()
    process.caches.clear_programs()
    epochs.renew()
    forgetting.tell()
