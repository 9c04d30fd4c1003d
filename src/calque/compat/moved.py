"""Names that JAX has moved from `jax.core` to `jax.extend.core`, and still answers for at the old
place with a warning."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any, Final

NAMES: Final = frozenset(
    (
        "CallPrimitive",
        "DebugInfo",
        "DropVar",
        "Effect",
        "Effects",
        "InconclusiveDimensionOperation",
        "JaxprTypeError",
        "check_jaxpr",
        "concrete_or_error",
        "find_top_trace",
        "gensym",
        "get_opaque_trace_state",
        "jaxprs_in_params",
        "new_jaxpr_eqn",
        "no_effects",
        "nonempty_axis_env_DO_NOT_USE",
        "primal_dtype_to_tangent_dtype",
        "unsafe_am_i_under_a_jit_DO_NOT_USE",
        "unsafe_am_i_under_a_vmap_DO_NOT_USE",
        "unsafe_get_axis_names_DO_NOT_USE",
        "valid_jaxtype",
    )
)


def offer(core: ModuleType) -> None:
    """Let `jax.core` answer for them."""
    own = vars(core)["__getattr__"]

    def get(name: str) -> Any:
        if name not in NAMES:
            return own(name)
        warnings.warn(
            f"jax.core.{name} is deprecated. Use jax.extend.core.{name}.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module("calque.extend.core"), name)

    vars(core)["__getattr__"] = get
