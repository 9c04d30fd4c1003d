"""`compiler_options`: what XLA's compilers are told. Calque's own has no options: those that XLA
knows are accepted, noted in the log once, and change nothing there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from calque.core.errors import CalqueRuntimeError
from calque.machine.caches import Table

_NAMES: Final = {
    "exec_time_optimization_effort": float,
    "memory_fitting_effort": float,
    "optimization_level": int,
    "memory_fitting_level": int,
    "xla_embed_ir_in_executable": bool,
    "num_replicas": int,
    "num_partitions": int,
    "use_spmd_partitioning": bool,
    "use_auto_spmd_partitioning": bool,
    "device_assignment": str,
}
_TRUTH: Final = ("true", "false", "True", "False")
_noted: Final[Table[str, bool]] = Table("compiler options that the log has noted", 256)


def check_options(options: Mapping[str, Any] | None) -> None:
    """An error for options that no compiler has, or values that they cannot take."""
    for name, value in (options or {}).items():
        kind = _NAMES.get(name)
        if kind is None and not name.startswith("xla_"):
            raise CalqueRuntimeError(f"No such compile option: {name!r}")
        if not isinstance(value, (bool, int, float, str)):
            raise CalqueRuntimeError(
                f"compiler option {name}: a value is a bool, a number or a str, got {value!r}"
            )
        if kind is not None:
            _check_value(name, kind, value)
        if _noted.find(name) is None:
            _noted[name] = True
            log = logging.getLogger("calque")
            log.info("the compiler option %s speaks to XLA: calque's own compiler has none", name)


def flat_options(options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """The options in an order that does not depend on how they were written."""
    return tuple(sorted((options or {}).items()))


def _check_value(name: str, kind: type, value: Any) -> None:
    if isinstance(value, str):
        good = kind is str or (kind is bool and value in _TRUTH) or _is_number(kind, value)
    else:
        good = isinstance(value, (bool, int, float)) and (kind is float or value == kind(value))
    if not good:
        raise CalqueRuntimeError(
            f"compiler option {name}: {value!r} is not a valid {kind.__name__} value."
        )


def _is_number(kind: type, text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return kind is not bool
