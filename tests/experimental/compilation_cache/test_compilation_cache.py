"""Where compiled programs are kept on disk."""

import pytest

import calque
import calque.numpy as jnp
from calque.experimental.compilation_cache import compilation_cache
from calque.machine.code import diskcache


@pytest.fixture
def restored(monkeypatch):
    """The directory of the other tests, afterwards."""
    import os

    monkeypatch.setenv("CALQUE_CACHE_DIR", os.environ.get("CALQUE_CACHE_DIR", ""))
    yield monkeypatch
    monkeypatch.undo()
    diskcache.reload()


def test_another_directory_is_used_from_here_on(restored, tmp_path):
    compilation_cache.set_cache_dir(tmp_path / "programs")
    assert compilation_cache.is_initialized()
    assert str(diskcache.directory()).startswith(str(tmp_path))
    f = calque.jit(lambda x: jnp.sin(x) * 1.2345678 + jnp.cos(x) * 0.87654321)
    f(jnp.ones(17))
    if calque.stats()["compiles"]:
        assert any(p.is_file() for p in tmp_path.rglob("*"))


def test_the_environment_is_asked_again(restored, tmp_path):
    restored.setenv("CALQUE_CACHE_DIR", str(tmp_path / "a"))
    compilation_cache.reset_cache()
    first = str(diskcache.directory())
    restored.setenv("CALQUE_CACHE_DIR", str(tmp_path / "b"))
    assert str(diskcache.directory()) == first
    compilation_cache.reset_cache()
    assert str(diskcache.directory()).startswith(str(tmp_path / "b"))


def test_a_place_that_cannot_be_written_is_none(restored, tmp_path):
    (tmp_path / "file").write_text("")
    compilation_cache.set_cache_dir(tmp_path / "file" / "below")
    assert not compilation_cache.is_initialized()
    assert float(calque.jit(lambda x: x * 3.25 + 0.125)(2.0)) == 6.625  # without a cache
