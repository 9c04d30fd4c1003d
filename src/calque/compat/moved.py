"""Names that JAX has moved from `jax.core` to `jax.extend.core`, or wants to take away, and still
answers for with a warning."""

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

WITHOUT_PLACE: Final = frozenset(("is_concrete", "is_constant_dim", "is_constant_shape"))


def offer(core: ModuleType) -> None:
    """Let `jax.core` answer for them."""
    own = vars(core)["__getattr__"]

    def get(name: str) -> Any:
        if name not in NAMES and name not in WITHOUT_PLACE:
            return own(name)
        public = name in NAMES
        remedy = f" Use jax.extend.core.{name}." if public else ""
        warnings.warn(f"jax.core.{name} is deprecated.{remedy}", DeprecationWarning, stacklevel=2)
        place = "calque.extend.core" if public else "calque.compat.private.core"
        return getattr(importlib.import_module(place), name)

    vars(core)["__getattr__"] = get
