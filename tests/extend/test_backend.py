"""What runs programs, by the names of platforms."""

import functools

import pytest

import calque
from calque.extend import backend


def test_the_processor_is_a_backend() -> None:
    client = backend.get_backend()
    assert client == backend.get_backend("cpu") == backend.backends()["cpu"]
    assert backend.get_backend(client) is client
    assert client.platform == "cpu" and client.device_count() == calque.device_count()
    assert backend.backend_xla_version() is None
    assert backend.get_default_device() == calque.devices()[0]
    with pytest.raises(RuntimeError, match="wafer"):
        backend.get_backend("wafer")


def test_the_default_device_is_the_one_that_is_set() -> None:
    device = calque.devices()[-1]
    with calque.default_device(device):
        assert backend.get_default_device() == device


def test_caches_of_libraries_are_emptied_with_those_of_calque() -> None:
    calls = []

    @functools.lru_cache
    def size(n):
        calls.append(n)
        return n

    backend.register_backend_cache(size, "sizes")
    for clear in (calque.clear_caches, backend.clear_backends):
        size(1), size(1)
        clear()
    assert calls == [1, 1] and size.cache_info().currsize == 0
    with pytest.raises(TypeError, match="cache_clear"):
        backend.register_backend_cache({}, "a dict")


def test_programs_run_after_they_were_forgotten() -> None:
    f = calque.jit(lambda x: x + 1)
    assert f(1) == 2
    backend.clear_in_memory_compilation_cache()
    assert f(1) == 2


def test_what_belongs_to_jaxlib_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="compiler_options"):
        backend.get_compile_options(1, 1)
    with pytest.raises(NotImplementedError, match="cannot run 'mine'"):
        backend.register_backend_factory("mine", list)
