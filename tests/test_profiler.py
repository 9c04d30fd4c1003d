"""Profiles in JAX's names."""

import gzip
import json
import pathlib

import pytest

import calque
import calque.numpy as jnp


def test_marks_for_profilers():
    with calque.profiler.StepTraceAnnotation("train", step_num=3) as mark:
        names = [e.source_info.name_stack for e in calque.make_jaxpr(jnp.sin)(1.0).eqns]
    assert names == ["train"] and mark.metadata == {"step_num": 3}
    assert calque.export.default_export_platform() == "cpu" and not calque.export.is_symbolic_dim(3)


def test_a_trace_is_written_when_it_is_stopped(tmp_path):
    options = calque.profiler.ProfileOptions()
    options.session_id = "mine"
    f = calque.profiler.annotate_function(calque.jit(lambda x: jnp.cosh(x) * 0.12), name="marked")
    with calque.profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=options):
        f(jnp.ones(3))
        assert not list(tmp_path.rglob("*.gz"))
    folder = tmp_path / "plugins" / "profile" / "mine"
    names = sorted(p.name.split(".", 1)[1] for p in folder.iterdir())
    assert names == ["json.gz", "trace.json.gz", "xplane.pb"]
    with gzip.open(folder / "perfetto_trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    assert {"marked", "cosh mul"} <= {e["name"] for e in events}
    (plane,) = folder.glob("*.xplane.pb")
    assert b"/host:CPU" in plane.read_bytes() and b"cosh mul" in plane.read_bytes()


def test_one_trace_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="No profile started"):
        calque.profiler.stop_trace()
    calque.profiler.start_trace(str(tmp_path))
    try:
        with pytest.raises(RuntimeError, match="Only one profile may be run at a time"):
            calque.profiler.start_trace(str(tmp_path))
        with pytest.raises(RuntimeError, match="already"):
            calque.profile(jnp.sin, 1.0)
    finally:
        calque.profiler.stop_trace()
    assert list(tmp_path.rglob("*.trace.json.gz"))


def test_marks_nest_and_return(tmp_path):
    mark = calque.profiler.TraceAnnotation("outer")

    @mark
    def f(n):
        return f(n - 1) if n else len(mark._open)

    assert f(2) == 3 and mark._open == []


def test_memory_profiles(tmp_path):
    path = tmp_path / "memory.pb.gz"
    x = jnp.ones((3, 9))
    calque.profiler.save_device_memory_profile(path)
    assert b"f32[3,9]" in gzip.decompress(pathlib.Path(path).read_bytes()) and x.size
    with pytest.raises(ValueError, match="only cpu"):
        calque.profiler.device_memory_profile("tpu")


def test_memory_statistics():
    before = calque.devices()[0].memory_stats()["bytes_in_use"]
    x = jnp.ones(100_000)
    stats = calque.devices()[0].memory_stats()
    assert stats["bytes_in_use"] >= before + x.nbytes and stats["num_allocs"] > 0
