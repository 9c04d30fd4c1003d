"""Which frames messages leave out."""

import importlib.util
import sys
import traceback

import pytest

import calque
import calque.numpy as jnp
from calque.compat.private import traceback_util
from calque.core.source import excluded_files


@pytest.fixture
def library(tmp_path):
    """A module of some library, which can be excluded."""
    path = tmp_path / "library.py"
    path.write_text("def call(f, *args):\n    return f(*args)\n")
    spec = importlib.util.spec_from_file_location("library", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    if str(path) in excluded_files:
        excluded_files.remove(str(path))


def test_the_users_line_is_beyond_excluded_files(library):
    def place():
        jaxpr = calque.make_jaxpr(lambda x: library.call(jnp.sin, x))(1.0)
        return jaxpr.jaxpr.eqns[0].source.file

    assert place() == library.__file__
    traceback_util.register_exclusion(library.__file__)
    assert place() == __file__


def test_frames_of_excluded_files_are_left_out(library):
    def fails():
        raise ValueError("mine")

    def shown():
        with pytest.raises(ValueError, match="mine") as e:
            library.call(fails)
        tb = e.value.__traceback__
        frames = [f for f, _ in traceback.walk_tb(tb)]
        included = [f.f_code.co_name for f in frames if traceback_util.include_frame(f)]
        kept = [f.f_code.co_name for f, _ in traceback.walk_tb(traceback_util.filter_traceback(tb))]
        assert included == kept
        return kept

    assert shown() == ["shown", "call", "fails"]
    traceback_util.register_exclusion(library.__file__)
    assert shown() == ["shown", "fails"]


def test_functions_that_users_call(library):
    @traceback_util.api_boundary
    def outer(f):
        return library.call(f)

    traceback_util.register_exclusion(library.__file__)
    with pytest.raises(KeyError, match="mine") as e:
        outer(lambda: {}["mine"])
    names = [f.name for f in traceback.extract_tb(e.value.__traceback__)]
    assert "call" not in names and names[-1] == "<lambda>"
    assert outer(lambda: 3) == 3 and outer.__name__ == "outer"
    named = traceback_util.api_boundary(lambda: sys.version, repro_api_name="jax.version")
    assert named() == sys.version


def test_the_whole_traceback_is_of_the_class_that_libraries_know():
    @traceback_util.api_boundary
    def fails():
        raise ValueError("mine")

    removed = calque.config.override("calque_traceback_filtering", "remove_frames")
    with removed, pytest.raises(ValueError, match="mine") as e:
        fails()
    assert isinstance(e.value.__cause__, traceback_util.UnfilteredStackTrace)
