"""Calls of functions from other libraries, in JAX's names. They belong to XLA: Python callbacks
take their place here."""

from collections.abc import Callable
from typing import Any, NoReturn


def _belongs_to_xla(what: str) -> NoReturn:
    raise NotImplementedError(
        f"ffi.{what} speaks to XLA, which is not used here. Call the library with ctypes in a"
        " function given to calque.pure_callback"
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
    """Refused: `calque.pure_callback` calls Python functions, which can call libraries."""
    _belongs_to_xla("ffi_call")


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> NoReturn:
    """Refused: there is no XLA to register with."""
    _belongs_to_xla("register_ffi_target")


def register_ffi_target_as_batch_partitionable(name: str) -> NoReturn:
    """Refused: there is no XLA to register with."""
    _belongs_to_xla("register_ffi_target_as_batch_partitionable")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> NoReturn:
    """Refused: there is no XLA to register with."""
    _belongs_to_xla("register_ffi_type")


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> NoReturn:
    """Refused: there is no XLA to register with."""
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
    """Refused: there is no XLA to lower to."""
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
    """Refused: there is no XLA to lower to."""
    _belongs_to_xla("build_ffi_lowering_function")


def pycapsule(funcptr: Any) -> NoReturn:
    """Refused: there is nothing that takes such capsules."""
    _belongs_to_xla("pycapsule")


def include_dir() -> NoReturn:
    """Refused: calque has no headers."""
    _belongs_to_xla("include_dir")
