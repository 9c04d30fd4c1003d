"""Programs as files for other processes, in JAX's names. Not there yet: what can be asked of it is refused with the remedy."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn


def _not_yet(what: str) -> NoReturn:
    raise NotImplementedError(
        f"export.{what}: calque cannot export programs yet. Compiled kernels are kept on disk by themselves, so a second process "
        "compiles nothing; f.lower(x).as_text() gives the program as text"
    )


def export(
    fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None, disabled_checks: Any = ()
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


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: Any = None) -> NoReturn:
    """Refused: sizes are numbers."""
    _not_yet("symbolic_args_specs")


def is_symbolic_dim(p: Any) -> bool:
    """Is this a size that stands for any number? None is: `is_symbolic_dim(3)` is False."""
    return False


def default_export_platform() -> str:
    """The platform that programs are compiled for: 'cpu'."""
    return "cpu"
