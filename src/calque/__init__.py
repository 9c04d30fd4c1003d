"""calque traces Python functions over arrays, transforms them, and compiles them to machine code.
Its API is JAX's.

>>> import calque as jax, calque.numpy as jnp
>>> jax.jit(jax.grad(lambda x: jnp.sin(x) * x))(2.0)
Array(0.07700372, dtype=float32, weak_type=True)
"""

import atexit as _atexit
from typing import TYPE_CHECKING

from calque.core.pause import importing as _importing

with _importing():
    from calque import ops as _ops
    from calque.machine.code.diskcache import is_new as _is_new
    from calque.machine.objects.pyapi import IS_KNOWN as _IS_KNOWN

    if _IS_KNOWN:
        from calque.machine.call import ahead as _ahead  # begins to compile the call path

    if _is_new():  # without a cache every program is new; other threads compile the call path
        from calque.native.control import emitters as _emitters
        from calque.native.control import forms as _forms
        from calque.native.emit import emitter as _emitter
        from calque.native.plan import fusion as _fusion
        from calque.native.plan import ordering as _ordering
        from calque.native.plan import program as _program
        from calque.native.plan import reuse as _reuse
        from calque.native.plan import scheduling as _scheduling
    from calque.core import guards as _guards
    from calque.core import lazy as _lazy
    from calque.core import printing as _printing  # the printed form of jaxprs
    from calque.core import tracebacks as _tracebacks
    from calque.core.backends import known as _backends
    from calque.core.backends import plugins as _plugins
    from calque.core.backends import stablehlo_module as _stablehlo_module
    from calque.core.backends import stablehlo_text as _stablehlo_text
    from calque.core.backends import unasked as _unasked
    from calque.core.config import config
    from calque.core.trace import evaluator as _evaluator
    from calque.machine import variables as _variables
    from calque.numpy.methods import attaching as _attaching  # attaches them to arrays
    from calque.transforms.devices import type_rules as _type_rules  # types know of meshes
    from calque.transforms.devices.several_processes import brought as _brought
    from calque.transforms.devices.several_processes import own_parts as _own_parts
    from calque.transforms.devices.several_processes import spanning as _spanning
    from calque.transforms.devices.sharding_arrays import constraint as _constraint
    from calque.transforms.devices.sharding_arrays import moved as _moved
    from calque.transforms.engines.signatures import captured_values as _captured_values
    from calque.transforms.jit.control_flow import converter as _converter

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        ad_checkpoint,
        api_util,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        errors,
        experimental,
        export,
        extend,
        ffi,
        flatten_util,
        image,
        interpreters,
        lax,
        memory,
        monitoring,
        nn,
        numpy,
        ops,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        stages,
        test_util,
        tree,
        tree_util,
        typing,
    )
    from calque.compat.switch import as_jax
    from calque.contexts import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        check_tracer_leaks,
        checking_leaks,
        debug_infs,
        debug_key_reuse,
        debug_nans,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_checks,
        enable_custom_prng,
        enable_x64,
        ensure_compile_time_eval,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        log_compiles,
        make_user_context,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from calque.control_flow import convert
    from calque.core.arrays import Array
    from calque.core.dtypes import float0
    from calque.core.trace import placed_typeof as typeof
    from calque.device_functions import (
        Device,
        block_until_ready,
        copy_to_host_async,
        default_backend,
        device_count,
        device_get,
        device_put,
        devices,
        host_count,
        host_id,
        host_ids,
        local_device_count,
        local_devices,
        process_count,
        process_index,
        process_indices,
    )
    from calque.environment import effects_barrier, live_arrays, print_environment_info
    from calque.explaining import explain, show, stats
    from calque.machine.threads import get_num_threads, set_num_threads
    from calque.native.libraries.export import export_library
    from calque.numpy.indexing.dynamic_slices import ds
    from calque.profiling.report import profile
    from calque.ref import Ref, empty_ref, free_ref, freeze, new_ref
    from calque.transforms.devices.assembling import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from calque.transforms.devices.mesh import make_mesh, set_mesh
    from calque.transforms.devices.shard_map import shard_map
    from calque.transforms.devices.sharding import NamedSharding
    from calque.transforms.devices.sharding_arrays import Shard
    from calque.transforms.devices.sharding_constraint import reshard
    from calque.transforms.devices.single_map import smap
    from calque.transforms.devices.specs import PartitionSpec as P
    from calque.transforms.engines.scopes import named_call, named_scope
    from calque.transforms.functions.autodiff import (
        grad,
        jvp,
        linear_transpose,
        linearize,
        value_and_grad,
        vjp,
    )
    from calque.transforms.functions.callbacks import pure_callback
    from calque.transforms.functions.checks import check
    from calque.transforms.functions.custom_gradient import closure_convert, custom_gradient
    from calque.transforms.functions.custom_jvp import custom_jvp
    from calque.transforms.functions.custom_vjp import custom_vjp
    from calque.transforms.functions.jacobian import hessian, jacfwd, jacobian, jacrev
    from calque.transforms.functions.remat import checkpoint, remat
    from calque.transforms.functions.shapes import ShapeDtypeStruct, eval_shape, make_jaxpr
    from calque.transforms.functions.vmap import vmap
    from calque.transforms.functions.wanted import ad
    from calque.transforms.jit.decorator import clear_caches, jit
    from calque.transforms.jit.pmap import pmap
    from calque.transforms.jit.retraces import explain_retraces, no_retrace
    from calque.transforms.jit.two_passes import fwd_and_bwd
    from calque.transforms.primitives.remat_policies import checkpoint_policies

__all__ = [
    "Array", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard", "ad",
    "ad_checkpoint", "allow_f16_reductions", "api_util", "array_garbage_collection_guard",
    "as_jax", "auto_pcast", "block_until_ready", "check", "check_tracer_leaks",
    "checking_leaks", "checkpoint",
    "checkpoint_policies", "clear_caches", "closure_convert", "config", "convert",
    "copy_to_host_async", "core", "custom_batching", "custom_derivatives", "custom_gradient",
    "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse", "debug_nans",
    "default_backend", "default_device", "default_matmul_precision", "default_prng_impl",
    "device_count", "device_get", "device_put", "devices", "disable_jit", "distributed",
    "dlpack", "ds", "dtypes", "effects_barrier", "empty_ref", "enable_checks",
    "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "errors", "eval_shape",
    "experimental", "explain", "explain_cache_misses", "explain_retraces", "export",
    "export_library", "extend", "ffi", "flatten_util", "float0", "free_ref", "freeze",
    "fwd_and_bwd", "get_num_threads", "grad", "hessian", "host_count", "host_id", "host_ids",
    "image", "interpreters", "jacfwd",
    "jacobian", "jacrev", "jax2tf_associative_scan_reductions", "jit", "jvp", "lax",
    "legacy_prng_key", "linear_transpose", "linearize", "live_arrays", "local_device_count",
    "local_devices", "log_compiles", "make_array_from_callback",
    "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_jaxpr",
    "make_mesh", "make_user_context", "memory", "monitoring", "named_call", "named_scope",
    "new_ref", "nn", "no_execution", "no_retrace", "no_tracing", "numpy",
    "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "pmap", "print_environment_info",
    "process_count", "process_index", "process_indices", "profile", "profiler", "pure_callback",
    "random",
    "ref", "remat", "remove_size_one_mesh_axis_from_type", "reshard", "scipy", "set_mesh",
    "set_num_threads", "shard_map", "sharding", "show", "smap",
    "softmax_custom_jvp", "stages", "stats",
    "test_util", "thread_guard", "threefry_partitionable", "transfer_guard",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device", "tree", "tree_util", "typeof", "typing", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    _put = "is deprecated; use jax.device_put with a sharding instead"
    __getattr__, __dir__ = _lazy.facade(
        __name__,
        __file__,
        lambda name, value: _guards.guard(value),
        {
            "device_put_replicated": f"jax.device_put_replicated {_put}, whose spec is P()",
            "device_put_sharded": f"jax.device_put_sharded {_put}",
        },
    )
    del _put
    _guards.guard(__getattr__)

_backends.register("native", _lazy.function("calque.native.backend", "compile"), default=True)
_backends.register_symbolic("native", _lazy.function("calque.native.symbolic", "compile"))
_evaluator.install(_lazy.function("calque.native.eager.execution", "evaluate"))
_backends.register(
    "xla_cpu", _lazy.function("calque.xla.engine", "compile_on_xla"), reads_places=True
)
_backends.register_symbolic("xla_cpu", _lazy.function("calque.xla.unknown_sizes", "compile"))
_spanning.install(_lazy.function("calque.xla.buffers", "spanning"))
_moved.install(_lazy.function("calque.transforms.devices.memory_spaces", "in_memory"))
_constraint.install(_lazy.function("calque.transforms.devices.sharding_constraint", "constrained"))
_brought.install(_lazy.function("calque.transforms.jit.several_processes", "brought"))
_own_parts.install(_lazy.function("calque.xla.buffers", "own_parts"))
_plugins.install(_lazy.function("calque.xla.plugins", "opened"))
_unasked.install(_lazy.function("calque.xla.plugin_libraries", "opened_unasked"))
_backends.register_devices("xla_cpu", _lazy.function("calque.xla.engine", "cpu_devices"))
_stablehlo_text.install(_lazy.function("calque.xla.stages", "text"))
_stablehlo_module.install(_lazy.function("calque.xla.stages", "compiler_ir"))
_captured_values.install(_lazy.function("calque.transforms.jit.captures", "captured"))
_converter.install(_lazy.function("calque.control_flow", "convert"))
_lazy.offer(
    _ops, "calque.numpy.segments", ("segment_max", "segment_min", "segment_prod", "segment_sum")
)
_tracebacks.install()
if _variables.choice("CALQUE_PERF_MAP", (*_variables.ON, *_variables.OFF)) in _variables.ON:
    _atexit.register(_lazy.function("calque.profiling.perf", "perf_map"))
_guards.guard(type(config))
__version__ = "0.1.0"
