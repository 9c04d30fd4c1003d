"""Interfaces that may change."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.contexts import enable_x64
    from calque.core.arrays import ArrayImpl as EArray
    from calque.experimental import (
        array_serialization,
        buffer_callback,
        checkify,
        colocated_python,
        compilation_cache,
        compute_on,
        custom_partitioning,
        hijax,
        jet,
        key_reuse,
        layout,
        mesh_utils,
        multihost_utils,
        ode,
        pallas,
        pjit,
        profiler,
        rnn,
        scheduling_groups,
        serialize_executable,
        shard_alike,
        shard_map,
        sparse,
        topologies,
        xla_metadata,
    )
    from calque.extend.programs import primal_tangent_dtype
    from calque.transforms.functions.callbacks import io_callback
    from calque.transforms.primitives.high_values import cur_qdd

__all__ = [
    "EArray", "array_serialization", "buffer_callback", "checkify", "colocated_python",
    "compilation_cache", "compute_on", "cur_qdd", "custom_partitioning", "enable_x64", "hijax",
    "io_callback", "jet", "key_reuse", "layout", "mesh_utils", "multihost_utils", "ode", "pallas",
    "pjit", "primal_tangent_dtype", "profiler", "rnn", "scheduling_groups",
    "serialize_executable", "shard_alike", "shard_map", "sparse", "topologies", "xla_metadata",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__)
