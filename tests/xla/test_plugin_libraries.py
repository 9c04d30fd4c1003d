"""Libraries of plugins: how they are found, and which are opened where nothing was chosen. They are
none: no accelerator is needed."""

from __future__ import annotations

import importlib.metadata
import logging
import pathlib
import sys

import pytest

from calque.core.backends import PLUGIN_PATHS, plugins
from calque.xla.plugin_libraries import expected, libraries, offers_pjrt, opened_unasked
from tests.xla.packages import plugin


def test_packages_in_the_namespace(packages: pathlib.Path) -> None:
    place = plugin(packages, "jax_plugins/xla_cuda12", "_triton.so", "xla_cuda_plugin.so")
    plugin(packages, "jax_plugins/abacus", "pjrt_plugin_abacus.so", "__init__.py")
    plugin(packages, "jax_plugins/empty", "__init__.py")
    plugin(packages, "jax_plugins/unclear", "one.so", "two.so")
    found = libraries()
    assert found["cuda"] == str(place / "xla_cuda_plugin.so")
    assert found["abacus"].endswith("abacus/pjrt_plugin_abacus.so")
    assert not {"empty", "unclear"} & set(found)


def test_libraries_are_known_by_what_they_offer(packages: pathlib.Path) -> None:
    place = plugin(packages, "jax_plugins/odd", "a_pjrt_plugin.so", "unlikely.so")
    assert libraries()["odd"] == str(place / "unlikely.so")
    (place / "empty.so").touch()
    assert not offers_pjrt(str(place / "empty.so")) and not offers_pjrt(str(place / "none.so"))
    assert offers_pjrt(str(place / "unlikely.so"))


def test_the_library_for_tpus(packages: pathlib.Path) -> None:
    plugin(packages, "libtpu", "__init__.py", "libtpu.so")
    assert libraries()["tpu"].endswith("libtpu/libtpu.so")


def test_entry_points(packages: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(packages, "someones_plugin", "__init__.py", "only.so")
    points = [
        importlib.metadata.EntryPoint("someone", "someones_plugin", "jax_plugins"),
        importlib.metadata.EntryPoint("gone", "no_such_package_of_tests", "jax_plugins"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    assert libraries()["someone"].endswith("someones_plugin/only.so")
    assert "gone" not in libraries() and "someones_plugin" not in sys.modules


def test_paths_of_the_user_go_first(
    packages: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(packages, "jax_plugins/abacus", "pjrt_plugin_abacus.so")
    monkeypatch.setenv(PLUGIN_PATHS, "abacus:/somewhere/a.so, slide_rule:/somewhere/b.so")
    found = libraries()
    assert (found["abacus"], found["slide_rule"]) == ("/somewhere/a.so", "/somewhere/b.so")
    monkeypatch.setenv(PLUGIN_PATHS, "abacus")
    with pytest.raises(ValueError, match=f"{PLUGIN_PATHS} is a list of name:path, got 'abacus'"):
        libraries()


def test_what_is_expected(packages: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins of the user go first; of packages those count whose hardware is there."""
    plugin(packages, "jax_plugins/xla_cuda12", "xla_cuda_plugin.so")
    plugin(packages, "jax_plugins/abacus", "pjrt_plugin_abacus.so")
    plugin(packages, "libtpu", "__init__.py", "libtpu.so")
    assert expected([]) == [] and expected(["rocm"]) == []
    assert expected(["tpu", "cuda"]) == ["tpu", "cuda"] and expected(["cuda"]) == ["cuda"]
    monkeypatch.setenv(PLUGIN_PATHS, "slide_rule:/somewhere/b.so,cuda:/somewhere/c.so")
    assert expected([]) == ["slide_rule", "cuda"]
    assert expected(["tpu", "cuda"]) == ["slide_rule", "cuda", "tpu"]


def test_the_first_that_opens_is_taken(
    packages: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin(packages, "jax_plugins/xla_cuda12", "xla_cuda_plugin.so")
    plugin(packages, "libtpu", "__init__.py", "libtpu.so")
    asked = []

    def opened(function: object, platform: str) -> list[str]:
        asked.append(platform)
        if platform == "tpu":
            raise OSError("no such chip")
        return [f"a device of {platform}"]

    plugins.intercept("test", opened)
    try:
        with caplog.at_level(logging.WARNING):
            assert opened_unasked(["tpu", "cuda"]) == ["a device of cuda"]
            assert asked == ["tpu", "cuda"] and not caplog.messages
            assert opened_unasked(["tpu"]) == ()
    finally:
        plugins.intercept("test", None)
    (said,) = caplog.messages
    assert "'tpu': no such chip" in said and "Set CALQUE_PLATFORMS=cpu" in said


def test_a_list_that_is_none_is_told(
    packages: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(PLUGIN_PATHS, "abacus")
    assert opened_unasked([]) == ()
    (said,) = caplog.messages
    assert "is a list of name:path, got 'abacus'" in said


def test_nothing_is_said_where_no_plugin_is(
    packages: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert opened_unasked(["tpu", "cuda", "rocm"]) == () and not caplog.messages
