"""Calls of functions from other libraries, in JAX's names. They belong to XLA: Python callbacks
take their place here."""

from collections.abc import Callable
from typing import Any, NoReturn

from calque.core import guards as _guards


def _belongs_to_xla(what: str) -> NoReturn:
    raise NotImplementedError(
        f"ffi.{what} speaks to XLA, which is not told of foreign functions here. Call"
        " the library with ctypes in a function given to calque.pure_callback"
    )


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: Any = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: Any = None,
) -> Callable[..., Any]:
    """Refused: calls of functions of XLA's interface. `pure_callback` calls Python functions, which
    can call libraries.

    Args:
        target_name: the name of the function.
        result_shape_dtypes: what it returns.
        has_side_effect: whether it does more than that.
        vmap_method: how it is batched.
        input_layouts, output_layouts: how arrays lie in memory.
        input_output_aliases: which results take the memory of which arguments.
        custom_call_api_version, legacy_backend_config: XLA's.
    Returns:
        Nothing: it raises NotImplementedError.

    >>> jax.ffi.ffi_call("f", ())
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.ffi_call speaks to XLA, which is not told..."""
    _belongs_to_xla("ffi_call")


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> NoReturn:
    """Refused: there is no XLA to register with.

    Args:
        name: the name of the function.
        fn: a capsule of its address.
        platform: where it runs.
        api_version: XLA's.
        **kwargs: anything.

    >>> jax.ffi.register_ffi_target("f", None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.register_ffi_target speaks to XLA, which is not..."""
    _belongs_to_xla("register_ffi_target")


def register_ffi_target_as_batch_partitionable(name: str) -> NoReturn:
    """Refused: there is no XLA to register with.

    Args:
        name: the name of the function.

    >>> jax.ffi.register_ffi_target_as_batch_partitionable("f")
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.register_ffi_target_as_batch_partitionable speaks..."""
    _belongs_to_xla("register_ffi_target_as_batch_partitionable")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> NoReturn:
    """Refused: there is no XLA to register with.

    Args:
        name: the name of the type.
        type_registration: what XLA needs to know.
        platform: where it is used.

    >>> jax.ffi.register_ffi_type("t", None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.register_ffi_type speaks to XLA, which is not told..."""
    _belongs_to_xla("register_ffi_type")


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> NoReturn:
    """Refused: there is no XLA to register with.

    Args:
        name: the name of the type.
        obj: a capsule of its number.
        platform: where it is used.

    >>> jax.ffi.register_ffi_type_id("t", None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.register_ffi_type_id speaks to XLA, which is not..."""
    _belongs_to_xla("register_ffi_type_id")


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Any = None,
    result_layouts: Any = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> NoReturn:
    """Refused: there is no XLA to lower to.

    Args:
        call_target_name: the name of the function.
        operand_layouts, result_layouts: how arrays lie in memory.
        backend_config: attributes of the call.
        skip_ffi_layout_processing: whether layouts are taken as they are.
        **lowering_args: anything.

    >>> jax.ffi.ffi_lowering("f")
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.ffi_lowering speaks to XLA, which is not told..."""
    _belongs_to_xla("ffi_lowering")


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Any = None,
    result_layouts: Any = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> NoReturn:
    """Refused: there is no XLA to lower to.

    Args:
        call_target_name: the name of the function.
        operand_layouts, result_layouts: how arrays lie in memory.
        backend_config: attributes of the call.
        skip_ffi_layout_processing: whether layouts are taken as they are.
        **lowering_args: anything.

    >>> jax.ffi.build_ffi_lowering_function("f")
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.build_ffi_lowering_function speaks to XLA, which..."""
    _belongs_to_xla("build_ffi_lowering_function")


def pycapsule(funcptr: Any) -> NoReturn:
    """Refused: there is nothing that takes such capsules.

    Args:
        funcptr: the address of a function.

    >>> jax.ffi.pycapsule(None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.pycapsule speaks to XLA, which is not told..."""
    _belongs_to_xla("pycapsule")


def include_dir() -> NoReturn:
    """Refused: calque has no headers.

    >>> jax.ffi.include_dir()
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.include_dir speaks to XLA, which is not told..."""
    _belongs_to_xla("include_dir")


_guards.guard_public(globals())
