"""Modules that speak of the process, of other processes and of other compilers."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


def test_the_environment(capsys):
    text = calque.print_environment_info(return_string=True)
    assert f"calque: {calque.__version__}" in text and f"numpy:  {np.__version__}" in text
    assert calque.print_environment_info() is None and "process_count: 1" in capsys.readouterr().out
    assert calque.effects_barrier() is None
    with pytest.raises(NotImplementedError, match="tracemalloc"):
        calque.live_arrays()


MODULES = [
    "ad_checkpoint",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "distributed",
    "dlpack",
    "dtypes",
    "errors",
    "experimental",
    "export",
    "ffi",
    "image",
    "lax",
    "memory",
    "monitoring",
    "nn",
    "profiler",
    "random",
    "scipy",
    "sharding",
    "stages",
    "tree",
    "tree_util",
]


def test_modules_are_attributes():
    for name in MODULES:
        assert getattr(calque, name).__name__ == f"calque.{name}"


def test_memory_spaces():
    for space in calque.memory.Space:
        assert calque.device_put(jnp.ones(2), space).tolist() == [1, 1]


def test_events_reach_their_listeners():
    m, heard = calque.monitoring, []
    listeners = [
        (m.register_event_listener, m.unregister_event_listener, lambda: m.record_event("/a", n=1)),
        (
            m.register_event_duration_secs_listener,
            m.unregister_event_duration_listener,
            lambda: m.record_event_duration_secs("/b", 2.0),
        ),
        (
            m.register_event_time_span_listener,
            m.unregister_event_time_span_listener,
            lambda: m.record_event_time_span("/c", 1.0, 2.0),
        ),
        (
            m.register_scalar_listener,
            m.unregister_scalar_listener,
            lambda: m.record_scalar("/d", 3.0),
        ),
    ]

    def listener(*values, **details):
        return heard.append((*values, *details.items()))

    for register, unregister, report in listeners:
        register(listener)
        report()
        unregister(listener)
        report()
        with pytest.raises(ValueError, match="is not a listener"):
            unregister(listener)
    assert heard == [("/a", ("n", 1)), ("/b", 2.0), ("/c", 1.0, 2.0), ("/d", 3.0)]
    m.register_event_listener(listener)
    m.clear_event_listeners()
    m.record_event("/e")
    assert len(heard) == 4


def test_one_process():
    d = calque.distributed
    assert not d.is_initialized()
    d.initialize("localhost:1234", num_processes=1, process_id=0)
    assert d.is_initialized()
    with pytest.raises(RuntimeError, match="only be called once"):
        d.initialize()
    d.shutdown()
    for kwargs in ({"num_processes": 2}, {"coordinator_address": "host:1"}, {"slice_index": 1}):
        with pytest.raises(NotImplementedError, match="num_processes=1"):
            d.initialize(**kwargs)
    with pytest.raises(ValueError, match="initialization_timeout must be positive"):
        d.initialize(initialization_timeout=0)


@pytest.mark.parametrize(
    "call, remedy",
    [
        (lambda: calque.profiler.start_trace("/tmp/x"), "perf record"),
        (lambda: calque.profiler.trace("/tmp/x"), "cProfile"),
        (lambda: calque.profiler.save_device_memory_profile("x"), "cProfile"),
        (lambda: calque.export.export(calque.jit(jnp.sin)), "as_text"),
        (lambda: calque.export.deserialize(b""), "as_text"),
        (lambda: calque.export.symbolic_shape("a, b"), "as_text"),
        (lambda: calque.ffi.ffi_call("f", calque.ShapeDtypeStruct((), "float32")), "pure_callback"),
        (lambda: calque.ffi.register_ffi_target("f", None), "pure_callback"),
        (lambda: calque.ffi.register_ffi_type_id("f", None), "pure_callback"),
        (lambda: calque.ffi.ffi_lowering("f"), "pure_callback"),
        (lambda: calque.ffi.build_ffi_lowering_function("f"), "pure_callback"),
        (lambda: calque.profiler.ProfileOptions(), "cProfile"),
        (lambda: calque.profiler.ProfileData.from_file("x"), "cProfile"),
        (lambda: calque.profiler.register_subprocess(1, 2), "cProfile"),
        (lambda: calque.export.Exported(), "XLA engine"),
        (lambda: calque.export.SymbolicScope(), "XLA engine"),
        (lambda: calque.export.DisabledSafetyCheck.platform(), "XLA engine"),
        (
            lambda: calque.export.register_namedtuple_serialization(tuple, serialized_name="t"),
            "XLA engine",
        ),
        (lambda: calque.jit(jnp.sin, compiler_options={"fast": True}), "no options"),
    ],
)
def test_what_belongs_to_others_names_the_remedy(call, remedy):
    with pytest.raises(NotImplementedError, match=remedy):
        call()


def test_marks_for_profilers():
    with calque.profiler.StepTraceAnnotation("train", step_num=3) as mark:
        names = [e.source_info.name_stack for e in calque.make_jaxpr(jnp.sin)(1.0).eqns]
    assert names == ["train"] and mark.metadata == {"step_num": 3}
    assert calque.export.default_export_platform() == "cpu" and not calque.export.is_symbolic_dim(3)


def test_arguments_of_stages():
    lowered = calque.jit(lambda x, y: x + y, donate_argnums=0).lower(jnp.ones(3), 2.0)
    (x, y), _ = lowered.args_info
    assert isinstance(x, calque.stages.ArgInfo)
    assert (x.shape, x.dtype, x.donated, y.donated) == ((3,), np.float32, True, False)


def test_grids_by_kind_of_device():
    from calque.experimental import mesh_utils

    calls = []
    mesh_utils.device_kind_handler_dict["cpu"] = lambda shape, devices, **options: calls.append(
        (shape, options)
    )
    try:
        assert mesh_utils.create_device_mesh((1,), calque.devices()[:1]).shape == (1,)
    finally:
        del mesh_utils.device_kind_handler_dict["cpu"]
    assert calls == [((1,), {"contiguous_submeshes": False})]
