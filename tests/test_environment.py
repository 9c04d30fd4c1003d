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
    x = jnp.arange(7)
    assert any(y is x for y in calque.live_arrays()) and calque.live_arrays("tpu") == []


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


@pytest.mark.parametrize(
    "call, remedy",
    [
        (lambda: calque.profiler.start_trace("/tmp/x", create_perfetto_link=True), "ui.perfetto"),
        (lambda: calque.profiler.ProfileData.from_file("x"), "json.load"),
        (lambda: calque.profiler.register_subprocess(1, 2), "start_trace"),
    ],
)
def test_what_belongs_to_others_names_the_remedy(call, remedy):
    with pytest.raises(NotImplementedError, match=remedy):
        call()
