"""Programs as files for other processes, in JAX's names. They wait for the XLA engine: what can be
asked of it is refused with the remedy."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn


def _not_yet(what: str) -> NoReturn:
    raise NotImplementedError(
        f"export.{what}: calque cannot export programs yet, this waits for the XLA engine. Compiled"
        " kernels are kept on disk by themselves, so a second process compiles nothing;"
        " f.lower(x).as_text() gives the program as text"
    )


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Any = (),
) -> NoReturn:
    """Refused: programs cannot be exported yet."""
    _not_yet("export")


def deserialize(blob: Any) -> NoReturn:
    """Refused: programs cannot be exported yet."""
    _not_yet("deserialize")


def symbolic_shape(
    shape_spec: str | None, *, constraints: Sequence[str] = (), scope: Any = None, like: Any = None
) -> NoReturn:
    """Refused: sizes are numbers."""
    _not_yet("symbolic_shape")


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: Any = None
) -> NoReturn:
    """Refused: sizes are numbers."""
    _not_yet("symbolic_args_specs")


def is_symbolic_dim(p: Any) -> bool:
    """Whether this is a size that stands for any number. None is: `is_symbolic_dim(3)` is False."""
    return False


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[..., Any] | None = None,
) -> NoReturn:
    """Refused: programs cannot be exported yet."""
    _not_yet("register_pytree_node_serialization")


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> NoReturn:
    """Refused: programs cannot be exported yet."""
    _not_yet("register_namedtuple_serialization")


class Exported:
    """A program as `export` and `deserialize` would give it. None can be made yet."""

    def __init__(self, *args: Any, **kwargs: Any):
        _not_yet("Exported")


class SymbolicScope:
    """The names of sizes that `symbolic_shape` would take. None can be made yet."""

    def __init__(self, constraints_str: Sequence[str] = ()):
        _not_yet("SymbolicScope")


class DisabledSafetyCheck:
    """A check that `export` would leave out. None can be made yet."""

    def __init__(self, _impl: str):
        _not_yet("DisabledSafetyCheck")

    @classmethod
    def platform(cls) -> NoReturn:
        """Refused: programs cannot be exported yet."""
        _not_yet("DisabledSafetyCheck.platform")

    @classmethod
    def custom_call(cls, target_name: str) -> NoReturn:
        """Refused: programs cannot be exported yet."""
        _not_yet("DisabledSafetyCheck.custom_call")


def default_export_platform() -> str:
    """The platform that programs are compiled for: 'cpu'."""
    return "cpu"
