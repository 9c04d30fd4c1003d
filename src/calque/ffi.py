"""Calls of compiled functions from other libraries, by the interface of XLA's foreign functions, in
JAX's names. calque's own engine calls functions of the CPU itself; XLA's devices call theirs."""

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial as _partial
from typing import Any

from calque.core import guards as _guards
from calque.core.lazy import LazyModule
from calque.machine.foreign import targets as _targets
from calque.transforms.functions.foreign_calls import call_of as _call_of
from calque.transforms.jit.decorator import jit as _jit

_xla = LazyModule("calque.xla.foreign_functions")
_jaxlib = LazyModule("calque.xla.jaxlib")


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Gives a function that calls a compiled one, which `register_ffi_target` has made known.

    Args:
        target_name: The name of the function.
        result_shape_dtypes: What it returns: anything that has a shape and a dtype, or a list or
            tuple of these.
        has_side_effect: Whether it is called though nobody reads its results.
        vmap_method: How it is called for a batch, as `pure_callback` takes it. None refuses a
            batch.
        input_layouts: For each argument the order of its axes in memory, the slowest first, or a
            `Layout`; None for rows after rows.
        output_layouts: The same of the result, or of each of several.
        input_output_aliases: Which arguments (by number) give their memory to which results. The
            caller's arrays do not change.
        custom_call_api_version: 4 for functions of call frames; 1 for functions of pointers.
        legacy_backend_config: A text for functions of versions before 4, on XLA's devices.

    Returns:
        A function of arrays that gives the result, or a list or tuple of results. Its keyword
        arguments are attributes for the compiled function: numbers, texts, NumPy arrays, and dicts
        of these.

    >>> call = jax.ffi.ffi_call("twice", jax.ShapeDtypeStruct((3,), jnp.float32))
    >>> jax.make_jaxpr(lambda x: call(x, factor=2))(jnp.ones(3)).eqns[0].params["attributes"]
    (('factor', 2),)"""
    several = isinstance(result_shape_dtypes, (list, tuple))
    results = result_shape_dtypes if several else [result_shape_dtypes]
    _find(target_name)
    call = _call_of(
        target_name,
        results,
        has_side_effect=has_side_effect,
        vmap_method=vmap_method,
        input_layouts=input_layouts,
        output_layouts=output_layouts if several else [output_layouts],
        input_output_aliases=input_output_aliases,
        version=custom_call_api_version,
        config=legacy_backend_config,
    )

    def called(*args: Any, **attributes: Any) -> Any:
        run = _jit(_partial(call, **attributes)) if _targets.is_elsewhere(target_name) else None
        found = call(*args, **attributes) if run is None else run(*args)
        if not several:
            return found[0]
        return tuple(found) if isinstance(result_shape_dtypes, tuple) else found

    return called


def _find(target_name: str) -> None:
    """Look among the routines that jaxlib brings for a name that nobody has made known."""
    if _targets.find(target_name) is None:
        with contextlib.suppress(_jaxlib.XlaUnavailable):
            _xla.offer_lapack()


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Makes a compiled function known by a name, for `ffi_call`.

    Args:
        name: The name.
        fn: A capsule of its address (`pycapsule`), or a dict of these for the stages "instantiate",
            "prepare", "initialize" and "execute".
        platform: Where it runs: "cpu", "CUDA", "ROCM" or another platform of XLA's.
        api_version: 1 for functions of call frames; 0 for functions of pointers.
        **kwargs: Further options of jaxlib's `register_custom_call_target`; calque's own engine
            has no use for them.

    >>> jax.ffi.register_ffi_target("twice", 3)
    Traceback (most recent call last):
        ...
    TypeError: the stage 'execute' of 'twice' must be a capsule, as jax.ffi.pycapsule..."""
    _targets.make_known(name, fn, platform, api_version, kwargs)


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Makes a type known, of the states that foreign functions keep.

    Args:
        name: The name of the type.
        type_registration: A dict of capsules: "type_id" of the address of its number, which is
            written there, and "type_info" of what ends its values, which may be left out.
        platform: Where it is used.

    >>> jax.ffi.register_ffi_type("State", {})
    Traceback (most recent call last):
        ...
    ValueError: a type of states has a `type_id` and may have a `type_info`: 'State' has..."""
    _targets.make_known_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Refused, as in JAX: `register_ffi_type` takes its place.

    Args:
        name: The name of the type.
        obj: A capsule of the address of its number.
        platform: Where it is used.

    >>> jax.ffi.register_ffi_type_id("State", None)
    Traceback (most recent call last):
        ...
    ValueError: register_ffi_type_id is not supported: use register_ffi_type('State'..."""
    raise ValueError(
        "register_ffi_type_id is not supported: use"
        f" register_ffi_type({name!r}, {{'type_id': capsule}}, platform={platform!r})"
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Tells XLA that a function may be called with parts of its leading axes, on several devices.

    calque's own engine calls it once, with whole arrays.

    Args:
        name: The name of the function.

    >>> jax.ffi.register_ffi_target_as_batch_partitionable("twice")"""
    _targets.declare_partitionable(name)


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Gives a function that makes the operation of MLIR which calls a compiled function, for rules
    given to `interpreters.mlir.register_lowering`. It needs jaxlib.

    Args:
        call_target_name: The name of the function.
        operand_layouts, result_layouts: For each array the order of its axes in memory, as
            sequences that begin with the axis that moves fastest, or a `Layout`; None for rows
            after rows.
        backend_config: A dict of attributes, to which the keyword arguments of the rule are added.
        skip_ffi_layout_processing: Whether nothing is said of orders in memory.
        **lowering_args: Further arguments of `interpreters.mlir.custom_call`.

    Returns:
        A function of a lowering context, operands, and attributes as keywords.

    >>> callable(jax.ffi.build_ffi_lowering_function("twice"))
    True"""

    def lowered(ctx: Any, *operands: Any, **attributes: Any) -> Any:
        rule = _xla.call_rule(
            call_target_name,
            operand_layouts=operand_layouts,
            result_layouts=result_layouts,
            backend_config=backend_config,
            skip_ffi_layout_processing=skip_ffi_layout_processing,
            options=lowering_args,
        )
        return rule(ctx, *operands, **attributes)

    return lowered


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Gives a rule for `interpreters.mlir.register_lowering` by which a primitive calls a compiled
    function. It needs jaxlib.

    Args:
        call_target_name: The name of the function.
        operand_layouts, result_layouts: For each array the order of its axes in memory, as
            sequences that begin with the axis that moves fastest, or a `Layout`; None for rows
            after rows.
        backend_config: A dict of attributes, to which those of the equation are added.
        skip_ffi_layout_processing: Whether nothing is said of orders in memory.
        **lowering_args: Further arguments of `interpreters.mlir.custom_call`.

    Returns:
        A lowering rule.

    >>> callable(jax.ffi.ffi_lowering("twice"))
    True"""
    build = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )
    return lambda ctx, *operands, **attributes: build(ctx, *operands, **attributes).results


def pycapsule(funcptr: Any) -> Any:
    """Gives a capsule of the address of a function that ctypes has found in a library.

    Args:
        funcptr: A function of a library opened by ctypes, or an address. The library has to stay
            open.

    Returns:
        A PyCapsule, for `register_ffi_target`.

    >>> import ctypes
    >>> type(jax.ffi.pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
    'PyCapsule'"""
    address = funcptr if isinstance(funcptr, int) else ctypes.cast(funcptr, ctypes.c_void_p).value
    if not address:
        raise ValueError("pycapsule: the address of the function is null")
    return _targets.capsule_of(address)


def include_dir() -> str:
    """Gives the folder of the headers that foreign functions are written with; jaxlib has them.

    Returns:
        A path, for the compiler's option `-I`. `xla/ffi/api/ffi.h` lies there.

    >>> try:
    ...     print(jax.ffi.include_dir().endswith("include"))
    ... except RuntimeError:  # where jaxlib is not installed
    ...     print(True)
    True"""
    return os.path.join(_jaxlib.folder(), "include")


_guards.guard_public(globals())
