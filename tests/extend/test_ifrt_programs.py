"""Programs of another runtime are refused when they are made, not when libraries are imported."""

import pytest

from calque.extend import ifrt_programs


def test_plugins_are_refused():
    with pytest.raises(NotImplementedError, match=r"calque\.jit"):
        ifrt_programs.ifrt_programs.make_plugin_program("x")
