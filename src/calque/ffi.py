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
    """Would make a function that calls one of another library; refused.

    Args:
        target_name: The name under which that function is registered.
        result_shape_dtypes: What it returns, with a shape and a dtype in place of each array.
        has_side_effect: Whether calls are kept though nobody reads their results.
        vmap_method: How it is called for a batch, as of `pure_callback`.
        input_layouts: The order of the dimensions of each argument.
        output_layouts: The order of the dimensions of each result.
        input_output_aliases: Which results take the memory of arguments.
        custom_call_api_version: The version of XLA's interface.
        legacy_backend_config: What the function is told besides, by the older interface.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to call it: call the library, by ctypes, in a function given to
        `pure_callback`.

    >>> jax.ffi.ffi_call("f", jax.ShapeDtypeStruct((), np.float32))
    Traceback (most recent call last):
    NotImplementedError: ffi.ffi_call speaks to XLA, which is not used here..."""
    _belongs_to_xla("ffi_call")


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> NoReturn:
    """Would register a function of another library with XLA; refused.

    Args:
        name: The name of the function, or of the type.
        fn: The function, in a capsule.
        platform: The platform.
        api_version: The version of XLA's interface.
        **kwargs: Further options.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to register with: call the library in a function given to `pure_callback`.

    >>> jax.ffi.register_ffi_target("f", None)
    Traceback (most recent call last):
    NotImplementedError: ffi.register_ffi_target speaks to XLA, which is not used here..."""
    _belongs_to_xla("register_ffi_target")


def register_ffi_target_as_batch_partitionable(name: str) -> NoReturn:
    """Would say of a registered function that it takes batches; refused.

    Args:
        name: The name of the function, or of the type.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to register with.

    >>> jax.ffi.register_ffi_target_as_batch_partitionable("f")
    Traceback (most recent call last):
    NotImplementedError: ffi.register_ffi_target_as_batch_partitionable speaks to XLA..."""
    _belongs_to_xla("register_ffi_target_as_batch_partitionable")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> NoReturn:
    """Would register a type of values with XLA; refused.

    Args:
        name: The name of the function, or of the type.
        type_registration: How values of the type are made and deleted.
        platform: The platform.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to register with.

    >>> jax.ffi.register_ffi_type("t", None)
    Traceback (most recent call last):
    NotImplementedError: ffi.register_ffi_type speaks to XLA, which is not used here..."""
    _belongs_to_xla("register_ffi_type")


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> NoReturn:
    """Would register the number of a type with XLA; refused.

    Args:
        name: The name of the function, or of the type.
        obj: The number, in a capsule.
        platform: The platform.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to register with.

    >>> jax.ffi.register_ffi_type_id("t", None)
    Traceback (most recent call last):
    NotImplementedError: ffi.register_ffi_type_id speaks to XLA, which is not used here..."""
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
    """Would make the rule by which a primitive calls a registered function; refused.

    Args:
        call_target_name: The name of the function.
        operand_layouts: The order of the dimensions of each operand.
        result_layouts: The order of the dimensions of each result.
        backend_config: What the function is told besides.
        skip_ffi_layout_processing: Whether layouts are left as they are.
        **lowering_args: Further parts of the call.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to lower to: `mlir.lower_fun` takes a function that compiled code runs.

    >>> jax.ffi.ffi_lowering("f")
    Traceback (most recent call last):
    NotImplementedError: ffi.ffi_lowering speaks to XLA, which is not used here..."""
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
    """Would make the rule by which a primitive calls a registered function; refused.

    Args:
        call_target_name: The name of the function.
        operand_layouts: The order of the dimensions of each operand.
        result_layouts: The order of the dimensions of each result.
        backend_config: What the function is told besides.
        skip_ffi_layout_processing: Whether layouts are left as they are.
        **lowering_args: Further parts of the call.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA to lower to: `mlir.lower_fun` takes a function that compiled code runs.

    >>> jax.ffi.build_ffi_lowering_function("f")
    Traceback (most recent call last):
    NotImplementedError: ffi.build_ffi_lowering_function speaks to XLA..."""
    _belongs_to_xla("build_ffi_lowering_function")


def pycapsule(funcptr: Any) -> NoReturn:
    """Would put a pointer to a function into a capsule for XLA; refused.

    Args:
        funcptr: The pointer.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There is no XLA that takes such capsules.

    >>> jax.ffi.pycapsule(None)
    Traceback (most recent call last):
    NotImplementedError: ffi.pycapsule speaks to XLA, which is not used here..."""
    _belongs_to_xla("pycapsule")


def include_dir() -> NoReturn:
    """Would name the folder of XLA's headers; refused.

    Returns:
        Nothing: it raises NotImplementedError.

    Differs from JAX:
        There are no headers.

    >>> jax.ffi.include_dir()
    Traceback (most recent call last):
    NotImplementedError: ffi.include_dir speaks to XLA, which is not used here..."""
    _belongs_to_xla("include_dir")
